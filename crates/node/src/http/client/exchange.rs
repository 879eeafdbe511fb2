//! A request on its socket: what the peer sends, and how both end.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::{
    CONTINUE, ClientRequest, INFORMATION, Information, RESPONSE, RequestOptions, aborted, hang_up,
};
use crate::error::Error;
use crate::events::{ERROR, Emitter as _, ListenerId, WeakThis as _};
use crate::http::agent::Pooled;
use crate::http::incoming::{IncomingMessage, IncomingOptions};
use crate::http::parser::{Fault, Kind, Limits, Parser, Part};
use crate::http::{CONNECT, Handover, UPGRADE};
use crate::net::{Socket, TIMEOUT};
use crate::stream::{CLOSE, DRAIN, END, FINISH};
use phaseloop::task::next_tick;

/// What a request has received.
pub(super) struct Exchange {
    limits: Limits,
    shows: IncomingOptions,
    /// `None` before the socket is there, and after the response is complete.
    parser: RefCell<Option<Parser>>,
    /// The message that the parser fills: a preliminary response, the response, or one too many.
    incoming: RefCell<Option<IncomingMessage>>,
    response: RefCell<Option<IncomingMessage>>,
    /// Whether the response was read to its end.
    is_ended: Cell<bool>,
    has_left_http: Cell<bool>,
    on_socket: RefCell<Option<Listeners>>,
}

/// The listeners of a request on its socket.
#[derive(Clone, Copy)]
struct Listeners {
    error: ListenerId,
    end: ListenerId,
    close: ListenerId,
    drain: ListenerId,
    /// Passes timeouts on to the response.
    timeout: Option<ListenerId>,
}

impl Exchange {
    pub(super) fn new(options: &RequestOptions) -> Self {
        let default = Limits::default();
        let header_count = options.max_headers_count.unwrap_or(default.header_count);
        Self {
            limits: Limits {
                header_size: match options.max_header_size {
                    None | Some(0) => default.header_size,
                    Some(size) => size,
                },
                header_count,
            },
            shows: IncomingOptions {
                joins_duplicates: options.joins_duplicates,
            },
            parser: RefCell::default(),
            incoming: RefCell::default(),
            response: RefCell::default(),
            is_ended: Cell::new(false),
            has_left_http: Cell::new(false),
            on_socket: RefCell::default(),
        }
    }

    /// Whether the response switches to another protocol.
    fn leaves_http(&self) -> bool {
        let response = self.response.borrow();
        response.as_ref().is_some_and(IncomingMessage::upgrade)
    }

    pub(super) fn response(&self) -> Option<IncomingMessage> {
        self.response.borrow().clone()
    }

    /// Returns whether the response was read to its end.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended.get()
    }

    fn drop_parser(&self) {
        let parser = self.parser.take();
        drop(parser);
    }
}

impl ClientRequest {
    fn exchange(&self) -> &Exchange {
        &self.state.exchange
    }

    // The socket.

    /// Begins to use the socket.
    pub(super) fn attach(&self, pooled: &Rc<Pooled>) {
        let socket = pooled.socket();
        let exchange = self.exchange();
        let parser = Parser::new(Kind::Response, exchange.limits);
        exchange.parser.replace(Some(parser));
        pooled.set_request(Some(self));
        self.state.pooled.replace(Rc::downgrade(pooled));
        let [failed, ended, closed, drained] = [(); 4].map(|()| self.clone());
        let listeners = Listeners {
            error: socket.on(ERROR, move |error| failed.socket_failed(error)),
            end: socket.on(END, move |()| ended.socket_ended()),
            close: socket.on(CLOSE, move |()| closed.socket_closed()),
            drain: socket.on(DRAIN, move |()| drained.message.sending().socket_drained()),
            timeout: None,
        };
        exchange.on_socket.replace(Some(listeners));
        pooled.start_reading();
        let is_timed = self.timeout().is_some() || self.state.agent.timeout().is_some();
        if is_timed || self.state.receives_timeouts.get() {
            self.state.receives_timeouts.set(true);
            self.listen_for_timeout(pooled);
        }
        self.message.sending().attach(Rc::new(socket.clone()));
    }

    fn socket(&self) -> Option<Rc<Socket>> {
        self.message.sending().socket()
    }

    /// Removes listeners from the socket.
    fn unhear(&self, choose: impl FnOnce(&Listeners) -> Vec<ListenerId>) {
        let listeners = *self.exchange().on_socket.borrow();
        if let (Some(listeners), Some(socket)) = (listeners, self.socket()) {
            for listener in choose(&listeners) {
                socket.off(listener);
            }
        }
    }

    /// Takes no more bytes, and removes listeners from the socket. The socket drops what it reads
    /// from now on.
    fn stop_reading(&self, choose: impl FnOnce(&Listeners) -> Vec<ListenerId>) {
        self.unhear(choose);
        if let Some(socket) = self.socket() {
            socket.unconsumed();
            socket.resume();
        }
    }

