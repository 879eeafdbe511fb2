//! TLS below HTTP, by rustls. Behind the features `hyper` and `tls`.

use std::fmt;
use std::future::Future;
use std::future::poll_fn;
use std::io::{self, ErrorKind, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::io::{AsyncRead, AsyncWrite};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};

/// An encrypted connection of a server or of a client.
///
/// # Cancel safety
///
/// A read or write whose future is dropped before it completes has no effect.
///
/// # Examples
///
/// After `cargo add hyper` and `cargo add rustls --no-default-features --features ring,std,tls12`:
///
/// ```no_run
/// use std::sync::Arc;
/// use phaseloop::{hyper::{Listener, TlsStream, serve}, net::TcpListener};
///
/// fn config() -> rustls::ServerConfig { unimplemented!() }
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     use hyper::{Response, service::service_fn};
///     let answer = async |_| Ok::<_, hyper::Error>(Response::new(String::new()));
///     let service = service_fn(answer);
///     let mut config = config();
///     config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
///     let config = Arc::new(config);
///     let listener = TcpListener::bind("0.0.0.0:443").await?;
///     let accept = move |stream| TlsStream::accept(config.clone(), stream);
///     let listener = listener.with_handshake(accept);
///     serve(listener, service).await
/// }
/// ```
pub struct TlsStream<S> {
    below: S,
    session: Connection,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream<S> {
    /// Completes the handshake of a server.
    ///
    /// # Errors
    ///
    /// [`InvalidData`](ErrorKind::InvalidData) with rustls' error, if the peer is refused;
    /// [`UnexpectedEof`](ErrorKind::UnexpectedEof) if the peer closes the connection; any error of
    /// the stream below.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the stream.
    pub fn accept(
        config: Arc<ServerConfig>,
        below: S,
    ) -> impl Future<Output = io::Result<Self>> + use<S> {
        let session = ServerConnection::new(config);
        async move { Self::shake_hands(below, session.map_err(invalid)?.into()).await }
    }

    /// Completes the handshake of a client with the server of that name.
    ///
    /// # Errors
    ///
    /// Those of [`accept`](Self::accept); [`InvalidData`](ErrorKind::InvalidData) for a
    /// certificate that is not accepted.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the stream.
    pub fn connect(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        below: S,
    ) -> impl Future<Output = io::Result<Self>> + use<S> {
        let session = ClientConnection::new(config, name);
        async move { Self::shake_hands(below, session.map_err(invalid)?.into()).await }
    }

    async fn shake_hands(below: S, session: Connection) -> io::Result<Self> {
        let mut stream = Self { below, session };
        poll_fn(|cx| stream.poll_handshake(cx)).await?;
        Ok(stream)
    }

    fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_send(cx))?;
            if !self.session.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            if ready!(self.poll_receive(cx))? == 0 {
                return Poll::Ready(Err(ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// Writes what the session has encrypted.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.wants_write() {
            let below = &mut Below(&mut self.below, cx);
            if ready!(poll(self.session.write_tls(below)))? == 0 {
                return Poll::Ready(Err(ErrorKind::WriteZero.into()));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads and decrypts some bytes; 0 is the end of the stream below.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let below = &mut Below(&mut self.below, cx);
        let count = ready!(poll(self.session.read_tls(below)))?;
        if let Err(error) = self.session.process_new_packets() {
            // The alert names the reason to the peer. It is lost if the stream below is full.
            let _ = self.poll_send(cx);
            return Poll::Ready(Err(invalid(error)));
        }
        Poll::Ready(Ok(count))
    }
}

impl<S> TlsStream<S> {
    /// Returns the stream below.
    #[must_use]
    pub fn get_ref(&self) -> &S {
        &self.below
    }

    /// Returns the protocol that both ends have agreed on (ALPN), such as `h2`.
    #[must_use]
    pub fn protocol(&self) -> Option<&[u8]> {
        self.session.alpn_protocol()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            match self.session.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read),
            }
            // Answers of the protocol itself, such as those to a change of keys.
            if let Poll::Ready(Err(error)) = self.poll_send(cx) {
                return Poll::Ready(Err(error));
            }
            ready!(self.poll_receive(cx))?;
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            // The session takes a bounded number of bytes that are not sent yet.
            let count = self.session.writer().write(buffer)?;
            let sent = self.poll_send(cx);
            if let Poll::Ready(Err(error)) = sent {
                return Poll::Ready(Err(error));
            }
            if count > 0 || buffer.is_empty() {
                return Poll::Ready(Ok(count));
            }
            ready!(sent)?;
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.below).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A second call has no effect.
        self.session.send_close_notify();
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.below).poll_close(cx)
    }
}

impl<S: fmt::Debug> fmt::Debug for TlsStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsStream")
            .field("below", &self.below)
            .finish_non_exhaustive()
    }
}

/// The stream below, as rustls wants it.
struct Below<'a, 'b, S>(&'a mut S, &'a mut Context<'b>);

impl<S: AsyncRead + Unpin> Read for Below<'_, '_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        would_block(Pin::new(&mut *self.0).poll_read(self.1, buffer))
    }
}

impl<S: AsyncWrite + Unpin> Write for Below<'_, '_, S> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        would_block(Pin::new(&mut *self.0).poll_write(self.1, buffer))
    }

    fn write_vectored(&mut self, buffers: &[io::IoSlice<'_>]) -> io::Result<usize> {
        would_block(Pin::new(&mut *self.0).poll_write_vectored(self.1, buffers))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn would_block(result: Poll<io::Result<usize>>) -> io::Result<usize> {
    match result {
        Poll::Ready(result) => result,
        Poll::Pending => Err(ErrorKind::WouldBlock.into()),
    }
}

fn poll(result: io::Result<usize>) -> Poll<io::Result<usize>> {
    match result {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
        result => Poll::Ready(result),
    }
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}
