//! HTTP/1.1 servers and clients: Node's `http`.

mod connection;
#[allow(dead_code, reason = "the client comes next")]
mod date;
mod headers;
mod incoming;
#[allow(dead_code, unused_imports, reason = "the client comes next")]
mod outgoing;
#[allow(dead_code, reason = "the client comes next")]
mod parser;
mod response;
pub mod server;
mod status;
#[allow(dead_code, reason = "the client comes next")]
mod validate;

pub(in crate::node) use self::date::HttpDate;
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
