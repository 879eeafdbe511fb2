//! 740–742, 747: programs that are missing, and what is emitted behind 'close'.

use std::ffi::OsStr;

use phaseloop::process::{Command, Stdio};
use phaseloop_node::child_process::{
    ChildProcess, DISCONNECT, EXIT, ExecError, ExecOptions, MESSAGE, SPAWN, exec_file_with,
    exec_with, fork_command, promises, spawn, spawn_command,
};
use phaseloop_node::events::{ERROR, Event};
use phaseloop_node::stream::{CLOSE, Duplex, END, Readable, Writable};
use phaseloop_node::{
    AbortController, AbortSignal, Deferred, Emitter, Error, Promise, Reason, catch, dgram,
    next_tick, process, readline, set_immediate, set_timeout, throw,
};

use crate::support::{log, say, says};

super::ports! {
    Real "740-spawn-missing" => spawn_missing,
    Real "741-exec-missing" => exec_missing,
    Real "742-listeners-in-close" => listeners_in_close,
    Real "747-fork-missing" => fork_missing,
}

const NONE: &str = "no-such-program-here";

fn or_null<T: ToString>(value: Option<T>) -> String {
    value.map_or("null".to_owned(), |value| value.to_string())
}

fn ended(c: &ChildProcess) -> String {
    let exit = c.exit().unwrap();
    let signal = exit.signal.map(|signal| signal.name().unwrap());
    format!("{} {}", or_null(exit.code), or_null(signal))
}

fn streams(c: &ChildProcess) -> String {
    let there = [
        c.stdin().is_some(),
        c.stdout().is_some(),
        c.stderr().is_some(),
    ];
    there
        .map(|there| if there { "stream" } else { "null" })
        .join("-")
}

fn stdio(kind: &str) -> Stdio {
    match kind {
        "pipe" => Stdio::piped(),
        "ignore" => Stdio::null(),
        _ => Stdio::inherit(),
    }
}

fn command(program: impl AsRef<OsStr>, [stdin, stdout, stderr]: [&str; 3]) -> Command {
    let mut command = Command::new(program);
    command.stdin(stdio(stdin));
    command.stdout(stdio(stdout)).stderr(stdio(stderr));
    command
}

const TERM: phaseloop::signal::SignalKind = phaseloop::signal::SignalKind::TERM;

async fn spawn_missing() {
    let kinds = ["pipe", "ignore", "inherit"];
    let all = kinds.into_iter().flat_map(move |a| {
        let rest = kinds.into_iter().flat_map(move |b| kinds.map(|c| (b, c)));
        rest.map(move |(b, c)| [a, b, c])
    });
    next_kind(all.collect::<Vec<_>>().into_iter());
}

