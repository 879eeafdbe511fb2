//! HTTP/1.1 servers and clients: Node's `http`.

#[allow(dead_code, reason = "the server and the client come next")]
mod date;
#[allow(
    dead_code,
    unused_imports,
    reason = "the server and the client come next"
)]
mod outgoing;
#[allow(
    dead_code,
    unused_imports,
    reason = "the server and the client come next"
)]
mod parser;
mod status;
#[allow(dead_code, reason = "the server and the client come next")]
mod validate;

pub(in crate::node) use self::date::HttpDate;
pub use self::outgoing::{HeaderValue, OutgoingMessage, SOCKET};
pub use self::parser::MAX_HEADER_SIZE;
pub use self::status::status_message;
pub use self::validate::{METHODS, validate_header_name, validate_header_value};
