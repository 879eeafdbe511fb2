//! Forked programs and their channels: this crate at both ends, and Node at either.

#![cfg(unix)]

#[cfg(target_os = "linux")]
use crate::run_to_end;
use crate::util::child::in_child;
use crate::util::child::path_of;
use std::cell::RefCell;
use std::env;
use std::process::{Command as StdCommand, Stdio as StdStdio};
use std::rc::Rc;

use phaseloop::process::Command;
use phaseloop::signal::SignalKind;
use phaseloop_node::child_process::{
    ChildProcess, DISCONNECT, EXIT, Json, MESSAGE, fork, fork_command,
};
use phaseloop_node::events::ERROR;
use phaseloop_node::stream::CLOSE;
use phaseloop_node::{Emitter, process, run};

/// Set for a process that is to be the child.
const CHILD: &str = "PHASELOOP_TEST_FORKED";

/// Set for a child that goes on when its loop has ended.
const OUTLIVES: &str = "PHASELOOP_TEST_OUTLIVES";

/// What a child in JavaScript does; [`the_child`] does the same.
const SCRIPT: &str = "
    process.on('message', (m) => { process.send({ got: m }); if (m === 'bye') process.disconnect(); });
    process.on('disconnect', () => process.exit(7));
    process.send('hello');
";

/// Not a test by itself: the program of the children of the others.
#[test]
fn the_child() {
    if env::var_os(CHILD).is_none() {
        return;
    }
    let exit = run(async {
        if env::var_os(OUTLIVES).is_some() {
            assert!(process::connected());
            return;
        }
        process::on_message(|m| {
            process::send(Json::from_text(format!("{{\"got\":{m}}}")));
            if m.to_text_value().as_deref() == Some("bye") {
                process::disconnect();
            }
        });
        process::on_disconnect(|| process::exit(7));
        assert!(process::connected());
        process::send("hello");
    });
    // The channel was borrowed: its number still belongs to the program.
    #[cfg(target_os = "linux")]
    assert!(std::fs::metadata("/proc/self/fd/3").is_ok());
    if env::var_os(OUTLIVES).is_some() {
        // The parent kills it.
        loop {
            std::thread::park();
        }
    }
    std::process::exit(exit.code());
}

/// A stale `NODE_CHANNEL_FD` names a socket of the program, which other programs may inherit.
#[cfg(target_os = "linux")]
#[test]
fn n106_a_socket_of_the_program_is_not_taken_for_the_channel() {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    let test = "n106_a_socket_of_the_program_is_not_taken_for_the_channel";
    let child = in_child(&["env", "NODE_CHANNEL_FD=200"], test, || {
        let (ours, mut other) = UnixStream::pair().unwrap();
        let taken = rustix::io::fcntl_dupfd_cloexec(&ours, 200).unwrap();
        rustix::io::fcntl_setfd(&taken, rustix::io::FdFlags::empty()).unwrap();
        drop(ours);
        assert_eq!(std::os::fd::AsRawFd::as_raw_fd(&taken), 200);
        for _ in 0..2 {
            let exit = run(async {
                assert!(!process::connected());
                assert!(!process::send("a message"));
                drop(process::on_message(|_| ()));
                process::disconnect();
            });
            assert_eq!(exit.code(), 0);
        }
        other.write_all(b"still here").unwrap();
        drop(other);
        let mut text = String::new();
        UnixStream::from(taken).read_to_string(&mut text).unwrap();
        assert_eq!(text, "still here");
    });
    if let Some(child) = child {
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
    }
}

fn this_crate() -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", &path_of("the_child"), "--nocapture", "-q"]);
    command.env(CHILD, "1");
    command.stdout(phaseloop::process::Stdio::null());
    command
}

/// The command of Node: that of the variable `PHASELOOP_NODE`, or `node`.
fn node() -> String {
    env::var("PHASELOOP_NODE").unwrap_or_else(|_| "node".to_owned())
}

fn has_node() -> bool {
    let version = StdCommand::new(node())
        .arg("--version")
        .stdout(StdStdio::null())
        .status();
    version.is_ok_and(|status| status.success())
}

/// Talks to a child, and returns what has happened.
fn talk_to(start: impl FnOnce() -> ChildProcess + 'static) -> Vec<String> {
    let events: Rc<RefCell<Vec<String>>> = Rc::default();
    let log = events.clone();
    let say = move |event: String| log.borrow_mut().push(event);
    run_to_end(async move {
        let child = start();
        let log = say.clone();
        let sent = child.send_with(Json::from_text("{\"a\":1}"), move |result| {
            log(format!("sent {result:?}"));
        });
        say(format!("connected {} {sent}", child.connected()));
        let (log, this) = (say.clone(), child.clone());
        child.on(MESSAGE, move |m| {
            log(format!("message {m}"));
            if m.to_text_value().as_deref() == Some("hello") {
                this.send("bye");
            }
        });
        let (log, this) = (say.clone(), child.clone());
        child.on(DISCONNECT, move |()| {
            log(format!("disconnect {}", this.connected()));
            let late = log.clone();
            let refused = this.send_with("late", move |result| {
                late(format!("late {}", result.unwrap_err().code().unwrap()));
            });
            log(format!("send {refused}"));
            this.send("later");
        });
        let log = say.clone();
        child.on(ERROR, move |e| log(format!("error {e}")));
        let log = say.clone();
        child.on(EXIT, move |exit| log(format!("exit {:?}", exit.code)));
        let log = say.clone();
        child.on(CLOSE, move |()| log("close".to_owned()));
    });
    events.take()
}

