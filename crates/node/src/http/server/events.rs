//! The events of a server, and what they carry.

use crate::error::Error;
use crate::events::Event;
use crate::http::incoming::IncomingMessage;
use crate::http::response::ServerResponse;
use crate::net::Socket;

/// A request has arrived. JavaScript: `'request'`.
pub const REQUEST: Event<Exchange> = Event::new("request");

/// A request waits for `100 Continue`; emitted in place of [`REQUEST`]. JavaScript:
/// `'checkContinue'`.
pub const CHECK_CONTINUE: Event<Exchange> = Event::new("checkContinue");

/// A request expects something else than `100 Continue`; emitted in place of [`REQUEST`].
/// JavaScript: `'checkExpectation'`.
pub const CHECK_EXPECTATION: Event<Exchange> = Event::new("checkExpectation");

/// A request asks for another protocol. The socket is the listener's. JavaScript: `'upgrade'`.
pub const UPGRADE: Event<Handover> = Event::new("upgrade");

/// A `CONNECT` request has arrived. The socket is the listener's. JavaScript: `'connect'`.
pub const CONNECT: Event<Handover> = Event::new("connect");

/// The bytes of a client are bad, its connection has failed, or it is too slow. A listener must
/// answer or destroy the socket. JavaScript: `'clientError'`.
pub const CLIENT_ERROR: Event<ClientError> = Event::new("clientError");

/// A connection has brought more requests than it may. JavaScript: `'dropRequest'`.
pub const DROP_REQUEST: Event<Dropped> = Event::new("dropRequest");

/// A connection was idle for too long. It is destroyed if neither the request, the response nor the
/// server has a listener. JavaScript: `'timeout'`.
pub const TIMEOUT: Event<Socket> = Event::new("timeout");

/// A request and its response.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, Exit, http, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = http::Server::new();
///         server.on(http::REQUEST, |exchange| {
///             exchange.response.end(exchange.request.url());
///         });
///         server.listen_this(("127.0.0.1", 0), |server| server.close());
///     })
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The request.
    pub request: IncomingMessage,
    /// The response.
    pub response: ServerResponse,
}

/// A socket that has left HTTP.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, Exit, http, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = http::Server::new();
///         server.on(http::UPGRADE, |upgrade| {
///             upgrade.socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n");
///             upgrade.socket.on_data_this(|socket, bytes| {
///                 socket.write(bytes);
///             });
///         });
///         server.listen_this(("127.0.0.1", 0), |server| server.close());
///     })
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Handover {
    /// The message that asked for it, or that agreed to it.
    pub message: IncomingMessage,
    /// The socket. It does not flow until it is read.
    pub socket: Socket,
    /// The bytes that followed the head in the same read.
    pub head: Vec<u8>,
}

/// An error of a client.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, Exit, http, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = http::Server::new();
///         server.on(http::CLIENT_ERROR, |failed| {
///             println!("{:?}", failed.error.code());
///             failed.socket.end("HTTP/1.1 400 Bad Request\r\n\r\n");
///         });
///         server.listen_this(("127.0.0.1", 0), |server| server.close());
///     })
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ClientError {
    /// The error, with a code such as `HPE_INVALID_METHOD`.
    pub error: Error,
    /// The socket.
    pub socket: Socket,
    /// The offset of the bad byte in [`raw_packet`](Self::raw_packet). JavaScript:
    /// `error.bytesParsed`.
    pub bytes_parsed: usize,
    /// The bytes of the read; empty if the error is not in bytes. JavaScript: `error.rawPacket`.
    pub raw_packet: Vec<u8>,
}

/// A request above the limit of its connection.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, Exit, http, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = http::Server::new();
///         server.on(http::DROP_REQUEST, |dropped| {
///             println!("dropped {}", dropped.request.url());
///         });
///         server.listen_this(("127.0.0.1", 0), |server| server.close());
///     })
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Dropped {
    /// The request.
    pub request: IncomingMessage,
    /// The socket.
    pub socket: Socket,
}
