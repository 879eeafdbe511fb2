//! 350–368: requests, responses and agents.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use phaseloop_node::events::ERROR;
use phaseloop_node::http::{
    self, ABORTED, Agent, CHECK_CONTINUE, CONTINUE, ClientRequest, FREE, INFORMATION, RESPONSE,
    RequestOptions, SOCKET, Scheduling, UPGRADE,
};
use phaseloop_node::net::{self, CONNECT, CONNECTION, Socket, TIMEOUT};
use phaseloop_node::stream::{CLOSE, END, FINISH, Readable};
use phaseloop_node::{
    AbortController, AbortSignal, Emitter, Error, Promise, next_tick, set_immediate, set_timeout,
};

use crate::http_peers::{FREE as ANY_PORT, latin1, refusing, show};
use crate::support::{log, say, says, text};

super::ports! {
    Virtual "350-http-client-order" => client_order,
    Virtual "351-http-client-order-close" => client_close_order,
    Virtual "352-http-client-body-parts" => client_read_order,
    Virtual "353-http-client-hang-up" => client_hang_up,
    Virtual "354-http-client-cut-response" => client_response_cut,
    Virtual "355-http-client-destroy" => client_destroy,
    Virtual "356-http-client-signal" => client_abort_signal,
    Virtual "357-http-client-timeout" => client_timeout,
    Virtual "358-http-client-refused" => client_refused,
    Virtual "359-http-agent-reuse" => agent_reuse,
    Virtual "360-http-agent-max-sockets" => agent_max_sockets,
    Virtual "361-http-agent-no-keep-alive-queue" => agent_no_keep_alive,
    Virtual "362-http-agent-scheduling" => agent_scheduling,
    Virtual "363-http-agent-free-socket-dies" => agent_stale_socket,
    Virtual "364-http-client-request-bytes" => client_request_bytes,
    Virtual "365-http-client-expect" => client_expect_continue,
    Virtual "366-http-client-upgrade" => client_upgrade,
    Virtual "367-http-client-bad-response" => client_bad_responses,
    Virtual "368-http-client-response-kinds" => client_bodies_and_keep_alive,
}

/// Listens on a free loopback port, then calls `go` with the server and its address.
fn listen(server: &http::Server, go: impl FnOnce(&http::Server, SocketAddr) + 'static) {
    server.listen_this(ANY_PORT, |server| {
        go(server, server.address().expect("the server listens"));
    });
}

/// [`listen`] for a server of raw bytes.
fn listen_net(server: &net::Server, go: impl FnOnce(&net::Server, SocketAddr) + 'static) {
    server.listen_this(ANY_PORT, |server| {
        go(server, server.address().expect("the server listens"));
    });
}

fn promise(token: &'static str) {
    Promise::resolved(()).then(move |()| log(token));
}

/// `e.code || e.message`.
fn code(error: &Error) -> String {
    error.code().unwrap_or(error.message()).to_owned()
}

fn to(address: SocketAddr) -> RequestOptions {
    RequestOptions::new(address)
}

/// `{ port, host, agent: false }`.
fn alone(address: SocketAddr) -> RequestOptions {
    to(address).agent(&Agent::none())
}

async fn client_order() {
    let server = http::create_server(|_, res| res.end("body"));
    listen(&server, |server, address| {
        let agent = Agent::builder().keep_alive(true).build();
        let req = http::request(to(address).agent(&agent));
        req.on(SOCKET, |s| {
            log(format!("socket connecting-{}", s.connecting()));
            s.on(CONNECT, says("connect"));
        });
        req.on(FINISH, says("finish"));
        req.on(RESPONSE, |res| {
            log("response");
            next_tick(say("response.tick"));
            promise("response.promise");
            set_immediate(say("response.immediate"));
            res.on_data_this(|res, d| log(format!("data-{} complete-{}", text(d), res.complete())));
            res.on_this(END, |res, ()| {
                log(format!("end complete-{}", res.complete()));
                next_tick(say("end.tick"));
            });
            res.on(CLOSE, says("res.close"));
        });
        req.on_this(CLOSE, |req, ()| {
            log(format!("req.close destroyed-{}", req.destroyed()))
        });
        let server = server.clone();
        agent.on_this(FREE, move |agent, _| {
            log("free");
            let (agent, server) = (Agent::clone(agent), server.clone());
            set_timeout(50, move || {
                agent.destroy();
                server.close();
            });
        });
        next_tick(say("tick"));
        req.end(());
        log("ended");
    });
}

