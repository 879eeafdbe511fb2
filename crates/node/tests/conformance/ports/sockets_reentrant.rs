//! 706–712: sockets that connect and are destroyed at odd moments.

use std::cell::Cell;
use std::rc::Rc;

use phaseloop_node::events::ERROR;
use phaseloop_node::net::{self, CONNECT, CONNECTION, READY, Server, Socket, TIMEOUT};
use phaseloop_node::stream::{CLOSE, END};
use phaseloop_node::{Emitter, Error, next_tick, queue_microtask, set_immediate, set_timeout};

#[cfg(unix)]
use crate::support::socket_path;
use crate::support::{log, say, says, text};

super::ports! {
    Real "706-socket-destroyed-connected-destroyed" => destroyed_connected_destroyed,
    Real "707-socket-connects-before-its-close" => connects_before_its_close,
    Real "708-socket-destroyed-while-connecting" => destroyed_while_connecting,
    #[cfg(target_os = "linux")]
    Real "709-socket-connects-twice" => connects_twice,
    Real "710-socket-ends-and-connects" => ends_and_connects,
    #[cfg(unix)]
    Real "711-socket-connects-after-a-timeout" => connects_after_a_timeout,
    #[cfg(unix)]
    Real "712-accepted-socket-connects" => accepted_socket_connects,
}

/// What is done with a new socket, and the ports of the server and of none.
type Round = fn(&Socket, Ports);

#[derive(Clone, Copy)]
struct Ports {
    open: u16,
    #[cfg_attr(not(unix), allow(dead_code, reason = "a port is for Unix only"))]
    refused: u16,
}

/// A program: its rounds, one after another.
#[derive(Clone, Copy)]
struct Rounds {
    rounds: &'static [Round],
    /// Adds the listeners to a new socket.
    begin: fn(&Socket, Ports, Round),
    /// When a round destroys its socket, and when the next round begins.
    ends: (Option<u32>, u32),
}

impl Rounds {
    fn start(self, server: &Server, ports: Ports) {
        let server = server.clone();
        let Some((&round, rounds)) = self.rounds.split_first() else {
            return server.close_with(say("server-closed"));
        };
        let c = Socket::new();
        (self.begin)(&c, ports, round);
        if let Some(end) = self.ends.0 {
            set_timeout(end, move || {
                log(format!("destroy {}", state(&c)));
                c.destroy(None);
            });
        } else {
            // The socket keeps its listeners until the next round.
            set_timeout(self.ends.1 - 1, move || drop(c));
        }
        let next = Self { rounds, ..self };
        set_timeout(self.ends.1, move || next.start(&server, ports));
    }

    fn listen(self, server: &Server, refused: u16) {
        server.listen_this(("127.0.0.1", 0), move |server| {
            let open = server.address().unwrap().port();
            self.start(server, Ports { open, refused });
        });
    }
}

fn silent_server() -> Server {
    net::create_server(|s| {
        s.resume();
        s.on(ERROR, |_| ());
    })
}

fn connect(c: &Socket, ports: Ports) {
    c.connect(("127.0.0.1", ports.open));
}

fn state(c: &Socket) -> String {
    format!("connecting-{} destroyed-{}", c.connecting(), c.destroyed())
}

fn says_error(c: &Socket) {
    c.on(ERROR, |e| {
        log(format!("error-{}", e.code().unwrap_or(e.message())));
    });
}

fn says_close(c: &Socket) {
    c.on_this(CLOSE, |c, ()| {
        log(format!("close-{} {}", c.had_error(), state(c)));
    });
}

async fn destroyed_connected_destroyed() {
    let rounds = Rounds {
        rounds: &[
            |c, ports| {
                c.destroy(None);
                connect(c, ports);
                c.destroy(None);
            },
            |c, ports| {
                c.destroy(None);
                connect(c, ports);
                c.destroy(None);
                connect(c, ports);
                c.destroy(None);
            },
            |c, ports| {
                c.destroy(Some(Error::new("one")));
                connect(c, ports);
                c.destroy(Some(Error::new("two")));
            },
            |c, ports| {
                c.destroy(Some(Error::new("one")));
                connect(c, ports);
                c.destroy(None);
            },
            |c, ports| {
                c.destroy(None);
                let c = c.clone();
                next_tick(move || {
                    connect(&c, ports);
                    c.destroy(None);
                });
            },
        ],
        begin: |c, ports, round| {
            c.once_this(CONNECT, move |c, ()| {
                log("connect");
                round(c, ports);
                log(state(c));
                next_tick(say("tick"));
                set_immediate(say("immediate"));
            });
            says_error(c);
            says_close(c);
            connect(c, ports);
        },
        ends: (None, 100),
    };
    rounds.listen(&silent_server(), 0);
}

