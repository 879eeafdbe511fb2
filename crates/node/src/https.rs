//! HTTP over TLS: Node's `https`.
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
use super::tls::{ClientContext, ServerContext};

/// Creates a server with a certificate. JavaScript: `https.createServer({ cert, key }, listener)`.
///
/// # Examples
///
/// ```no_run
/// use phaseloop_node::{https, run, tls::ServerContext};
///
/// # let (certificate, key) = (b"", b"");
/// run(async move {
///     let context = ServerContext::new(certificate, key).unwrap();
///     let server = https::create_server(&context, |_, response| response.end_bytes("hello"));
///     server.listen(8443);
/// });
/// ```
pub fn create_server(
    context: &ServerContext,
    listener: impl Fn(&IncomingMessage, &ServerResponse) + 'static,
) -> Server {
    let server = Server::secure(&context.for_http());
    server.on_request(listener);
    server
}

/// Begins a request; see [`http::request`](super::http::request). The default port is 443.
/// JavaScript: `https.request(options)`.
///
/// # Errors
///
/// See [`http::request`](super::http::request). A certificate that is not accepted is an event of
/// the request.
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn request(options: impl Into<RequestOptions>) -> Result<ClientRequest, Error> {
    secure_request(options.into())
}

/// Begins and ends a request without a body. JavaScript: `https.get(options)`.
///
/// # Errors
///
/// See [`request`].
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```no_run
/// use phaseloop_node::{https, run};
///
/// run(async {
///     let request = https::get("example.org").unwrap();
///     request.on_response(|response| {
///         println!("{:?}", response.status_code());
///         response.resume();
///     });
/// });
/// ```
#[track_caller]
pub fn get(options: impl Into<RequestOptions>) -> Result<ClientRequest, Error> {
    let request = request(options)?;
    request.end();
    Ok(request)
}

/// Returns a builder for an agent that verifies servers by `context`. JavaScript: `new
/// https.Agent({ ca })`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{https, tls::ClientContext};
///
/// let agent = https::agent(&ClientContext::new()).keep_alive(true).build();
/// assert_eq!(agent.sockets(), 0);
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
