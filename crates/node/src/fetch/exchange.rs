//! A request on its way: the connection, redirections, failures and the abort.
//!
//! ```text
//!   send ──> request ──┬── response ──> resolved, the body follows
//!              ^       ├── redirection ──┐
//!              └───────┼─────────────────┘
//!                      └── error, abort, time ──> rejected
//! ```

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use url::Url;

use super::body::Content;
use super::data_url::DataUrl;
use super::decode::accepted;
use super::incoming::body_of;
use super::response::{Head, Response};
use super::{Fetch, Redirect, failed, other_side_closed};
use crate::abort::{AbortListener, AbortSignal};
use crate::error::Error;
use crate::events::{ERROR, Emitter as _};
use crate::http::{
    self, ClientRequest, IncomingMessage, RequestOptions, fetch_agent, is_token, request_at,
};
use crate::promise::Deferred;
use crate::site::Site;
use crate::stream::{Readable, pipeline};
use crate::timers::{Timeout, set_timeout_at};
use phaseloop::task::next_tick;

/// The largest number of redirections.
const MOST_REDIRECTIONS: usize = 20;

/// How long the connection may take, in milliseconds.
const CONNECT_TIMEOUT: u32 = 10_000;

/// How long the head of a response may take, in milliseconds.
const HEAD_TIMEOUT: u32 = 300_000;

/// A request that was sent.
pub(super) struct Exchange {
    /// `None` once it is settled: the response holds this value.
    deferred: RefCell<Option<Deferred<Response>>>,
    /// What the next request is made of: redirections change it.
    plan: RefCell<Plan>,
    redirect: Redirect,
    redirections: Cell<usize>,
    request: RefCell<Option<ClientRequest>>,
    timeout: RefCell<Option<Timeout>>,
    abort: RefCell<Option<(AbortSignal, AbortListener)>>,
    /// Ends the body of the response, once it is there.
    on_abort: RefCell<Option<OnAbort>>,
}

/// Ends the body of a response with the reason of an abort.
type OnAbort = Box<dyn FnOnce(Error)>;

struct Plan {
    url: Url,
    method: String,
    headers: Vec<(String, String)>,
    body: Option<super::Body>,
    /// The line of the program that asked for it.
    site: Site,
}

impl Exchange {
    pub(super) fn start(fetch: Fetch, url: Url, deferred: Deferred<Response>) {
        let mut headers = fetch.headers;
        let content_type = fetch.body.as_ref().and_then(|body| body.content_type);
        if let Some(content_type) = content_type.filter(|_| !has(&headers, "content-type")) {
            headers.push(("content-type".to_owned(), content_type.to_owned()));
        }
        let exchange = Rc::new(Self {
            deferred: RefCell::new(Some(deferred)),
            plan: RefCell::new(Plan {
                url,
                method: fetch.method,
                headers,
                body: fetch.body,
                site: fetch.site,
            }),
            redirect: fetch.redirect,
            redirections: Cell::new(0),
            request: RefCell::default(),
            timeout: RefCell::default(),
            abort: RefCell::default(),
            on_abort: RefCell::default(),
        });
        if let Some(signal) = &fetch.signal {
            exchange.heed(signal);
        }
        let scheme = exchange.plan.borrow().url.scheme().to_owned();
        match &*scheme {
            "http" | "https" => exchange.request(),
            "data" => exchange.read_data_url(),
            "about" => exchange.refuse("about scheme is not supported"),
            "file" => exchange.refuse("not implemented... yet..."),
            _ => exchange.refuse("unknown scheme"),
        }
    }

    /// Returns the line of the program that asked for it.
    pub(super) fn site(&self) -> Site {
        self.plan.borrow().site
    }

    /// Fails without a request.
    fn refuse(&self, why: &'static str) {
        self.fail(failed(Error::new(why)));
    }

    /// Answers with what the URL holds.
    fn read_data_url(&self) {
        let (url, is_head) = {
            let plan = self.plan.borrow();
            (plan.url.clone(), plan.method == "HEAD")
        };
        let Some(data) = DataUrl::of(&url) else {
            return self.refuse("failed to fetch the data URL");
        };
        let body = Readable::bytes().build();
        body.push(data.body);
        body.push_end();
        let head = Head::of_data(&data.content_type, url);
        let deferred = self.deferred.take();
        self.over();
        if let Some(deferred) = deferred {
            deferred.resolve(Response::new(head, (!is_head).then_some(body)));
        }
    }

    // H93.
    fn heed(self: &Rc<Self>, signal: &AbortSignal) {
        // Weak: the request, and later the body, hold this value while the signal matters.
        let (exchange, by) = (Rc::downgrade(self), signal.downgrade());
        let listener = signal.on_abort(move || {
            let reason = by.upgrade().and_then(|signal| signal.reason());
            if let (Some(exchange), Some(reason)) = (exchange.upgrade(), reason) {
                exchange.aborted(reason);
            }
        });
        self.abort.replace(Some((signal.clone(), listener)));
    }

