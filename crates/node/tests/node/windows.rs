//! Node's names on Windows: children, named pipes, signals.

use crate::run_to_end;
use std::cell::RefCell;
use std::rc::Rc;

use phaseloop::signal::SignalKind;
use phaseloop_node::child_process::{self, EXIT, spawn_command};
use phaseloop_node::net::{CONNECT, connect, create_server};
use phaseloop_node::stream::{CLOSE, END};
use phaseloop_node::{Emitter, fs, process};

use crate::child::part;

/// Collects lines.
#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<String>>>);

impl Log {
    fn push(&self, line: impl Into<String>) {
        self.0.borrow_mut().push(line.into());
    }

    fn take(&self) -> Vec<String> {
        self.0.take()
    }
}

#[test]
fn exec_runs_a_line_in_cmd() {
    let log = Log::default();
    let (one, other) = (log.clone(), log.clone());
    run_to_end(async move {
        child_process::exec("echo hello & exit 3", move |error, stdout, _| {
            one.push(format!(
                "{} {:?}",
                stdout.trim(),
                error.unwrap().exit_code()
            ));
        });
        child_process::exec_file(r"C:\no\such.exe", [], move |error, _, _| {
            other.push(error.unwrap().error().code().unwrap_or("none").to_owned());
        });
    });
    let mut lines = log.take();
    lines.sort();
    assert_eq!(lines[1], "hello Some(3)", "{lines:?}");
    assert_eq!(lines.len(), 2);
}

#[test]
fn a_child_that_is_killed_has_ended_by_the_signal() {
    let log = Log::default();
    let reported = log.clone();
    run_to_end(async move {
        let child = spawn_command(&mut part("sleep"));
        assert!(child.kill(SignalKind::TERM) && child.killed());
        let this = child.clone();
        child.on(EXIT, move |exit| {
            reported.push(format!("{:?} {:?}", exit.code, exit.signal));
            assert!(!this.kill(SignalKind::TERM), "it has ended");
        });
    });
    assert_eq!(log.take(), ["None Some(SignalKind(SIGTERM))"]);
}

#[test]
fn a_path_of_a_socket_is_a_named_pipe() {
    let path = format!(r"\\.\pipe\phaseloop-node-{}", std::process::id());
    let log = Log::default();
    let (served, reported) = (log.clone(), log.clone());
    run_to_end(async move {
        let server = create_server(move |socket| {
            let (echo, served) = (socket.clone(), served.clone());
            socket.on_data(move |bytes| {
                let _ = echo.write(bytes.clone());
            });
            socket.on(CLOSE, move |_| served.push("server closed"));
        });
        server.listen(std::path::PathBuf::from(&path));
        let client = connect(std::path::PathBuf::from(&path));
        let (this, text) = (client.clone(), reported.clone());
        client.on(CONNECT, move |()| {
            let _ = this.write(b"hello".to_vec());
        });
        let this = client.clone();
        client.on_data(move |bytes| {
            text.push(String::from_utf8_lossy(bytes).into_owned());
            this.end(());
        });
        let ended = reported.clone();
        client.on(END, move |()| ended.push("client ended"));
        client.on(CLOSE, move |_| {
            reported.push("client closed");
            server.close();
        });
    });
    let mut lines = log.take();
    assert_eq!(lines[0], "hello", "{lines:?}");
    lines.sort();
    assert_eq!(
        lines,
        ["client closed", "client ended", "hello", "server closed"]
    );
}

#[test]
fn signals_and_files_have_their_names() {
    run_to_end(async {
        process::on_signal(SignalKind::INT, |_| ()).unwrap();
        assert!(process::on_signal(SignalKind::KILL, |_| ()).is_err());
        let program = std::env::current_exe().unwrap();
        fs::promises::access(program, fs::Access::READ)
            .await
            .unwrap();
        assert!(
            fs::promises::access("missing", fs::Access::EXISTS)
                .await
                .is_err()
        );
    });
}
