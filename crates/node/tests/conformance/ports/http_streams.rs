//! 540–544: lines that are cut anywhere, pipelines of messages, timeouts and messages that are
//! iterated.

use std::cell::RefCell;
use std::rc::Rc;

use futures::StreamExt as _;
use phaseloop_node::events::once;
use phaseloop_node::http::{
    self, Agent, ClientRequest, IncomingMessage, RESPONSE, RequestOptions, Server, server,
};
use phaseloop_node::net::Socket;
use phaseloop_node::readline::{self, LINE};
use phaseloop_node::stream::{
    CLOSE, END, FINISH, PAUSE, PREFINISH, RESUME, Readable, Transform, pipeline,
};
use phaseloop_node::{Emitter, Error, call, next_tick, set_immediate, set_timeout, sleep};
use serde_json::Value;

use crate::http_peers::{FREE, MORE, raw, show};
use crate::support::{log, say, says, text};

super::ports! {
    Virtual "540-readline-odd-ends" => odd_ends,
    Virtual "541-http-pipelines" => pipelines,
    Virtual "543-http-idle-and-timeouts" => timeouts,
    Virtual "544-http-iterate-messages" => iterate_messages,
}

type Bytes = Transform<Vec<u8>, Vec<u8>>;

const PIECES: [(&str, &[&[u8]]); 9] = [
    ("split", &[b"a\r", b"\nb", b"\r\n", b"c"]),
    ("lone", &[b"a\rb\r", b"\rc"]),
    ("mixed", &[b"\n\r\n\r", b"x\n\n"]),
    ("bytes", &[&[0xc3], &[0xa9, 0x0a, 0xe2, 0x82], &[0xac]]),
    ("bad", &[&[0xff, 0x0a, 0xc3]]),
    (
        "breaks",
        &["a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\n".as_bytes()],
    ),
    ("empty", &[]),
    ("blank", &[b"\n"]),
    ("bom", &["\u{feff}a\n".as_bytes()]),
];

async fn odd_ends() {
    next_lines(0);
}

fn next_lines(at: usize) {
    let Some(&(name, pieces)) = PIECES.get(at) else {
        return close_lines();
    };
    let input = Bytes::pass_through();
    let rl = readline::create_interface(input.readable());
    let rl = rl.crlf_delay(std::time::Duration::MAX);
    rl.on(LINE, move |l| log(format!("{name} {}", Value::from(l))));
    rl.on(PAUSE, move |()| log(format!("{name} pause")));
    rl.on(CLOSE, move |()| {
        log(format!("{name} close"));
        set_immediate(move || next_lines(at + 1));
    });
    feed(input, pieces);
}

fn feed(input: Bytes, pieces: &'static [&'static [u8]]) {
    match pieces.split_first() {
        Some((piece, rest)) => {
            input.writable().write(piece.to_vec());
            set_immediate(move || feed(input, rest));
        }
        None => input.writable().end(()),
    }
}

fn close_lines() {
    let input = Bytes::pass_through();
    let rl = readline::create_interface(input.readable());
    rl.on_this(LINE, |rl, l| {
        log(format!("line {l}"));
        if l == "b" {
            rl.close();
            log(format!("closed {}", rl.is_closed()));
        }
    });
    rl.on(CLOSE, |()| {
        log("close");
        next_tick(say("tick"));
    });
    input.readable().on(PAUSE, says("input.pause"));
    input.readable().on(END, says("never"));
    input.writable().write("a\nb\nc\nd");
    set_immediate(move || {
        input.writable().write("e\n");
        input.writable().end(());
        set_immediate(pause_lines);
    });
}

fn pause_lines() {
    let input = Bytes::pass_through();
    let rl = readline::create_interface(input.readable());
    rl.on_this(LINE, |rl, l| {
        log(format!("paused {l}"));
        rl.pause();
        let rl = rl.clone();
        set_timeout(20, move || {
            if !rl.is_closed() {
                log("resume");
                rl.resume();
            }
        });
    });
    rl.on(PAUSE, says("pause"));
    rl.on(RESUME, says("resumed"));
    rl.on(CLOSE, says("end"));
    input.writable().write("1\n2\n");
    set_timeout(10, move || input.writable().end("3"));
}

fn alone(server: &Server, path: &str) -> RequestOptions {
    let options = RequestOptions::new(server.address().unwrap());
    options.agent(&Agent::none()).path(path)
}

