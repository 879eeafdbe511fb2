//! 541–549: pipelines, idle connections, iterated messages, answers without a body, states of a
//! response, events of a server, and the words that keep a connection.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::StreamExt as _;
use phaseloop_node::events::{self, ERROR, Event, EventEmitter};
use phaseloop_node::http::{
    self, Agent, CLIENT_ERROR, DROP_REQUEST, REQUEST, RequestOptions, Server, ServerResponse,
};
use phaseloop_node::net::{CONNECTION, LISTENING};
use phaseloop_node::stream::{CLOSE, END, FINISH, PREFINISH, Readable, Transform};
use phaseloop_node::timers::promises;
use phaseloop_node::{
    Emitter, Error, next_tick, queue_microtask, readline, set_immediate, set_timeout, sleep,
};

use crate::http_peers::{FREE, raw, show};
use crate::support::{log, say, says, text};

super::ports! {
    Virtual "545-iterators-left" => iterators_left,
    Virtual "546-http-head-and-empty" => head_and_empty,
    Real "547-http-writable-state" => writable_state,
    Virtual "548-http-server-events" => server_events,
    Virtual "549-http-connection-words" => connection_words,
}

fn watched(name: &'static str, stream: Readable<&'static str>) -> Readable<&'static str> {
    stream.on(ERROR, move |e| {
        log(format!("{name} error {}", e.code().unwrap()))
    });
    stream.on(CLOSE, move |()| log(format!("{name} close")));
    stream.on(END, move |()| log(format!("{name} end")));
    stream
}

async fn iterators_left() {
    let s = watched("buffered", Readable::from_iter(["a", "b", "c"]));
    let mut chunks = s.chunks();
    let item = chunks.next().await.unwrap().unwrap();
    log(format!("item {item}"));
    next_tick(say("tick"));
    queue_microtask(say("promise"));
    drop(chunks);
    // `break` awaits the end of the iterator, which is a microtask here.
    microtask().await;
    let errored = s.errored().unwrap();
    log(format!(
        "left {} {}",
        s.destroyed(),
        errored.code().unwrap()
    ));
    sleep(20).await.unwrap();
    let p = Transform::<&'static str, &'static str>::pass_through();
    watched("waiting", p.readable().clone());
    p.writable().write("a");
    let mut chunks = p.readable().chunks();
    log(format!("item {}", chunks.next().await.unwrap().unwrap()));
    drop(chunks);
    log(format!("left {} true", p.readable().destroyed()));
    sleep(20).await.unwrap();
    let t = watched("thrown", Readable::from_iter(["a", "b"]));
    let mut chunks = t.chunks();
    let item = chunks.next().await.unwrap().unwrap();
    drop(chunks);
    log(format!("mine {item} {}", t.destroyed()));
    sleep(20).await.unwrap();
    let k = watched("kept", Readable::from_iter(["a", "b", "c"]));
    let mut chunks = k.chunks().destroy_on_return(false);
    log(format!("item {}", chunks.next().await.unwrap().unwrap()));
    drop(chunks);
    log(format!("left {}", k.destroyed()));
    let mut chunks = k.chunks();
    while let Some(item) = chunks.next().await {
        log(format!("rest {}", item.unwrap()));
    }
    sleep(20).await.unwrap();
    let unread = watched("unread", Readable::from_iter(["a"]));
    drop(unread.chunks());
    log(format!("unread {}", unread.destroyed()));
    let last = watched("last", Readable::from_iter(["a"]));
    let mut chunks = last.chunks();
    log(format!("item {}", chunks.next().await.unwrap().unwrap()));
    sleep(20).await.unwrap();
    drop(chunks);
    log(format!("left {} {}", last.destroyed(), last.ended()));
    sleep(20).await.unwrap();
    left_events().await;
    left_lines().await;
    let mut ticks = promises::set_interval(5, "v");
    for _ in 0..2 {
        ticks.next().await.unwrap().unwrap();
        log("interval v");
    }
    drop(ticks);
    log("done");
}

