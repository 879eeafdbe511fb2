//! What a server accepts connections from.

use std::fmt;
use std::future::{Future, Ready, ready};
use std::io;
use std::net::SocketAddr;
use std::panic::Location;
use std::pin::Pin;

use futures::io::{AsyncRead, AsyncWrite};

use crate::net::{TcpListener, TcpStream};

/// A listener that [`serve`](super::serve) accepts connections from: a [`TcpListener`], a
/// `UnixListener`, or one of these with a handshake.
///
/// # Examples
///
/// TLS by the crate `futures-rustls`:
///
/// ```ignore
/// use phaseloop::hyper::{Listener, serve};
///
/// let acceptor = futures_rustls::TlsAcceptor::from(config);
/// let listener = TcpListener::bind("0.0.0.0:443").await?;
/// serve(listener.with_handshake(move |stream| acceptor.accept(stream)), router).await
/// ```
pub trait Listener: 'static {
    /// What [`accept`](Self::accept) returns.
    type Accepted: 'static;
    /// A connection that is ready for HTTP.
    type Stream: AsyncRead + AsyncWrite + Unpin + 'static;
    /// The future of [`open`](Self::open).
    type Opening: Future<Output = io::Result<Self::Stream>> + 'static;

    /// Accepts a connection. `site` is the line that called [`serve`](super::serve), for reports.
    ///
    /// # Errors
    ///
    /// Any error; the server reports it and accepts the next connection. A listener should rest
    /// before it returns an error again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future must lose no connection.
    fn accept(
        &self,
        site: &'static Location<'static>,
    ) -> impl Future<Output = io::Result<Self::Accepted>>;

    /// Makes a connection ready for HTTP. The task of the connection awaits it, so that a slow peer
    /// does not delay the others, within the limit of
    /// [`header_timeout`](super::Serve::header_timeout).
    fn open(&self, accepted: Self::Accepted) -> Self::Opening;

    /// Adds a handshake to each connection, such as that of TLS.
    #[must_use]
    fn with_handshake<F, H, S>(self, handshake: F) -> WithHandshake<Self, F>
    where
        Self: Sized,
        F: Fn(Self::Stream) -> H + Clone + 'static,
        H: Future<Output = io::Result<S>> + 'static,
        S: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        WithHandshake {
            listener: self,
            handshake,
        }
    }
}

/// A [`Listener`] that knows who has connected, for services that are made for each connection,
/// such as axum's `into_make_service_with_connect_info`; see [`MakeService`](super::MakeService).
pub trait Addressed: Listener {
    /// What is known of the peer: its [`SocketAddr`] for a [`TcpListener`].
    type Address: 'static;

    /// Returns what is known of the peer of a connection that was accepted.
    fn address(&self, accepted: &Self::Accepted) -> Self::Address;
}

/// Small writes are sent at once (`TCP_NODELAY`).
impl Listener for TcpListener {
    type Accepted = (TcpStream, SocketAddr);
    type Stream = TcpStream;
    type Opening = Ready<io::Result<TcpStream>>;

    async fn accept(&self, site: &'static Location<'static>) -> io::Result<Self::Accepted> {
        let (stream, address) = self.accept_at(site).await?;
        // It fails for a connection that is gone, which the first read reports.
        let _ = stream.set_nodelay(true);
        Ok((stream, address))
    }

    fn open(&self, (stream, _): Self::Accepted) -> Self::Opening {
        ready(Ok(stream))
    }
}

impl Addressed for TcpListener {
    type Address = SocketAddr;

    fn address(&self, (_, address): &Self::Accepted) -> SocketAddr {
        *address
    }
}

/// The part of a loop of a listener that all loops of a cluster serve. `TCP_NODELAY` is set.
#[cfg(feature = "cluster")]
impl Listener for crate::cluster::Listener {
    type Accepted = (TcpStream, SocketAddr);
    type Stream = TcpStream;
    type Opening = Ready<io::Result<TcpStream>>;

    async fn accept(&self, _site: &'static Location<'static>) -> io::Result<Self::Accepted> {
        let (stream, address) = Self::accept(self).await?;
        // It fails for a connection that is gone, which the first read reports.
        let _ = stream.set_nodelay(true);
        Ok((stream, address))
    }

    fn open(&self, (stream, _): Self::Accepted) -> Self::Opening {
        ready(Ok(stream))
    }
}

#[cfg(feature = "cluster")]
impl Addressed for crate::cluster::Listener {
    type Address = SocketAddr;

    fn address(&self, (_, address): &Self::Accepted) -> SocketAddr {
        *address
    }
}

/// A listener whose connections begin with a handshake; see
/// [`with_handshake`](Listener::with_handshake).
#[derive(Clone)]
pub struct WithHandshake<L, F> {
    listener: L,
    handshake: F,
}

impl<L, F, H, S> Listener for WithHandshake<L, F>
where
    L: Listener,
    F: Fn(L::Stream) -> H + Clone + 'static,
    H: Future<Output = io::Result<S>> + 'static,
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    type Accepted = L::Accepted;
    type Stream = S;
    type Opening = Pin<Box<dyn Future<Output = io::Result<S>>>>;

    fn accept(
        &self,
        site: &'static Location<'static>,
    ) -> impl Future<Output = io::Result<L::Accepted>> {
        self.listener.accept(site)
    }

    fn open(&self, accepted: L::Accepted) -> Self::Opening {
        let (opening, handshake) = (self.listener.open(accepted), self.handshake.clone());
        Box::pin(async move { handshake(opening.await?).await })
    }
}

/// The address is that of the connection below.
impl<L, F, H, S> Addressed for WithHandshake<L, F>
where
    L: Addressed,
    F: Fn(L::Stream) -> H + Clone + 'static,
    H: Future<Output = io::Result<S>> + 'static,
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    type Address = L::Address;

    fn address(&self, accepted: &Self::Accepted) -> L::Address {
        self.listener.address(accepted)
    }
}

impl<L: fmt::Debug, F> fmt::Debug for WithHandshake<L, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithHandshake")
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}