async fn client_close_order() {
    let server = http::create_server(|_, res| res.end("body"));
    listen(&server, |server, address| {
        let req = http::get(alone(address));
        req.on(SOCKET, |s| _ = s.on(CLOSE, says("socket.close")));
        req.on(RESPONSE, |res| {
            log(format!(
                "response-{}",
                res.headers().get("connection").unwrap_or_default()
            ));
            res.on_data(|d| log(format!("data-{}", text(d))));
            res.on(END, |()| {
                log("end");
                next_tick(say("end.tick"));
                set_immediate(say("end.immediate"));
            });
            res.on(CLOSE, says("res.close"));
        });
        let server = server.clone();
        req.on(CLOSE, move |()| {
            log("req.close");
            server.close();
        });
    });
}

async fn client_read_order() {
    let server = net::create_server(|s| {
        s.once_this(Readable::<Vec<u8>>::DATA, |s, _| {
            s.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n");
            let s = s.clone();
            set_timeout(80, move || s.end("1\r\nc\r\n1\r\nd\r\n0\r\n\r\n"));
        });
        s.resume();
    });
    listen_net(&server, |server, address| {
        let server = server.clone();
        let req = http::get(alone(address));
        req.on_response(move |res| {
            log("response");
            next_tick(say("response.tick"));
            res.on_data_this(|res, d| {
                let d = text(d);
                log(format!("data-{d} complete-{}", res.complete()));
                let (tick, promise) = (format!("tick-{d}"), format!("promise-{d}"));
                next_tick(move || log(tick));
                Promise::resolved(()).then(move |()| log(promise));
            });
            res.on(END, says("end"));
            res.on(CLOSE, move |()| {
                log("res.close");
                server.close();
            });
        });
    });
}

async fn client_hang_up() {
    let server = net::create_server(|s| {
        s.once_this(Readable::<Vec<u8>>::DATA, |s, _| s.end(()));
        s.resume();
        s.on(ERROR, |_| ());
    });
    listen_net(&server, |server, address| {
        let req = http::get(alone(address));
        req.on(RESPONSE, says("never"));
        req.on_this(ERROR, |req, e| {
            let (reused, destroyed) = (req.reused_socket(), req.destroyed());
            log(format!(
                "error {} {} reused-{reused} destroyed-{destroyed}",
                code(e),
                e.message()
            ));
            next_tick(say("error.tick"));
            set_immediate(say("error.immediate"));
        });
        let server = server.clone();
        req.on(CLOSE, move |()| {
            log("close");
            server.close();
        });
    });
}

async fn client_response_cut() {
    let server = net::create_server(|s| {
        s.once_this(Readable::<Vec<u8>>::DATA, |s, _| {
            s.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
            let s = s.clone();
            set_timeout(80, move || s.end(()));
        });
        s.resume();
    });
    listen_net(&server, |server, address| {
        let req = http::get(alone(address));
        req.on_response(|res| {
            res.on_data(|d| log(format!("data-{}", text(d))));
            res.on(ABORTED, says("aborted"));
            res.on(ERROR, |e| {
                log(format!("res.error {} {}", code(e), e.message()))
            });
            res.on(END, says("end"));
            res.on_this(CLOSE, |res, ()| {
                log(format!(
                    "res.close complete-{} aborted-{}",
                    res.complete(),
                    res.aborted()
                ));
            });
        });
        req.on(ERROR, |e| log(format!("req.error-{}", code(e))));
        let server = server.clone();
        req.on(CLOSE, move |()| {
            log("req.close");
            server.close();
        });
    });
}

type Then = Box<dyn FnOnce()>;

