//! A request on its way: the connection, redirections, failures and the abort.
//!
//! ```text
//!   send ──> request ──┬── response ──> resolved, the body follows
//!              ^       ├── redirection ──┐
//!              └───────┼─────────────────┘
//!                      └── error, abort, time ──> rejected
//! ```

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use url::Url;

use super::body::Content;
use super::causes::{cause_of, failed, socket_error};
use super::data_url::DataUrl;
use super::incoming::body_of;
use super::plan::{Plan, has};
use super::response::{Head, Response};
use super::{Fetch, Redirect};
use crate::abort::{AbortListener, AbortSignal};
use crate::error::Error;
use crate::events::{ERROR, Emitter as _};
use crate::http::{self, ClientRequest, IncomingMessage};
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
    /// What has broken the connection after the head of the response.
    broken: RefCell<Option<Error>>,
    request: RefCell<Option<ClientRequest>>,
    timeout: RefCell<Option<Timeout>>,
    abort: RefCell<Option<(AbortSignal, AbortListener)>>,
    /// Ends the body of the response, once it is there.
    on_abort: RefCell<Option<OnAbort>>,
}

/// Ends the body of a response with the reason of an abort.
type OnAbort = Box<dyn FnOnce(Error)>;

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
            broken: RefCell::default(),
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

    /// Returns what has broken the connection after the head of the response.
    pub(super) fn broken(&self) -> Option<Error> {
        self.broken.borrow().clone()
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
        // What follows a response is no fault of it: the body fails, for this reason.
        request.on(ERROR, move |error| match is_late.get() {
            true => _ = errs.broken.replace(Some(error.clone())),
            false => errs.request_failed(error),
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

    fn request_failed(&self, error: &Error) {
        self.fail(failed(cause_of(error)));
    }

    // Responses.

    // H90.
    fn responded(self: &Rc<Self>, incoming: &IncomingMessage) {
        self.stop_timer();
        let status = incoming.status_code().unwrap_or_default();
        if status < 200 {
            return self.fail(failed(socket_error("bad response")));
        }
        let is_redirection = matches!(status, 301 | 302 | 303 | 307 | 308);
        let location = is_redirection.then(|| location_of(incoming)).flatten();
        if let Some(location) = location {
            match self.redirect {
                Redirect::Follow => return self.follow(incoming, status, &location),
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
        let has_body = !is_head && !matches!(status, 204 | 205 | 304);
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

/// Returns where a redirection leads. Several lines are joined, as those of other headers are.
fn location_of(incoming: &IncomingMessage) -> Option<String> {
    let lines = incoming.raw_headers().iter();
    let lines = lines.filter(|(name, _)| name.eq_ignore_ascii_case("location"));
    let lines: Vec<_> = lines.map(|(_, value)| value.as_str()).collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

fn unexpected(exchange: &Weak<Exchange>, message: &'static str) {
    if let Some(exchange) = exchange.upgrade() {
        exchange.fail(failed(socket_error(message)));
    }
}

fn timed_out(exchange: &Weak<Exchange>, code: &'static str, message: &'static str) {
    if let Some(exchange) = exchange.upgrade() {
        let name = message.replace(' ', "");
        exchange.fail(failed(Error::named(name, message).coded(code)));
    }
}
