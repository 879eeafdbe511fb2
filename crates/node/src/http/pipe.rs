//! Bodies that are piped into other messages, sockets and streams.

use super::client::ClientRequest;
use super::incoming::IncomingMessage;
use super::outgoing::OutgoingMessage;
use super::response::ServerResponse;
use crate::net::Socket;
use crate::stream::Writable;

impl IncomingMessage {
    /// Pipes the body into a message, a socket or a stream, which ends with the body; see
    /// [`Readable::pipe`](crate::stream::Readable::pipe). JavaScript: `message.pipe(sink)`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, http::{self, RequestOptions}, run};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         // An echo.
    ///         let server = http::create_server(|request, response| request.pipe(response));
    ///         server.listen_this(("127.0.0.1", 0), |server| {
    ///             let options = RequestOptions::new(server.address().unwrap()).method("POST");
    ///             let request = http::request(options);
    ///             let server = server.clone();
    ///             request.on_response(move |response| {
    ///                 response.on_data(|bytes| assert_eq!(bytes, b"hello"));
    ///                 server.close();
    ///             });
    ///             request.end("hello");
    ///         });
    ///     })
    /// }
    /// ```
    pub fn pipe(&self, sink: &impl AsRef<Writable<Vec<u8>>>) {
        self.readable().pipe(sink.as_ref());
    }
}

impl AsRef<Self> for Writable<Vec<u8>> {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl AsRef<Writable<Vec<u8>>> for OutgoingMessage {
    fn as_ref(&self) -> &Writable<Vec<u8>> {
        self.writable()
    }
}

impl AsRef<Writable<Vec<u8>>> for ServerResponse {
    fn as_ref(&self) -> &Writable<Vec<u8>> {
        self.writable()
    }
}

impl AsRef<Writable<Vec<u8>>> for ClientRequest {
    fn as_ref(&self) -> &Writable<Vec<u8>> {
        self.writable()
    }
}

impl AsRef<Writable<Vec<u8>>> for Socket {
    fn as_ref(&self) -> &Writable<Vec<u8>> {
        self.writable()
    }
}
