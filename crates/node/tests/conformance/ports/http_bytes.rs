//! 301, 307–309, 326, 327, 333, 338: the bytes of responses.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use phaseloop_node::events::ERROR;
use phaseloop_node::http::{DROP_REQUEST, HeaderValue, MAX_HEADER_SIZE, Server, ServerResponse};
use phaseloop_node::net::CONNECTION;
use phaseloop_node::stream::{CLOSE, END};
use phaseloop_node::{Emitter, Timeout, clear_timeout, set_timeout};

use super::http_order::{get, listen, serve};
use crate::http_peers::{MORE, raw, show};
use crate::support::log;

super::ports! {
    Real "301-http-response-bytes" => response_bytes,
    Real "307-http-length-or-chunked" => length_or_chunked,
    Real "308-http-no-body" => no_body,
    Real "309-http-versions-and-connection" => versions_and_connection,
    Real "326-http-max-requests" => max_requests,
    Real "327-http-keep-alive-header" => keep_alive_header,
    Real "333-http-header-too-large" => header_too_large,
    Real "338-http-smuggling" => smuggling,
}

/// Sends one request after the other, and logs what came with `label`.
fn ask_each(server: &Server, port: u16, mut left: VecDeque<(String, String)>, ends_itself: bool) {
    let Some((label, bytes)) = left.pop_front() else {
        return server.close();
    };
    let server = server.clone();
    let c = raw(port, &bytes, move |text| {
        log(format!("{label} {}", show(text)));
        ask_each(&server, port, left, ends_itself);
    });
    if ends_itself {
        c.once_this(MORE, |c, _| c.end(()));
    }
}

async fn response_bytes() {
    let server = serve(|_, req, res| match req.url() {
        "/set" => {
            res.set_header("Zeta", "z");
            res.set_header("aLPHA", "a");
            res.set_header("zeta", "again");
            res.end("x");
        }
        "/head" => {
            let headers = [("b", HeaderValue::from(1)), ("A", ["x", "y"].into())];
            res.try_write_head(201, "Made", headers).unwrap();
            res.end("yz");
        }
        "/both" => {
            res.set_header("A", "1");
            res.set_header("B", "2");
            res.write_head(200, [("c", "3"), ("a", "4")]);
            res.end(());
        }
        "/list" => {
            let headers = [("X", "1"), ("X", "2"), ("Date", "none")];
            res.write_head(200, headers);
            res.end("q");
        }
        "/own" => {
            let headers = [("connection", "keep-alive"), ("content-length", "2")];
            res.write_head(200, headers);
            res.end("ok");
        }
        _ => {
            res.set_status(599);
            res.end("bye");
        }
    });
    listen(&server, |server, port| {
        let paths = ["/set", "/head", "/both", "/list", "/own", "/other"];
        let left = paths.map(|path| (path.to_owned(), get(path, "")));
        ask_each(server, port, left.into(), true);
    });
}

/// How a handler answers.
type Answer = fn(&ServerResponse);

const LENGTHS: &[(&str, Answer)] = &[
    ("/end", |res| res.end("abc")),
    ("/empty", |res| res.end(())),
    ("/utf8", |res| res.end("\u{e9}\u{20ac}")),
    ("/write-end", |res| {
        res.write("abc");
        res.end(());
    }),
    ("/write-end-data", |res| {
        res.write("a");
        res.write("");
        res.end("bc");
    }),
    ("/buffers", |res| {
        res.write(b"0123456789abcdef".to_vec());
        res.end(b"!".to_vec());
    }),
    ("/given", |res| {
        res.set_header("Content-Length", 3);
        res.write("a");
        res.end("bc");
    }),
    ("/te", |res| {
        res.set_header("Transfer-Encoding", "chunked");
        res.end("abc");
    }),
    ("/removed-te", |res| {
        res.remove_header("Transfer-Encoding").unwrap();
        res.write("abc");
        res.end(());
    }),
    ("/removed-cl", |res| {
        res.remove_header("Content-Length").unwrap();
        res.end("abc");
    }),
    ("/head-then-end", |res| {
        res.write_head(200, ());
        res.end("abc");
    }),
    ("/flush", |res| {
        res.flush_headers();
        res.end("abc");
    }),
];

