//! Encryption over a stream that is no connection of the system.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, IoSlice, Read as _};
use std::net::SocketAddr;
use std::panic::Location;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use rustls::pki_types::ServerName;

use super::accepting::HANDSHAKE_TIMEOUT;
use super::stream::TlsStream;
use super::{ClientContext, ServerContext, bad_name};
use crate::error::Error;
use crate::events::{ERROR, Emitter as _, WeakThis as _};
use crate::net::{Connection, Socket};
use crate::stream::{AsDuplex, CLOSE, DRAIN, Duplex, END};
use crate::timers::set_timeout;
use phaseloop::task::next_tick;
use phaseloop::time::Timer;
use phaseloop::{Close, LoopHandle};

/// How many decrypted bytes may wait before the stream is paused.
const MOST_WAITING: usize = 64 * 1024;

/// Creates a socket that encrypts over a duplex stream, as the client: the peer's certificate must
/// be for `server_name`. JavaScript: `tls.connect({ socket: duplex, servername })`.
///
/// The stream belongs to the socket from now on: what it brings is decrypted, and the end or the
/// destruction of the socket is that of the stream. A connection that was plain until now goes on
/// encrypted so, as with `STARTTLS`. As in Node, bytes reach the stream after the call that has
/// written them: its functions may destroy the socket.
///
/// # Errors
///
/// A name that is none, a refused certificate and an error of the stream are
/// [errors](crate::events::ERROR) of the socket. A stream that is closed without an error closes
/// the socket.
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
    let below = Over::boxed(duplex.as_duplex(), &socket);
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
/// socket. A handshake that takes two minutes is the error `ERR_TLS_HANDSHAKE_TIMEOUT`.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, Exit, events::ERROR, run, stream::duplex_pair, tls};
///
/// fn main() -> Exit<()> {
///     let file = |name| std::fs::read(format!("../../tests/util/certificates/{name}")).unwrap();
///     let (certificate, key) = (file("server.pem"), file("server.key"));
///     run(async move {
///         let (left, right) = duplex_pair::<Vec<u8>>();
///         let identity = tls::ServerContext::new(&certificate, &key).unwrap();
///         let socket = tls::accept_over(&right, &identity);
///         socket.on(ERROR, |error| assert_eq!(error.code(), Some("EPROTO")));
///         left.writable().end("this is no handshake");
///         left.readable().resume();
///     })
/// }
/// ```
#[track_caller]
pub fn accept_over(duplex: &impl AsDuplex<Vec<u8>, Vec<u8>>, context: &ServerContext) -> Socket {
    let (socket, context) = (Socket::new(), context.clone());
    let below = Over::boxed(duplex.as_duplex(), &socket);
    let weak = socket.weak_this();
    let limit = set_timeout(HANDSHAKE_TIMEOUT, move || {
        if let Some(socket) = weak() {
            let text = "TLS handshake timeout";
            let error = Error::with_code("ERR_TLS_HANDSHAKE_TIMEOUT", text);
            socket.destroy(Some(error));
        }
    });
    // As in Node, where it is the idle time of the socket.
    limit.unref();
    socket.connect_by(Location::caller(), async move {
        let accepted = TlsStream::accept(below, &context).await;
        limit.close();
        let stream: Box<dyn Connection> = Box::new(accepted?);
        Ok(stream)
    });
    socket
}

/// A duplex stream as a connection. Callers of a connection hold borrows, so none of its methods
/// runs user code, but for `close`: what is written reaches the stream by a tick, and a listener of
/// the stream keeps what arrives.
struct Over(Rc<State>);

struct State {
    duplex: Duplex<Vec<u8>, Vec<u8>>,
    received: RefCell<VecDeque<u8>>,
    /// Whether the stream was paused, and nothing was asked for since.
    is_paused: Cell<bool>,
    /// Whether nothing arrives any more.
    has_ended: Cell<bool>,
    /// Wakes what waits for bytes.
    reader: Cell<Option<Waker>>,
    /// What the next tick writes.
    unsent: RefCell<Vec<u8>>,
    /// Whether that tick ends the stream, too.
    is_ending: Cell<bool>,
    /// Wakes what waits for room.
    writer: Cell<Option<Waker>>,
    is_closed: Cell<bool>,
}