async fn connects_before_its_close() {
    let served = Cell::new(0);
    let server = net::create_server(move |s| {
        s.resume();
        s.on(ERROR, |_| ());
        served.set(served.get() + 1);
        s.write(format!("hello{}", served.get()));
    });
    let rounds = Rounds {
        rounds: &[
            |c, ports| {
                c.destroy(None);
                connect(c, ports);
            },
            |c, ports| {
                c.destroy(None);
                let c = c.clone();
                next_tick(move || connect(&c, ports));
            },
            |c, ports| {
                c.destroy(Some(Error::new("one")));
                connect(c, ports);
            },
            |c, ports| {
                c.once_this(ERROR, move |c, _| connect(c, ports));
                c.destroy(Some(Error::new("two")));
            },
            |c, ports| {
                c.destroy(None);
                let c = c.clone();
                queue_microtask(move || connect(&c, ports));
            },
            |c, ports| {
                c.destroy(None);
                let c = c.clone();
                set_immediate(move || connect(&c, ports));
            },
        ],
        begin: |c, ports, round| {
            let seen = Cell::new(0);
            c.on_data_this(move |c, d| match seen.replace(seen.get() + 1) {
                0 => {
                    log(format!("first-{}", text(d)));
                    round(c, ports);
                    log(state(c));
                }
                _ => log(format!("second-{}", text(d))),
            });
            says_error(c);
            c.on(CONNECT, says("connect"));
            c.on(END, says("end"));
            says_close(c);
            connect(c, ports);
        },
        ends: (Some(100), 200),
    };
    rounds.listen(&server, 0);
}

fn begin_plain(c: &Socket, ports: Ports, round: Round) {
    says_error(c);
    c.on(CONNECT, says("connect"));
    c.on(READY, says("ready"));
    says_close(c);
    round(c, ports);
    log(state(c));
}

async fn destroyed_while_connecting() {
    let rounds = Rounds {
        rounds: &[
            |c, ports| {
                connect(c, ports);
                c.destroy(None);
                connect(c, ports);
            },
            |c, ports| {
                connect(c, ports);
                c.destroy(None);
                connect(c, ports);
                c.destroy(None);
            },
            |c, ports| {
                connect(c, ports);
                c.destroy(None);
                c.once_this(CLOSE, move |c, ()| connect(c, ports));
            },
            |c, ports| {
                connect(c, ports);
                c.once_this(CONNECT, |c, ()| {
                    c.destroy(None);
                    log(state(c));
                });
                c.once(CONNECT, says("connect2"));
            },
            |c, ports| {
                connect(c, ports);
                c.once_this(CONNECT, move |c, ()| {
                    c.destroy(None);
                    connect(c, ports);
                });
            },
            |c, ports| {
                c.destroy(None);
                connect(c, ports);
            },
            |c, ports| {
                c.destroy(None);
                connect(c, ports);
                c.destroy(None);
            },
        ],
        begin: begin_plain,
        ends: (Some(100), 200),
    };
    rounds.listen(&silent_server(), 0);
}

/// A kernel other than Linux refuses the first of the connections again, too.
#[cfg(target_os = "linux")]
async fn connects_twice() {
    let rounds = Rounds {
        rounds: &[
            |c, ports| {
                connect(c, ports);
                connect(c, ports);
            },
            |c, ports| {
                connect(c, ports);
                let c = c.clone();
                next_tick(move || connect(&c, ports));
            },
            |c, ports| {
                connect(c, ports);
                c.once_this(CONNECT, move |c, ()| connect(c, ports));
            },
            |c, ports| {
                connect(c, ports);
                c.once_this(CONNECT, move |c, ()| {
                    let c = Socket::clone(c);
                    set_immediate(move || connect(&c, ports));
                });
            },
            |c, ports| {
                connect(c, ports);
                let left = Cell::new(2);
                c.on_this(CONNECT, move |c, ()| {
                    if left.replace(left.get() - 1) > 0 {
                        connect(c, ports);
                    }
                });
            },
            |c, ports| {
                connect(c, ports);
                c.once_this(CONNECT, move |c, ()| {
                    connect(c, ports);
                    c.destroy(None);
                });
            },
        ],
        begin: begin_plain,
        ends: (Some(100), 200),
    };
    rounds.listen(&silent_server(), 0);
}