    /// Removes the listener for timeouts of the response.
    fn unhear_timeout(&self) {
        self.unhear(|listeners| listeners.timeout.into_iter().collect());
    }

    /// Reports an error, and suppresses a later 'finish'.
    fn fail(&self, error: Error) {
        self.message.sending().had_error.set(true);
        self.emit(ERROR, error);
    }

    fn had_error(&self) -> bool {
        self.message.sending().had_error.get()
    }

    /// Ends the input of the parser: a body without a length is complete then.
    fn finish_parser(&self) {
        let part = match &mut *self.exchange().parser.borrow_mut() {
            Some(parser) => parser.finish(),
            None => return,
        };
        if let Ok(Part::End) = part {
            self.message_ended();
        }
        self.exchange().drop_parser();
    }

    fn socket_failed(&self, error: &Error) {
        self.fail(error.clone());
        self.finish_parser();
        self.stop_reading(|listeners| vec![listeners.end]);
        if let Some(socket) = self.socket() {
            socket.destroy(None);
        }
    }

    // H64.
    fn socket_ended(&self) {
        if self.exchange().response().is_none() && !self.had_error() {
            self.fail(hang_up());
        }
        self.finish_parser();
        if let Some(socket) = self.socket() {
            socket.destroy(None);
        }
    }

    // H64, H65, H67.
    fn socket_closed(&self) {
        let sending = self.message.sending();
        sending.mark_destroyed();
        match self.exchange().response() {
            Some(response) => {
                if !response.complete() {
                    response.destroy(Some(aborted()));
                }
                self.close();
                if !response.aborted() && response.readable().is_readable() {
                    response.readable().push_end();
                }
            }
            None => {
                if !self.had_error() {
                    self.fail(hang_up());
                }
                self.close();
            }
        }
        sending.drop_kept();
        self.finish_parser();
        if let Some(pooled) = self.pooled() {
            pooled.set_request(None);
        }
    }

    // Reading.

    /// Parses what the socket has read. All parts are handled before a lane runs.
    // H63.
    pub(in crate::http) fn socket_read(&self, bytes: &[u8]) {
        let mut at = 0;
        loop {
            let part = match &mut *self.exchange().parser.borrow_mut() {
                Some(parser) => parser.next(bytes, &mut at),
                None => return,
            };
            match part {
                Ok(Part::Head) => self.head_read(),
                Ok(Part::Body(range)) => {
                    let incoming = self.exchange().incoming.borrow().clone();
                    if let Some(incoming) = incoming {
                        incoming.push(&bytes[range]);
                    }
                }
                Ok(Part::End) => self.message_ended(),
                Ok(Part::NeedMore) => break,
                // A status 101 that names no other protocol is an ordinary response.
                Ok(Part::Rest) if !self.exchange().leaves_http() => break,
                Ok(Part::Rest) => return self.leave_http(bytes[at..].to_vec()),
                Err(fault) => return self.parse_failed(fault),
            }
        }
        let incoming = self.exchange().incoming.borrow().clone();
        let is_over = |incoming: &IncomingMessage| incoming.complete() && !is_preliminary(incoming);
        if incoming.as_ref().is_some_and(is_over) {
            self.stop_reading(|listeners| vec![listeners.end, listeners.drain]);
            self.exchange().drop_parser();
        }
    }

    // H78.
    fn parse_failed(&self, fault: Fault) {
        self.exchange().drop_parser();
        self.stop_reading(|listeners| vec![listeners.end]);
        if let Some(socket) = self.socket() {
            socket.destroy(None);
        }
        self.fail(Error::with_code(fault.code(), fault.message()));
    }

    fn head_read(&self) {
        let exchange = self.exchange();
        let Some(socket) = self.socket() else { return };
        let head = match &mut *exchange.parser.borrow_mut() {
            Some(parser) => parser.take_head(None),
            None => return,
        };
        let keeps_alive = head.keeps_alive();
        let incoming = IncomingMessage::new(head, &socket, exchange.shows, None);
        // A reader that leaves the body ends the request without an error.
        let request = self.weak_this();
        incoming.readable().on_leave(move || {
            if let Some(request) = request() {
                request.destroy(None);
            }
            false
        });
        exchange.incoming.replace(Some(incoming.clone()));
        if exchange.response.borrow().is_some() {
            // A second response. It is read into a message without a reader.
            incoming.dump();
            return socket.destroy(None);
        }
        if incoming.upgrade() || self.method() == "CONNECT" {
            incoming.set_upgrade(true);
            exchange.response.replace(Some(incoming));
            self.notify_parser(Parser::upgrade);
        } else if is_preliminary(&incoming) {
            self.informed(&incoming);
            self.notify_parser(Parser::skip_body);
        } else {
            self.responded(&incoming, keeps_alive);
            if self.method() == "HEAD" {
                self.notify_parser(Parser::skip_body);
            }
        }
    }

