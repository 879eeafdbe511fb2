//! 369–373: fetch.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::error::Error as _;
use std::net::SocketAddr;
use std::rc::Rc;

use futures::StreamExt as _;
use phaseloop_node::events::ERROR;
use phaseloop_node::fetch::{Body, Fetch, Redirect, Response};
use phaseloop_node::http::{self, IncomingMessage, ServerResponse};
use phaseloop_node::net::CONNECTION;
use phaseloop_node::stream::{CLOSE, END, Readable};
use phaseloop_node::{
    AbortController, AbortSignal, Emitter, Error, Promise, Reason, call, fetch, net, next_tick,
    set_immediate, set_timeout, sleep,
};
use serde_json::{Value, json};

use crate::http_peers::{FREE as ANY_PORT, refusing};
use crate::support::{log, say, text};

super::ports! {
    Virtual "369-fetch-basic" => basic,
    Virtual "370-fetch-body-stream" => body_stream,
    Virtual "371-fetch-abort" => abort,
    Virtual "372-fetch-redirect" => redirects,
    Virtual "373-fetch-wire" => defaults_and_errors,
}

/// Listens on a free loopback port and runs an async function with the server and its address.
fn serve<F: Future<Output = ()> + 'static>(
    server: &http::Server,
    main: impl FnOnce(http::Server, SocketAddr) -> F + 'static,
) {
    server.listen_this(ANY_PORT, |server| {
        let address = server.address().expect("the server listens");
        call(main(server.clone(), address));
    });
}

/// Calls `then` with the body of a request, once it is there.
fn with_body(req: &IncomingMessage, then: impl FnOnce(String) + 'static) {
    let body = Rc::new(RefCell::new(String::new()));
    let part = body.clone();
    req.on_data(move |d| part.borrow_mut().push_str(&text(d)));
    req.once(END, move |()| then(body.take()));
}

fn get(req: &IncomingMessage, name: &str) -> Option<String> {
    req.headers().get(name).map(str::to_owned)
}

/// The cause's code.
fn cause(reason: &Reason) -> String {
    let error = reason.downcast_ref::<Error>().expect("a node error");
    let cause = error
        .source()
        .and_then(|cause| cause.downcast_ref::<Error>());
    cause
        .and_then(|cause| cause.code())
        .unwrap_or("-")
        .to_owned()
}

fn quoted(list: &[String]) -> String {
    Value::from(list).to_string()
}

