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

mod answering;
mod bounds;
mod spares;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::time::Instant;

use self::spares::SpareMessages;
pub(super) use self::spares::Spares;
use super::incoming::{IncomingMessage, IncomingOptions};
use super::outgoing::{KeepAliveLine, Sending};
use super::parser::{Fault, Limits, Parser, Part};
use super::response::{ServerResponse, SpareResponse};
use super::server::{CLIENT_ERROR, CONNECT, ClientError, Handover, State, TIMEOUT, UPGRADE};
use crate::callback_futures::run_as_callback;
use crate::error::Error;
use crate::events::{ERROR, Emitter, Event, Observer};
use crate::net::{self, Consumer, Socket};
use crate::stream::{CLOSE, DRAIN, END};
use phaseloop::LoopHandle;
use phaseloop::extension::frame::Frame;
use phaseloop::task::next_tick;

/// What is added to the timeout of an idle connection, so that a client which respects the one in
/// the header does not send a request into the close.
const KEEP_ALIVE_BUFFER: u32 = 1000;

pub(super) struct Connection {
    server: Rc<State>,
    socket: Rc<Socket>,
    /// The place in the server's list.
    place: Cell<Option<usize>>,
    /// The parser, while it knows something of the connection: an idle connection has none.
    parser: RefCell<Option<Box<Parser>>>,
    /// The limits of a head, as they were when the connection began.
    limits: Limits,
    /// What the parser's events run in: the frame of the event `connection`.
    frame: Frame,
    /// The request that is being received.
    message: RefCell<Option<IncomingMessage>>,
    /// The response whose turn it is.
    current: RefCell<Option<ServerResponse>>,
    /// Whether the program has no access to the current response and its request.
    is_unseen: Cell<bool>,
    /// The number of listeners for the close of the socket when the one was added that closes the
    /// current response, which is zero if it was not added; and the emitter's changes until then.
    close_listeners: Cell<(usize, u32)>,
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
    /// Whether header lines were handed over apart from their head; see
    /// [`hand_over_lines`](Self::hand_over_lines).
    hands_over_lines: Cell<bool>,
    /// Why the rest of the input is not parsed: a handler has panicked.
    broken: Cell<Option<Fault>>,
}

/// The number of header lines from which on Node's parser hands them over apart from their head.
const MANY_LINES: usize = 32;

