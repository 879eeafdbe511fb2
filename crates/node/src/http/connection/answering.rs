//! Which event a request is for, and the answers that need no program.

use super::Connection;
use crate::http::incoming::IncomingMessage;
use crate::http::response::ServerResponse;
use crate::http::server::{
    CHECK_CONTINUE, CHECK_EXPECTATION, DROP_REQUEST, Dropped, Exchange, REQUEST,
};
use crate::http::validate::has_word;
use phaseloop::extension::Loop;

impl Connection {
    /// Passes a request to the program, or answers it.
    // H15, H16, H35.
    pub(super) fn answer(&self, request: IncomingMessage, response: ServerResponse) {
        let exchange = Exchange { request, response };
        let (request, response) = (&exchange.request, &exchange.response);
        if let Some(core) = Loop::current() {
            core.log(|| format!("request {} {}", request.method(), request.url()));
        }
        if request.head().version() != (1, 1) {
            return self.server.emit(REQUEST, &exchange);
        }
        if self.server.requires_host.get() && request.find(b"host").is_none() {
            return refuse(response, 400, &[("Connection", "close")]);
        }
        let limit = self.server.max_requests_per_socket.get();
        if limit > 0 {
            let count = self.request_count.get() + 1;
            self.request_count.set(count);
            response
                .sending()
                .framing
                .is_last_allowed
                .set(count >= limit);
            if count > limit {
                let dropped = Dropped {
                    request: request.clone(),
                    socket: (*self.socket).clone(),
                };
                self.server.emit(DROP_REQUEST, &dropped);
                return refuse(response, 503, &[]);
            }
        }
        if request.find(b"expect").is_none() {
            return self.server.emit(REQUEST, &exchange);
        }
        let expectation = request.headers().get("expect").unwrap_or_default();
        if has_word(expectation, "100-continue") {
            response.state().expects_continue.set(true);
            if self.server.listener_count(CHECK_CONTINUE) > 0 {
                return self.server.emit(CHECK_CONTINUE, &exchange);
            }
            response.write_continue();
            return self.server.emit(REQUEST, &exchange);
        }
        if self.server.listener_count(CHECK_EXPECTATION) > 0 {
            return self.server.emit(CHECK_EXPECTATION, &exchange);
        }
        refuse(response, 417, &[]);
    }
}

/// Answers a request without the program.
fn refuse(response: &ServerResponse, status: u16, headers: &[(&str, &str)]) {
    let written = response.try_write_head(status, None, headers.iter().copied());
    debug_assert!(written.is_ok(), "the head is not fixed");
    response.end(());
}
