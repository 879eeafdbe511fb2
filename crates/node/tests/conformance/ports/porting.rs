//! 800, 801: middleware, and async listeners of requests.

use std::rc::Rc;

use phaseloop_node::events::once;
use phaseloop_node::http::{self, IncomingMessage, RequestOptions, Server, ServerResponse};
use phaseloop_node::stream::CLOSE;
use phaseloop_node::{Emitter, Error, Promise, Reason, process, set_timeout, sleep};
use serde::ser::{Serialize, SerializeMap as _, Serializer};

use crate::support::{log, text};

super::ports! {
    Real "800-http-middleware" => middleware,
    Real "801-http-async-listener" => async_listener,
}

type Handle = fn(&IncomingMessage, &ServerResponse, &dyn Fn());

struct User(&'static str);

struct Steps(Vec<String>);

const STACK: [(&str, Handle); 3] = [
    ("", |req, _, go| {
        req.extensions_mut().insert(User("Ada"));
        req.extensions_mut().insert(Steps(Vec::new()));
        go();
    }),
    ("/api", |req, _, go| {
        let step = || {
            let url = req.url().to_owned();
            let mut extensions = req.extensions_mut();
            extensions.get_mut::<Steps>().unwrap().0.push(url);
        };
        step();
        req.set_url("/changed");
        step();
        go();
    }),
    ("/api/me", |req, res, _| {
        let extensions = req.extensions();
        let steps = &extensions.get::<Steps>().unwrap().0;
        let user = extensions.get::<User>().unwrap().0;
        res.json(201, &Me(user, req.url(), steps));
    }),
];

/// Its fields are in the order of the program; a `Value` would sort them.
struct Me<'a>(&'a str, &'a str, &'a [String]);

impl Serialize for Me<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("user", self.0)?;
        map.serialize_entry("url", self.1)?;
        map.serialize_entry("steps", self.2)?;
        map.end()
    }
}

fn next(req: &IncomingMessage, res: &ServerResponse, index: usize) {
    let Some((route, handle)) = STACK.get(index) else {
        let headers = [("Content-Type", "text/plain")];
        return res
            .write_head(404, headers)
            .end(format!("no {}", req.url()));
    };
    let go = || next(req, res, index + 1);
    let before = req.url().to_owned();
    let Some(below) = before.strip_prefix(route) else {
        return go();
    };
    req.set_url(if below.is_empty() { "/" } else { below });
    handle(req, res, &|| {
        req.set_url(&*before);
        go();
    });
}

async fn middleware() {
    let server = http::create_server(|req, res| {
        next(req, res, 0);
        let req = req.clone();
        res.on(CLOSE, move |()| {
            let user = req.extensions().get().map_or("nobody", |User(name)| name);
            log(format!("close {} {user}", req.url()));
        });
    });
    server.listen_this(("127.0.0.1", 0), |server| {
        let paths = ["/api/me", "/api/other", "/"];
        ask(server, Rc::new(paths), 0);
    });
}

fn to(server: &Server, path: &str) -> RequestOptions {
    let agent = http::Agent::builder().build();
    RequestOptions::new(server.address().unwrap())
        .path(path)
        .agent(&agent)
}

fn ask(server: &Server, paths: Rc<[&'static str; 3]>, index: usize) {
    let Some(path) = paths.get(index) else {
        return server.close_this(|server| log(format!("closed {}", server.is_listening())));
    };
    let req = http::get(to(server, path));
    req.on_response_this(|req, res| {
        let header = |name| res.headers().get(name).unwrap_or("undefined").to_owned();
        let (kind, length) = (header("content-type"), header("content-length"));
        let status = res.status_code().unwrap();
        log(format!("{} {status} {kind} {length}", req.path()));
        res.on_data(|d| log(text(d)));
    });
    let server = server.clone();
    req.on(CLOSE, move |()| {
        let (server, paths) = (server.clone(), paths.clone());
        set_timeout(50, move || ask(&server, paths, index + 1));
    });
}

async fn async_listener() {
    process::on_unhandled_rejection(|reason| log(format!("unhandled {reason}")));
    let server = http::create_async_server(|req, res| async move {
        log(format!("start {}", req.url()));
        Promise::resolved(()).await?;
        log(format!("later {}", req.url()));
        if req.url() == "/bad" {
            set_timeout(50, move || res.end("late"));
            return Err(Reason::from(Error::new(format!("no {}", req.url()))));
        }
        res.end("fine");
        Ok(())
    });
    server.on_request_this(|_, req, _| log(format!("second {}", req.url())));
    server.listen(("127.0.0.1", 0));
    for path in ["/good", "/bad"] {
        let req = http::get(to(&server, path));
        req.on_response(move |res| {
            res.on_data(move |d| log(format!("{path} {}", text(d))));
        });
        once(&req, CLOSE).await.unwrap();
        sleep(50).await.unwrap();
    }
    server.close_with(|| log("closed"));
}
