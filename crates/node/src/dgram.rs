//! UDP sockets that emit events: Node's `dgram`, over [`UdpSocket`].
//!
//! ```
//! use phaseloop_node::{Exit, dgram::Socket, run};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         let socket = Socket::new();
//!         socket.on_message_this(|socket, datagram| {
//!             assert_eq!(datagram.bytes, b"ping");
//!             assert_eq!(Some(datagram.from), socket.address());
//!             socket.close();
//!         });
//!         socket.bind_this("127.0.0.1:0".parse().unwrap(), |socket| {
//!             socket.send(b"ping", socket.address().unwrap());
//!         });
//!     })
//! }
//! ```
//!
//! ```text
//!   new ── bind ──> binding ── a tick: 'listening' ──> bound ── close ──> a tick: 'close'
//!    └───── send: binds; datagrams wait for 'listening' ────┘
//! ```

mod connect;
mod sending;
mod settings;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::panic::Location;
use std::rc::Rc;

pub use self::connect::CONNECT;
use self::connect::check_port;
pub use self::settings::{Interface, SocketOptions};
use super::abort::{AbortController, AbortSignal};
use super::callback_futures::{in_callbacks, is_ready, run_as_callback};
use super::context::Node;
use super::error::Error;
use super::events::{ERROR, Emitter, Event, EventEmitter, ListenerId, Listening};
use super::net::LISTENING;
use super::reason::throw;
use super::stream::CLOSE;
use crate::site::Site;
use phaseloop::extension::frame::Frame;
use phaseloop::net::UdpSocket;
use phaseloop::phase;
use phaseloop::task::next_tick;

/// A datagram has arrived. JavaScript: `'message'`.
pub const MESSAGE: Event<Datagram> = Event::new("message");

/// Returns the unspecified address, with port 0, of the address family of `to`.
fn any_address(to: SocketAddr) -> SocketAddr {
    let any: IpAddr = if to.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    (any, 0).into()
}

/// The size of the receive buffer, which any datagram fits.
const LARGEST: usize = 64 * 1024;

/// The maximum number of datagrams that one poll phase delivers, so that one socket does not starve
/// the others.
const DATAGRAMS_PER_PHASE: usize = 32;

/// A received datagram and its sender.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, dgram::Socket, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let socket = Socket::new();
///         socket.on_message_this(|socket, datagram| {
///             assert_eq!(datagram.bytes, b"ping");
///             assert_eq!(Some(datagram.from), socket.address());
///             socket.close();
///         });
///         socket.bind_this("127.0.0.1:0".parse().unwrap(), |socket| {
///             socket.send(b"ping", socket.address().unwrap());
///         });
///     })
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Datagram {
    /// The payload.
    pub bytes: Vec<u8>,
    /// The address of the sender.
    pub from: SocketAddr,
}

/// A UDP socket. A clone is a handle to the same socket. A bound socket is held by its loop and
/// keeps it alive. JavaScript: `dgram.Socket`.
///
/// Each datagram is a callback of the poll phase, with a drain of the lanes after it. A poll phase
/// delivers up to 32 datagrams.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, Exit, dgram::Socket, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let socket = Socket::new();
///         let this = socket.clone();
///         socket.on_message(move |datagram| {
///             assert_eq!(datagram.bytes, b"hello");
///             this.close();
///         });
///         let bound = socket.clone();
///         socket.bind_with("127.0.0.1:0".parse().unwrap(), move || {
///             bound.send(b"hello", bound.address().unwrap());
///         });
///     })
/// }
/// ```
#[derive(Clone)]
pub struct Socket {
    inner: Rc<Inner>,
}

#[derive(Default)]
struct Inner {
    /// What the socket receives in: the frame of its making.
    frame: RefCell<Frame>,
    emitter: EventEmitter,
    state: Cell<State>,
    options: RefCell<SocketOptions>,
    bound: RefCell<Option<Bound>>,
    /// The sends, and perhaps a close, that wait until the socket is bound.
    queue: RefCell<Option<Vec<Queued>>>,
    /// The peer of a connected socket.
    peer: Cell<Option<SocketAddr>>,
    /// Whether the socket is connected or connecting.
    is_connecting: Cell<bool>,
    /// The number of sends that wait for room in the kernel's send buffer.
    waiting: Cell<usize>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Unbound,
    Binding,
    Bound,
    Closed,
}

