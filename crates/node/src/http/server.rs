//! Servers of HTTP.
//!
//! ```
//! use phaseloop_node::{Emitter, Exit, http::{self, server::CLIENT_ERROR}, run};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         let server = http::create_server(|_, response| {
//!             response.end("hello");
//!         });
//!         server.on(CLIENT_ERROR, |failed| eprintln!("{}", failed.error));
//!         server.listen_this(("127.0.0.1", 0), |server| server.close());
//!     })
//! }
//! ```
//!
//! | event | emitted |
//! |---|---|
//! | [`REQUEST`] | inside the read that completed a head, before any byte of the body |
//! | [`CHECK_CONTINUE`], [`CHECK_EXPECTATION`] | in place of [`REQUEST`], if there is a listener |
//! | [`UPGRADE`], [`CONNECT`] | inside the read, when the socket leaves HTTP |
//! | [`CLIENT_ERROR`] | inside the read, or on the tick or timer that found the error |
//! | [`DROP_REQUEST`] | inside the read, before the answer 503 |
//! | [`TIMEOUT`] | in the timers phase |
//! | [`CONNECTION`] | in the poll phase, one callback for each |
//! | [`LISTENING`] | on a tick |
//! | [`CLOSE`](crate::stream::CLOSE) | on a tick, after the last connection is gone |

mod builder;
mod events;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::net::SocketAddr;
use std::panic::Location;
use std::rc::{Rc, Weak};

use slab::Slab;

pub use self::builder::ServerBuilder;
pub use self::events::{
    CHECK_CONTINUE, CHECK_EXPECTATION, CLIENT_ERROR, CONNECT, ClientError, DROP_REQUEST, Dropped,
    Exchange, Handover, REQUEST, TIMEOUT, UPGRADE,
};
use super::connection::{Connection, Spares};
use super::incoming::IncomingMessage;
use super::response::ServerResponse;
use crate::delay::Delay;
use crate::error::Error;
use crate::events::{Emitter, Event, EventEmitter, Listening, WeakEmitter};
use crate::net::{self, CONNECTION, LISTENING, ListenOn, SocketOptions};
use crate::promise::{Handled, try_call};
use crate::site::Site;
use crate::timers::{Timeout, set_interval_at};
use phaseloop::LoopHandle;

/// Creates a server that calls `listener` with each request and its response. It does not listen
/// yet. JavaScript: `http.createServer(listener)`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, http, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = http::create_server(|request, response| {
///             response.end(format!("hello, {}", request.url()));
///         });
///         server.listen_this(("127.0.0.1", 0), |server| {
///             println!("listening on {}", server.address().unwrap());
///             server.close();
///         });
///     })
/// }
/// ```
pub fn create_server(listener: impl Fn(&IncomingMessage, &ServerResponse) + 'static) -> Server {
    let server = Server::new();
    server.on_request(listener);
    server
}

/// Creates a server that calls an async function with each request and its response. It does not
/// listen yet. JavaScript: `http.createServer(async (request, response) => { .. })`.
///
/// The function owns both. It is called inside the event, up to its first `await`; what it returns
/// is a [`Handled`]: `()`, or a `Result` whose error is an unhandled rejection, as in Node.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Error, Exit, fs, http, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = http::create_async_server(|request, response| async move {
///             let text = fs::promises::read_file("Cargo.toml").await?;
///             response.end(format!("{}: {} bytes", request.url(), text.len()));
///             Ok::<_, phaseloop_node::Reason>(())
///         });
///         server.listen_this(("127.0.0.1", 0), |server| server.close());
///     })
/// }
/// ```
pub fn create_async_server<F>(
    listener: impl Fn(IncomingMessage, ServerResponse) -> F + 'static,
) -> Server
where
    F: Future + 'static,
    F::Output: Handled,
{
    let server = Server::new();
    server.on_request_async(listener);
    server
}

/// A server of HTTP/1.1. A clone is a handle to the same server. JavaScript: `http.Server`.
///
/// It is a [`net::Server`] whose connections are parsed. Time and memory of a connection are
/// limited by default; see the setters and [`ServerBuilder`].
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, Exit, http, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = http::Server::new();
///         server.on(http::REQUEST, |exchange| {
///             exchange.response.set_header("X-Served-By", "phaseloop");
///             exchange.response.end("hello");
///         });
///         server.set_keep_alive_timeout(10_000);
///         server.listen_this(("127.0.0.1", 0), |server| server.close());
///     })
/// }
/// ```
#[derive(Clone)]
pub struct Server {
    net: net::Server,
    state: Rc<State>,
}

