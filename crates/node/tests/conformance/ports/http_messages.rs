//! 491–494: heads and bodies in all their forms, and what is refused at the call.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

use phaseloop_node::events::ERROR;
use phaseloop_node::http::{
    self, Agent, ClientRequest, HeaderValue, Headers, RequestOptions, Server, ServerResponse,
    validate_header_name, validate_header_value,
};
use phaseloop_node::net;
use phaseloop_node::stream::{CLOSE, END, FINISH, Readable, pipeline};
use phaseloop_node::{Emitter, Error, set_timeout};
use serde_json::{Value, json};

use crate::http_peers::{FREE, MORE, latin1, raw, show};
use crate::support::{log, say, text};

super::ports! {
    Virtual "491-http-write-head-variants" => write_head_variants,
    Virtual "492-http-refused-calls" => refused_calls,
    Virtual "493-http-trailers-both-ways" => trailers_both_ways,
    Virtual "494-http-request-bodies" => request_bodies,
}

fn alone(address: SocketAddr) -> RequestOptions {
    RequestOptions::new(address).agent(&Agent::none())
}

fn code(e: &Error) -> &str {
    e.code().unwrap_or("undefined")
}

type Write = fn(&ServerResponse) -> Result<(), Error>;

const HEADS: [(&str, Write); 16] = [
    ("/code", |res| res.try_write_head(201, None, ())),
    ("/reason", |res| {
        res.try_write_head(200, "Fine", [("", ""); 0])
    }),
    ("/map", |res| {
        let headers = [
            ("X-A", HeaderValue::from("1")),
            ("x-b", HeaderValue::from(["2", "3"])),
            ("Content-Type", HeaderValue::from("text/plain")),
        ];
        res.try_write_head(200, None, headers)
    }),
    ("/both", |res| {
        res.try_write_head(404, "Gone Away", [("X-A", 1)])
    }),
    ("/flat", |res| {
        res.try_write_head(200, None, [("X-A", "1"), ("X-A", "2"), ("x-c", "3")])
    }),
    ("/merged", |res| {
        res.try_set_header("X-A", "old")?;
        res.try_set_header("X-B", "kept")?;
        res.try_write_head(200, None, [("x-a", "new"), ("X-C", "c")])
    }),
    ("/merged-flat", |res| {
        res.try_set_header("X-A", "old")?;
        res.try_set_header("X-B", "kept")?;
        res.try_write_head(200, None, [("x-a", "1"), ("x-a", "2")])
    }),
    ("/length", |res| {
        res.try_write_head(200, None, [("Content-Length", 4)])
    }),
    ("/chunked", |res| {
        res.try_write_head(200, None, [("Transfer-Encoding", "chunked")])
    }),
    ("/close", |res| {
        res.try_write_head(200, None, [("Connection", "Close, x")])
    }),
    ("/unknown", |res| res.try_write_head(599, None, ())),
    ("/empty-reason", |res| {
        res.set_status_message("set before");
        res.try_write_head(500, None, ())
    }),
    ("/date", |res| {
        res.try_write_head(200, None, [("Date", "mine"), ("Trailer", "x")])
    }),
    ("/keep", |res| {
        res.try_write_head(200, None, [("Keep-Alive", "mine")])
    }),
    ("/204", |res| {
        res.try_write_head(204, None, [("Content-Length", 4)])
    }),
    ("/set-cookie", |res| {
        res.try_set_header("Set-Cookie", ["a=1", "b=2"])?;
        res.append_header("set-cookie", "c=3")?;
        res.try_write_head(200, None, [("Cookie", ["a", "b"])])
    }),
];

async fn write_head_variants() {
    let server = http::create_server(|req, res| {
        res.send_date(false);
        let (_, write) = HEADS.iter().find(|(path, _)| *path == req.url()).unwrap();
        write(res).unwrap();
        let (sent, names) = (res.headers_sent(), res.header_names().join(","));
        log(format!(
            "{} sent-{sent} chained-true names-{names}",
            req.url()
        ));
        res.end("body");
    });
    server.listen_this(FREE, |server| next_head(server.clone(), 0));
}

