//! Random handlers of a server of http, with what its messages emit on Node, against a server here.
//!
//! `http/servers.js` makes and records the cases, one JSON object a line: `send` is what a peer
//! sends, piece by piece, `then` what it does behind them, `handlers` what is done with each
//! request, `trace` what Node did.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use phaseloop::time::sleep;
use phaseloop_node::events::{ERROR, Event};
use phaseloop_node::http::{ABORTED, IncomingMessage, Server, ServerResponse};
use phaseloop_node::net::{self, CONNECTION, LISTENING, Socket, SocketOptions};
use phaseloop_node::stream::{CLOSE, DRAIN, END, FINISH, PAUSE, PREFINISH, RESUME, Readable};
use phaseloop_node::{Emitter, Error, events, next_tick, queue_microtask, set_immediate};
use serde_json::Value;

use crate::golden::Comparison;
use crate::http::{bytes_of, in_lanes, latin1, undated};
use crate::http_clients::{code, difference, quoted, strings};

/// What the peer waits behind each step. Even 16 times as long, a case ends before the server closes
/// an idle connection.
const STEP: Duration = Duration::from_millis(50);

/// Runs all cases of a file, and compares them with what Node did.
pub(crate) fn compare(text: &str) -> Comparison {
    in_lanes(text, |case| async move { check(&case).await })
}

/// Runs one case. Returns the difference.
async fn check(case: &Value) -> Option<String> {
    let node: Vec<_> = strings(&case["trace"]).collect();
    let mut here = Vec::new();
    // A busy machine delivers two pieces at once, or one late: the case runs again, and waits longer.
    for patience in [1, 2, 4, 8, 16] {
        here = run(case, STEP * patience).await;
        if node == here {
            return None;
        }
    }
    let what = format!(
        "send: {}, then {}\n  handlers: {}",
        case["send"], case["then"], case["handlers"]
    );
    Some(difference(case, &what, &node, &here))
}

/// What a case knows of its requests.
struct State {
    handlers: Vec<Value>,
    server: Server,
    trace: RefCell<Vec<String>>,
    count: Cell<usize>,
    is_over: Cell<bool>,
}

impl State {
    fn log(&self, words: impl Into<String>) {
        if !self.is_over.get() {
            self.trace.borrow_mut().push(words.into());
        }
    }

    /// Logs what has happened, and where the lanes run after it.
    fn mark(self: &Rc<Self>, words: String) {
        let (tick, promise) = (self.clone(), self.clone());
        let (in_tick, in_promise) = (format!("{words}.tick"), format!("{words}.promise"));
        self.log(words);
        next_tick(move || tick.log(in_tick));
        queue_microtask(move || promise.log(in_promise));
    }
}

async fn run(case: &Value, pause: Duration) -> Vec<String> {
    let server = Server::new();
    let state = Rc::new(State {
        handlers: case["handlers"].as_array().cloned().unwrap_or_default(),
        server: server.clone(),
        trace: RefCell::default(),
        count: Cell::new(0),
        is_over: Cell::new(false),
    });
    let of = state.clone();
    server.on_request(move |req, res| handle(&of, req, res));
    let of = state.clone();
    server.on(CONNECTION, move |socket| {
        let (closed, ended) = (of.clone(), of.clone());
        socket.on_this(CLOSE, move |socket, ()| {
            closed.log(format!("socket.close {}", socket.had_error()));
        });
        socket.on(END, move |()| ended.log("socket.end"));
    });
    let of = state.clone();
    server.on(CLOSE, move |()| of.log("server.close"));
    server.listen(("127.0.0.1", 0));
    let listening = events::once(&server, LISTENING).await;
    listening.expect("there is a port left");
    let (got, is_closed) = talk(case, &state, pause).await;
    state.is_over.set(true);
    server.close_all_connections();
    server.close();
    let mut trace = state.trace.take();
    trace.push(format!("closed {is_closed}"));
    trace.push(format!("wire {}", quoted(&shortened(&got))));
    trace
}

