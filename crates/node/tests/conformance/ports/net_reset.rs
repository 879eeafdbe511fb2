//! 923: sockets that reset their connections.

use phaseloop_node::events::{ERROR, once};
use phaseloop_node::net::{self, CONNECT, LISTENING, READY, Socket};
use phaseloop_node::stream::{CLOSE, END, FINISH};
use phaseloop_node::{Deferred, Emitter, Error, set_immediate, set_timeout};

use crate::support::log;

super::ports! {
    Real "923-net-reset" => net_reset,
}

fn state(c: &Socket) -> String {
    format!("{} {}", c.ready_state(), c.destroyed())
}

fn watch(c: &Socket) {
    let events = [
        (CONNECT, "connect"),
        (READY, "ready"),
        (FINISH, "finish"),
        (END, "end"),
        (CLOSE, "close"),
    ];
    for (event, name) in events {
        c.on_this(event, move |c, ()| log(format!("{name} {}", state(c))));
    }
    c.on(ERROR, |e| log(format!("error {}", e.code().unwrap())));
}

fn reset(c: &Socket) {
    c.reset_and_destroy();
    log(format!("called {}", state(c)));
}

async fn step(name: &str, run: impl FnOnce(&Socket)) {
    log(name);
    let server = net::create_server(|k| {
        k.resume();
        k.on(ERROR, |_| ());
    });
    let listens = once(&server, LISTENING);
    server.listen(("127.0.0.1", 0));
    listens.await.unwrap();
    let c = net::connect(server.address().unwrap());
    watch(&c);
    let deferred = Deferred::new();
    let done = deferred.promise();
    c.once(CLOSE, move |()| {
        set_timeout(20, move || {
            server.close();
            deferred.resolve(());
        });
    });
    run(&c);
    done.await.unwrap();
}

fn written(name: &'static str) -> impl FnOnce(Result<(), Error>) {
    move |result| {
        let code = result
            .err()
            .and_then(|error| error.code().map(str::to_owned));
        log(format!("{name} {}", code.as_deref().unwrap_or("fine")));
    }
}

async fn net_reset() {
    step("connected", |c| {
        c.once_this(CONNECT, |c, ()| {
            let c = c.clone();
            set_immediate(move || reset(&c));
        });
    })
    .await;
    step("in connect", |c| {
        c.once_this(CONNECT, |c, ()| reset(c));
    })
    .await;
    step("connecting", reset).await;
    step("writes", |c| {
        c.once_this(CONNECT, |c, ()| {
            c.write_with("a", written("first"));
            c.write_with(vec![0; 1 << 23], written("second"));
            reset(c);
        });
    })
    .await;
    let c = Socket::new();
    watch(&c);
    reset(&c);
}