fn piping() -> Server {
    http::create_server(|req, res| {
        let name: Rc<str> = req.url()[1..].into();
        for event in [END, CLOSE] {
            let n = name.clone();
            req.on(event, move |()| log(format!("{n} req.{}", event.name())));
        }
        for event in [PREFINISH, FINISH, CLOSE] {
            let n = name.clone();
            res.on(event, move |()| log(format!("{n} res.{}", event.name())));
        }
        let (n, sink) = (name.clone(), res.writable());
        let done = move |result: Result<(), Error>| {
            let error = result.err();
            let code = error.as_ref().map_or("ok", |e| e.code().unwrap());
            log(format!("{n} pipeline {code}"));
            next_tick(move || log(format!("{n} tick")));
        };
        match &*name {
            "from" => {
                let parts = Readable::from_iter([b"a".to_vec(), b"b".to_vec()]);
                pipeline(&parts).into(sink).then(done);
            }
            "upper" => {
                let upper = Transform::bytes(|c: Vec<u8>, out| out.ok_with(c.to_ascii_uppercase()));
                pipeline(req.readable())
                    .through(&upper.build())
                    .into(sink)
                    .then(done);
            }
            "gone" => {
                let endless = Readable::bytes().read(|this, _| {
                    let this = this.clone();
                    set_timeout(20, move || _ = this.push(b"x".to_vec()));
                });
                pipeline(&endless.build()).into(sink).then(done);
            }
            _ => pipeline(req.readable()).into(sink).then(done),
        }
    })
}

type Send = fn(&ClientRequest);

async fn pipelines() {
    piping().listen_this(FREE, |server| {
        let two: Send = |r| {
            r.write("one");
            let r = r.clone();
            set_timeout(40, move || r.end("two"));
        };
        let list: [(&str, Send); 3] = [
            ("/from", |r| r.end(())),
            ("/upper", two),
            ("/echo", |r| r.end(vec![0; 3 << 20])),
        ];
        next_pipeline(server.clone(), list.into());
    });
}

