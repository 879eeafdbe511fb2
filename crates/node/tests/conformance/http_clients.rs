//! Random answers to a client of http, with what its requests emit on Node, against a client here.
//!
//! `http/clients.js` makes and records the cases, one JSON object a line: `ask` is the request,
//! `answers` the pieces that a peer sends back to the first and to later requests, `then` what the
//! peer does behind them, `trace` what Node did. A second request over the same agent follows.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use phaseloop::spawn;
use phaseloop::time::sleep;
use phaseloop_node::events::ERROR;
use phaseloop_node::http::{
    self, ABORTED, Agent, CONNECT, CONTINUE, ClientRequest, FREE, INFORMATION, IncomingMessage,
    RESPONSE, RequestOptions, SOCKET, UPGRADE,
};
use phaseloop_node::net::{self, LISTENING, Socket};
use phaseloop_node::stream::{CLOSE, END, FINISH, READABLE};
use phaseloop_node::{
    AbortController, Emitter, Error, events, next_tick, queue_microtask, set_timeout,
};
use serde_json::Value;

use crate::golden::Comparison;
use crate::http::{SLOWNESS, bytes_of, in_lanes, latin1};
use crate::support;

/// How often a case may run until it passes.
const ATTEMPTS: usize = if cfg!(windows) { 8 } else { 3 };

/// A time of a case.
const fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count * SLOWNESS)
}

/// Runs all cases of a file, and compares them with what Node did.
pub(crate) fn compare(text: &str) -> Comparison {
    // Wine reads a reset as EOF.
    let can_run = |line: &&str| !(support::is_wine() && line.contains(r#""then":"reset""#));
    let lines: Vec<_> = text.lines().collect();
    let kept: Vec<_> = lines.iter().copied().filter(can_run).collect();
    let mut result = in_lanes(&kept.join("\n"), |case| async move { check(&case).await });
    result.left_out = lines.len() - kept.len();
    result
}

/// Runs one case. Returns the difference.
async fn check(case: &Value) -> Option<String> {
    let node: Vec<_> = strings(&case["trace"]).collect();
    let mut here = Vec::new();
    // A busy machine delivers two pieces at once, or one late: the case runs again.
    for _ in 0..ATTEMPTS {
        here = run(case).await;
        if node == here {
            return None;
        }
    }
    let what = format!(
        "ask: {}\n  answer: {}, then {}",
        case["ask"], case["answers"][0], case["then"]
    );
    Some(difference(case, &what, &node, &here))
}

/// Tells how two traces of a case differ.
pub(crate) fn difference(case: &Value, what: &str, node: &[&str], here: &[String]) -> String {
    let both = node.iter().zip(here);
    let same = both.take_while(|(node, here)| *node == here).count();
    format!(
        "seed {}\n  {what}\n  same: {}\n  node: {}\n  here: {}",
        case["seed"],
        node[..same].join(" | "),
        node[same..].join(" | "),
        here[same..].join(" | ")
    )
}

pub(crate) fn strings(value: &Value) -> impl Iterator<Item = &str> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(Value::as_str)
}

/// The text as JSON, in ASCII.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown = String::new();
    for char in Value::from(text).to_string().chars() {
        match char {
            '\u{7f}'.. => shown += &format!("\\u{:04x}", u32::from(char)),
            _ => shown.push(char),
        }
    }
    shown
}

pub(crate) fn code(error: &Error) -> String {
    error.code().unwrap_or(error.message()).to_owned()
}

/// What a case knows of its requests.
#[derive(Default)]
struct State {
    trace: RefCell<Vec<String>>,
    asked: Cell<usize>,
    wire: RefCell<Vec<String>>,
    /// The client's socket.
    socket: RefCell<Option<Socket>>,
    peers: RefCell<Vec<Socket>>,
    /// Counts what has happened.
    news: Cell<u64>,
}

impl State {
    fn log(&self, words: impl Into<String>) {
        self.trace.borrow_mut().push(words.into());
    }

    fn note(&self) {
        self.news.set(self.news.get() + 1);
    }
}

async fn run(case: &Value) -> Vec<String> {
    let state = Rc::new(State::default());
    let (case, at) = (Rc::new(case.clone()), state.clone());
    let peer_case = case.clone();
    let server = net::create_server(move |peer| serve(peer, &peer_case, &at));
    server.listen(("127.0.0.1", 0));
    let listening = events::once(&server, LISTENING).await;
    listening.expect("there is a port left");
    let ask = &case["ask"];
    let agent = match ask["agent"].as_str() {
        Some("none") => Agent::none(),
        kind => Agent::builder().keep_alive(kind == Some("keep")).build(),
    };
    if ask["agent"] != "none" {
        let freed = state.clone();
        agent.on(FREE, move |_| {
            freed.log("free");
            freed.note();
        });
    }
    Exchange::run(ask, "", &server, &agent, &state).await;
    sleep(milliseconds(30)).await;
    let second = serde_json::json!({ "method": "GET", "reads": "flow" });
    Exchange::run(&second, "2.", &server, &agent, &state).await;
    let host = server.address().expect("it listens").to_string();
    for wire in state.wire.take() {
        state.log(format!("wire {}", quoted(&wire.replace(&host, "HOST"))));
    }
    state.log(format!("connections {}", state.peers.borrow().len()));
    let trace = state.trace.borrow().clone();
    agent.destroy();
    for peer in state.peers.take() {
        peer.destroy(None);
    }
    server.close();
    trace
}

