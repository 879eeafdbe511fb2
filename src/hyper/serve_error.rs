//! What goes wrong while a server runs.

use std::error::Error;
use std::fmt;
use std::io;

/// What has gone wrong with one connection of a [`Serve`](super::Serve), or with accepting one. The
/// server goes on.
///
/// # Examples
///
/// After `cargo add hyper`:
///
/// ```no_run
/// use hyper::{Response, service::service_fn};
/// use phaseloop::hyper::{ServeError, serve};
/// use phaseloop::net::TcpListener;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let listener = TcpListener::bind("127.0.0.1:8080").await?;
///     let service = service_fn(|_| async {
///         Ok::<_, hyper::Error>(Response::new(String::new()))
///     });
///     serve(listener, service)
///         .on_error(|error| match error {
///             ServeError::HeaderTimeout => {} // idle clients are no news
///             error => eprintln!("{error}"),
///         })
///         .await
/// }
/// ```
#[non_exhaustive]
pub enum ServeError {
    /// A connection could not be accepted. The listener rests if the error stays.
    Accept(io::Error),
    /// The handshake of [`with_handshake`](super::Listener::with_handshake) failed, or the first
    /// bytes could not be read.
    Handshake(io::Error),
    /// The connection broke, the peer sent what is no HTTP, or the service returned an error.
    Connection(hyper::Error),
    /// The peer did not complete its handshake or the head of its request in time; see
    /// [`header_timeout`](super::Serve::header_timeout).
    HeaderTimeout,
    /// The peer took no byte of an answer for too long; see
    /// [`write_timeout`](super::Serve::write_timeout).
    WriteTimeout,
    /// The connection was not done when the time for the shutdown was over; see
    /// [`shutdown_timeout`](super::Serve::shutdown_timeout).
    ShutdownTimeout,
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accept(_) => "a connection could not be accepted",
            Self::Handshake(_) => "the handshake of a connection failed",
            Self::Connection(_) => "a connection failed",
            Self::HeaderTimeout => "the peer did not complete the head of a request in time",
            Self::WriteTimeout => "the peer did not read its answer in time",
            Self::ShutdownTimeout => "a connection was cut when the time for the shutdown was over",
        })?;
        match self.source() {
            Some(cause) => write!(f, ": {cause}"),
            None => Ok(()),
        }
    }
}

/// Prints the text of [`Display`](fmt::Display); with `{:#?}` the variant and its cause.
impl fmt::Debug for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return fmt::Display::fmt(self, f);
        }
        match self {
            Self::Accept(error) => f.debug_tuple("Accept").field(error).finish(),
            Self::Handshake(error) => f.debug_tuple("Handshake").field(error).finish(),
            Self::Connection(error) => f.debug_tuple("Connection").field(error).finish(),
            Self::HeaderTimeout => f.write_str("HeaderTimeout"),
            Self::WriteTimeout => f.write_str("WriteTimeout"),
            Self::ShutdownTimeout => f.write_str("ShutdownTimeout"),
        }
    }
}

impl Error for ServeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Accept(error) | Self::Handshake(error) => Some(error),
            Self::Connection(error) => Some(error),
            Self::HeaderTimeout | Self::WriteTimeout | Self::ShutdownTimeout => None,
        }
    }
}
