//! One connection of a server: from the bytes of a read to the calls of the program.
//!
//! ```text
//!   read ──> for each part of the parser:
//!              head  ──> 'request'        called, no drain
//!              piece ──> push             a callback of its own, with a drain
//!              end   ──> push the end     called, no drain
//!            then ──> 'clientError', 'upgrade' or nothing, with a drain
//! ```
//!
//! Handlers run when their requests arrive; responses leave in the order of the requests. A handler
//! may destroy the socket, close the server or drop the response: nothing is borrowed while user
//! code runs.
//
// H2 to H4, H17 to H19, H36 to H55.

mod bounds;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::time::Instant;

use super::incoming::{IncomingMessage, IncomingOptions, set_limit};
use super::outgoing::{KeepAliveLine, Sending};
use super::parser::{Fault, Kind, Limits, Parser, Part};
use super::response::ServerResponse;
use super::server::{
    CHECK_CONTINUE, CHECK_EXPECTATION, CLIENT_ERROR, CONNECT, ClientError, DROP_REQUEST, Dropped,
    Exchange, Handover, REQUEST, State, TIMEOUT, UPGRADE,
};
use super::validate::has_word;
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::node::callback_futures::run_as_callback;
use crate::node::error::Error;
use crate::node::events::{ERROR, Emitter, ListenerId};
use crate::node::net::{self, Consumer, Socket};
use crate::node::stream::{CLOSE, DRAIN, END};
use crate::task::next_tick;

/// What is added to the timeout of an idle connection, so that a client which respects the one in
/// the header does not send a request into the close.
const KEEP_ALIVE_BUFFER: u32 = 1000;

pub(super) struct Connection {
    server: Rc<State>,
    socket: Rc<Socket>,
    /// The place in the server's list.
    place: Cell<Option<usize>>,
    parser: RefCell<Parser>,
    /// The largest number of header lines, as it was when the connection began.
    header_count: usize,
    /// The request that is being received.
    message: RefCell<Option<IncomingMessage>>,
    /// The requests that are not answered.
    incoming: RefCell<VecDeque<IncomingMessage>>,
    /// The response whose turn it is.
    current: RefCell<Option<ServerResponse>>,
    /// The listener that closes the current response with the socket, and the number of such
    /// listeners with it.
    on_close: Cell<Option<(ListenerId, usize)>>,
    /// The responses whose turn has not come.
    waiting: RefCell<VecDeque<ServerResponse>>,
    /// The number of bytes that the waiting responses keep.
    kept: Cell<usize>,
    request_count: Cell<u64>,
    /// Whether the timeout of an idle connection is set.
    is_idle_limited: Cell<bool>,
    /// When the message began that is being received; for the first one, when the connection was
    /// accepted. `None` between messages.
    started: Cell<Option<Instant>>,
    /// Whether the message was found to be too slow.
    is_expired: Cell<bool>,
    /// Since when too many requests are unanswered.
    flooded: Cell<Option<Instant>>,
    /// Why the rest of the input is not parsed: a handler has panicked.
    broken: Cell<Option<Fault>>,
    /// The listeners on the socket.
    listeners: RefCell<Vec<ListenerId>>,
    /// The listener for the first error of the socket.
    on_error: Cell<Option<ListenerId>>,
}

/// How a read ended.
enum Outcome {
    Parsed,
    /// The rest of the read, from this offset on, belongs to another protocol.
    Rest(usize),
    Refused(Fault, usize),
}

impl Connection {
    /// Starts to serve an accepted socket.
    pub(super) fn start(server: &Rc<State>, socket: &Socket) {
        let limits = Limits {
            header_size: server.max_header_size.get(),
            header_count: server.max_headers_count.get(),
        };
        let connection = Rc::new(Self {
            server: server.clone(),
            socket: Rc::new(socket.clone()),
            place: Cell::new(None),
            parser: RefCell::new(Parser::new(Kind::Request, limits)),
            header_count: limits.header_count,
            message: RefCell::default(),
            incoming: RefCell::default(),
            current: RefCell::default(),
            on_close: Cell::new(None),
            waiting: RefCell::default(),
            kept: Cell::new(0),
            request_count: Cell::new(0),
            is_idle_limited: Cell::new(false),
            started: Cell::new(Some(LoopHandle::current().now())),
            is_expired: Cell::new(false),
            flooded: Cell::new(None),
            broken: Cell::new(None),
            listeners: RefCell::default(),
            on_error: Cell::new(None),
        });
        socket.set_no_delay(true);
        if server.timeout.get().is_some() {
            set_limit(socket, server.timeout.get());
        }
        connection.listen();
        connection.place.set(Some(server.add(&connection)));
        let weak: Weak<dyn Consumer> = Rc::<Self>::downgrade(&connection);
        socket.consumed_by(weak);
    }

