//! A listener whose connections are encrypted.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{AbortHandle, Abortable, LocalBoxFuture};
use futures::stream::{FuturesUnordered, StreamExt as _};

use super::ServerContext;
use super::stream::TlsStream;
use crate::net::{Accept, Connection, Listener};
use crate::site::Site;
use phaseloop::time::timeout;

/// How long a handshake may take.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(120);

/// The largest number of handshakes at a time. A further one ends the oldest: peers that never
/// finish theirs must not keep the others out until the timeout.
const MOST_HANDSHAKES: usize = 1024;

/// A handshake; `None` if it fails or takes too long.
type Handshake = LocalBoxFuture<'static, Option<Box<dyn Connection>>>;

/// Accepts connections and completes their handshakes, any number at a time: a slow peer delays no
/// other.
pub(super) struct TlsListener {
    below: Box<dyn Listener>,
    context: ServerContext,
    handshakes: RefCell<FuturesUnordered<Handshake>>,
    /// What ends the handshakes, the oldest first. The reference is dead once one is over.
    begun: RefCell<VecDeque<(Weak<()>, AbortHandle)>>,
}

impl TlsListener {
    pub(super) fn new(below: Box<dyn Listener>, context: ServerContext) -> Self {
        Self {
            below,
            context,
            handshakes: RefCell::default(),
            begun: RefCell::default(),
        }
    }

    fn begin(&self, connection: Box<dyn Connection>) {
        let (context, alive) = (self.context.clone(), Rc::new(()));
        let (handle, registration) = AbortHandle::new_pair();
        self.add_to_begun(Rc::downgrade(&alive), handle);
        let handshake = async move {
            let _alive = alive;
            let accepting = TlsStream::accept(connection, &context);
            let stream = timeout(HANDSHAKE_TIMEOUT, accepting).await.ok()?.ok()?;
            let stream: Box<dyn Connection> = Box::new(stream);
            Some(stream)
        };
        let handshake = Abortable::new(handshake, registration);
        let handshake = async move { handshake.await.ok()? };
        self.handshakes.borrow_mut().push(Box::pin(handshake));
    }

    /// Adds a handshake to those that have begun. If there are too many, ends the oldest.
    fn add_to_begun(&self, alive: Weak<()>, handle: AbortHandle) {
        let mut begun = self.begun.borrow_mut();
        begun.push_back((alive, handle));
        let is_over = |(alive, _): &(Weak<()>, AbortHandle)| alive.strong_count() == 0;
        if begun.len() <= MOST_HANDSHAKES {
            return;
        }
        begun.retain(|handshake| !is_over(handshake));
        if begun.len() > MOST_HANDSHAKES {
            let oldest = begun.pop_front();
            drop(begun);
            if let Some((_, handle)) = oldest {
                handle.abort();
            }
        }
    }

    /// Returns the connection of a handshake that is complete.
    fn poll_handshakes(&self, cx: &mut Context<'_>) -> Option<Box<dyn Connection>> {
        let mut handshakes = self.handshakes.borrow_mut();
        while let Poll::Ready(Some(done)) = handshakes.poll_next_unpin(cx) {
            if done.is_some() {
                return done;
            }
        }
        None
    }
}

impl Listener for TlsListener {
    fn accept(&self, site: Site) -> Accept<'_> {
        Box::pin(async move {
            let mut accepting = self.below.accept(site);
            poll_fn(|cx| {
                loop {
                    if let Some(connection) = self.poll_handshakes(cx) {
                        return Poll::Ready(Ok(connection));
                    }
                    let accepted: io::Result<_> = match accepting.as_mut().poll(cx) {
                        Poll::Ready(accepted) => accepted,
                        Poll::Pending => return Poll::Pending,
                    };
                    accepting = self.below.accept(site);
                    match accepted {
                        Ok(connection) => self.begin(connection),
                        Err(error) => return Poll::Ready(Err(error)),
                    }
                }
            })
            .await
        })
    }

    fn is_resting(&self) -> bool {
        self.below.is_resting()
    }

    fn set_referenced(&self, is_referenced: bool) {
        self.below.set_referenced(is_referenced);
    }

    fn address(&self) -> Option<SocketAddr> {
        self.below.address()
    }
}
