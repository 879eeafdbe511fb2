//! 150–154: signals, child processes, datagrams.

use std::cell::RefCell;
use std::rc::Rc;

use phaseloop::node::child_process::{EXIT, SPAWN, spawn, spawn_command};
use phaseloop::node::events::ERROR;
use phaseloop::node::stream::{CLOSE, END};
use phaseloop::node::{Emitter, Promise, dgram, next_tick, process, set_immediate, set_timeout};
use phaseloop::process::{Command, Stdio};
use phaseloop::signal::{Signal, SignalKind};
use phaseloop::{Handle, LoopHandle};

use crate::support::{block, log, say};

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
    let signal = Signal::new(&LoopHandle::current());
    let heard = |_: &Signal, _: SignalKind| {
        log("signal");
        next_tick(say("signal.tick"));
    };
    signal.start(SignalKind::USR2, heard).unwrap();
    signal.unref();
    set_timeout(50, || {
        log("timer");
        set_immediate(say("immediate"));
        // To this thread: another one of the tests' process might be late to take it.
        signal_hook::low_level::raise(SignalKind::USR2.as_raw()).unwrap();
        next_tick(say("tick"));
        block(20);
        log("sync");
    });
    let end = move || {
        signal.stop();
        process::exit(0);
    };
    set_timeout(400, end);
}

async fn child_exit_and_close() {
    let c = spawn("sh", ["-c", "echo out; exit 3"]);
    let seen: Rc<RefCell<Vec<String>>> = Rc::default();
    c.on(SPAWN, |()| log("spawn"));
    let see = seen.clone();
    c.stdout().unwrap().on_data(move |d| {
        let text = String::from_utf8_lossy(d);
        see.borrow_mut().push(format!("data-{}", text.trim()));
    });
    let see = seen.clone();
    c.stdout()
        .unwrap()
        .on(END, move |()| see.borrow_mut().push("end".to_owned()));
    let see = seen.clone();
    c.on(EXIT, move |exit| {
        see.borrow_mut()
            .push(format!("exit-{}", exit.code.unwrap()))
    });
    let this = c.clone();
    c.on(CLOSE, move |()| {
        let mut seen = seen.take();
        seen.sort();
        seen.into_iter().for_each(log);
        log(format!("close-{}", this.exit().unwrap().code.unwrap()));
    });
    next_tick(say("tick"));
    log("sync");
}

async fn child_spawn_error() {
    let c = spawn("no-such-program-here", []);
    c.on(ERROR, |e| log(format!("error-{}", e.code().unwrap())));
    c.on(SPAWN, |()| log("no"));
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
    c.on(CLOSE, |()| log("close"));
}

async fn datagrams() {
    let s = dgram::Socket::new();
    let this = s.clone();
    s.on_message(move |m| {
        let m = String::from_utf8(m.bytes.clone()).unwrap();
        log(format!("message-{m}"));
        let token = format!("tick-{m}");
        next_tick(move || log(token));
        if m != "c" {
            return;
        }
        this.close_with(|| log("close"));
        next_tick(say("after-close"));
        then("promise");
    });
    let this = s.clone();
    s.bind_with("127.0.0.1:0".parse().unwrap(), move || {
        let to = this.address().unwrap();
        let (second, third) = (this.clone(), this.clone());
        this.send_with(b"a", to, move |_| {
            second.send_with(b"b", to, move |_| third.send(b"c", to));
        });
    });
}
