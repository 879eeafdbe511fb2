//! Responses.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use url::Url;

use super::headers::Headers;
use crate::error::Error;
use crate::events::{ERROR, Emitter as _, WeakThis as _};
use crate::http::IncomingMessage;
use crate::promise::{Deferred, Promise};
use crate::stream::{END, Readable};

/// What is known of a response before its body.
pub(super) struct Head {
    status: u16,
    status_text: String,
    headers: Headers,
    url: Url,
    is_redirected: bool,
}

impl Head {
    /// The head of what a `data:` URL holds.
    pub(super) fn of_data(content_type: &str, mut url: Url) -> Self {
        url.set_fragment(None);
        let line = ("content-type".to_owned(), content_type.to_owned());
        Self {
            status: 200,
            status_text: "OK".to_owned(),
            headers: Headers::new(&[line]),
            url,
            is_redirected: false,
        }
    }

    pub(super) fn new(incoming: &IncomingMessage, mut url: Url, is_redirected: bool) -> Self {
        url.set_fragment(None);
        Self {
            status: incoming.status_code().unwrap_or_default(),
            status_text: incoming.status_message().to_owned(),
            headers: Headers::new(incoming.raw_headers()),
            url,
            is_redirected,
        }
    }
}

/// A response to [`fetch`](super::fetch()). A clone is a handle to the same response; the body is
/// read once. JavaScript: `Response`.
///
/// A response that is dropped before its body was read closes its connection.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, fetch, http, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = http::create_server(|_, response| {
///             response.set_status(404);
///             response.end("no");
///         });
///         server.listen(("127.0.0.1", 0));
///         let url = format!("http://{}", server.address().unwrap());
///         let response = fetch(url).send().await.unwrap();
///         assert_eq!((response.status(), response.status_text()), (404, "Not Found"));
///         assert_eq!(response.text().await.unwrap(), "no");
///         assert!(response.body_used());
///         server.close();
///     })
/// }
/// ```
#[derive(Clone)]
pub struct Response {
    inner: Rc<Inner>,
}

struct Inner {
    head: Rc<Head>,
    /// `None` for a response that has no body, such as one with status 204.
    body: RefCell<Option<Readable<Vec<u8>>>>,
    is_used: Cell<bool>,
}

impl Response {
    pub(super) fn new(head: Head, body: Option<Readable<Vec<u8>>>) -> Self {
        Self::of(Rc::new(head), body)
    }

    fn of(head: Rc<Head>, body: Option<Readable<Vec<u8>>>) -> Self {
        let inner = Rc::new(Inner {
            head,
            body: RefCell::new(body),
            is_used: Cell::new(false),
        });
        Self { inner }
    }