fn start(address: SocketAddr, path: &'static str, then: impl FnOnce() + 'static) -> ClientRequest {
    let req = http::get(alone(address).path(path));
    req.on(ERROR, move |e| {
        log(format!("{path} error {} {}", code(e), e.message()))
    });
    req.once(CLOSE, move |()| {
        log(format!("{path} close"));
        set_timeout(50, then);
    });
    req
}

async fn client_destroy() {
    let server = http::create_server(|req, res| {
        res.on(ERROR, |_| ());
        match req.url() {
            "/body" => _ = res.write("part"),
            "/done" => res.end("x"),
            _ => {}
        }
    });
    listen(&server, |server, address| {
        let server = server.clone();
        let done = move || {
            let r = start(address, "/done", || ());
            let late = r.clone();
            r.on_response(move |res| {
                res.resume();
                res.on(END, move |()| {
                    late.destroy(Some(Error::new("late")));
                    let server = server.clone();
                    set_timeout(100, move || {
                        server.close();
                        server.close_all_connections();
                    });
                });
            });
        };
        let body = move || {
            let r = start(address, "/body", done);
            let enough = r.clone();
            r.on_response(move |res| {
                res.on_data(move |d| {
                    log(format!("data-{}", text(d)));
                    enough.destroy(Some(Error::new("enough")));
                });
                res.on(ABORTED, says("aborted"));
                res.on(ERROR, |e| {
                    log(format!("res.error {} {}", code(e), e.message()))
                });
                res.on(CLOSE, says("res.close"));
            });
        };
        let wait = move || {
            let r = start(address, "/wait", body);
            set_timeout(400, move || {
                r.destroy(None);
                next_tick(say("tick"));
                set_immediate(say("immediate"));
            });
        };
        let mine = move || start(address, "/mine", wait).destroy(Some(Error::new("mine")));
        let r = start(address, "/early", mine);
        r.destroy(None);
        r.destroy(None);
        log(format!("early destroyed-{}", r.destroyed()));
    });
}

async fn client_abort_signal() {
    let abort: Rc<RefCell<Option<Then>>> = Rc::default();
    let aborts = abort.clone();
    let server = http::create_server(move |req, _| {
        log(format!("request{}", req.url()));
        if let Some(abort) = aborts.take() {
            set_timeout(50, abort);
        }
    });
    fn start(
        address: SocketAddr,
        path: &'static str,
        signal: &AbortSignal,
        then: impl FnOnce() + 'static,
    ) {
        let req = http::get(alone(address).path(path).signal(signal));
        req.on_this(ERROR, move |req, e| {
            let destroyed = req.destroyed();
            log(format!(
                "{path} {} {} destroyed-{destroyed}",
                e.name(),
                code(e)
            ));
        });
        req.once(CLOSE, move |()| {
            log(format!("{path} close"));
            set_timeout(80, then);
        });
    }
    listen(&server, move |server, address| {
        let server = server.clone();
        let aborted = AbortController::new();
        aborted.abort();
        start(address, "/already", &aborted.signal(), move || {
            let c = AbortController::new();
            start(address, "/later", &c.signal(), move || server.close());
            let then: Then = Box::new(move || {
                next_tick(say("tick"));
                set_immediate(say("immediate"));
                c.abort();
                log("aborted");
            });
            abort.replace(Some(then));
        });
    });
}

async fn client_timeout() {
    let server = http::create_server(|_, res| {
        let res = res.clone();
        set_timeout(300, move || res.end("late"));
    });
    listen(&server, |server, address| {
        let req = http::get(alone(address).timeout(100));
        req.on_response(|res| {
            log("response");
            res.resume();
            res.on(END, says("end"));
        });
        req.on_this(TIMEOUT, |req, ()| {
            log(format!("timeout destroyed-{}", req.destroyed()))
        });
        req.on(ERROR, |e| log(format!("error-{}", code(e))));
        let server = server.clone();
        req.once(CLOSE, move |()| {
            log("close");
            let two = http::get(alone(address));
            two.set_timeout(100);
            two.once_this(TIMEOUT, |two, ()| {
                log("timeout2");
                two.destroy(None);
            });
            two.on(ERROR, |e| log(format!("error2-{}", code(e))));
            two.on(CLOSE, move |()| {
                log("close2");
                server.close();
            });
        });
    });
}

