//! Received messages: the requests of a server, the responses of a client.

use std::cell::{Cell, OnceCell, Ref, RefCell, RefMut};
use std::fmt;
use std::rc::Rc;

use super::extensions::Extensions;
use super::headers::{Headers, latin1, raw};
use super::parser::{Head, Method};
use crate::delay::Delay;
use crate::error::Error;
use crate::events::{ERROR, Emitter, Event, EventEmitter, ListenerId, Listening};
use crate::net::{Socket, idle_time};
use crate::stream::{Done, Readable, Source, finished};
use crate::string_decoder::Encoding;
use phaseloop::task::next_tick;

/// A received message was cut off, or destroyed before its end. JavaScript: `'aborted'`.
pub const ABORTED: Event<()> = Event::new("aborted");

/// A received message: a request of a server, or a response of a client. A clone is a handle to the
/// same message. JavaScript: `http.IncomingMessage`.
///
/// The body is a [`Readable`] stream of bytes. It flows when it is read; a full buffer stops
/// the peer. [`END`](crate::stream::END) is emitted on a tick, after the last byte was read
/// and the message is complete, and [`CLOSE`](crate::stream::CLOSE) after that.
///
/// A message that is cut off emits [`ABORTED`], then [`ERROR`](crate::events::ERROR) with the
/// code `ECONNRESET` if there is a listener, and `close`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, Exit, http, run, stream::END};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = http::create_server(|request, response| {
///             println!("{} {}", request.method(), request.url());
///             request.on_data(|bytes| println!("{} bytes", bytes.len()));
///             let response = response.clone();
///             request.on(END, move |()| response.end("thanks"));
///         });
///         server.listen_this(("127.0.0.1", 0), |server| server.close());
///     })
/// }
/// ```
#[derive(Clone)]
pub struct IncomingMessage {
    readable: Readable<Vec<u8>>,
    inner: Rc<Inner>,
}

struct Inner {
    head: Head,
    socket: Rc<Socket>,
    options: IncomingOptions,
    raw_headers: OnceCell<Vec<(String, String)>>,
    headers: OnceCell<Headers>,
    status_message: OnceCell<String>,
    trailers: OnceCell<Head>,
    raw_trailer_list: OnceCell<Vec<(String, String)>>,
    trailer_headers: OnceCell<Headers>,
    no_trailers: Headers,
    complete: Cell<bool>,
    aborted: Cell<bool>,
    upgrade: Cell<bool>,
    /// Whether the program has begun to read the body.
    is_consuming: Cell<bool>,
    /// Whether the body is dropped.
    is_dumped: Cell<bool>,
    /// Whether the reader has left the body: the connection stays for the response.
    is_left: Cell<bool>,
    /// What the program has added. Most messages have nothing.
    added: OnceCell<Box<Added>>,
}

/// What the program has added to a message.
#[derive(Default)]
struct Added {
    urls: Urls,
    extensions: RefCell<Extensions>,
}

/// The URLs that the program has set, the last one at the end. A list, so that the URL is a
/// reference: a router sets a few of them.
#[derive(Default)]
struct Urls(OnceCell<(Box<str>, Box<Self>)>);

impl Urls {
    fn last(&self) -> Option<&str> {
        let (url, next) = self.0.get()?;
        Some(next.last().unwrap_or(url))
    }

    fn push(&self, url: Box<str>) {
        let mut end = self;
        while let Some((_, next)) = end.0.get() {
            end = next;
        }
        let _ = end.0.set((url, Box::default()));
    }
}

/// The body of a message that was not seen by the program, for the next message.
pub(super) struct SpareBody(Readable<Vec<u8>>);

/// How a message shows its headers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IncomingOptions {
    /// Whether headers that make sense only once are joined too.
    pub(super) joins_duplicates: bool,
}

impl IncomingMessage {
    pub(super) fn new(
        head: Head,
        socket: &Rc<Socket>,
        options: IncomingOptions,
        spare: Option<SpareBody>,
    ) -> Self {
        let inner = Rc::new(Inner {
            upgrade: Cell::new(head.is_upgrade()),
            head,
            socket: socket.clone(),
            options,
            raw_headers: OnceCell::new(),
            headers: OnceCell::new(),
            status_message: OnceCell::new(),
            trailers: OnceCell::new(),
            raw_trailer_list: OnceCell::new(),
            trailer_headers: OnceCell::new(),
            no_trailers: Headers::default(),
            complete: Cell::new(false),
            aborted: Cell::new(false),
            is_consuming: Cell::new(false),
            is_dumped: Cell::new(false),
            is_left: Cell::new(false),
            added: OnceCell::new(),
        });
        let source: Rc<dyn Source<Vec<u8>>> = inner.clone();
        let readable = match spare {
            Some(SpareBody(readable)) => {
                readable.set_source(Some(source));
                readable
            }
            None => Readable::of_source("IncomingMessage", source),
        };
        Self { readable, inner }
    }