    fn aborted(&self, reason: Error) {
        let on_abort = self.on_abort.take();
        match on_abort {
            Some(on_abort) => on_abort(reason),
            None => self.reject(reason),
        }
        self.end_request();
    }

    /// Forgets the signal: the response was read, or there is none.
    pub(super) fn forget_signal(&self) {
        let abort = self.abort.take();
        if let Some((signal, listener)) = abort {
            signal.off(listener);
        }
    }

    fn end_request(&self) {
        self.stop_timer();
        let request = self.request.take();
        if let Some(request) = request {
            request.destroy(None);
        }
    }

    fn reject(&self, error: Error) {
        let deferred = self.deferred.take();
        if let Some(deferred) = deferred {
            deferred.reject(error);
        }
    }

    /// Rejects the promise, unless it is settled.
    fn fail(&self, error: Error) {
        self.stop_timer();
        self.forget_signal();
        self.reject(error);
        self.end_request();
    }

    // Requests.

    /// Sends the request as it is planned now.
    fn request(self: &Rc<Self>) {
        let begun = self.plan.borrow().begin();
        let request = match begun {
            Ok(request) => request,
            Err(error) => return self.fail(failed(error)),
        };
        self.request.replace(Some(request.clone()));
        self.listen(&request);
        self.limit_time(&request);
        let body = self.plan.borrow().body.clone();
        match body.map(|body| body.content) {
            None => request.end(()),
            Some(Content::Bytes(bytes)) => request.end(bytes),
            Some(Content::Stream(stream)) => {
                let exchange = Rc::downgrade(self);
                pipeline(&stream)
                    .into(request.writable())
                    .then(move |written| {
                        if let (Err(error), Some(exchange)) = (written, exchange.upgrade()) {
                            exchange.request_failed(&error);
                        }
                    });
            }
        }
    }

    fn listen(self: &Rc<Self>, request: &ClientRequest) {
        let (errs, responds) = (self.clone(), self.clone());
        let has_response = Rc::new(Cell::new(false));
        let is_late = has_response.clone();
        request.on(ERROR, move |error| {
            // What follows a response is no fault of it: the body has errors of its own.
            if !is_late.get() {
                errs.request_failed(error);
            }
        });
        request.on_response(move |response| {
            has_response.set(true);
            responds.responded(response);
        });
        // Neither was asked for.
        let weak = Rc::downgrade(self);
        request.once(http::CONTINUE, move |()| unexpected(&weak, "bad response"));
        let weak = Rc::downgrade(self);
        request.once(http::UPGRADE, move |handover| {
            handover.socket.destroy(None);
            unexpected(&weak, "bad upgrade");
        });
    }

    /// Fails the request if the connection or the head of the response takes too long.
    fn limit_time(self: &Rc<Self>, request: &ClientRequest) {
        let exchange = Rc::downgrade(self);
        let arm = move |delay: u32, code: &'static str, message: &'static str| {
            let weak = exchange.clone();
            let Some(exchange) = exchange.upgrade() else {
                return;
            };
            exchange.stop_timer();
            let late = move || timed_out(&weak, code, message);
            let timer = set_timeout_at(delay.into(), exchange.site(), late);
            timer.unref();
            exchange.timeout.replace(Some(timer));
        };
        arm(
            CONNECT_TIMEOUT,
            "UND_ERR_CONNECT_TIMEOUT",
            "Connect Timeout Error",
        );
        request.once(http::SOCKET, move |socket| {
            let arm = move || {
                arm(
                    HEAD_TIMEOUT,
                    "UND_ERR_HEADERS_TIMEOUT",
                    "Headers Timeout Error",
                );
            };
            if socket.connecting() {
                socket.once(crate::net::CONNECT, move |()| arm());
            } else {
                arm();
            }
        });
    }

    fn stop_timer(&self) {
        let timer = self.timeout.take();
        if let Some(timer) = timer {
            timer.close();
        }
    }

    // H96.
    fn request_failed(&self, error: &Error) {
        let cause = match (error.code(), error.message()) {
            (Some("ECONNRESET"), "socket hang up") => other_side_closed(),
            (Some("HPE_HEADER_OVERFLOW"), _) => {
                let error = Error::named("HeadersOverflowError", "Headers Overflow Error");
                error.coded("UND_ERR_HEADERS_OVERFLOW")
            }
            (Some(code), text) if code.starts_with("HPE_") => {
                let what = text.strip_prefix("Parse Error: ").unwrap_or(text);
                let text = format!("Response does not match the HTTP/1.1 protocol ({what})");
                Error::named("HTTPParserError", text)
            }
            _ => error.clone(),
        };
        self.fail(failed(cause));
    }