async fn client_refused() {
    let (probe, address) = refusing();
    let agent = Agent::builder().keep_alive(true).build();
    let req = http::request(to(address).agent(&agent).method("POST"));
    req.on(ERROR, move |e| {
        let at = e.address().unwrap();
        let is_port = at.port() == address.port();
        log(format!(
            "error {} {} {} port-{is_port}",
            code(e),
            e.syscall().unwrap(),
            at.ip()
        ));
        next_tick(say("tick"));
        set_immediate(say("immediate"));
    });
    req.on(FINISH, says("finish"));
    req.once(CLOSE, move |()| {
        log("close");
        set_immediate(move || {
            log(format!("sockets-{}", agent.sockets()));
            drop(probe);
        });
    });
    req.end("data");
}

fn counts(agent: &Agent) -> String {
    let (sockets, free, requests) = (agent.sockets(), agent.free_sockets(), agent.requests());
    format!("sockets-{sockets} free-{free} requests-{requests}")
}

async fn agent_reuse() {
    let connections = Rc::new(Cell::new(0));
    let server = http::create_server(|req, res| res.end(req.url()));
    let open = connections.clone();
    server.on(CONNECTION, move |_| open.set(open.get() + 1));
    fn get(address: SocketAddr, agent: &Agent, path: &'static str, then: impl FnOnce() + 'static) {
        let req = http::get(to(address).agent(agent).path(path));
        let (state, request) = (agent.clone(), req.clone());
        req.on_response(move |res| {
            let reused = request.reused_socket();
            log(format!("{path} reused-{reused} {}", counts(&state)));
            res.resume();
            res.on(END, move |()| {
                log(format!("{path} end {}", counts(&state)));
                let state = state.clone();
                next_tick(move || log(format!("{path} tick {}", counts(&state))));
            });
        });
        let state = agent.clone();
        req.once(CLOSE, move |()| {
            log(format!("{path} close {}", counts(&state)));
            then();
        });
        log(format!("{path} asked {}", counts(agent)));
    }
    listen(&server, move |server, address| {
        let agent = Agent::builder().keep_alive(true).build();
        let server = server.clone();
        let first = agent.clone();
        get(address, &first, "/1", move || {
            set_immediate(move || {
                log(format!("immediate {}", counts(&agent)));
                let second = agent.clone();
                get(address, &second, "/2", move || {
                    set_immediate(move || {
                        log(format!(
                            "connections-{} {}",
                            connections.get(),
                            counts(&agent)
                        ));
                        agent.destroy();
                        set_timeout(50, move || {
                            log(counts(&agent));
                            server.close();
                        });
                    });
                });
            });
        });
    });
}

async fn agent_max_sockets() {
    let open = Rc::new(Cell::new(0));
    let server = http::create_server(|req, res| {
        log(format!("server{}", req.url()));
        let (url, res) = (req.url().to_owned(), res.clone());
        set_timeout(30, move || res.end(url));
    });
    let opened = open.clone();
    server.on(CONNECTION, move |_| opened.set(opened.get() + 1));
    listen(&server, move |server, address| {
        let agent = Agent::builder().keep_alive(true).max_sockets(1).build();
        let left = Rc::new(Cell::new(4));
        for path in ["/1", "/2", "/3", "/4"] {
            let req = http::get(to(address).agent(&agent).path(path));
            let (request, agent, server) = (req.clone(), agent.clone(), server.clone());
            let (left, open) = (left.clone(), open.clone());
            req.on_response(move |res| {
                log(format!("response{path} reused-{}", request.reused_socket()));
                res.resume();
                res.on(END, move |()| {
                    left.set(left.get() - 1);
                    if left.get() == 0 {
                        log(format!("connections-{}", open.get()));
                        agent.destroy();
                        server.close();
                    }
                });
            });
            req.on(SOCKET, move |_| log(format!("socket{path}")));
        }
        log(format!("waiting-{}", agent.requests()));
    });
}