async fn length_or_chunked() {
    let server = serve(|_, req, res| {
        res.send_date(false);
        let case = LENGTHS.iter().find(|(path, _)| *path == req.url());
        case.unwrap().1(res);
    });
    listen(&server, |server, port| {
        let asks = LENGTHS.iter().map(|(path, _)| {
            let bytes = get(path, "Connection: close\r\n");
            ((*path).to_owned(), bytes)
        });
        ask_each(server, port, asks.collect(), false);
    });
}

const BODILESS: &[(&str, &str, Answer)] = &[
    ("HEAD", "/end", |res| res.end("abc")),
    ("HEAD", "/write", |res| {
        log(format!("write-{}", res.write("abc")));
        res.end("def");
    }),
    ("HEAD", "/length", |res| {
        res.set_header("Content-Length", 3);
        res.end("abc");
    }),
    ("GET", "/204", |res| {
        res.set_status(204);
        res.end("abc");
    }),
    ("GET", "/304", |res| {
        res.write_head(304, [("ETag", "\"e\"")]);
        res.end("abc");
    }),
    ("GET", "/204te", |res| {
        let headers = [("Transfer-Encoding", "chunked")];
        res.write_head(204, headers);
        res.end("abc");
    }),
    ("GET", "/205", |res| {
        res.write_head(205, ());
        res.end(());
    }),
];

async fn no_body() {
    let server = serve(|_, req, res| {
        res.send_date(false);
        let case = BODILESS.iter().find(|(_, path, _)| *path == req.url());
        case.unwrap().2(res);
    });
    listen(&server, |server, port| {
        let asks = BODILESS.iter().map(|(method, path, _)| {
            let bytes = format!("{method} {path} HTTP/1.1\r\nHost: h\r\n\r\n");
            (format!("{method}{path}"), bytes)
        });
        ask_each(server, port, asks.collect(), true);
    });
}

const VERSIONS: &[&str] = &[
    "GET / HTTP/1.0\r\n\r\n",
    "GET /w HTTP/1.0\r\n\r\n",
    "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "GET /w HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "GET /w HTTP/1.0\r\nTE: chunked\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: h\r\nConnection: x, Close\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n",
];

fn ask_version(server: &Server, port: u16, at: usize) {
    let Some(bytes) = VERSIONS.get(at) else {
        return server.close();
    };
    let server = server.clone();
    let ended = Rc::new(Cell::new(false));
    let kept = ended.clone();
    let c = raw(port, bytes, move |text| {
        let outcome = if kept.get() { "kept" } else { "closed" };
        log(format!("{} -> {} {outcome}", show(bytes), show(text)));
        ask_version(&server, port, at + 1);
    });
    let timer = Rc::<Cell<Option<Timeout>>>::default();
    let started = timer.clone();
    c.once_this(MORE, move |c, _| {
        let c = c.clone();
        started.set(Some(set_timeout(200, move || {
            ended.set(true);
            c.end(());
        })));
    });
    c.on(END, move |()| {
        if let Some(timer) = timer.take() {
            clear_timeout(&timer);
        }
    });
}

async fn versions_and_connection() {
    let server = serve(|_, req, res| {
        res.send_date(false);
        if req.url() == "/w" {
            res.write("a");
            return res.end("b");
        }
        res.end("ab");
    });
    listen(&server, |server, port| ask_version(server, port, 0));
}

