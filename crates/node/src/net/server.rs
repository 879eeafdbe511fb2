//! Servers.

mod binding;
mod limits;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::panic::Location;
use std::rc::{Rc, Weak};

use self::binding::bind;
use self::limits::Begin;
pub use self::limits::{DROP, Dropped};
use super::address::Address;
use super::block_list::BlockList;
use super::connection::{Connection, Listener};
use super::listen_on::{ListenOn, Target};
use super::local;
use super::options::ListenOptions;
use super::socket::{Owner, Socket, SocketOptions};
use crate::abort::{AbortController, AbortSignal};
use crate::callback_futures::{call_user, in_callbacks};
use crate::dns;
use crate::error::Error;
use crate::events::{ERROR, Emitter, Event, EventEmitter};
use crate::reason::throw;
use crate::site::Site;
use crate::stream::CLOSE;
use phaseloop::task::next_tick;

/// The server listens. JavaScript: `'listening'`.
pub const LISTENING: Event<()> = Event::new("listening");

/// A client has connected. JavaScript: `'connection'`.
pub const CONNECTION: Event<Socket> = Event::new("connection");

/// Creates a server that calls `listener` with each connection. It does not listen yet. JavaScript:
/// `net.createServer(listener)`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, net, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = net::create_server(|socket| socket.end("hello"));
///         server.listen_this(("127.0.0.1", 0), |server| {
///             println!("listening on {:?}", server.address());
///             server.close();
///         });
///     })
/// }
/// ```
pub fn create_server(listener: impl Fn(&Socket) + 'static) -> Server {
    let server = Server::new();
    server.on(CONNECTION, listener);
    server
}

/// Creates a server whose sockets have `options`. It does not listen yet. JavaScript:
/// `net.createServer({ allowHalfOpen, highWaterMark }, listener)`.
pub fn create_server_with(options: SocketOptions, listener: impl Fn(&Socket) + 'static) -> Server {
    let server = Server::with_options(options);
    server.on(CONNECTION, listener);
    server
}

/// Accepts connections. A clone is a handle to the same server. JavaScript: `net.Server`.
///
/// A listening server is held by its loop and keeps it alive.
///
/// An error of `accept` that does not concern a single connection, such as `ENOBUFS` or `EPERM`, is
/// emitted as [`ERROR`](crate::events::ERROR). The server stays open and tries again some
/// milliseconds later.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, Exit, net, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = net::Server::new();
///         server.on(net::CONNECTION, |socket| socket.end("hello"));
///         server.listen_this(("127.0.0.1", 0), |server| {
///             assert!(server.is_listening());
///             server.close();
///         });
///     })
/// }
/// ```
#[derive(Clone)]
pub struct Server {
    inner: Rc<Inner>,
}

/// Changes what a listener accepts.
type Wrap = Rc<dyn Fn(Box<dyn Listener>) -> Box<dyn Listener>>;

#[derive(Default)]
struct Inner {
    emitter: EventEmitter,
    address: Cell<Option<SocketAddr>>,
    /// Stops the accept loop. `None` if the server does not listen.
    listening: RefCell<Option<AbortController>>,
    connections: Cell<usize>,
    /// Incremented by each listen and close, so that a lookup started before does not listen.
    generation: Cell<u64>,
    /// What listens on the next tick.
    pending: RefCell<Option<Box<dyn Listener>>>,
    /// The options of the accepted sockets.
    options: Cell<SocketOptions>,
    /// The listening socket. The task that accepts owns it, so that it closes with the loop.
    listener: RefCell<Option<Weak<dyn Listener>>>,
    /// Whether the server does not keep the loop alive.
    is_unreferenced: Cell<bool>,
    /// The number of connections beyond which further ones are dropped.
    max_connections: Cell<Option<usize>>,
    block_list: RefCell<Option<BlockList>>,
    /// How accepted sockets begin.
    begin: Cell<Begin>,
    /// Makes another listener of the one that was bound.
    wrap: RefCell<Option<Wrap>>,
}

impl Server {
    /// Creates a server without listeners.
    #[must_use]
    pub fn new() -> Self {
        let inner = Rc::<Inner>::default();
        inner.emitter.set_class("Server");
        Self { inner }
    }

    /// Creates a server without listeners whose sockets have `options`. JavaScript: `new
    /// net.Server({ allowHalfOpen, highWaterMark })`.
    #[must_use]
    pub fn with_options(options: SocketOptions) -> Self {
        let server = Self::new();
        server.inner.options.set(options);
        server
    }

