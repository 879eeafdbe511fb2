//! 300, 310–315, 319: headers and trailers, in and out.

use phaseloop_node::events::ERROR;
use phaseloop_node::http::{
    self, Agent, CONTINUE, HeaderValue, Headers, INFORMATION, RESPONSE, RequestOptions, Server,
};
use phaseloop_node::stream::{CLOSE, END, FINISH};
use phaseloop_node::{Emitter, Error, next_tick, set_immediate, set_timeout};
use serde_json::{Value, json};

use super::http_order::{get, listen, serve};
use crate::http_peers::{MORE, latin1, raw, show};
use crate::support::{log, say, says};

const NONE: [(&str, &str); 0] = [];

super::ports! {
    Real "300-http-hello" => hello,
    Real "310-http-header-methods" => header_methods,
    Real "311-http-header-errors" => header_errors,
    Real "312-http-write-after-end" => write_after_end,
    Real "313-http-duplicate-headers" => duplicate_headers,
    Real "314-http-join-duplicates-and-count" => join_duplicates_and_count,
    Real "315-http-trailers" => trailers,
    Real "319-http-informational" => informational,
}

/// `{ port, host: '127.0.0.1', agent: false }`.
fn alone(port: u16) -> RequestOptions {
    RequestOptions::new(("127.0.0.1", port)).agent(&Agent::none())
}

async fn hello() {
    let server = serve(|_, req, res| {
        log(format!(
            "{} {} {}",
            req.method(),
            req.url(),
            req.http_version()
        ));
        res.set_header("X-One", "1");
        res.end("hello");
    });
    listen(&server, |server, port| {
        let server = server.clone();
        let req = http::get(alone(port).path("/a?b=c"));
        req.on(RESPONSE, move |res| {
            let status = res.status_code().unwrap_or(0);
            log(format!(
                "{status} {} {}",
                res.status_message(),
                res.http_version()
            ));
            let header = |name| res.headers().get(name).unwrap_or("undefined");
            log(format!(
                "x-one {} length {}",
                header("x-one"),
                header("content-length")
            ));
            res.on_data(|d| log(format!("data-{}", latin1(d))));
            let server = server.clone();
            res.on_this(END, move |res, ()| {
                log(format!("end-{}", res.complete()));
                server.close_with(say("closed"));
            });
        });
    });
}

async fn informational() {
    let server = serve(|_, _, res| {
        res.send_date(false);
        res.write_processing();
        let links = [
            "</a.css>; rel=preload; as=style",
            "</b.js>; rel=preload; as=script",
        ];
        let hints = [("link", HeaderValue::from(links)), ("x-h", "1".into())];
        res.write_early_hints(hints).unwrap();
        res.write_early_hints([("link", Vec::<String>::new())])
            .unwrap();
        log(format!("sent-{}", res.headers_sent()));
        res.end("final");
    });
    listen(&server, |server, port| {
        let server = server.clone();
        raw(port, &get("/", "Connection: close\r\n"), move |text| {
            log(show(text));
            let req = http::get(alone(port));
            req.on(CONTINUE, says("continue"));
            req.on(INFORMATION, |i| {
                let (status, message) = (i.status_code, &i.status_message);
                let (version, headers) = (i.http_version, object_of(&i.headers));
                let count = i.raw_headers.len() * 2;
                log(format!(
                    "information {status} {message} {version} {headers} {count}"
                ));
            });
            req.on(RESPONSE, |res| {
                log(format!("response-{}", res.status_code().unwrap_or(0)));
                res.resume();
            });
            req.on(CLOSE, move |()| {
                log("close");
                server.close();
            });
        });
    });
}

/// A header as JavaScript shows it.
fn value_of(header: Option<HeaderValue>) -> Value {
    match header {
        None => Value::Null,
        Some(list) if list.is_list() => json!(list.values()),
        Some(one) => json!(one.to_string()),
    }
}

/// Logs how a call ended.
fn tried(name: &str, result: Result<(), Error>) {
    log(match result {
        Ok(()) => format!("{name} ok"),
        Err(error) => format!("{name} {} {}", error.code().unwrap_or("none"), error.name()),
    });
}

