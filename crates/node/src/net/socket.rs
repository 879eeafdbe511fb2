//! Sockets.
//!
//! ```text
//!   new ── connect ──> connecting ── poll phase: 'connect', 'ready' ──> open
//!    │        ^            └──────────────── destroy ────────────────┴──> closing phase: 'close'
//!    │        └── a destroyed socket may connect again ────────────────────┘
//!    └── destroy ──> a tick: 'close'
//! ```

mod connecting;
mod hold;
mod idle;
mod opening;
mod options;
mod reading;
mod writing;

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};

use self::hold::Hold;
pub(crate) use self::idle::idle_time;
#[cfg(feature = "tls")]
pub(crate) use self::opening::open as open_connection;
use self::options::KeepAlive;
pub use self::options::{KeepAliveOptions, SocketOptions};
use self::reading::Reading;
pub(crate) use self::reading::{Consumer, ReadBuffer};
use super::address::Address;
use super::connection::Connection;
use super::slot::Slot;
use crate::abort::AbortController;
use crate::callback_futures::run_as_callback;
use crate::context::Node;
use crate::error::Error;
use crate::events::{Emitter, Event, EventEmitter, ListenerId, Listening};
use crate::site::Site;
use crate::stream::{
    AsDuplex, Done, Duplex, IntoChunk, IntoLast, Readable, Source, WeakDuplex, Writable,
    close_of_nothing,
};
use crate::timers::Timeout;
use phaseloop::extension::frame::Frame;

/// The socket is connected. JavaScript: `'connect'`.
pub const CONNECT: Event<()> = Event::new("connect");

/// The socket is ready for use; emitted right after [`CONNECT`]. JavaScript: `'ready'`.
pub const READY: Event<()> = Event::new("ready");

/// The socket was idle for the time set by [`Socket::set_timeout`]. JavaScript: `'timeout'`.
pub const TIMEOUT: Event<()> = Event::new("timeout");

/// Creates a socket and connects it. JavaScript: `net.connect(port, host)`.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, Exit, net, run, stream::CLOSE};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = net::create_server(|socket| {
///             socket.on_data_this(|socket, bytes| socket.end(bytes));
///         });
///         server.listen_this(("127.0.0.1", 0), |server| {
///             let client = net::connect(server.address().unwrap());
///             client.write("hello");
///             client.on_data(|bytes| assert_eq!(bytes, b"hello"));
///             let server = server.clone();
///             client.on(CLOSE, move |()| server.close());
///         });
///     })
/// }
/// ```
#[track_caller]
pub fn connect(address: impl Into<Address>) -> Socket {
    let socket = Socket::new();
    socket.connect(address);
    socket
}

/// Creates a socket, connects it, and calls `callback` with it when it is connected. JavaScript:
/// `net.connect(port, host, callback)`.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, Exit, net, run, stream::CLOSE};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = net::create_server(|socket| socket.end("hello"));
///         server.listen_this(("127.0.0.1", 0), |server| {
///             let client = net::connect_with(server.address().unwrap(), |client| client.end(()));
///             client.on_data(|bytes| assert_eq!(bytes, b"hello"));
///             let server = server.clone();
///             client.on(CLOSE, move |()| server.close());
///         });
///     })
/// }
/// ```
#[track_caller]
pub fn connect_with(
    address: impl Into<Address>,
    callback: impl FnOnce(&Socket) + 'static,
) -> Socket {
    let socket = Socket::new();
    socket.once_this(CONNECT, move |socket, ()| callback(socket));
    socket.connect(address);
    socket
}

