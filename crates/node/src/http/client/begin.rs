//! The functions that begin a request.

use std::panic::Location;

use super::{ClientRequest, RequestOptions};
use crate::error::Error;
#[allow(unused_imports, reason = "for the links")]
use crate::http::OutgoingMessage;
use crate::http::agent::global_agent;
use crate::reason::throw;
use crate::site::Site;

/// Begins a request. The socket is connected at once; nothing is written before
/// [`end`](OutgoingMessage::end), [`write`](OutgoingMessage::write) or
/// [`flush_headers`](OutgoingMessage::flush_headers). JavaScript: `http.request(options)`.
///
/// # Panics
///
/// When no loop runs on this thread. [Throws](crate::throw) the error of [`try_request`], as Node
/// does: a path, method or header that others may choose belongs there. A failed connection is an
/// event of the request.
///
/// # Examples
///
/// ```
/// use phaseloop_node::http::{self, RequestOptions};
/// use phaseloop_node::{Emitter, Exit, run, stream::CLOSE};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = http::create_server(|request, response| {
///             assert_eq!(request.method(), "POST");
///             response.end("created");
///         });
///         server.listen_this(("127.0.0.1", 0), |server| {
///             let options = RequestOptions::new(server.address().unwrap()).method("POST");
///             let request = http::request(options);
///             request.on_response(|response| {
///                 response.on_data(|bytes| assert_eq!(bytes, b"created"));
///             });
///             request.end("{}");
///             let server = server.clone();
///             request.on(CLOSE, move |()| server.close());
///         });
///     })
/// }
/// ```
#[track_caller]
pub fn request(options: impl Into<RequestOptions>) -> ClientRequest {
    match try_request(options) {
        Ok(request) => request,
        Err(error) => throw(error),
    }
}

/// Begins a request like [`request`], but returns the error of bad options.
///
/// # Errors
///
/// `ERR_UNESCAPED_CHARACTERS` for a bad path, `ERR_INVALID_HTTP_TOKEN` for a bad method or header
/// name, `ERR_INVALID_CHAR` for a bad header value, `ERR_HTTP_TRAILER_INVALID` for a `Trailer`
/// header without chunks, `ERR_OUT_OF_RANGE` for a timeout that is negative or no number.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::http::{RequestOptions, try_request};
/// use phaseloop_node::{Exit, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let bad = RequestOptions::new("localhost").path("/a b");
///         let error = try_request(bad).unwrap_err();
///         assert_eq!(error.code(), Some("ERR_UNESCAPED_CHARACTERS"));
///     })
/// }
/// ```
#[track_caller]
pub fn try_request(options: impl Into<RequestOptions>) -> Result<ClientRequest, Error> {
    request_at(options.into(), Location::caller())
}

/// Begins a request for a line of the program.
pub(crate) fn request_at(options: RequestOptions, site: Site) -> Result<ClientRequest, Error> {
    ClientRequest::new(options, site, global_agent)
}

/// Begins a request over TLS.
#[cfg(feature = "tls")]
#[track_caller]
pub(crate) fn secure_request(options: RequestOptions) -> Result<ClientRequest, Error> {
    ClientRequest::new(
        options,
        Location::caller(),
        crate::http::agent::secure_global_agent,
    )
}

/// Begins and ends a request without a body. JavaScript: `http.get(options)`.
///
/// # Panics
///
/// See [`request`].
///
/// # Examples
///
/// ```
/// use phaseloop_node::http::{self, RequestOptions};
/// use phaseloop_node::{Emitter, Exit, run, stream::CLOSE};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = http::create_server(|request, response| response.end(request.url()));
///         server.listen_this(("127.0.0.1", 0), |server| {
///             let options = RequestOptions::new(server.address().unwrap()).path("/hello");
///             let request = http::get(options);
///             request.on_response(|response| {
///                 assert_eq!(response.status_code(), Some(200));
///                 response.on_data(|bytes| assert_eq!(bytes, b"/hello"));
///             });
///             let server = server.clone();
///             request.on(CLOSE, move |()| server.close());
///         });
///     })
/// }
/// ```
#[track_caller]
pub fn get(options: impl Into<RequestOptions>) -> ClientRequest {
    let request = request(options);
    request.end(());
    request
}
