//! Raw requests with the bytes that Node answers, against a server here.
//!
//! A file has one JSON object a line. Strings of bytes hold one byte a character. `name` and `send`
//! (pieces, each a read of its own) are the input; the rest is what Node did:
//!
//! - `answer`: the bytes that came before the client ended its side, without lines `Date: …`
//! - `closed`: whether the server closed by itself
//! - `after_end`: if not, the bytes that came after the client had ended its side
//! - `error`, `error_after_end`: the code of the error of the connection
//! - `seen`: what the handler saw of each request
//!
//! The handler reads the whole body and then answers `ok`.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use phaseloop::time::sleep;
use phaseloop::{Builder, spawn};
use phaseloop_node as node;
use phaseloop_node::Emitter;
use phaseloop_node::events::ERROR;
use phaseloop_node::http::{self, IncomingMessage, ServerResponse};
use phaseloop_node::net::{self, CONNECTION, LISTENING, Socket, SocketOptions};
use phaseloop_node::stream::{CLOSE, END};
use serde_json::{Map, Value, json};

use crate::golden::Comparison;

/// The cases that run at the same time. Connections are expensive under Wine.
const LANES: usize = if cfg!(windows) { 16 } else { 48 };

/// How many milliseconds a program waits for one of Linux, where events come at once.
pub(crate) const SLOWNESS: u64 = if cfg!(windows) { 5 } else { 1 };

/// How long the client waits between two looks at the connection.
const LOOK: Duration = Duration::from_millis(10);

/// How many looks without news mean that nothing more comes.
const QUIET_LOOKS: u32 = 15;

/// Runs all cases of a file, and compares them with what Node did.
pub(crate) fn compare(text: &str) -> Comparison {
    in_lanes(text, |case| async move { check(&case).await })
}