fn next_head(server: Server, at: usize) {
    let Some((path, _)) = HEADS.get(at) else {
        return server.close();
    };
    let port = server.address().unwrap().port();
    let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
    let c = raw(port, &request, move |t| {
        log(show(t));
        next_head(server, at + 1);
    });
    c.on_this(MORE, |c, _| {
        let c = c.clone();
        set_timeout(30, move || c.end(()));
    });
}

fn attempt<T>(name: impl AsRef<str>, result: Result<T, Error>) {
    let name = name.as_ref();
    match result {
        Ok(_) => log(format!("{name} ok")),
        Err(e) => log(format!("{name} {} {}", e.name(), code(&e))),
    }
}

fn refuse_all(res: &ServerResponse) {
    for n in ["", "a b", "a:", "a\r", "é", "(", "a@"] {
        attempt(
            format!("name-{}", Value::from(n)),
            res.try_set_header(n, "x"),
        );
    }
    for v in ["a\nb", "a\rb", "\0", "\x7f", "ā", "\u{ff}", "\t", ""] {
        // JSON in JavaScript leaves DEL as it is, as here.
        attempt(
            format!("value-{}", Value::from(v)),
            res.try_set_header("X-V", v),
        );
    }
    for v in ["ok", "a\nb"] {
        attempt(
            format!("append-{}", Value::from(v)),
            res.append_header("X-W", v),
        );
    }
    attempt("list", res.try_set_header("X-L", ["a", "b\n"]));
    attempt("status-99", res.try_write_head(99, None, ()));
    log("status-100 ok");
    log("status-999 ok");
    for c in [1000, 0] {
        attempt(format!("status-{c}"), res.try_write_head(c, None, ()));
    }
    attempt("reason", res.try_write_head(200, "a\nb", [("", ""); 0]));
    res.set_status_message("Mine");
    attempt("head-name", res.try_write_head(200, None, [("a b", "1")]));
    attempt("trailers", res.add_trailers([("X T", "1")]));
    attempt("trailer-value", res.add_trailers([("X-T", "a\n")]));
    attempt("hints", res.write_early_hints([("link", "nonsense")]));
    let [v, w] = ["x-v", "X-W"].map(|name| Value::from(res.get_header(name).unwrap().to_string()));
    log(format!("value {v} {w} {}", res.has_header("x-l")));
    log("get ok");
    res.write("a");
    attempt("set-late", res.try_set_header("X-A", "1"));
    attempt("remove-late", res.remove_header("X-A"));
    attempt("append-late", res.append_header("X-A", "1"));
    attempt("head-late", res.try_write_head(200, None, ()));
    res.flush_headers();
    log("flush-late ok");
    res.end(());
}

async fn refused_calls() {
    let server = http::create_server(|_, res| {
        res.send_date(false);
        refuse_all(res);
    });
    server.listen_this(FREE, |server| {
        let (address, server) = (server.address().unwrap(), server.clone());
        let request = |options: RequestOptions| {
            let req = http::try_request(options)?;
            req.on(ERROR, |_| ());
            req.destroy(None);
            Ok(())
        };
        for method in ["GE T", "get", "", "a\n", "X-MINE"] {
            let asked = request(alone(address).method(method));
            attempt(format!("method-{}", Value::from(method)), asked);
        }
        for path in ["/a b", "/\n", "/é", "/ā", "/%20", "*", "x", ""] {
            let asked = request(alone(address).path(path));
            attempt(format!("path-{}", Value::from(path)), asked);
        }
        for (name, value) in [("a b", "1"), ("A", "x\n"), ("Host", "ok")] {
            let asked = request(alone(address).header(name, value));
            attempt(format!("headers-{}", json!({ name: value })), asked);
        }
        attempt("validate", validate_header_name("a b"));
        attempt("validate-value", validate_header_value("a", "\u{1}"));
        let c = raw(
            address.port(),
            "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
            move |t| {
                log(show(t));
                server.close();
            },
        );
        c.on_this(MORE, |c, got| {
            if got.ends_with("0\r\n\r\n") {
                c.end(());
            }
        });
    });
}