async fn ends_and_connects() {
    let served = Cell::new(0);
    let server = net::create_server(move |s| {
        let n = served.get() + 1;
        served.set(n);
        s.on_data(move |d| log(format!("got{n}-{}", text(d))));
        s.on(END, move |()| log(format!("peer-end{n}")));
        s.on(ERROR, |_| ());
    });
    fn full(c: &Socket) -> String {
        format!("{} writable-{}", state(c), c.writable().is_writable())
    }
    let rounds = Rounds {
        rounds: &[
            |c, ports| {
                connect(c, ports);
                c.once_this(END, move |c, ()| {
                    log("end");
                    c.destroy(None);
                    connect(c, ports);
                });
                c.end("two");
                c.resume();
            },
            |c, ports| {
                connect(c, ports);
                c.once_this(CLOSE, move |c, ()| {
                    connect(c, ports);
                    log(full(c));
                    c.end("four");
                });
                c.end("three");
                c.resume();
            },
        ],
        begin: |c, ports, round| {
            says_error(c);
            c.on(CONNECT, says("connect"));
            says_close(c);
            round(c, ports);
            log(full(c));
        },
        ends: (Some(200), 300),
    };
    rounds.listen(&server, 0);
}

#[cfg(unix)]
async fn connects_after_a_timeout() {
    fn connect_refused(c: &Socket, ports: Ports) {
        c.connect(("127.0.0.1", ports.refused));
    }
    let rounds = Rounds {
        rounds: &[
            |c, ports| {
                connect(c, ports);
                c.set_timeout(50);
                c.once_this(TIMEOUT, move |c, ()| {
                    c.destroy(None);
                    connect(c, ports);
                });
            },
            |c, ports| {
                connect(c, ports);
                c.set_timeout(50);
                c.once_this(TIMEOUT, |c, ()| c.destroy(None));
                c.once_this(CLOSE, move |c, ()| connect(c, ports));
            },
            |c, ports| {
                connect(c, ports);
                c.set_timeout(50);
                c.once_this(TIMEOUT, move |c, ()| {
                    c.destroy(None);
                    connect(c, ports);
                    c.destroy(None);
                    connect(c, ports);
                    c.set_timeout(50);
                });
            },
            |c, ports| {
                connect_refused(c, ports);
                c.once_this(ERROR, move |c, _| connect(c, ports));
            },
            |c, ports| {
                connect_refused(c, ports);
                c.once_this(CLOSE, move |c, ()| connect(c, ports));
            },
            |c, ports| {
                connect_refused(c, ports);
                c.once_this(ERROR, move |c, _| {
                    connect_refused(c, ports);
                    c.once_this(ERROR, move |c, _| connect(c, ports));
                });
            },
            |c, ports| {
                connect_refused(c, ports);
                c.once_this(ERROR, move |c, _| {
                    connect(c, ports);
                    c.destroy(None);
                });
            },
        ],
        begin: |c, ports, round| {
            says_error(c);
            c.on_this(TIMEOUT, |c, ()| log(format!("timeout {}", state(c))));
            c.on(CONNECT, says("connect"));
            says_close(c);
            round(c, ports);
        },
        ends: (Some(300), 400),
    };
    Server::new().listen_this(("127.0.0.1", 0), move |gone| {
        let refused = gone.address().unwrap().port();
        gone.close_with(move || rounds.listen(&silent_server(), refused));
    });
}

#[cfg(unix)]
async fn accepted_socket_connects() {
    let main = Rc::new(Cell::new(None::<Server>));
    let held = main.clone();
    let server = Server::new();
    let address = server.clone();
    server.on(CONNECTION, move |s| {
        s.on(CONNECT, says("never"));
        s.on(ERROR, |e| log(format!("s.error-{}", e.code().unwrap())));
        let held = held.clone();
        s.on_this(CLOSE, move |s, ()| {
            log(format!("s.close-{}", s.had_error()));
            local(held.take().unwrap());
        });
        s.resume();
        let (s, address) = (s.clone(), address.address().unwrap());
        set_timeout(50, move || s.connect(address));
    });
    server.listen_this(("127.0.0.1", 0), |server| {
        let c = net::connect_with(server.address().unwrap(), |_| log("connect"));
        c.on(ERROR, |_| ());
    });
    main.set(Some(server));
}

#[cfg(unix)]
fn local(main: Server) {
    let server = net::create_server(|s| s.resume());
    server.listen_this(socket_path("s"), move |server| {
        let c = net::connect_with(socket_path("s"), |c| {
            log("local");
            c.connect(socket_path("s"));
            log(format!("connecting-{}", c.connecting()));
        });
        c.on(ERROR, |e| log(format!("error-{}", e.code().unwrap())));
        let server = server.clone();
        c.on_this(CLOSE, move |c, ()| {
            log(format!("close-{}", c.had_error()));
            server.close();
            main.close_with(say("server-closed"));
        });
    });
}
