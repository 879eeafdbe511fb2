//! A connection that encrypts. One session of rustls stands between the socket and the connection
//! below; it holds one record of each direction, so that memory is bounded.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::task::{Context, Poll, Waker};

use rustls::pki_types::ServerName;
use rustls::server::{Accepted, Acceptor};
use rustls::{CertificateError, ClientConnection, Connection as Session, OtherError};

use super::choice::Hello;
use super::verify::Untrusted;
use super::{ClientContext, ServerContext};
use crate::error::Error;
use crate::net::Connection;
use phaseloop::Close;
use phaseloop::net::Keepalive;

/// How many bytes are encrypted at a time: one record.
const RECORD: usize = 16 * 1024;

/// An encrypted connection.
pub(super) struct TlsStream {
    below: Box<dyn Connection>,
    session: RefCell<Session>,
    /// The number of bytes that are encrypted and not yet written to the connection below. The
    /// write that brought them is not reported before.
    unsent: Cell<usize>,
    /// Whether the session has decrypted bytes that were not read.
    has_plaintext: Cell<bool>,
    /// Whether the session has said that nothing follows.
    is_ending: Cell<bool>,
}

impl TlsStream {
    pub(super) fn client(
        below: Box<dyn Connection>,
        context: &ClientContext,
        name: ServerName<'static>,
    ) -> Result<Self, Error> {
        let session = ClientConnection::new(context.config.clone(), name).map_err(refused)?;
        Ok(Self::new(below, session.into()))
    }

    /// Completes the handshake of a client, whose first message chooses the context.
    pub(super) async fn accept(
        below: Box<dyn Connection>,
        context: &ServerContext,
    ) -> Result<Self, Error> {
        let mut acceptor = Acceptor::default();
        let accepted = poll_fn(|cx| poll_hello(&mut acceptor, &*below, cx)).await?;
        let hello = Hello::of(&accepted.client_hello());
        let config = context.chosen(&hello).await?;
        let session = match accepted.into_connection(config) {
            Ok(session) => session,
            Err((error, mut alert)) => {
                poll_fn(|cx| {
                    // The alert is lost if what is below is full.
                    let written = alert.write(&mut Below(&*below, cx));
                    drop(written);
                    Poll::Ready(())
                })
                .await;
                return Err(refused(error));
            }
        };
        let stream = Self::new(below, session.into());
        stream.shake_hands().await?;
        Ok(stream)
    }

    fn new(below: Box<dyn Connection>, session: Session) -> Self {
        Self {
            below,
            session: RefCell::new(session),
            unsent: Cell::new(0),
            has_plaintext: Cell::new(false),
            is_ending: Cell::new(false),
        }
    }

    /// Completes the handshake: the peer is verified then.
    pub(super) async fn shake_hands(&self) -> Result<(), Error> {
        poll_fn(|cx| self.poll_handshake(cx)).await
    }

