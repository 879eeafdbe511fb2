//! The part of a listener that one loop has.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use futures::Stream;

use super::Member;
use super::channel::Receiver;
use super::listen::{Handed, Owner};
use crate::net::{Last, TcpListener, TcpStream};
use crate::sync::{Mutex, Notify};
use crate::task::CancellationToken;

/// The connections that one loop of a cluster serves; [`Listeners::here`](super::Listeners::here)
/// returns it.
///
/// After [`Cluster::shutdown`](super::Cluster::shutdown) it returns the connections that were
/// handed over before, and then rests: [`accept`](Self::accept) does not complete any more. A
/// server that waits for [`stopping`](super::stopping) ends then.
///
/// # Examples
///
/// ```
/// use phaseloop::{cluster::{self, Balance}, net::TcpStream, spawn};
///
/// fn main() -> std::io::Result<()> {
///     cluster::Builder::new().loops(2).block_on(async {
///         let listen = cluster::listen("127.0.0.1:0").balance(Balance::RoundRobin);
///         let listeners = listen.await.unwrap();
///         let address = listeners.local_addr();
///         let servers = cluster::current().each(move |_| {
///             let listener = listeners.here(); // on each loop its own
///             async move { listener.accept().await.unwrap().1 }
///         });
///         let clients = spawn(async move {
///             let one = TcpStream::connect(address).await.unwrap();
///             (one, TcpStream::connect(address).await.unwrap())
///         });
///         assert_eq!(servers.await.len(), 2);
///         clients.await.unwrap();
///     })?;
///     Ok(())
/// }
/// ```
pub struct Listener {
    owner: Owner,
    intake: Intake,
    /// Whether it has returned what there was.
    is_drained: Cell<bool>,
}

enum Intake {
    /// Connections that loop 0 has accepted.
    Handed(Mutex<Receiver<Handed>>),
    Own(Own),
    /// The listener is closed.
    Nothing,
}

/// A listener of its own, by `Balance::ReusePort`.
struct Own {
    listener: RefCell<Option<Rc<TcpListener>>>,
    /// Wakes those that wait until no accept has the listener.
    left: Notify,
    /// The listener, when it is about to be closed. One of several that accept empties it.
    last: Mutex<Option<Last>>,
    /// Cancelled when the listener is to be closed.
    closing: CancellationToken,
}

impl Listener {
    pub(super) fn handed(owner: Owner, receiver: Receiver<Handed>) -> Self {
        Self {
            owner,
            intake: Intake::Handed(Mutex::new(receiver).named("listener of the cluster")),
            is_drained: Cell::new(false),
        }
    }

    pub(super) fn own(owner: Owner, listener: TcpListener, member: &Member) -> Self {
        Self {
            owner,
            intake: Intake::Own(Own {
                listener: RefCell::new(Some(Rc::new(listener))),
                left: Notify::new(),
                last: Mutex::new(None),
                closing: member.closing.clone(),
            }),
            is_drained: Cell::new(false),
        }
    }

    pub(super) fn at_rest(owner: Owner) -> Self {
        Self {
            owner,
            intake: Intake::Nothing,
            is_drained: Cell::new(true),
        }
    }