    /// Changes what the server accepts from its next `listen` on.
    #[cfg(feature = "tls")]
    pub(crate) fn wrap_listener(&self, wrap: Wrap) {
        self.inner.wrap.replace(Some(wrap));
    }

    /// Starts to listen, and emits [`LISTENING`] or an error on a tick. A name is looked up first.
    /// JavaScript: `server.listen(port, host)`.
    ///
    /// The lookup of an IP address takes a tick, as in Node: the server listens on the next tick,
    /// and the event follows on the one after. [`address`](Self::address) is known at once.
    ///
    /// A bare port listens on all IPv6 and IPv4 addresses, or on IPv4 only if the machine has no
    /// IPv6.
    ///
    /// A second call before the server listens replaces the first one. A server that was closed, or
    /// could not listen, may listen again.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread. [Throws](crate::throw) `ERR_SERVER_ALREADY_LISTEN` if the
    /// server listens.
    #[track_caller]
    pub fn listen(&self, on: impl Into<ListenOn>) {
        self.begin_listening();
        let site = Location::caller();
        match on.into().target {
            Target::Address(address) => self.listen_at(&address, ListenOptions::default(), site),
            #[cfg(feature = "cluster")]
            Target::Loop(listener) => self.listen_on(Ok(Box::new(listener)), site),
        }
    }

    /// Starts to listen with options; see [`listen`](Self::listen). JavaScript: `server.listen({
    /// port, host, backlog, ipv6Only, reusePort, signal })`.
    ///
    /// # Panics
    ///
    /// See [`listen`](Self::listen).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{AbortSignal, Exit, net, run};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let server = net::create_server(|socket| socket.end("hello"));
    ///         let signal = Some(AbortSignal::timeout(5));
    ///         let options = net::ListenOptions { backlog: 16, signal, ..Default::default() };
    ///         server.listen_with_options(("127.0.0.1", 0), options);
    ///     })
    /// }
    /// ```
    #[track_caller]
    pub fn listen_with_options(&self, address: impl Into<Address>, options: ListenOptions) {
        self.begin_listening();
        if let Some(signal) = &options.signal {
            self.close_with_signal(signal);
        }
        self.listen_at(&address.into(), options, Location::caller());
    }

    /// Throws if the server listens.
    #[track_caller]
    pub(crate) fn check_not_listening(&self) {
        if self.is_listening() {
            let text = "Listen method has been called more than once without closing.";
            throw(Error::with_code("ERR_SERVER_ALREADY_LISTEN", text));
        }
    }

    #[track_caller]
    fn begin_listening(&self) {
        self.check_not_listening();
        self.inner.drop_pending();
    }

    /// Closes the server when `signal` is aborted; it may be aborted already.
    fn close_with_signal(&self, signal: &AbortSignal) {
        let server = self.clone();
        if signal.aborted() {
            return next_tick(move || server.close());
        }
        // Weak, because the signal may outlive many servers.
        let inner = Rc::downgrade(&self.inner);
        let listener = signal.on_abort(move || {
            if let Some(inner) = inner.upgrade() {
                Self { inner }.close();
            }
        });
        let signal = signal.clone();
        self.once(CLOSE, move |()| _ = signal.off(listener));
    }

    #[track_caller]
    fn listen_at(&self, address: &Address, options: ListenOptions, site: Site) {
        let listener = match (address, address.to_listen()) {
            (Address::Path(path), _) => {
                local::listen(path, site).map_err(|error| Error::of_listen_at(error, path))
            }
            (Address::Port(port), Some(address)) => match bind(address, &options, site) {
                // The machine has no IPv6.
                Err(error) if error.code() != Some("EADDRINUSE") => {
                    bind((Ipv4Addr::UNSPECIFIED, *port).into(), &options, site)
                }
                bound => bound,
            },
            (_, Some(address)) => return self.listen_by_tick(bind(address, &options, site), site),
            (Address::Host(host, port), None) => return self.look_up(host, *port, options, site),
            (_, None) => unreachable!("only a name or a path has no address"),
        };
        self.listen_on(listener, site);
    }

    /// Listens on the next tick, unless the server is closed before.
    #[track_caller]
    fn listen_by_tick(&self, listener: Result<Box<dyn Listener>, Error>, site: Site) {
        let failed = match listener {
            Ok(listener) => {
                self.inner.address.set(listener.address());
                self.inner.pending.replace(Some(listener));
                None
            }
            Err(error) => Some(error),
        };
        let (server, generation) = (self.clone(), self.inner.generation.get());
        next_tick(move || {
            if server.inner.generation.get() != generation {
                return;
            }
            let listener = server.inner.pending.take();
            match (failed, listener) {
                (Some(error), _) => server.listen_on(Err(error), site),
                (None, Some(listener)) => server.listen_on(Ok(listener), site),
                (None, None) => {}
            }
        });
    }