/// Sends what the peer sends, with pauses. Returns what has come back, and whether the server has closed by
/// itself.
async fn talk(case: &Value, state: &Rc<State>, pause: Duration) -> (String, bool) {
    let pause = || sleep(pause);
    let peer = Socket::with_options(SocketOptions {
        allow_half_open: true,
        ..SocketOptions::default()
    });
    peer.connect(state.server.address().expect("it listens"));
    peer.set_no_delay(true);
    let (got, is_gone) = (Rc::<RefCell<String>>::default(), Rc::new(Cell::new(false)));
    let all = got.clone();
    peer.on_data(move |bytes| all.borrow_mut().push_str(&latin1(bytes)));
    let gone = is_gone.clone();
    peer.on_this(END, move |peer, ()| {
        gone.set(true);
        peer.end(());
    });
    let gone = is_gone.clone();
    peer.on(ERROR, move |_| gone.set(true));
    let connected = events::once(&peer, net::CONNECT).await;
    connected.expect("the server listens");
    for piece in case["send"].as_array().into_iter().flatten() {
        if !is_gone.get() {
            peer.write(bytes_of(piece));
        }
        pause().await;
    }
    pause().await;
    let is_closed = is_gone.get();
    state.log("peer");
    match case["then"].as_str() {
        Some("destroy") => peer.destroy(None),
        Some("end") => peer.end(()),
        _ => {
            pause().await;
            peer.end(());
        }
    }
    pause().await;
    pause().await;
    state.log("over");
    peer.destroy(None);
    (got.take(), is_closed)
}

/// The large writes as one letter.
fn shortened(text: &str) -> String {
    let text = undated(text.as_bytes()).replace(&"y".repeat(20_000), "Y");
    let (mut short, mut rest) = (String::new(), text.as_str());
    while let Some(at) = rest.find(&"y".repeat(100)) {
        short += &rest[..at];
        short.push('y');
        rest = rest[at..].trim_start_matches('y');
    }
    short + rest
}

/// A request, its response, and the number that they have in the trace.
#[derive(Clone)]
struct Handling {
    name: String,
    state: Rc<State>,
    req: IncomingMessage,
    res: ServerResponse,
}

fn handle(state: &Rc<State>, req: &IncomingMessage, res: &ServerResponse) {
    let number = state.count.get();
    state.count.set(number + 1);
    res.send_date(false);
    let handling = Handling {
        name: format!("{number}."),
        state: state.clone(),
        req: req.clone(),
        res: res.clone(),
    };
    handling.mark(&format!("request {} {}", req.method(), req.url()));
    handling.listen();
    let list = state.handlers.get(number).and_then(Value::as_array);
    for step in list.into_iter().flatten() {
        let Some([when, op @ ..]) = step.as_array().map(Vec::as_slice) else {
            continue;
        };
        let (of, op) = (handling.clone(), op.to_vec());
        let act = move || of.act(&op);
        match when.as_str().unwrap_or_default() {
            "now" => act(),
            "tick" => next_tick(act),
            "promise" => queue_microtask(act),
            "immediate" => _ = set_immediate(act),
            "end" => _ = req.once(END, move |()| act()),
            _ => _ = req.once(Readable::<Vec<u8>>::DATA, move |_| act()),
        }
    }
}

impl Handling {
    fn log(&self, words: &str) {
        self.state.log(format!("{}{words}", self.name));
    }

    fn mark(&self, words: &str) {
        self.state.mark(format!("{}{words}", self.name));
    }

    fn listen(&self) {
        let (req, res) = (&self.req, &self.res);
        let of = self.clone();
        req.on(END, move |()| {
            let pairs = of.req.raw_trailers().iter();
            let words = pairs.flat_map(|(name, value)| [&**name, &**value]);
            let trailers = words.collect::<Vec<_>>().join("=");
            of.mark(&format!("req.end {} {trailers}", of.req.complete()));
        });
        self.hear(req, "req", CLOSE, true);
        for event in [ABORTED, PAUSE, RESUME] {
            self.hear(req, "req", event, false);
        }
        self.hear_error(req, "req");
        for event in [FINISH, CLOSE] {
            self.hear(res, "res", event, true);
        }
        for event in [PREFINISH, DRAIN] {
            self.hear(res, "res", event, false);
        }
        self.hear_error(res, "res");
    }

