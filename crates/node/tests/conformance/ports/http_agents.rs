//! 482–484: agents with limits of sockets, of free sockets, of all sockets and of time.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use phaseloop_node::events::ERROR;
use phaseloop_node::http::{self, Agent, ClientRequest, RequestOptions, SOCKET};
use phaseloop_node::net::{CONNECTION, Socket, TIMEOUT};
use phaseloop_node::stream::{CLOSE, END};
use phaseloop_node::{Emitter, set_timeout};

use crate::http_peers::FREE;
use crate::support::{log, say, says};

super::ports! {
    Virtual "482-http-agent-limits" => limits,
    Virtual "483-http-agent-timeouts" => timeouts,
    Virtual "484-http-agent-total" => total,
}

fn state(agent: &Agent, what: impl AsRef<str>) {
    let (sockets, free, waiting) = (agent.sockets(), agent.free_sockets(), agent.requests());
    let what = what.as_ref();
    log(format!(
        "{what} sockets-{sockets} free-{free} waiting-{waiting}"
    ));
}

/// The numbers of the sockets of a server, in the order of their first requests.
#[derive(Clone, Default)]
struct Tags {
    known: Rc<RefCell<Vec<SocketAddr>>>,
}

impl Tags {
    fn of(&self, peer: SocketAddr) -> usize {
        let mut known = self.known.borrow_mut();
        let at = known.iter().position(|&other| other == peer);
        at.unwrap_or_else(|| {
            known.push(peer);
            known.len() - 1
        }) + 1
    }
}

fn peer_of(socket: &Socket) -> SocketAddr {
    socket.remote_address().expect("the socket is open")
}

fn ask(
    agent: &Agent,
    address: SocketAddr,
    path: &'static str,
    then: impl FnOnce() + 'static,
) -> ClientRequest {
    let options = RequestOptions::new(address).agent(agent).path(path);
    let req = http::get(options);
    let (asked, agent) = (req.clone(), agent.clone());
    req.on_response(move |res| {
        res.resume();
        res.on(END, move |()| {
            state(
                &agent,
                format!("end{path} reused-{}", asked.reused_socket()),
            );
        });
    });
    req.once(CLOSE, move |()| {
        log(format!("close{path}"));
        then();
    });
    req
}

async fn limits() {
    let tags = Tags::default();
    let of_request = tags.clone();
    let server = http::create_server(move |req, res| {
        let (url, tag) = (req.url().to_owned(), of_request.of(peer_of(req.socket())));
        log(format!("server{url} on-{tag}"));
        let delay: u32 = url.split('-').nth(1).unwrap().parse().unwrap();
        let res = res.clone();
        set_timeout(delay, move || res.end(url));
    });
    server.on(CONNECTION, move |s| {
        let (tags, peer) = (tags.clone(), peer_of(s));
        s.on(CLOSE, move |()| {
            log(format!("server.closed-{}", tags.of(peer)))
        });
    });
    server.listen_this(FREE, |server| {
        let (address, server) = (server.address().unwrap(), server.clone());
        let agent = Agent::builder()
            .keep_alive(true)
            .max_sockets(3)
            .max_free_sockets(1)
            .build();
        for path in ["/a-100", "/b-200", "/c-300", "/d-50"] {
            ask(&agent, address, path, || ());
        }
        state(&agent, "asked");
        ask(&agent, address, "/e-400", || ()).on(SOCKET, says("socket/e"));
        set_timeout(900, move || {
            state(&agent, "later");
            let last = agent.clone();
            ask(&agent, address, "/f-0", move || {
                set_timeout(50, move || {
                    state(&last, "last");
                    last.destroy();
                    state(&last, "destroyed");
                    server.close();
                });
            });
            state(&agent, "again");
        });
    });
}

type Step = Box<dyn FnOnce(Steps)>;

/// What is left to do.
#[derive(Clone, Default)]
struct Steps {
    rest: Rc<RefCell<VecDeque<Step>>>,
}

impl Steps {
    fn add(&self, step: impl FnOnce(Self) + 'static) {
        self.rest.borrow_mut().push_back(Box::new(step));
    }

    fn next(self) {
        let step = self.rest.borrow_mut().pop_front();
        step.expect("the last step does not go on")(self);
    }
}