/// The limits of a server and its connections. The listeners of the server hold it, so it refers to
/// them weakly.
pub(super) struct State {
    emitter: WeakEmitter,
    /// Weak, because the listeners of their sockets hold them.
    connections: RefCell<Slab<Weak<Connection>>>,
    /// The timer that looks for slow messages.
    checking: RefCell<Option<Timeout>>,
    /// The line of the program that called `listen`.
    site: Cell<Option<Site>>,
    checking_interval: Cell<Delay>,
    // Times in milliseconds; `None` means without a limit.
    headers_timeout: Cell<Option<u32>>,
    request_timeout: Cell<Option<u32>>,
    pub(super) keep_alive_timeout: Cell<Option<u32>>,
    pub(super) timeout: Cell<Option<u32>>,
    pub(super) max_header_size: Cell<usize>,
    pub(super) max_headers_count: Cell<usize>,
    pub(super) max_requests_per_socket: Cell<u64>,
    pub(super) requires_host: Cell<bool>,
    pub(super) joins_duplicates: Cell<bool>,
    pub(super) spares: Spares,
}

impl Server {
    /// Creates a server without listeners.
    #[must_use]
    pub fn new() -> Self {
        let options = SocketOptions {
            allow_half_open: true,
            high_water_mark: None,
        };
        Self::with_net(net::Server::with_options(options), State::new)
    }

    /// Creates a builder for a server with other limits than the default. JavaScript:
    /// `http.createServer({ maxHeaderSize, headersTimeout, … })`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, http::Server, run};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let server = Server::builder()
    ///             .max_header_size(8 * 1024)
    ///             .headers_timeout(5_000)
    ///             .build()
    ///             .unwrap();
    ///         server.on_request(|_, response| response.end("hello"));
    ///         server.listen_this(("127.0.0.1", 0), |server| server.close());
    ///     })
    /// }
    /// ```
    pub fn builder() -> ServerBuilder {
        ServerBuilder::new()
    }

    /// Creates a server that accepts encrypted connections only.
    #[cfg(feature = "tls")]
    pub(crate) fn secure(context: &crate::tls::ServerContext) -> Self {
        let server = Self::new();
        crate::tls::encrypt(&server.net, context);
        server
    }

    fn with_net(net: net::Server, state: impl FnOnce(WeakEmitter) -> State) -> Self {
        let state = Rc::new(state(net.emitter().downgrade()));
        let (connected, listening) = (state.clone(), state.clone());
        net.on(CONNECTION, move |socket| {
            Connection::start(&connected, socket)
        });
        net.on(LISTENING, move |()| listening.start_checking());
        Self { net, state }
    }

    /// Adds a listener for requests. JavaScript: `server.on('request', listener)`.
    pub fn on_request(&self, listener: impl Fn(&IncomingMessage, &ServerResponse) + 'static) {
        self.on(REQUEST, move |exchange| {
            listener(&exchange.request, &exchange.response);
        });
    }

    /// Adds a listener for requests that gets the server as its first argument; see
    /// [`Emitter::on_this`].
    pub fn on_request_this(
        &self,
        listener: impl Fn(&Listening<Self>, &IncomingMessage, &ServerResponse) + 'static,
    ) {
        self.on_this(REQUEST, move |server, exchange| {
            listener(server, &exchange.request, &exchange.response);
        });
    }

    /// Adds an async function for requests; see [`create_async_server`]. JavaScript:
    /// `server.on('request', async (request, response) => { .. })`.
    pub fn on_request_async<F>(
        &self,
        listener: impl Fn(IncomingMessage, ServerResponse) -> F + 'static,
    ) where
        F: Future + 'static,
        F::Output: Handled,
    {
        self.on_request(move |request, response| {
            let handling = listener(request.clone(), response.clone());
            try_call(async move { handling.await.into_result() });
        });
    }

    /// Starts to listen; see [`net::Server::listen`]. JavaScript: `server.listen(port, host)`.
    ///
    /// # Panics
    ///
    /// See [`net::Server::listen`].
    #[track_caller]
    pub fn listen(&self, on: impl Into<ListenOn>) {
        self.net.check_not_listening();
        self.state.site.set(Some(Location::caller()));
        self.net.listen(on);
    }

    /// Starts to listen, and calls `callback` when the server listens; see
    /// [`listen`](Self::listen). JavaScript: `server.listen(port, host, callback)`.
    ///
    /// # Panics
    ///
    /// See [`net::Server::listen`].
    #[track_caller]
    pub fn listen_with(&self, on: impl Into<ListenOn>, callback: impl FnOnce() + 'static) {
        self.net.check_not_listening();
        self.state.site.set(Some(Location::caller()));
        self.net.listen_with(on, callback);
    }