    /// Adds the listeners, which keep the connection alive while the socket is open.
    fn listen(self: &Rc<Self>) {
        let [timeout, end, error, close, drain] = [(); 5].map(|()| self.clone());
        let socket = &self.socket;
        let on_error = socket.on(ERROR, move |e| error.failed(e.clone(), 0, Vec::new()));
        self.on_error.set(Some(on_error));
        let listeners = vec![
            socket.on(net::TIMEOUT, move |()| timeout.timed_out()),
            socket.on(END, move |()| end.ended()),
            socket.on(CLOSE, move |()| close.closed()),
            socket.on(DRAIN, move |()| drain.drained()),
        ];
        self.listeners.replace(listeners);
    }

    fn stop_listening(&self) {
        let listeners = self.listeners.take().into_iter();
        let on_close = self.on_close.take().map(|(listener, _)| listener);
        for listener in listeners.chain(self.on_error.take()).chain(on_close) {
            self.socket.off(listener);
        }
    }

    /// Removes the connection from the server's list.
    fn leave(&self) {
        if let Some(place) = self.place.take() {
            self.server.remove(place);
        }
    }

    // Reading.

    /// Parses the bytes of a read, and hands out what they contain.
    fn parse(self: &Rc<Self>, bytes: &[u8]) -> Outcome {
        let mut at = 0;
        loop {
            if let Some(fault) = self.broken.get() {
                return Outcome::Refused(fault, 0);
            }
            let part = self.parser.borrow_mut().next(bytes, &mut at);
            match part {
                Ok(Part::NeedMore) => {
                    let is_inside = self.parser.borrow().is_inside();
                    if is_inside && self.started.get().is_none() {
                        self.begin_message();
                    }
                    return Outcome::Parsed;
                }
                Ok(Part::Head) => self.guarded(Fault::HeadHandler, || self.head()),
                Ok(Part::Body(piece)) => {
                    let push = || self.guarded(Fault::BodyHandler, || self.body(&bytes[piece]));
                    run_as_callback(push);
                }
                Ok(Part::End) => self.end_of_message(),
                Ok(Part::Rest) => return Outcome::Rest(at),
                Err(_) if self.parser.borrow().hides_faults() => return Outcome::Parsed,
                Err(fault) => return Outcome::Refused(fault, at),
            }
        }
    }

    /// Calls user code. A panic in it breaks the connection: later input is refused.
    // H54.
    fn guarded(&self, fault: Fault, call: impl FnOnce()) {
        self.broken.set(Some(fault));
        call();
        self.broken.set(None);
    }

    fn begin_message(&self) {
        self.started.set(Some(LoopHandle::current().now()));
        self.is_expired.set(false);
    }

    fn head(self: &Rc<Self>) {
        let head = self.parser.borrow_mut().take_head();
        if self.started.get().is_none() {
            self.begin_message();
        }
        if self.is_idle_limited.replace(false) {
            match self.server.timeout.get() {
                Some(limit) => self.socket.set_timeout(limit),
                None => self.socket.mute_timeout(),
            }
        }
        let options = IncomingOptions {
            header_count: self.header_count,
            joins_duplicates: self.server.joins_duplicates.get(),
        };
        let request = IncomingMessage::new(head, &self.socket, options);
        self.message.replace(Some(request.clone()));
        if request.upgrade() {
            let is_heard = || self.server.listener_count(UPGRADE) > 0;
            let is_wanted = request.method() == "CONNECT" || is_heard();
            request.set_upgrade(is_wanted);
            if is_wanted {
                return self.parser.borrow_mut().upgrade();
            }
        }
        self.incoming.borrow_mut().push_back(request.clone());
        self.pause_if_flooded();
        let response = self.response_to(&request);
        if self.current.borrow().is_some() {
            self.waiting.borrow_mut().push_back(response.clone());
        } else {
            self.give_turn(&response);
        }
        self.answer(request, response);
    }

