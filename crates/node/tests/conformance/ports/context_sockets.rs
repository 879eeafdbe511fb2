//! 616: stores of sockets that fail, fill up, time out, stay half open or are reset.

use std::cell::RefCell;
use std::rc::Rc;

use phaseloop_node::events::ERROR;
use phaseloop_node::net::{self, Server, Socket, SocketOptions, TIMEOUT};
use phaseloop_node::stream::{CLOSE, DRAIN, END, FINISH};
use phaseloop_node::{Emitter, set_timeout};

use super::contexts::{at, enter, exit, run};
use crate::support::text;

super::ports! {
    #[cfg(unix)]
    Real "616-context-sockets" => sockets,
}

const STEPS: [fn(); 5] = [fails, fills_up, times_out, half_open, is_reset];

/// Goes on with a step in a moment.
fn go(step: usize) {
    set_timeout(30, move || {
        exit(|| {
            if let Some(step) = STEPS.get(step) {
                step();
            }
        });
    });
}

async fn sockets() {
    go(0);
}

fn fails() {
    let s = run("s", Server::new);
    run("e", || {
        s.on(ERROR, |e| {
            at(format!("error-{}", e.code().unwrap()));
            go(1);
        })
    });
    let t = Server::new();
    t.listen_this(("127.0.0.1", 0), move |t| {
        let port = t.address().unwrap().port();
        run("listen", || s.listen(("127.0.0.1", port)));
        let t = t.clone();
        set_timeout(20, move || t.close());
    });
}

fn fills_up() {
    let server = net::create_server(|c| {
        c.pause();
        let socket = c.clone();
        set_timeout(60, move || socket.resume());
        c.on_this(END, |c, ()| c.end(()));
    });
    server.listen_this(("127.0.0.1", 0), |server| {
        let c = run("c", || net::connect(server.address().unwrap()));
        let server = server.clone();
        run("on", || {
            c.on_this(DRAIN, |c, ()| {
                at("drain");
                enter("drained");
                c.end_with((), |_| at("ended"));
            });
            c.on(FINISH, |()| at("finish"));
            c.on(END, |()| at("end"));
            c.on(CLOSE, move |()| {
                at("close");
                server.close_with(|| {
                    at("srv-close");
                    go(2);
                });
            });
        });
        c.resume();
        run("w", || c.write_with(vec![0; 1 << 23], |_| at("written")));
    });
}

fn times_out() {
    let server = net::create_server(|c| {
        enter("srv");
        c.set_timeout(30);
        c.once_this(TIMEOUT, |c, ()| {
            at("timeout");
            enter("timed");
            c.end("bye");
        });
        c.on(CLOSE, |()| at("c-close"));
        c.resume();
    });
    run("l", || {
        server.listen_this(("127.0.0.1", 0), |server| {
            let c = run("c", || net::connect(server.address().unwrap()));
            c.on_data(|d| at(format!("data-{}", text(d))));
            c.on(END, |()| at("end"));
            let server = server.clone();
            c.on(CLOSE, move |()| {
                at("close");
                run("cl", || {
                    server.close_with(|| {
                        at("closed");
                        go(3);
                    });
                });
            });
        });
    });
}

fn half_open() {
    let options = SocketOptions {
        allow_half_open: true,
        high_water_mark: None,
    };
    let server = net::create_server_with(options, |c| {
        c.on_this(END, |c, ()| {
            at("half");
            enter("half2");
            let c = c.clone();
            set_timeout(10, move || {
                at("answer");
                c.end("x");
            });
        });
        c.resume();
    });
    server.listen_this(("127.0.0.1", 0), |server| {
        let c = run("hc", || net::connect(server.address().unwrap()));
        run("he", || c.end_with("q", |_| at("end-cb")));
        c.on_data(|d| at(format!("d-{}", text(d))));
        let server = server.clone();
        c.on(CLOSE, move |()| {
            at("hclose");
            server.close_with(|| go(4));
        });
    });
}

fn is_reset() {
    let client: Rc<RefCell<Option<Socket>>> = Rc::default();
    let resets = client.clone();
    let server = net::create_server(move |c| {
        run("reset", || {
            c.on(ERROR, |e| at(format!("srv-{}", e.code().unwrap())));
            c.on(CLOSE, |()| at("srv-closed"));
        });
        c.resume();
        let client = resets.take().unwrap();
        set_timeout(20, move || client.reset_and_destroy());
    });
    server.listen_this(("127.0.0.1", 0), move |server| {
        let c = run("rc", || net::connect(server.address().unwrap()));
        let server = server.clone();
        c.on(CLOSE, move |()| {
            at("cl-close");
            server.close_with(|| go(5));
        });
        client.replace(Some(c));
    });
}