fn object(headers: &Headers) -> String {
    let members = headers.iter().map(|(name, _)| {
        let value = match name {
            "set-cookie" => Value::from(headers.set_cookie()),
            _ => Value::from(headers.get(name).unwrap()),
        };
        format!("{}:{value}", Value::from(name))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn flat(lines: &[(String, String)]) -> String {
    let lines = lines.iter().flat_map(|(name, value)| [&**name, &**value]);
    Value::from(lines.collect::<Vec<_>>()).to_string()
}

fn echo_trailers() -> Server {
    http::create_server(|req, res| {
        res.send_date(false);
        let declared = req.headers().get("trailer").unwrap_or("undefined");
        log(format!(
            "head{} {} {declared}",
            req.url(),
            object(req.trailers())
        ));
        req.on_data_this(|req, d| {
            log(format!("data {} {}", text(d), req.raw_trailers().len()));
        });
        let res = res.clone();
        req.on_this(END, move |req, ()| {
            let (trailers, raw) = (req.trailers(), req.raw_trailers());
            log(format!("end {} {}", object(trailers), flat(raw)));
            if req.url() == "/length" {
                res.set_header("Content-Length", 2);
            }
            res.write("ok");
            let echo = trailers.get("x-sum").filter(|sum| !sum.is_empty());
            let echo = HeaderValue::from(echo.unwrap_or("none"));
            let list = HeaderValue::from(["a", "b"]);
            res.add_trailers([("X-Echo", echo), ("X-List", list)])
                .unwrap();
            res.add_trailers([("X-Second", "2")]).unwrap();
            res.end(());
        });
    })
}

async fn trailers_both_ways() {
    let chunks = |version: &str, extra: &str| {
        format!(
            "PUT /{version} HTTP/{version}\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\
             Connection: close\r\n{extra}\r\n2\r\nab\r\n0\r\nX-Sum: 1\r\nX-Sum: 2\r\nHost: twice\r\n\r\n"
        )
    };
    let raws = vec![
        chunks("1.1", ""),
        chunks("1.0", "TE: chunked\r\n"),
        chunks("1.0", ""),
    ];
    echo_trailers().listen_this(FREE, |server| {
        let server = server.clone();
        let second = server.clone();
        post_with_trailers(&server, "/plain", move || {
            let third = second.clone();
            post_with_trailers(&second, "/length", move || next_bytes(third, raws));
        });
    });
}

fn next_bytes(server: Server, mut list: Vec<String>) {
    if list.is_empty() {
        return server.close_with(say("closed"));
    }
    let bytes = list.remove(0);
    raw(server.address().unwrap().port(), &bytes, move |t| {
        log(show(t));
        next_bytes(server, list);
    });
}

fn post_with_trailers(server: &Server, path: &str, then: impl FnOnce() + 'static) {
    let options = alone(server.address().unwrap()).path(path).method("POST");
    let req = http::request(options.header("Trailer", "X-Sum"));
    req.on_response(move |res| {
        res.on_data_this(|res, d| log(format!("body {} {}", text(d), object(res.trailers()))));
        res.on_this(END, |res, ()| {
            log(format!(
                "trailers {} {}",
                object(res.trailers()),
                flat(res.raw_trailers())
            ));
        });
        res.once(CLOSE, move |()| then());
    });
    req.write("one");
    req.add_trailers([("X-Sum", "3")]).unwrap();
    req.add_trailers([("X-Sum", "4"), ("Set-Cookie", "a")])
        .unwrap();
    req.end("two");
}

type Send = fn(&ClientRequest);

fn one_two() -> Readable<Vec<u8>> {
    Readable::from_iter([b"one".to_vec(), b"two".to_vec()])
}

/// A name, a method, headers, and what is written.
type Sent = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    Send,
);

const BODIES: [Sent; 20] = [
    ("nothing", "POST", &[], |r| r.end(())),
    ("once", "POST", &[], |r| r.end("all")),
    ("twice", "POST", &[], |r| {
        r.write("a");
        r.write("b");
        r.end(());
    }),
    ("later", "PUT", &[], |r| {
        r.write("a");
        let r = r.clone();
        set_timeout(20, move || r.end("b"));
    }),
    ("length", "POST", &[("Content-Length", "2")], |r| {
        r.write("a");
        r.end("b");
    }),
    (
        "chunked",
        "POST",
        &[("Transfer-Encoding", "chunked")],
        |r| r.end("all"),
    ),
    ("empty", "POST", &[], |r| {
        r.write("");
        r.end("");
    }),
    ("get", "GET", &[], |r| r.end("body")),
    ("get-length", "GET", &[("Content-Length", "4")], |r| {
        r.end("body")
    }),
    (
        "get-chunked",
        "GET",
        &[("Transfer-Encoding", "chunked")],
        |r| {
            r.write("bo");
            r.end("dy");
        },
    ),
    ("delete", "DELETE", &[], |r| r.end("body")),
    ("options", "OPTIONS", &[], |r| r.end(())),
    ("patch", "PATCH", &[], |r| r.end("p")),
    ("other", "PROPFIND", &[], |r| r.end(())),
    ("flushed", "POST", &[], |r| {
        r.flush_headers();
        r.end("all");
    }),
    ("corked", "POST", &[], |r| {
        r.cork();
        r.write("a");
        r.write("b");
        r.uncork();
        r.end(());
    }),
    ("piped", "POST", &[], |r| one_two().pipe(r.writable())),
    ("pipeline", "POST", &[("Content-Length", "6")], |r| {
        pipeline(&one_two()).into(r.writable()).then(|done| {
            let done = done.err();
            log(format!("pipeline {}", done.as_ref().map_or("ok", code)));
        });
    }),
    ("removed", "POST", &[], |r| {
        r.remove_header("Connection").unwrap();
        r.remove_header("Host").unwrap();
        r.end("x");
    }),
    ("list", "POST", &[], |r| r.end("x")),
];

/// The bodies that are left to send, and the server that gets them.
#[derive(Default)]
struct Left {
    at: Cell<usize>,
    server: RefCell<Option<net::Server>>,
}

async fn request_bodies() {
    let left = Rc::<Left>::default();
    let next = left.clone();
    let server = net::create_server(move |s| {
        let got = Rc::<RefCell<String>>::default();
        let all = got.clone();
        s.on_data(move |d| all.borrow_mut().push_str(&latin1(d)));
        let (s, next) = (s.clone(), next.clone());
        set_timeout(80, move || {
            log(show(&got.borrow()));
            s.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            s.once(CLOSE, move |()| next.send());
        });
    });
    server.listen_this(FREE, move |server| {
        left.server.replace(Some(server.clone()));
        left.send();
    });
}

impl Left {
    fn send(&self) {
        let at = self.at.replace(self.at.get() + 1);
        let server = self.server.borrow().clone().expect("the server listens");
        match BODIES.get(at) {
            Some(body) => send_body(server.address().unwrap(), *body),
            None => server.close(),
        }
    }
}

fn send_body(address: SocketAddr, (name, method, headers, send): Sent) {
    let mut options = alone(address).method(method).path(format!("/{name}"));
    for (name, value) in headers {
        options = options.header(*name, *value);
    }
    if name == "list" {
        // The program names them with the call, before the host.
        options = options
            .header("X-A", ["1", "2"])
            .header("Cookie", ["a=1", "b=2"]);
    }
    let req = http::request(options);
    req.set_header("Host", "h");
    req.on(FINISH, move |()| log(format!("finish {name}")));
    req.on(ERROR, |e| log(format!("error {}", code(e))));
    req.on_response(|res| _ = res.resume());
    send(&req);
}