    fn response_to(self: &Rc<Self>, request: &IncomingMessage) -> ServerResponse {
        let response = ServerResponse::new(request, self);
        let framing = &response.sending().framing;
        framing.keeps_alive.set(request.head().keeps_alive());
        let limit = self.server.max_requests_per_socket.get();
        let line = self
            .server
            .keep_alive_timeout
            .get()
            .map(|timeout| KeepAliveLine {
                seconds: u64::from(timeout / 1000),
                max: Some(limit).filter(|limit| *limit > 0),
            });
        framing.keep_alive_line.set(line);
        response
    }

    /// Passes a request to the program, or answers it.
    // H15, H16, H35.
    fn answer(&self, request: IncomingMessage, response: ServerResponse) {
        let exchange = Exchange { request, response };
        let (request, response) = (&exchange.request, &exchange.response);
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

    fn body(&self, bytes: &[u8]) {
        let message = self.message.borrow().clone();
        if let Some(message) = message {
            message.push(bytes);
        }
    }

    fn end_of_message(&self) {
        let trailers = self.parser.borrow_mut().take_trailers();
        self.started.set(None);
        let is_upgrade = |message: &mut IncomingMessage| !message.upgrade();
        let message = match &mut *self.message.borrow_mut() {
            // The message of an upgrade is needed for its event.
            Some(message) if message.upgrade() => Some(message.clone()),
            message => message.take_if(is_upgrade),
        };
        if let Some(message) = message {
            message.push_end(trailers);
        }
        self.socket.read_on();
    }

    /// Finishes a read.
    fn executed(self: &Rc<Self>, bytes: &[u8], outcome: &Outcome) {
        match outcome {
            Outcome::Parsed => {}
            Outcome::Refused(fault, at) => {
                let error = Error::with_code(fault.code(), fault.message());
                self.failed(error, *at, bytes.to_vec());
            }
            Outcome::Rest(at) => self.hand_over(&bytes[*at..]),
        }
    }

    /// Gives the socket to the program.
    // H46 to H48.
    fn hand_over(&self, rest: &[u8]) {
        let Some(message) = self.message.take() else {
            return;
        };
        self.stop_listening();
        self.socket.unconsumed();
        self.leave();
        let event = match message.method() {
            "CONNECT" => CONNECT,
            _ => UPGRADE,
        };
        if self.server.listener_count(event) == 0 {
            return self.socket.destroy(None);
        }
        let handover = Handover {
            message,
            socket: (*self.socket).clone(),
            head: rest.to_vec(),
        };
        self.server.emit(event, &handover);
    }

    // Responses.

    fn give_turn(self: &Rc<Self>, response: &ServerResponse) {
        self.listen_for_close();
        self.current.replace(Some(response.clone()));
        response.sending().attach(self.socket.clone());
        response.sending().flush();
    }

    /// Adds the listener that closes the current response, behind all others. Node adds it for each
    /// response; here it stays while it is the last one.
    fn listen_for_close(self: &Rc<Self>) {
        if let Some((listener, count)) = self.on_close.get() {
            if self.socket.listener_count(CLOSE) == count {
                return;
            }
            self.socket.off(listener);
        }
        let connection = Rc::downgrade(self);
        let listener = self.socket.on(CLOSE, move |()| {
            if let Some(connection) = connection.upgrade() {
                connection.close_current();
            }
        });
        let count = self.socket.listener_count(CLOSE);
        self.on_close.set(Some((listener, count)));
    }

    fn close_current(&self) {
        let current = self.current.borrow().clone();
        if let Some(response) = current {
            close(response.sending());
        }
    }

    /// A response was written: called before its 'finish' is emitted.
    // H7, H8, H18, H36.
    pub(super) fn response_finished(self: &Rc<Self>, request: &IncomingMessage) {
        self.incoming.borrow_mut().pop_front();
        if self.flooded.get().is_some() {
            self.count_flood();
        }
        request.dump_if_unread();
        let Some(response) = self.current.take() else {
            return;
        };
        let sending = response.sending().clone();
        sending.detach(true);
        let is_last = sending.framing.is_last.get();
        next_tick(move || close(&sending));
        if is_last {
            return self.socket.destroy_soon();
        }
        let next = self.waiting.borrow_mut().pop_front();
        if let Some(next) = next {
            self.give_turn(&next);
        } else if let Some(timeout) = self.server.keep_alive_timeout.get() {
            let limit = timeout.saturating_add(KEEP_ALIVE_BUFFER);
            self.socket.set_timeout_again(limit);
            self.is_idle_limited.set(true);
        }
        if self.socket.holds_reads() {
            self.drained();
        }
    }

    // The events of the socket.

    /// The peer has ended its side.
    // H43, H55.
    fn ended(&self) {
        let finished = self.parser.borrow_mut().finish();
        match finished {
            Err(fault) if !self.parser.borrow().hides_faults() => {
                let error = Error::with_code(fault.code(), fault.message());
                self.failed(error, 0, Vec::new());
            }
            _ => self.socket.end(),
        }
    }

    /// Reports an error of the peer's bytes, of the connection or of its time.
    // H41, H42, H44.
    pub(super) fn failed(&self, error: Error, bytes_parsed: usize, raw_packet: Vec<u8>) {
        // Only the first error is reported.
        if let Some(listener) = self.on_error.take() {
            self.socket.off(listener);
        }
        if self.socket.listener_count(ERROR) == 0 {
            self.socket.on(ERROR, |_| {});
        }
        let error = ClientError {
            error,
            socket: (*self.socket).clone(),
            bytes_parsed,
            raw_packet,
        };
        if self.server.listener_count(CLIENT_ERROR) > 0 {
            return self.server.emit(CLIENT_ERROR, &error);
        }
        let has_sent = match &*self.current.borrow() {
            Some(response) => response.sending().is_head_sent(),
            None => false,
        };
        if self.socket.writable().is_writable() && !has_sent {
            self.socket.write(answer_to(&error.error));
        }
        self.socket.destroy(Some(error.error));
    }

    /// The socket is closed.
    // H51.
    fn closed(&self) {
        self.leave();
        self.message.take();
        let incoming = self.incoming.take();
        for request in incoming {
            request.destroy(Some(Error::with_code("ECONNRESET", "aborted")));
        }
    }

    /// The socket was idle for too long.
    // H36, H38.
    fn timed_out(&self) {
        let message = self.message.borrow().clone();
        let message = message.filter(|message| !message.complete());
        let current = self.current.borrow().clone();
        let mut is_heard = message.is_some_and(|message| message.emit(TIMEOUT, &*self.socket));
        is_heard |= current.is_some_and(|response| response.emit(TIMEOUT, &*self.socket));
        is_heard |= self.server.listener_count(TIMEOUT) > 0;
        self.server.emit(TIMEOUT, &self.socket);
        if !is_heard {
            self.socket.destroy(None);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A response that was ended keeps a callback which holds the response itself.
        let current = self.current.take();
        for response in self.waiting.take().iter().chain(&current) {
            response.sending().abandon();
        }
    }
}

impl Consumer for Connection {
    fn read(self: Rc<Self>, bytes: &[u8]) {
        let outcome = self.parse(bytes);
        run_as_callback(|| self.executed(bytes, &outcome));
    }
}

/// Emits 'close' of a response, once.
fn close(response: &Sending) {
    if !response.base.is_closed() {
        response.emit_close();
    }
}

/// Answers a request without the program.
fn refuse(response: &ServerResponse, status: u16, headers: &[(&str, &str)]) {
    let written = response.write_head_with(status, None, headers.iter().copied());
    debug_assert!(written.is_ok(), "the head is not fixed");
    response.end();
}

/// Returns the answer to bad input.
fn answer_to(error: &Error) -> Vec<u8> {
    let line = match error.code() {
        Some("HPE_HEADER_OVERFLOW") => "431 Request Header Fields Too Large",
        Some("HPE_CHUNK_EXTENSIONS_OVERFLOW") => "413 Payload Too Large",
        Some("ERR_HTTP_REQUEST_TIMEOUT") => "408 Request Timeout",
        _ => "400 Bad Request",
    };
    format!("HTTP/1.1 {line}\r\nConnection: close\r\n\r\n").into_bytes()
}
