//! Requests by URL that return promises: the web's `fetch`, as Node has it.
//!
//! ```
//! use phaseloop_node::{Exit, Reason, fetch, http, run, try_call};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         let server = http::create_server(|_, response| response.end("hello"));
//!         server.listen_this(("127.0.0.1", 0), |server| {
//!             let server = server.clone();
//!             let url = format!("http://{}", server.address().unwrap());
//!             try_call(async move {
//!                 let response = fetch(url).send().await?;
//!                 assert_eq!(response.status(), 200);
//!                 assert_eq!(response.text().await?, "hello");
//!                 server.close();
//!                 Ok::<_, Reason>(())
//!             });
//!         });
//!     })
//! }
//! ```
//!
//! | JavaScript | here |
//! |---|---|
//! | `fetch(url)` | [`fetch`]`(url).send()` |
//! | `fetch(url, { method })` | [`Fetch::method`] |
//! | `fetch(url, { headers })` | [`Fetch::header`], [`Fetch::headers`] |
//! | `fetch(url, { body })` | [`Fetch::body`] |
//! | `{ body: new URLSearchParams({ .. }) }` | [`Fetch::form`] |
//! | `{ signal }`, `{ redirect: 'manual' }` | [`Fetch::signal`], [`Fetch::redirect`] |
//! | `response.status`, `response.ok` | [`Response::status`], [`Response::ok`] |
//! | `response.headers`, `response.url` | [`Response::headers`], [`Response::url`] |
//! | `await response.text()`, `bytes()` | [`Response::text`], [`Response::bytes`] |
//! | `await response.json()` | `Response::json`, with the feature `json` |
//! | `for await (const part of response.body)` | [`Response::body`], a stream |
//! | `response.clone()` | [`Response::clone_body`] |
//!
//! A response is there when its head is, whatever its status. The body is read once, as a whole or
//! as a stream; a full buffer stops the peer. The feature `fetch-gzip` unpacks bodies that are
//! compressed with gzip or deflate, piece by piece, and `fetch-brotli` those in Brotli too.
//!
//! Connections are kept by origin for four seconds, and do not keep the loop alive.
//!
//! A failure rejects with a `TypeError` whose [source](std::error::Error::source) has the code:
//! `ECONNREFUSED`, `UND_ERR_SOCKET` if the peer closed the connection, none for bytes that
//! are no response. An abort rejects with the signal's reason.
//!
//! Left out: `FormData`, `Blob`, `Request` objects, caches, cookies, and integrity.
//
// H90 to H96.

mod body;
mod causes;
mod data_url;
#[cfg(feature = "fetch-gzip")]
mod decode;
#[cfg(not(feature = "fetch-gzip"))]
#[path = "fetch/no_decode.rs"]
mod decode;
mod exchange;
mod headers;
mod incoming;
mod plan;
mod response;

use std::fmt;
use std::panic::Location;

use url::Url;

pub use self::body::Body;
use self::exchange::Exchange;
pub use self::headers::Headers;
pub use self::response::Response;
use super::abort::AbortSignal;
use super::error::Error;
use super::http::is_token;
use super::promise::{Deferred, Promise};
use crate::site::Site;

/// Begins to describe a request. An `await` or [`Fetch::send`] starts it. JavaScript: `fetch(url)`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, fetch, http, run, stream::CLOSE};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = http::create_server(|request, response| {
///             response.end(format!("{} {}", request.method(), request.url()));
///         });
///         server.listen(("127.0.0.1", 0));
///         let url = format!("http://{}/hello", server.address().unwrap());
///         let response = fetch(&url).send().await.unwrap();
///         assert_eq!((response.status(), response.ok()), (200, true));
///         assert_eq!(response.text().await.unwrap(), "GET /hello");
///         server.close();
///     })
/// }
/// ```
#[track_caller]
pub fn fetch(url: impl AsRef<str>) -> Fetch {
    Fetch {
        url: url.as_ref().to_owned(),
        method: "GET".to_owned(),
        headers: Vec::new(),
        body: None,
        signal: None,
        redirect: Redirect::default(),
        site: Location::caller(),
    }
}

/// What happens to a redirection. JavaScript: `{ redirect }`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::fetch::{self, Redirect};
///
/// fn main() {
///     let request = fetch::fetch("http://127.0.0.1/").redirect(Redirect::Manual);
///     drop(request); // a request that is not sent has no effect
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redirect {
    /// It is followed, at most twenty times. JavaScript: `'follow'`.
    #[default]
    Follow,
    /// It is the response. JavaScript: `'manual'`.
    Manual,
    /// It is an error. JavaScript: `'error'`.
    Error,
}

