//! HTTP over TLS: Node's `https`.
//!
//! ```no_run
//! use phaseloop_node::{Exit, https, run};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         let request = https::get("example.org");
//!         request.on_response(|response| {
//!             println!("{:?}", response.status_code());
//!             response.resume();
//!         });
//!     })
//! }
//! ```
//!
//! Requests, responses, servers and agents are those of [`http`](super::http); see there.
//!
//! | JavaScript | here |
//! |---|---|
//! | `https.createServer({ cert, key }, listener)` | [`create_server`] |
//! | `https.request(options)`, `https.get(options)` | [`request`], [`get`] |
//! | `new https.Agent({ ca, keepAlive })` | [`agent`]`(&context).keep_alive(true).build()` |
//! | `https.globalAgent` | [`global_agent`] |

use super::error::Error;
use super::http::{
    Agent, AgentBuilder, ClientRequest, IncomingMessage, RequestOptions, Server, ServerResponse,
    secure_agent, secure_global_agent, secure_request,
};
use super::promise::Handled;
use super::reason::throw;
use super::tls::{ClientContext, ServerContext};

/// Creates a server with a certificate. JavaScript: `https.createServer({ cert, key }, listener)`.
///
/// # Examples
///
/// ```no_run
/// use phaseloop_node::{https, run, tls::ServerContext};
///
/// fn main() -> phaseloop_node::Exit<()> {
///     let certificate = std::fs::read("certificate.pem").unwrap();
///     let key = std::fs::read("key.pem").unwrap();
///     run(async move {
///         let context = ServerContext::new(&certificate, &key).unwrap();
///         let server = https::create_server(&context, |_, response| response.end("hello"));
///         server.listen(8443);
///     })
/// }
/// ```
pub fn create_server(
    context: &ServerContext,
    listener: impl Fn(&IncomingMessage, &ServerResponse) + 'static,
) -> Server {
    let server = Server::secure(&context.for_http());
    server.on_request(listener);
    server
}

/// Creates a server with a certificate that calls an async function; see
/// [`http::create_async_server`](super::http::create_async_server). JavaScript:
/// `https.createServer({ cert, key }, async (request, response) => { .. })`.
pub fn create_async_server<F>(
    context: &ServerContext,
    listener: impl Fn(IncomingMessage, ServerResponse) -> F + 'static,
) -> Server
where
    F: Future + 'static,
    F::Output: Handled,
{
    let server = Server::secure(&context.for_http());
    server.on_request_async(listener);
    server
}

/// Begins a request; see [`http::request`](super::http::request). The default port is 443.
/// JavaScript: `https.request(options)`.
///
/// # Panics
///
/// See [`http::request`](super::http::request). A certificate that is not accepted is an event of
/// the request.
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
/// See [`http::try_request`](super::http::try_request).
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn try_request(options: impl Into<RequestOptions>) -> Result<ClientRequest, Error> {
    secure_request(options.into())
}

/// Begins and ends a request without a body. JavaScript: `https.get(options)`.
///
/// # Panics
///
/// See [`request`].
///
/// # Examples
///
/// ```no_run
/// use phaseloop_node::{Exit, https, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let request = https::get("example.org");
///         request.on_response(|response| {
///             println!("{:?}", response.status_code());
///             response.resume();
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

/// Returns a builder for an agent that verifies servers by `context`. JavaScript: `new
/// https.Agent({ ca })`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{https, tls::ClientContext};
///
/// fn main() {
///     let agent = https::agent(&ClientContext::new()).keep_alive(true).build();
///     assert_eq!(agent.sockets(), 0);
/// }
/// ```
pub fn agent(context: &ClientContext) -> AgentBuilder {
    secure_agent(&context.for_http())
}

/// Returns the agent of the running loop for requests over TLS. It keeps sockets alive.
/// JavaScript: `https.globalAgent`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
pub fn global_agent() -> Agent {
    secure_global_agent()
}
