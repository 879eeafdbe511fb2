//! HTTP/1.1 servers and clients: Node's `http`.

mod agent;
mod client;
mod connection;
mod date;
mod headers;
mod incoming;
mod outgoing;
#[allow(dead_code, reason = "its tests use the rest")]
mod parser;
mod response;
pub mod server;
mod status;
mod validate;

use std::cell::RefCell;

pub use self::agent::{Agent, AgentBuilder, FREE, Scheduling, global_agent};
pub use self::client::{
    CONTINUE, ClientRequest, INFORMATION, Information, RESPONSE, RequestOptions, Target, get,
    request,
};
use self::date::HttpDate;
pub use self::headers::Headers;
pub use self::incoming::{ABORTED, IncomingMessage};
pub use self::outgoing::{HeaderValue, OutgoingMessage, SOCKET};
pub use self::parser::MAX_HEADER_SIZE;
pub use self::response::ServerResponse;
pub use self::server::{
    CHECK_CONTINUE, CHECK_EXPECTATION, CLIENT_ERROR, CONNECT, ClientError, DROP_REQUEST, Dropped,
    Exchange, Handover, REQUEST, Server, ServerBuilder, UPGRADE, create_server,
};
pub use self::status::status_message;
pub use self::validate::{METHODS, validate_header_name, validate_header_value};

/// What this module keeps for each loop.
#[derive(Default)]
pub(in crate::node) struct HttpState {
    date: HttpDate,
    /// The global agent, once it was used.
    agent: RefCell<Option<Agent>>,
}

impl HttpState {
    /// Drops the pooled sockets.
    pub(in crate::node) fn shut_down(&self) {
        let agent = self.agent.take();
        drop(agent);
    }
}