type Queued = Box<dyn FnOnce()>;

struct Bound {
    socket: Rc<UdpSocket>,
    /// Stops receiving, and the sends that wait.
    controller: AbortController,
}

impl Bound {
    /// Returns the socket, and the signal of its close.
    fn to_send(&self) -> (Rc<UdpSocket>, AbortSignal) {
        (self.socket.clone(), self.controller.signal())
    }
}

impl Socket {
    /// Creates a socket that is not bound. JavaScript: `dgram.createSocket(..)`.
    #[must_use]
    pub fn new() -> Self {
        let inner = Rc::<Inner>::default();
        inner.emitter.set_class("Socket");
        inner.frame.replace(Frame::current());
        Self { inner }
    }

    /// Throws if the socket is closed.
    fn check_open(&self) {
        if self.inner.state.get() == State::Closed {
            throw(Error::with_code(
                "ERR_SOCKET_DGRAM_NOT_RUNNING",
                "Not running",
            ));
        }
    }

    /// Binds the socket on the next tick, and emits [`LISTENING`] or the error there. JavaScript:
    /// `socket.bind(port, address)`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread. [Throws](super::throw) `ERR_SOCKET_DGRAM_NOT_RUNNING`
    /// after [`close`](Self::close), and `ERR_SOCKET_ALREADY_BOUND` if the socket is bound or is
    /// being bound.
    #[track_caller]
    pub fn bind(&self, address: SocketAddr) {
        self.begin_binding();
        self.bind_later(address, Location::caller());
    }

    /// Binds the socket as [`bind`](Self::bind) does, and calls `callback` when it is bound.
    ///
    /// # Panics
    ///
    /// See [`bind`](Self::bind).
    #[track_caller]
    pub fn bind_with(&self, address: SocketAddr, callback: impl FnOnce() + 'static) {
        self.bind_this(address, move |_| callback());
    }

    /// Binds the socket as [`bind_with`](Self::bind_with) does, and calls `callback` with it when
    /// it is bound.
    ///
    /// # Panics
    ///
    /// See [`bind`](Self::bind).
    #[track_caller]
    pub fn bind_this(&self, address: SocketAddr, callback: impl FnOnce(&Self) + 'static) {
        self.begin_binding();
        let listeners: Rc<Cell<Option<[ListenerId; 2]>>> = Rc::default();
        let remove = {
            let (emitter, listeners) = (self.inner.emitter.downgrade(), listeners.clone());
            move || {
                if let (Some(emitter), Some(ids)) = (emitter.upgrade(), listeners.take()) {
                    for id in ids {
                        emitter.off(id);
                    }
                }
            }
        };
        let failed = remove.clone();
        let on_error = self.on(ERROR.monitor(), move |_| failed());
        let on_listening = self.once_this(LISTENING, move |socket, ()| {
            remove();
            callback(socket);
        });
        listeners.set(Some([on_error, on_listening]));
        self.bind_later(address, Location::caller());
    }

    fn begin_binding(&self) {
        self.check_open();
        if self.inner.state.get() != State::Unbound {
            throw(Error::with_code(
                "ERR_SOCKET_ALREADY_BOUND",
                "Socket is already bound",
            ));
        }
        self.inner.state.set(State::Binding);
    }

    #[track_caller]
    fn bind_later(&self, address: SocketAddr, site: Site) {
        let this = self.clone();
        next_tick(move || {
            // A close before this tick cancels the bind.
            if this.inner.state.get() == State::Closed {
                return;
            }
            match this.bind_now(address, site) {
                Ok(()) => {
                    this.inner.state.set(State::Bound);
                    this.inner.emitter.emit(LISTENING, ());
                }
                Err(error) => {
                    this.inner.state.set(State::Unbound);
                    let error = Error::of_address(error, "bind", address);
                    this.inner.emitter.emit(ERROR, &error);
                }
            }
        });
    }