/// What Node prints for the same parent and child.
const EVENTS: [&str; 11] = [
    "connected true true",
    "sent Ok(())",
    "message \"hello\"",
    "message {\"got\":{\"a\":1}}",
    "message {\"got\":\"bye\"}",
    "disconnect false",
    "send false",
    "late ERR_IPC_CHANNEL_CLOSED",
    "error Channel closed",
    "exit Some(7)",
    "close",
];

fn assert_talk(events: Vec<String>) {
    assert_eq!(events, EVENTS);
}

#[test]
fn n106_parent_and_child_of_this_crate_exchange_messages_until_one_disconnects() {
    assert_talk(talk_to(|| fork_command(this_crate())));
}

#[test]
fn n106_a_child_that_is_node_is_talked_to() {
    if has_node() {
        assert_talk(talk_to(|| fork("node", ["-e", SCRIPT])));
    }
}

#[test]
fn n106_a_parent_that_is_node_is_talked_to() {
    if !has_node() {
        return;
    }
    let script = "
        const { fork } = require('child_process');
        const c = fork('', ['--exact', process.env.CHILD, '--nocapture', '-q'],
          { execPath: process.env.EXE, execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
        c.send({ a: 1 });
        c.on('message', (m) => { console.log('message', JSON.stringify(m)); if (m === 'hello') c.send('bye'); });
        c.on('disconnect', () => console.log('disconnect', c.connected));
        c.on('exit', (code) => console.log('exit', code));
    ";
    // `fork` puts the path of a module first, which the test harness takes for one more name to
    // run.
    let script = script.replace("fork('', [", "fork(process.env.CHILD, [");
    let output = StdCommand::new(node())
        .args(["-e", &script])
        .env("EXE", env::current_exe().unwrap())
        .env("CHILD", path_of("the_child"))
        .env(CHILD, "1")
        .stderr(StdStdio::inherit())
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "message \"hello\"\nmessage {\"got\":{\"a\":1}}\nmessage {\"got\":\"bye\"}\ndisconnect false\nexit 7\n"
    );
}

#[test]
fn n106_a_child_that_ends_disconnects() {
    let seen: Rc<RefCell<Vec<&str>>> = Rc::default();
    let log = seen.clone();
    run_to_end(async move {
        let child = fork("true", []);
        for (event, token) in [(DISCONNECT, "disconnect"), (CLOSE, "close")] {
            let log = log.clone();
            child.on(event, move |()| log.borrow_mut().push(token));
        }
    });
    // As in Node, 'close' is first if the exit was delivered before EOF of the channel.
    seen.borrow_mut().sort_unstable();
    assert_eq!(*seen.borrow(), ["close", "disconnect"]);
}

/// The inherited number stays open in the child, so that its end is no EOF by itself.
#[test]
fn n106_a_child_whose_loop_has_ended_disconnects_though_it_lives() {
    let seen: Rc<RefCell<Vec<&str>>> = Rc::default();
    let log = seen.clone();
    run_to_end(async move {
        let mut command = this_crate();
        command.env(OUTLIVES, "1");
        let child = fork_command(command);
        let (ends, this) = (log.clone(), child.clone());
        child.on(DISCONNECT, move |()| {
            ends.borrow_mut().push("disconnect");
            this.kill(SignalKind::KILL);
        });
        child.on(EXIT, move |_| log.borrow_mut().push("exit"));
    });
    assert_eq!(*seen.borrow(), ["disconnect", "exit"]);
}

#[test]
fn n106_without_a_parent_that_forked_it_a_process_has_no_channel() {
    let exit = run(async {
        process::on_message(|_| unreachable!("there is no parent"));
        assert!(!process::connected());
        assert!(!process::send("not delivered"));
        process::disconnect();
    });
    assert_eq!(exit.code(), 0, "the listener keeps nothing alive");
}

#[test]
fn n106_a_program_that_is_not_there_has_a_channel_until_its_error() {
    let events: Rc<RefCell<Vec<String>>> = Rc::default();
    let log = events.clone();
    run_to_end(async move {
        let child = fork("no-such-program-here", []);
        assert!(child.connected());
        let closed = log.clone();
        child.on(ERROR, move |e| log.borrow_mut().push(e.to_string()));
        child.on(CLOSE, move |()| {
            closed.borrow_mut().push("close".to_owned())
        });
    });
    assert_eq!(
        *events.borrow(),
        ["spawn no-such-program-here ENOENT", "close"]
    );
}

#[test]
fn texts_survive_their_json() {
    for text in ["", "a\"b\\c", "tab\tline\nend\r", "\u{1}\u{1f}", "é€😀"] {
        assert_eq!(Json::from(text).to_text_value().as_deref(), Some(text));
    }
    let escaped = Json::from_text(r#""\u0041\ud83d\ude00\/""#);
    assert_eq!(escaped.to_text_value().as_deref(), Some("A😀/"));
    assert_eq!(Json::from(true).to_text_value(), None);
}