fn next_kind(mut cases: std::vec::IntoIter<[&'static str; 3]>) {
    let Some(kinds) = cases.next() else {
        return ordered();
    };
    let c = spawn_command(command(NONE, kinds).arg("a"));
    log(format!(
        "{} {} pid-{} kill-{}",
        kinds.join("-"),
        streams(&c),
        or_null(c.pid()),
        c.kill(TERM)
    ));
    c.on(SPAWN, says("spawn"));
    c.on(EXIT, says("exit"));
    c.on_this(ERROR, |c, e| {
        log(format!(
            "error {} {} {} {e} {} {}",
            e.code().unwrap(),
            e.syscall().unwrap(),
            e.path().unwrap().display(),
            ended(c),
            c.kill(TERM)
        ));
    });
    if let Some(stdout) = c.stdout() {
        stdout.on(END, says("stdout.end"));
    }
    if let Some(stderr) = c.stderr() {
        stderr.on(END, says("stderr.end"));
    }
    c.once_this(CLOSE, move |c, ()| {
        log(format!("close {}", ended(c)));
        set_immediate(move || next_kind(cases));
    });
}

fn ordered() {
    next_tick(say("tick.before"));
    let c = spawn(NONE, []);
    c.on(ERROR, |_| {
        log("error");
        next_tick(say("error.tick"));
    });
    c.on(CLOSE, |()| {
        log("close");
        set_immediate(missing_directory);
    });
    next_tick(say("tick"));
    Promise::resolved(()).then(|()| log("promise"));
    set_immediate(say("immediate"));
    log("sync");
}

fn missing_directory() {
    let c = spawn_command(command("true", ["ignore"; 3]).current_dir("/no/such/directory"));
    c.on(ERROR, |e| log(e.message()));
    c.on(CLOSE, |()| {
        log("close");
        set_immediate(refused);
    });
}

fn refused() {
    let c = spawn_command(&mut command("/etc/passwd", ["pipe", "ignore", "ignore"]));
    c.on_this(ERROR, |c, e| {
        log(format!("{e} {}", or_null(c.exit().unwrap().code)));
    });
    c.on(CLOSE, |()| {
        log("close");
        set_immediate(thrown);
    });
}

fn thrown() {
    for program in ["/etc/passwd/x", "a\0b"] {
        let thrown = catch(|| spawn(program, [])).unwrap_err();
        log(format!(
            "thrown {} {}",
            thrown.name(),
            thrown.code().unwrap()
        ));
    }
    process::on_uncaught_exception(|e, _| log(format!("uncaught {e}")));
    let c = spawn(NONE, []);
    c.on(CLOSE, says("never"));
    set_immediate(|| drop(set_immediate(|| drop(set_immediate(say("end"))))));
}

type Ended = Box<dyn FnOnce(Option<ExecError>, String, String)>;

fn show(error: Option<ExecError>, stdout: &str, stderr: &str) {
    let text = |text: &str| serde_json::to_string(text).unwrap();
    let mut fields = vec!["null".to_owned(); 6];
    if let Some(error) = error {
        fields[0] = text(error.name());
        fields[1] = text(error.code().unwrap());
        fields[4] = text(error.cmd());
        fields[5] = text(error.message());
    }
    fields.extend([text(stdout), text(stderr)]);
    log(fields.join(" "));
}

async fn run(start: impl FnOnce(Ended) -> ChildProcess) {
    let closed = Deferred::new();
    let promise = closed.promise();
    let c = start(Box::new(|error, stdout, stderr| {
        show(error, &stdout, &stderr);
    }));
    log(streams(&c));
    c.on(ERROR, |e| {
        log(format!("error {} {}", e.name(), e.code().unwrap()));
    });
    c.on(CLOSE, move |()| {
        log("close");
        closed.resolve(());
    });
    promise.await.unwrap();
}

fn with_signal(signal: &AbortSignal) -> ExecOptions {
    ExecOptions {
        signal: Some(signal.clone()),
        ..Default::default()
    }
}

async fn exec_missing() {
    let plain = ExecOptions::default;
    run(|cb| exec_file_with(NONE, ["a"], plain(), cb)).await;
    let limited = ExecOptions {
        timeout: Some(5000.into()),
        ..plain()
    };
    run(|cb| exec_file_with(NONE, ["a"], limited, cb)).await;
    let before = AbortController::new();
    before.abort();
    let aborted = with_signal(&before.signal());
    run(|cb| exec_file_with(NONE, [], aborted.clone(), cb)).await;
    let controller = AbortController::new();
    run(|cb| {
        let c = exec_file_with(NONE, [], with_signal(&controller.signal()), cb);
        controller.abort();
        c
    })
    .await;
    let shell = ExecOptions {
        shell: Some("/no/such/shell".into()),
        ..plain()
    };
    run(|cb| exec_with("echo a", shell, cb)).await;
    let there = ExecOptions {
        cwd: Some("/no/such/directory".into()),
        ..plain()
    };
    run(|cb| exec_file_with(NONE, ["a"], there, cb)).await;
    run(|cb| exec_with("sleep 60", aborted.clone(), cb)).await;
    let second = AbortController::new();
    run(|cb| {
        let c = exec_with("exec sleep 60", with_signal(&second.signal()), cb);
        set_immediate(move || second.abort());
        c
    })
    .await;
    let late = AbortController::new();
    run(|cb| exec_with("true", with_signal(&late.signal()), cb)).await;
    late.abort();
    let what = |e: Reason| {
        log(format!("{} {} {e}", e.name(), e.code().unwrap()));
    };
    what(promises::exec_file(NONE, [], plain()).await.unwrap_err());
    what(promises::exec("sleep 60", aborted).await.unwrap_err());
    let third = AbortController::new();
    let promise = promises::exec_file("sleep", ["60"], with_signal(&third.signal()));
    set_immediate(move || third.abort_with(Error::type_error("mine")));
    what(promise.await.unwrap_err());
}

const EXTRA: Event<()> = Event::new("extra");

/// Listens inside 'close'.
fn later<E: Emitter + Clone + 'static>(name: &'static str, emitter: &E) {
    let this = emitter.clone();
    emitter.on(CLOSE, move |()| {
        log(format!("{name} close"));
        this.on(ERROR, move |e| log(format!("{name} error {e}")));
        this.on(ERROR.monitor(), move |e| {
            log(format!("{name} monitor {e}"));
        });
        this.once(EXTRA, move |()| log(format!("{name} extra")));
        this.prepend(EXTRA, move |()| log(format!("{name} first")));
        let by_tick = this.clone();
        next_tick(move || _ = by_tick.emit(ERROR, Error::new("by tick")));
        let by_turn = this.clone();
        set_immediate(move || {
            by_turn.emit(ERROR, Error::new("by turn"));
            let (first, second) = (by_turn.emit(EXTRA, ()), by_turn.emit(EXTRA, ()));
            let count = by_turn.listener_count(ERROR);
            log(format!("{name} {first} {second} {count}"));
        });
    });
}

