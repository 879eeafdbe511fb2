//! 486–490: requests that end too early, and servers that close or wait.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use phaseloop_node::events::ERROR;
use phaseloop_node::http::{
    self, Agent, CHECK_CONTINUE, CHECK_EXPECTATION, CLIENT_ERROR, CONNECT, CONTINUE, INFORMATION,
    IncomingMessage, RESPONSE, RequestOptions, SOCKET, Server, ServerResponse, UPGRADE,
};
use phaseloop_node::net::Socket;
use phaseloop_node::stream::{CLOSE, DRAIN, END, FINISH};
use phaseloop_node::{Emitter, Error, set_timeout};

use crate::http::SLOWNESS;
use crate::http_peers::{FREE, MORE, latin1, raw, show};
use crate::support::{log, say, says, text};

super::ports! {
    Virtual "486-http-pipeline-reversed" => pipeline_reversed,
    Virtual "487-http-expect-refused" => expect_refused,
    Virtual "488-http-upgrade-refused" => upgrade_refused,
    Real "489-http-close-mixed" => close_mixed,
    Virtual "490-http-slow-requests" => slow_requests,
}

fn code(e: &Error) -> String {
    e.code().unwrap_or("undefined").to_owned()
}

fn alone(address: SocketAddr) -> RequestOptions {
    RequestOptions::new(address).agent(&Agent::none())
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")
}

async fn pipeline_reversed() {
    let server = http::create_server(|req, res| {
        res.send_date(false);
        let name: Rc<str> = req.url()[1..].into();
        let n: u32 = name[1..].parse().unwrap();
        log(format!("request {name} socket-{}", res.socket().is_some()));
        let of = name.clone();
        res.on(SOCKET, move |_| log(format!("socket {of}")));
        let of = name.clone();
        res.on(DRAIN, move |()| log(format!("drain {of}")));
        let of = name.clone();
        res.on(FINISH, move |()| log(format!("finish {of}")));
        let of = name.clone();
        res.on_this(CLOSE, move |res, ()| {
            log(format!("close {of} finished-{}", res.finished()))
        });
        let of = name.clone();
        req.on_this(CLOSE, move |req, ()| {
            log(format!("req.close {of} aborted-{}", req.aborted()))
        });
        let of = name.clone();
        req.on(ERROR, move |e| log(format!("req.error {of} {}", code(e))));
        let res = res.clone();
        set_timeout(100 * (5 - n), move || {
            if &*name == "b2" {
                log(format!("destroy {name}"));
                return res.destroy(None);
            }
            let written = res.write(&*name);
            log(format!("write {name} {written}"));
            set_timeout(if n == 3 { 250 } else { 30 }, move || {
                log(format!("end {name}"));
                res.end_with(".", move |_| log(format!("callback {name}")));
            });
        });
    });
    server.listen_this(FREE, |server| {
        let (port, server) = (server.address().unwrap().port(), server.clone());
        let c = raw(
            port,
            &["/a1", "/a2", "/a3", "/a4"].map(get).concat(),
            move |t| {
                log(show(t));
                let d = raw(port, &["/b1", "/b2", "/b3"].map(get).concat(), move |t| {
                    log(show(t));
                    server.close_with(say("closed"));
                });
                set_timeout(900, move || d.destroy(None));
            },
        );
        c.on_this(MORE, |c, got| {
            if got.contains("a4\r\n1\r\n.\r\n0") {
                let c = c.clone();
                set_timeout(50, move || c.end(()));
            }
        });
    });
}

fn gather(req: &IncomingMessage, res: &ServerResponse) {
    let url: Rc<str> = req.url().into();
    log(format!("request{url}"));
    let of = url.clone();
    req.on_data(move |d| log(format!("data{of} {}", text(d))));
    let res = res.clone();
    req.on(END, move |()| {
        log(format!("end{url}"));
        res.end("got");
    });
}

async fn expect_refused() {
    let server = http::create_server(gather);
    server.on(CHECK_CONTINUE, |exchange| {
        let (req, res) = (&exchange.request, &exchange.response);
        log(format!("check{}", req.url()));
        let url = req.url().to_owned();
        req.on(CLOSE, move |()| log(format!("req.close{url}")));
        let url = req.url().to_owned();
        match req.url() {
            "/refused" => {
                let headers = [("Connection", "close")];
                res.write_head(413, headers);
                return res.end("too much");
            }
            "/kept" => {
                res.set_status(401);
                return res.end("who");
            }
            "/twice" => {
                res.write_continue();
                res.write_continue();
            }
            _ => res.write_continue_with(move |_| log(format!("told{url}"))),
        }
        log(format!("sent-{}", res.headers_sent()));
        gather(req, res);
    });
    server.on(CHECK_EXPECTATION, |exchange| {
        let expected = exchange.request.headers().get("expect").unwrap_or_default();
        log(format!("expectation {expected}"));
        exchange.response.write_head(417, ());
        exchange.response.end(());
    });
    server.listen_this(FREE, |server| {
        let agent = Agent::builder().keep_alive(true).max_sockets(1).build();
        let list = [
            ("/granted", "100-continue"),
            ("/twice", "100-Continue"),
            ("/refused", "100-continue"),
            ("/kept", "100-continue"),
            ("/tea", "tea"),
        ];
        next_expectation(server.clone(), agent, list.into());
    });
}