async fn agent_no_keep_alive() {
    let open = Rc::new(Cell::new(0));
    let server = http::create_server(|req, res| {
        let connection = req.headers().get("connection").unwrap_or_default();
        log(format!("server{} {connection}", req.url()));
        res.end(req.url());
    });
    let opened = open.clone();
    server.on(CONNECTION, move |s: &Socket| {
        opened.set(opened.get() + 1);
        s.on(CLOSE, says("server.socket.close"));
    });
    listen(&server, move |server, address| {
        let agent = Agent::builder().max_sockets(1).build();
        let left = Rc::new(Cell::new(3));
        for path in ["/1", "/2", "/3"] {
            let req = http::get(to(address).agent(&agent).path(path));
            let (left, open, server) = (left.clone(), open.clone(), server.clone());
            req.on_response(move |res| {
                res.resume();
                res.on(END, move |()| {
                    left.set(left.get() - 1);
                    let (open, server) = (open.clone(), server.clone());
                    if left.get() == 0 {
                        set_timeout(80, move || {
                            log(format!("connections-{}", open.get()));
                            server.close();
                        });
                    }
                });
            });
        }
    });
}

async fn agent_scheduling() {
    fn get(address: SocketAddr, agent: &Agent, path: &str, done: impl FnOnce(String) + 'static) {
        let req = http::get(to(address).agent(agent).path(path));
        req.on_response(move |res| {
            let body = Rc::new(RefCell::new(String::new()));
            let part = body.clone();
            res.on_data(move |d| part.borrow_mut().push_str(&text(d)));
            res.once(END, move |()| done(body.take()));
        });
    }
    fn round(scheduling: Scheduling, name: &'static str, then: impl FnOnce() + 'static) {
        // A response says which request has opened its connection.
        let tags: RefCell<Vec<(SocketAddr, String)>> = RefCell::default();
        let tags = Rc::new(tags);
        let server = http::create_server(move |req, res| {
            let delay = if req.url() == "/second" { 600 } else { 200 };
            let peer = req.socket().remote_address().unwrap();
            let (tags, url, res) = (tags.clone(), req.url().to_owned(), res.clone());
            set_timeout(delay, move || {
                let mut tags = tags.borrow_mut();
                let known = tags.iter().find(|(known, _)| *known == peer).cloned();
                let tag = known.map_or(url.clone(), |(_, tag)| tag);
                tags.push((peer, tag.clone()));
                res.end(tag);
            });
        });
        listen(&server, move |server, address| {
            let agent = Agent::builder()
                .keep_alive(true)
                .scheduling(scheduling)
                .build();
            let left = Rc::new(Cell::new(2));
            let then: Rc<RefCell<Option<Then>>> = Rc::new(RefCell::new(Some(Box::new(then))));
            let both = {
                let (agent, server) = (agent.clone(), server.clone());
                move |_| {
                    left.set(left.get() - 1);
                    if left.get() > 0 {
                        return;
                    }
                    let (agent, server, then) = (agent.clone(), server.clone(), then.clone());
                    set_timeout(50, move || {
                        let third = agent.clone();
                        get(address, &third, "/third", move |t| {
                            log(format!("{name} {t}"));
                            agent.destroy();
                            server.close_with(move || {
                                if let Some(then) = then.take() {
                                    then();
                                }
                            });
                        });
                    });
                }
            };
            get(address, &agent, "/first", both.clone());
            set_timeout(0, move || get(address, &agent, "/second", both));
        });
    }
    round(Scheduling::Lifo, "lifo", || {
        round(Scheduling::Fifo, "fifo", say("done"))
    });
}