async fn max_requests() {
    let server = serve(|_, req, res| {
        res.send_date(false);
        log(format!("request{}", req.url()));
        res.end(req.url());
    });
    server.set_max_requests_per_socket(2);
    server.on(DROP_REQUEST, |dropped| {
        log(format!("drop{}", dropped.request.url()))
    });
    listen(&server, |server, port| {
        let server = server.clone();
        let bytes = ["/1", "/2", "/3", "/4"].map(|path| get(path, "")).concat();
        let c = raw(port, &bytes, move |text| {
            log(show(text));
            server.close();
        });
        c.once_this(MORE, |c, _| {
            let c = c.clone();
            set_timeout(100, move || c.end(()));
        });
    });
}

const KEPT: &[(&str, u32)] = &[
    ("/", 5000),
    ("/", 1999),
    ("/", 999),
    ("/", 0),
    ("/removed", 5000),
    ("/own", 5000),
    ("/close", 5000),
];

fn ask_kept(server: &Server, port: u16, at: usize) {
    let Some(&(path, timeout)) = KEPT.get(at) else {
        return server.close();
    };
    server.set_keep_alive_timeout(timeout);
    let server = server.clone();
    let c = raw(port, &get(path, ""), move |text| {
        log(format!("{path} {timeout} {}", show(text)));
        ask_kept(&server, port, at + 1);
    });
    c.once_this(MORE, |c, _| c.end(()));
}

async fn keep_alive_header() {
    let server = serve(|_, req, res| {
        res.send_date(false);
        match req.url() {
            "/removed" => res.remove_header("Connection").unwrap(),
            "/own" => {
                res.set_header("Keep-Alive", "timeout=99");
            }
            "/close" => drop(res.set_keep_alive(false)),
            _ => {}
        }
        res.end("x");
    });
    listen(&server, |server, port| ask_kept(server, port, 0));
}

async fn header_too_large() {
    let server = Server::builder().max_header_size(1024).build().unwrap();
    server.on_request(|_, res| {
        res.send_date(false);
        log("request");
        res.end("ok");
    });
    server.on(CONNECTION, |socket| {
        socket.on_this(CLOSE, |socket, ()| {
            log(format!("socket.close-{}", socket.had_error()))
        });
    });
    listen(&server, |server, port| {
        let server = server.clone();
        let header = |size| {
            let more = format!("Connection: close\r\nX: {}\r\n", "x".repeat(size));
            get("/", &more)
        };
        let (second, third) = (header(1100), get(&format!("/{}", "u".repeat(1100)), ""));
        raw(port, &header(800), move |text| {
            log(show(text));
            raw(port, &second, move |text| {
                log(show(text));
                raw(port, &third, move |text| {
                    log(show(text));
                    log(format!("default-{MAX_HEADER_SIZE}"));
                    server.close();
                });
            });
        });
    });
}

const DOUBTFUL: &[&str] = &[
    "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    "Content-Length: 3, 3\r\n\r\nabc",
    "Content-Length: +3\r\n\r\nabc",
    "Content-Length: 0x3\r\n\r\nabc",
    "Content-Length: 3 4\r\n\r\nabc",
    "Content-Length:\r\n\r\nabc",
    "Content-Length: 18446744073709551616\r\n\r\nabc",
    "Transfer-Encoding: identity\r\n\r\nabc",
    "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n",
    "X: a\r\n b\r\n\r\n",
    "X: a\nY: b\r\n\r\n",
    "X: a\rY: b\r\n\r\n",
];

async fn smuggling() {
    let server = serve(|_, req, res| {
        log(format!("request {} {}", req.method(), req.url()));
        req.resume();
        res.send_date(false);
        res.end("ran");
    });
    server.on(CONNECTION, |socket| {
        socket.on(ERROR, |e| log(e.code().unwrap_or("none")));
    });
    listen(&server, |server, port| {
        let asks = DOUBTFUL.iter().map(|tail| {
            let head = "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n";
            (format!("{} ->", show(tail)), format!("{head}{tail}"))
        });
        ask_each(server, port, asks.collect(), false);
    });
}