fn next_expectation(server: Server, agent: Agent, mut list: Vec<(&'static str, &'static str)>) {
    if list.is_empty() {
        agent.destroy();
        server.close_with(say("closed"));
        return server.close_all_connections();
    }
    let (path, expected) = list.remove(0);
    let options = RequestOptions::new(server.address().unwrap()).agent(&agent);
    let options = options.path(path).method("PUT").header("Expect", expected);
    let req = http::request(options.header("Content-Length", 4));
    log(format!("sent-{}", req.headers_sent()));
    req.on_this(CONTINUE, move |req, ()| {
        log(format!("continue{path}"));
        if !req.ended() {
            req.end("body");
        }
    });
    req.on(INFORMATION, move |i| {
        log(format!("information{path} {}", i.status_code))
    });
    req.on_this(RESPONSE, move |req, res| {
        let connection = res.headers().get("connection").unwrap_or("undefined");
        log(format!(
            "response{path} {} {connection}",
            res.status_code().unwrap()
        ));
        res.on_data(move |d| log(format!("body{path} {}", text(d))));
        let req = req.clone();
        res.on(END, move |()| {
            log(format!("res.end{path}"));
            if !req.ended() {
                req.end("late");
            }
        });
    });
    req.on(ERROR, move |e| log(format!("error{path} {}", code(e))));
    req.once(CLOSE, move |()| {
        log(format!("close{path}"));
        set_timeout(60, move || next_expectation(server, agent, list));
    });
}

fn hear_upgrades(server: &Server) {
    server.on(UPGRADE, |handover| {
        let (req, socket) = (&handover.message, &handover.socket);
        let (url, head) = (req.url().to_owned(), handover.head.len());
        log(format!("upgrade{url} {} {head}", req.headers().get("upgrade").unwrap()));
        socket.on(ERROR, |e| log(format!("socket.error {}", code(e))));
        let of = url.clone();
        socket.on(CLOSE, move |()| log(format!("socket.close{of}")));
        match &*url {
            "/destroyed" => socket.destroy(None),
            "/answered" => socket.end(
                "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno",
            ),
            _ => _ = socket.write(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nfirst",
            ),
        }
    });
}

async fn upgrade_refused() {
    let server = http::create_server(|req, res| {
        log(format!("request{} upgrade-{}", req.url(), req.upgrade()));
        let headers = [("Upgrade", "other"), ("Connection", "Upgrade")];
        res.write_head(426, headers);
        res.end("no");
    });
    server.on(CONNECT, |handover| {
        log(format!("connect {}", handover.message.url()));
        handover
            .socket
            .end("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 5\r\n\r\nwho??");
    });
    server.listen_this(FREE, |server| {
        let paths = [
            "/unheard",
            "/destroyed",
            "/answered",
            "/deaf",
            "/heard",
            "proxy:1",
        ];
        next_upgrade(server.clone(), paths.into());
    });
}

fn next_upgrade(server: Server, mut paths: Vec<&'static str>) {
    if paths.is_empty() {
        return server.close_with(say("closed"));
    }
    let path = paths.remove(0);
    let options = alone(server.address().unwrap()).path(path);
    let options = match path {
        "proxy:1" => options.method("CONNECT"),
        _ => options
            .header("Connection", "Upgrade")
            .header("Upgrade", "x"),
    };
    let req = http::request(options);
    req.on(RESPONSE, move |res| {
        let connection = res.headers().get("connection").unwrap_or_default();
        let (status, upgrade) = (res.status_code().unwrap(), res.upgrade());
        log(format!(
            "response{path} {status} {connection} upgrade-{upgrade}"
        ));
        res.on_data(move |d| log(format!("data{path} {}", text(d))));
        res.on(END, move |()| log(format!("end{path}")));
    });
    if path == "/heard" {
        req.on(UPGRADE, |handover| {
            let status = handover.message.status_code().unwrap();
            log(format!(
                "client.upgrade {status} {}",
                latin1(&handover.head)
            ));
            handover.socket.end(());
        });
    }
    req.on(CONNECT, |handover| {
        let status = handover.message.status_code().unwrap();
        log(format!(
            "client.connect {status} {}",
            latin1(&handover.head)
        ));
        handover.socket.destroy(None);
    });
    req.on(ERROR, move |e| log(format!("error{path} {}", code(e))));
    req.once(CLOSE, move |()| {
        log(format!("close{path}"));
        set_timeout(60, move || {
            if path == "/unheard" {
                hear_upgrades(&server);
            }
            next_upgrade(server, paths);
        });
    });
    req.end(());
}