    // Responses.

    // H90.
    fn responded(self: &Rc<Self>, incoming: &IncomingMessage) {
        self.stop_timer();
        let status = incoming.status_code().unwrap_or_default();
        let location = incoming.headers().get("location");
        let is_redirection = matches!(status, 301 | 302 | 303 | 307 | 308);
        if let (true, Some(location)) = (is_redirection, location) {
            match self.redirect {
                Redirect::Follow => return self.follow(incoming, status, location),
                Redirect::Error => {
                    incoming.dump();
                    return self.fail(failed(Error::new("unexpected redirect")));
                }
                Redirect::Manual => {}
            }
        }
        let (url, is_head) = {
            let plan = self.plan.borrow();
            (plan.url.clone(), plan.method == "HEAD")
        };
        let head = Head::new(incoming, url, self.redirections.get() > 0);
        let has_body = !is_head && !matches!(status, 101 | 103 | 204 | 205 | 304);
        let body = match has_body.then(|| body_of(self, incoming)).transpose() {
            Ok(body) => body,
            Err(error) => {
                incoming.dump();
                return self.fail(failed(error));
            }
        };
        if body.is_none() {
            incoming.dump();
            self.over();
        }
        let deferred = self.deferred.take();
        if let Some(deferred) = deferred {
            deferred.resolve(Response::new(head, body));
        }
    }

    /// Called with what ends the body when the signal is aborted.
    pub(super) fn when_aborted(&self, end: impl FnOnce(Error) + 'static) {
        self.on_abort.replace(Some(Box::new(end)));
    }

    /// The body has ended: nothing is left to abort.
    pub(super) fn over(&self) {
        self.forget_signal();
        let (request, on_abort) = (self.request.take(), self.on_abort.take());
        drop((request, on_abort));
    }

    // H94.
    fn follow(self: &Rc<Self>, incoming: &IncomingMessage, status: u16, location: &str) {
        self.leave(incoming);
        self.redirections.set(self.redirections.get() + 1);
        if self.redirections.get() > MOST_REDIRECTIONS {
            return self.fail(failed(Error::new("redirect count exceeded")));
        }
        let redirected = self.plan.borrow_mut().redirect(status, location);
        match redirected {
            Ok(()) => self.request(),
            Err(error) => self.fail(failed(error)),
        }
    }

    /// Leaves a redirection. Its connection is used again if its body is there already.
    fn leave(&self, incoming: &IncomingMessage) {
        let request = self.request.take();
        incoming.dump();
        let incoming = incoming.clone();
        next_tick(move || {
            if let Some(request) = request.filter(|_| !incoming.complete()) {
                request.destroy(None);
            }
        });
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.forget_signal();
    }
}

fn unexpected(exchange: &Weak<Exchange>, message: &'static str) {
    if let Some(exchange) = exchange.upgrade() {
        let error = Error::named("SocketError", message);
        exchange.fail(failed(error.coded("UND_ERR_SOCKET")));
    }
}

fn timed_out(exchange: &Weak<Exchange>, code: &'static str, message: &'static str) {
    if let Some(exchange) = exchange.upgrade() {
        let name = message.replace(' ', "");
        exchange.fail(failed(Error::named(name, message).coded(code)));
    }
}

fn is_connection_word(value: &str) -> bool {
    value.split(',').all(|word| is_token(word.trim()))
}

/// The bytes of a location are UTF-8, if they are not ASCII.
fn location_text(latin1: &str) -> Cow<'_, str> {
    if latin1.is_ascii() {
        return latin1.into();
    }
    let bytes: Vec<u8> = latin1.chars().map(|char| char as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned().into()
}

fn has(headers: &[(String, String)], name: &str) -> bool {
    headers
        .iter()
        .any(|(known, _)| known.eq_ignore_ascii_case(name))
}

/// Headers that describe a body, which a redirection may drop.
const OF_BODY: [&str; 5] = [
    "content-encoding",
    "content-language",
    "content-location",
    "content-type",
    "content-length",
];

/// Headers of requests that depend on what the program has stored.
const CONDITIONS: [&str; 5] = [
    "if-modified-since",
    "if-none-match",
    "if-unmodified-since",
    "if-match",
    "if-range",
];

/// Headers that another origin must not see.
const SECRET: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "host"];