    #[track_caller]
    fn look_up(&self, host: &str, port: u16, options: ListenOptions, site: Site) {
        let (server, generation) = (self.clone(), self.inner.generation.get());
        dns::lookup(host, move |address| {
            if server.inner.generation.get() != generation {
                // The server was closed during the lookup.
                return;
            }
            match address {
                Ok(address) => {
                    let listener = bind((address, port).into(), &options, site);
                    server.listen_on(listener, site);
                }
                Err(error) => {
                    server.inner.emitter.emit(ERROR, error.at(site));
                }
            }
        });
    }

    #[track_caller]
    fn listen_on(&self, listener: Result<Box<dyn Listener>, Error>, site: Site) {
        let server = self.clone();
        match listener {
            Ok(listener) => {
                self.inner.address.set(listener.address());
                self.start(listener, site);
                next_tick(move || {
                    // A listener or task may have closed the server before this tick.
                    if server.is_listening() {
                        server.inner.emitter.emit(LISTENING, ());
                    }
                });
            }
            Err(error) => {
                let error = error.at(site);
                next_tick(move || {
                    server.inner.emitter.emit(ERROR, &error);
                });
            }
        }
    }

    /// Starts to listen, and calls `callback` when the server listens; see
    /// [`listen`](Self::listen).
    ///
    /// # Panics
    ///
    /// See [`listen`](Self::listen).
    #[track_caller]
    pub fn listen_with(&self, on: impl Into<ListenOn>, callback: impl FnOnce() + 'static) {
        self.check_not_listening();
        self.once(LISTENING, move |()| callback());
        self.listen(on);
    }

    /// Starts to listen, and calls `callback` with the server when it listens; see
    /// [`listen`](Self::listen).
    ///
    /// # Panics
    ///
    /// See [`listen`](Self::listen).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, net, run};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let server = net::create_server(|socket| socket.end("hello"));
    ///         server.listen_this(("127.0.0.1", 0), |server| {
    ///             println!("listening on {}", server.address().unwrap());
    ///             server.close();
    ///         });
    ///     })
    /// }
    /// ```
    #[track_caller]
    pub fn listen_this(&self, on: impl Into<ListenOn>, callback: impl FnOnce(&Self) + 'static) {
        self.check_not_listening();
        self.once_this(LISTENING, move |server, ()| callback(server));
        self.listen(on);
    }

    fn start(&self, listener: Box<dyn Listener>, site: Site) {
        let (server, controller) = (self.clone(), AbortController::new());
        let signal = controller.signal();
        let before = self.inner.listening.replace(Some(controller));
        drop(before);
        let wrap = self.inner.wrap.borrow().clone();
        let listener = match wrap {
            Some(wrap) => wrap(listener),
            None => listener,
        };
        let listener: Rc<dyn Listener> = Rc::from(listener);
        listener.set_referenced(!self.inner.is_unreferenced.get());
        self.inner.listener.replace(Some(Rc::downgrade(&listener)));
        in_callbacks(async move {
            let closed = signal.clone();
            let accepting = signal.guard(async move {
                while !closed.aborted() {
                    match listener.accept(site).await {
                        Ok(connection) => server.accepted(connection, site),
                        Err(error) if is_worth_an_event(&error, &*listener) => {
                            let error = Error::of_call(error, "accept");
                            call_user(|| server.inner.emitter.emit(ERROR, &error));
                        }
                        Err(_) => {}
                    }
                }
            });
            // The result is an abort: the server was closed.
            drop(accepting.await);
        });
    }

    fn accepted(&self, connection: Box<dyn Connection>, site: Site) {
        let (local, remote) = connection.addresses();
        let list = self.inner.block_list.borrow().clone();
        if list
            .zip(remote)
            .is_some_and(|(list, remote)| list.check(remote.ip()))
        {
            return drop(connection.close());
        }
        let most = self.inner.max_connections.get();
        if most.is_some_and(|most| self.connections() >= most) {
            call_user(|| self.inner.emitter.emit(DROP, Dropped { local, remote }));
            return drop(connection.close());
        }
        self.inner.connections.set(self.connections() + 1);
        let (begin, options) = (self.inner.begin.get(), self.inner.options.get());
        let socket = Socket::accepted(connection, options, Some(self.inner.clone()), site);
        if begin.no_delay {
            socket.set_no_delay(true);
        }
        if let Some(delay) = begin.keep_alive {
            socket.set_keep_alive(true, delay);
        }
        match begin.is_paused {
            true => socket.pause(),
            false => _ = socket.readable().read_size(0),
        }
        call_user(|| self.inner.emitter.emit(CONNECTION, &socket));
    }

