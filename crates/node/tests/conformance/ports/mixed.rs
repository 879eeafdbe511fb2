//! 480, 481: what clients mix: one pipeline of everything, chains of redirections.

use std::cell::{Cell, RefCell};
use std::error::Error as _;
use std::net::SocketAddr;
use std::rc::Rc;

use phaseloop_node::http::{
    self, CHECK_EXPECTATION, HeaderValue, IncomingMessage, ServerResponse, UPGRADE,
};
use phaseloop_node::net::CONNECTION;
use phaseloop_node::stream::{CLOSE, END, FINISH, PREFINISH};
use phaseloop_node::{
    AbortController, Emitter, Error, Reason, call, fetch, next_tick, queue_microtask, set_timeout,
    sleep,
};

use crate::http_peers::{FREE, MORE, latin1, raw, show};
use crate::support::{log, text};

super::ports! {
    Real "480-http-mixed-pipeline" => mixed_pipeline,
    Real "481-fetch-chains" => chains,
}

const PIPELINE: &str = "GET /slow HTTP/1.1\r\nHost: h\r\n\r\n\
    POST /body HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n\
    3\r\nabc\r\n2\r\nde\r\n0\r\nX-T: 1\r\n\r\n\
    HEAD /head HTTP/1.1\r\nHost: h\r\n\r\n\
    PUT /other HTTP/1.1\r\nHost: h\r\nExpect: tea\r\nContent-Length: 2\r\n\r\nxy\
    GET /trailers HTTP/1.1\r\nHost: h\r\n\r\n";

const SWITCH: &str = "GET /up HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhead";

/// Logs what a request and its response emit, and answers.
fn answer(req: &IncomingMessage, res: &ServerResponse) {
    let name = format!("{}{}", req.method(), req.url());
    log(format!("request {name}"));
    let (tick, promise) = (name.clone(), name.clone());
    next_tick(move || log(format!("tick {tick}")));
    queue_microtask(move || log(format!("promise {promise}")));
    for event in [END, CLOSE] {
        let name = name.clone();
        req.on(event, move |()| log(format!("req.{} {name}", event.name())));
    }
    for event in [PREFINISH, FINISH, CLOSE] {
        let name = name.clone();
        res.on(event, move |()| log(format!("res.{} {name}", event.name())));
    }
    let response = res.clone();
    match req.url() {
        "/slow" => {
            let req = req.clone();
            set_timeout(20, move || {
                req.resume();
                response.end("slow");
            });
        }
        "/trailers" => {
            res.set_header("Trailer", "X-Sum");
            res.write("a");
            res.add_trailers([("X-Sum", HeaderValue::from("1"))])
                .unwrap();
            req.resume();
            res.end("b");
        }
        _ => {
            let size = Rc::new(Cell::new(0));
            let count = size.clone();
            req.on_data(move |d| {
                count.set(count.get() + d.len());
                log(format!("data {name} {}", d.len()));
            });
            req.on(END, move |()| response.end(format!("size {}", size.get())));
        }
    }
}

async fn mixed_pipeline() {
    let server = http::create_server(answer);
    server.on(CHECK_EXPECTATION, |exchange| {
        let expected = exchange.request.headers().get("expect").unwrap_or_default();
        log(format!("expectation {expected}"));
        exchange.response.set_status(417);
        exchange.response.end(());
    });
    server.on(UPGRADE, |handover| {
        let (url, head) = (handover.message.url(), latin1(&handover.head));
        log(format!("upgrade {url} {head}"));
        handover.socket.end("bye");
    });
    server.listen_this(FREE, |server| {
        let (port, server) = (server.address().unwrap().port(), server.clone());
        let c = raw(port, PIPELINE, move |got| {
            log(show(got));
            server.close();
        });
        let is_sent = Cell::new(false);
        c.on_this(MORE, move |c, got| {
            if is_sent.get() || !got.ends_with("X-Sum: 1\r\n\r\n") {
                return;
            }
            is_sent.set(true);
            let c = (*c).clone();
            set_timeout(20, move || {
                log("again");
                c.write(SWITCH);
            });
        });
    });
}

type Heard = Rc<RefCell<Option<(String, AbortController)>>>;