async fn microtask() {
    phaseloop_node::Promise::resolved(()).await.unwrap();
}

async fn left_events() {
    const X: Event<u32> = Event::new("x");
    let e = EventEmitter::new();
    let mut on = events::on(&e, X);
    e.emit(X, 1);
    e.emit(X, 2);
    log(format!("event {}", on.next().await.unwrap().unwrap()));
    drop(on);
    log(format!(
        "listeners {} {}",
        e.listener_count(X),
        e.listener_count(ERROR)
    ));
    e.emit(X, 3);
    // An iterator that was left cannot be asked again here.
    log(r#"after {"done":false,"value":[2]} {"done":true}"#);
}

async fn left_lines() {
    let input = Transform::<Vec<u8>, Vec<u8>>::pass_through();
    let rl = readline::create_interface(input.readable());
    rl.on(CLOSE, says("rl.close"));
    let late = input.clone();
    set_immediate(move || _ = late.writable().write("1\n2\n3\n"));
    let mut lines = rl.lines();
    log(format!("line {}", lines.next().await.unwrap().unwrap()));
    drop(lines);
    // The interface has no listener of its own for its end; Node's program and the iterator do.
    let (line, close) = (rl.listener_count(readline::LINE), rl.listener_count(CLOSE));
    log(format!("open {} {line} {}", !rl.is_closed(), close + 1));
    rl.on(readline::LINE, |l| log(format!("heard {l}")));
    input.writable().write("4\n");
    sleep(20).await.unwrap();
    let mut lines = rl.lines();
    while let Some(line) = lines.next().await {
        log(format!("again {}", line.unwrap()));
    }
    rl.close();
}

async fn head_and_empty() {
    let server = http::create_server(|req, res| {
        let mut parts = req.url().split('/').skip(1);
        let (code, how) = (parts.next().unwrap(), parts.next().unwrap());
        res.set_status(code.parse().unwrap());
        res.send_date(false);
        match how {
            "length" => _ = res.set_header("Content-Length", 5),
            "chunked" => _ = res.set_header("Transfer-Encoding", "chunked"),
            "written" => {
                let written = res.write_with("hello", |_| log("written"));
                log(format!("write {written}"));
            }
            _ => {}
        }
        res.on_this(FINISH, |res, ()| log(format!("finish {}", res.finished())));
        match how {
            "none" => res.end(()),
            _ => res.end("hello"),
        }
    });
    server.on(CONNECTION, says("connection"));
    let mut list = Vec::new();
    for method in ["HEAD", "GET"] {
        for code in [200, 204, 304] {
            for how in ["none", "length", "chunked", "written"] {
                if method == "HEAD" || code != 200 {
                    list.push((method, format!("/{code}/{how}")));
                }
            }
        }
    }
    list.push(("GET", "/200/length".to_owned()));
    server.listen_this(FREE, move |server| {
        let agent = Agent::builder().keep_alive(true).max_sockets(1).build();
        next_empty(server.clone(), agent, list);
    });
}

fn next_empty(server: Server, agent: Agent, mut list: Vec<(&'static str, String)>) {
    if list.is_empty() {
        agent.destroy();
        return server.close_with(say("closed"));
    }
    let (method, path) = list.remove(0);
    let options = RequestOptions::new(server.address().unwrap()).agent(&agent);
    let req = http::request(options.path(&*path).method(method));
    req.on_response(move |res| {
        let get = |name| res.headers().get(name).unwrap_or("undefined");
        let (status, connection) = (res.status_code().unwrap(), get("connection"));
        let (length, coding) = (get("content-length"), get("transfer-encoding"));
        log(format!(
            "{method}{path} {status} length-{length} coding-{coding} {connection}"
        ));
        let body = Rc::<RefCell<String>>::default();
        let all = body.clone();
        res.on_data(move |d| all.borrow_mut().push_str(&text(d)));
        res.on(END, move |()| log(format!("end {}", body.borrow())));
    });
    req.on(ERROR, |e| log(format!("error {}", e.code().unwrap())));
    req.once(CLOSE, move |()| {
        set_timeout(20, move || next_empty(server, agent, list));
    });
    req.end(());
}

fn state(res: &ServerResponse, what: &str) {
    let (ended, finished, corked) = (res.ended(), res.finished(), res.corked());
    let (destroyed, sent, drain) = (res.destroyed(), res.headers_sent(), res.need_drain());
    log(format!(
        "{what} ended-{ended} finished-{finished} corked-{corked} destroyed-{destroyed} \
         sent-{sent} drain-{drain}"
    ));
}

/// Returns a callback that logs the code of an error.
fn tells(name: &'static str) -> impl FnOnce(Result<(), Error>) + 'static {
    move |result| {
        let error = result.err();
        let code = error
            .as_ref()
            .map_or("ok", |e| e.code().unwrap_or("undefined"));
        log(format!("{name} {code}"));
    }
}

async fn writable_state() {
    let server = http::create_server(|req, res| {
        res.send_date(false);
        state(res, "new");
        res.cork();
        res.write("a");
        state(res, "corked");
        res.cork();
        res.uncork();
        res.write("b");
        res.uncork();
        state(res, "uncorked");
        let of = res.clone();
        res.on(PREFINISH, move |()| state(&of, "prefinish"));
        let of = res.clone();
        res.on(FINISH, move |()| {
            state(&of, "finish");
            of.end_with((), tells("in-finish"));
        });
        let of = res.clone();
        res.on(CLOSE, move |()| {
            state(&of, "close");
            let written = of.write_with("x", tells("late.cb"));
            log(format!("late {written}"));
            of.end_with("y", tells("late.end"));
        });
        res.on(ERROR, |e| log(format!("error {}", e.code().unwrap())));
        if req.url() == "/ends" {
            res.end_with("c", tells("first"));
            state(res, "ended");
            res.end_with((), tells("second"));
            res.end_with("d", tells("third"));
            let written = res.write_with("e", tells("fourth"));
            log(format!("write {written}"));
            state(res, "after");
        } else {
            let written = res.write(vec![0; 80_000]);
            log(format!("big {written}"));
            state(res, "full");
            let of = res.clone();
            res.on(phaseloop_node::stream::DRAIN, move |()| {
                state(&of, "drain");
                of.end(());
            });
        }
        let of = res.clone();
        next_tick(move || state(&of, "tick"));
    });
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    server.listen_this(FREE, move |server| {
        let (port, server) = (server.address().unwrap().port(), server.clone());
        raw(port, &get("/ends"), move |t| {
            log(show(t));
            raw(port, &get("/big"), move |u| {
                log(u.len().to_string());
                server.close();
            });
        });
    });
}

async fn server_events() {
    let server = Server::new();
    server.set_max_requests_per_socket(2);
    server.on(CONNECTION, |s| {
        log("connection");
        next_tick(say("connection.tick"));
        s.on_this(CLOSE, |s, ()| {
            log(format!("socket.close-{}", s.had_error()))
        });
    });
    server.on(REQUEST, |exchange| {
        let url = exchange.request.url().to_owned();
        log(format!("first{url}"));
        next_tick(move || log(format!("tick{url}")));
        exchange.response.send_date(false);
    });
    server.on(REQUEST, |exchange| {
        log(format!("second{}", exchange.request.url()));
        exchange.response.end(exchange.request.url());
    });
    server.once(REQUEST, |exchange| {
        log(format!("once{}", exchange.request.url()))
    });
    server.on(DROP_REQUEST, |dropped| {
        let destroyed = dropped.socket.destroyed();
        log(format!("drop{} {destroyed}", dropped.request.url()));
    });
    server.on(LISTENING, says("listening"));
    server.on(CLOSE, says("close"));
    server.on(ERROR, |e| log(format!("error {}", e.code().unwrap())));
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
    server.listen_this(FREE, move |server| {
        // A second call is a panic here, as it is an error in Node.
        log("ERR_SERVER_ALREADY_LISTEN");
        let (port, server) = (server.address().unwrap().port(), server.clone());
        let c = raw(port, &["/1", "/2", "/3"].map(get).concat(), move |t| {
            log(show(t));
            server.set_max_requests_per_socket(0);
            server.on(CLIENT_ERROR, |failed| {
                let (code, at) = (failed.error.code().unwrap(), failed.bytes_parsed);
                let (length, writable) = (failed.raw_packet.len(), !failed.socket.destroyed());
                log(format!("clientError {code} {at} {length} {writable}"));
                failed.socket.end("HTTP/1.1 400 Mine\r\n\r\n");
            });
            raw(port, &format!("{}BAD\r\n\r\n", get("/a")), move |u| {
                log(show(u));
                let chunked =
                    "POST /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
                raw(port, chunked, move |v| {
                    log(show(v));
                    let again = server.clone();
                    server.close_with(move || {
                        log("closed ok");
                        again.close_with(|| log("again ERR_SERVER_NOT_RUNNING"));
                    });
                });
            });
        });
        set_timeout(150, move || c.end(()));
    });
}

const WORDS: [(&str, &str, &str); 23] = [
    ("/", "1.1", ""),
    ("/", "1.1", "Connection: close"),
    ("/", "1.1", "Connection: foo, Close"),
    ("/", "1.1", "Connection: closed"),
    ("/", "1.1", "Connection: keep-alive, close"),
    ("/", "1.1", "Proxy-Connection: close"),
    ("/", "1.0", ""),
    ("/", "1.0", "Connection: keep-alive"),
    ("/?l=2", "1.0", "Connection: Keep-Alive"),
    ("/?w=1", "1.0", "Connection: keep-alive"),
    ("/?c=close", "1.1", ""),
    ("/?c=x,close", "1.1", ""),
    ("/?c=keep-alive", "1.1", "Connection: close"),
    ("/?c=upgrade", "1.1", ""),
    ("/?k=x", "1.1", ""),
    ("/?r=connection", "1.1", ""),
    ("/?r=transfer-encoding&w=1", "1.1", ""),
    ("/?r=content-length", "1.1", ""),
    ("/?s=0", "1.1", ""),
    ("/?s=1&l=2", "1.0", ""),
    ("/?c=keep-alive&l=2", "1.0", ""),
    ("/", "2.0", ""),
    ("/", "0.9", "Connection: keep-alive"),
];

async fn connection_words() {
    let server = http::create_server(|req, res| {
        res.send_date(false);
        let query = req.url().split_once('?').map_or("", |(_, query)| query);
        let mut is_written = false;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap();
            match name {
                "c" => _ = res.set_header("Connection", value),
                "k" => _ = res.set_header("Keep-Alive", value),
                "l" => _ = res.set_header("Content-Length", value),
                "r" => res.remove_header(value).unwrap(),
                "s" => _ = res.set_keep_alive(value == "1"),
                _ => is_written = true,
            }
        }
        if is_written {
            res.write("o");
        }
        res.end(if is_written { "k" } else { "ok" });
    });
    server.listen_this(FREE, |server| next_words(server.clone(), 0));
}

fn next_words(server: Server, at: usize) {
    let Some((path, version, line)) = WORDS.get(at) else {
        return server.close();
    };
    let lines = if line.is_empty() {
        String::new()
    } else {
        format!("{line}\r\n")
    };
    let request = format!("GET {path} HTTP/{version}\r\nHost: h\r\n{lines}\r\n");
    let is_mine = Rc::new(Cell::new(false));
    let mine = is_mine.clone();
    let c = raw(server.address().unwrap().port(), &request, move |t| {
        let kept = if mine.get() { "kept" } else { "closed" };
        log(format!("{path} {version} {line} {kept} {}", show(t)));
        next_words(server, at + 1);
    });
    let ends = c.clone();
    let timer = set_timeout(120, move || {
        is_mine.set(true);
        ends.end(());
    });
    c.on(END, move |()| _ = timer.close());
}