impl Plan {
    /// Begins the request.
    fn begin(&self) -> Result<ClientRequest, Error> {
        let host = self
            .url
            .host_str()
            .ok_or_else(|| Error::new("unknown scheme"))?;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let port = self.url.port_or_known_default().unwrap_or(80);
        let path = match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        };
        let agent = fetch_agent(self.url.scheme()).ok_or_else(|| Error::new("unknown scheme"))?;
        let options = RequestOptions::new((bare, port))
            .exact_method(&self.method)
            .path(path)
            .raw_headers(self.lines()?)
            .agent(&agent);
        request_at(options, self.site)
    }

    /// The header lines, in the order in which Node writes them.
    // H95.
    fn lines(&self) -> Result<Vec<(String, String)>, Error> {
        let mut lines = vec![("host".to_owned(), self.host_line())];
        let closes = self.closes();
        let connection = if closes { "close" } else { "keep-alive" };
        lines.push(("connection".to_owned(), connection.to_owned()));
        for (name, value) in &self.headers {
            match &*name.to_ascii_lowercase() {
                "host" => {}
                "connection" if is_connection_word(value) => {}
                "content-length" if value.parse::<u64>().is_ok() => {}
                lower @ ("connection" | "content-length" | "transfer-encoding" | "keep-alive"
                | "upgrade") => {
                    let message = format!("invalid {lower} header");
                    let error = Error::named("InvalidArgumentError", message);
                    return Err(error.coded("UND_ERR_INVALID_ARG"));
                }
                "expect" => {
                    let error = Error::named("NotSupportedError", "expect header not supported");
                    return Err(error.coded("UND_ERR_NOT_SUPPORTED"));
                }
                _ => lines.push((name.clone(), value.clone())),
            }
        }
        let mut add = |name: &str, value: &str| {
            if !has(&self.headers, name) {
                lines.push((name.to_owned(), value.to_owned()));
            }
        };
        add("accept", "*/*");
        add("accept-language", "*");
        add("sec-fetch-mode", "cors");
        add("user-agent", "node");
        if CONDITIONS.iter().any(|name| has(&self.headers, name)) {
            // The program has a cache of its own.
            add("pragma", "no-cache");
            add("cache-control", "no-cache");
        }
        let codings = match has(&self.headers, "range") {
            true => Some("identity"),
            false => accepted(self.url.scheme()),
        };
        if let Some(codings) = codings {
            add("accept-encoding", codings);
        }
        lines.extend(self.framing()?);
        Ok(lines)
    }

    fn host_line(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        match self.url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// Whether the connection is closed after the response.
    fn closes(&self) -> bool {
        let asks = |(name, value): &(String, String)| {
            let mut words = value.split(',').map(str::trim);
            name.eq_ignore_ascii_case("connection")
                && words.any(|word| word.eq_ignore_ascii_case("close"))
        };
        self.method == "HEAD" || self.headers.iter().any(asks)
    }

    fn framing(&self) -> Result<Option<(String, String)>, Error> {
        let methods = ["PUT", "POST", "PATCH", "QUERY", "PROPFIND", "PROPPATCH"];
        let expects_body = methods.contains(&&*self.method);
        let length = match &self.body {
            Some(body) if body.is_stream() => {
                return Ok(Some(("transfer-encoding".to_owned(), "chunked".to_owned())));
            }
            Some(super::Body {
                content: Content::Bytes(bytes),
                ..
            }) => bytes.len(),
            _ => 0,
        };
        let declared = self
            .headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        if length > 0 && declared.is_some_and(|(_, value)| value.parse() != Ok(length)) {
            let message = "Request body length does not match content-length header";
            let error = Error::named("RequestContentLengthMismatchError", message);
            return Err(error.coded("UND_ERR_REQ_CONTENT_LENGTH_MISMATCH"));
        }
        let is_written = self.body.is_some() || expects_body;
        Ok(is_written.then(|| ("content-length".to_owned(), length.to_string())))
    }

    /// Changes the plan as a redirection asks.
    fn redirect(&mut self, status: u16, location: &str) -> Result<(), Error> {
        let mut url = self
            .url
            .join(&location_text(location))
            .map_err(|_| Error::type_error("Invalid URL").coded("ERR_INVALID_URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Error::new("URL scheme must be a HTTP(S) scheme"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            let message = "cross origin not allowed for request mode \"cors\"";
            return Err(Error::new(message));
        }
        if url.fragment().is_none() {
            url.set_fragment(self.url.fragment());
        }
        if status != 303 && self.body.as_ref().is_some_and(super::Body::is_stream) {
            return Err(Error::new("a stream is sent only once"));
        }
        let becomes_get = match status {
            301 | 302 => self.method == "POST",
            303 => !matches!(&*self.method, "GET" | "HEAD"),
            _ => false,
        };
        if becomes_get {
            "GET".clone_into(&mut self.method);
            self.body = None;
            self.drop_headers(&OF_BODY);
        }
        if url.origin() != self.url.origin() {
            self.drop_headers(&SECRET);
        }
        self.url = url;
        Ok(())
    }

    fn drop_headers(&mut self, names: &[&str]) {
        let is_kept = |(name, _): &(String, String)| {
            !names.iter().any(|other| name.eq_ignore_ascii_case(other))
        };
        self.headers.retain(is_kept);
    }
}
