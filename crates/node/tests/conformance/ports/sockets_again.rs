//! 700–705: sockets that connect again, lookups of addresses, ends and destroyed sockets.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;

use phaseloop_node::events::ERROR;
use phaseloop_node::net::{self, CONNECT, LISTENING, READY, Server, Socket, SocketOptions};
use phaseloop_node::stream::{CLOSE, END, FINISH};
use phaseloop_node::{Emitter, Error, next_tick, set_immediate, set_timeout};

use crate::support::{log, say, says, socket_path, text};

super::ports! {
    Real "700-socket-connects-again" => socket_connects_again,
    #[cfg(unix)]
    Real "701-socket-connects-after-an-error" => socket_connects_after_an_error,
    Real "702-addresses-are-looked-up-by-a-tick" => addresses_are_looked_up_by_a_tick,
    #[cfg(unix)]
    Real "703-writes-after-the-peers-end" => writes_after_the_peers_end,
    #[cfg(unix)]
    Real "704-pending-writes-are-cancelled" => pending_writes_are_cancelled,
    #[cfg(unix)]
    Real "705-listen-in-no-directory" => listen_in_no_directory,
}

async fn socket_connects_again() {
    let served = Rc::new(Cell::new(0));
    let count = served.clone();
    let server = net::create_server(move |c| {
        count.set(count.get() + 1);
        c.end(format!("hello{}", count.get()));
    });
    server.listen_this(("127.0.0.1", 0), |server| {
        let (server, port) = (server.clone(), server.address().unwrap().port());
        let c = Socket::new();
        let connect = move |c: &Socket| {
            let served = served.clone();
            c.once(CONNECT, move |()| log(format!("callback{}", served.get())));
            c.connect(("127.0.0.1", port));
            let readable = c.readable().is_readable();
            let writable = c.writable().is_writable();
            log(format!(
                "connecting-{} destroyed-{} readable-{readable} writable-{writable}",
                c.connecting(),
                c.destroyed()
            ));
        };
        c.on(CONNECT, says("connect"));
        c.on(READY, says("ready"));
        c.on_data(|d| log(format!("data-{}", text(d))));
        c.on(END, says("end"));
        c.on(FINISH, says("finish"));
        let (again, way) = (connect.clone(), Cell::new(0));
        c.on_this(CLOSE, move |c, ()| {
            log(format!(
                "close-{} destroyed-{} read-{}",
                c.had_error(),
                c.destroyed(),
                c.bytes_read()
            ));
            let (connect, held) = (again.clone(), Socket::clone(c));
            match way.replace(way.get() + 1) {
                0 => connect(c),
                1 => next_tick(move || connect(&held)),
                2 => drop(set_immediate(move || connect(&held))),
                3 => drop(set_timeout(20, move || connect(&held))),
                _ => server.close_with(say("server-closed")),
            }
        });
        connect(&c);
    });
}

#[cfg(unix)]
async fn socket_connects_after_an_error() {
    let server = net::create_server(|s| {
        s.on_data(|d| log(format!("got-{}", text(d))));
        s.on(CLOSE, says("server.close"));
    });
    let (c, left) = (Socket::new(), Cell::new(2));
    c.on_this(CONNECT, |c, ()| {
        log("connect");
        c.end("bye");
    });
    c.on(ERROR, |e| log(format!("error-{}", e.code().unwrap())));
    c.on(END, says("end"));
    c.on_this(CLOSE, move |c, ()| {
        log(format!("close-{}", c.had_error()));
        match left.replace(left.get() - 1) {
            1.. => c.connect(socket_path("none")),
            0 => {
                let held = Socket::clone(c);
                server.listen_with(socket_path("s"), move || held.connect(socket_path("s")));
            }
            _ => server.close_with(say("server-closed")),
        }
    });
    c.connect(socket_path("none"));
}

fn code(result: Result<(), Error>) -> String {
    let error = result.err();
    let code = error.as_ref().and_then(|error| error.code());
    code.unwrap_or("undefined").to_owned()
}

