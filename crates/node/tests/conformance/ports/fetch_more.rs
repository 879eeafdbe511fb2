//! 496–499: `fetch` with all redirections, bodies, headers and signals.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::error::Error as _;
use std::net::SocketAddr;
use std::rc::Rc;

use futures::StreamExt as _;
use phaseloop_node::events::ERROR;
use phaseloop_node::fetch::{Body, Fetch, Redirect};
use phaseloop_node::http::{self, Server};
use phaseloop_node::net::{self};
use phaseloop_node::stream::{CLOSE, END, Readable};
use phaseloop_node::{
    AbortController, AbortSignal, Emitter, Error, Reason, all, call, fetch, set_timeout, sleep,
};
use serde_json::Value;

use crate::http_peers::FREE;
use crate::support::{log, text};

super::ports! {
    Virtual "496-fetch-redirect-modes" => redirect_modes,
    Virtual "497-fetch-bodies" => bodies,
    Virtual "498-fetch-headers" => headers,
    Virtual "499-fetch-signals" => signals,
}

fn error_of(reason: &Reason) -> &Error {
    reason.downcast_ref().expect("a node error")
}

/// The code or the text of the cause.
fn cause(reason: &Reason) -> Option<String> {
    let cause = error_of(reason).source()?.downcast_ref::<Error>()?;
    Some(cause.code().unwrap_or(cause.message()).to_owned())
}

const LOCATIONS: [(&str, &str); 10] = [
    ("/relative/a", "b"),
    ("/dots/a/b", "../c"),
    ("/query", "?q=1"),
    ("/empty", ""),
    ("/hash", "#only"),
    ("/scheme", "//127.0.0.1:PORT/target"),
    ("/user", "http://u:p@127.0.0.1:PORT/target"),
    ("/ftp", "ftp://127.0.0.1/"),
    ("/utf", "/caf\u{e9}"),
    ("/space", "/a b"),
];

fn redirecting() -> Server {
    http::create_server(|req, res| {
        let path = req.url().split('?').next().unwrap().to_owned();
        let code: u16 = path[1..].parse().unwrap_or(0);
        if (300..400).contains(&code) {
            let headers = [("Location", "/target")];
            res.write_head(code, headers);
            return res.end("moved");
        }
        let known = LOCATIONS.iter().find(|(known, _)| *known == path);
        if let Some((_, location)) = known.filter(|_| req.url() != "/query?q=1") {
            let port = req.socket().local_address().unwrap().port();
            let location = location.replace("PORT", &port.to_string());
            res.write_head(302, [("Location", location)]);
            return res.end(());
        }
        let (body, res) = (Rc::<RefCell<String>>::default(), res.clone());
        let all = body.clone();
        req.on_data(move |d| all.borrow_mut().push_str(&text(d)));
        req.on_this(END, move |req, ()| {
            let body = body.take();
            let body = if body.is_empty() { "-" } else { &*body };
            let get = |name| req.headers().get(name).filter(|value| !value.is_empty());
            let [kind, length, mine] =
                ["content-type", "content-length", "x-mine"].map(|name| get(name).unwrap_or("-"));
            let (method, url) = (req.method(), req.url());
            res.end(format!("{method} {url} {body} {kind} {length} {mine}"));
        });
    })
}

async fn redirect_modes() {
    redirecting().listen_this(FREE, |server| _ = call(all_redirections(server.clone())));
}

async fn show(base: &str, name: &str, request: Fetch, is_head: bool) {
    let read = async {
        let r = request.send().await?;
        let text = if is_head {
            String::new()
        } else {
            r.text().await?
        };
        let url = r.url().replace(base, "");
        Ok::<_, Reason>(format!(
            "{} {} basic {url} {text}",
            r.status(),
            r.redirected()
        ))
    };
    match read.await {
        Ok(shown) => log(format!("{name} {shown}")),
        Err(e) => log(format!(
            "{name} {} {e} {}",
            e.name(),
            cause(&e).unwrap_or_default()
        )),
    }
}