    /// Returns the status. JavaScript: `response.status`.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.inner.head.status
    }

    /// Returns the text behind the status. JavaScript: `response.statusText`.
    #[must_use]
    pub fn status_text(&self) -> &str {
        &self.inner.head.status_text
    }

    /// Returns whether the status is from 200 to 299. JavaScript: `response.ok`.
    #[must_use]
    pub fn ok(&self) -> bool {
        matches!(self.status(), 200..=299)
    }

    /// Returns the headers. JavaScript: `response.headers`.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        &self.inner.head.headers
    }

    /// Returns the URL after all redirections. JavaScript: `response.url`.
    #[must_use]
    pub fn url(&self) -> &str {
        self.inner.head.url.as_str()
    }

    /// Returns whether a redirection was followed. JavaScript: `response.redirected`.
    #[must_use]
    pub fn redirected(&self) -> bool {
        self.inner.head.is_redirected
    }

    /// Returns the body as a stream, or `None` if the response has none. Reading the stream uses
    /// the body; [`destroy`](Readable::destroy) closes the connection. JavaScript: `response.body`,
    /// `response.body.cancel()`.
    #[must_use]
    pub fn body(&self) -> Option<Readable<Vec<u8>>> {
        self.inner.body.borrow().clone()
    }

    /// Returns whether the body was read, or is being read. JavaScript: `response.bodyUsed`.
    #[must_use]
    pub fn body_used(&self) -> bool {
        let is_disturbed =
            |body: &Readable<Vec<u8>>| body.flowing().is_some() || body.destroyed() || body.ended();
        self.inner.is_used.get() || self.inner.body.borrow().as_ref().is_some_and(is_disturbed)
    }

    /// Reads the body as text, decoded as UTF-8. JavaScript: `response.text()`.
    ///
    /// The promise rejects with a `TypeError` if the body was read before or is cut off, and with
    /// the signal's reason after an abort.
    #[must_use]
    pub fn text(&self) -> Promise<String> {
        self.read(|bytes| Ok(text_of(bytes)))
    }

    /// Reads the body as bytes. JavaScript: `response.bytes()`, `response.arrayBuffer()`.
    ///
    /// The promise rejects like that of [`text`](Self::text).
    #[must_use]
    pub fn bytes(&self) -> Promise<Vec<u8>> {
        self.read(Ok)
    }

    /// Reads the body as JSON. JavaScript: `response.json()`.
    ///
    /// The promise rejects like that of [`text`](Self::text), and with a `SyntaxError` if the body
    /// is not the JSON of a `T`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, fetch, http, run};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let server = http::create_server(|_, response| response.end("[1, 2]"));
    ///         server.listen(("127.0.0.1", 0));
    ///         let url = format!("http://{}", server.address().unwrap());
    ///         let response = fetch(&url).send().await.unwrap();
    ///         assert_eq!(response.json::<Vec<u8>>().await.unwrap(), [1, 2]);
    ///         server.close();
    ///     })
    /// }
    /// ```
    #[cfg(feature = "json")]
    #[must_use]
    pub fn json<T: serde::de::DeserializeOwned + Clone + 'static>(&self) -> Promise<T> {
        self.read(|bytes| {
            let text = text_of(bytes);
            let parsed = serde_json::from_str(&text);
            parsed.map_err(|error| Error::named("SyntaxError", error.to_string()))
        })
    }

    /// Returns a second response with a body of its own: both bodies can be read. What only one of
    /// them has read is kept for the other. JavaScript: `response.clone()`.
    ///
    /// # Errors
    ///
    /// A `TypeError` if the body was read before.
    pub fn clone_body(&self) -> Result<Self, Error> {
        if self.body_used() {
            return Err(Error::type_error(
                "Response.clone: Body has already been consumed.",
            ));
        }
        let body = self.inner.body.take();
        let (one, other) = body.map(|body| tee(&body)).unzip();
        self.inner.body.replace(one);
        Ok(Self::of(self.inner.head.clone(), other))
    }

    /// Reads the body and passes it to `convert`.
    // H91.
    fn read<T: Clone + 'static>(
        &self,
        convert: impl FnOnce(Vec<u8>) -> Result<T, Error> + 'static,
    ) -> Promise<T> {
        let deferred = Deferred::new();
        let promise = deferred.promise();
        let Some(body) = self.body() else {
            deferred.settle(convert(Vec::new()).map_err(Into::into));
            return promise;
        };
        if self.body_used() && !self.has_failed(&body) {
            deferred.reject(Error::type_error(
                "Body is unusable: Body has already been read",
            ));
            return promise;
        }
        self.inner.is_used.set(true);
        if let Some(error) = body.errored() {
            deferred.reject(error);
            return promise;
        }
        let all = Rc::new(RefCell::new(Vec::new()));
        let bytes = all.clone();
        body.on_data(move |piece| bytes.borrow_mut().extend_from_slice(piece));
        let (failed, kept) = (deferred.clone(), body.clone());
        body.on(ERROR, move |error| failed.reject(error.clone()));
        body.once(END, move |()| {
            deferred.settle(convert(all.take()).map_err(Into::into));
            drop(kept);
        });
        promise
    }

    /// Whether the body failed before it was read.
    fn has_failed(&self, body: &Readable<Vec<u8>>) -> bool {
        !self.inner.is_used.get() && body.errored().is_some()
    }
}

/// Decodes UTF-8, without a byte order mark.
fn text_of(bytes: Vec<u8>) -> String {
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}

/// Splits a body. The source is read when one of the two wants more.
fn tee(source: &Readable<Vec<u8>>) -> (Readable<Vec<u8>>, Readable<Vec<u8>>) {
    let branch = || {
        let (source, cancelled) = (source.clone(), source.clone());
        let other = Rc::new(Cell::new(false));
        let is_gone = other.clone();
        let body = Readable::bytes()
            .read(move |_, _| source.resume())
            .destroy(move |error, done| {
                is_gone.set(true);
                drop(cancelled);
                done.pass(error);
            })
            .build();
        (body, other)
    };
    let ((one, one_gone), (other, other_gone)) = (branch(), branch());
    let both = [one.weak_this(), other.weak_this()];
    let both = Rc::new(both);
    let gone = [one_gone, other_gone];
    let bodies = both.clone();
    let of_source = source.weak_this();
    source.on_data(move |bytes| {
        let mut has_room = false;
        for (body, is_gone) in bodies.iter().zip(&gone) {
            if let Some(body) = body().filter(|_| !is_gone.get()) {
                has_room |= body.push(bytes.clone());
            }
        }
        if let Some(source) = of_source().filter(|_| !has_room) {
            source.pause();
        }
    });
    source.pause();
    let bodies = both.clone();
    source.on(END, move |()| {
        bodies
            .iter()
            .filter_map(|body| body())
            .for_each(|body| body.push_end());
    });
    source.on(ERROR, move |error| {
        let bodies = both.iter().filter_map(|body| body());
        bodies.for_each(|body| body.destroy(Some(error.clone())));
    });
    (one, other)
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status())
            .field("url", &self.url())
            .field("headers", self.headers())
            .field("body_used", &self.body_used())
            .finish_non_exhaustive()
    }
}