    /// Starts to listen, and calls `callback` with the server when it listens; see
    /// [`listen`](Self::listen).
    ///
    /// # Panics
    ///
    /// See [`net::Server::listen`].
    #[track_caller]
    pub fn listen_this(&self, on: impl Into<ListenOn>, callback: impl FnOnce(&Self) + 'static) {
        self.net.check_not_listening();
        self.once_this(LISTENING, move |server, ()| callback(server));
        self.state.site.set(Some(Location::caller()));
        self.net.listen(on);
    }

    /// Stops accepting, and destroys the idle connections. The others stay until their peers close
    /// them or they are idle for too long. [`CLOSE`](crate::stream::CLOSE) is emitted when
    /// the last one is gone. JavaScript: `server.close()`.
    // H49.
    pub fn close(&self) {
        self.close_idle_connections();
        self.state.stop_checking();
        self.net.close();
    }

    /// Closes the server, and calls `callback` when it is closed; see [`close`](Self::close).
    /// JavaScript: `server.close(callback)`.
    pub fn close_with(&self, callback: impl FnOnce() + 'static) {
        self.close_with_result(|_| callback());
    }

    /// Closes the server, and calls `callback` with the server when it is closed; see
    /// [`close`](Self::close).
    pub fn close_this(&self, callback: impl FnOnce(&Self) + 'static) {
        let server = self.clone();
        self.close_with(move || callback(&server));
    }

    /// Closes the server, and calls `callback` when it is closed, with the error
    /// `ERR_SERVER_NOT_RUNNING` if it did not listen. JavaScript: `server.close(callback)`.
    pub fn close_with_result(&self, callback: impl FnOnce(Result<(), Error>) + 'static) {
        self.close_idle_connections();
        self.state.stop_checking();
        self.net.close_with_result(callback);
    }

    /// Destroys the connections that have answered all requests, and have no begun one. JavaScript:
    /// `server.closeIdleConnections()`.
    // H50.
    pub fn close_idle_connections(&self) {
        let connections = self.state.connections().into_iter();
        for connection in connections.filter(|connection| connection.is_idle()) {
            connection.destroy();
        }
    }

    /// Destroys all connections, except those that were handed over. JavaScript:
    /// `server.closeAllConnections()`.
    // H50.
    pub fn close_all_connections(&self) {
        for connection in self.state.connections() {
            connection.destroy();
        }
    }

    /// Returns whether the server listens. JavaScript: `server.listening`.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        self.net.is_listening()
    }

    /// Returns the address of the listening socket. JavaScript: `server.address()`.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.net.address()
    }

    /// Returns the number of open connections, with those that were handed over.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.net.connections()
    }

    /// Calls `callback` on the next tick with the number of open connections. JavaScript:
    /// `server.getConnections(callback)`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn get_connections(&self, callback: impl FnOnce(Result<usize, Error>) + 'static) {
        self.net.get_connections(callback);
    }

    /// Lets the loop end while the server listens. JavaScript: `server.unref()`.
    pub fn unref(&self) {
        self.net.unref();
    }

    /// Makes a listening server keep the loop alive, which is the default. JavaScript:
    /// `server.ref()`.
    pub fn ref_(&self) {
        self.net.ref_();
    }
}