    fn hear(&self, of: &impl Emitter, whose: &'static str, event: Event<()>, marks: bool) {
        let this = self.clone();
        of.on(event, move |()| {
            let words = format!("{whose}.{}", event.name());
            match marks {
                true => this.mark(&words),
                false => this.log(&words),
            }
        });
    }

    fn hear_error(&self, of: &impl Emitter, whose: &'static str) {
        let this = self.clone();
        of.on(ERROR, move |error| {
            this.log(&format!("{whose}.error {}", code(error)));
        });
    }

    /// Returns a callback that logs a result.
    fn tells(&self, what: &'static str) -> impl FnOnce(Result<(), Error>) + 'static {
        let this = self.clone();
        move |result| {
            let result = result.err().map_or("ok".to_owned(), |error| code(&error));
            this.log(&format!("{what} {result}"));
        }
    }

    fn act(&self, op: &[Value]) {
        let text = |at: usize| op.get(at).and_then(Value::as_str).unwrap_or_default();
        let what = text(0);
        let act = || -> Result<(), Error> {
            if !self.answer(what, op)? {
                self.end_things(what);
            }
            Ok(())
        };
        let Ok(done) = catch_unwind(AssertUnwindSafe(act)) else {
            return self.log(&format!("threw {what} "));
        };
        match done {
            Ok(()) => {
                let (req, res) = (&self.req, &self.res);
                let (sent, ended) = (res.headers_sent(), res.ended());
                let (res_gone, req_gone) = (res.destroyed(), req.destroyed());
                self.log(&format!("did {what} {sent} {ended} {res_gone} {req_gone}"));
            }
            Err(error) => self.log(&format!("threw {what} {}", code(&error))),
        }
    }

    /// Does what concerns the answer. Returns whether it was that.
    fn answer(&self, what: &str, op: &[Value]) -> Result<bool, Error> {
        let res = &self.res;
        let text = |at: usize| op.get(at).and_then(Value::as_str).unwrap_or_default();
        let number = op.get(1).and_then(Value::as_u64).unwrap_or_default();
        let status = u16::try_from(number).unwrap_or_default();
        match what {
            "write" => {
                let has_room = res.write_with(text(1), self.tells("written"));
                self.log(&format!("write {has_room}"));
            }
            "writeBig" => {
                let has_room = res.write("y".repeat(20_000));
                self.log(&format!("big {has_room}"));
            }
            "end" if text(1).is_empty() => res.end(()),
            "end" => res.end(text(1)),
            "endCallback" => res.end_with("cb", self.tells("ended")),
            "sized" => {
                res.try_set_header("Content-Length", 3).expect("a panic");
                res.end("abc");
            }
            "setHeader" => res.try_set_header(text(1), text(2))?,
            "appendHeader" => res.append_header(text(1), text(2))?,
            "removeHeader" => res.remove_header(text(1))?,
            "writeHead" if text(2).is_empty() => res.try_write_head(status, None, ())?,
            "writeHead" => res.try_write_head(status, None, [(text(2), text(3))])?,
            "flushHeaders" => res.flush_headers(),
            "cork" => res.cork(),
            "uncork" if res.corked() == 0 => {}
            "uncork" => res.uncork(),
            "addTrailers" => res.add_trailers([(text(1), text(2))])?,
            "writeContinue" => res.write_continue(),
            "writeProcessing" => res.write_processing(),
            "hints" => res.write_early_hints([("link", "</a>; rel=preload")])?,
            "status" => _ = res.set_status(status),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Does what concerns the request, the connection and the server.
    fn end_things(&self, what: &str) {
        let (req, state) = (&self.req, &self.state);
        match what {
            "destroyResponse" => self.res.destroy(None),
            "destroyRequest" => req.destroy(None),
            "destroySocket" => req.socket().destroy(None),
            "resume" => _ = req.resume(),
            "pause" => _ = req.pause(),
            "onData" => {
                let of = self.clone();
                req.on_data(move |bytes| of.mark(&format!("data {}", latin1(bytes))));
            }
            "closeServer" => state.server.close(),
            "closeIdle" => state.server.close_idle_connections(),
            _ => state.server.close_all_connections(),
        }
    }
}
