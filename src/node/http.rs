//! HTTP/1.1 servers and clients: Node's `http`.

#[allow(
    dead_code,
    unused_imports,
    reason = "the server and the client come next"
)]
mod parser;

pub use self::parser::MAX_HEADER_SIZE;