/// Implements a getter and a setter of a time limit.
macro_rules! time_limits {
    ($($(#[$docs:meta])* $name:ident, $set:ident, $js:literal;)+) => {
        /// Limits of time. They are read anew at each use; zero means that there is no limit.
        impl Server {$(
            #[doc = concat!("Returns the limit set by [`", stringify!($set), "`](Self::", stringify!($set), ") in milliseconds.")]
            #[doc = concat!("JavaScript: `server.", $js, "`.")]
            #[must_use]
            pub fn $name(&self) -> u32 {
                self.state.$name.get().unwrap_or(0)
            }

            $(#[$docs])*
            #[doc = concat!("JavaScript: `server.", $js, " = delay`.")]
            pub fn $set(&self, delay: impl Into<Delay>) {
                self.state.$name.set(delay.into().as_limit());
            }
        )+}
    };
}

time_limits! {
    /// Sets how long a head may take from its first byte on; for the first head, from the accept
    /// on. A slower client gets the answer 408. The default is 60 s.
    headers_timeout, set_headers_timeout, "headersTimeout";
    /// Sets how long a message may take as a whole. A slower client gets the answer 408, if nothing
    /// was answered yet. The default is 300 s.
    request_timeout, set_request_timeout, "requestTimeout";
    /// Sets how long a connection may be idle after an answer. The header says this time, and the
    /// connection is closed one second later. The default is 5 s.
    keep_alive_timeout, set_keep_alive_timeout, "keepAliveTimeout";
    /// Sets how long the socket of a connection may be idle at any time before [`TIMEOUT`] is
    /// emitted. The default is no limit.
    timeout, set_timeout, "timeout";
}

/// Limits of numbers.
impl Server {
    /// Returns the largest number of header lines of a request; 0 means no limit. JavaScript:
    /// `server.maxHeadersCount`.
    #[must_use]
    pub fn max_headers_count(&self) -> usize {
        self.state.max_headers_count.get()
    }

    /// Sets how many header lines of a request the program sees, for new connections. Framing uses
    /// all. The default is 1000; 0 means no limit. JavaScript: `server.maxHeadersCount = count`.
    pub fn set_max_headers_count(&self, count: usize) {
        self.state.max_headers_count.set(count);
    }

    /// Returns how many requests a connection may bring; 0 means no limit. JavaScript:
    /// `server.maxRequestsPerSocket`.
    #[must_use]
    pub fn max_requests_per_socket(&self) -> u64 {
        self.state.max_requests_per_socket.get()
    }

    /// Sets how many requests a connection may bring. The answer to the last one says that the
    /// connection closes; later ones are answered with 503. The default is no limit. JavaScript:
    /// `server.maxRequestsPerSocket = count`.
    pub fn set_max_requests_per_socket(&self, count: u64) {
        self.state.max_requests_per_socket.set(count);
    }
}

impl State {
    fn new(emitter: WeakEmitter) -> Self {
        Self {
            emitter,
            connections: RefCell::default(),
            checking: RefCell::default(),
            site: Cell::new(None),
            checking_interval: Cell::new(Delay::from(30_000)),
            headers_timeout: Cell::new(Some(60_000)),
            request_timeout: Cell::new(Some(300_000)),
            keep_alive_timeout: Cell::new(Some(5_000)),
            timeout: Cell::new(None),
            max_header_size: Cell::new(super::MAX_HEADER_SIZE),
            max_headers_count: Cell::new(1000),
            max_requests_per_socket: Cell::new(0),
            requires_host: Cell::new(true),
            joins_duplicates: Cell::new(false),
            spares: Spares::default(),
        }
    }

    pub(super) fn emit<A: 'static>(&self, event: Event<A>, arguments: &A) {
        if let Some(emitter) = self.emitter.upgrade() {
            emitter.emit(event, arguments);
        }
    }

    pub(super) fn listener_count<A: 'static>(&self, event: Event<A>) -> usize {
        let emitter = self.emitter.upgrade();
        emitter.map_or(0, |emitter| emitter.listener_count(event))
    }

    // The connections.

    pub(super) fn add(&self, connection: &Rc<Connection>) -> usize {
        let weak = Rc::downgrade(connection);
        self.connections.borrow_mut().insert(weak)
    }

    pub(super) fn remove(&self, place: usize) {
        self.connections.borrow_mut().remove(place);
    }

    fn connections(&self) -> Vec<Rc<Connection>> {
        let connections = self.connections.borrow();
        let alive = connections.iter().filter_map(|(_, weak)| weak.upgrade());
        alive.collect()
    }

    // Slow messages.

    /// Starts the timer that looks for slow messages.
    // H37.
    fn start_checking(self: &Rc<Self>) {
        self.stop_checking();
        let state = Rc::downgrade(self);
        let site = self.site.get().unwrap_or(Location::caller());
        let checking = set_interval_at(self.checking_interval.get(), site, move |_| {
            if let Some(state) = state.upgrade() {
                state.check();
            }
        });
        checking.unref();
        self.checking.replace(Some(checking));
    }

    fn stop_checking(&self) {
        let checking = self.checking.take();
        if let Some(checking) = checking {
            checking.close();
        }
    }

    fn check(&self) {
        let (headers, request) = (self.headers_timeout.get(), self.request_timeout.get());
        if headers.is_none() && request.is_none() {
            return;
        }
        let now = LoopHandle::current().now();
        for connection in self.connections() {
            connection.expire(now, headers, request);
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
        self.net.emitter()
    }
}

crate::weak_this!(Server { net, state });

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address())
            .field("listening", &self.is_listening())
            .field("connections", &self.connections())
            .finish_non_exhaustive()
    }
}