async fn agent_stale_socket() {
    let open = Rc::new(Cell::new(0));
    let server = http::create_server(|_, res| res.end("x"));
    let opened = open.clone();
    server.on(CONNECTION, move |_| opened.set(opened.get() + 1));
    fn get(address: SocketAddr, agent: &Agent, then: impl FnOnce() + 'static) {
        let req = http::get(to(address).agent(agent));
        let request = req.clone();
        req.on_response(move |res| {
            log(format!("reused-{}", request.reused_socket()));
            res.resume();
        });
        req.on(ERROR, |e| log(format!("never-{}", code(e))));
        req.once(CLOSE, move |()| then());
    }
    listen(&server, move |server, address| {
        let agent = Agent::builder().keep_alive(true).build();
        let (server, first) = (server.clone(), agent.clone());
        get(address, &first, move || {
            set_timeout(50, move || {
                log(format!("free-{}", agent.free_sockets()));
                server.close_idle_connections();
                set_timeout(80, move || {
                    log(format!("free-{}", agent.free_sockets()));
                    let second = agent.clone();
                    get(address, &second, move || {
                        log(format!("connections-{}", open.get()));
                        agent.destroy();
                        server.close();
                    });
                });
            });
        });
    });
}

type Case = (&'static str, RequestOptions, fn(&ClientRequest));

fn request_cases(at: impl Fn() -> RequestOptions) -> VecDeque<Case> {
    let host = || at().header("Host", "h");
    let end: fn(&ClientRequest) = |r| r.end(());
    let keep = Agent::builder().keep_alive(true).build();
    let headers = at()
        .header("X-B", "b")
        .header("x-a", ["1", "2"])
        .header("Host", "given");
    let length = host().method("POST").header("Content-Length", 4);
    let list = at().raw_headers([("Host", "h"), ("A", "1"), ("A", "2")]);
    VecDeque::from([
        ("get", at().path("/p?q=1"), end),
        ("headers", headers, end),
        ("auth", host().auth("user:pass"), end),
        ("nohost", at().set_host(false), end),
        ("head", host().method("head"), end),
        ("post-end", host().method("POST"), |r: &ClientRequest| {
            r.end("data")
        }),
        ("post-write", host().method("POST"), |r: &ClientRequest| {
            r.write("da");
            r.write("ta");
            r.end(());
        }),
        ("post-length", length, |r: &ClientRequest| {
            r.write("da");
            r.end("ta");
        }),
        ("post-empty", host().method("POST"), end),
        ("get-body", host(), |r: &ClientRequest| {
            r.write("bo");
            r.end("dy");
        }),
        ("get-end-body", host(), |r: &ClientRequest| r.end("body")),
        ("delete", host().method("DELETE"), end),
        ("list", list, end),
        ("keep", host().agent(&keep), end),
        ("trailers", host().method("PUT"), |r: &ClientRequest| {
            r.write("x");
            r.add_trailers([("T", "1")]).unwrap();
            r.end(());
        }),
    ])
}

async fn client_request_bytes() {
    type Heard = Rc<RefCell<Option<Box<dyn FnOnce(Vec<u8>)>>>>;
    let heard: Heard = Rc::default();
    let hears = heard.clone();
    let server = net::create_server(move |s| {
        let got: Rc<RefCell<Vec<u8>>> = Rc::default();
        let all = got.clone();
        s.on_data(move |d| all.borrow_mut().extend_from_slice(d));
        s.once_this(Readable::<Vec<u8>>::DATA, |s, _| {
            let s = s.clone();
            set_timeout(60, move || s.destroy(None));
        });
        s.on(ERROR, |_| ());
        let hears = hears.clone();
        s.on(CLOSE, move |()| {
            if let Some(heard) = hears.take() {
                heard(got.take());
            }
        });
    });
    fn next(cases: VecDeque<Case>, heard: Heard, server: net::Server, port: u16) {
        let mut cases = cases;
        let Some((name, options, write)) = cases.pop_front() else {
            return server.close();
        };
        let req = http::request(options);
        req.on(ERROR, |_| ());
        let again = heard.clone();
        heard.replace(Some(Box::new(move |bytes| {
            let bytes = show(&latin1(&bytes)).replace(&format!(":{port}"), ":PORT");
            log(format!("{name} {bytes}"));
            next(cases, again, server, port);
        })));
        write(&req);
    }
    listen_net(&server, move |server, address| {
        let cases = request_cases(|| alone(address));
        next(cases, heard, server.clone(), address.port());
    });
}

async fn client_expect_continue() {
    let server = http::create_server(|req, res| {
        req.on_data(|d| log(format!("server-{}", text(d))));
        let res = res.clone();
        req.on(END, move |()| res.end("ok"));
    });
    server.on_this(CHECK_CONTINUE, |server, exchange| {
        log("checkContinue");
        exchange.response.write_continue();
        server.emit(http::REQUEST, exchange);
    });
    listen(&server, |server, address| {
        let options = alone(address).method("PUT");
        let options = options
            .header("Expect", "100-continue")
            .header("Content-Length", 4);
        let req = http::request(options);
        log(format!("sent-{}", req.headers_sent()));
        req.on_this(CONTINUE, |req, ()| {
            log("continue");
            next_tick(say("continue.tick"));
            req.end("body");
        });
        req.on(INFORMATION, |i| {
            log(format!("information-{}", i.status_code))
        });
        req.on(FINISH, says("finish"));
        req.on(RESPONSE, |res| {
            log(format!("response-{}", res.status_code().unwrap()));
            res.resume();
        });
        let server = server.clone();
        req.on(CLOSE, move |()| {
            log("close");
            server.close();
        });
    });
}

async fn client_upgrade() {
    let server = http::create_server(|_, _| ());
    server.on(UPGRADE, |upgrade| {
        let s = &upgrade.socket;
        s.write(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\nhello",
        );
        s.on_data_this(|s, d| s.end(d.to_ascii_uppercase()));
        s.on(ERROR, |_| ());
    });
    fn start(address: SocketAddr) -> ClientRequest {
        let options = alone(address)
            .header("Connection", "Upgrade")
            .header("Upgrade", "raw");
        let req = http::get(options);
        req.on(RESPONSE, says("never"));
        req
    }
    listen(&server, |server, address| {
        let req = start(address);
        req.on(CLOSE, says("req.close"));
        let server = server.clone();
        req.on(UPGRADE, move |upgrade| {
            let protocol = upgrade.message.headers().get("upgrade").unwrap_or_default();
            let status = upgrade.message.status_code().unwrap();
            log(format!(
                "upgrade {status} {protocol} head-{}",
                text(&upgrade.head)
            ));
            next_tick(say("tick"));
            upgrade.socket.on_data(|d| log(format!("data-{}", text(d))));
            let server = server.clone();
            upgrade.socket.on(CLOSE, move |()| {
                log("socket.close");
                let two = start(address);
                two.on(ERROR, |e| log(format!("error-{}", code(e))));
                let server = server.clone();
                two.on(CLOSE, move |()| {
                    log("two.close");
                    server.close();
                });
            });
            upgrade.socket.write("abc");
        });
    });
}

async fn client_bad_responses() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(17000));
    let ok = "HTTP/1.1 200 OK\r\n";
    let cases: VecDeque<String> = [
        "NOPE\r\n\r\n".to_owned(),
        "HTTP/1.1 2x0 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 20 OK\r\n\r\n".to_owned(),
        "HTTP/2.0 200 OK\r\n\r\n".to_owned(),
        format!("{ok}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{ok}Content-Length: 1\r\nContent-Length: 1\r\n\r\na"),
        format!("{ok}X : y\r\n\r\n"),
        format!("{ok}Transfer-Encoding: chunked\r\n\r\nxyz\r\n"),
        "HTTP/1.1 200 OK\nContent-Length: 1\n\na".to_owned(),
        "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\na".to_owned(),
        format!("{ok}Content-Length: 1\r\n\r\nab"),
        format!("{ok}Content-Length: 1\r\n\r\na{ok}Content-Length: 1\r\n\r\nb"),
        format!("{ok}\r\nuntil the end"),
        long,
    ]
    .into();
    let answer: Rc<RefCell<String>> = Rc::default();
    let answers = answer.clone();
    let server = net::create_server(move |s| {
        s.on(ERROR, |_| ());
        let answers = answers.clone();
        s.once_this(Readable::<Vec<u8>>::DATA, move |s, _| {
            s.end(answers.borrow().clone());
        });
        s.resume();
    });
    fn next(
        mut cases: VecDeque<String>,
        answer: Rc<RefCell<String>>,
        server: net::Server,
        address: SocketAddr,
    ) {
        let Some(bytes) = cases.pop_front() else {
            return server.close();
        };
        let shown = &bytes.as_bytes()[..bytes.len().min(90)];
        let seen = Rc::new(RefCell::new(format!("{} ->", show(&latin1(shown)))));
        answer.replace(bytes);
        let add = {
            let seen = seen.clone();
            move |more: String| seen.borrow_mut().push_str(&more)
        };
        let req = http::get(alone(address));
        let [status, data, end, error] = [(); 4].map(|()| add.clone());
        req.on_response(move |res| {
            status(format!(" {}", res.status_code().unwrap()));
            res.on_data(move |d| data(format!(" data-{}", text(d))));
            res.on(END, move |()| end(" end".to_owned()));
            res.on(ERROR, move |e| error(format!(" res.error-{}", code(e))));
        });
        req.on(ERROR, move |e| add(format!(" error-{}", code(e))));
        req.once(CLOSE, move |()| {
            set_timeout(30, move || {
                log(seen.take());
                next(cases, answer, server, address);
            });
        });
    }
    listen_net(&server, move |server, address| {
        next(cases, answer, server.clone(), address)
    });
}