/// A request that was not sent; returned by [`fetch`].
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, fetch, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         // No request is sent to port 1.
///         let failed = fetch("http://127.0.0.1:1/")
///             .method("POST")
///             .header("content-type", "application/json")
///             .body("{}")
///             .send()
///             .await
///             .unwrap_err();
///         assert_eq!((failed.name(), &*failed.to_string()), ("TypeError", "fetch failed"));
///     })
/// }
/// ```
#[must_use = "a request does nothing until `send`"]
#[derive(Clone)]
pub struct Fetch {
    url: String,
    method: String,
    headers: Vec<(String, String)>,
    body: Option<Body>,
    signal: Option<AbortSignal>,
    redirect: Redirect,
    /// The line of the program that called [`fetch`].
    site: Site,
}

impl Fetch {
    /// Sets the method. The usual methods are sent in upper case. JavaScript: `{ method }`.
    pub fn method(mut self, method: impl Into<String>) -> Self {
        self.method = method.into();
        self
    }

    /// Adds a header. JavaScript: `{ headers: { [name]: value } }`.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds headers. JavaScript: `{ headers }`.
    pub fn headers<N, V>(mut self, headers: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: Into<String>,
    {
        let headers = headers.into_iter().map(|(n, v)| (n.into(), v.into()));
        self.headers.extend(headers);
        self
    }

    /// Sets the body: text, bytes, or a stream of bytes. Text has the type `text/plain`, unless a
    /// header says otherwise. JavaScript: `{ body }`.
    pub fn body(mut self, body: impl Into<Body>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sets a form as the body, encoded like a query. JavaScript: `{ body: new
    /// URLSearchParams(fields) }`.
    pub fn form<N, V>(mut self, fields: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: AsRef<str>,
        V: AsRef<str>,
    {
        self.body = Some(Body::form(fields));
        self
    }

    /// Ends the request and the reading of its response when `signal` is aborted. JavaScript: `{
    /// signal }`.
    pub fn signal(mut self, signal: &AbortSignal) -> Self {
        self.signal = Some(signal.clone());
        self
    }

    /// Sets what happens to a redirection. JavaScript: `{ redirect }`.
    pub fn redirect(mut self, redirect: Redirect) -> Self {
        self.redirect = redirect;
        self
    }

    /// Sends the request; the connection is begun inside this call. The promise resolves with the
    /// head of the response. JavaScript: `fetch(url, options)`.
    ///
    /// It rejects with a `TypeError` for a bad URL, method or header, a body of a GET or HEAD
    /// request, and a failed connection; with the signal's reason after an abort.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[must_use = "the promise has the response and the errors"]
    pub fn send(self) -> Promise<Response> {
        let deferred = Deferred::new();
        let promise = deferred.promise();
        match self.checked() {
            Ok((request, url)) => Exchange::start(request, url, deferred),
            Err(error) => deferred.reject(error),
        }
        promise
    }

    /// Returns the request with its method as it is sent, and its URL.
    fn checked(mut self) -> Result<(Self, Url), Error> {
        let url = Url::parse(&self.url).map_err(|_| {
            let cause = Error::type_error("Invalid URL").coded("ERR_INVALID_URL");
            let message = format!("Failed to parse URL from {}", self.url);
            Error::type_error(message).caused_by(cause)
        })?;
        if !url.username().is_empty() || url.password().is_some() {
            let message = "Request cannot be constructed from a URL that includes credentials: ";
            return Err(Error::type_error(format!("{message}{}", self.url)));
        }
        self.method = checked_method(&self.method)?;
        if self.body.is_some() && matches!(&*self.method, "GET" | "HEAD") {
            let message = "Request with GET/HEAD method cannot have body.";
            return Err(Error::type_error(message));
        }
        self.headers = headers::joined(std::mem::take(&mut self.headers))?;
        if let Some(signal) = &self.signal {
            signal.throw_if_aborted()?;
        }
        Ok((self, url))
    }
}

fn checked_method(method: &str) -> Result<String, Error> {
    if !is_token(method) {
        let message = format!("'{method}' is not a valid HTTP method.");
        return Err(Error::type_error(message));
    }
    let upper = method.to_ascii_uppercase();
    match &*upper {
        "CONNECT" | "TRACE" | "TRACK" => {
            let message = format!("'{method}' HTTP method is unsupported.");
            Err(Error::type_error(message))
        }
        "DELETE" | "GET" | "HEAD" | "OPTIONS" | "POST" | "PUT" => Ok(upper),
        _ => Ok(method.to_owned()),
    }
}

/// [Sends](Fetch::send) the request and waits for the head of the response.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, fetch, http, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = http::create_server(|_, response| {
///             response.end("hello");
///         });
///         server.listen(("127.0.0.1", 0));
///         let url = format!("http://{}/", server.address().unwrap());
///         assert_eq!(fetch(url).await.unwrap().text().await.unwrap(), "hello");
///         server.close();
///     })
/// }
/// ```
impl IntoFuture for Fetch {
    type Output = <Promise<Response> as IntoFuture>::Output;
    type IntoFuture = <Promise<Response> as IntoFuture>::IntoFuture;

    #[track_caller]
    fn into_future(self) -> Self::IntoFuture {
        self.send().into_future()
    }
}

impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetch")
            .field("method", &self.method)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}
