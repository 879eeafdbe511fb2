//! The connection behind a socket: TCP or local.

use std::future::Future;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::site::Site;
use phaseloop::net::{Keepalive, TcpListener, TcpStream};
use phaseloop::{Close, Handle};

/// A connected stream. Its callers hold borrows: no method runs user code, but for `close`.
pub(crate) trait Connection {
    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;
    fn poll_write(&self, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>>;
    fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>>;
    /// Returns whether a read would be attempted now, without waiting for an event.
    fn is_readable(&self) -> bool;
    /// Returns whether the loop knows that the peer has closed both directions.
    fn is_hung_up(&self) -> bool;
    fn shutdown_write(&self) -> io::Result<()>;
    /// Shuts down the writing direction once everything is sent that has to precede its end.
    fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let _ = cx;
        Poll::Ready(self.shutdown_write())
    }
    /// Sets whether the connection keeps the loop alive.
    fn set_referenced(&self, is_referenced: bool);
    /// Sets whether small writes leave at once. A failure is ignored, as in Node.
    fn set_no_delay(&self, no_delay: bool) {
        let _ = no_delay;
    }
    /// Sets whether the system probes an idle connection, and how. A failure is ignored, as in
    /// Node.
    fn set_keep_alive(&self, probes: Option<Keepalive>) {
        let _ = probes;
    }
    /// Makes the close a reset. Returns `false` if the connection is not TCP.
    fn resets_on_close(&self) -> bool {
        false
    }
    fn close(self: Box<Self>) -> Close;
    fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>);
    /// Returns what the handshake has agreed on, if the connection is encrypted.
    #[cfg(feature = "tls")]
    fn session(&self) -> Option<crate::tls::Session> {
        None
    }
}

/// A listening socket.
pub(crate) trait Listener {
    /// Accepts a connection on behalf of the caller at `site`.
    fn accept(&self, site: Site) -> Accept<'_>;
    /// Returns whether the listener rests after a persistent error: one that concerns the listener
    /// and not a single connection.
    fn is_resting(&self) -> bool;
    /// Sets whether the listener keeps the loop alive.
    fn set_referenced(&self, is_referenced: bool);
    fn address(&self) -> Option<SocketAddr>;
}

pub(crate) type Accept<'a> = Pin<Box<dyn Future<Output = io::Result<Box<dyn Connection>>> + 'a>>;

/// Implements `unref` and `ref_` of a type by its `set_referenced`.
macro_rules! impl_ref {
    ($Type:ident, $name:literal) => {
        impl $Type {
            #[doc = concat!("Lets the loop end while the ", $name, " is open.")]
            #[doc = concat!("JavaScript: `", $name, ".unref()`.")]
            pub fn unref(&self) {
                self.set_referenced(false);
            }

            #[doc = concat!("Makes the ", $name, " keep the loop alive, which is the default.")]
            #[doc = concat!("JavaScript: `", $name, ".ref()`.")]
            pub fn ref_(&self) {
                self.set_referenced(true);
            }
        }
    };
}

/// Implements the methods of [`Connection`] that all streams of [`phaseloop::net`] share: all but
/// the addresses.
macro_rules! connection_of_stream {
    () => {
        fn poll_read(
            &self,
            cx: &mut std::task::Context<'_>,
            buffer: &mut [u8],
        ) -> std::task::Poll<std::io::Result<usize>> {
            futures::io::AsyncRead::poll_read(std::pin::Pin::new(&mut &*self), cx, buffer)
        }

        fn poll_write(
            &self,
            cx: &mut std::task::Context<'_>,
            buffer: &[u8],
        ) -> std::task::Poll<std::io::Result<usize>> {
            futures::io::AsyncWrite::poll_write(std::pin::Pin::new(&mut &*self), cx, buffer)
        }

        fn poll_write_vectored(
            &self,
            cx: &mut std::task::Context<'_>,
            buffers: &[std::io::IoSlice<'_>],
        ) -> std::task::Poll<std::io::Result<usize>> {
            let mut stream = &*self;
            let stream = std::pin::Pin::new(&mut stream);
            futures::io::AsyncWrite::poll_write_vectored(stream, cx, buffers)
        }

        fn is_readable(&self) -> bool {
            $crate::callback_futures::is_ready(self.readable())
        }

        fn is_hung_up(&self) -> bool {
            Self::is_hung_up(self)
        }

        fn set_referenced(&self, is_referenced: bool) {
            $crate::net::connection::set_referenced(self, is_referenced);
        }

        fn shutdown_write(&self) -> std::io::Result<()> {
            self.shutdown(std::net::Shutdown::Write)
        }

        fn close(self: Box<Self>) -> phaseloop::Close {
            self.close_now()
        }
    };
}

/// Implements the methods of [`Listener`] that the listeners of [`phaseloop::net`] share: all but
/// the address.
macro_rules! listener_of_sockets {
    () => {
        fn accept(&self, site: $crate::site::Site) -> $crate::net::connection::Accept<'_> {
            Box::pin(async move {
                let (stream, _) = self.accept_at(site).await?;
                let connection: Box<dyn $crate::net::connection::Connection> = Box::new(stream);
                Ok(connection)
            })
        }

        fn is_resting(&self) -> bool {
            Self::is_resting(self)
        }

        fn set_referenced(&self, is_referenced: bool) {
            $crate::net::connection::set_referenced(self, is_referenced);
        }
    };
}

impl Connection for TcpStream {
    connection_of_stream!();

    fn set_no_delay(&self, no_delay: bool) {
        let _ = self.set_nodelay(no_delay);
    }

    fn set_keep_alive(&self, probes: Option<Keepalive>) {
        let _ = self.set_keepalive(probes);
    }

    fn resets_on_close(&self) -> bool {
        // An error says that the connection is reset already.
        let _ = self.set_linger(Some(Duration::ZERO));
        true
    }

    fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        (self.local_addr().ok(), self.peer_addr().ok())
    }
}

impl Listener for TcpListener {
    listener_of_sockets!();

    fn address(&self) -> Option<SocketAddr> {
        self.local_addr().ok()
    }
}

/// The part of one loop. The cluster keeps its loops alive, and the acceptor rests after errors.
#[cfg(feature = "cluster")]
impl Listener for phaseloop::cluster::Listener {
    fn accept(&self, _: Site) -> Accept<'_> {
        Box::pin(async move {
            let (stream, _) = Self::accept(self).await?;
            let connection: Box<dyn Connection> = Box::new(stream);
            Ok(connection)
        })
    }

    fn is_resting(&self) -> bool {
        false
    }

    fn set_referenced(&self, _: bool) {}

    fn address(&self) -> Option<SocketAddr> {
        Some(self.local_addr())
    }
}

pub(super) fn set_referenced(handle: &impl Handle, is_referenced: bool) {
    if is_referenced {
        handle.ref_();
    } else {
        handle.unref();
    }
}
