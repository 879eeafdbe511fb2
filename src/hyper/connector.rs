//! Connections of hyper-util's client. Behind the feature `hyper-client`.

use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper::body::Body;
use hyper::rt::{self, ReadBufCursor};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{self, Connected};

use super::io::HyperIo;
use super::runtime::{HyperExecutor, HyperTimer};
#[cfg(feature = "tls")]
use super::tls::TlsStream;
use crate::local::Local;
use crate::net::TcpStream;
use crate::site::Site;
use crate::time;

/// Connects hyper-util's client, and clients built on it, such as tonic's `Channel`, to servers.
///
/// Names are resolved on the thread pool, their addresses are tried in order, and `TCP_NODELAY` is
/// set. With the feature `tls`, `https` works: Mozilla's roots are trusted, and HTTP/2 is used if
/// the server offers it.
///
/// A connection is made in the poll phase of the loop that runs where the client is polled.
///
/// # Errors
///
/// Connecting fails with the errors of [`TcpStream::connect`], with
/// [`TimedOut`](io::ErrorKind::TimedOut) after [`connect_timeout`](Self::connect_timeout), and with
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for a URI without a host, or of another scheme
/// than `http` and `https`.
///
/// # Cancel safety
///
/// Dropping the future of a connection closes its socket.
///
/// # Examples
///
/// After `cargo add hyper`:
///
/// ```no_run
/// use std::{future::poll_fn, pin::Pin};
/// use hyper::body::Body;
/// use phaseloop::hyper::Connector;
///
/// #[phaseloop::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let client = Connector::new().client::<String>();
///     let answer = client.get("http://example.com/".parse()?).await?;
///     println!("{}", answer.status());
///     // `BodyExt::collect` of the crate http-body-util reads all of it.
///     let mut body = answer.into_body();
///     while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
///         println!("{} bytes", frame?.into_data().map_or(0, |data| data.len()));
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Connector {
    connect_timeout: Option<Duration>,
    #[cfg(feature = "tls")]
    tls: std::sync::Arc<rustls::ClientConfig>,
    /// The line that created the connector, and so its connections.
    site: Site,
}

impl Connector {
    /// Creates a connector without a time limit.
    #[track_caller]
    #[must_use]
    pub fn new() -> Self {
        Self {
            connect_timeout: None,
            #[cfg(feature = "tls")]
            tls: with_protocols(mozilla()),
            site: Location::caller(),
        }
    }

    /// Sets how long the lookup of the name, the connection and the handshake may take together.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = Some(limit);
        self
    }

    /// Sets what `https` connections trust and offer. If the configuration names no protocols
    /// (ALPN), HTTP/2 and HTTP/1.1 are offered.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls_config(mut self, config: rustls::ClientConfig) -> Self {
        self.tls = with_protocols(config);
        self
    }

    /// Creates a client of hyper-util on the loop: it keeps connections for 90 seconds, and closes
    /// them by a timer of the loop.
    #[must_use]
    pub fn client<B>(self) -> Client<Self, B>
    where
        B: Body + Send,
        B::Data: Send,
    {
        Client::builder(HyperExecutor)
            .timer(HyperTimer)
            .pool_timer(HyperTimer)
            .build(self)
    }

    async fn connect(self, target: Uri) -> io::Result<ClientConnection> {
        let is_tls = match target.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(unusable(&target, "its scheme is neither http nor https")),
        };
        let host = target.host();
        let host = host.ok_or_else(|| unusable(&target, "it has no host"))?;
        // An IPv6 address stands in brackets.
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = target.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let stream = TcpStream::connect_at((host, port), self.site).await?;
        stream.set_nodelay(true)?;
        match is_tls {
            false => Ok(ClientConnection::Plain(HyperIo::new(stream))),
            true => self.secure(host, stream).await,
        }
    }

    #[cfg(feature = "tls")]
    async fn secure(&self, host: &str, stream: TcpStream) -> io::Result<ClientConnection> {
        let name = rustls::pki_types::ServerName::try_from(host.to_owned());
        let name = name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let stream = TlsStream::connect(self.tls.clone(), name, stream).await?;
        Ok(ClientConnection::Tls(HyperIo::new(stream)))
    }

    #[cfg(not(feature = "tls"))]
    #[expect(
        clippy::unused_async,
        reason = "the signature is that of the feature `tls`"
    )]
    async fn secure(&self, host: &str, _: TcpStream) -> io::Result<ClientConnection> {
        let text = format!("https://{host}: the feature `tls` of phaseloop is off");
        Err(io::Error::new(io::ErrorKind::Unsupported, text))
    }
}

