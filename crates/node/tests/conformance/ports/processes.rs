//! 150–154: signals, child processes, datagrams.

use std::cell::RefCell;
use std::rc::Rc;

use phaseloop::process::{Command, Stdio};
use phaseloop::signal::SignalKind;
use phaseloop_node::child_process::{EXIT, SPAWN, spawn, spawn_command};
use phaseloop_node::events::ERROR;
use phaseloop_node::stream::{CLOSE, END};
use phaseloop_node::{Emitter, Promise, dgram, next_tick, process, set_immediate, set_timeout};

use crate::support::{block, log, say, says, text};

super::ports! {
    Real "150-signal-in-poll" => signal_in_poll,
    Real "151-child-exit-and-close" => child_exit_and_close,
    Real "152-child-spawn-error" => child_spawn_error,
    Real "153-child-stdio-ignored" => child_stdio_ignored,
    Real "154-dgram" => datagrams,
}

fn then(token: &'static str) {
    Promise::resolved(()).then(move |()| log(token));
}

async fn signal_in_poll() {
    process::on_signal(SignalKind::USR2, |_| {
        log("signal");
        next_tick(say("signal.tick"));
    })
    .unwrap();
    set_timeout(50, || {
        log("timer");
        set_immediate(say("immediate"));
        // To this thread: another one of the tests' process might be late to take it.
        signal_hook::low_level::raise(SignalKind::USR2.as_raw()).unwrap();
        next_tick(say("tick"));
        block(20);
        log("sync");
    });
    set_timeout(400, || process::exit(0));
}

async fn child_exit_and_close() {
    let c = spawn("sh", ["-c", "echo out; exit 3"]);
    let seen: Rc<RefCell<Vec<String>>> = Rc::default();
    let [on_data, on_end, on_exit] = [(); 3].map(|()| {
        let seen = seen.clone();
        move |token| seen.borrow_mut().push(token)
    });
    c.on(SPAWN, says("spawn"));
    let stdout = c.stdout().unwrap();
    stdout.on_data(move |d| on_data(format!("data-{}", text(d))));
    stdout.on(END, move |()| on_end("end".to_owned()));
    c.on(EXIT, move |exit| {
        on_exit(format!("exit-{}", exit.code.unwrap()))
    });
    c.on_this(CLOSE, move |c, ()| {
        seen.borrow_mut().sort();
        seen.take().into_iter().for_each(log);
        log(format!("close-{}", c.exit().unwrap().code.unwrap()));
    });
    next_tick(say("tick"));
    log("sync");
}

async fn child_spawn_error() {
    let c = spawn("no-such-program-here", []);
    c.on(ERROR, |e| log(format!("error-{}", e.code().unwrap())));
    c.on(SPAWN, says("no"));
    next_tick(say("tick"));
    then("promise");
    log("sync");
}

async fn child_stdio_ignored() {
    let mut command = Command::new("sh");
    command.args(["-c", "exit 0"]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let c = spawn_command(&mut command);
    c.on(EXIT, |_| {
        log("exit");
        next_tick(say("exit.tick"));
    });
    c.on(CLOSE, says("close"));
}

async fn datagrams() {
    let s = dgram::Socket::new();
    s.on_message_this(|s, m| {
        let m = text(&m.bytes);
        log(format!("message-{m}"));
        let token = format!("tick-{m}");
        next_tick(move || log(token));
        if m == "c" {
            s.close_with(say("close"));
            next_tick(say("after-close"));
            then("promise");
        }
    });
    s.bind_this("127.0.0.1:0".parse().unwrap(), |s| {
        let (to, [second, third]) = (s.address().unwrap(), [(); 2].map(|()| s.clone()));
        s.send_with(b"a", to, move |_| {
            second.send_with(b"b", to, move |_| third.send(b"c", to));
        });
    });
}