/// Answers the requests of a connection.
fn serve(peer: &Socket, case: &Rc<Value>, state: &Rc<State>) {
    peer.set_no_delay(true);
    state.peers.borrow_mut().push(peer.clone());
    peer.on(ERROR, |_| ());
    let (got, is_answering) = (Rc::<RefCell<String>>::default(), Rc::new(Cell::new(false)));
    let (case, state, peer) = (case.clone(), state.clone(), peer.clone());
    let this = peer.clone();
    peer.on_data(move |piece| {
        state.note();
        got.borrow_mut().push_str(&latin1(piece));
        if !got.borrow().contains("\r\n\r\n") || is_answering.replace(true) {
            return;
        }
        let (case, state, peer) = (case.clone(), state.clone(), this.clone());
        let (got, is_answering) = (got.clone(), is_answering.clone());
        spawn(async move {
            sleep(milliseconds(10)).await;
            state.wire.borrow_mut().push(got.take());
            answer(&peer, &case, &state).await;
            is_answering.set(false);
            match case["then"].as_str() {
                Some("end") => peer.end(()),
                Some("reset") => peer.reset_and_destroy(),
                _ => {}
            }
            state.note();
        })
        .detach();
    });
}

/// Sends the pieces of an answer, each when the client has read the one before.
async fn answer(peer: &Socket, case: &Value, state: &State) {
    let asked = state.asked.get();
    state.asked.set(asked + 1);
    let pieces = case["answers"][asked.min(1)].as_array();
    for piece in pieces.into_iter().flatten().map(bytes_of) {
        if peer.destroyed() {
            return;
        }
        let socket = state.socket.borrow().clone();
        let read = |socket: &Socket| socket.bytes_read();
        let target = socket.as_ref().map_or(0, read) + piece.len() as u64;
        peer.write(piece);
        state.note();
        let waits = |socket: &Socket| !socket.destroyed() && socket.bytes_read() < target;
        for _ in 0..100 {
            if !state.socket.borrow().as_ref().is_some_and(waits) {
                break;
            }
            sleep(milliseconds(4)).await;
        }
        sleep(milliseconds(10)).await;
    }
}

/// One request and what it emits.
struct Exchange {
    ask: Value,
    prefix: &'static str,
    state: Rc<State>,
    controller: AbortController,
    request: RefCell<Option<ClientRequest>>,
    response: RefCell<Option<IncomingMessage>>,
    is_over: Cell<bool>,
}

impl Exchange {
    /// Makes a request, and waits until it is closed or nothing happens any more.
    async fn run(
        ask: &Value,
        prefix: &'static str,
        server: &net::Server,
        agent: &Agent,
        state: &Rc<State>,
    ) {
        let exchange = Rc::new(Self {
            ask: ask.clone(),
            prefix,
            state: state.clone(),
            controller: AbortController::new(),
            request: RefCell::default(),
            response: RefCell::default(),
            is_over: Cell::new(false),
        });
        let address = server.address().expect("it listens");
        if let Err(error) = exchange.start(address, agent) {
            return state.log(format!("{prefix}thrown {}", code(&error)));
        }
        let (mut quiet, mut looks) = (0, 0);
        while quiet < if exchange.is_over.get() { 12 } else { 20 } && looks < 400 {
            let before = state.news.get();
            sleep(milliseconds(10)).await;
            let is_quiet = state.news.get() == before;
            quiet = if is_quiet { quiet + 1 } else { 0 };
            looks += 1;
        }
        state.log(format!("{prefix}over-{}", exchange.is_over.get()));
    }

    fn start(self: &Rc<Self>, to: std::net::SocketAddr, agent: &Agent) -> Result<(), Error> {
        let ask = &self.ask;
        let method = ask["method"].as_str().unwrap_or_default();
        let path = if method == "CONNECT" { "a:1" } else { "/p" };
        let options = RequestOptions::new(to).agent(agent).method(method);
        let mut options = options.path(path).signal(&self.controller.signal());
        let headers = ask["headers"].as_array().into_iter().flatten();
        let headers: Vec<_> = headers
            .map(|header| {
                let [name, value] = [&header[0], &header[1]].map(|part| part.as_str().unwrap());
                (name.to_owned(), value.to_owned())
            })
            .collect();
        if !headers.is_empty() {
            options = options.raw_headers(headers);
        }
        let request = http::try_request(options)?;
        self.request.replace(Some(request.clone()));
        self.listen(&request);
        self.act("now");
        let mut body: Vec<_> = strings(&ask["body"]).collect();
        let last = body.pop();
        for piece in body {
            request.write(piece);
        }
        if ask["flush"] == true {
            request.flush_headers();
        }
        match last {
            Some(piece) => request.end(piece),
            None => request.end(()),
        }
        Ok(())
    }