/// A connection as a [duplex stream](Duplex). A clone is a handle to the same socket. JavaScript:
/// `net.Socket`.
///
/// The socket ends its writing direction when the peer ends, unless
/// [`allow_half_open`](Self::allow_half_open) is set. [`CLOSE`](crate::stream::CLOSE) is
/// emitted when the connection is closed.
///
/// A closed socket may [`connect`](Self::connect) again. It keeps its listeners while the program
/// holds the value that [`new`](Self::new) or [`connect`](fn@connect) returned, or a clone that was
/// made after the socket was destroyed, such as in a listener of `close`. Otherwise its listeners
/// are dropped when it is closed, so that a listener may hold a clone of its own socket.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, Exit, net, run, stream::CLOSE};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = net::create_server(|socket| {
///             socket.on_data(|bytes| assert_eq!(bytes, b"hello"));
///         });
///         server.listen_this(("127.0.0.1", 0), |server| {
///             let socket = net::Socket::new();
///             socket.connect(server.address().unwrap());
///             socket.end("hello");
///             socket.resume();
///             let server = server.clone();
///             socket.on(CLOSE, move |()| server.close());
///         });
///     })
/// }
/// ```
pub struct Socket {
    duplex: Duplex<Vec<u8>, Vec<u8>>,
    inner: Rc<Inner>,
    /// Keeps the listeners of a closed socket, which may connect again.
    hold: Option<Rc<Hold>>,
}

#[derive(Default)]
struct Inner {
    slot: Slot,
    /// Stops the connecting. `None` if the socket does not connect.
    opening: RefCell<Option<AbortController>>,
    /// The value that keeps the listeners, if this socket may have one.
    hold: RefCell<Option<Weak<Hold>>>,
    reading: Reading,
    /// Whether the socket does not keep the loop alive.
    is_unreferenced: Cell<bool>,
    /// Whether the close that was emitted last, or the next one, is due to an error.
    had_error: Cell<bool>,
    /// Whether a connect of the connected socket would succeed.
    connects_twice: Cell<bool>,
    /// The number of lookups of addresses that wait for their tick, also for a connect that was
    /// stopped since then.
    lookups: Rc<Cell<u32>>,
    /// Whether small writes leave at once.
    no_delay: Cell<bool>,
    /// How the system probes the connection.
    keep_alive: Cell<KeepAlive>,
    addresses: Cell<(Option<SocketAddr>, Option<SocketAddr>)>,
    /// The timer of `set_timeout`, and its delay.
    idle: RefCell<Option<Timeout>>,
    idle_delay: Cell<u32>,
    /// Whether the timer runs without an effect.
    is_idle_muted: Cell<bool>,
    owner: Cell<Option<Rc<dyn Owner>>>,
    /// What the events of the connection run in: the frame of `connect`, and none for an accepted
    /// connection.
    frame: RefCell<Frame>,
    /// The line of the program that has made the connection: that of `connect` or `listen`.
    site: Cell<Option<Site>>,
    /// The streams of this socket. Weak, because the streams hold this value.
    duplex: OnceCell<WeakDuplex<Vec<u8>, Vec<u8>>>,
}

/// What is notified when a socket is destroyed: a server counts its connections.
pub(super) trait Owner {
    fn socket_gone(self: Rc<Self>);
}

impl Socket {
    /// Creates a socket that is not connected. JavaScript: `new net.Socket()`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread and the socket is used.
    #[must_use]
    pub fn new() -> Self {
        Self::with_options(SocketOptions::default())
    }

    /// Creates a socket with options that is not connected. JavaScript: `new net.Socket({
    /// allowHalfOpen, highWaterMark })`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread and the socket is used.
    #[must_use]
    pub fn with_options(options: SocketOptions) -> Self {
        let mut socket = Self::unheld(options);
        socket.hold = Some(Hold::of(&socket.inner));
        socket
    }

    /// Creates a socket that drops its listeners when it is closed.
    pub(crate) fn unheld(options: SocketOptions) -> Self {
        let inner = Rc::new(Inner::default());
        let readable = Readable::bytes().source(inner.clone());
        let writable = Writable::to_device(inner.clone());
        let duplex = options.duplex(readable, writable);
        duplex.emitter().set_class("Socket");
        let known = inner.duplex.set(duplex.downgrade());
        debug_assert!(known.is_ok(), "a socket has one stream");
        Self {
            duplex,
            inner,
            hold: None,
        }
    }

    /// Sets what the events of the connection run in from now on.
    pub(crate) fn set_frame(&self, frame: Frame) {
        drop(self.inner.frame.replace(frame));
    }

    fn open(&self, connection: Box<dyn Connection>) {
        Node::current().emitters.insert(self.emitter());
        self.inner.open(connection);
    }