async fn all_redirections(server: Server) {
    let base = format!("http://{}", server.address().unwrap());
    let at = |path: &str| fetch(format!("{base}{path}"));
    for code in [300, 301, 302, 303, 304, 305, 306, 307, 308, 310] {
        show(&base, "get", at(&format!("/{code}")), false).await;
    }
    for code in [301, 302, 303, 307, 308] {
        let path = format!("/{code}");
        for method in ["HEAD", "PUT", "DELETE", "PATCH"] {
            let mut request = at(&path).method(method).header("X-Mine", "1");
            if matches!(method, "PUT" | "PATCH") {
                request = request.body("b");
            }
            show(&base, &format!("{method}{code}"), request, method == "HEAD").await;
        }
        let error = at(&path).redirect(Redirect::Error);
        show(&base, &format!("error{code}"), error, false).await;
        let manual = at(&path).redirect(Redirect::Manual);
        show(&base, &format!("manual{code}"), manual, false).await;
    }
    for (path, _) in LOCATIONS {
        let fragment = if path == "/query" { "#mine" } else { "" };
        show(
            &base,
            &format!("at{path}"),
            at(&format!("{path}{fragment}")),
            false,
        )
        .await;
    }
    show(&base, "fragment", at("/302#frag"), false).await;
    server.close();
    server.close_all_connections();
}

async fn bodies() {
    let server = http::create_server(|req, res| {
        let lines = req.raw_headers().iter().filter(|(name, _)| name != "host");
        let lines: Vec<_> = lines
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        log(format!(
            "{} {} {}",
            req.method(),
            req.url(),
            lines.join(" | ")
        ));
        let (body, res) = (Rc::<RefCell<Vec<u8>>>::default(), res.clone());
        let all = body.clone();
        req.on_data(move |d| all.borrow_mut().extend_from_slice(d));
        req.on(END, move |()| {
            res.set_header("Content-Type", "text/plain");
            res.end(body.take());
        });
    });
    server.listen_this(FREE, |server| _ = call(send_bodies(server.clone())));
}

async fn send(name: &str, base: &str, set: impl FnOnce(Fetch) -> Fetch) {
    let read = async {
        let r = set(fetch(format!("{base}/{name}"))).send().await?;
        Ok::<_, Reason>((r.status(), r.text().await?))
    };
    match read.await {
        Ok((status, text)) => log(format!("{name} {status} {}", Value::from(text))),
        Err(e) => log(format!(
            "{name} {} {}",
            e.name(),
            cause(&e).unwrap_or_default()
        )),
    }
}

async fn send_bodies(server: Server) {
    let base = format!("http://{}", server.address().unwrap());
    let post = |body: Body| move |f: Fetch| f.method("POST").body(body);
    let stream = Readable::from_iter([b"one".to_vec(), b"two".to_vec()]);
    send("text", &base, post("h\u{e9}llo".into())).await;
    send("empty", &base, post("".into())).await;
    send("none", &base, |f| f.method("POST")).await;
    send("bytes", &base, |f| f.method("PUT").body(vec![104, 105])).await;
    let form = Body::form([("a b", "1&2"), ("\u{e9}", "~*+ ")]);
    send("form", &base, post(form)).await;
    let typed = post(Body::form([("a", "1")]));
    send("typed", &base, |f| {
        typed(f).header("Content-Type", "text/mine")
    })
    .await;
    send("stream", &base, post((&stream).into())).await;
    let four = post("four".into());
    send("sized", &base, |f| four(f).header("Content-Length", "4")).await;
    send("patch", &base, |f| f.method("patch").body("x")).await;
    send("post", &base, |f| f.method("post").body("x")).await;
    send("delete", &base, |f| f.method("DELETE").body("x")).await;
    send("options", &base, |f| f.method("OPTIONS")).await;
    send("accept", &base, |f| {
        f.headers([
            ("Accept", "a/b"),
            ("Accept-Language", "de"),
            ("User-Agent", "me"),
            ("Accept-Encoding", "x"),
            ("X-Two", "2"),
            ("x-two", "3"),
        ])
    })
    .await;
    send("range", &base, |f| f.header("Range", "bytes=0-1")).await;
    send("cache", &base, |f| {
        f.header("If-None-Match", "\"a\"").header("Pragma", "p")
    })
    .await;
    send("get", &base, |f| f.body("x")).await;
    send("head", &base, |f| f.method("HEAD").body("x")).await;
    send("trace", &base, |f| f.method("TRACE")).await;
    send("odd", &base, |f| f.method("a b")).await;
    server.close();
    server.close_all_connections();
}