    /// Stops accepting. [`CLOSE`] is emitted on a tick, when no connection is left. JavaScript:
    /// `server.close()`.
    pub fn close(&self) {
        self.inner.drop_pending();
        let listener = self.inner.listener.take();
        drop(listener);
        let listening = self.inner.listening.take();
        if let Some(listening) = listening {
            listening.abort();
        }
        self.inner.close_if_drained();
    }

    /// Stops accepting, and calls `callback` when the server is closed; see [`close`](Self::close).
    pub fn close_with(&self, callback: impl FnOnce() + 'static) {
        self.close_with_result(|_| callback());
    }

    /// Stops accepting, and calls `callback` with the server when it is closed; see
    /// [`close`](Self::close).
    pub fn close_this(&self, callback: impl FnOnce(&Self) + 'static) {
        let server = self.clone();
        self.close_with(move || callback(&server));
    }

    /// Stops accepting, and calls `callback` when the server is closed, with the error
    /// `ERR_SERVER_NOT_RUNNING` if it did not listen. JavaScript: `server.close(callback)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, net, run};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         net::Server::new().close_with_result(|result| {
    ///             assert_eq!(result.unwrap_err().code(), Some("ERR_SERVER_NOT_RUNNING"));
    ///         });
    ///     })
    /// }
    /// ```
    pub fn close_with_result(&self, callback: impl FnOnce(Result<(), Error>) + 'static) {
        let result = match self.is_listening() {
            true => Ok(()),
            false => {
                let code = "ERR_SERVER_NOT_RUNNING";
                Err(Error::with_code(code, "Server is not running."))
            }
        };
        self.once(CLOSE, move |()| callback(result));
        self.close();
    }

    /// Returns whether the server listens. JavaScript: `server.listening`.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        self.inner.listening.borrow().is_some()
    }

    /// Returns the address of the listening socket. `None` for a local socket. JavaScript:
    /// `server.address()`.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.inner.address.get()
    }

    /// Calls `callback` on the next tick with the number of open connections.
    /// [`connections`](Self::connections) returns the number directly. JavaScript:
    /// `server.getConnections(callback)`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn get_connections(&self, callback: impl FnOnce(Result<usize, Error>) + 'static) {
        let count = self.connections();
        next_tick(move || callback(Ok(count)));
    }

    fn set_referenced(&self, is_referenced: bool) {
        self.inner.is_unreferenced.set(!is_referenced);
        let listener = self.inner.listener.borrow().clone();
        if let Some(listener) = listener.and_then(|listener| listener.upgrade()) {
            listener.set_referenced(is_referenced);
        }
    }

    /// Returns the number of open connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.inner.connections.get()
    }
}

impl_ref!(Server, "server");

/// Returns whether an error of `accept` concerns the server itself, and is emitted while the
/// listener rests. A connection that was reset before it was accepted, or refused for lack of a
/// descriptor, emits no error.
fn is_worth_an_event(error: &io::Error, listener: &dyn Listener) -> bool {
    listener.is_resting() && error.kind() != io::ErrorKind::ConnectionAborted
}

impl Owner for Inner {
    fn socket_gone(self: Rc<Self>) {
        self.connections.set(self.connections.get() - 1);
        self.close_if_drained();
    }
}

impl Inner {
    /// Drops what would listen by a tick or after a lookup.
    fn drop_pending(&self) {
        self.generation.set(self.generation.get() + 1);
        self.address.set(None);
        let pending = self.pending.take();
        drop(pending);
    }

    fn close_if_drained(self: &Rc<Self>) {
        if self.listening.borrow().is_none() && self.connections.get() == 0 {
            let server = self.clone();
            next_tick(move || {
                server.emitter.emit(CLOSE, ());
            });
        }
    }
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl Emitter for Server {
    fn emitter(&self) -> &EventEmitter {
        &self.inner.emitter
    }
}

// Weak, because a closed server keeps its listeners: it may listen again. The reference is
// valid while the server emits.
crate::weak_this!(Server { inner });

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address())
            .field("listening", &self.is_listening())
            .field("connections", &self.connections())
            .finish_non_exhaustive()
    }
}