    /// Creates the socket of an accepted connection.
    #[allow(dead_code, reason = "only processes of Unix pass sockets")]
    pub(super) fn of(
        connection: Box<dyn Connection>,
        options: SocketOptions,
        owner: Option<Rc<dyn Owner>>,
        site: Site,
    ) -> Self {
        let socket = Self::accepted(connection, options, owner, site);
        socket.readable().read_size(0);
        socket
    }

    /// Creates the socket of an accepted connection, which does not read yet.
    pub(super) fn accepted(
        connection: Box<dyn Connection>,
        options: SocketOptions,
        owner: Option<Rc<dyn Owner>>,
        site: Site,
    ) -> Self {
        let socket = Self::unheld(options);
        socket.duplex.closes_by_hand();
        socket.inner.site.set(Some(site));
        socket.inner.owner.set(owner);
        socket.open(connection);
        socket
    }

    /// Returns the readable side.
    #[must_use]
    pub fn readable(&self) -> &Readable<Vec<u8>> {
        self.duplex.readable()
    }

    /// Returns the writable side.
    #[must_use]
    pub fn writable(&self) -> &Writable<Vec<u8>> {
        self.duplex.writable()
    }

    /// Returns the duplex stream, for a [`pipeline`](crate::stream::pipeline()).
    #[must_use]
    pub fn duplex(&self) -> &Duplex<Vec<u8>, Vec<u8>> {
        &self.duplex
    }

    /// Adds a listener for received bytes; see [`Readable::on_data`].
    pub fn on_data(&self, listener: impl Fn(&Vec<u8>) + 'static) -> ListenerId {
        self.readable().on_data(listener)
    }

    /// Adds a listener for received bytes that gets the socket as its first argument; see
    /// [`Emitter::on_this`].
    pub fn on_data_this(
        &self,
        listener: impl Fn(&Listening<Self>, &Vec<u8>) + 'static,
    ) -> ListenerId {
        self.on_this(Readable::<Vec<u8>>::DATA, listener)
    }

    /// Writes bytes; see [`Writable::write`]. Writes before [`CONNECT`] wait for the connection.
    pub fn write(&self, bytes: impl IntoChunk<Vec<u8>>) -> bool {
        self.writable().write(bytes.into_chunk())
    }

    /// Writes bytes and calls `callback` when they are written; see [`Writable::write_with`].
    pub fn write_with(
        &self,
        bytes: impl IntoChunk<Vec<u8>>,
        callback: impl FnOnce(Result<(), Error>) + 'static,
    ) -> bool {
        self.writable().write_with(bytes.into_chunk(), callback)
    }

    /// Ends the writing direction after all writes; see [`Writable::end`]. JavaScript:
    /// `socket.end(data)`.
    pub fn end<K>(&self, last: impl IntoLast<Vec<u8>, K>) {
        self.writable().end(last);
    }

    /// Ends the writing direction and calls `callback`; see [`Writable::end_with`].
    pub fn end_with<K>(
        &self,
        last: impl IntoLast<Vec<u8>, K>,
        callback: impl FnOnce(Result<(), Error>) + 'static,
    ) {
        self.writable().end_with(last, callback);
    }

    /// Resumes the flow. Received bytes are discarded if no listener for `data` exists.
    pub fn resume(&self) {
        self.readable().resume();
    }

    /// Stops the flow at once. JavaScript: `socket.pause()`.
    pub fn pause(&self) {
        self.readable().pause();
    }

    /// Closes both directions at once; see [`Readable::destroy`].
    pub fn destroy(&self, error: Option<Error>) {
        self.duplex.destroy(error);
    }
}

impl Inner {
    fn open(&self, connection: Box<dyn Connection>) {
        connection.set_referenced(!self.is_unreferenced.get());
        if self.no_delay.get() {
            connection.set_no_delay(true);
        }
        let probes = self.keep_alive.get().probes();
        if probes.is_some() {
            connection.set_keep_alive(probes);
        }
        self.addresses.set(connection.addresses());
        self.slot.put(connection);
    }

    /// Restarts the idle timer after a read or write.
    fn is_active(&self) {
        if self.is_idle_muted.get() {
            return;
        }
        if let Some(idle) = &*self.idle.borrow() {
            idle.refresh();
        }
    }