async fn client_bodies_and_keep_alive() {
    let ok = "HTTP/1.1 200 OK\r\n";
    let cases: VecDeque<(&str, String)> = [
        ("GET", format!("{ok}Content-Length: 2\r\n\r\nab")),
        (
            "GET",
            format!("{ok}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nT: 1\r\n\r\n"),
        ),
        ("HEAD", format!("{ok}Content-Length: 2\r\n\r\n")),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n".to_owned()),
        (
            "GET",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n".to_owned(),
        ),
        (
            "GET",
            format!("{ok}Content-Length: 2\r\nConnection: close\r\n\r\nab"),
        ),
        (
            "GET",
            "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab".to_owned(),
        ),
        (
            "GET",
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nab".to_owned(),
        ),
        (
            "GET",
            format!("{ok}Keep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\nab"),
        ),
        (
            "GET",
            format!("{ok}Keep-Alive: timeout=9\r\nContent-Length: 2\r\n\r\nab"),
        ),
    ]
    .into();
    let answer: Rc<RefCell<String>> = Rc::default();
    let answers = answer.clone();
    let server = net::create_server(move |s| {
        s.on(ERROR, |_| ());
        let answers = answers.clone();
        s.on_data_this(move |s, _| _ = s.write(answers.borrow().clone()));
    });
    fn next(
        mut cases: VecDeque<(&'static str, String)>,
        answer: Rc<RefCell<String>>,
        (server, agent): (net::Server, Agent),
        address: SocketAddr,
    ) {
        let Some((method, bytes)) = cases.pop_front() else {
            agent.destroy();
            return server.close();
        };
        answer.replace(bytes.clone());
        let seen: Rc<RefCell<String>> = Rc::default();
        let req = http::request(to(address).agent(&agent).method(method));
        let (part, ended, failed) = (seen.clone(), seen.clone(), seen.clone());
        req.on_response(move |res| {
            res.on_data(move |d| part.borrow_mut().push_str(&text(d)));
            res.on_this(END, move |res, ()| {
                let trailers = res.trailers().iter();
                let trailers: Vec<_> = trailers.map(|(n, v)| format!("\"{n}\":\"{v}\"")).collect();
                *ended.borrow_mut() += &format!(" end {{{}}}", trailers.join(","));
            });
        });
        req.on(ERROR, move |e| {
            *failed.borrow_mut() += &format!(" error-{}", code(e))
        });
        req.end(());
        let request = req.clone();
        req.once(CLOSE, move |()| {
            set_timeout(30, move || {
                let (seen, reused, free) =
                    (seen.take(), request.reused_socket(), agent.free_sockets());
                let bytes = show(&bytes);
                log(format!(
                    "{method} {bytes} -> {seen} reused-{reused} free-{free}"
                ));
                next(cases, answer, (server, agent), address);
            });
        });
    }
    listen_net(&server, move |server, address| {
        let agent = Agent::builder().keep_alive(true).build();
        next(cases, answer, (server.clone(), agent), address);
    });
}