fn in_two_turns(f: impl FnOnce() + 'static) {
    set_immediate(|| drop(set_immediate(f)));
}

fn endless() -> Readable<Vec<u8>> {
    Readable::bytes().build()
}

async fn listeners_in_close() {
    let readable = endless();
    later("readable", &readable);
    readable.destroy(None);
    in_two_turns(|| {
        let writable = Writable::bytes(|_: Vec<u8>, done| done.ok()).build();
        later("writable", &writable);
        writable.end(());
        in_two_turns(|| {
            let sink = Writable::bytes(|_: Vec<u8>, done| done.ok());
            let failed = Duplex::new(Readable::<Vec<u8>>::bytes(), sink);
            failed.once(ERROR, |e| log(format!("known {e}")));
            later("duplex", &failed);
            failed.destroy(Some(Error::new("failed")));
            in_two_turns(sockets);
        });
    });
}

fn sockets() {
    let socket = dgram::Socket::new();
    later("dgram", &socket);
    socket.close();
    in_two_turns(|| {
        let lines = readline::create_interface(&endless());
        later("readline", &lines);
        lines.close();
        in_two_turns(children);
    });
}

fn children() {
    later("child", &spawn_command(&mut command("true", ["ignore"; 3])));
    let missing = spawn_command(&mut command(NONE, ["ignore"; 3]));
    missing.once(ERROR, |_| log("missing"));
    set_timeout(300, || {
        let throwing = endless();
        process::on_uncaught_exception(|e, _| log(format!("uncaught {e}")));
        let this = throwing.clone();
        throwing.on(CLOSE, move |()| {
            this.on(ERROR, |e| log(format!("late {e}")));
            throw("in close")
        });
        throwing.on(CLOSE, says("never"));
        throwing.destroy(None);
        set_immediate(move || _ = throwing.emit(ERROR, Error::new("heard")));
    });
}

async fn fork_missing() {
    let c = fork_command(command(NONE, ["ignore"; 3]));
    log(format!(
        "connected {} pid {}",
        c.connected(),
        or_null(c.pid())
    ));
    c.on(SPAWN, says("spawn"));
    c.on(EXIT, says("exit"));
    c.on(MESSAGE, says("message"));
    c.on_this(DISCONNECT, |c, ()| {
        log(format!("disconnect {}", c.connected()));
    });
    let code = |c: &ChildProcess| or_null(c.exit().unwrap().code);
    c.on_this(ERROR, move |c, e| {
        log(format!("error {} {}", e.code().unwrap(), code(c)));
    });
    c.on_this(CLOSE, move |c, ()| {
        log(format!("close {}", code(c)));
        let c = ChildProcess::clone(c);
        in_two_turns(move || {
            c.send_with("{}", |sent| {
                log(format!("sent {}", sent.unwrap_err().code().unwrap()));
            });
        });
    });
}