    /// Calls `f` in the connection's frame.
    // Rule O9.
    fn in_frame<R>(&self, f: impl FnOnce() -> R) -> R {
        let frame = self.frame.borrow().clone();
        frame.call(f)
    }

    fn is_open(&self) -> bool {
        self.slot.borrow().is_some()
    }

    fn is_connecting(&self) -> bool {
        self.opening.borrow().is_some()
    }

    /// Calls `f` now, or from a listener of 'connect'.
    fn when_connected(&self, emitter: &EventEmitter, f: impl FnOnce() + 'static) {
        if self.is_open() {
            return f();
        }
        emitter.once(CONNECT, move |()| f());
    }

    fn duplex(&self) -> Option<Duplex<Vec<u8>, Vec<u8>>> {
        self.duplex.get().and_then(WeakDuplex::upgrade)
    }
}

impl Source<Vec<u8>> for Inner {
    fn read(self: Rc<Self>, readable: &Readable<Vec<u8>>) {
        // Weak: a socket that never connects would hold itself by its listener.
        let inner = Rc::downgrade(&self);
        let start = move || {
            let inner = inner.upgrade();
            if let Some((duplex, inner)) = inner.and_then(|inner| Some((inner.duplex()?, inner))) {
                inner.start_reading(duplex.readable());
            }
        };
        self.when_connected(readable.emitter(), start);
    }

    fn leave(&self) -> bool {
        true
    }

    fn stays(&self) -> bool {
        true
    }

    fn destroy(self: Rc<Self>, _: &Readable<Vec<u8>>, error: Option<Error>, done: Done) {
        let (duplex, connection) = (self.duplex(), self.slot.take());
        self.reading.end();
        let opening = self.opening.take();
        let was_connecting = opening.is_some();
        if let Some(opening) = opening {
            opening.abort();
        }
        let had_handle = connection.is_some() || was_connecting;
        let had_error = error.is_some() && had_handle;
        self.had_error.set(had_error);
        let idle = self.idle.take();
        if let Some(idle) = idle {
            idle.close();
        }
        let close = match connection {
            Some((connection, number)) => Some((connection.close(), number)),
            None if was_connecting => close_of_nothing().map(|close| (close, 0)),
            None => None,
        };
        if let Some((duplex, (close, number))) = duplex.zip(close) {
            let this = self.clone();
            let closed = move || this.in_frame(|| this.closed(&duplex, number, had_error));
            self.in_frame(|| close.then(closed));
        }
        done.pass(error);
        if let Some(owner) = self.owner.take() {
            owner.socket_gone();
        }
    }
}

impl Inner {
    /// Handles the close of the connection with this number: what has waited for it is cancelled
    /// first, as libuv does. The number of a socket that was connecting is 0.
    fn closed(&self, duplex: &Duplex<Vec<u8>, Vec<u8>>, number: u32, had_error: bool) {
        if self.slot.has_writers() && number > 0 {
            run_as_callback(|| self.slot.cancel(number));
        }
        // Another connection may have been closed since then.
        self.had_error.set(had_error);
        duplex.emit_close();
    }
}

impl Default for Socket {
    fn default() -> Self {
        Self::new()
    }
}

impl Emitter for Socket {
    fn emitter(&self) -> &EventEmitter {
        self.duplex.emitter()
    }
}

impl AsDuplex<Vec<u8>, Vec<u8>> for Socket {
    fn as_duplex(&self) -> &Duplex<Vec<u8>, Vec<u8>> {
        &self.duplex
    }
}

impl crate::events::WeakThis for Socket {
    fn weak_this(&self) -> Box<dyn Fn() -> Option<Self>> {
        let (duplex, inner) = (self.duplex.downgrade(), Rc::downgrade(&self.inner));
        Box::new(move || {
            let (duplex, inner) = (duplex.upgrade()?, inner.upgrade()?);
            Some(Self {
                duplex,
                inner,
                hold: None,
            })
        })
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket")
            .field("local", &self.local_address())
            .field("remote", &self.remote_address())
            .field("connecting", &self.connecting())
            .field("destroyed", &self.destroyed())
            .finish_non_exhaustive()
    }
}