    fn poll_handshake(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            match self.poll_send(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(Error::of_call(error, "write"))),
                Poll::Pending => return Poll::Pending,
            }
            if !self.session.borrow().is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            let received = match self.poll_receive(cx) {
                Poll::Ready(received) => received,
                Poll::Pending => return Poll::Pending,
            };
            match received {
                Ok(0) => return Poll::Ready(Err(disconnected())),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(handshake_error(error))),
            }
        }
    }

    /// Writes what the session has encrypted.
    fn poll_send(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut session = self.session.borrow_mut();
        while session.wants_write() {
            match session.write_tls(&mut Below(&*self.below, cx)) {
                Ok(0) => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads and decrypts some bytes. Returns zero at the end of the connection below.
    fn poll_receive(&self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut session = self.session.borrow_mut();
        let size = match session.read_tls(&mut Below(&*self.below, cx)) {
            Ok(size) => size,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Poll::Pending,
            Err(error) => return Poll::Ready(Err(error)),
        };
        match session.process_new_packets() {
            // Bytes may arrive together with the end of the handshake.
            Ok(state) => self.has_plaintext.set(state.plaintext_bytes_to_read() > 0),
            Err(error) => {
                // The alert names the reason to the peer. It is lost if what is below is full.
                let written = session.write_tls(&mut Below(&*self.below, cx));
                drop(written);
                return Poll::Ready(Err(io::Error::new(ErrorKind::InvalidData, error)));
            }
        }
        Poll::Ready(Ok(size))
    }

    /// Reads decrypted bytes. `None`: there are none.
    fn read_plaintext(&self, buffer: &mut [u8]) -> Option<io::Result<usize>> {
        let mut session = self.session.borrow_mut();
        let read = match session.reader().read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            // The peer has closed the connection below without a word, as many do.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Some(Ok(0)),
            other => Some(other),
        };
        let state = session.process_new_packets();
        let left = state.map_or(0, |state| state.plaintext_bytes_to_read());
        self.has_plaintext.set(left > 0);
        read
    }

    /// Sends `close_notify`. Does nothing if the peer has disconnected.
    fn poll_goodbye(&self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_ending.replace(true) {
            self.session.borrow_mut().send_close_notify();
        }
        self.poll_send(cx).map(drop)
    }
}

impl Connection for TlsStream {
    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            if let Some(read) = self.read_plaintext(buffer) {
                return Poll::Ready(read);
            }
            // Answers of the protocol itself, such as those to a change of keys. A write that waits
            // sends them too, and so does the end; it must stay the one that is woken.
            if self.unsent.get() == 0 && !self.is_ending.get() {
                if let Poll::Ready(Err(error)) = self.poll_send(cx) {
                    return Poll::Ready(Err(error));
                }
            }
            match self.poll_receive(cx) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(0)),
                Poll::Ready(Ok(_)) => {}
                other => return other,
            }
        }
    }

    fn poll_write(&self, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        if self.unsent.get() == 0 {
            let piece = &buffer[..buffer.len().min(RECORD)];
            let written = self.session.borrow_mut().writer().write(piece);
            match written {
                Ok(size) => self.unsent.set(size),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        self.poll_send(cx).map_ok(|()| self.unsent.take())
    }

    fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = buffers.iter().find(|buffer| !buffer.is_empty());
        self.poll_write(cx, first.map_or(&[], |buffer| buffer))
    }

    fn is_readable(&self) -> bool {
        self.has_plaintext.get() || self.below.is_readable()
    }

    fn is_hung_up(&self) -> bool {
        self.has_plaintext.get() || self.below.is_hung_up()
    }

    fn shutdown_write(&self) -> io::Result<()> {
        self.below.shutdown_write()
    }

    fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_goodbye(cx).map(|()| self.shutdown_write())
    }

    fn set_referenced(&self, is_referenced: bool) {
        self.below.set_referenced(is_referenced);
    }

    fn set_no_delay(&self, no_delay: bool) {
        self.below.set_no_delay(no_delay);
    }

    fn set_keep_alive(&self, probes: Option<Keepalive>) {
        self.below.set_keep_alive(probes);
    }

    fn close(self: Box<Self>) -> Close {
        // What the connection below does not take at once is lost.
        let _ = self.poll_goodbye(&mut Context::from_waker(Waker::noop()));
        self.below.close()
    }

    fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        self.below.addresses()
    }

    fn session(&self) -> Option<super::Session> {
        Some(super::Session::of(&self.session.borrow()))
    }
}

/// Reads the first message of a client. Its size is limited by rustls.
fn poll_hello(
    acceptor: &mut Acceptor,
    below: &dyn Connection,
    cx: &mut Context<'_>,
) -> Poll<Result<Accepted, Error>> {
    loop {
        match acceptor.read_tls(&mut Below(below, cx)) {
            Ok(0) => return Poll::Ready(Err(disconnected())),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Poll::Pending,
            Err(error) => return Poll::Ready(Err(Error::of_call(error, "read"))),
        }
        match acceptor.accept() {
            Ok(Some(accepted)) => return Poll::Ready(Ok(accepted)),
            Ok(None) => {}
            Err((error, mut alert)) => {
                // The alert names the reason to the peer. It is lost if what is below is full.
                let written = alert.write(&mut Below(below, cx));
                drop(written);
                return Poll::Ready(Err(refused(error)));
            }
        }
    }
}

/// The connection below, as rustls wants it.
struct Below<'a, 'b>(&'a dyn Connection, &'a mut Context<'b>);

impl Read for Below<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        ready(self.0.poll_read(self.1, buffer))
    }
}

impl Write for Below<'_, '_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        ready(self.0.poll_write(self.1, buffer))
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        ready(self.0.poll_write_vectored(self.1, buffers))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn ready(result: Poll<io::Result<usize>>) -> io::Result<usize> {
    match result {
        Poll::Ready(result) => result,
        Poll::Pending => Err(ErrorKind::WouldBlock.into()),
    }
}

fn disconnected() -> Error {
    let message = "Client network socket disconnected before secure TLS connection was established";
    Error::with_code("ECONNRESET", message)
}

fn handshake_error(error: io::Error) -> Error {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    match cause {
        Some(cause) => refused(rustls::Error::clone(cause)),
        None => Error::of_call(error, "read"),
    }
}

/// The error of a session, with Node's code for a certificate that is not accepted.
fn refused(error: rustls::Error) -> Error {
    let code = match &error {
        rustls::Error::InvalidCertificate(fault) => match fault {
            CertificateError::UnknownIssuer => "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "CERT_HAS_EXPIRED"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "CERT_NOT_YET_VALID"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "ERR_TLS_CERT_ALTNAME_INVALID"
            }
            CertificateError::Revoked => "CERT_REVOKED",
            CertificateError::Other(OtherError(cause)) => match cause.downcast_ref::<Untrusted>() {
                Some(untrusted) => {
                    return Error::with_code(untrusted.code(), untrusted.to_string());
                }
                None => "CERT_REJECTED",
            },
            _ => "CERT_REJECTED",
        },
        _ => "EPROTO",
    };
    Error::with_code(code, error.to_string())
}