    /// Returns whether the program has no access to the message and its body: `handles` are all
    /// that exist.
    pub(super) fn is_unseen(&self, handles: usize) -> bool {
        // The stream holds the message as its source.
        Rc::strong_count(&self.inner) == handles + 1
            && Rc::weak_count(&self.inner) == 0
            && self.readable.is_untouched(handles)
    }

    /// Returns whether both are handles to one message.
    pub(super) fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.inner, &other.inner)
    }

    /// The message is complete, has no body, and is [unseen](Self::is_unseen): nothing is emitted.
    pub(super) fn complete_unseen(&self) {
        self.inner.complete.set(true);
    }

    /// Takes an unseen message apart, for the next one.
    pub(super) fn into_spares(self) -> (SpareBody, Option<Head>) {
        let Self { readable, inner } = self;
        readable.set_source(None);
        let head = Rc::into_inner(inner).map(|inner| inner.head);
        (SpareBody(readable), head)
    }

    // The head.

    /// Returns the method of a request, as it was sent. Empty for a response. JavaScript:
    /// `message.method`.
    #[must_use]
    pub fn method(&self) -> &'static str {
        self.inner.head.method().map_or("", Method::name)
    }

    /// Returns the URL of a request, as it was sent or [set](Self::set_url). Empty for a response.
    /// JavaScript: `message.url`.
    #[must_use]
    pub fn url(&self) -> &str {
        let added = self.inner.added.get();
        if let Some(url) = added.and_then(|added| added.urls.last()) {
            return url;
        }
        // The parser accepts ASCII only.
        let line = self.inner.head.line();
        let is_request = self.inner.head.method().is_some();
        let url = std::str::from_utf8(line).ok();
        url.filter(|_| is_request).unwrap_or_default()
    }

    /// Sets what [`url`](Self::url) returns, as a router does for the handlers below a path.
    /// JavaScript: `message.url = url`.
    ///
    /// The message keeps the earlier URLs until it is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, http, run};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let server = http::create_server(|request, response| {
    ///             if let Some(below) = request.url().strip_prefix("/api") {
    ///                 request.set_url(below);
    ///             }
    ///             response.end(request.url());
    ///         });
    ///         server.listen_this(("127.0.0.1", 0), |server| server.close());
    ///     })
    /// }
    /// ```
    pub fn set_url(&self, url: impl Into<Box<str>>) {
        self.added().urls.push(url.into());
    }

    /// Returns the values that the program has added to the message. JavaScript: the properties of
    /// `message`, such as `message.user`.
    ///
    /// # Panics
    ///
    /// While the guard of [`extensions_mut`](Self::extensions_mut) lives.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, http, run};
    ///
    /// struct User(String);
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let server = http::create_server(|request, response| {
    ///             request.extensions_mut().insert(User("Ada".to_owned()));
    ///             let extensions = request.extensions();
    ///             let user = extensions.get::<User>().unwrap();
    ///             response.end(&user.0);
    ///         });
    ///         server.listen_this(("127.0.0.1", 0), |server| server.close());
    ///     })
    /// }
    /// ```
    #[must_use]
    pub fn extensions(&self) -> Ref<'_, Extensions> {
        self.added().extensions.borrow()
    }

    /// Returns the values that the program has added to the message, to change them.
    ///
    /// The values of a request are dropped after the `close` of its response, so that a value may
    /// hold the request. Those of a response of a client are dropped with the response.
    ///
    /// # Panics
    ///
    /// While a guard of [`extensions`](Self::extensions) or of this lives.
    #[must_use]
    pub fn extensions_mut(&self) -> RefMut<'_, Extensions> {
        self.added().extensions.borrow_mut()
    }

    /// Drops what the program has added: the exchange is over. A value may hold the message.
    pub(super) fn drop_extensions(&self) {
        if let Some(added) = self.inner.added.get() {
            let extensions = added.extensions.take();
            drop(extensions);
        }
    }

    fn added(&self) -> &Added {
        self.inner.added.get_or_init(Box::default)
    }

    /// Returns the version: `"1.1"`, `"1.0"`, `"0.9"` or `"2.0"`. JavaScript:
    /// `message.httpVersion`.
    #[must_use]
    pub fn http_version(&self) -> &'static str {
        match self.inner.head.version() {
            (0, _) => "0.9",
            (1, 0) => "1.0",
            (1, _) => "1.1",
            _ => "2.0",
        }
    }

    /// Returns the status of a response. `None` for a request. JavaScript: `message.statusCode`.
    #[must_use]
    pub fn status_code(&self) -> Option<u16> {
        let head = &self.inner.head;
        head.method().is_none().then(|| head.status())
    }

    /// Returns the text behind the status of a response. JavaScript: `message.statusMessage`.
    #[must_use]
    pub fn status_message(&self) -> &str {
        let head = &self.inner.head;
        if head.method().is_some() {
            return "";
        }
        self.inner
            .status_message
            .get_or_init(|| latin1(head.line()))
    }

    /// Returns the headers. JavaScript: `message.headers`.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        let inner = &self.inner;
        let joins = inner.options.joins_duplicates;
        let make = || Headers::of(&inner.head, joins);
        inner.headers.get_or_init(make)
    }

    /// Returns the names and values of the header lines, as they were received. JavaScript:
    /// `message.rawHeaders`.
    #[must_use]
    pub fn raw_headers(&self) -> &[(String, String)] {
        let inner = &self.inner;
        inner.raw_headers.get_or_init(|| raw(&inner.head))
    }

    /// Returns the trailers of a chunked body. They are empty until the message is complete.
    /// JavaScript: `message.trailers`.
    #[must_use]
    pub fn trailers(&self) -> &Headers {
        let inner = &self.inner;
        let Some(trailers) = inner.trailers.get() else {
            return &inner.no_trailers;
        };
        let joins = inner.options.joins_duplicates;
        let make = || Headers::of(trailers, joins);
        inner.trailer_headers.get_or_init(make)
    }

    /// Returns the names and values of the trailers, as they were received. JavaScript:
    /// `message.rawTrailers`.
    #[must_use]
    pub fn raw_trailers(&self) -> &[(String, String)] {
        let inner = &self.inner;
        match inner.trailers.get() {
            Some(trailers) => inner.raw_trailer_list.get_or_init(|| raw(trailers)),
            None => &[],
        }
    }

    /// Returns whether the message has arrived as a whole. JavaScript: `message.complete`.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.inner.complete.get()
    }

    /// Returns whether the message was cut off. JavaScript: `message.aborted`.
    #[must_use]
    pub fn aborted(&self) -> bool {
        self.inner.aborted.get()
    }

    /// Returns whether the message asks for another protocol, and the program listens for that.
    /// JavaScript: `message.upgrade`.
    #[must_use]
    pub fn upgrade(&self) -> bool {
        self.inner.upgrade.get()
    }

    /// Returns the socket of the connection. JavaScript: `message.socket`.
    #[must_use]
    pub fn socket(&self) -> &Socket {
        &self.inner.socket
    }

    /// Sets the timeout of the socket; see [`Socket::set_timeout`]. Zero removes it. The event of a
    /// request is [`server::TIMEOUT`](crate::http::server::TIMEOUT), that of a response
    /// [`net::TIMEOUT`](crate::net::TIMEOUT). JavaScript: `message.setTimeout(delay)`.
    ///
    /// # Panics
    ///
    /// See [`Socket::set_timeout`].
    pub fn set_timeout(&self, delay: impl Into<Delay>) -> &Self {
        self.inner.socket.limit_idle_time(idle_time(delay));
        self
    }

    // The body.

    /// Returns the body as a stream.
    #[must_use]
    pub fn readable(&self) -> &Readable<Vec<u8>> {
        &self.readable
    }

    /// Adds a listener for pieces of the body; see [`Readable::on_data`].
    pub fn on_data(&self, listener: impl Fn(&Vec<u8>) + 'static) -> ListenerId {
        self.readable.on_data(listener)
    }

    /// Adds a listener for pieces of the body that gets the message as its first argument; see
    /// [`Emitter::on_this`].
    pub fn on_data_this(
        &self,
        listener: impl Fn(&Listening<Self>, &Vec<u8>) + 'static,
    ) -> ListenerId {
        self.on_this(Readable::<Vec<u8>>::DATA, listener)
    }

    /// Decodes the body from now on; see [`Readable::set_encoding`]. JavaScript:
    /// `message.setEncoding('utf8')`.
    pub fn set_encoding(&self, encoding: Encoding) -> &Self {
        self.readable.set_encoding(encoding);
        self
    }

    /// Adds a listener for pieces of text; see [`Readable::on_text`].
    pub fn on_text(&self, listener: impl Fn(&str) + 'static) -> ListenerId {
        self.readable.on_text(listener)
    }

    /// Lets the body flow. It is dropped if no listener for `data` exists. JavaScript:
    /// `message.resume()`.
    pub fn resume(&self) -> &Self {
        self.readable.resume();
        self
    }

    /// Stops the flow of the body. JavaScript: `message.pause()`.
    pub fn pause(&self) -> &Self {
        self.readable.pause();
        self
    }

    /// Destroys the message, and the connection if the message is not complete and read.
    /// JavaScript: `message.destroy(error)`.
    // H52.
    pub fn destroy(&self, error: Option<Error>) {
        self.readable.destroy(error);
    }

    /// Returns whether the message was destroyed. JavaScript: `message.destroyed`.
    #[must_use]
    pub fn destroyed(&self) -> bool {
        self.readable.destroyed()
    }

    // The connection's side.

    pub(super) fn head(&self) -> &Head {
        &self.inner.head
    }

    /// Returns the first header with a name in lower case.
    pub(super) fn find(&self, name: &[u8]) -> Option<&[u8]> {
        let mut fields = self.inner.head.fields();
        let is_it = |(known, _): &(&[u8], &[u8])| known.eq_ignore_ascii_case(name);
        fields.find(is_it).map(|(_, value)| value)
    }

    pub(super) fn set_upgrade(&self, upgrade: bool) {
        self.inner.upgrade.set(upgrade);
    }

    /// Adds a piece of the body. Stops the socket if the buffer is full.
    pub(super) fn push(&self, bytes: &[u8]) {
        if !self.inner.is_dumped.get() && !self.readable.push(bytes.to_vec()) {
            self.inner.socket.stop_reading();
        }
    }

    /// The message is complete.
    pub(super) fn push_end(&self, trailers: Option<Head>) {
        self.inner.complete.set(true);
        if let Some(trailers) = trailers {
            let known = self.inner.trailers.set(trailers);
            debug_assert!(known.is_ok(), "a message ends once");
        }
        self.readable.push_end();
    }

    /// Drops the body if the program has not begun to read it, and will not soon.
    // H8.
    pub(super) fn dump_if_unread(&self) {
        if !self.inner.is_consuming.get() && !self.readable.resumes_soon() {
            self.dump();
        }
    }

    /// Drops the body.
    pub(crate) fn dump(&self) {
        if !self.inner.is_dumped.replace(true) {
            self.readable.remove_all(Readable::<Vec<u8>>::DATA);
            let is_empty = self.complete() && self.readable.length() == 0;
            if is_empty && !self.readable.destroyed() {
                // Nothing is left to read: 'end' needs no flow.
                self.readable.read_size(0);
            } else {
                self.readable.resume();
            }
        }
    }
}