fn timed(
    address: SocketAddr,
    agent: Agent,
    path: &'static str,
    then: impl FnOnce() + 'static,
) -> ClientRequest {
    let options = RequestOptions::new(address).agent(&agent).path(path);
    let req = http::get(options);
    let asked = req.clone();
    req.on_response(move |res| {
        log(format!("response{path} reused-{}", asked.reused_socket()));
        res.resume();
    });
    req.on(TIMEOUT, move |()| log(format!("timeout{path}")));
    req.on(ERROR, move |e| {
        log(format!("error{path} {}", e.code().unwrap()))
    });
    req.once(CLOSE, move |()| {
        set_timeout(50, move || {
            log(format!("free-{}", agent.free_sockets()));
            then();
        });
    });
    req
}

fn kept() -> Agent {
    Agent::builder().keep_alive(true).build()
}

async fn timeouts() {
    let server = http::create_server(|req, res| {
        let hint = match req.url() {
            "/one" => "timeout=1",
            "/two" => "timeout=2",
            "/zero" => "timeout=0",
            "/max" => "max=5",
            "/words" => "timeout=x",
            _ => "",
        };
        if !hint.is_empty() {
            res.set_header("Keep-Alive", hint);
        }
        let res = res.clone();
        match req.url() {
            "/slow" => drop(set_timeout(400, move || res.end("x"))),
            _ => res.end("x"),
        }
    });
    server.listen_this(FREE, |server| {
        let (address, server) = (server.address().unwrap(), server.clone());
        let agent = Agent::builder().keep_alive(true).timeout(150).build();
        let steps = Steps::default();
        let one = agent.clone();
        steps.add(move |steps| {
            set_timeout(300, move || {
                log(format!("idle free-{}", one.free_sockets()));
                steps.next();
            });
        });
        let one = agent.clone();
        steps.add(move |steps| drop(timed(address, one, "/again", move || steps.next())));
        let one = agent.clone();
        steps.add(move |steps| {
            one.destroy();
            steps.next();
        });
        for path in ["/one", "/two", "/zero", "/max", "/words"] {
            steps.add(move |steps| {
                let one = kept();
                timed(address, one.clone(), path, move || {
                    one.destroy();
                    steps.next();
                });
            });
        }
        steps.add(move |steps| {
            let one = kept();
            timed(address, one.clone(), "/two", move || {
                set_timeout(1200, move || {
                    log(format!("hint free-{}", one.free_sockets()));
                    one.destroy();
                    steps.next();
                });
            });
        });
        steps.add(move |steps| own_timeout(address, steps));
        steps.add(move |_| {
            server.close_with(say("closed"));
            server.close_all_connections();
        });
        timed(address, agent, "/slow", move || steps.next());
    });
}

fn own_timeout(address: SocketAddr, steps: Steps) {
    let options = RequestOptions::new(address).agent(&Agent::none());
    let req = http::get(options.path("/slow"));
    let own = req.clone();
    req.on(TIMEOUT, says("timeout/slow"));
    req.on(ERROR, |e| log(format!("error/slow {}", e.code().unwrap())));
    req.once(CLOSE, move |()| {
        set_timeout(50, move || {
            log("free-none");
            steps.next();
        });
    });
    req.once(TIMEOUT, move |()| {
        log("own");
        own.destroy(None);
    });
    req.set_timeout(100);
}

async fn total() {
    let make = |name: &'static str| {
        http::create_server(move |req, res| {
            log(format!("{name}{}", req.url()));
            let (res, n) = (res.clone(), req.url()[1..].parse::<u32>().unwrap());
            set_timeout(60 * n, move || res.end(name));
        })
    };
    let (one, two) = (make("one"), make("two"));
    one.listen_this(FREE, move |one| {
        let one = one.clone();
        two.listen_this(FREE, move |two| {
            let [a, b] = [&one, two].map(|server| server.address().unwrap());
            let agent = Agent::builder().max_total_sockets(2).build();
            let (left, two) = (Rc::new(Cell::new(6)), two.clone());
            let over = Rc::new(move || {
                left.set(left.get() - 1);
                if left.get() == 0 {
                    one.close_with(say("one.closed"));
                    two.close_with(say("two.closed"));
                }
            });
            for (address, path) in [
                (a, "/1"),
                (a, "/2"),
                (b, "/3"),
                (b, "/4"),
                (a, "/5"),
                (b, "/6"),
            ] {
                let options = RequestOptions::new(address).agent(&agent).path(path);
                let req = http::get(options);
                let of_end = agent.clone();
                req.on_response(move |res| {
                    res.resume();
                    res.on(END, move |()| {
                        let (sockets, waiting) = (of_end.sockets(), of_end.requests());
                        log(format!("end{path} sockets-{sockets} waiting-{waiting}"));
                    });
                });
                let over = over.clone();
                req.on(CLOSE, move |()| over());
            }
            log(format!("waiting-{}", agent.requests()));
        });
    });
}
