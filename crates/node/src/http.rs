//! HTTP/1.1 servers and clients: Node's `http`, in Node's order and with Node's bytes.
//!
//! ```
//! use phaseloop_node::{Exit, http, run};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         let server = http::create_server(|request, response| {
//!             response.end(format!("hello from {}", request.url()));
//!         });
//!         server.listen_this(("127.0.0.1", 0), |server| {
//!             let request = http::get(server.address().unwrap());
//!             let server = server.clone();
//!             request.on_response(move |response| {
//!                 assert_eq!(response.status_code(), Some(200));
//!                 response.resume();
//!                 server.close();
//!             });
//!         });
//!     })
//! }
//! ```
//!
//! | Node | here |
//! |---|---|
//! | `http.createServer(f)` | [`create_server`], [`create_async_server`], [`Server::builder`] |
//! | `server.on('request', ..)` and the other events | [`REQUEST`], … in [`server`] |
//! | `req.method`, `req.url`, `req.headers` | [`IncomingMessage::method`], `url`, [`Headers`] |
//! | `req.on('data', ..)`, `req.pipe(..)` | [`IncomingMessage::on_data`], `pipe` |
//! | `res.statusCode = 404` | [`ServerResponse::set_status`] |
//! | `res.setHeader(name, value)` | [`OutgoingMessage::set_header`] |
//! | `res.writeHead(status, headers)` | [`ServerResponse::write_head`] |
//! | `res.write`, `res.end(data)` | [`OutgoingMessage::write`], [`OutgoingMessage::end`] |
//! | `http.request`, `http.get` | [`request()`], [`get`] |
//! | `new http.Agent({ keepAlive: true })` | [`Agent::builder`] |
//!
//! A text that belongs to a head is latin1, as in Node: one byte of the message is one character.
//!
//! # Limits
//!
//! A server limits by default what a client may cost: a head of 16 KiB in 60 s, a message in 300 s,
//! 5 s between two requests, 16 KiB of buffered bytes in each direction, and 1,000 unanswered
//! requests of one connection, which is closed if none of them is answered in 300 s. A declared
//! length allocates nothing.
//!
//! # Left out
//!
//! - `insecureHTTPParser` and the lenient flags: they open the door to request smuggling.
//! - `req.abort`, `'abort'`, `res.finished`, `req.connection`, `res.writeHeader`: Node deprecates
//!   them.
//! - Own classes of messages, `createConnection`, `uniqueHeaders`, `httpAllowHalfOpen`,
//!   `captureRejections`, diagnostics channels, performance hooks.
//! - A header that was set to a number is a text: [`HeaderValue`].
//! - The second `'close'` of a request whose response is read after its connection has closed.
//! - HTTP/2: [`phaseloop::hyper`] serves it.

mod agent;
mod client;
mod connection;
mod date;
mod extensions;
mod headers;
mod incoming;
mod names;
mod outgoing;
#[allow(dead_code, reason = "its tests use the rest")]
mod parser;
mod pipe;
mod response;
pub mod server;
mod status;
mod validate;

use self::agent::LoopAgents;
#[cfg(feature = "fetch")]
pub(crate) use self::agent::fetch_agent;
pub use self::agent::{Agent, AgentBuilder, FREE, Scheduling, global_agent};
#[cfg(feature = "tls")]
pub(crate) use self::agent::{secure_agent, secure_global_agent};
#[cfg(feature = "fetch")]
pub(crate) use self::client::request_at;
#[cfg(feature = "tls")]
pub(crate) use self::client::secure_request;
pub use self::client::{
    CONTINUE, ClientRequest, INFORMATION, Information, RESPONSE, RequestOptions, Target, get,
    request, try_request,
};
use self::date::HttpDate;
pub use self::extensions::Extensions;
pub use self::headers::Headers;
pub use self::incoming::{ABORTED, IncomingMessage};
#[cfg(feature = "fetch")]
pub(crate) use self::names::Names;
pub use self::outgoing::{HeaderValue, IntoHeaders, OutgoingMessage, Pairs, SOCKET};
pub use self::parser::MAX_HEADER_SIZE;
pub use self::response::ServerResponse;
pub use self::server::{
    CHECK_CONTINUE, CHECK_EXPECTATION, CLIENT_ERROR, CONNECT, ClientError, DROP_REQUEST, Dropped,
    Exchange, Handover, REQUEST, Server, ServerBuilder, UPGRADE, create_async_server,
    create_server,
};
pub use self::status::status_message;
#[cfg(feature = "fetch")]
pub(crate) use self::validate::is_token;
pub use self::validate::{METHODS, validate_header_name, validate_header_value};

/// What this module keeps for each loop.
#[derive(Default)]
pub(crate) struct HttpState {
    date: HttpDate,
    agents: LoopAgents,
}

impl HttpState {
    /// Drops the pooled sockets.
    pub(crate) fn shut_down(&self) {
        self.agents.shut_down();
    }
}
