//! Datagrams, with events. Node's `dgram`, over [`UdpSocket`].

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::panic::Location;
use std::rc::Rc;

use super::abort::AbortController;
use super::callbacks::in_callbacks;
use super::error::Error;
use super::events::{ERROR, Emitter, Event, EventEmitter, ListenerId};
use super::net::LISTENING;
use super::stream::CLOSE;
use crate::kinds::Site;
use crate::net::{UdpOptions, UdpSocket};
use crate::phase;
use crate::task::next_tick;

/// A datagram has come.
pub const MESSAGE: Event<Datagram> = Event::new("message");

/// The largest datagram.
const LARGEST: usize = 64 * 1024;

/// What has come, and from where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Datagram {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Who has sent them.
    pub from: SocketAddr,
}

/// A socket for datagrams. A clone is the same socket. While it is bound it lives on its loop, and keeps that alive.
///
/// Each datagram is a callback of the poll phase, with a drain after it (N103).
///
/// # Examples
///
/// ```
/// use phaseloop::node::{Emitter, dgram::Socket, run};
///
/// run(async {
///     let socket = Socket::new();
///     let this = socket.clone();
///     socket.on_message(move |datagram| {
///         assert_eq!(datagram.bytes, b"hello");
///         this.close();
///     });
///     let bound = socket.clone();
///     socket.bind_with("127.0.0.1:0".parse().unwrap(), move || {
///         bound.send(b"hello", bound.address().unwrap());
///     });
/// });
/// ```
#[derive(Clone, Default)]
pub struct Socket {
    inner: Rc<Inner>,
}

#[derive(Default)]
struct Inner {
    emitter: EventEmitter,
    bound: RefCell<Option<Bound>>,
}

struct Bound {
    socket: Rc<UdpSocket>,
    /// Ends the receiving.
    controller: AbortController,
}

impl Socket {
    /// A socket that is not bound.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds the socket by a tick, and emits [`LISTENING`], or the error, there.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn bind(&self, address: SocketAddr) {
        let (this, site) = (self.clone(), Location::caller());
        next_tick(move || match this.bind_now(address, site) {
            Ok(()) => {
                this.inner.emitter.emit(LISTENING, &());
            }
            Err(error) => {
                this.inner
                    .emitter
                    .emit(ERROR, &Error::of_address(error, "bind", address));
            }
        });
    }

    /// The same, and calls `callback` when it is bound.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn bind_with(&self, address: SocketAddr, callback: impl Fn() + 'static) {
        self.once(LISTENING, move |()| callback());
        self.bind(address);
    }

    fn bind_now(&self, address: SocketAddr, site: Site) -> io::Result<()> {
        let socket = UdpSocket::bind_at(address, UdpOptions::default(), site)?;
        let socket = Rc::new(socket);
        let controller = AbortController::new();
        let signal = controller.signal();
        self.inner.bound.replace(Some(Bound {
            socket: socket.clone(),
            controller,
        }));
        let this = self.clone();
        in_callbacks(async move {
            let closed = signal.clone();
            let receiving = signal.guard(async move {
                let mut buffer = vec![0; LARGEST];
                while !closed.aborted() {
                    match socket.recv_from(&mut buffer).await {
                        Ok((size, from)) => {
                            let bytes = buffer[..size].to_vec();
                            this.inner.emitter.emit(MESSAGE, &Datagram { bytes, from });
                        }
                        Err(error) => {
                            let error = Error::of_call(error, "recvmsg");
                            this.inner.emitter.emit(ERROR, &error);
                        }
                    }
                    // One callback each: the next one comes with the next poll phase.
                    phase::poll().await;
                }
            });
            // Aborted, it was closed.
            drop(receiving.await);
        });
        Ok(())
    }

    /// Adds a listener for datagrams.
    pub fn on_message(&self, listener: impl Fn(&Datagram) + 'static) -> ListenerId {
        self.on(MESSAGE, listener)
    }

    /// Sends a datagram; an error is emitted. A socket that is not bound is bound to any port.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn send(&self, bytes: &[u8], to: SocketAddr) {
        let this = self.clone();
        self.send_with(bytes, to, move |result| {
            if let Err(error) = result {
                this.inner.emitter.emit(ERROR, &error);
            }
        });
    }

    /// The same, and calls `callback` in the pending phase after it is sent.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn send_with(
        &self,
        bytes: &[u8],
        to: SocketAddr,
        callback: impl FnOnce(Result<(), Error>) + 'static,
    ) {
        let (this, bytes, site) = (self.clone(), bytes.to_vec(), Location::caller());
        next_tick(move || {
            in_callbacks(async move {
                let sent = this.send_now(&bytes, to, site).await;
                phase::pending().await;
                callback(sent.map_err(|error| Error::of_address(error, "send", to)));
            });
        });
    }

    async fn send_now(&self, bytes: &[u8], to: SocketAddr, site: Site) -> io::Result<()> {
        if self.inner.bound.borrow().is_none() {
            let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            self.bind_now(any.parse().expect("these are addresses"), site)?;
        }
        let socket = self
            .inner
            .bound
            .borrow()
            .as_ref()
            .map(|bound| bound.socket.clone());
        match socket {
            Some(socket) => socket.send_to(bytes, to).await.map(drop),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// The address it is bound to.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        let bound = self.inner.bound.borrow();
        bound
            .as_ref()
            .and_then(|bound| bound.socket.local_addr().ok())
    }

    /// Closes the socket; [`CLOSE`] comes by a tick (N103).
    pub fn close(&self) {
        let bound = self.inner.bound.take();
        if let Some(bound) = bound {
            bound.controller.abort();
        }
        let this = self.clone();
        next_tick(move || {
            this.inner.emitter.emit(CLOSE, &());
            this.inner.emitter.clear();
        });
    }

    /// The same, and calls `callback` when it is closed.
    pub fn close_with(&self, callback: impl Fn() + 'static) {
        self.once(CLOSE, move |()| callback());
        self.close();
    }
}

impl Emitter for Socket {
    fn emitter(&self) -> &EventEmitter {
        &self.inner.emitter
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket")
            .field("address", &self.address())
            .finish_non_exhaustive()
    }
}
