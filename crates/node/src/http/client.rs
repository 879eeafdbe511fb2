//! Requests: Node's `http.request` and `http.ClientRequest`.
//!
//! ```text
//!   request ── agent: a socket ── tick: 'socket' ── written: 'finish' ── head read: 'response'
//!     ── body read: 'end' of the response ──┬── kept: a tick: 'close', the socket is free
//!                                           └── not kept: the socket ends; its 'close': 'close'
//! ```
//
// H60 to H79.

mod begin;
mod exchange;
mod options;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Deref;
use std::rc::{Rc, Weak};

#[cfg(feature = "fetch")]
pub(crate) use self::begin::request_at;
#[cfg(feature = "tls")]
pub(crate) use self::begin::secure_request;
pub use self::begin::{get, request, try_request};
use self::exchange::Exchange;
pub(super) use self::options::Destination;
pub use self::options::{RequestOptions, Target};
use self::options::{basic_auth, invalid_protocol};
use super::agent::{Agent, Pooled};
use super::headers::Headers;
use super::incoming::IncomingMessage;
use super::outgoing::{FirstLine, OutgoingMessage, Role, Sending};
use super::validate::{validate_path, validate_token};
use crate::abort::{AbortListener, AbortSignal};
use crate::context::Node;
use crate::delay::Delay;
use crate::error::Error;
use crate::events::{ERROR, Emitter, Event, EventEmitter, ListenerId, WeakThis as _};
use crate::net::{CONNECT as CONNECTED, Socket, TIMEOUT, idle_time};
use crate::site::Site;
use crate::stream::{Sink as _, finished};
use phaseloop::extension::frame::Frame;
use phaseloop::task::next_tick;

/// The head of the response has arrived. The body is dropped if no listener exists. JavaScript:
/// `'response'`.
pub const RESPONSE: Event<IncomingMessage> = Event::new("response");

/// The server asks for the body of the request. JavaScript: `'continue'`.
pub const CONTINUE: Event<()> = Event::new("continue");

/// A preliminary response has arrived: a status from 100 to 199, but not 101. JavaScript:
/// `'information'`.
pub const INFORMATION: Event<Information> = Event::new("information");

