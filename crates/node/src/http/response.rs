//! Responses of a server.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Deref;
use std::rc::{Rc, Weak};

use super::connection::Connection;
use super::incoming::IncomingMessage;
use super::outgoing::{
    Field, FirstLine, HeaderValue, IntoHeaders, OutgoingMessage, Role, SOCKET, Sending,
    headers_sent, validate_field,
};
use super::status::status_message;
use super::validate::validate_text;
use crate::delay::Delay;
use crate::error::Error;
use crate::events::{Emitter, EventEmitter};
use crate::net::idle_time;
use crate::reason::throw;
use crate::stream::Callback;
use phaseloop::task::next_tick;

/// The answer that asks for the body.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The response of a server to one request. A clone is a handle to the same response. It
/// dereferences to [`OutgoingMessage`], which has the headers and the body. JavaScript:
/// `http.ServerResponse`.
///
/// Responses leave in the order of their requests. A response whose turn has not come has no
/// [`socket`](OutgoingMessage::socket), and keeps what is written.
///
/// A response that is dropped without an [`end`](OutgoingMessage::end) sends nothing, as in Node:
/// the connection waits until a timeout or the peer closes it.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, http, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = http::create_server(|request, response| {
///             if request.url() == "/" {
///                 response.set_header("Content-Type", "text/plain");
///                 return response.end("hello");
///             }
///             response.set_status(404);
///             response.end("no such page");
///         });
///         server.listen_this(("127.0.0.1", 0), |server| server.close());
///     })
/// }
/// ```
#[derive(Clone)]
pub struct ServerResponse {
    message: OutgoingMessage,
    state: Rc<ResponseState>,
    request: IncomingMessage,
}

/// A response that the program cannot see, for the next request.
pub(super) struct SpareResponse {
    message: OutgoingMessage,
    state: Rc<ResponseState>,
}

/// What a response has beyond other messages.
pub(super) struct ResponseState {
    connection: RefCell<Weak<Connection>>,
    status: Cell<u16>,
    status_message: RefCell<Option<Cow<'static, str>>>,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub(super) expects_continue: Cell<bool>,
    sent_continue: Cell<bool>,
}

impl ServerResponse {
    pub(super) fn new(
        request: &IncomingMessage,
        connection: &Rc<Connection>,
        spare: Option<SpareResponse>,
    ) -> Self {
        let SpareResponse { message, state } = spare.unwrap_or_else(SpareResponse::new);
        state.connection.replace(Rc::downgrade(connection));
        let framing = &message.sending().framing;
        framing.sends_date.set(true);
        if request.method() == "HEAD" {
            framing.has_body.set(false);
        }
        let (major, minor) = request.head().version();
        if major < 1 || minor < 1 {
            // H26.
            let codings = request.headers().get("te");
            let accepts = codings.is_some_and(|te| super::validate::has_word(te, "chunked"));
            framing.chunks_by_default.set(accepts);
        }
        Self {
            message,
            state,
            request: request.clone(),
        }
    }

    /// Returns whether the program has no access to the response: this is the only handle.
    pub(super) fn is_unseen(&self) -> bool {
        // The message holds the state as its role.
        Rc::strong_count(&self.state) == 2 && self.message.is_unseen()
    }

    /// Takes an unseen response and its request apart, for the next ones.
    pub(super) fn into_spares(self) -> (SpareResponse, IncomingMessage) {
        let Self {
            message,
            state,
            request,
        } = self;
        message.renew();
        state.renew();
        (SpareResponse { message, state }, request)
    }

    pub(super) fn state(&self) -> &ResponseState {
        &self.state
    }

    /// Returns the request. JavaScript: `response.req`.
    #[must_use]
    pub fn request(&self) -> &IncomingMessage {
        &self.request
    }

    // The head.