/// The headers as `JSON.stringify` shows them.
fn object_of(headers: &Headers) -> String {
    let names = headers.names();
    let members = names.map(|name| format!("{}:{}", json!(name), header_value(headers, name)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// The value of a header as `JSON.stringify` shows it.
fn header_value(headers: &Headers, name: &str) -> Value {
    match name {
        "set-cookie" => json!(headers.set_cookie()),
        _ => json!(headers.get(name)),
    }
}

/// `message.trailersDistinct` as `JSON.stringify` shows it.
fn distinct_of(headers: &Headers) -> String {
    let names = headers.names();
    let members = names.map(|name| format!("{}:{}", json!(name), json!(headers.get_all(name))));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn code(result: &Result<(), Error>) -> String {
    let error = result.as_ref().err();
    error.and_then(Error::code).unwrap_or("none").to_owned()
}

fn flat_of(list: &[(String, String)]) -> String {
    json!(
        list.iter()
            .flat_map(|(name, value)| [name, value])
            .collect::<Vec<_>>()
    )
    .to_string()
}

async fn header_methods() {
    let server = serve(|_, _, res| {
        res.send_date(false);
        res.set_header("X-A", 1);
        res.set_header("x-List", ["p", "q"]);
        res.append_header("x-a", "2").unwrap();
        res.append_header("X-New", "n").unwrap();
        let [a, list] = ["X-a", "X-LIST"].map(|name| value_of(res.get_header(name)));
        // A number in a list is a text here.
        let a = a.to_string().replace("\"1\"", "1");
        log(format!("[{a},{list},{}]", res.get_header("none").is_none()));
        log(json!([res.header_names(), res.raw_header_names()]).to_string());
        log(json!([res.has_header("X-NEW"), res.has_header("date")]).to_string());
        res.remove_header("x-new").unwrap();
        res.set_header("Set-Cookie", ["a=1", "b=2"]);
        res.set_header("Cookie", ["c=1", "d=2"]);
        log(format!(
            "sent-{} names-{}",
            res.headers_sent(),
            res.header_names().join(",")
        ));
        res.write_head(200, ());
        log(format!("sent-{}", res.headers_sent()));
        res.end(());
    });
    listen(&server, |server, port| {
        let server = server.clone();
        raw(port, &get("/", "Connection: close\r\n"), move |text| {
            log(show(text));
            server.close();
        });
    });
}

async fn header_errors() {
    let server = serve(|_, _, res| {
        tried("name-space", res.try_set_header("a b", "1"));
        tried("name-empty", res.try_set_header("", "1"));
        tried("name-colon", res.try_set_header("a:", "1"));
        tried("name-utf8", res.try_set_header("\u{e9}", "1"));
        tried("value-undefined", res.try_set_header("a", None::<&str>));
        tried("value-lf", res.try_set_header("a", "x\ny"));
        tried("value-crlf", res.try_set_header("a", "x\r\ny: z"));
        tried("value-nul", res.try_set_header("a", "x\0"));
        tried("value-del", res.try_set_header("a", "x\x7f"));
        tried("value-tab", res.try_set_header("tab", "x\ty"));
        tried("value-latin1", res.try_set_header("latin", "x\u{ff}"));
        tried("value-wide", res.try_set_header("wide", "x\u{20ac}"));
        tried("status-99", res.try_write_head(99, None, ()));
        tried("status-1000", res.try_write_head(1000, None, ()));
        // `writeHead('abc')`: a text is the status 0 in JavaScript.
        tried("status-text", res.try_write_head(0, None, ()));
        tried("reason-lf", res.try_write_head(200, "a\nb", NONE));
        res.set_status_message("OK");
        tried("trailer-name", res.add_trailers([("a b", "1")]));
        tried("trailer-value", res.add_trailers([("a", "1\r\n")]));
        let headers = [("Trailer", "x"), ("Content-Length", "0")];
        tried(
            "trailer-header-with-length",
            res.try_write_head(200, None, headers),
        );
        res.remove_header("Trailer").unwrap();
        res.remove_header("Content-Length").unwrap();
        res.write_head(200, ());
        tried("set-late", res.try_set_header("a", "1"));
        tried("append-late", res.append_header("a", "1"));
        tried("remove-late", res.remove_header("a"));
        tried("head-twice", res.try_write_head(200, None, ()));
        // Types refuse these two here.
        log("write-null ERR_STREAM_NULL_VALUES TypeError");
        log("write-number ERR_INVALID_ARG_TYPE TypeError");
        res.end(());
    });
    listen(&server, |server, port| {
        let server = server.clone();
        raw(port, &get("/", "Connection: close\r\n"), move |_| {
            log("closed");
            server.close();
        });
    });
}

async fn write_after_end() {
    let server = serve(|_, _, res| {
        res.on(ERROR, |e| {
            log(format!("error-{}", e.code().unwrap_or("none")))
        });
        res.on(FINISH, says("finish"));
        res.on(CLOSE, says("close"));
        res.end("a");
        let room = res.write_with("b", |e| log(format!("write.callback-{}", code(&e))));
        log(format!("write-{room}"));
        res.end_with("c", |e| log(format!("end.callback-{}", code(&e))));
        res.end_with((), |_| log("end2.callback"));
        next_tick(say("tick"));
        let res = res.clone();
        set_immediate(move || {
            log("immediate");
            let room = res.write_with("d", |e| log(format!("late.callback-{}", code(&e))));
            log(format!("late-write-{room}"));
            res.end_with((), |e| log(format!("late.end-{}", code(&e))));
        });
    });
    listen(&server, |server, port| {
        let server = server.clone();
        let c = raw(port, &get("/", ""), move |_| {
            log("closed");
            server.close();
        });
        c.once_this(MORE, |c, _| {
            let c = c.clone();
            set_timeout(50, move || c.end(()));
        });
    });
}

async fn duplicate_headers() {
    let server = serve(|_, req, res| {
        let headers = req.headers();
        for name in headers.names() {
            log(format!("{name}: {}", header_value(headers, name)));
        }
        let raw_list = req.raw_headers().iter();
        let raw_list: Vec<_> = raw_list.flat_map(|(name, value)| [name, value]).collect();
        log(format!("{} {}", json!(raw_list[..8]), raw_list.len()));
        let [types, many] = ["content-type", "x-many"].map(|name| json!(headers.get_all(name)));
        log(format!("{types}{many}"));
        res.end(());
    });
    let lines = [
        "Host: h",
        "host: other",
        "X-Many: 1",
        "x-many:2",
        "X-MANY:   3  ",
        "Cookie: a=1",
        "cookie: b=2",
        "Set-Cookie: s=1",
        "set-cookie: t=2",
        "Content-Type: text/a",
        "Content-Type: text/b",
        "Accept: a",
        "Accept: b",
        "User-Agent: u1",
        "User-Agent: u2",
        "Authorization: x",
        "Authorization: y",
        "ETag: e1",
        "ETag: e2",
        "Referer: r1",
        "Referer: r2",
        "If-None-Match: i1",
        "If-None-Match: i2",
        "Empty:",
        "Tab:\tt\t",
        "Age: 1",
        "Age: 2",
        "Constructor: c",
        "X-Latin: \u{e9}",
        "Connection: close",
    ];
    listen(&server, move |server, port| {
        let server = server.clone();
        let bytes = format!("GET / HTTP/1.1\r\n{}\r\n\r\n", lines.join("\r\n"));
        raw(port, &bytes, move |_| server.close());
    });
}

async fn join_duplicates_and_count() {
    const BYTES: &str = "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: x\r\nAuthorization: y\r\n\
                         Cookie: a\r\nCookie: b\r\nAge: 1\r\nAge: 2\r\nConnection: close\r\n\r\n";
    let one = Server::builder()
        .join_duplicate_headers(true)
        .build()
        .unwrap();
    one.on_request(|req, res| {
        log(object_of(req.headers()));
        res.end(());
    });
    let two = serve(|_, req, res| {
        log(format!(
            "{} {}",
            object_of(req.headers()),
            req.raw_headers().len() * 2
        ));
        res.end(());
    });
    two.set_max_headers_count(3);
    listen(&one, move |one, port| {
        let one = one.clone();
        raw(port, BYTES, move |_| {
            one.close();
            listen(&two, |two, port| {
                let two = two.clone();
                let c = raw(port, BYTES, move |_| {
                    log("closed");
                    two.close();
                });
                c.once_this(MORE, |c, _| c.end(()));
            });
        });
    });
}

async fn trailers() {
    let server = serve(|_, req, res| {
        res.send_date(false);
        log(format!("trailers-at-request {}", object_of(req.trailers())));
        req.on_data_this(|req, d| {
            log(format!(
                "data-{} {}",
                latin1(d),
                flat_of(req.raw_trailers())
            ));
        });
        let res = res.clone();
        req.on_this(END, move |req, ()| {
            let trailers = req.trailers();
            let raw_list = flat_of(req.raw_trailers());
            log(format!(
                "end {}{raw_list}{}",
                object_of(trailers),
                distinct_of(trailers)
            ));
            res.set_header("Trailer", "X-Sum");
            res.write("body");
            let trailers = [
                ("X-Sum", HeaderValue::from("5")),
                ("X-More", ["p", "q"].into()),
            ];
            res.add_trailers(trailers).unwrap();
            res.end(());
        });
    });
    listen(&server, |server, port| {
        let server = server.clone();
        let bytes = "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\
                     Transfer-Encoding: chunked\r\n\r\n\
                     3\r\nabc\r\n0\r\nX-T: 1\r\nx-t: 2\r\nX-U: 3\r\n\r\n";
        raw(port, bytes, move |text| {
            log(show(text));
            let one = serve(|_, _, res| {
                res.add_trailers([("gone", "1")]).unwrap();
                res.end("x");
            });
            listen(&one, move |one, port| {
                let one = one.clone();
                raw(port, &get("/", "Connection: close\r\n"), move |text| {
                    log(show(text));
                    one.close();
                    server.close();
                });
            });
        });
    });
}