    /// Accepts a connection. It is registered with this loop, and was created by the line that
    /// called [`listen`](super::listen()).
    ///
    /// # Errors
    ///
    /// The errors of [`TcpListener::accept`], of which one loop gets each, and any OS error of
    /// registering the connection. The listener goes on after each, unless it cannot accept any
    /// more: then each loop gets the error, once.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no connection.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{cluster::{self, Balance}, net::TcpStream, spawn};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     cluster::Builder::new().loops(2).block_on(async {
    ///         let listen = cluster::listen("127.0.0.1:0").balance(Balance::RoundRobin);
    ///         let listeners = listen.await.unwrap();
    ///         let address = listeners.local_addr();
    ///         let servers = cluster::current().each(move |_| {
    ///             let listener = listeners.here(); // on each loop its own
    ///             async move { listener.accept().await.unwrap().1 }
    ///         });
    ///         let clients = spawn(async move {
    ///             let one = TcpStream::connect(address).await.unwrap();
    ///             (one, TcpStream::connect(address).await.unwrap())
    ///         });
    ///         assert_eq!(servers.await.len(), 2);
    ///         clients.await.unwrap();
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match &self.intake {
            Intake::Handed(receiver) => {
                // Only one of several who wait can be the receiver's.
                let mut receiver = receiver.lock().await;
                if let Some(handed) = receiver.recv().await {
                    let (stream, peer) = handed?;
                    return Ok((stream.attach()?, peer));
                }
            }
            Intake::Own(own) => {
                if let Some(accepted) = own.accept().await {
                    return accepted;
                }
            }
            Intake::Nothing => {}
        }
        self.end();
        pending().await
    }

    /// Returns an endless stream of connections; see [`accept`](Self::accept).
    pub fn incoming(&self) -> impl Stream<Item = io::Result<TcpStream>> {
        futures::stream::unfold(self, async |listener| {
            let accepted = listener.accept().await;
            Some((accepted.map(|(stream, _)| stream), listener))
        })
    }

    /// Returns the address that the listener is bound to.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.owner.hub.address
    }

    fn end(&self) {
        if !self.is_drained.replace(true) {
            self.owner.hub.end_of_listener();
        }
    }
}

impl Own {
    /// Accepts a connection; `None` once the listener is closed.
    async fn accept(&self) -> Option<io::Result<(TcpStream, SocketAddr)>> {
        let listener = self.listener.borrow().clone();
        if let Some(listener) = listener {
            let accepting = Accepting {
                own: self,
                listener: Some(listener),
            };
            let accepted = {
                let mut accept = pin!(accepting.accept());
                let mut closing = pin!(self.closing.cancelled());
                poll_fn(|cx| {
                    if closing.as_mut().poll(cx).is_ready() {
                        return Poll::Ready(None);
                    }
                    accept.as_mut().poll(cx).map(Some)
                })
                .await
            };
            if let Some(accepted) = accepted {
                return Some(accepted);
            }
            drop(accepting);
        }
        self.become_last().await;
        // The kernel resets what is left in the queue of a listener that is closed.
        let mut last = self.last.lock().await;
        loop {
            let open = last.as_ref()?;
            if let Some((stream, peer)) = open.accept() {
                return Some(stream.attach().map(|stream| (stream, peer)));
            }
            if !open.hold_back().await {
                *last = None;
            }
        }
    }

    /// Waits until each accept has noticed the end, the last of which owns the listener.
    async fn become_last(&self) {
        loop {
            let mut left = pin!(self.left.notified());
            left.as_mut().enable();
            let owners = self.listener.borrow().as_ref().map(Rc::strong_count);
            match owners {
                None => return,
                Some(1) => {
                    let listener = self.listener.take().and_then(Rc::into_inner);
                    let last = listener.map(TcpListener::into_last);
                    *self.last.lock().await = last;
                    self.left.notify_all();
                    return;
                }
                Some(_) => left.await,
            }
        }
    }
}

/// An accept that has the listener. The drop notifies those that wait for the last one.
struct Accepting<'a> {
    own: &'a Own,
    listener: Option<Rc<TcpListener>>,
}

impl Accepting<'_> {
    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match &self.listener {
            Some(listener) => listener.accept().await,
            None => pending().await,
        }
    }
}

impl Drop for Accepting<'_> {
    fn drop(&mut self) {
        drop(self.listener.take());
        if self.own.closing.is_cancelled() {
            self.own.left.notify_all();
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Intake::Handed(receiver) = &mut self.intake {
            let left = receiver.get_mut().close();
            if !left.is_empty() {
                self.owner.hub.take_back(left);
            }
        }
        self.end();
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("local", &self.local_addr())
            .finish_non_exhaustive()
    }
}