async fn addresses_are_looked_up_by_a_tick() {
    let server = net::create_server(|_| log("connection"));
    next_tick(say("tick0"));
    server.listen(("127.0.0.1", 0));
    log(format!("listening-{}", server.is_listening()));
    let seen = server.clone();
    next_tick(move || {
        log(format!("tick1-{}", seen.is_listening()));
        next_tick(say("tick1.1"));
    });
    next_tick(say("tick2"));
    server.once_this(LISTENING, |server, ()| {
        log("listening");
        let address = server.address().unwrap();
        let c = net::connect(address);
        c.on(CONNECT, says("never"));
        c.on_this(CLOSE, |c, ()| log(format!("c.close-{}", c.had_error())));
        c.destroy(None);
        let early = Server::new();
        early.on(LISTENING, says("never"));
        early.listen(("127.0.0.1", 0));
        early.close_with_result(|result| log(format!("early-{}", code(result))));
        next_tick(say("tick3"));
        let taken = Server::new();
        taken.on_this(ERROR, |taken, e| {
            log(format!("error-{}", e.code().unwrap()));
            taken.close_with_result(|result| {
                let error = result.unwrap_err();
                log(format!("taken-{}-{error}", error.code().unwrap()));
            });
        });
        taken.listen(address);
        next_tick(say("tick4"));
        let server = server.clone();
        set_timeout(100, move || {
            let again = server.clone();
            server.close_with_result(move |result| {
                log(format!("closed-{}", code(result)));
                again.close_with_result(|result| log(format!("again-{}", code(result))));
            });
        });
    });
}

fn why(name: &'static str) -> impl FnOnce(Result<(), Error>) + 'static {
    move |result| {
        let error = result.unwrap_err();
        log(format!("{name}-{}-{error}", error.code().unwrap()));
    }
}

#[cfg(unix)]
async fn writes_after_the_peers_end() {
    let server = net::create_server(|c| {
        c.on(ERROR, |e| log(format!("error-{}", e.code().unwrap())));
        c.on_this(CLOSE, |c, ()| {
            log(format!("close-{}", c.had_error()));
            log(format!("late-{}", c.write_with("x", why("late"))));
        });
        c.on_this(END, |c, ()| {
            log("end");
            let c = Socket::clone(c);
            next_tick(move || {
                c.end(());
                log(format!("write-{}", c.write_with("x", why("write"))));
                c.end_with("y", why("end"));
            });
        });
        c.resume();
    });
    server.listen_this(socket_path("s"), |server| {
        let options = SocketOptions {
            allow_half_open: true,
            ..SocketOptions::default()
        };
        let c = Socket::with_options(options);
        c.connect(socket_path("s"));
        c.end(());
        c.write_with("x", why("own"));
        c.on(ERROR, |e| log(format!("c.error-{}", e.code().unwrap())));
        let server = server.clone();
        c.on(CLOSE, move |()| server.close_with(say("server-closed")));
    });
}

#[cfg(unix)]
async fn pending_writes_are_cancelled() {
    let peers = Rc::<RefCell<Vec<Socket>>>::default();
    let list = peers.clone();
    let server = net::create_server(move |c| {
        c.on(ERROR, |_| ());
        c.pause();
        list.borrow_mut().push(c.clone());
    });
    let errors = VecDeque::from([None, Some(Error::with_code("OWN", "own"))]);
    let errors = Rc::new(RefCell::new(errors));
    server.listen_this(socket_path("s"), move |server| {
        round(server, &errors, &peers)
    });
}

#[cfg(unix)]
fn round(
    server: &Server,
    errors: &Rc<RefCell<VecDeque<Option<Error>>>>,
    peers: &Rc<RefCell<Vec<Socket>>>,
) {
    let next = errors.borrow_mut().pop_front();
    let Some(error) = next else {
        peers.take().iter().for_each(|c| c.destroy(None));
        return server.close_with(say("server-closed"));
    };
    let ticks = |name: &'static str, tick: &'static str| {
        let why = why(name);
        move |result| {
            why(result);
            next_tick(say(tick));
        }
    };
    let (server, errors, peers) = (server.clone(), errors.clone(), peers.clone());
    net::connect_with(socket_path("s"), move |c| {
        c.write_with(vec![0; 8 << 20], ticks("large", "large.tick"));
        c.write_with("x", ticks("small", "small.tick"));
        c.end_with((), ticks("end", "end.tick"));
        c.on(FINISH, says("never"));
        c.on(ERROR, |e| log(format!("error-{}", e.code().unwrap())));
        c.on_this(CLOSE, move |c, ()| {
            log(format!("close-{}", c.had_error()));
            let (server, errors, peers) = (server.clone(), errors.clone(), peers.clone());
            set_immediate(move || round(&server, &errors, &peers));
        });
        let c = c.clone();
        set_timeout(50, move || {
            c.destroy(error);
            next_tick(say("tick"));
            set_immediate(say("immediate"));
        });
    });
}

#[cfg(unix)]
async fn listen_in_no_directory() {
    let server = Server::new();
    server.on_this(ERROR, |server, e| {
        log(format!(
            "{}-{}-{e}",
            e.code().unwrap(),
            e.syscall().unwrap()
        ));
        server.close_with_result(|result| log(format!("closed-{}", code(result))));
    });
    server.listen_with(Path::new("/no/such/directory/s"), say("never"));
    next_tick(say("tick"));
}