    fn bind_now(&self, address: SocketAddr, site: Site) -> io::Result<()> {
        let options = self.inner.options.borrow().clone();
        let socket = UdpSocket::bind_at(address, options.bind_options(), site)?;
        options.apply(&socket)?;
        let socket = Rc::new(socket);
        let controller = AbortController::new();
        let signal = controller.signal();
        self.inner.bound.replace(Some(Bound {
            socket: socket.clone(),
            controller,
        }));
        Node::current().emitters.insert(&self.inner.emitter);
        let (this, frame) = (self.clone(), self.inner.frame.borrow().clone());
        frame.run(|| {
            in_callbacks(async move {
                // The result is an abort: the socket was closed.
                drop(signal.guard(this.receive(socket)).await);
            });
        });
        Ok(())
    }

    /// Receives datagrams in the poll phase and emits them.
    async fn receive(self, socket: Rc<UdpSocket>) {
        let mut buffer = vec![0; LARGEST];
        loop {
            // A datagram that has already arrived is delivered in the next poll phase.
            if is_ready(socket.readable()) {
                phase::poll().await;
            }
            let ready = socket.readable().await;
            if let Err(error) = ready {
                self.emit_receive_error(error);
            }
            for _ in 0..DATAGRAMS_PER_PHASE {
                match socket.try_recv_from(&mut buffer) {
                    Ok((size, from)) => {
                        let bytes = buffer[..size].to_vec();
                        let message = Datagram { bytes, from };
                        let frame = Frame::current();
                        run_as_callback(|| {
                            frame.call(|| self.inner.emitter.emit(MESSAGE, &message));
                        });
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => {
                        self.emit_receive_error(error);
                        break;
                    }
                }
                // A listener has closed the socket.
                if self.inner.state.get() == State::Closed {
                    return;
                }
            }
        }
    }

    fn emit_receive_error(&self, error: io::Error) {
        let error = Error::of_call(error, "recvmsg");
        run_as_callback(|| {
            self.inner.emitter.emit(ERROR, &error);
        });
    }

    /// Adds a listener for datagrams. JavaScript: `socket.on('message', ..)`.
    pub fn on_message(&self, listener: impl Fn(&Datagram) + 'static) -> ListenerId {
        self.on(MESSAGE, listener)
    }

    /// Adds a listener for datagrams that gets the socket as its first argument; see
    /// [`Emitter::on_this`].
    pub fn on_message_this(
        &self,
        listener: impl Fn(&Listening<Self>, &Datagram) + 'static,
    ) -> ListenerId {
        self.on_this(MESSAGE, listener)
    }

    /// Sends a datagram on the next tick. An unbound socket is bound to any port first. As in Node,
    /// an error of the send is not reported; use [`send_with`](Self::send_with) to get it.
    /// JavaScript: `socket.send(bytes, port, address)`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread. [Throws](super::throw) `ERR_SOCKET_DGRAM_NOT_RUNNING`
    /// after [`close`](Self::close), and `ERR_SOCKET_BAD_PORT` for port 0.
    #[track_caller]
    pub fn send(&self, bytes: &[u8], to: SocketAddr) {
        self.check_unconnected();
        check_port(to);
        self.send_at(bytes.to_vec(), to, None, Location::caller());
    }

    /// Sends a datagram as [`send`](Self::send) does. `callback` is called with the size or the
    /// error, on a tick after the kernel accepted the datagram. A close before the
    /// kernel was asked drops the datagram and the callback; a close while the kernel has no room
    /// is the error `ECANCELED`.
    ///
    /// # Panics
    ///
    /// See [`send`](Self::send).
    #[track_caller]
    pub fn send_with(
        &self,
        bytes: &[u8],
        to: SocketAddr,
        callback: impl FnOnce(Result<usize, Error>) + 'static,
    ) {
        self.check_unconnected();
        check_port(to);
        let callback: Sent = Box::new(callback);
        self.send_at(bytes.to_vec(), to, Some(callback), Location::caller());
    }

    #[track_caller]
    fn send_at(&self, bytes: Vec<u8>, to: SocketAddr, callback: Option<Sent>, site: Site) {
        self.check_open();
        if self.inner.state.get() == State::Unbound {
            self.begin_binding();
            self.bind_later(any_address(to), site);
        }
        let this = self.clone();
        if self.inner.peer.get().is_some() {
            self.send_now(bytes, to, callback);
        } else if self.inner.state.get() == State::Bound {
            // Node looks up the address, which takes a tick even for an IP address.
            next_tick(move || this.send_now(bytes, to, callback));
        } else {
            self.enqueue(move || this.send_at(bytes, to, callback, site));
        }
    }

    /// Queues `f` until the socket is bound. A failed bind drops it.
    fn enqueue(&self, f: impl FnOnce() + 'static) {
        if let Some(queue) = &mut *self.inner.queue.borrow_mut() {
            return queue.push(Box::new(f));
        }
        self.inner.queue.replace(Some(vec![Box::new(f)]));
        let (bound, failed) = (Rc::downgrade(&self.inner), Rc::downgrade(&self.inner));
        let on_failed: Rc<Cell<Option<ListenerId>>> = Rc::default();
        let no_longer = on_failed.clone();
        let on_bound = self.once(LISTENING, move |()| {
            let Some(inner) = bound.upgrade() else { return };
            if let Some(id) = no_longer.take() {
                inner.emitter.off(id);
            }
            let queue = inner.queue.take();
            for queued in queue.into_iter().flatten() {
                queued();
            }
        });
        let id = self.once(ERROR.monitor(), move |_| {
            let Some(inner) = failed.upgrade() else {
                return;
            };
            inner.emitter.off(on_bound);
            let queue = inner.queue.take();
            drop(queue);
        });
        on_failed.set(Some(id));
    }

    /// Sends several buffers as one datagram; see [`send`](Self::send). JavaScript:
    /// `socket.send([one, two], port, address)`.
    ///
    /// # Panics
    ///
    /// See [`send`](Self::send).
    #[track_caller]
    pub fn send_all(&self, buffers: &[&[u8]], to: SocketAddr) {
        self.send(&buffers.concat(), to);
    }

    /// Sends several buffers as one datagram, and calls back; see [`send_with`](Self::send_with).
    /// JavaScript: `socket.send([one, two], port, address, callback)`.
    ///
    /// # Panics
    ///
    /// See [`send`](Self::send).
    #[track_caller]
    pub fn send_all_with(
        &self,
        buffers: &[&[u8]],
        to: SocketAddr,
        callback: impl FnOnce(Result<usize, Error>) + 'static,
    ) {
        self.send_with(&buffers.concat(), to, callback);
    }

    /// Returns the address that the socket is bound to. JavaScript: `socket.address()`.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        let bound = self.inner.bound.borrow();
        bound
            .as_ref()
            .and_then(|bound| bound.socket.local_addr().ok())
    }