    fn note(self: &Rc<Self>, words: impl Into<String>, at: &'static str) {
        let (state, prefix) = (&self.state, self.prefix);
        state.log(format!("{prefix}{}", words.into()));
        state.note();
        if at.is_empty() {
            return;
        }
        let (tick, promise) = (state.clone(), state.clone());
        next_tick(move || tick.log(format!("{prefix}{at}.tick")));
        queue_microtask(move || promise.log(format!("{prefix}{at}.promise")));
        self.act(at);
    }

    /// Does what the case does at an event.
    fn act(&self, at: &str) {
        let act = &self.ask["act"];
        if act[0] != at {
            return;
        }
        let request = self.request.borrow().clone().expect("it was made");
        let response = self.response.borrow().clone();
        let mine = || Some(Error::new("mine"));
        match (act[1].as_str(), response) {
            (Some("destroy"), _) | (Some("destroyResponse"), None) => request.destroy(None),
            (Some("error"), _) | (Some("errorResponse"), None) => request.destroy(mine()),
            (Some("abort"), _) => self.controller.abort(),
            (Some("destroyResponse"), Some(response)) => response.destroy(None),
            (Some("errorResponse"), Some(response)) => response.destroy(mine()),
            (Some("pause"), Some(response)) => {
                response.pause();
                set_timeout(15 * SLOWNESS, move || _ = response.resume());
            }
            (Some("endSocket"), _) => {
                if let Some(socket) = request.socket() {
                    socket.end(());
                }
            }
            _ => {}
        }
    }

    fn listen(self: &Rc<Self>, request: &ClientRequest) {
        let this = self.clone();
        request.on_this(SOCKET, move |request, socket| {
            this.state.socket.replace(Some(socket.clone()));
            // An error of a response that is destroyed late has no other listener.
            socket.on(ERROR, |_| ());
            this.note(
                format!("socket reused-{}", request.reused_socket()),
                "socket",
            );
            if socket.connecting() {
                let this = this.clone();
                socket.once(net::CONNECT, move |()| this.note("connect", "connect"));
            }
        });
        for (event, name) in [(FINISH, "finish"), (CONTINUE, "continue")] {
            let this = self.clone();
            request.on(event, move |()| this.note(name, name));
        }
        let this = self.clone();
        request.on(INFORMATION, move |i| {
            let message = quoted(&i.status_message);
            this.note(
                format!("information {} {message}", i.status_code),
                "information",
            );
        });
        for event in [UPGRADE, CONNECT] {
            if self.ask["upgrades"] != true {
                break;
            }
            let this = self.clone();
            request.on(event, move |handover| {
                let status = handover.message.status_code().unwrap_or_default();
                let head = quoted(&latin1(&handover.head));
                this.note(format!("{} {status} {head}", event.name()), event.name());
                handover.socket.destroy(None);
            });
        }
        let [failed, closed, responded] = [(); 3].map(|()| self.clone());
        request.on(ERROR, move |e| {
            failed.note(format!("error {}", code(e)), "error")
        });
        request.on(CLOSE, move |()| {
            closed.is_over.set(true);
            closed.note("close", "close");
        });
        request.on(RESPONSE, move |response| responded.responded(response));
    }

    fn responded(self: &Rc<Self>, response: &IncomingMessage) {
        self.response.replace(Some(response.clone()));
        let status = response.status_code().unwrap_or_default();
        let head = format!(
            "response {} {status} {} {}",
            response.http_version(),
            quoted(response.status_message()),
            shown(response.raw_headers())
        );
        self.note(head, "response");
        let [aborted, failed, ended, closed] = [(); 4].map(|()| self.clone());
        response.on(ABORTED, move |()| aborted.note("aborted", "aborted"));
        response.on(ERROR, move |e| {
            failed.note(format!("res.error {}", code(e)), "")
        });
        response.on_this(END, move |response, ()| {
            let trailers = shown(response.raw_trailers());
            ended.note(
                format!("end complete-{} {trailers}", response.complete()),
                "end",
            );
        });
        response.on_this(CLOSE, move |response, ()| {
            closed.note(format!("res.close complete-{}", response.complete()), "");
        });
        let this = self.clone();
        let data = move |bytes: &Vec<u8>| {
            this.note(format!("data {}", quoted(&latin1(bytes))), "data");
        };
        match self.ask["reads"].as_str() {
            Some("flow") => _ = response.on_data(data),
            Some("later") => {
                let response = response.clone();
                set_timeout(60 * SLOWNESS, move || _ = response.on_data(data));
            }
            Some("readable") => {
                response.on_this(READABLE, move |response, ()| {
                    while let Some(bytes) = response.readable().read() {
                        data(&bytes);
                    }
                });
            }
            _ => {}
        }
    }
}

/// Names and values in turn.
fn shown(headers: &[(String, String)]) -> String {
    let parts = headers.iter().flat_map(|(name, value)| [name, value]);
    let parts: Vec<_> = parts.map(|part| quoted(part)).collect();
    parts.join(" ")
}