async fn close_mixed() {
    let busy = Rc::<RefCell<Option<ServerResponse>>>::default();
    let upgraded = Rc::<RefCell<Option<Socket>>>::default();
    let (hold, keep) = (busy.clone(), upgraded.clone());
    let server = http::create_server(move |req, res| {
        log(format!("request{}", req.url()));
        match req.url() {
            "/busy" => _ = hold.replace(Some(res.clone())),
            _ => res.end("x"),
        }
    });
    server.on(UPGRADE, move |handover| {
        handover.socket.on(ERROR, |_| ());
        handover
            .socket
            .write("HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n");
        keep.replace(Some(handover.socket.clone()));
    });
    server.on(CLOSE, says("server.close"));
    server.listen_this(FREE, move |server| {
        let port = server.address().unwrap().port();
        let peer = |name: &'static str, bytes: &str| {
            raw(port, bytes, move |t| {
                let (first, count) = (t.split("\r\n").next().unwrap(), t.matches("HTTP").count());
                log(format!("{name}.closed {first} {count}"));
            })
        };
        peer("idle", &get("/idle"));
        let half = peer("half", "GET /half HTTP/1.1\r\n");
        let fresh = peer("fresh", "");
        let held = peer("busy", &get("/busy"));
        let up = peer(
            "up",
            "GET /up HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
        );
        let count = |server: &Server| {
            server.get_connections(|n| log(format!("connections-{}", n.unwrap())));
        };
        let of = server.clone();
        set_timeout(300 * SLOWNESS, move || {
            count(&of);
            log("closing");
            of.close_with(say("callback-none"));
            log(format!("listening-{}", of.is_listening()));
            of.close_with(say("again-ERR_SERVER_NOT_RUNNING"));
        });
        set_timeout(500 * SLOWNESS, move || {
            log("-- half");
            half.write("Host: h\r\n\r\n");
        });
        let of = server.clone();
        set_timeout(700 * SLOWNESS, move || {
            log("-- idle");
            of.close_idle_connections();
        });
        set_timeout(800 * SLOWNESS, move || {
            log("-- fresh");
            fresh.end(());
        });
        let of = server.clone();
        set_timeout(900 * SLOWNESS, move || {
            log("-- busy");
            busy.take().unwrap().end("y");
            held.once(MORE, move |_| {
                set_timeout(200 * SLOWNESS, move || {
                    log("-- all");
                    of.close_all_connections();
                });
            });
        });
        let of = server.clone();
        set_timeout(1400 * SLOWNESS, move || {
            count(&of);
            log("-- up");
            up.end("bye");
            upgraded.take().unwrap().end(());
        });
    });
}

async fn slow_requests() {
    let server = Server::builder()
        .headers_timeout(150)
        .request_timeout(300)
        .connections_checking_interval(50)
        .keep_alive_timeout(5000)
        .build()
        .expect("the timeouts are in order");
    server.on_request(|req, res| {
        res.send_date(false);
        let url: Rc<str> = req.url().into();
        log(format!("request{url}"));
        let of = url.clone();
        req.on(ERROR, move |e| log(format!("error{of} {}", code(e))));
        let of = url.clone();
        req.on(CLOSE, move |()| log(format!("close{of}")));
        let of = url.clone();
        res.on_this(CLOSE, move |res, ()| {
            log(format!("res.close{of} {}", res.finished()))
        });
        req.resume();
        match &*url {
            "/begun" => _ = res.write("begun"),
            "/answered" | "/first" => res.end("done"),
            _ => {}
        }
    });
    let post =
        |path: &str| format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nab");
    let list = vec![
        String::new(),
        "GET / HT".to_owned(),
        post("/body"),
        post("/begun"),
        post("/answered"),
        get("/first"),
        "GET /heard".to_owned(),
    ];
    server.listen_this(FREE, move |server| next_slow(server.clone(), list));
}

fn next_slow(server: Server, mut list: Vec<String>) {
    if list.is_empty() {
        return server.close_with(say("closed"));
    }
    let bytes = list.remove(0);
    if bytes == "GET /heard" {
        server.on(CLIENT_ERROR, |failed| {
            let (code, writable) = (code(&failed.error), failed.socket.writable().is_writable());
            log(format!("clientError {code} {writable}"));
            failed.socket.end("HTTP/1.1 400 Mine\r\n\r\n");
        });
    }
    let port = server.address().unwrap().port();
    let is_first = bytes == get("/first");
    let c = raw(port, &bytes, move |t| {
        log(show(t));
        next_slow(server, list);
    });
    if is_first {
        set_timeout(500, move || _ = c.write("GET /sec"));
    }
}