    /// Closes the socket; [`CLOSE`] is emitted on the next tick. If sends wait for the bind, the
    /// socket closes after the bind. JavaScript: `socket.close()`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread. [Throws](super::throw) `ERR_SOCKET_DGRAM_NOT_RUNNING` if
    /// the socket is closed.
    pub fn close(&self) {
        let this = self.clone();
        if self.inner.queue.borrow().is_some() {
            return self.enqueue(move || this.close());
        }
        self.check_open();
        self.inner.state.set(State::Closed);
        self.inner.peer.set(None);
        let bound = self.inner.bound.take();
        if let Some(bound) = bound {
            bound.controller.abort();
        }
        next_tick(move || {
            this.inner.emitter.emit_last(CLOSE);
        });
    }

    /// Closes the socket as [`close`](Self::close) does, and calls `callback` when it is closed.
    ///
    /// # Panics
    ///
    /// See [`close`](Self::close).
    pub fn close_with(&self, callback: impl Fn() + 'static) {
        self.on(CLOSE, move |()| callback());
        self.close();
    }
}

/// The callback of a send.
type Sent = Box<dyn FnOnce(Result<usize, Error>)>;

impl Default for Socket {
    fn default() -> Self {
        Self::new()
    }
}

impl Emitter for Socket {
    fn emitter(&self) -> &EventEmitter {
        &self.inner.emitter
    }
}

// Weak: the loop holds the socket while it can emit.
crate::weak_this!(Socket { inner });

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket")
            .field("address", &self.address())
            .finish_non_exhaustive()
    }
}
