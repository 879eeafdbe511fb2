//! 615: stores of requests that end in other ways than by an answer.

use std::cell::Cell;
use std::rc::Rc;

use phaseloop_node::events::ERROR;
use phaseloop_node::http::{
    self, ABORTED, Agent, CHECK_CONTINUE, CLIENT_ERROR, CONTINUE, RESPONSE, RequestOptions, UPGRADE,
};
use phaseloop_node::net::{self, TIMEOUT};
use phaseloop_node::stream::{CLOSE, END};
use phaseloop_node::{AbortController, Emitter, Error, set_timeout};

use super::contexts::{at, enter, exit, run, sees};
use crate::support::text;

super::ports! {
    Real "615-context-requests" => requests,
}

type Step = fn(&Program);

/// The server, and the next step.
#[derive(Clone)]
struct Program {
    server: http::Server,
    step: Rc<Cell<usize>>,
}

impl Program {
    fn to(&self, path: &str) -> RequestOptions {
        RequestOptions::new(self.server.address().unwrap())
            .path(path)
            .agent(&Agent::none())
    }

    /// Goes on in a moment.
    fn go_on(&self) {
        let this = self.clone();
        set_timeout(30, move || this.next());
    }

    fn next(&self) {
        let step = self.step.replace(self.step.get() + 1);
        exit(|| STEPS[step](self));
    }

    /// Returns a listener that goes on.
    fn goes_on(&self) -> impl Fn(&()) + 'static {
        let this = self.clone();
        move |()| this.go_on()
    }
}

const STEPS: [Step; 9] = [
    |p| {
        run("c1", || {
            let q = http::get(p.to("/slow"));
            let program = p.clone();
            q.on(ERROR, move |e| {
                at(format!("q-error-{}", e.code().unwrap()));
                program.go_on();
            });
            q.on(CLOSE, |()| at("c-close"));
            set_timeout(50, move || run("destroyer", || q.destroy(None)));
        });
    },
    |p| {
        run("c2", || {
            let (q, program) = (http::get(p.to("/t")), p.clone());
            q.on(RESPONSE, move |s| {
                at("response");
                s.resume();
                s.on(END, |()| at("r-end"));
                s.on(CLOSE, |()| at("r-close"));
                s.on(CLOSE, program.goes_on());
            });
        });
    },
    |p| {
        run("c3", || {
            let options = p.to("/").method("POST").header("Expect", "100-continue");
            let (q, program) = (http::request(options), p.clone());
            q.on(RESPONSE, move |s| {
                at("response");
                s.resume();
                s.on(CLOSE, program.goes_on());
            });
            q.on_this(CONTINUE, |q, ()| {
                at("continue");
                enter("going");
                q.end("x");
            });
            q.flush_headers();
        });
    },
    |p| {
        run("c4", || {
            let options = p
                .to("/")
                .header("Connection", "Upgrade")
                .header("Upgrade", "x");
            let (q, program) = (http::get(options), p.clone());
            q.on(UPGRADE, move |upgrade| {
                at("c-upgrade");
                enter("c-up");
                let socket = &upgrade.socket;
                socket.on(END, |()| at("up-end"));
                socket.on(CLOSE, |()| at("up-close"));
                socket.on(CLOSE, program.goes_on());
                socket.resume();
                socket.write("hi");
            });
        });
    },
    |p| {
        run("c5", || {
            let c = net::connect(p.server.address().unwrap());
            c.once_this(net::CONNECT, |c, ()| {
                at("connected");
                c.write("BAD\r\n\r\n");
            });
            c.on(CLOSE, |()| at("bad-close"));
            c.on(CLOSE, p.goes_on());
            c.on(ERROR, |_| ());
            c.resume();
        });
    },
    |p| {
        run("c6", || {
            let options = RequestOptions::new(("127.0.0.1", 1)).agent(&Agent::none());
            let q = http::get(options);
            q.on(ERROR, |e| at(format!("refused-{}", e.code().unwrap())));
            q.on(CLOSE, |()| at("refused-close"));
            q.on(CLOSE, p.goes_on());
        });
    },
    |p| {
        run("c7", || {
            let q = http::get(p.to("/slow").timeout(40));
            q.on_this(TIMEOUT, |q, ()| {
                at("c-timeout");
                enter("timed");
                q.destroy(Some(Error::new("mine")));
            });
            q.on(ERROR, |e| at(format!("c-error-{}", e.message())));
            q.on(CLOSE, |()| at("c7-close"));
            q.on(CLOSE, p.goes_on());
        });
    },
    |p| {
        run("c8", || {
            let c = AbortController::new();
            let q = http::get(p.to("/slow").signal(&c.signal()));
            let program = p.clone();
            q.on(ERROR, move |e| {
                at(format!("abort-{}", e.name()));
                program.go_on();
            });
            set_timeout(50, move || run("aborter", || c.abort()));
        });
    },
    |p| run("closer", || p.server.close_with(sees("closed"))),
];

async fn requests() {
    let server = run("create", http::Server::new);
    run("on", || {
        server.on_request(|q, s| {
            at(format!("request-{}", q.url()));
            if q.url() == "/slow" {
                q.on(CLOSE, |()| at("q-close"));
                s.on(CLOSE, |()| at("s-close"));
                q.on(ABORTED, |()| at("aborted"));
                return enter("slow");
            }
            s.set_timeout(50);
            s.on_this(http::server::TIMEOUT, |s, _| {
                at("s-timeout");
                s.end("late");
            });
        });
        server.on(CHECK_CONTINUE, |exchange| {
            at("check");
            enter("checked");
            exchange.response.write_continue();
            exchange.request.resume();
            let answer = exchange.response.clone();
            exchange.request.on(END, move |()| {
                at("c-end");
                answer.end("ok");
            });
        });
        server.on(UPGRADE, |upgrade| {
            at("upgrade");
            enter("upgraded");
            let socket = &upgrade.socket;
            socket.write("HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n");
            socket.on_data_this(|socket, d| {
                at(format!("up-{}", text(d)));
                socket.end(());
            });
        });
        server.on(CLIENT_ERROR, |failed| {
            at("client-error");
            failed.socket.destroy(None);
        });
        server.on(CLOSE, |()| at("close"));
    });
    run("listen", || {
        server.listen_this(("127.0.0.1", 0), |server| {
            let program = Program {
                server: server.clone(),
                step: Rc::default(),
            };
            exit(|| program.next());
        });
    });
}