const ANSWERS: [&str; 12] = [
    "HTTP/1.1 200 OK\r\nZ-Last: z\r\nA-First: a\r\nX-Many: 1\r\nx-many: 2\r\nSet-Cookie: a=1\r\nB: b\r\n\
     set-cookie: b=2\r\nX-MANY:   3\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.1 299 Mine Own\r\nX-Latin: caf\u{e9}\r\nEmpty:\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.0 200\r\nX: 1\r\n\r\ntill the end",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok and more",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n\
     HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Trailer: t\r\n\r\n",
    "HTTP/1.1 204 No Content\r\nX: 1\r\n\r\n",
    "HTTP/1.1 205 Reset\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nContent-Length: nonsense\r\n\r\nok",
    "nonsense",
    "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
];

const NAMES: [(&str, &str); 12] = [
    ("a b", "1"),
    ("x", "a\nb"),
    ("x", "\u{101}"),
    ("", "1"),
    ("Transfer-Encoding", "chunked"),
    ("Keep-Alive", "1"),
    ("Upgrade", "x"),
    ("Expect", "100-continue"),
    ("Connection", "weird"),
    ("Content-Length", "x"),
    ("Connection", "close, x"),
    ("Content-Length", "1"),
];

async fn headers() {
    let answers = RefCell::new(VecDeque::from(ANSWERS));
    let server = net::create_server(move |s| {
        s.on(ERROR, |_| ());
        // The last request gets no answer.
        let answer = answers.borrow_mut().pop_front().unwrap_or_default();
        let bytes: Vec<u8> = answer.chars().map(|char| char as u8).collect();
        s.once_this(Readable::<Vec<u8>>::DATA, move |s, _| s.end(bytes));
        s.resume();
    });
    server.listen_this(FREE, |server| {
        let address = server.address().unwrap();
        call(read_headers(server.clone(), address));
    });
}

async fn read_headers(server: net::Server, address: SocketAddr) {
    let url = format!("http://{address}/");
    for _ in ANSWERS {
        if let Err(e) = read_answer(&url).await {
            log(format!(
                "{} {e} {}",
                e.name(),
                cause(&e).unwrap_or_default()
            ));
        }
    }
    for (name, value) in NAMES {
        match fetch(&url).header(name, value).send().await {
            Ok(_) => log(format!("{name} ok")),
            Err(e) => log(format!(
                "{name} {} {}",
                e.name(),
                cause(&e).as_deref().unwrap_or("-")
            )),
        }
    }
    server.close();
}

async fn read_answer(url: &str) -> Result<(), Reason> {
    let r = fetch(url).send().await?;
    let list: Vec<Value> = r
        .headers()
        .iter()
        .map(|(name, value)| [name, value].into())
        .collect();
    let reason = Value::from(r.status_text());
    log(format!(
        "{} {reason} {} {}",
        r.status(),
        r.ok(),
        Value::from(list)
    ));
    let (cookies, many) = (r.headers().get_set_cookie(), r.headers().get("X-Many"));
    let (many, is_null) = (many.unwrap_or("null".to_owned()), r.body().is_none());
    let body = Value::from(r.text().await?);
    log(format!(
        "cookies {} many {many} body {is_null} {body}",
        Value::from(cookies)
    ));
    Ok(())
}