    /// Returns the status that the head has or will have. JavaScript: `response.statusCode`.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.state.status.get()
    }

    /// Sets the status. It is checked when the head is fixed. JavaScript: `response.statusCode =
    /// 404`.
    pub fn set_status(&self, status: u16) -> &Self {
        self.state.status.set(status);
        self
    }

    /// Returns the text behind the status, if it was set or the head is fixed. JavaScript:
    /// `response.statusMessage`.
    #[must_use]
    pub fn status_message(&self) -> Option<String> {
        self.state
            .status_message
            .borrow()
            .as_deref()
            .map(str::to_owned)
    }

    /// Sets the text behind the status. It is checked when the head is fixed. JavaScript:
    /// `response.statusMessage = 'Not here'`.
    pub fn set_status_message(&self, text: impl Into<String>) -> &Self {
        let text = Some(text.into()).filter(|text: &String| !text.is_empty());
        self.state.status_message.replace(text.map(Cow::Owned));
        self
    }

    /// Sets whether the head has a `Date`. The default is `true`. JavaScript: `response.sendDate =
    /// false`.
    pub fn send_date(&self, sends: bool) -> &Self {
        self.message.sending().framing.sends_date.set(sends);
        self
    }

    /// Sets whether the connection is kept for further requests, if the program does not set a
    /// `Connection` header. The default follows from the request. JavaScript:
    /// `response.shouldKeepAlive = false`.
    pub fn set_keep_alive(&self, keeps: bool) -> &Self {
        self.message.sending().framing.keeps_alive.set(keeps);
        self
    }

    /// Fixes the head with a status and headers; the head leaves with the first bytes of the body.
    /// JavaScript: `response.writeHead(status, headers)`.
    ///
    /// If headers were [set](OutgoingMessage::set_header) before, these are merged into them and
    /// win; otherwise they are taken as they are, and a name may be repeated.
    ///
    /// # Panics
    ///
    /// [Throws](crate::throw) the error of [`try_write_head`](Self::try_write_head), as Node does.
    /// A header that a peer may choose belongs there.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, http, run};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let server = http::create_server(|_, response| {
    ///             response.write_head(200, [("Content-Type", "text/plain")]).end("hello");
    ///         });
    ///         server.listen_this(("127.0.0.1", 0), |server| server.close());
    ///     })
    /// }
    /// ```
    #[track_caller]
    pub fn write_head<K>(&self, status: u16, headers: impl IntoHeaders<K>) -> &Self {
        match self.try_write_head(status, None, headers) {
            Ok(()) => self,
            Err(error) => throw(error),
        }
    }

    /// Fixes the head like [`write_head`](Self::write_head), but returns the error. `reason` is the
    /// text behind the status; `None` is the usual one. JavaScript: `response.writeHead(status,
    /// reason, headers)`.
    ///
    /// # Errors
    ///
    /// `ERR_HTTP_HEADERS_SENT` if the head is fixed already, `ERR_HTTP_INVALID_STATUS_CODE` if the
    /// status is not from 100 to 999, `ERR_INVALID_CHAR` for a bad reason. For a bad header, see
    /// [`try_set_header`](OutgoingMessage::try_set_header). The response is left as it was.
    pub fn try_write_head<'a, K>(
        &self,
        status: u16,
        reason: impl Into<Option<&'a str>>,
        headers: impl IntoHeaders<K>,
    ) -> Result<(), Error> {
        let (sending, headers) = (self.message.sending(), headers.into_headers());
        self.state.fix_head(sending, status, reason.into(), headers)
    }

    /// Answers with a value as JSON: sets the status and the headers `Content-Type` and
    /// `Content-Length`, and ends the response. JavaScript: `response.status(code).json(value)` of
    /// `express`.
    ///
    /// A `Content-Type` that was set before stays.
    ///
    /// # Panics
    ///
    /// [Throws](crate::throw) if the value cannot be JSON, such as a map whose keys are no texts,
    /// and if the head is fixed already (`ERR_HTTP_HEADERS_SENT`).
    ///
    /// # Examples
    ///
    /// After `cargo add serde_json`:
    ///
    /// ```
    /// use phaseloop_node::{Exit, http, run};
    /// use serde_json::json;
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let server = http::create_server(|request, response| {
    ///             response.json(200, &json!({ "url": request.url() }));
    ///         });
    ///         server.listen_this(("127.0.0.1", 0), |server| server.close());
    ///     })
    /// }
    /// ```
    #[cfg(feature = "json")]
    #[cfg_attr(docsrs, doc(cfg(feature = "json")))]
    #[track_caller]
    pub fn json<T: serde::Serialize + ?Sized>(&self, status: u16, value: &T) {
        let text = match serde_json::to_vec(value) {
            Ok(text) => text,
            Err(error) => throw(Error::type_error(error.to_string())),
        };
        if !self.has_header("content-type") {
            self.set_header("Content-Type", "application/json; charset=utf-8");
        }
        self.set_header("Content-Length", text.len());
        self.write_head(status, ()).end(text);
    }

    // Heads before the head.

    /// Sends `100 Continue`, which asks the client for the body. JavaScript:
    /// `response.writeContinue()`.
    ///
    /// # Panics
    ///
    /// [Throws](crate::throw) `ERR_HTTP_HEADERS_SENT` if the head is fixed.
    // H15.
    pub fn write_continue(&self) {
        self.write_information(CONTINUE.to_vec(), None);
        self.state.sent_continue.set(true);
    }

    /// Sends `100 Continue`, and calls `callback` when it is written. JavaScript:
    /// `response.writeContinue(callback)`.
    ///
    /// # Panics
    ///
    /// [Throws](crate::throw) `ERR_HTTP_HEADERS_SENT` if the head is fixed.
    pub fn write_continue_with(&self, callback: impl FnOnce(Result<(), Error>) + 'static) {
        self.write_information(CONTINUE.to_vec(), Some(Box::new(callback)));
        self.state.sent_continue.set(true);
    }

    /// Sends `102 Processing`. JavaScript: `response.writeProcessing()`.
    ///
    /// # Panics
    ///
    /// [Throws](crate::throw) `ERR_HTTP_HEADERS_SENT` if the head is fixed.
    pub fn write_processing(&self) {
        self.write_information(b"HTTP/1.1 102 Processing\r\n\r\n".to_vec(), None);
    }

    /// Sends `103 Early Hints`: `link`, a text or a list, and then the other hints. Without a link,
    /// nothing is sent. JavaScript: `response.writeEarlyHints(hints)`.
    ///
    /// # Errors
    ///
    /// `ERR_HTTP_HEADERS_SENT` if the head is fixed, `ERR_INVALID_ARG_VALUE` for a link that is not
    /// `<url>` with parameters. A bad name or value of another hint: as in
    /// [`try_set_header`](OutgoingMessage::try_set_header).
    // H32.
    pub fn write_early_hints<N, V>(
        &self,
        hints: impl IntoIterator<Item = (N, V)>,
    ) -> Result<(), Error>
    where
        N: Into<String>,
        V: Into<HeaderValue>,
    {
        let hints = hints.into_iter();
        let hints = hints.map(|(name, value)| (name.into(), value.into()));
        let hints: Vec<Field> = hints.collect();
        hints.iter().try_for_each(validate_field)?;
        let link = hints.iter().find(|(name, _)| name == "link");
        let link = link.map(|(_, value)| value.to_string()).unwrap_or_default();
        if link.is_empty() {
            return Ok(());
        }
        let links = hints.iter().filter(|(name, _)| name == "link");
        for value in links.flat_map(|(_, value)| value.values()) {
            validate_link(value)?;
        }
        if self.message.sending().is_head_fixed() {
            return Err(headers_sent("write"));
        }
        let mut head = format!("HTTP/1.1 103 Early Hints\r\nLink: {link}\r\n");
        for (name, value) in hints.iter().filter(|(name, _)| name != "link") {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let mut bytes = Vec::new();
        super::validate::push_latin1(&mut bytes, &head);
        self.write_information(bytes, None);
        Ok(())
    }

    /// Sends a head before the head.
    fn write_information(&self, bytes: Vec<u8>, callback: Option<Callback>) {
        let sending = self.message.sending();
        if sending.is_head_fixed() {
            throw(headers_sent("write"));
        }
        sending.write_raw(bytes, callback);
    }

    /// Sets the timeout of the socket, now or when the response has one; see
    /// [`Socket::set_timeout`](crate::net::Socket::set_timeout). Zero removes it. The event
    /// is [`server::TIMEOUT`](crate::http::server::TIMEOUT). JavaScript:
    /// `response.setTimeout(delay)`.
    ///
    /// # Panics
    ///
    /// See [`Socket::set_timeout`](crate::net::Socket::set_timeout).
    pub fn set_timeout(&self, delay: impl Into<Delay>) -> &Self {
        let limit = idle_time(delay);
        match self.message.sending().socket() {
            Some(socket) => socket.limit_idle_time(limit),
            None => drop(self.once(SOCKET, move |socket| socket.limit_idle_time(limit))),
        }
        self
    }
}

impl SpareResponse {
    fn new() -> Self {
        let state = Rc::new(ResponseState {
            connection: RefCell::default(),
            status: Cell::new(200),
            status_message: RefCell::default(),
            expects_continue: Cell::new(false),
            sent_continue: Cell::new(false),
        });
        let message = OutgoingMessage::new("ServerResponse", state.clone());
        Self { message, state }
    }
}

impl ResponseState {
    fn connection(&self) -> Option<Rc<Connection>> {
        self.connection.borrow().upgrade()
    }

    fn renew(&self) {
        // Without `..`, so that a new field is thought of here.
        let Self {
            connection,
            status,
            status_message,
            expects_continue,
            sent_continue,
        } = self;
        connection.take();
        status.set(200);
        status_message.take();
        expects_continue.set(false);
        sent_continue.set(false);
    }

    /// Fixes the head.
    // H16, H20, H21, H25, H29.
    fn fix_head(
        &self,
        message: &Sending,
        status: u16,
        reason: Option<&str>,
        headers: Vec<Field>,
    ) -> Result<(), Error> {
        if message.is_head_fixed() {
            return Err(headers_sent("write"));
        }
        if !(100..=999).contains(&status) {
            let error = Error::range_error(format!("Invalid status code: {status}"));
            return Err(error.coded("ERR_HTTP_INVALID_STATUS_CODE"));
        }
        let known = self.status_message.borrow().clone();
        let text = match (reason, known) {
            (Some(reason), _) => Cow::Owned(reason.to_owned()),
            (None, Some(text)) => text,
            (None, None) => Cow::Borrowed(status_message(status).unwrap_or("unknown")),
        };
        if let Cow::Owned(text) = &text {
            validate_text("statusMessage", None, text)?;
        }
        let framing = &message.framing;
        let before = (framing.has_body.get(), framing.keeps_alive.get());
        if matches!(status, 100..=199 | 204 | 304) {
            framing.has_body.set(false);
        }
        if self.expects_continue.get() && !self.sent_continue.get() {
            framing.keeps_alive.set(false);
        }
        let line = match status {
            200 if text == "OK" => Cow::Borrowed("HTTP/1.1 200 OK"),
            _ => Cow::Owned(format!("HTTP/1.1 {status} {text}")),
        };
        let first = FirstLine {
            text: &line,
            forbids_chunks: matches!(status, 204 | 304),
        };
        let fixed = message.fix_head(&first, headers);
        if fixed.is_err() {
            framing.has_body.set(before.0);
            framing.keeps_alive.set(before.1);
        } else {
            self.status.set(status);
            self.status_message.replace(Some(text));
        }
        fixed
    }
}

impl Role for ResponseState {
    fn fix_implicit_head(&self, message: &Sending) -> Result<(), Error> {
        self.fix_head(message, self.status.get(), None, Vec::new())
    }

    fn finished(&self, _: &Sending) {
        if let Some(connection) = self.connection() {
            connection.response_finished();
        }
    }

    fn destroyed(&self, message: &Sending, error: Option<Error>) {
        match message.socket() {
            Some(socket) => socket.destroy(error),
            None => {
                let message = message.me();
                next_tick(move || message.close_before_turn());
            }
        }
    }

    fn kept_bytes_changed(&self, added: usize, removed: usize) {
        if let Some(connection) = self.connection() {
            connection.kept_bytes_changed(added, removed);
        }
    }
}

/// Checks a link: `<url>`, and parameters behind semicolons.
fn validate_link(text: &str) -> Result<(), Error> {
    let refused = || {
        let message = format!(
            "The argument 'hints' must be an array or string of format \"</styles.css>; rel=preload; as=style\". \
             Received '{text}'"
        );
        Error::type_error(message).coded("ERR_INVALID_ARG_VALUE")
    };
    let rest = text.strip_prefix('<').ok_or_else(refused)?;
    let (_, mut rest) = rest.split_once('>').ok_or_else(refused)?;
    while !rest.is_empty() {
        let parameter = rest.trim_start().strip_prefix(';').ok_or_else(refused)?;
        let parameter = parameter.trim_start();
        let end = parameter.find(|c: char| c == ';' || c.is_whitespace());
        let (parameter, after) = parameter.split_at(end.unwrap_or(parameter.len()));
        if !is_link_parameter(parameter) {
            return Err(refused());
        }
        rest = after;
    }
    Ok(())
}

/// Returns whether a text is `name`, `name=value` or `name="value"`.
fn is_link_parameter(text: &str) -> bool {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let quoted = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    let value = quoted.unwrap_or(value);
    !name.is_empty() && !name.contains('"') && !value.contains('"')
}

impl Deref for ServerResponse {
    type Target = OutgoingMessage;

    fn deref(&self) -> &OutgoingMessage {
        &self.message
    }
}

impl Emitter for ServerResponse {
    fn emitter(&self) -> &EventEmitter {
        self.message.emitter()
    }
}

// Strong: the last events come when nothing else holds the response any more. Every response
// closes, and the close drops the listeners.
impl crate::events::WeakThis for ServerResponse {
    fn weak_this(&self) -> Box<dyn Fn() -> Option<Self>> {
        let this = self.clone();
        Box::new(move || Some(this.clone()))
    }
}

impl fmt::Debug for ServerResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerResponse")
            .field("status", &self.status())
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}
