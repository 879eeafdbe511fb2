//! Encryption over a stream that is no connection of the system.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::io::{AsyncRead as _, AsyncWrite as _};
use rustls::pki_types::ServerName;

use super::stream::TlsStream;
use super::{ClientContext, ServerContext, bad_name};
use crate::net::{Connection, Socket};
use crate::stream::{AsDuplex, Duplex, Reader, Writer};
use phaseloop::time::Timer;
use phaseloop::{Close, LoopHandle};

/// Creates a socket that encrypts over a duplex stream, as the client: the peer's certificate must
/// be for `server_name`. JavaScript: `tls.connect({ socket: duplex, servername })`.
///
/// The stream belongs to the socket from now on: what it brings is decrypted, and the end or the
/// destruction of the socket is that of the stream. A connection that was plain until now goes on
/// encrypted so, as with `STARTTLS`.
///
/// # Errors
///
/// A name that is none, a refused certificate and an error of the stream are
/// [errors](crate::events::ERROR) of the socket.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, stream::duplex_pair, tls};
///
/// fn main() -> Exit<()> {
///     let file = |name| std::fs::read(format!("../../tests/util/certificates/{name}")).unwrap();
///     let (ca, certificate) = (file("ca.pem"), file("server.pem"));
///     let key = file("server.key");
///     run(async move {
///         let (left, right) = duplex_pair::<Vec<u8>>();
///         let identity = tls::ServerContext::new(&certificate, &key).unwrap();
///         tls::accept_over(&right, &identity).end("hello");
///         let trust = tls::ClientContext::with_ca(&ca).unwrap();
///         let client = tls::connect_over(&left, "localhost", &trust);
///         client.on_data(|bytes| assert_eq!(bytes, b"hello"));
///     })
/// }
/// ```
#[track_caller]
pub fn connect_over(
    duplex: &impl AsDuplex<Vec<u8>, Vec<u8>>,
    server_name: &str,
    context: &ClientContext,
) -> Socket {
    let (socket, context) = (Socket::new(), context.clone());
    let below = Over::boxed(duplex.as_duplex());
    let name = server_name.to_owned();
    socket.connect_by(Location::caller(), async move {
        let Ok(server) = ServerName::try_from(name.clone()) else {
            return Err(bad_name(&name));
        };
        let stream = TlsStream::client(below, &context, server)?;
        stream.shake_hands().await?;
        let stream: Box<dyn Connection> = Box::new(stream);
        Ok(stream)
    });
    socket
}

/// Creates a socket that encrypts over a duplex stream, as the server; see [`connect_over`].
/// JavaScript: `new tls.TLSSocket(duplex, { isServer: true, cert, key })`.
///
/// # Errors
///
/// A handshake that fails and an error of the stream are [errors](crate::events::ERROR) of the
/// socket. A peer that never completes the handshake keeps the socket waiting; destroy it after a
/// time.
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn accept_over(duplex: &impl AsDuplex<Vec<u8>, Vec<u8>>, context: &ServerContext) -> Socket {
    let (socket, context) = (Socket::new(), context.clone());
    let below = Over::boxed(duplex.as_duplex());
    socket.connect_by(Location::caller(), async move {
        let stream = TlsStream::accept(below, &context).await?;
        let stream: Box<dyn Connection> = Box::new(stream);
        Ok(stream)
    });
    socket
}

/// A duplex stream as a connection.
struct Over {
    duplex: Duplex<Vec<u8>, Vec<u8>>,
    reader: RefCell<Reader>,
    writer: RefCell<Writer>,
}

impl Over {
    fn boxed(duplex: &Duplex<Vec<u8>, Vec<u8>>) -> Box<dyn Connection> {
        Box::new(Self {
            duplex: duplex.clone(),
            reader: RefCell::new(duplex.readable().clone().into_reader()),
            writer: RefCell::new(duplex.writable().clone().into_writer()),
        })
    }
}

impl Connection for Over {
    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.reader.borrow_mut()).poll_read(cx, buffer)
    }

    fn poll_write(&self, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.writer.borrow_mut()).poll_write(cx, buffer)
    }

    fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let all: Vec<u8> = buffers
            .iter()
            .flat_map(|buffer| buffer.iter().copied())
            .collect();
        self.poll_write(cx, &all)
    }

    fn is_readable(&self) -> bool {
        self.duplex.readable().length() > 0
    }

    fn is_hung_up(&self) -> bool {
        false
    }

    fn shutdown_write(&self) -> io::Result<()> {
        self.duplex.writable().end(());
        Ok(())
    }

    fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.writer.borrow_mut()).poll_close(cx)
    }

    fn set_referenced(&self, _: bool) {}

    fn close(self: Box<Self>) -> Close {
        self.duplex.destroy(None);
        // A handle that does nothing keeps the place of this close among those of other handles.
        Timer::new(&LoopHandle::current()).close()
    }

    fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        (None, None)
    }
}