async fn basic() {
    let server = http::create_server(|req, res| {
        let (url, method) = (req.url().to_owned(), req.method());
        let (kind, res) = (get(req, "content-type"), res.clone());
        with_body(req, move |body| match &*url {
            "/json" => {
                res.set_header("Content-Type", "application/json");
                let kind = Value::from(kind.unwrap_or_default());
                let body = Value::from(body);
                let text = format!(r#"{{"method":"{method}","type":{kind},"body":{body}}}"#);
                res.end(text);
            }
            "/missing" => {
                res.set_status(404);
                res.end("no");
            }
            "/cookies" => {
                res.set_header("Set-Cookie", ["a=1", "b=2"]);
                res.set_header("X-Many", ["1", "2"]);
                res.end(());
            }
            "/bad" => res.end("{"),
            _ => {
                res.set_status(204);
                res.end(());
            }
        });
    });
    serve(&server, |server, address| async move {
        let base = format!("http://{address}");
        let at = |path: &str| format!("{base}{path}");
        let shown = |value: Value| {
            // The members in the order of the program.
            let [method, kind, body] = ["method", "type", "body"].map(|name| &value[name]);
            log(format!(
                r#"{{"method":{method},"type":{kind},"body":{body}}}"#
            ));
        };
        let a = fetch(at("/json"))
            .method("POST")
            .body("text")
            .send()
            .await
            .unwrap();
        let (status, ok) = (format!("{} {}", a.status(), a.status_text()), a.ok());
        let (redirected, is_url) = (a.redirected(), a.url() == at("/json"));
        let used = a.body_used();
        log(format!(
            "{status} ok-{ok} redirected-{redirected} url-{is_url} type-basic used-{used}"
        ));
        shown(a.json().await.unwrap());
        log(format!("used-{}", a.body_used()));
        let again = a.text().await.unwrap_err();
        log(format!("{} {}", again.name(), again.name() == "TypeError"));
        let b = fetch(at("/missing")).send().await.unwrap();
        let (status, ok) = (b.status(), b.ok());
        log(format!("{status} ok-{ok} {}", b.text().await.unwrap()));
        let c = fetch(at("/cookies")).send().await.unwrap();
        let headers = c.headers();
        let (many, cookies) = (headers.get("x-many").unwrap(), headers.get_set_cookie());
        let none = headers.get("none").unwrap_or("null".to_owned());
        log(format!(
            "{many} {} {} {none}",
            quoted(&cookies),
            headers.has("X-MANY")
        ));
        let mut names: Vec<_> = headers.iter().map(|(name, _)| name).collect();
        names.dedup();
        names.retain(|name| name != "date");
        log(names.join(","));
        let d = fetch(at("/bad")).send().await.unwrap();
        log(d.json::<Value>().await.unwrap_err().name());
        let e = fetch(at("/none"))
            .method("POST")
            .body(Body::form([("x", "1 2")]));
        let e = e.send().await.unwrap();
        let (status, is_null) = (e.status(), e.body().is_none());
        log(format!(
            "{status} body-{is_null} {}",
            json!(e.text().await.unwrap())
        ));
        let f = fetch(at("/json")).method("PUT").body(r#"{"n":1}"#);
        let f = f
            .header("content-type", "application/json")
            .send()
            .await
            .unwrap();
        shown(f.json().await.unwrap());
        server.close();
        server.close_all_connections();
    });
}

async fn body_stream() {
    type Steps = Rc<RefCell<VecDeque<Box<dyn FnOnce()>>>>;
    let steps: Steps = Rc::default();
    let cuts = Rc::new(Cell::new(0));
    let (of_server, cut) = (steps.clone(), cuts.clone());
    let server = http::create_server(move |req: &IncomingMessage, res: &ServerResponse| {
        let cut = cut.clone();
        res.on_this(CLOSE, move |res, ()| {
            if !res.finished() {
                cut.set(cut.get() + 1);
            }
        });
        res.write("one");
        let (first, last) = (res.clone(), res.clone());
        let is_cut = req.url() == "/cut";
        of_server.replace(VecDeque::from([
            Box::new(move || _ = first.write("two")) as Box<dyn FnOnce()>,
            Box::new(move || match is_cut {
                true => last.destroy(None),
                false => last.end("three"),
            }),
        ]));
    });
    let more = move || {
        let step = steps.borrow_mut().pop_front();
        if let Some(step) = step {
            set_timeout(30, step);
        }
    };
    async fn parts(response: Response, more: impl Fn()) -> Result<(), Error> {
        let mut parts = response.body().unwrap().chunks();
        while let Some(part) = parts.next().await {
            log(format!("part-{}", text(&part?)));
            more();
        }
        Ok(())
    }
    serve(&server, |server, address| async move {
        let get = |path: &str| fetch(format!("http://{address}{path}")).send();
        parts(get("/").await.unwrap(), &more).await.unwrap();
        let e = parts(get("/cut").await.unwrap(), &more).await.unwrap_err();
        let reason = Reason::from(e.clone());
        log(format!("{} {} {}", e.name(), e.message(), cause(&reason)));
        let c = get("/cancel").await.unwrap();
        let mut reader = c.body().unwrap().chunks();
        let value = reader.next().await.unwrap().unwrap();
        log(format!("read-{} false", text(&value)));
        drop(reader);
        log("cancelled");
        set_timeout(100, move || {
            log(format!("cuts-{}", cuts.get()));
            server.close();
            server.close_all_connections();
        });
    });
}

async fn abort() {
    type Abort = Rc<RefCell<Option<Box<dyn FnOnce()>>>>;
    let abort: Abort = Rc::default();
    let of_server = abort.clone();
    let server = http::create_server(move |req, res| {
        log(format!("request{}", req.url()));
        if req.url() == "/body" {
            res.write("part");
        } else if let Some(abort) = of_server.take() {
            set_timeout(50, abort);
        }
    });
    serve(&server, |server, address| async move {
        let at = |path: &str| fetch(format!("http://{address}{path}"));
        let already = AbortController::new();
        already.abort();
        let e = at("/never")
            .signal(&already.signal())
            .send()
            .await
            .unwrap_err();
        log(format!("{} {} true", e.name(), e.code().unwrap()));
        let c = AbortController::new();
        let signal = c.signal();
        abort.replace(Some(Box::new(move || {
            c.abort();
            log("aborted");
            next_tick(say("tick"));
            set_immediate(say("immediate"));
        })));
        log(at("/wait").signal(&signal).send().await.unwrap_err().name());
        let d = AbortController::new();
        let signal = d.signal();
        abort.replace(Some(Box::new(move || d.abort_with(Error::new("mine")))));
        let e = at("/reason").signal(&signal).send().await.unwrap_err();
        log(e.to_string());
        let e = at("/timeout")
            .signal(&AbortSignal::timeout(300))
            .send()
            .await
            .unwrap_err();
        log(e.name());
        let f = AbortController::new();
        let r = at("/body").signal(&f.signal()).send().await.unwrap();
        set_timeout(50, move || f.abort());
        log(format!("body {}", r.text().await.unwrap_err().name()));
        server.close();
        server.close_all_connections();
    });
}

fn redirecting(other: Rc<Cell<u16>>) -> http::Server {
    http::create_server(move |req, res| {
        let (url, method, res) = (req.url().to_owned(), req.method(), res.clone());
        let names = ["content-type", "authorization", "x-mine"];
        let [kind, secret, mine] = names.map(|name| get(req, name).unwrap_or("-".to_owned()));
        let other = other.get();
        let to = |status: u16, location: &str| {
            res.write_head(status, [("Location", location)]);
            res.end(());
        };
        match &*url {
            "/301" | "/302" | "/303" | "/307" | "/308" => {
                return to(url[1..].parse().unwrap(), "/target");
            }
            "/loop" => return to(302, "/loop"),
            "/away" => return to(302, &format!("http://127.0.0.1:{other}/target")),
            "/nolocation" => {
                res.write_head(302, ());
                return res.end("plain");
            }
            _ => {}
        }
        with_body(req, move |body| {
            let body = if body.is_empty() { "-" } else { &*body };
            res.end(format!("{method} {kind} {body} {secret} {mine}"));
        });
    })
}

async fn redirects() {
    let other = Rc::new(Cell::new(0));
    let (server, second) = (redirecting(other.clone()), redirecting(other.clone()));
    serve(&second, |second, address| async move {
        other.set(address.port());
        serve(&server, |server, address| async move {
            let base = format!("http://{address}");
            let post = |path: &str| {
                let post = fetch(format!("{base}{path}")).method("POST").body("b");
                post.header("authorization", "secret").header("x-mine", "1")
            };
            let read = async |request: Fetch| request.send().await.unwrap().text().await.unwrap();
            for code in ["301", "302", "303", "307", "308"] {
                let r = post(&format!("/{code}")).send().await.unwrap();
                let path = r.url().strip_prefix(&base).unwrap().to_owned();
                let redirected = r.redirected();
                log(format!(
                    "{code} {redirected} {path} {}",
                    r.text().await.unwrap()
                ));
            }
            log(format!("put303 {}", read(post("/303").method("PUT")).await));
            log(format!("put302 {}", read(post("/302").method("PUT")).await));
            log(format!("away {}", read(post("/away")).await));
            let at = |path: &str| fetch(format!("{base}{path}"));
            let m = at("/302").redirect(Redirect::Manual).send().await.unwrap();
            let location = m.headers().get("location").unwrap();
            log(format!("manual {} {location} basic", m.status()));
            m.text().await.unwrap();
            let e = at("/302")
                .redirect(Redirect::Error)
                .send()
                .await
                .unwrap_err();
            log(format!("error {} {e}", e.name()));
            let e = at("/loop").send().await.unwrap_err();
            log(format!("loop {} {e}", e.name()));
            let n = at("/nolocation").send().await.unwrap();
            let status = n.status();
            log(format!("nolocation {status} {}", n.text().await.unwrap()));
            for s in [server, second] {
                s.close();
                s.close_all_connections();
            }
        });
    });
}

async fn failing(name: &str, request: Fetch) {
    match request.send().await {
        Ok(_) => log(format!("{name} ok")),
        Err(e) => log(format!("{name} {} {}", e.name(), cause(&e))),
    }
}

/// A server that answers the first bytes with `answer`, and ends.
fn answering(answer: &'static str) -> net::Server {
    net::create_server(move |s| {
        s.on(ERROR, |_| ());
        s.once_this(Readable::<Vec<u8>>::DATA, move |s, _| s.end(answer));
        s.resume();
    })
}

async fn listening(server: &net::Server) -> SocketAddr {
    let listens = server.clone();
    let listening = Promise::new(move |listening| {
        listens.listen_with(ANY_PORT, move || listening.resolve(()));
    });
    listening.await.unwrap();
    server.address().unwrap()
}

async fn defaults_and_errors() {
    let open = Rc::new(Cell::new(0));
    let server = http::create_server(|req, res| {
        let lines = req
            .raw_headers()
            .iter()
            .map(|(name, value)| match &*name.to_lowercase() {
                "host" => format!("{name}: *"),
                _ => format!("{name}: {value}"),
            });
        let lines: Vec<_> = lines.collect();
        let is_numbered = req.url().len() == 2 && ("/0".."/9").contains(&req.url());
        let lines = if is_numbered {
            String::new()
        } else {
            lines.join(" | ")
        };
        log(format!("{} {} {lines}", req.method(), req.url()));
        req.resume();
        let res = res.clone();
        req.on(END, move |()| res.end("x"));
    });
    let opened = open.clone();
    server.on(CONNECTION, move |_| opened.set(opened.get() + 1));
    serve(&server, |server, address| async move {
        let base = format!("http://{address}");
        let read = async |request: Fetch| request.send().await.unwrap().text().await.unwrap();
        read(fetch(&base)).await;
        read(fetch(format!("{base}/p")).method("POST").body("text")).await;
        let put = fetch(format!("{base}/b")).method("put").body(vec![0; 3]);
        read(put.header("Accept", "a/b").header("X-Y", "z")).await;
        sleep(50).await.unwrap();
        open.set(0);
        for path in ["/1", "/2", "/3"] {
            read(fetch(format!("{base}{path}"))).await;
            sleep(50).await.unwrap();
        }
        log(format!("new-connections-{}", open.get()));
        read(fetch(format!("{base}/h")).method("HEAD")).await;
        server.close();
        server.close_all_connections();
        let (free, refused) = refusing();
        failing("refused", fetch(format!("http://{refused}"))).await;
        drop(free);
        let rude = answering("");
        let address = listening(&rude).await;
        failing("hang-up", fetch(format!("http://{address}"))).await;
        rude.close();
        let junk = answering("JUNK\r\n\r\n");
        let address = listening(&junk).await;
        failing("junk", fetch(format!("http://{address}"))).await;
        junk.close();
        failing("get-body", fetch(&base).body("x")).await;
        failing("scheme", fetch("ftp://127.0.0.1/")).await;
    });
}