impl Default for Connector {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("connect_timeout", &self.connect_timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(feature = "tls")]
fn mozilla() -> rustls::ClientConfig {
    let roots = webpki_roots::TLS_SERVER_ROOTS.iter().cloned();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions")
        .with_root_certificates(rustls::RootCertStore::from_iter(roots))
        .with_no_client_auth()
}

#[cfg(feature = "tls")]
fn with_protocols(mut config: rustls::ClientConfig) -> std::sync::Arc<rustls::ClientConfig> {
    if config.alpn_protocols.is_empty() {
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    }
    config.into()
}

fn unusable(target: &Uri, why: &str) -> io::Error {
    let text = format!("cannot connect to {target}: {why}");
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

type Connecting = Pin<Box<dyn Future<Output = io::Result<ClientConnection>>>>;

impl tower_service::Service<Uri> for Connector {
    type Response = ClientConnection;
    type Error = io::Error;
    type Future = Local<Connecting>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let connector = self.clone();
        Local::new(Box::pin(async move {
            let Some(limit) = connector.connect_timeout else {
                return connector.connect(target).await;
            };
            let late =
                || io::Error::new(io::ErrorKind::TimedOut, format!("connecting to {target}"));
            let connected = time::timeout(limit, connector.connect(target.clone())).await;
            connected.unwrap_or_else(|_| Err(late()))
        }))
    }
}

/// A connection of a [`Connector`].
#[non_exhaustive]
pub enum ClientConnection {
    /// Without TLS.
    Plain(HyperIo<TcpStream>),
    /// With TLS.
    #[cfg(feature = "tls")]
    Tls(HyperIo<TlsStream<TcpStream>>),
}

/// Calls a method of whichever connection it is.
macro_rules! each {
    ($self:ident, $io:ident => $call:expr) => {
        match $self.get_mut() {
            ClientConnection::Plain(io) => {
                let $io = Pin::new(io);
                $call
            }
            #[cfg(feature = "tls")]
            ClientConnection::Tls(io) => {
                let $io = Pin::new(io);
                $call
            }
        }
    };
}

impl rt::Read for ClientConnection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, io => io.poll_read(cx, cursor))
    }
}

impl rt::Write for ClientConnection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(self, io => io.poll_write(cx, buffer))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, io => io.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, io => io.poll_shutdown(cx))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, io => io.poll_write_vectored(cx, buffers))
    }
}

impl connect::Connection for ClientConnection {
    fn connected(&self) -> Connected {
        match self {
            Self::Plain(_) => Connected::new(),
            #[cfg(feature = "tls")]
            Self::Tls(io) if io.get_ref().protocol() == Some(b"h2") => {
                Connected::new().negotiated_h2()
            }
            #[cfg(feature = "tls")]
            Self::Tls(_) => Connected::new(),
        }
    }
}

/// So that a connector of your own can return it.
impl<S> connect::Connection for HyperIo<S> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl fmt::Debug for ClientConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(io) => f.debug_tuple("Plain").field(io).finish(),
            #[cfg(feature = "tls")]
            Self::Tls(io) => f.debug_tuple("Tls").field(io).finish(),
        }
    }
}