fn next_pipeline(server: Server, mut list: Vec<(&'static str, Send)>) {
    if list.is_empty() {
        let request = "POST /gone HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
        let port = server.address().unwrap().port();
        let c = raw(port, request, move |_| server.close_with(say("closed")));
        c.on_this(MORE, |c, got| {
            if got.contains('x') {
                c.destroy(None);
            }
        });
        return;
    }
    let (path, send) = list.remove(0);
    let req = http::request(alone(&server, path).method("POST"));
    req.on_response(move |res| {
        let body = Rc::<RefCell<Vec<u8>>>::default();
        let all = body.clone();
        res.on_data(move |d| all.borrow_mut().extend_from_slice(d));
        res.on(END, move |()| {
            let body = body.take();
            let shown = if body.len() < 100 {
                text(&body)
            } else {
                String::new()
            };
            log(format!("client{path} {} {shown}", body.len()));
            let (server, list) = (server.clone(), list.clone());
            set_timeout(60, move || next_pipeline(server, list));
        });
    });
    send(&req);
}

fn limited() -> Server {
    let server = Server::builder().keep_alive_timeout(100).build();
    let server = server.expect("the timeouts are in order");
    server.on_request(|req, res| {
        let path: Rc<str> = req.url().into();
        res.send_date(false);
        let p = path.clone();
        req.on(CLOSE, move |()| log(format!("req.close{p}")));
        let p = path.clone();
        res.on_this(CLOSE, move |res, ()| {
            log(format!("res.close{p} {}", res.finished()))
        });
        let answer = res.clone();
        match &*path {
            "/req" => {
                req.once(server::TIMEOUT, move |_| {
                    log("req.timeout true");
                    answer.end("late");
                });
                req.set_timeout(80);
            }
            "/res" => {
                res.once(server::TIMEOUT, move |_| {
                    log("res.timeout true");
                    answer.end("late");
                });
                res.set_timeout(80);
            }
            "/both" => {
                req.once(server::TIMEOUT, says("never"));
                req.set_timeout(80);
                req.resume();
                res.once(server::TIMEOUT, move |_| {
                    log("res.timeout");
                    answer.end(());
                });
                res.set_timeout(80);
            }
            "/none" | "/server" => req.socket().set_timeout(80),
            _ => res.end("x"),
        }
    });
    server
}

async fn timeouts() {
    limited().listen_this(FREE, |server| {
        let get =
            |path: &str| format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let post =
            "POST /req HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nConnection: close\r\n\r\nab";
        let list = vec![
            post.to_owned(),
            get("/res"),
            get("/both"),
            get("/none"),
            get("/server"),
            "GET /idle HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(),
            "GET /req HTTP/1.1\r\nHost: h\r\n".to_owned(),
        ];
        next_timeout(server.clone(), list);
    });
}

fn next_timeout(server: Server, mut list: Vec<String>) {
    if list.is_empty() {
        return server.close_with(say("closed"));
    }
    let bytes = list.remove(0);
    let listener = bytes.contains("/server").then(|| {
        server.on(server::TIMEOUT, |s: &Socket| {
            log("server.timeout");
            s.destroy(None);
        })
    });
    if bytes.ends_with("h\r\n") {
        server.set_timeout(120);
    }
    let start = phaseloop::time::now();
    let is_idle = bytes.contains("/idle");
    let port = server.address().unwrap().port();
    raw(port, &bytes, move |t| {
        log(show(t));
        if is_idle {
            log(format!(
                "idle {}",
                (phaseloop::time::now() - start).as_millis() >= 1100
            ));
        }
        if let Some(listener) = listener {
            server.off(listener);
        }
        next_timeout(server, list);
    });
}

async fn read_server(req: IncomingMessage, res: http::ServerResponse) {
    let name = format!("server{}", req.url());
    let mut pieces = req.readable().chunks();
    let mut caught = None;
    while let Some(piece) = pieces.next().await {
        match piece {
            Ok(piece) => log(format!("{name} piece {}", text(&piece))),
            Err(e) => {
                caught = e.code().map(str::to_owned);
                break;
            }
        }
        match req.url() {
            "/left" => break,
            "/thrown" => {
                caught = Some("mine".to_owned());
                break;
            }
            _ => {}
        }
    }
    drop(pieces);
    match caught {
        Some(code) => log(format!("{name} caught {code}")),
        None => log(format!("{name} over")),
    }
    res.end("answer");
}

type More = fn(&Socket);

async fn iterate_messages() {
    let server = http::create_server(|req, res| {
        res.send_date(false);
        let name: Rc<str> = format!("server{}", req.url()).into();
        let n = name.clone();
        req.on_this(CLOSE, move |req, ()| {
            log(format!("{n} close {} {}", req.complete(), req.destroyed()));
        });
        res.on_this(CLOSE, move |res, ()| {
            log(format!("{name} res.close {}", res.finished()))
        });
        call(read_server(req.clone(), res.clone()));
    });
    server.listen_this(FREE, |server| {
        let rest: More = |c| {
            c.write("cd");
            let c = c.clone();
            set_timeout(60, move || c.end(()));
        };
        let end: More = |c| c.end(());
        let list: [(&str, &str, More); 5] = [
            ("/all", "ab", rest),
            ("/left", "ab", rest),
            ("/left", "abcd", end),
            ("/thrown", "ab", end),
            ("/cut", "ab", |c| c.destroy(None)),
        ];
        next_message(server.clone(), list.into());
    });
}

fn next_message(server: Server, mut list: Vec<(&'static str, &'static str, More)>) {
    if list.is_empty() {
        return read_responses(server);
    }
    let (path, body, more) = list.remove(0);
    let bytes = format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n{body}");
    let port = server.address().unwrap().port();
    let c = raw(port, &bytes, move |t| {
        log(show(t));
        next_message(server, list);
    });
    set_timeout(60, move || more(&c));
}

fn read_responses(server: Server) {
    let other = http::create_server(|req, res| {
        res.write("one");
        let (res, is_cut) = (res.clone(), req.url() == "/cut");
        set_timeout(40, move || match is_cut {
            true => res.destroy(None),
            false => res.end("two"),
        });
    });
    other.listen_this(FREE, |other| {
        let other = other.clone();
        call(async move {
            for path in ["/all", "/left", "/cut"] {
                read_response(&other, path).await;
                sleep(80).await.unwrap();
            }
            other.close();
            server.close_with(say("closed"));
        });
    });
}

async fn read_response(server: &Server, path: &'static str) {
    let req = http::get(alone(server, path));
    req.on(CLOSE, move |()| log(format!("client{path} req.close")));
    let res = once(&req, RESPONSE).await.unwrap();
    res.on_this(CLOSE, move |res, ()| {
        log(format!(
            "client{path} close {} {}",
            res.complete(),
            res.destroyed()
        ));
    });
    let mut pieces = res.readable().chunks();
    while let Some(piece) = pieces.next().await {
        match piece {
            Ok(piece) => log(format!("client piece {}", text(&piece))),
            Err(e) => log(format!("client{path} caught {}", e.code().unwrap())),
        }
        if path == "/left" {
            break;
        }
    }
}
