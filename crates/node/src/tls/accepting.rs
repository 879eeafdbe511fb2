//! A listener whose connections are encrypted.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::LocalBoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};

use super::ServerContext;
use super::stream::TlsStream;
use crate::net::{Accept, Connection, Listener};
use crate::site::Site;
use phaseloop::time::timeout;

/// How long a handshake may take.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(120);

/// The largest number of handshakes at a time. Further connections wait in the kernel.
const MOST_HANDSHAKES: usize = 1024;

/// A handshake; `None` if it fails or takes too long.
type Handshake = LocalBoxFuture<'static, Option<Box<dyn Connection>>>;

/// Accepts connections and completes their handshakes, any number at a time: a slow peer delays no
/// other.
pub(super) struct TlsListener {
    below: Box<dyn Listener>,
    context: ServerContext,
    handshakes: RefCell<FuturesUnordered<Handshake>>,
}

impl TlsListener {
    pub(super) fn new(below: Box<dyn Listener>, context: ServerContext) -> Self {
        Self {
            below,
            context,
            handshakes: RefCell::default(),
        }
    }

    fn begin(&self, connection: Box<dyn Connection>) {
        let context = self.context.clone();
        let handshake = async move {
            let accepting = TlsStream::accept(connection, &context);
            let stream = timeout(HANDSHAKE_TIMEOUT, accepting).await.ok()?.ok()?;
            let stream: Box<dyn Connection> = Box::new(stream);
            Some(stream)
        };
        self.handshakes.borrow_mut().push(Box::pin(handshake));
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
                    if self.handshakes.borrow().len() >= MOST_HANDSHAKES {
                        return Poll::Pending;
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