    fn notify_parser(&self, what: impl FnOnce(&mut Parser)) {
        if let Some(parser) = &mut *self.exchange().parser.borrow_mut() {
            what(parser);
        }
    }

    // H66.
    fn informed(&self, incoming: &IncomingMessage) {
        let status_code = incoming.status_code().unwrap_or_default();
        if status_code == 100 {
            self.emit(CONTINUE, ());
        }
        let information = Information {
            status_code,
            status_message: incoming.status_message().to_owned(),
            http_version: incoming.http_version(),
            headers: incoming.headers().clone(),
            raw_headers: incoming.raw_headers().to_vec(),
        };
        self.emit(INFORMATION, information);
    }

    // H61.
    fn responded(&self, response: &IncomingMessage, keeps_alive: bool) {
        let sending = self.message.sending();
        if !keeps_alive {
            sending.framing.keeps_alive.set(false);
        }
        self.exchange().response.replace(Some(response.clone()));
        // Weak, because the request holds the response. The socket holds the request meanwhile.
        let (ended, finished) = (self.weak_this(), self.clone());
        response.on(END, move |()| {
            if let Some(request) = ended() {
                request.response_ended();
            }
        });
        self.on(FINISH, move |()| finished.written());
        if let Some(socket) = self.socket() {
            let message = response.clone();
            let listener = socket.on(TIMEOUT, move |()| {
                message.emit(TIMEOUT, ());
            });
            if let Some(listeners) = &mut *self.exchange().on_socket.borrow_mut() {
                listeners.timeout = Some(listener);
            }
        }
        if !self.emit(RESPONSE, response) {
            response.dump();
        }
    }

    fn message_ended(&self) {
        let trailers = match &mut *self.exchange().parser.borrow_mut() {
            Some(parser) => parser.take_trailers(),
            None => None,
        };
        let incoming = self.exchange().incoming.borrow().clone();
        if let Some(incoming) = incoming {
            incoming.push_end(trailers);
        }
    }

    /// Hands the socket over to the program.
    // H77.
    fn leave_http(&self, head: Vec<u8>) {
        let exchange = self.exchange();
        let (Some(socket), Some(response)) = (self.socket(), exchange.response()) else {
            return;
        };
        let event = match self.method() {
            "CONNECT" => CONNECT,
            _ => UPGRADE,
        };
        self.stop_reading(|listeners| vec![listeners.end, listeners.drain]);
        self.unhear_timeout();
        exchange.drop_parser();
        if self.listener_count(event) == 0 {
            return socket.destroy(None);
        }
        exchange.has_left_http.set(true);
        if let Some(pooled) = self.pooled() {
            pooled.leave();
            pooled.set_request(None);
        }
        if let Some(listener) = self.state.on_timeout.take() {
            socket.off(listener);
        }
        self.unhear(|listeners| vec![listeners.close, listeners.error]);
        socket.readable().forget_flow();
        let handover = Handover {
            message: response,
            socket: (*socket).clone(),
            head,
        };
        self.emit(event, handover);
        self.message.sending().mark_destroyed();
        self.close();
    }

    // The end.

    /// The response was read to its end.
    // H61, H62.
    fn response_ended(&self) {
        self.unhear_timeout();
        self.exchange().is_ended.set(true);
        let Some(socket) = self.socket() else { return };
        if let Some(listener) = self.state.on_timeout.take() {
            socket.off(listener);
        }
        if !self.keeps_alive() {
            if socket.writable().is_writable() {
                socket.destroy_soon();
            }
        } else if self.finished() && !self.exchange().response().is_some_and(|r| r.aborted()) {
            self.keep_alive();
        }
    }

    /// The request was written. The response may have been read to its end before.
    fn written(&self) {
        if self.keeps_alive() && self.exchange().is_ended.get() {
            self.keep_alive();
        }
    }

    /// Gives the socket back to the agent, on a tick.
    // H61, H72.
    fn keep_alive(&self) {
        if let Some(socket) = self.socket().filter(|_| self.state.receives_timeouts.get()) {
            socket.clear_timeout();
        }
        self.stop_reading(|on| vec![on.close, on.error, on.end, on.drain]);
        self.message.sending().mark_destroyed();
        let request = self.clone();
        next_tick(move || {
            request.message.sending().detach(false);
            request.close();
            if let Some(pooled) = request.pooled() {
                pooled.free();
            }
        });
    }
}

/// Whether another response follows.
fn is_preliminary(message: &IncomingMessage) -> bool {
    matches!(message.status_code(), Some(100 | 102..=199))
}