/// A preliminary response; the argument of [`INFORMATION`].
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, Exit, http, run, stream::CLOSE};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = http::create_server(|_, response| {
///             response.write_processing();
///             response.end(());
///         });
///         server.listen_this(("127.0.0.1", 0), |server| {
///             let request = http::get(server.address().unwrap());
///             request.on(http::INFORMATION, |early| assert_eq!(early.status_code, 102));
///             let server = server.clone();
///             request.on(CLOSE, move |()| server.close());
///         });
///     })
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Information {
    /// The status.
    pub status_code: u16,
    /// The text behind the status.
    pub status_message: String,
    /// The version, such as `"1.1"`.
    pub http_version: &'static str,
    /// The headers.
    pub headers: Headers,
    /// The names and values of the header lines, as they were received.
    pub raw_headers: Vec<(String, String)>,
}

/// A request that is sent to a server. A clone is a handle to the same request. It dereferences to
/// [`OutgoingMessage`], which has the headers and the body. JavaScript: `http.ClientRequest`.
///
/// # Events
///
/// | event | emitted |
/// |---|---|
/// | [`SOCKET`](super::SOCKET) | on a tick, when the agent has given the request its socket |
/// | [`FINISH`](crate::stream::FINISH) | when the kernel has all bytes of the request |
/// | [`RESPONSE`] | in the poll phase, inside the read that has completed the head |
/// | [`CONTINUE`], [`INFORMATION`] | for preliminary responses |
/// | [`UPGRADE`](super::UPGRADE), [`CONNECT`](super::CONNECT) | when the socket leaves HTTP |
/// | [`TIMEOUT`] | after inactivity of the socket; the request goes on |
/// | [`ERROR`] | once, if there is no response; it needs a listener |
/// | [`CLOSE`](crate::stream::CLOSE) | last |
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, Exit, events::ERROR, http, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         // Nothing listens on port 1.
///         let request = http::get("127.0.0.1:1");
///         request.on(ERROR, |error| assert_eq!(error.code(), Some("ECONNREFUSED")));
///     })
/// }
/// ```
#[derive(Clone)]
pub struct ClientRequest {
    message: OutgoingMessage,
    state: Rc<Request>,
}

/// The state of a request.
struct Request {
    method: String,
    path: String,
    agent: Agent,
    destination: Destination,
    timeout: Option<Delay>,
    exchange: Exchange,
    is_reused: Cell<bool>,
    /// The socket with its place in the agent, which holds it.
    pooled: RefCell<Weak<Pooled>>,
    /// The error that the program gave to `destroy`.
    error: RefCell<Option<Error>>,
    /// The frame in which the request was made, for its socket.
    frame: Frame,
    /// The line of the program that made the request.
    site: Site,
    /// Whether timeouts of the socket are events of the request, and the listener for them.
    receives_timeouts: Cell<bool>,
    on_timeout: Cell<Option<ListenerId>>,
    abort: RefCell<Option<(AbortSignal, AbortListener)>>,
}

impl ClientRequest {
    pub(super) fn new(
        options: RequestOptions,
        site: Site,
        default_agent: impl FnOnce() -> Agent,
    ) -> Result<Self, Error> {
        validate_path(&options.path)?;
        if !options.method.is_empty() {
            validate_token("Method", &options.method)?;
        }
        let agent = options.agent.clone().unwrap_or_else(default_agent);
        if let Some(found) = options.protocol.filter(|found| *found != agent.protocol()) {
            return Err(invalid_protocol(found, agent.protocol()));
        }
        let timeout = options.timeout.map(|delay| delay.as_idle_time("timeout"));
        let timeout = timeout.transpose()?.flatten();
        let state = Rc::new(Request {
            method: match &*options.method {
                "" => "GET".to_owned(),
                method if options.keeps_case => method.to_owned(),
                method => method.to_ascii_uppercase(),
            },
            path: match &*options.path {
                "" => "/".to_owned(),
                path => path.to_owned(),
            },
            destination: Destination::new(&options.target, agent.default_port()),
            agent,
            timeout,
            exchange: Exchange::new(&options),
            is_reused: Cell::new(false),
            pooled: RefCell::default(),
            error: RefCell::default(),
            frame: Frame::current(),
            site,
            receives_timeouts: Cell::new(false),
            on_timeout: Cell::new(None),
            abort: RefCell::default(),
        });
        let request = Self {
            message: OutgoingMessage::new("ClientRequest", state.clone()),
            state,
        };
        request.writable().ends_with_finish();
        let weak = request.weak_this();
        request.writable().on_leave(move || {
            if let Some(request) = weak() {
                request.destroy(None);
            }
            false
        });
        // A program's listeners often hold the request. They are dropped with the loop.
        Node::current().emitters.insert(request.emitter());
        request.set_up(options)?;
        request.state.agent.add_request(&request);
        Ok(request)
    }

    /// Sets the headers, and what the head depends on.
    // H74 to H76.
    fn set_up(&self, options: RequestOptions) -> Result<(), Error> {
        let framing = &self.message.sending().framing;
        framing.is_request.set(true);
        let bare = ["GET", "HEAD", "DELETE", "OPTIONS", "TRACE", "CONNECT"];
        let is_bare = bare.contains(&&*self.state.method);
        framing.chunks_by_default.set(!is_bare);
        framing.keeps_alive.set(self.state.agent.may_keep_alive());
        if let Some(headers) = options.raw_headers {
            self.state.fix_head(self.message.sending(), headers)?;
        } else {
            for (name, value) in options.headers {
                self.try_set_header(name, value)?;
            }
            if options.sets_host && !self.has_header("host") {
                let is_tunnel = self.state.method == "CONNECT" && !options.path.is_empty();
                let host = match is_tunnel {
                    true => &options.path,
                    false => &self.state.destination.host_header,
                };
                self.try_set_header("Host", host.as_str())?;
            }
            if let Some(auth) = options.auth.filter(|_| !self.has_header("authorization")) {
                self.try_set_header("Authorization", basic_auth(&auth))?;
            }
            if self.has_header("expect") {
                self.state.fix_head(self.message.sending(), Vec::new())?;
            }
        }
        if let Some(signal) = &options.signal {
            self.abort_with(signal);
        }
        Ok(())
    }

    // H68.
    fn abort_with(&self, signal: &AbortSignal) {
        if let Some(reason) = signal.reason() {
            return self.destroy(Some(Error::aborted_by(reason)));
        }
        let (request, by) = (self.clone(), signal.downgrade());
        let listener = signal.on_abort(move || {
            if let Some(reason) = by.upgrade().and_then(|signal| signal.reason()) {
                request.destroy(Some(Error::aborted_by(reason)));
            }
        });
        self.state.abort.replace(Some((signal.clone(), listener)));
    }

    /// Adds a listener for the response that is called once. JavaScript: `request.once('response',
    /// ..)`, the callback of `http.request`.
    pub fn on_response(&self, listener: impl FnOnce(&IncomingMessage) + 'static) -> ListenerId {
        self.once(RESPONSE, listener)
    }

    /// Adds a listener for the response that is called once and gets the request as its first
    /// argument; see [`Emitter::on_this`].
    pub fn on_response_this(
        &self,
        listener: impl FnOnce(&Self, &IncomingMessage) + 'static,
    ) -> ListenerId {
        self.once_this(RESPONSE, listener)
    }

    /// Returns the method in upper case. JavaScript: `request.method`.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.state.method
    }

    /// Returns the path with the query. JavaScript: `request.path`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.state.path
    }

    /// Returns whether the request was sent on a socket that a request had used before. JavaScript:
    /// `request.reusedSocket`.
    #[must_use]
    pub fn reused_socket(&self) -> bool {
        self.state.is_reused.get()
    }

    /// Emits [`TIMEOUT`] once when no byte was read or written for `delay`, from the connection on.
    /// The request goes on; a listener decides what to do. JavaScript: `request.setTimeout(delay)`.
    ///
    /// # Panics
    ///
    /// See [`Socket::set_timeout`].
    // H69.
    pub fn set_timeout(&self, delay: impl Into<Delay>) {
        if self.state.exchange.is_ended() {
            return;
        }
        let delay = idle_time(delay);
        self.state.receives_timeouts.set(true);
        match self.pooled() {
            Some(pooled) => {
                self.listen_for_timeout(&pooled);
                set_timeout_when_connected(pooled.socket(), delay);
            }
            None => {
                self.once(super::SOCKET, move |socket| {
                    set_timeout_when_connected(socket, delay);
                });
            }
        }
    }

    fn pooled(&self) -> Option<Rc<Pooled>> {
        self.state.pooled.borrow().upgrade()
    }

    // The agent's side.

    pub(super) fn pool_name(&self) -> &str {
        &self.state.destination.pool_name
    }

    /// Returns the line of the program that made the request.
    pub(super) fn site(&self) -> Site {
        self.state.site
    }

    pub(super) fn target(&self) -> &Destination {
        &self.state.destination
    }

    pub(super) fn timeout(&self) -> Option<Delay> {
        self.state.timeout
    }

    pub(super) fn set_reused(&self) {
        self.state.is_reused.set(true);
    }

    /// Returns whether the connection stays open after the request and its response.
    pub(super) fn keeps_alive(&self) -> bool {
        self.message.sending().framing.keeps_alive.get()
    }

    /// Returns for how many seconds the peer says that it keeps the connection open.
    pub(super) fn keep_alive_hint(&self) -> Option<u64> {
        let response = self.state.exchange.response()?;
        let hint = response
            .headers()
            .get("keep-alive")?
            .strip_prefix("timeout=")?;
        let end = hint.find(|c: char| !c.is_ascii_digit());
        let digits = &hint[..end.unwrap_or(hint.len())];
        (!digits.is_empty()).then(|| digits.parse().unwrap_or(u64::MAX))
    }

    /// Gives the request its socket, on a tick.
    pub(super) fn on_socket(&self, pooled: &Rc<Pooled>) {
        let (request, pooled) = (self.clone(), pooled.clone());
        // A socket that another request has used, or has waited for, gets the frame of this one.
        let frame = self.state.frame.clone();
        pooled.socket().set_frame(frame.clone());
        frame.run(|| next_tick(move || request.begin(&pooled)));
    }

    fn begin(&self, pooled: &Rc<Pooled>) {
        if !self.destroyed() {
            self.attach(pooled);
            return self.message.sending().flush();
        }
        // H67. The socket is not used: the agent may give it to another request.
        let error = self.state.error.take();
        if pooled.socket().destroyed() {
            let request = self.clone();
            return finished(pooled.socket().duplex()).then(move |result| {
                let found = result.err();
                let found = found.filter(|e| e.code() != Some("ERR_STREAM_PREMATURE_CLOSE"));
                request.fail_unsent(found);
            });
        }
        pooled.free();
        self.fail_unsent(error);
    }

    fn fail_unsent(&self, error: Option<Error>) {
        self.emit(ERROR, error.unwrap_or_else(hang_up));
        self.close();
        // What was written holds the request by its callback, as what is written later would.
        self.message.sending().drop_kept();
        self.message.sending().abandon();
    }

    fn listen_for_timeout(&self, pooled: &Rc<Pooled>) {
        if self.state.on_timeout.get().is_some() {
            return;
        }
        let request = self.clone();
        let by = Rc::downgrade(pooled);
        let listener = pooled.socket().once(TIMEOUT, move |()| {
            let is_used = by
                .upgrade()
                .is_some_and(|pooled| pooled.request().is_some());
            if is_used {
                request.emit(TIMEOUT, ());
            }
        });
        self.state.on_timeout.set(Some(listener));
    }

    /// Emits 'close', after which nothing holds the request.
    fn close(&self) {
        let abort = self.state.abort.take();
        if let Some((signal, listener)) = abort {
            signal.off(listener);
        }
        let response = self.state.exchange.response();
        match response.is_some_and(|response| response.complete()) {
            true => self.message.sending().emit_close_answered(),
            false => self.message.sending().emit_close(),
        }
    }
}