impl Over {
    fn boxed(duplex: &Duplex<Vec<u8>, Vec<u8>>, socket: &Socket) -> Box<dyn Connection> {
        let state = Rc::new(State {
            duplex: duplex.clone(),
            received: RefCell::default(),
            is_paused: Cell::new(true),
            has_ended: Cell::default(),
            reader: Cell::default(),
            unsent: RefCell::default(),
            is_ending: Cell::default(),
            writer: Cell::default(),
            is_closed: Cell::default(),
        });
        // Weak, so that a stream and a socket that are dropped do not hold each other.
        let known = Rc::downgrade(&state);
        let with = move |act: fn(&State)| {
            let known = known.clone();
            move || {
                if let Some(state) = known.upgrade() {
                    act(&state);
                }
            }
        };
        let (ended, drained) = (with(State::ended), with(State::drained));
        duplex.on(END, move |()| ended());
        duplex.on(DRAIN, move |()| drained());
        let (ended, weak) = (with(State::ended), socket.weak_this());
        duplex.on(CLOSE, move |()| match weak() {
            // The handshake reports a stream that has ended.
            Some(socket) if !socket.connecting() => socket.destroy(None),
            _ => ended(),
        });
        let weak = socket.weak_this();
        duplex.on(ERROR, move |error| {
            if let Some(socket) = weak() {
                socket.destroy(Some(error.clone()));
            }
        });
        let known = Rc::downgrade(&state);
        duplex.readable().on_data(move |bytes| {
            if let Some(state) = known.upgrade() {
                state.receive(bytes);
            }
        });
        duplex.readable().pause();
        Box::new(Self(state))
    }
}

impl State {
    fn receive(&self, bytes: &[u8]) {
        let waiting = {
            let mut received = self.received.borrow_mut();
            received.extend(bytes);
            received.len()
        };
        if waiting >= MOST_WAITING {
            self.is_paused.set(true);
            self.duplex.readable().pause();
        }
        wake(&self.reader);
    }

    fn ended(&self) {
        self.has_ended.set(true);
        wake(&self.reader);
    }

    fn drained(&self) {
        wake(&self.writer);
    }

    /// Writes what waits, and ends the stream if that was asked for.
    fn flush(&self) {
        let unsent = self.unsent.take();
        let writable = self.duplex.writable();
        if !unsent.is_empty() && !writable.destroyed() {
            writable.write(unsent);
        }
        if self.is_ending.take() {
            writable.end(());
        }
        if !writable.need_drain() {
            self.drained();
        }
    }

    fn flush_later(self: &Rc<Self>) {
        let state = self.clone();
        next_tick(move || state.flush());
    }
}

fn wake(waker: &Cell<Option<Waker>>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

impl Connection for Over {
    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let state = &self.0;
        let mut received = state.received.borrow_mut();
        if !received.is_empty() {
            let size = received.read(buffer)?;
            if received.is_empty() {
                // A connection that is idle needs no memory.
                *received = VecDeque::new();
            }
            return Poll::Ready(Ok(size));
        }
        if state.has_ended.get() {
            return Poll::Ready(Ok(0));
        }
        state.reader.set(Some(cx.waker().clone()));
        if state.is_paused.take() {
            // The stream flows from the next tick on.
            state.duplex.readable().resume();
        }
        Poll::Pending
    }

    fn poll_write(&self, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        let state = &self.0;
        let mut unsent = state.unsent.borrow_mut();
        if !unsent.is_empty() || state.duplex.writable().need_drain() {
            state.writer.set(Some(cx.waker().clone()));
            return Poll::Pending;
        }
        unsent.extend_from_slice(buffer);
        state.flush_later();
        Poll::Ready(Ok(buffer.len()))
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
        !self.0.received.borrow().is_empty()
    }

    fn is_hung_up(&self) -> bool {
        false
    }

    fn shutdown_write(&self) -> io::Result<()> {
        self.0.is_ending.set(true);
        self.0.flush_later();
        Ok(())
    }

    fn set_referenced(&self, _: bool) {}

    fn close(self: Box<Self>) -> Close {
        self.0.is_closed.set(true);
        self.0.unsent.take();
        self.0.duplex.destroy(None);
        // A handle that does nothing keeps the place of this close among those of other handles.
        Timer::new(&LoopHandle::current()).close()
    }

    fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        (None, None)
    }
}

impl Drop for Over {
    /// A handshake has failed: its alert leaves before the stream is destroyed.
    fn drop(&mut self) {
        if self.0.is_closed.get() || LoopHandle::try_current().is_none() {
            return;
        }
        let state = self.0.clone();
        next_tick(move || {
            state.flush();
            state.duplex.destroy(None);
        });
    }
}
