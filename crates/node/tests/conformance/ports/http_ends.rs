//! 339–349: upgrades, and the many ways in which connections, requests and answers end.

use std::cell::RefCell;
use std::rc::Rc;

use phaseloop_node::events::ERROR;
use phaseloop_node::http::{
    self, ABORTED, CONNECT, IncomingMessage, Server, ServerResponse, UPGRADE,
};
use phaseloop_node::net::Socket;
use phaseloop_node::stream::{CLOSE, END, FINISH};
use phaseloop_node::{Emitter, Error, next_tick, process, set_immediate, set_timeout, throw};

use crate::http_peers::{FREE, MORE, latin1, raw, show};
use crate::support::{log, say, says};

super::ports! {
    Real "339-http-upgrade" => upgrade,
    Real "340-http-upgrade-unheard" => upgrade_unheard,
    Real "341-http-connect-method" => connect_method,
    Real "342-http-server-close" => server_close,
    Real "343-http-close-all" => close_all,
    Real "344-http-close-idle" => close_idle,
    Real "345-http-peer-gone" => peer_gone,
    Real "346-http-destroy-request" => destroy_request,
    Real "347-http-destroy-response" => destroy_response,
    Real "348-http-unread-body" => unread_body,
    Real "349-http-handler-throws" => handler_throws,
}

/// Listens on a free port, then calls `go` with the server and the port.
fn listen(server: &Server, go: impl FnOnce(&Server, u16) + 'static) {
    server.listen_this(FREE, move |server| {
        go(server, server.address().unwrap().port());
    });
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")
}

fn get_last(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
}

async fn upgrade() {
    let server = http::create_server(|_, res| {
        log("request");
        res.end(());
    });
    server.on(UPGRADE, |handover| {
        let (req, socket) = (&handover.message, &handover.socket);
        let protocol = req.headers().get("upgrade").unwrap();
        let head = show(&latin1(&handover.head));
        log(format!(
            "upgrade {} {} {protocol} head-{head} upgrade-{}",
            req.method(),
            req.url(),
            req.upgrade()
        ));
        next_tick(say("tick"));
        socket.write(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n",
        );
        socket.on_data_this(|socket, d| {
            log(format!("data-{}", latin1(d)));
            socket.end("bye");
        });
        socket.on_this(CLOSE, |socket, ()| {
            log(format!("socket.close-{}", socket.had_error()))
        });
    });
    listen(&server, |server, port| {
        let server = server.clone();
        let first =
            "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\nfirst";
        let c = raw(port, first, move |text| {
            log(show(text));
            let second = "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: raw\r\nConnection: close\r\n\r\n";
            raw(port, second, move |t| {
                log(&t[9..12]);
                server.close();
            });
        });
        c.once_this(MORE, |c, _| _ = c.write("second"));
    });
}

async fn upgrade_unheard() {
    let server = http::create_server(|req, res| {
        res.send_date(false);
        log(format!("request {} upgrade-{}", req.url(), req.upgrade()));
        res.end(req.url());
    });
    listen(&server, |server, port| {
        let server = server.clone();
        let first = "GET /a HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n";
        let c = raw(port, first, move |text| {
            log(show(text));
            server.close();
        });
        c.once_this(MORE, |c, _| _ = c.write(get_last("/b")));
    });
}

async fn connect_method() {
    const BYTES: &str = "CONNECT example:443 HTTP/1.1\r\nHost: example\r\n\r\nhello";
    let server = http::create_server(|_, _| log("never"));
    listen(&server, |server, port| {
        let server = server.clone();
        raw(port, BYTES, move |text| {
            log(format!("dropped {}", show(text)));
            server.on(CONNECT, |handover| {
                let (req, head) = (&handover.message, latin1(&handover.head));
                log(format!(
                    "connect {} {} {}",
                    req.method(),
                    req.url(),
                    show(&head)
                ));
                let established = "HTTP/1.1 200 Connection Established\r\n\r\n";
                let answer = format!("{established}{}", head.to_uppercase());
                handover.socket.end(answer);
            });
            raw(port, BYTES, move |t| {
                log(show(t));
                server.close();
            });
        });
    });
}