/// Passes each line of a file to `check`, which returns a difference; many run at the same time.
pub(crate) fn in_lanes<F>(text: &str, check: impl Fn(Value) -> F + Copy + 'static) -> Comparison
where
    F: Future<Output = Option<String>> + 'static,
{
    let cases = text.lines().filter(|line| !line.trim().is_empty());
    let cases: VecDeque<_> = cases
        .enumerate()
        .map(|(at, line)| (at, line.to_owned()))
        .collect();
    let results = Rc::new(RefCell::new(vec![None; cases.len()]));
    let (queue, found) = (Rc::new(RefCell::new(cases)), results.clone());
    let mut event_loop = Builder::new().build().expect("there is a descriptor left");
    node::run_on(&mut event_loop, async move {
        let lanes: Vec<_> = (0..LANES)
            .map(|_| spawn(lane(queue.clone(), found.clone(), check)))
            .collect();
        for lane in lanes {
            lane.await.expect("a lane does not panic");
        }
    });
    let mut comparison = Comparison::default();
    for result in results.take() {
        match result.expect("every case has run") {
            None => comparison.passed += 1,
            Some(fault) => comparison.faults.push(fault),
        }
    }
    comparison
}

type Queue = Rc<RefCell<VecDeque<(usize, String)>>>;
type Results = Rc<RefCell<Vec<Option<Option<String>>>>>;

async fn lane<F>(queue: Queue, results: Results, check: impl Fn(Value) -> F)
where
    F: Future<Output = Option<String>>,
{
    loop {
        let next = queue.borrow_mut().pop_front();
        let Some((at, line)) = next else { return };
        let result = match serde_json::from_str(&line) {
            Ok(case) => check(case).await,
            Err(error) => Some(format!("line {}: {error}", at + 1)),
        };
        results.borrow_mut()[at] = Some(result);
    }
}

/// Runs one case. Returns the difference.
async fn check(case: &Value) -> Option<String> {
    let (name, pieces) = (case["name"].as_str().unwrap_or("?"), &case["send"]);
    let pieces: Vec<Vec<u8>> = pieces
        .as_array()
        .into_iter()
        .flatten()
        .map(bytes_of)
        .collect();
    let mut node = case.as_object().cloned().unwrap_or_default();
    node.remove("name");
    node.remove("send");
    let mut here = Map::new();
    // On a busy machine a case may take as long as the server keeps a connection: it runs again.
    for _ in 0..3 {
        here = run(&pieces).await;
        if node == here {
            return None;
        }
    }
    let (node, here) = (Value::Object(node), Value::Object(here));
    Some(format!(
        "{name}\n  send: {}\n  node: {node}\n  here: {here}",
        case["send"]
    ))
}

/// What the server has seen, and what the client has received.
#[derive(Default)]
struct Log {
    seen: RefCell<Vec<Rc<RefCell<Value>>>>,
    /// Whether the client has ended its side.
    has_ended: Cell<bool>,
    error: RefCell<Option<String>>,
    error_after_end: RefCell<Option<String>>,
    server_side: RefCell<Option<Socket>>,
    received: RefCell<Vec<u8>>,
    is_over: Cell<bool>,
    /// Counts what has come, so that a look sees whether there is news.
    news: Cell<u64>,
}

impl Log {
    fn note(&self) {
        self.news.set(self.news.get() + 1);
    }

    fn over(&self) {
        self.is_over.set(true);
        self.note();
    }

    /// Waits until the server has read as many bytes, so that the next piece is another read.
    async fn has_read(&self, sent: u64) {
        let has_read = |socket: &Socket| socket.bytes_read() >= sent;
        // A server that does not read has its reasons; the case goes on.
        for _ in 0..200 {
            if self.is_over.get() || sent == 0 {
                return;
            }
            sleep(LOOK / 2).await;
            if self.server_side.borrow().as_ref().is_some_and(has_read) {
                return sleep(LOOK / 2).await;
            }
        }
    }

    /// Waits until the connection is over, or nothing comes any more.
    async fn quiet(&self) {
        let mut looks = 0;
        while !self.is_over.get() && looks < QUIET_LOOKS {
            let before = self.news.get();
            sleep(LOOK).await;
            looks = if self.news.get() == before {
                looks + 1
            } else {
                0
            };
        }
    }
}

async fn run(pieces: &[Vec<u8>]) -> Map<String, Value> {
    let log = Rc::new(Log::default());
    let server = serve(&log);
    server.listen(("127.0.0.1", 0));
    node::events::once(&server, LISTENING)
        .await
        .expect("there is a port left");
    let client = connect(&server, &log);
    let mut sent = 0;
    for piece in pieces {
        log.has_read(sent).await;
        if !log.is_over.get() {
            client.write(piece.clone());
        }
        sent += piece.len() as u64;
    }
    log.has_read(sent).await;
    log.quiet().await;
    let mut out = Map::new();
    let answer = undated(&log.received.borrow());
    out.insert("answer".into(), json!(answer));
    out.insert("closed".into(), json!(log.is_over.get()));
    if !log.is_over.get() {
        let before = log.received.borrow().len();
        log.has_ended.set(true);
        client.end(());
        for _ in 0..100 {
            if log.is_over.get() {
                break;
            }
            sleep(LOOK).await;
        }
        let after = undated(&log.received.borrow()[before..]);
        out.insert("after_end".into(), json!(after));
        out.insert(
            "error_after_end".into(),
            json!(*log.error_after_end.borrow()),
        );
    }
    client.destroy(None);
    sleep(LOOK * 2).await;
    server.close();
    server.close_all_connections();
    out.insert("error".into(), json!(*log.error.borrow()));
    let seen: Vec<Value> = log
        .seen
        .borrow()
        .iter()
        .map(|seen| seen.borrow().clone())
        .collect();
    out.insert("seen".into(), json!(seen));
    out
}

fn serve(log: &Rc<Log>) -> http::Server {
    let (requests, errors) = (log.clone(), log.clone());
    let server = http::create_server(move |request, response| handle(&requests, request, response));
    server.on(CONNECTION, move |socket| {
        errors.server_side.replace(Some(socket.clone()));
        let errors = errors.clone();
        socket.on(ERROR, move |error| {
            let code = error.code().map(str::to_owned);
            match errors.has_ended.get() {
                true => errors.error_after_end.replace(code),
                false => errors.error.replace(code),
            };
        });
    });
    server
}

fn handle(log: &Log, request: &IncomingMessage, response: &ServerResponse) {
    let seen = Rc::new(RefCell::new(json!({
        "method": request.method(),
        "url": request.url(),
        "version": request.http_version(),
        "headers": flat(request.raw_headers()),
        "body": "",
        "trailers": [],
        "ended": false,
    })));
    log.seen.borrow_mut().push(seen.clone());
    let body = seen.clone();
    request.on_data(move |bytes| {
        let mut seen = body.borrow_mut();
        let before = seen["body"].as_str().unwrap_or_default().to_owned();
        seen["body"] = json!(before + &latin1(bytes));
    });
    request.on(ERROR, |_| ());
    let response = response.clone();
    request.on_this_end(move |request| {
        let mut seen = seen.borrow_mut();
        seen["ended"] = json!(true);
        seen["trailers"] = json!(flat(request.raw_trailers()));
        drop(seen);
        response.end("ok");
    });
}

/// Adds a listener for the end of a message.
trait OnEnd {
    fn on_this_end(&self, listener: impl Fn(&IncomingMessage) + 'static);
}

impl OnEnd for IncomingMessage {
    fn on_this_end(&self, listener: impl Fn(&Self) + 'static) {
        self.on_this(END, move |message, ()| listener(message));
    }
}

fn connect(server: &http::Server, log: &Rc<Log>) -> Socket {
    let options = SocketOptions {
        allow_half_open: true,
        high_water_mark: None,
    };
    let client = Socket::with_options(options);
    client.set_no_delay(true);
    let [data, end, error, close] = [(); 4].map(|()| log.clone());
    client.on_data(move |bytes| {
        data.received.borrow_mut().extend_from_slice(bytes);
        data.note();
    });
    client.on(END, move |()| end.over());
    client.on(ERROR, move |_| error.over());
    client.on(CLOSE, move |()| close.over());
    client.connect(net::Address::from(
        server.address().expect("the server listens"),
    ));
    client
}

fn flat(headers: &[(String, String)]) -> Vec<&str> {
    headers
        .iter()
        .flat_map(|(name, value)| [&**name, &**value])
        .collect()
}

pub(crate) fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

pub(crate) fn bytes_of(text: &Value) -> Vec<u8> {
    let text = text.as_str().unwrap_or_default();
    // A character is one byte. Of others the recorder sends the last byte, too.
    text.chars().map(|c| c as u8).collect()
}

/// Removes the lines with a date.
pub(crate) fn undated(bytes: &[u8]) -> String {
    let text = latin1(bytes);
    let mut rest = text.as_str();
    let mut out = String::new();
    while let Some(at) = rest.find("\r\nDate: ") {
        out.push_str(&rest[..at]);
        let line = &rest[at + 2..];
        rest = &line[line.find('\r').unwrap_or(line.len())..];
    }
    out + rest
}
