//! 322, 328–332: backpressure and the limits of time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use phaseloop_node::events::ERROR;
use phaseloop_node::http::{ABORTED, IncomingMessage, Server, ServerResponse, server};
use phaseloop_node::net::{self, Socket};
use phaseloop_node::stream::{CLOSE, DRAIN, FINISH};
use phaseloop_node::{Emitter, set_timeout};

use super::http_errors::code;
use super::http_order::{get, listen, serve};
use crate::http_peers::{MORE, latin1, raw, show};
use crate::support::{log, say, says};

super::ports! {
    Real "322-http-backpressure" => backpressure,
    Real "328-http-keep-alive-timeout" => keep_alive_timeout,
    Real "329-http-keep-alive-used-in-time" => keep_alive_used_in_time,
    Real "330-http-headers-timeout" => headers_timeout,
    Real "331-http-request-timeout" => request_timeout,
    Real "332-http-socket-timeout" => socket_timeout,
}

/// Logs the events of a request and its response.
fn log_both(req: &IncomingMessage, res: &ServerResponse) {
    req.on_data(|d| log(format!("data-{}", latin1(d))));
    req.on(CLOSE, says("req.close"));
    res.on(FINISH, says("finish"));
    res.on(CLOSE, says("res.close"));
}

async fn backpressure() {
    const SIZE: usize = 32 << 20;
    let peer = Rc::<RefCell<Option<Socket>>>::default();
    let drained = Rc::new(Cell::new(false));
    let slow = peer.clone();
    let server = serve(move |_, _, res| {
        let drains = drained.clone();
        res.on_this(DRAIN, move |res, ()| {
            drains.set(true);
            log("drain");
            res.end("tail");
        });
        res.on(FINISH, says("finish"));
        let room = res.write_with(vec![b'x'; SIZE], |_| log("written"));
        log(format!("write-{room}"));
        let (drained, slow) = (drained.clone(), slow.clone());
        set_timeout(200, move || {
            log(format!("drained-{}", drained.get()));
            slow.borrow().as_ref().unwrap().resume();
        });
    });
    listen(&server, move |server, port| {
        let server = server.clone();
        let c = net::connect(("127.0.0.1", port));
        peer.replace(Some(c.clone()));
        c.write("GET / HTTP/1.0\r\n\r\n");
        let total = Rc::new(Cell::new(0));
        let all = total.clone();
        c.on_this(net::CONNECT, |c, ()| c.readable().pause());
        c.on_data(move |d| total.set(total.get() + d.len()));
        c.on(CLOSE, move |()| {
            log(format!("all-{}", all.get() > SIZE));
            server.close();
        });
    });
}

async fn headers_timeout() {
    let server = Server::builder()
        .headers_timeout(200)
        .request_timeout(0)
        .connections_checking_interval(50)
        .build()
        .unwrap();
    server.on_request(|_, _| log("never"));
    listen(&server, |server, port| {
        let server = server.clone();
        raw(port, "GET / HTTP/1.1\r\nHost: h\r\n", move |text| {
            log(format!("partial {}", show(text)));
            raw(port, "", move |text| {
                log(format!("silent {}", show(text)));
                server.close();
            });
        });
        set_timeout(100, say("100"));
    });
}

async fn keep_alive_timeout() {
    let server = Server::builder().keep_alive_timeout(200).build().unwrap();
    server.on_request(|_, res| {
        log("request");
        res.end("x");
    });
    listen(&server, |server, port| {
        let server = server.clone();
        let silent = raw(port, "", |_| log("silent-closed"));
        let c = raw(port, &get("/", ""), |_| log("closed"));
        c.once(MORE, move |_| {
            set_timeout(700, say("700"));
            set_timeout(2000, move || {
                log("2000");
                silent.end(());
                server.close();
            });
        });
    });
}

async fn keep_alive_used_in_time() {
    let server = Server::builder().keep_alive_timeout(100).build().unwrap();
    server.on_request(|req, res| {
        log(format!("request{}", req.url()));
        let delay = if req.url() == "/slow" { 1600 } else { 0 };
        let res = res.clone();
        set_timeout(delay, move || res.end("x"));
    });
    listen(&server, |server, port| {
        let server = server.clone();
        let c = raw(port, &get("/1", ""), move |_| {
            log("closed");
            server.close();
        });
        c.once_this(MORE, |c, _| {
            let c = c.clone();
            set_timeout(500, move || {
                c.write(get("/slow", ""));
                c.once(MORE, |_| {
                    log("answered");
                    set_timeout(500, say("idle-500"));
                });
            });
        });
    });
}

async fn request_timeout() {
    let server = Server::builder()
        .headers_timeout(500)
        .request_timeout(800)
        .connections_checking_interval(50)
        .build()
        .unwrap();
    server.on_request(|req, res| {
        log(format!("request{}", req.url()));
        req.on(ABORTED, says("aborted"));
        req.on(ERROR, |e| log(format!("error-{}-{}", code(e), e.message())));
        log_both(req, res);
        if req.url() == "/sent" {
            res.send_date(false);
            res.write("begun");
        }
    });
    let post = |path| format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nab");
    listen(&server, move |server, port| {
        let server = server.clone();
        raw(port, &post("/open"), move |text| {
            log(format!("got {}", show(text)));
            raw(port, &post("/sent"), move |text| {
                log(format!("got {}", show(text)));
                server.close();
            });
        });
    });
}

async fn socket_timeout() {
    let server = serve(|_, req, res| {
        let url = req.url().to_owned();
        log(format!("request{url}"));
        if url == "/res" {
            res.on_this(server::TIMEOUT, |res, socket| {
                let own = res.socket().expect("the response has a socket");
                log(format!(
                    "res.timeout-{}",
                    own.readable().id() == socket.readable().id()
                ));
                res.end("late");
            });
        }
        res.on(CLOSE, move |()| log(format!("res.close{url}")));
    });
    server.set_timeout(400);
    let ask = |path| get(path, "Connection: close\r\n");
    listen(&server, move |server, port| {
        let server = server.clone();
        raw(port, &ask("/none"), move |text| {
            log(format!("none-{}", text.len()));
            raw(port, &ask("/res"), move |text| {
                log(format!("res-{}", text.ends_with("late")));
                server.once(server::TIMEOUT, |socket| {
                    log("server.timeout");
                    socket.end("bye");
                });
                raw(port, &ask("/server"), move |text| {
                    log(format!("server-{text}"));
                    server.close();
                });
            });
        });
    });
}