async fn server_close() {
    let held = Rc::<RefCell<Option<ServerResponse>>>::default();
    let busy_here = Rc::<RefCell<Option<Box<dyn FnOnce()>>>>::default();
    let (hold, call) = (held.clone(), busy_here.clone());
    let server = Server::builder().keep_alive_timeout(100).build();
    let server = server.expect("the timeouts are in order");
    server.on(http::REQUEST, move |exchange| {
        let (req, res) = (&exchange.request, &exchange.response);
        log(format!("request{}", req.url()));
        if req.url() == "/busy" {
            hold.replace(Some(res.clone()));
            let here = call.take().unwrap();
            here();
        } else {
            res.end("x");
        }
    });
    server.on(CLOSE, says("server.close"));
    listen(&server, move |server, port| {
        let idle = raw(port, &get("/idle"), move |_| {
            log("idle.closed");
            log("answer");
            held.take().unwrap().end("y");
        });
        let server = server.clone();
        idle.once(MORE, move |_| {
            let busy = raw(port, &get("/busy"), |t| {
                log(format!("busy.closed {}", t.split("keep-alive").count()));
            });
            let close = move || {
                server.close_with(say("callback-none"));
                log(format!("listening-{}", server.is_listening()));
                busy.once_this(MORE, |busy, _| {
                    let busy = busy.clone();
                    set_timeout(100, move || _ = busy.write(get("/again")));
                });
            };
            busy_here.replace(Some(Box::new(move || drop(set_timeout(100, close)))));
        });
    });
}

async fn close_all() {
    let server = Server::new();
    server.on_this(http::REQUEST, |server, exchange| {
        let (req, res) = (&exchange.request, &exchange.response);
        log("request");
        req.on(ABORTED, says("aborted"));
        req.on(ERROR, |e| log(format!("error-{}", e.code().unwrap())));
        req.on(END, says("end"));
        req.on(CLOSE, says("req.close"));
        res.on(FINISH, says("finish"));
        res.on(CLOSE, says("res.close"));
        let (server, req) = (server.clone(), req.clone());
        set_timeout(50, move || {
            server.close_with(say("server.close"));
            next_tick(say("tick"));
            set_immediate(say("immediate"));
            server.close_all_connections();
            log(format!("called destroyed-{}", req.socket().destroyed()));
        });
    });
    listen(&server, |_, port| {
        raw(port, &get("/"), |t| log(format!("peer-{}", t.len())));
    });
}

async fn close_idle() {
    let held = Rc::<RefCell<Option<ServerResponse>>>::default();
    let hold = held.clone();
    let server = http::create_server(move |req, res| {
        if req.url() == "/busy" {
            hold.replace(Some(res.clone()));
        } else {
            res.end("x");
        }
    });
    listen(&server, move |server, port| {
        let test = Rc::new(CloseIdle {
            server: server.clone(),
            port,
            held,
            half: RefCell::default(),
            closed: RefCell::default(),
        });
        test.peer("idle", &get("/idle"));
        test.peer("busy", &get("/busy"));
        let half = test.peer("half", "GET /ha");
        test.half.replace(Some(half));
        test.peer("fresh", "");
        set_timeout(800, move || {
            test.state("before");
            test.server.close_idle_connections();
        });
    });
}

struct CloseIdle {
    server: Server,
    port: u16,
    held: Rc<RefCell<Option<ServerResponse>>>,
    half: RefCell<Option<Socket>>,
    closed: RefCell<Vec<String>>,
}

impl CloseIdle {
    fn state(&self, what: &str) {
        let mut closed = self.closed.borrow_mut();
        closed.sort();
        let listening = self.server.is_listening();
        log(format!(
            "{what} listening-{listening} closed-{}",
            closed.join(",")
        ));
    }

    fn peer(self: &Rc<Self>, name: &'static str, bytes: &str) -> Socket {
        let test = self.clone();
        raw(self.port, bytes, move |t| {
            let closed = format!("{name}-{}", !t.is_empty());
            test.closed.borrow_mut().push(closed);
            match name {
                "idle" => test.idle_closed(),
                "half" => test.half_closed(),
                _ => {}
            }
            if test.closed.borrow().len() == 4 {
                test.state("end");
            }
        })
    }

    fn idle_closed(self: &Rc<Self>) {
        self.state("after");
        let half = self.half.take().unwrap();
        half.write("lf HTTP/1.1\r\nHost: h\r\n\r\n");
        let test = self.clone();
        half.once(MORE, move |_| {
            set_timeout(200, move || {
                test.state("answered");
                test.server.close_idle_connections();
            });
        });
    }

    fn half_closed(&self) {
        self.state("again");
        self.held.take().unwrap().end("y");
        self.server.close_with(say("server.close"));
        self.server.close_all_connections();
    }
}