// What a connection receives from its socket: the tokens of an observer.
const TIMED_OUT: u8 = 0;
const ENDED: u8 = 1;
const CLOSED: u8 = 2;
const DRAINED: u8 = 3;
const CLOSES_CURRENT: u8 = 4;
const FAILED: u8 = 5;

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
            parser: RefCell::default(),
            limits,
            frame: Frame::current(),
            message: RefCell::default(),
            current: RefCell::default(),
            is_unseen: Cell::new(false),
            close_listeners: Cell::new((0, 0)),
            waiting: RefCell::default(),
            kept: Cell::new(0),
            request_count: Cell::new(0),
            is_idle_limited: Cell::new(false),
            started: Cell::new(Some(LoopHandle::current().now())),
            is_expired: Cell::new(false),
            flooded: Cell::new(None),
            hands_over_lines: Cell::new(false),
            broken: Cell::new(None),
        });
        socket.set_no_delay(true);
        if server.timeout.get().is_some() {
            socket.limit_idle_time(server.timeout.get().map(Into::into));
        }
        connection.listen();
        connection.place.set(Some(server.add(&connection)));
        let weak: Weak<dyn Consumer> = Rc::<Self>::downgrade(&connection);
        socket.consumed_by(weak);
    }

    /// Adds the listeners, which keep the connection alive while the socket is open.
    fn listen(self: &Rc<Self>) {
        let emitter = self.socket.emitter();
        emitter.observe_errors(self.clone(), FAILED);
        self.observe(net::TIMEOUT, TIMED_OUT);
        self.observe(END, ENDED);
        self.observe(CLOSE, CLOSED);
        self.observe(DRAIN, DRAINED);
    }

    fn observe(self: &Rc<Self>, event: Event<()>, token: u8) {
        let emitter = self.socket.emitter();
        emitter.observe(event, self.clone(), token);
    }

    fn stop_listening(&self) {
        self.close_listeners.set((0, 0));
        self.socket.emitter().stop_observing(self, None);
    }

    /// Calls `f` with the parser of the connection, which gets one.
    fn with_parser<R>(&self, f: impl FnOnce(&mut Parser) -> R) -> R {
        let mut parser = self.parser.borrow_mut();
        let make = || self.server.spares.parser(self.limits);
        f(parser.get_or_insert_with(make))
    }

    /// Returns whether faults of the input are hidden.
    fn hides_faults(&self) -> bool {
        let parser = self.parser.borrow();
        parser.as_ref().is_some_and(|parser| parser.hides_faults())
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
            let part = self.with_parser(|parser| parser.next(bytes, &mut at));
            match part {
                Ok(Part::NeedMore) => {
                    let is_inside = self.with_parser(|parser| parser.is_inside());
                    if is_inside && self.started.get().is_none() {
                        self.begin_message();
                    }
                    return Outcome::Parsed;
                }
                Ok(Part::Head) => {
                    let lines = self.with_parser(|parser| parser.lines_seen());
                    if lines >= MANY_LINES || self.hands_over_lines.get() {
                        self.hand_over_lines();
                    }
                    self.in_frame(|| self.guarded(Fault::HeadHandler, || self.head()));
                }
                Ok(Part::Body(piece)) => {
                    let push = || self.guarded(Fault::BodyHandler, || self.body(&bytes[piece]));
                    run_as_callback(|| self.in_frame(push));
                }
                Ok(Part::End) => self.in_frame(|| self.end_of_message()),
                Ok(Part::Rest) => return Outcome::Rest(at),
                Err(_) if self.hides_faults() => return Outcome::Parsed,
                Err(fault) => return Outcome::Refused(fault, at),
            }
        }
    }

    /// Drains the lanes, as Node does when its parser hands header lines over apart from their
    /// head: trailers, and heads with many lines. From then on it does so for each head of the
    /// connection.
    fn hand_over_lines(&self) {
        self.hands_over_lines.set(true);
        run_as_callback(|| ());
    }

    /// Calls `f` in the frame of the connection. What it enters ends with it.
    fn in_frame(&self, f: impl FnOnce()) {
        self.frame.clone().call(f);
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
        let spares = self.server.spares.messages();
        let SpareMessages {
            head,
            body,
            response,
        } = spares;
        let head = self.with_parser(|parser| parser.take_head(head));
        if self.started.get().is_none() {
            self.begin_message();
        }
        if self.is_idle_limited.replace(false) {
            match self.server.timeout.get() {
                Some(limit) => self.socket.limit_idle_time(Some(limit.into())),
                None => self.socket.mute_timeout(),
            }
        }
        let options = IncomingOptions {
            joins_duplicates: self.server.joins_duplicates.get(),
        };
        let request = IncomingMessage::new(head, &self.socket, options, body);
        self.message.replace(Some(request.clone()));
        if request.upgrade() {
            let is_heard = || self.server.listener_count(UPGRADE) > 0;
            let is_wanted = request.method() == "CONNECT" || is_heard();
            request.set_upgrade(is_wanted);
            if is_wanted {
                return self.with_parser(Parser::upgrade);
            }
        }
        let response = self.response_to(&request, response);
        if self.current.borrow().is_some() {
            self.waiting.borrow_mut().push_back(response.clone());
        } else {
            self.give_turn(&response);
        }
        self.pause_if_flooded();
        self.answer(request, response);
    }

    fn response_to(
        self: &Rc<Self>,
        request: &IncomingMessage,
        spare: Option<SpareResponse>,
    ) -> ServerResponse {
        let response = ServerResponse::new(request, self, spare);
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

    fn body(&self, bytes: &[u8]) {
        let message = self.message.borrow().clone();
        if let Some(message) = message {
            message.push(bytes);
        }
    }

    fn end_of_message(&self) {
        let trailers = self.with_parser(Parser::take_trailers);
        if trailers.is_some() {
            self.hand_over_lines();
        }
        self.started.set(None);
        let is_upgrade = |message: &mut IncomingMessage| !message.upgrade();
        let message = match &mut *self.message.borrow_mut() {
            // The message of an upgrade is needed for its event.
            Some(message) if message.upgrade() => Some(message.clone()),
            message => message.take_if(is_upgrade),
        };
        if let Some(message) = message {
            if trailers.is_none() && self.has_unseen(&message) {
                self.is_unseen.set(true);
                message.complete_unseen();
            } else {
                message.push_end(trailers);
            }
        }
        self.socket.read_on();
    }

    /// Returns whether the program has no access to a request and its response, and so never will:
    /// what they emit is not received. The request has no body then.
    fn has_unseen(&self, request: &IncomingMessage) -> bool {
        let current = self.current.borrow();
        let response = current.as_ref().filter(|response| response.is_unseen());
        response.is_some_and(|response| response.request().is(request) && request.is_unseen(2))
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
        let emitter = self.socket.emitter();
        let (count, changes) = self.close_listeners.get();
        if count > 0 {
            if emitter.changes() == changes || emitter.listener_count(CLOSE) == count {
                return;
            }
            emitter.stop_observing(&**self, Some(CLOSES_CURRENT));
        }
        self.observe(CLOSE, CLOSES_CURRENT);
        let count = emitter.listener_count(CLOSE);
        self.close_listeners.set((count, emitter.changes()));
    }

    fn close_current(&self) {
        let current = self.current.borrow().clone();
        if let Some(response) = current {
            close(response.sending());
            response.request().drop_extensions();
        }
    }

    /// A response was written: called before its 'finish' is emitted.
    // H7, H8, H18, H36.
    pub(super) fn response_finished(self: &Rc<Self>) {
        let Some(response) = self.current.take() else {
            return;
        };
        if self.flooded.get().is_some() {
            self.count_flood();
        }
        let is_last = response.sending().framing.is_last.get();
        if self.is_unseen.take() {
            self.server.spares.keep_messages(response);
        } else {
            response.request().dump_if_unread();
            let (sending, request) = (response.sending().clone(), response.request().clone());
            sending.detach(true);
            next_tick(move || {
                close(&sending);
                request.drop_extensions();
            });
        }
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
        let finished = match &mut *self.parser.borrow_mut() {
            Some(parser) => parser.finish(),
            None => Ok(Part::NeedMore),
        };
        match finished {
            Err(fault) if !self.hides_faults() => {
                let error = Error::with_code(fault.code(), fault.message());
                self.failed(error, 0, Vec::new());
            }
            _ => self.socket.end(()),
        }
    }

    /// Reports an error of the peer's bytes, of the connection or of its time.
    // H41, H42, H44.
    pub(super) fn failed(&self, error: Error, bytes_parsed: usize, raw_packet: Vec<u8>) {
        // Only the first error is reported.
        self.socket.emitter().stop_observing(self, Some(FAILED));
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
        let unanswered: Vec<_> = {
            let (current, waiting) = (self.current.borrow(), self.waiting.borrow());
            let responses = current.iter().chain(waiting.iter());
            responses
                .map(|response| response.request().clone())
                .collect()
        };
        let aborted = || Some(Error::with_code("ECONNRESET", "aborted"));
        for request in unanswered {
            request.destroy(aborted());
        }
        let waiting: Vec<_> = self.waiting.borrow().iter().cloned().collect();
        for response in waiting {
            response.sending().lose_turn();
            response.destroy(aborted());
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
            response.request().drop_extensions();
        }
    }
}

impl Consumer for Connection {
    fn read(self: Rc<Self>, bytes: &[u8]) {
        self.frame.clone().call(|| {
            let outcome = self.parse(bytes);
            let parser = self
                .parser
                .borrow_mut()
                .take_if(|parser| parser.is_at_rest());
            if let Some(parser) = parser {
                self.server.spares.keep_parser(parser);
            }
            run_as_callback(|| self.in_frame(|| self.executed(bytes, &outcome)));
        });
    }
}

impl Observer for Connection {
    fn notify(self: Rc<Self>, token: u8) {
        match token {
            TIMED_OUT => self.timed_out(),
            ENDED => self.ended(),
            CLOSED => self.closed(),
            DRAINED => self.drained(),
            _ => self.close_current(),
        }
    }

    fn listen_for_error(self: Rc<Self>, error: &Error) {
        self.failed(error.clone(), 0, Vec::new());
    }
}

/// Emits 'close' of a response, once.
fn close(response: &Sending) {
    if !response.base.is_closed() {
        response.emit_close();
    }
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
