//! Why a request or a body of `fetch` has failed, in the words of Node.

use crate::error::Error;

/// The error of a request that got no response.
pub(super) fn failed(cause: Error) -> Error {
    Error::type_error("fetch failed").caused_by(cause)
}

/// The error of a body that was cut off.
pub(super) fn terminated(cause: Error) -> Error {
    Error::type_error("terminated").caused_by(cause)
}

/// The error of a connection that the peer has closed too soon.
pub(super) fn other_side_closed() -> Error {
    socket_error("other side closed")
}

pub(super) fn socket_error(message: &'static str) -> Error {
    Error::named("SocketError", message).coded("UND_ERR_SOCKET")
}

/// What an error of the client of `http` is for `fetch`.
// H96.
pub(super) fn cause_of(error: &Error) -> Error {
    match (error.code(), error.message()) {
        (Some("ECONNRESET"), "socket hang up") => other_side_closed(),
        (Some("HPE_HEADER_OVERFLOW"), _) => {
            let error = Error::named("HeadersOverflowError", "Headers Overflow Error");
            error.coded("UND_ERR_HEADERS_OVERFLOW")
        }
        (Some(code), text) if code.starts_with("HPE_") => {
            let what = text.strip_prefix("Parse Error: ").unwrap_or(text);
            let text = format!("Response does not match the HTTP/1.1 protocol ({what})");
            Error::named("HTTPParserError", text)
        }
        _ => error.clone(),
    }
}
