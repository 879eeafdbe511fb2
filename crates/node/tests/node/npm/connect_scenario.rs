//! What `connect.mjs` does, with the port.

use std::cell::RefCell;
use std::rc::Rc;

use phaseloop_node::events::{ERROR, once};
use phaseloop_node::http::{
    self, ABORTED, Agent, IncomingMessage, RequestOptions, Server, request,
};
use phaseloop_node::net::LISTENING;
use phaseloop_node::stream::CLOSE;
use phaseloop_node::{Emitter, Error, Promise, set_timeout, throw};

use super::connect::{App, HttpError, OriginalUrl};
use super::{Log, prints};

struct User(&'static str);

fn seen(log: &Log, name: &str, req: &IncomingMessage) {
    let extensions = req.extensions();
    let original = &extensions.get::<OriginalUrl>().unwrap().0;
    log.log(format_args!("{name} {} of {original}", req.url()));
}

fn ask(log: &Log, server: &Server, method: &str, path: &str, body: &str) -> Promise<()> {
    log.log(format_args!("> {method} {path}"));
    let options = RequestOptions::new(server.address().unwrap());
    let options = options.method(method).path(path).agent(&Agent::none());
    let req = request(options);
    let (log, failed) = (log.clone(), log.clone());
    req.on(ERROR, move |error| {
        failed.log(format_args!("error {error}"))
    });
    let answered = Promise::new(|deferred| {
        req.on_response(move |res| {
            let text = Rc::new(RefCell::new(String::new()));
            let (all, aborted) = (text.clone(), log.clone());
            res.on_data(move |data| all.borrow_mut().push_str(&String::from_utf8_lossy(data)));
            res.on(ABORTED, move |()| aborted.log("aborted"));
            res.on(ERROR, |_| ());
            res.once_this(CLOSE, move |res, ()| {
                let status = res.status_code().unwrap();
                log.log(format_args!("< {status} {}", res.status_message()));
                let names = [
                    "content-security-policy",
                    "x-content-type-options",
                    "content-type",
                    "content-length",
                    "retry-after",
                    "x-by",
                ];
                for name in names {
                    if let Some(value) = res.headers().get(name) {
                        log.log(format_args!("{name}: {value}"));
                    }
                }
                let text = text.take();
                text.trim_end().split('\n').for_each(|line| log.log(line));
                deferred.resolve(());
            });
        });
    });
    match body {
        "" => req.end(()),
        _ => req.end(body),
    }
    answered
}

async fn serve(log: &Log, name: &str, app: &App, requests: &[(&str, &str)]) {
    log.part(name);
    let server = app.create_server();
    let listening = once(&server, LISTENING);
    server.listen(("127.0.0.1", 0));
    listening.await.unwrap();
    for (method, path) in requests {
        let body = "x".repeat(if *method == "POST" { 100_000 } else { 0 });
        ask(log, &server, method, path, &body).await.unwrap();
    }
    let closed = once(&server, CLOSE);
    server.close();
    closed.await.unwrap();
}

#[test]
fn the_port_of_connect_prints_what_the_package_prints() {
    prints(include_str!("connect.expected"), |log| async move {
        chain(&log).await;
        mounted(&log).await;
        nested(&log).await;
        errors(&log).await;
        last(&log).await;
    });
}

async fn chain(log: &Log) {
    let app = App::new(true);
    let [a, b, c] = [log.clone(), log.clone(), log.clone()];
    app.layer("/", move |req, res, next| {
        seen(&a, "first", req);
        res.set_header("X-By", "first");
        next.ok();
    });
    app.layer("/hello", move |req, _, next| {
        seen(&b, "hello", req);
        req.extensions_mut().insert(User("Ada"));
        next.ok();
    });
    app.layer("/", move |req, _, next| {
        seen(&c, "second", req);
        set_timeout(1, move || next.ok());
    });
    app.layer("/", |req, res, _| {
        let user = req
            .extensions()
            .get()
            .map_or("undefined", |User(name)| name);
        res.end(format!("hello, {user}"));
    });
    serve(log, "a chain", &app, &[("GET", "/"), ("GET", "/hello")]).await;
}

async fn mounted(log: &Log) {
    let app = App::new(true);
    let [a, b] = [log.clone(), log.clone()];
    app.layer("/blog/", move |req, res, next| {
        seen(&a, "blog", req);
        match req.url().starts_with("/next") {
            true => next.ok(),
            false => res.end(req.url()),
        }
    });
    app.layer("/", move |req, res, _| {
        seen(&b, "rest", req);
        res.end(format!("rest {}", req.url()));
    });
    let paths = [
        "/blog",
        "/blog/",
        "/blog/post?a=/b",
        "/blogger",
        "/BLOG/Post",
        "/blog.json",
        "/blog?q",
        "/blog/next?x",
        "/",
        "http://example.com/blog/post?a=1",
        "http://example.com/blog/next",
    ];
    let mut requests: Vec<_> = paths.iter().map(|path| ("GET", *path)).collect();
    requests.push(("OPTIONS", "*"));
    serve(log, "mounted", &app, &requests).await;
}

async fn nested(log: &Log) {
    let [app, outer, inner] = [App::new(true), App::new(true), App::new(true)];
    let [a, b, c, d, e] = [(); 5].map(|()| log.clone());
    inner.layer("/c", move |req, res, _| {
        seen(&a, "inner", req);
        res.end("inner");
    });
    inner.layer("/", move |req, _, next| {
        seen(&b, "inner, none", req);
        next.ok();
    });
    outer.mount("/b", &inner);
    outer.layer("/", move |req, _, next| {
        seen(&c, "outer, none", req);
        match req.url() {
            "/fail" => next.fail(Error::new("outer")),
            _ => next.ok(),
        }
    });
    app.mount("/a", &outer);
    let server = http::create_server(move |req, res| {
        seen(&e, "server", req);
        res.end("server");
    });
    app.mount_server("/server", &server);
    app.error_layer("/", move |error, req, _, next| {
        seen(&d, &format!("error {error}"), req);
        next.call(Some(error));
    });
    let paths = ["/a/b/c/d", "/a/b/x", "/a/y", "/z", "/a/fail", "/server/x"];
    serve(log, "nested", &app, &paths.map(|path| ("GET", path))).await;
}

async fn errors(log: &Log) {
    let app = App::new(true);
    let [a, b, c, d] = [log.clone(), log.clone(), log.clone(), log.clone()];
    app.layer("/next", |_, _, next| next.fail(Error::new("passed")));
    app.layer("/throw", |_, _, _| throw("thrown"));
    app.layer("/", move |req, _, next| {
        seen(&a, "plain", req);
        next.ok();
    });
    app.error_layer("/throw", move |error, req, _, _| {
        seen(&b, &format!("mounted {error}"), req);
        throw("replaced");
    });
    app.error_layer("/", move |error, req, _, next| {
        seen(&c, &format!("any {error}"), req);
        next.call(Some(error).filter(|_| req.url() != "/next/forgiven"));
    });
    app.layer("/", move |req, res, _| {
        seen(&d, "forgiven", req);
        res.end("forgiven");
    });
    app.error_layer("/", |error, _, res, _| {
        res.set_status(502);
        res.end(format!("last {error}"));
    });
    let paths = ["/", "/next", "/throw/x", "/next/forgiven"];
    serve(log, "errors", &app, &paths.map(|path| ("GET", path))).await;
}

async fn last(log: &Log) {
    let app = App::new(true);
    let fails_with = |status, headers| {
        move || HttpError {
            message: "chosen",
            status,
            headers,
        }
    };
    let busy = fails_with(503, &[("Retry-After", "7")]);
    let odd = fails_with(200, &[]);
    app.layer("/status", move |_, _, next| next.fail(busy()));
    app.layer("/odd", move |_, _, next| next.fail(odd()));
    app.layer("/code", |_, res, next| {
        res.set_status(409);
        next.fail(Error::new("tea"));
    });
    app.layer("/sent", |_, res, next| {
        res.write("half");
        set_timeout(20, move || next.fail(Error::new("late")));
    });
    app.layer("/done", |_, res, next| {
        res.end("done");
        next.ok();
    });
    let requests = [
        ("GET", "/none?a=b"),
        ("HEAD", "/none"),
        ("POST", "/none"),
        ("GET", "/a<b>\"%20%zz'&"),
        ("GET", "/status"),
        ("GET", "/odd"),
        ("GET", "/code"),
        ("GET", "/sent"),
        ("GET", "/done"),
    ];
    serve(log, "the last handler", &app, &requests).await;
}