async fn peer_gone() {
    let c = Rc::<RefCell<Option<Socket>>>::default();
    let gone = c.clone();
    let server = http::create_server(move |req, res| {
        log(format!("request{}", req.url()));
        if req.url() == "/gone" {
            let gone = gone.clone();
            set_timeout(50, move || gone.take().unwrap().destroy(None));
        }
        req.resume();
        req.on(END, says("req.end"));
        req.on(ABORTED, says("aborted"));
        req.on(ERROR, |e| log(format!("req.error-{}", e.code().unwrap())));
        req.on(CLOSE, says("req.close"));
        res.on(ERROR, |e| log(format!("res.error-{}", e.code().unwrap())));
        res.on(FINISH, says("finish"));
        let res = res.clone();
        res.clone().on(CLOSE, move |()| {
            let (ended, finished, destroyed) = (res.ended(), res.finished(), res.destroyed());
            log(format!(
                "res.close ended-{ended} finished-{finished} destroyed-{destroyed}"
            ));
            let code = |result: Result<(), Error>| {
                result
                    .err()
                    .and_then(|e| e.code().map(str::to_owned))
                    .unwrap_or_default()
            };
            let written = res.write_with("x", move |e| log(format!("callback-{}", code(e))));
            log(format!("write-{written}"));
            res.end_with("y", move |e| log(format!("end.callback-{}", code(e))));
            next_tick(say("tick"));
        });
    });
    listen(&server, move |server, port| {
        let server = server.clone();
        let first = raw(port, &get("/gone"), move |_| {
            log("peer.closed");
            let half = raw(port, &get("/half"), move |t| {
                log(format!("peer.closed-{}", t.len()));
                server.close();
            });
            half.end(());
        });
        c.replace(Some(first));
    });
}

fn post(path: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab")
}

async fn destroy_request() {
    let server = http::create_server(|req, res| {
        req.on(ABORTED, says("aborted"));
        req.on(ERROR, |e| log(format!("req.error-{}", e.message())));
        req.on(CLOSE, says("req.close"));
        res.on(CLOSE, says("res.close"));
        let socket = req.socket();
        socket.on_this(CLOSE, |socket, ()| {
            log(format!("socket.close-{}", socket.had_error()))
        });
        next_tick(say("tick"));
        set_immediate(say("immediate"));
        let error = (req.url() != "/plain").then(|| Error::new("mine"));
        req.destroy(error);
        log(format!(
            "called aborted-{} socket-{}",
            req.aborted(),
            req.socket().destroyed()
        ));
    });
    listen(&server, |server, port| {
        let server = server.clone();
        raw(port, &post("/plain"), move |t| {
            log(format!("peer-{}", t.len()));
            raw(port, &post("/error"), move |u| {
                log(format!("peer-{}", u.len()));
                server.close();
            });
        });
    });
}

async fn destroy_response() {
    let server = http::create_server(|req, res| {
        res.send_date(false);
        req.on(ABORTED, says("aborted"));
        req.on(ERROR, |e| log(format!("req.error-{}", e.code().unwrap())));
        req.on(CLOSE, says("req.close"));
        res.on(ERROR, |e| log(format!("res.error-{}", e.message())));
        res.on(FINISH, says("finish"));
        res.on(CLOSE, says("res.close"));
        res.write("begun");
        let (req, res) = (req.clone(), res.clone());
        set_timeout(60, move || {
            next_tick(say("tick"));
            set_immediate(say("immediate"));
            res.destroy((req.url() == "/error").then(|| Error::new("mine")));
            let errored = res.writable().errored();
            let errored = errored.map_or("undefined".to_owned(), |e| e.message().to_owned());
            log(format!(
                "called destroyed-{} errored-{errored}",
                res.destroyed()
            ));
        });
    });
    listen(&server, |server, port| {
        let server = server.clone();
        raw(port, &get("/plain"), move |t| {
            log(show(t));
            raw(port, &get("/error"), move |u| {
                log(show(u));
                server.close();
            });
        });
    });
}

async fn unread_body() {
    let server = http::create_server(|req, res| {
        res.send_date(false);
        let url = req.url().to_owned();
        log(format!("request{url}"));
        let path = url.clone();
        req.on(END, move |()| log(format!("end{path}")));
        let path = url.clone();
        req.on_this(CLOSE, move |req, ()| {
            log(format!("req.close{path} complete-{}", req.complete()));
        });
        let path = url.clone();
        res.on(FINISH, move |()| log(format!("finish{path}")));
        res.end(url);
    });
    listen(&server, |server, port| {
        let server = server.clone();
        let first = "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc";
        let c = raw(port, first, move |text| {
            log(show(text));
            server.close();
        });
        c.once_this(MORE, |c, _| {
            let c = c.clone();
            set_timeout(50, move || {
                log("rest");
                c.write(format!("def{}", get_last("/2")));
            });
        });
    });
}

async fn handler_throws() {
    process::on_uncaught_exception(|e, _| log(format!("uncaught-{e}")));
    let server = http::create_server(|req: &IncomingMessage, res: &ServerResponse| {
        let url = req.url().to_owned();
        log(format!("request{url}"));
        let path = url.clone();
        next_tick(move || log(format!("tick{path}")));
        if url == "/1" {
            throw(Error::new("one"));
        }
        res.end("x");
    });
    listen(&server, |server, port| {
        let c = raw(port, &get("/1"), |t| log(format!("first-{}", t.len())));
        let server = server.clone();
        set_timeout(400, move || {
            raw(port, &get_last("/2"), move |t| {
                log(format!("second-{}", !t.is_empty()));
                c.destroy(None);
                server.close();
            });
        });
    });
}