async fn signals() {
    let gone = Rc::new(Cell::new(0));
    let count = gone.clone();
    let server = http::create_server(move |req, res| {
        let count = count.clone();
        res.on_this(CLOSE, move |res, ()| {
            if !res.finished() {
                count.set(count.get() + 1);
            }
        });
        let res = res.clone();
        match req.url() {
            "/quick" => res.end("quick"),
            "/body" => {
                res.write("a");
                set_timeout(100, move || _ = res.write("b"));
            }
            "/to" => {
                let headers = [("Location", "/never")];
                res.write_head(302, headers);
                set_timeout(30, move || res.end(()));
            }
            _ => {}
        }
    });
    server.listen_this(FREE, |server| _ = call(abort_all(server.clone(), gone)));
}

fn tell(name: &str, read: Result<String, Reason>) {
    match read {
        Ok(text) => log(format!("{name} {text}")),
        Err(e) => {
            // The errors of the web have numbers in JavaScript, which have names here.
            let code = match e.name() {
                "AbortError" => " 20",
                "TimeoutError" => " 23",
                _ => "",
            };
            log(format!("{name} {} {e}{code}", e.name()));
        }
    }
}

async fn abort_all(server: Server, gone: Rc<Cell<u32>>) {
    let base = format!("http://{}", server.address().unwrap());
    let at = |path: &str| fetch(format!("{base}{path}"));
    let read = async |path: &str, signal: &AbortSignal| {
        let response = at(path).signal(signal).send().await?;
        response.text().await
    };
    at("/quick").send().await.unwrap().text().await.unwrap();
    let (a, b) = (AbortController::new(), AbortController::new());
    let any = AbortSignal::any([&a.signal(), &b.signal()]);
    let late = b.clone();
    set_timeout(250, move || late.abort_with(Error::type_error("b says no")));
    let three = ["any", "body", "quick"].map(|name| {
        let path = if name == "any" {
            "/never"
        } else {
            &*format!("/{name}")
        };
        let sent = at(path).signal(&any).send();
        call(async move {
            let read = match sent.await {
                Ok(response) => response.text().await,
                Err(error) => Err(error),
            };
            tell(name, read);
        })
    });
    all(three).await.unwrap();
    log(format!("any {} a {}", any.aborted(), a.signal().aborted()));
    tell("late", read("/quick", &any).await);
    tell("timeout", read("/never", &AbortSignal::timeout(60)).await);
    tell(
        "timeout-body",
        read("/body", &AbortSignal::timeout(300)).await,
    );
    let aborted = AbortController::new();
    aborted.abort();
    tell("already", read("/quick", &aborted.signal()).await);
    tell(
        "reason",
        read("/quick", &AbortSignal::abort(Error::new("mine"))).await,
    );
    let mixed = AbortSignal::any([&a.signal(), &AbortSignal::timeout(40)]);
    tell("mixed", read("/never", &mixed).await);
    let c = AbortController::new();
    log(format!(
        "text {}",
        read("/quick", &c.signal()).await.unwrap()
    ));
    c.abort();
    log(format!("after {}", c.signal().aborted()));
    let d = AbortController::new();
    let aborts = d.clone();
    set_timeout(300, move || aborts.abort());
    tell("redirect", read("/to", &d.signal()).await);
    let e = AbortController::new();
    let s = at("/body").signal(&e.signal()).send().await.unwrap();
    let (mut parts, mut seen) = (s.body().unwrap().chunks(), Vec::new());
    while let Some(part) = parts.next().await {
        match part {
            Ok(part) => seen.push(text(&part)),
            Err(error) => seen.push(error.name().to_owned()),
        }
        if seen.len() == 2 {
            e.abort();
        }
    }
    log(format!("parts {}", seen.join(",")));
    let f = AbortController::new();
    let t = at("/body").signal(&f.signal()).send().await.unwrap();
    f.abort();
    log(format!("unread {}", t.text().await.unwrap_err().name()));
    sleep(100).await.unwrap();
    log(format!("gone {}", gone.get()));
    server.close();
    server.close_all_connections();
}