impl Source<Vec<u8>> for Inner {
    fn read(self: Rc<Self>, readable: &Readable<Vec<u8>>) {
        if !self.is_consuming.replace(true) {
            readable.waits_for_reader(false);
        }
        self.socket.read_on();
    }

    /// The reader gives the body up. The rest is dropped, and the request can still be answered.
    fn leave(&self) -> bool {
        self.is_left.set(true);
        self.is_dumped.set(true);
        self.socket.read_on();
        true
    }

    /// Destroys the connection of a message that is not complete and read.
    // H51, H52.
    fn destroy(self: Rc<Self>, readable: &Readable<Vec<u8>>, error: Option<Error>, done: Done) {
        if !readable.ended() || !self.complete.get() {
            self.aborted.set(true);
            readable.emit(ABORTED, ());
        }
        if error.is_none() && !self.aborted.get() {
            return done.ok();
        }
        if !self.aborted.get() || self.socket.destroyed() || self.is_left.get() {
            let readable = readable.clone();
            return next_tick(move || report(&readable, error, done));
        }
        self.socket.destroy(error.clone());
        let readable = readable.clone();
        finished(self.socket.duplex()).then(move |result| {
            let known = result.err();
            let known = known.filter(|error| error.code() != Some("ERR_STREAM_PREMATURE_CLOSE"));
            let error = known.or(error);
            next_tick(move || report(&readable, error, done));
        });
    }
}

/// Reports the error of a message, if the program listens for it.
// H57.
fn report(readable: &Readable<Vec<u8>>, error: Option<Error>, done: Done) {
    let is_heard = readable.listener_count(ERROR) > 0;
    done.pass(error.filter(|_| is_heard));
}

impl Emitter for IncomingMessage {
    fn emitter(&self) -> &EventEmitter {
        self.readable.emitter()
    }
}

crate::weak_this!(IncomingMessage { readable; inner });

impl fmt::Debug for IncomingMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("IncomingMessage");
        match self.status_code() {
            Some(status) => shown.field("status", &status),
            None => shown
                .field("method", &self.method())
                .field("url", &self.url()),
        };
        shown
            .field("complete", &self.complete())
            .finish_non_exhaustive()
    }
}