/// The server of the chains. It aborts what `heard` holds when its URL is asked for.
fn chained(heard: Heard) -> http::Server {
    http::create_server(move |req, res| {
        log(format!("{} {}", req.method(), req.url()));
        if let Some((url, controller)) = &*heard.borrow() {
            if url == req.url() {
                controller.abort();
            }
        }
        let mut parts = req.url().split('/').skip(1);
        let (kind, n) = (parts.next().unwrap_or_default(), parts.next());
        let n: u32 = n.and_then(|n| n.parse().ok()).unwrap_or(0);
        let res = res.clone();
        let to = |code: u16, location: &str| {
            let headers = [("Location", location)];
            res.write_head(code, headers);
        };
        match kind {
            "chain" if n > 0 => {
                let code = if n % 2 == 1 { 302 } else { 307 };
                to(code, &format!("/chain/{}#f{n}", n - 1));
                set_timeout(10, move || res.end("moved"));
            }
            "body" => {
                res.write("begin");
                set_timeout(200, move || res.end("end"));
            }
            "cut" => {
                let headers = [("Content-Length", 9)];
                res.write_head(200, headers);
                res.write("half");
                set_timeout(20, move || res.destroy(None));
            }
            "reset" => req.socket().destroy(None),
            "bad" | "away" => {
                let is_bad = kind == "bad";
                let location = if is_bad { "http://[bad" } else { "data:,x" };
                res.set_header("Location", location);
                res.set_status(if is_bad { 301 } else { 302 });
                res.end(());
            }
            _ => {
                let (method, body) = (req.method(), Rc::<RefCell<String>>::default());
                let all = body.clone();
                req.on_data(move |d| body.borrow_mut().push_str(&text(d)));
                req.on(END, move |()| {
                    res.end(format!("final {method} {}", all.borrow()))
                });
            }
        }
    })
}

async fn chains() {
    let (heard, connections) = (Heard::default(), Rc::new(Cell::new(0)));
    let (server, count) = (chained(heard.clone()), connections.clone());
    server.on(CONNECTION, move |_| count.set(count.get() + 1));
    server.listen_this(FREE, |server| {
        let address = server.address().unwrap();
        call(follow(server.clone(), address, heard, connections));
    });
}

async fn follow(
    server: http::Server,
    address: SocketAddr,
    heard: Heard,
    connections: Rc<Cell<u32>>,
) {
    let base = format!("http://{address}");
    let at = |path: &str| format!("{base}{path}");
    let sent = fetch(at("/chain/3#mine")).method("POST").body("b").send();
    let r = sent.await.unwrap();
    let path = r.url().strip_prefix(&base).unwrap().to_owned();
    let body = r.text().await.unwrap();
    log(format!("{} {} {path} {body}", r.status(), r.redirected()));
    for link in [3, 2, 1, 0] {
        let c = AbortController::new();
        heard.replace(Some((format!("/chain/{link}"), c.clone())));
        let sent = fetch(at("/chain/3")).signal(&c.signal()).send().await;
        let end = match sent {
            Ok(response) => response.text().await.unwrap(),
            Err(error) => error.name().to_owned(),
        };
        log(format!("link-{link} {end}"));
        sleep(50).await.unwrap();
    }
    heard.take();
    let c = AbortController::new();
    let b = fetch(at("/body")).signal(&c.signal()).send().await.unwrap();
    let reading = b.text();
    set_timeout(50, move || c.abort_with(Error::new("mine")));
    let end = reading.await.unwrap_err();
    log(format!("body {end} {}", b.body_used()));
    for path in ["/cut", "/reset", "/bad", "/away"] {
        let sent = fetch(at(path)).send().await;
        let read = match sent {
            Ok(response) => response.text().await,
            Err(error) => Err(error),
        };
        match read {
            Ok(text) => log(format!("{path} {text}")),
            Err(e) => log(format!("{path} {} {e} {}", e.name(), cause(&e))),
        }
        sleep(50).await.unwrap();
    }
    let read = async |path: &str| {
        let response = fetch(at(path)).send().await.unwrap();
        response.text().await.unwrap()
    };
    log(format!("one {}", read("/x").await));
    let before = connections.get();
    sleep(50).await.unwrap();
    let body = read("/y").await;
    log(format!("two {body} {}", connections.get() == before));
    server.close();
    server.close_all_connections();
}

/// The code or the text of the cause.
fn cause(reason: &Reason) -> String {
    let error = reason.downcast_ref::<Error>().expect("a node error");
    let cause = error
        .source()
        .and_then(|cause| cause.downcast_ref::<Error>());
    let cause = cause.expect("the error has a cause");
    cause.code().unwrap_or(cause.message()).to_owned()
}