/// Sets the timeout of a socket, but not before it is connected.
fn set_timeout_when_connected(socket: &Socket, delay: Option<Delay>) {
    if socket.connecting() {
        socket.once_this(CONNECTED, move |socket, ()| socket.limit_idle_time(delay));
    } else {
        socket.limit_idle_time(delay);
    }
}

impl Request {
    fn fix_head(&self, sending: &Sending, given: Vec<super::outgoing::Field>) -> Result<(), Error> {
        let text = format!("{} {} HTTP/1.1", self.method, self.path);
        let first = FirstLine {
            text: &text,
            forbids_chunks: false,
        };
        sending.fix_head(&first, given)
    }
}

impl Role for Request {
    fn fix_implicit_head(&self, sending: &Sending) -> Result<(), Error> {
        self.fix_head(sending, Vec::new())
    }

    fn finished(&self, _: &Sending) {}

    // H67.
    fn destroyed(&self, sending: &Sending, error: Option<Error>) {
        let response = self.exchange.response();
        if let Some(response) = &response {
            response.dump();
        }
        let is_over = response.is_some_and(|response| response.complete());
        if is_over && sending.finished() {
            // Nothing is left to cancel, and the agent may have the socket.
            return;
        }
        self.error.replace(error.clone());
        if let Some(socket) = sending.socket() {
            socket.destroy(error);
        }
    }
}

/// The error of a connection that ends without a response.
fn hang_up() -> Error {
    reset("socket hang up")
}

/// The error of a response that was cut off.
fn aborted() -> Error {
    reset("aborted")
}

fn reset(message: &'static str) -> Error {
    Error::with_code("ECONNRESET", message)
}

impl Deref for ClientRequest {
    type Target = OutgoingMessage;

    fn deref(&self) -> &OutgoingMessage {
        &self.message
    }
}

impl Emitter for ClientRequest {
    fn emitter(&self) -> &EventEmitter {
        self.message.emitter()
    }
}

crate::weak_this!(ClientRequest { message, state });

impl fmt::Debug for ClientRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientRequest")
            .field("method", &self.method())
            .field("path", &self.path())
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}
