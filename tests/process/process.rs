//! Child processes, R252–R269 and N102: how they start, when their exit is reported and to which
//! futures, signals, liveness.
#![cfg(all(target_os = "linux", feature = "process"))]

use crate::util::child::in_child;
use crate::util::panics::panic_of;
use crate::util::trace::{Trace, ZERO, finish, ms};
use crate::util::wakers::on_clone;
use std::cell::{Cell, RefCell};
use std::io::{ErrorKind, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::rc::Rc;
use std::task::Context;

use futures::future::{join_all, select};
use futures::{AsyncReadExt, AsyncWriteExt, FutureExt};
use phaseloop::io::Source;
use phaseloop::process::{self, Child, Command, Stdio};
use phaseloop::signal::{Signal, SignalKind};
use phaseloop::time::{Timer, sleep, timeout};
use phaseloop::{
    EventLoop, Handle, Keeper, LoopHandle, OsError, RunMode, block_on, phase, run, spawn,
};
use tokio_test::assert_pending;

const PROBE: SignalKind = SignalKind::from_raw(0);
const ESRCH: i32 = 3;
const ECHILD: i32 = 10;

fn sh(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// A child that runs until it is ended.
fn sleeper() -> Child {
    Command::new("sleep").arg("1000").spawn().unwrap()
}

async fn text_of(command: &mut Command) -> String {
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Waits until the kernel reports that the child has exited, without reaping it.
fn until_ended(child: &Child) {
    let id = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
    rustix::process::waitid(rustix::process::WaitId::Pid(id), options).unwrap();
}

/// Whether the process is there, be it as a zombie.
fn exists(id: u32) -> bool {
    Path::new(&format!("/proc/{id}")).exists()
}

fn on_loop<R>(body: impl FnOnce() -> R) -> (EventLoop, LoopHandle, Trace, R) {
    let event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let trace = Trace::new(&handle);
    let result = event_loop.enter(body);
    (event_loop, handle, trace, result)
}

/// Logs the label when the child's end is delivered.
fn log_end(handle: &LoopHandle, child: &Child, trace: &Trace, label: &'static str) {
    let (exited, trace) = (child.exited(), trace.clone());
    drop(handle.spawn(async move {
        exited.await.unwrap();
        trace.log(label);
    }));
}

// The start.

#[test]
fn r252_r253_libuv_spawn_fails() {
    block_on(async {
        let error = Command::new("/no/such/program").spawn().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let detail = OsError::of(&error).unwrap();
        assert_eq!(detail.path(), Some("/no/such/program".as_ref()));
        assert_eq!((detail.directory(), detail.is_directory()), (None, false));
        assert_eq!(detail.raw_os_error(), Some(2));
        let error = Command::new("/etc/passwd").spawn().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(error.to_string().contains("/etc/passwd"), "{error}");
        // Forked, the same.
        let error = Command::new("/no/such/program").setsid(true).spawn();
        assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(LoopHandle::current().handles().len(), 0);
    });
}

#[test]
fn a_bad_directory_is_told_from_a_bad_program() {
    block_on(async {
        let cases = [
            ("true", "/no/such", true, ErrorKind::NotFound),
            ("true", "/etc/passwd", true, ErrorKind::NotADirectory),
            ("/no/such", "/", false, ErrorKind::NotFound),
            ("/no/such", "/neither", true, ErrorKind::NotFound),
        ];
        for (program, directory, is_directory, kind) in cases {
            let error = Command::new(program).current_dir(directory).spawn();
            let error = error.unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            let detail = OsError::of(&error).unwrap();
            assert_eq!(detail.is_directory(), is_directory, "{error}");
            let text = error.to_string();
            assert!(text.contains(program) && text.contains(directory), "{text}");
        }
    });
}

#[test]
fn libuv_spawn_fails_check_for_waitpid_cleanup() {
    block_on(async {
        for fork in [false, true] {
            assert!(Command::new("/no/such").setsid(fork).spawn().is_err());
        }
        assert_eq!(zombies(), 0);
    });
}

/// How many children of this process are zombies, those of the other tests excepted: they have
/// names of their own.
fn zombies() -> usize {
    let own = std::process::id();
    let entries = std::fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok())
        .filter(|stat| {
            let rest = stat.rsplit(')').next().unwrap_or("");
            let mut fields = rest.split_whitespace();
            let state = fields.next();
            let parent = fields.next().and_then(|parent| parent.parse().ok());
            state == Some("Z") && parent == Some(own) && stat.contains("(process")
        })
        .count()
}

#[test]
fn libuv_spawn_exit_code() {
    block_on(async {
        let status = sh("exit 7").status().await.unwrap();
        assert_eq!((status.code(), status.signal()), (Some(7), None));
        let status = Command::new("true").status().await.unwrap();
        assert!(status.success());
    });
}

#[test]
fn r268_libuv_spawn_empty_env_and_preserve_env() {
    block_on(async {
        let text = text_of(Command::new("/usr/bin/env").env_clear()).await;
        assert_eq!(text, "");
        let text = text_of(Command::new("/usr/bin/env").env_clear().env("A", "1")).await;
        assert_eq!(text, "A=1\n");
        let path = std::env::var("PATH").unwrap();
        let text = text_of(&mut Command::new("/usr/bin/env")).await;
        assert!(text.contains(&format!("PATH={path}\n")));
        let text = text_of(Command::new("/usr/bin/env").env_remove("PATH")).await;
        assert!(!text.lines().any(|line| line.starts_with("PATH=")));
        let text = text_of(Command::new("/usr/bin/env").envs([("B", "2"), ("C", "3")])).await;
        assert!(text.contains("B=2\n") && text.contains("C=3\n"));
    });
}

#[test]
fn r268_libuv_spawn_reads_child_path() {
    let directory = std::env::temp_dir().join(format!("phaseloop-path-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::os::unix::fs::symlink("/bin/echo", directory.join("only-here")).unwrap();
    block_on(async {
        let text = text_of(
            Command::new("only-here")
                .arg("found")
                .env("PATH", &directory),
        )
        .await;
        assert_eq!(text, "found\n");
        let error = Command::new("sh")
            .env("PATH", &directory)
            .spawn()
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(
            Command::new("sh")
                .env("PATH", "/nowhere")
                .arg0("x")
                .spawn()
                .is_err()
        );
    });
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn libuv_spawn_relative_path_and_arguments() {
    block_on(async {
        let text = text_of(Command::new("./sh").current_dir("/bin").args(["-c", "pwd"])).await;
        assert!(text.trim_end().ends_with("bin"), "{text}");
        let text = text_of(Command::new("sh").arg0("other").args(["-c", "echo $0"])).await;
        assert_eq!(text, "other\n");
        let text = text_of(sh("echo \"$0-$1\"").arg("a b").arg("")).await;
        assert_eq!(text, "a b-\n");
    });
}

#[test]
fn a_command_starts_any_number_of_children() {
    block_on(async {
        let mut command = sh("echo again");
        for _ in 0..2 {
            assert_eq!(text_of(&mut command).await, "again\n");
            // What `output` has piped is not piped here.
            let child = command.stdout(Stdio::null()).spawn().unwrap();
            assert!(child.stdout.is_none() && child.stderr.is_none());
            command = sh("echo again");
        }
        let mut command = sh("echo $$ > /dev/null");
        let output = command.output().await.unwrap();
        assert!(output.status.success());
        assert!(command.spawn().unwrap().stderr.is_none());
    });
}

#[test]
fn a_command_of_the_standard_library_keeps_what_is_set() {
    block_on(async {
        let mut std = std::process::Command::new("sh");
        std.args(["-c", "echo $A"]).env("A", "kept");
        let mut command = Command::from(std);
        assert_eq!(format!("{command:?}"), format!("{:?}", command.as_std()));
        assert_eq!(text_of(&mut command).await, "kept\n");
    });
}

#[test]
fn outside_a_loop_the_panic_says_what_to_call() {
    let text = panic_of(|| Command::new("true").spawn());
    assert!(text.contains("block_on"), "{text}");
}

// Streams.

#[test]
fn libuv_spawn_stdout_and_stdin_and_stdio_over_pipes() {
    block_on(async {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"hello").await.unwrap();
        drop(stdin);
        let mut text = String::new();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "hello");
        assert!(child.wait().await.unwrap().success());
    });
}

/// Larger than the buffer of a pipe, on both streams, in turns: neither fills up for want of a
/// reader.
#[test]
fn output_larger_than_the_pipes_on_both_streams() {
    block_on(async {
        let line = "0123456789abcdef".repeat(8);
        let script = format!("for i in $(seq 4000); do echo {line}; echo {line} >&2; done; exit 5");
        let output = sh(&script).output().await.unwrap();
        assert_eq!(output.status.code(), Some(5));
        assert_eq!(output.stdout.len(), 4000 * (line.len() + 1));
        assert!(output.stdout == output.stderr);
        // One after the other: the second stream is not touched before the first has ended.
        let output = sh("head -c 300000 /dev/zero; head -c 400000 /dev/zero >&2")
            .output()
            .await;
        let output = output.unwrap();
        assert_eq!(
            (output.stdout.len(), output.stderr.len()),
            (300_000, 400_000)
        );
    });
}

#[test]
fn wait_closes_the_standard_input() {
    block_on(async {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Would hang otherwise.
        assert!(child.wait().await.unwrap().success());
        assert!(child.stdin.is_none());
        let child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert!(child.wait_with_output().await.unwrap().status.success());
    });
}

#[test]
fn r257_a_child_that_closes_its_output_and_lives() {
    block_on(async {
        let mut child = sh("echo bye; exec >&- 2>&-; read line; exit 4")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut text = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .await
            .unwrap();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .await
            .unwrap();
        assert_eq!(text, "bye\n");
        assert_eq!(child.try_wait().unwrap(), None);
        assert_pending!(tokio_test::task::spawn(child.exited()).poll());
        child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(b"\n")
            .await
            .unwrap();
        assert_eq!(child.wait().await.unwrap().code(), Some(4));
    });
}

#[test]
fn r257_a_grandchild_that_keeps_the_pipe_open() {
    block_on(async {
        let mut child = sh("sleep 1000 & echo $!; exit 0")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        assert!(child.wait().await.unwrap().success());
        // The child is gone, its output is not at its end.
        let mut stdout = child.stdout.take().unwrap();
        let mut buffer = [0; 32];
        let length = stdout.read(&mut buffer).await.unwrap();
        let grandchild: i32 = String::from_utf8_lossy(&buffer[..length])
            .trim()
            .parse()
            .unwrap();
        assert_pending!(tokio_test::task::spawn(stdout.read(&mut buffer)).poll());
        process::kill(grandchild, SignalKind::KILL).unwrap();
        assert_eq!(stdout.read(&mut buffer).await.unwrap(), 0);
    });
}

// The end.

#[test]
fn r254_exits_come_last_in_the_poll_phase() {
    let (mut event_loop, handle, trace, child) = on_loop(|| Command::new("true").spawn().unwrap());
    until_ended(&child);
    log_end(&handle, &child, &trace, "exit");
    let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.write_all(b"x").unwrap();
    let source = Source::new(&handle, ours).unwrap();
    let log = trace.clone();
    let _reader = handle.spawn(async move {
        source.readable().await.unwrap();
        log.log("socket");
    });
    let log = trace.clone();
    let _queued = handle.spawn(async move {
        phase::poll().await;
        log.log("queued");
    });
    drop(handle.set_immediate(trace.call("check")));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "socket queued exit check");
}

#[test]
fn r255_those_that_ended_together_come_in_the_order_of_start() {
    let (mut event_loop, handle, trace, children) =
        on_loop(|| [30, 20, 10].map(|ms| sh(&format!("sleep 0.0{ms}")).spawn().unwrap()));
    // Asked in another order, ended in another order.
    for (index, label) in [(2, "third"), (0, "first"), (1, "second")] {
        log_end(&handle, &children[index], &trace, label);
    }
    children.iter().for_each(until_ended);
    let reaped = Rc::new(Cell::new(0));
    let (count, ids) = (reaped.clone(), children.each_ref().map(Child::id));
    let first = children[0].exited();
    let _watch = handle.spawn(async move {
        first.await.unwrap();
        count.set(ids.iter().filter(|id| !exists(**id)).count());
    });
    finish(&mut event_loop);
    assert_eq!(trace.take(), "first second third");
    assert_eq!(
        reaped.get(),
        3,
        "all were waited for before the first was reported"
    );
}

#[test]
fn every_waiter_is_told_in_order_and_later_ones_at_once() {
    let (mut event_loop, handle, trace, child) = on_loop(|| Command::new("true").spawn().unwrap());
    for label in ["a", "b", "c"] {
        log_end(&handle, &child, &trace, label);
    }
    let given_up = child.exited();
    let _gone = handle.spawn(async move {
        let never = select(given_up, futures::future::ready(())).await;
        drop(never);
    });
    finish(&mut event_loop);
    assert_eq!(trace.take(), "a b c");
    log_end(&handle, &child, &trace, "late");
    finish(&mut event_loop);
    assert_eq!(trace.take(), "late");
}

#[test]
fn r256_a_child_that_somebody_else_has_waited_for() {
    block_on(async {
        let mut child = Command::new("true").spawn().unwrap();
        let id = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
        rustix::process::waitpid(Some(id), rustix::process::WaitOptions::empty()).unwrap();
        let error = child.wait().await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(ECHILD));
        assert!(!child.is_active());
    });
}

#[test]
fn r256_other_peoples_children_are_left_alone() {
    block_on(async {
        let mut theirs = std::process::Command::new("sh")
            .args(["-c", "exit 9"])
            .spawn()
            .unwrap();
        for _ in 0..20 {
            assert!(Command::new("true").status().await.unwrap().success());
        }
        assert_eq!(theirs.wait().unwrap().code(), Some(9));
    });
}

#[test]
fn r258_libuv_spawn_auto_unref() {
    let (mut event_loop, handle, _, child) = on_loop(|| Command::new("true").spawn().unwrap());
    assert!(child.is_active() && child.has_ref());
    assert_eq!(handle.keepers(), [(Keeper::Child, 1)]);
    // No future waits for it. Its exit is seen, and the loop ends.
    finish(&mut event_loop);
    assert!(!child.is_active() && !exists(child.id()));
    assert!(child.exited().now_or_never().unwrap().unwrap().success());
}

#[test]
fn r266_an_unrefd_child_does_not_keep_the_loop() {
    let (mut event_loop, handle, _, child) = on_loop(sleeper);
    child.unref();
    assert!(!handle.is_alive());
    finish(&mut event_loop);
    assert!(exists(child.id()) && child.is_active());
    child.ref_();
    child.start_kill().unwrap();
    finish(&mut event_loop);
    assert!(!exists(child.id()));
}

#[test]
fn try_wait_asks_the_system_and_waiters_hear_in_the_poll_phase() {
    let (mut event_loop, handle, trace, mut child) = on_loop(|| sh("exit 2").spawn().unwrap());
    log_end(&handle, &child, &trace, "exit");
    until_ended(&child);
    assert_eq!(child.try_wait().unwrap().unwrap().code(), Some(2));
    assert_pending!(
        tokio_test::task::spawn(child.exited()).poll(),
        "not delivered yet"
    );
    finish(&mut event_loop);
    assert_eq!(trace.take(), "exit");
    assert_eq!(child.try_wait().unwrap().unwrap().code(), Some(2));
}

#[test]
fn a_panic_leaves_the_other_ends_their_turn() {
    let (mut event_loop, handle, trace, children) =
        on_loop(|| [(); 3].map(|()| Command::new("true").spawn().unwrap()));
    children.iter().for_each(until_ended);
    let exited = children[0].exited();
    let _first = handle.spawn(async move {
        exited.await.unwrap();
        phaseloop::queue_microtask(|| panic!("in between"));
    });
    log_end(&handle, &children[1], &trace, "second");
    log_end(&handle, &children[2], &trace, "third");
    let text = panic_of(|| event_loop.run(RunMode::Default));
    assert_eq!(text, "in between");
    finish(&mut event_loop);
    assert_eq!(trace.take(), "second third");
}

#[test]
fn n102_a_task_learns_of_the_end_in_the_drain_of_its_callback() {
    let (mut event_loop, handle, trace, children) =
        on_loop(|| [(); 2].map(|()| Command::new("true").spawn().unwrap()));
    children.iter().for_each(until_ended);
    for (child, (label, tick)) in children.iter().zip([("a", "tick-a"), ("b", "tick-b")]) {
        let (exited, trace) = (child.exited(), trace.clone());
        drop(handle.spawn(async move {
            exited.await.unwrap();
            trace.log(label);
            phaseloop::next_tick(trace.call(tick));
        }));
    }
    finish(&mut event_loop);
    assert_eq!(trace.take(), "a tick-a b tick-b");
}

// Signals to children.

#[test]
fn r260_libuv_spawn_and_kill() {
    block_on(async {
        let mut child = sleeper();
        child.signal(PROBE).unwrap();
        child.signal(SignalKind::TERM).unwrap();
        let status = child.wait().await.unwrap();
        assert_eq!((status.code(), status.signal()), (None, Some(15)));
        let error = child.signal(SignalKind::TERM).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(ESRCH));
        assert_eq!(child.signal(PROBE).unwrap_err().raw_os_error(), Some(ESRCH));
        child.start_kill().unwrap();
    });
}

#[test]
fn a_kill_waits_for_the_exit_and_closes_the_input() {
    block_on(async {
        let mut child = Command::new("sleep")
            .arg("1000")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        child.kill().await.unwrap();
        assert!(child.stdin.is_none() && !child.is_active());
        let status = child.try_wait().unwrap().expect("it has exited");
        assert_eq!(status.signal(), Some(9));
        // Once more, and after a normal exit.
        child.kill().await.unwrap();
        child.start_kill().unwrap();
        let mut child = Command::new("true").spawn().unwrap();
        assert!(child.wait().await.unwrap().success());
        child.kill().await.unwrap();
        assert!(child.wait().await.unwrap().success(), "it keeps its status");
    });
}

#[test]
fn a_kill_that_is_given_up_kills_once_it_was_polled() {
    block_on(async {
        let mut child = sleeper();
        drop(child.kill());
        assert!(child.try_wait().unwrap().is_none(), "nothing was sent");
        assert!(child.kill().now_or_never().is_none());
        assert_eq!(child.wait().await.unwrap().signal(), Some(9));
    });
}

#[test]
fn libuv_spawn_and_kill_with_std() {
    block_on(async {
        let mut child = Command::new("sleep")
            .arg("1000")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.start_kill().unwrap();
        assert_eq!(child.wait().await.unwrap().signal(), Some(9));
        let mut bytes = Vec::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_end(&mut bytes)
            .await
            .unwrap();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_end(&mut bytes)
            .await
            .unwrap();
        assert!(bytes.is_empty());
    });
}

#[test]
fn libuv_spawn_and_ping() {
    block_on(async {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.signal(PROBE).unwrap();
        child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(b"TEST")
            .await
            .unwrap();
        let mut echo = [0; 4];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut echo)
            .await
            .unwrap();
        assert_eq!(&echo, b"TEST");
        child.signal(SignalKind::TERM).unwrap();
        assert_eq!(child.wait().await.unwrap().signal(), Some(15));
    });
}

#[test]
fn libuv_kill_invalid_signum() {
    block_on(async {
        let mut child = sleeper();
        for number in [-1, 128, i32::MAX] {
            let kind = SignalKind::from_raw(number);
            let error = child.signal(kind).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert_eq!(error.to_string(), format!("{number} is no signal"));
            let error = process::kill(child.id() as i32, kind).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        assert_eq!(child.try_wait().unwrap(), None);
        process::kill(child.id() as i32, SignalKind::KILL).unwrap();
        assert_eq!(child.wait().await.unwrap().signal(), Some(9));
        let gone = process::kill(child.id() as i32, PROBE);
        assert_eq!(gone.unwrap_err().raw_os_error(), Some(ESRCH));
    });
}

/// Ended at every moment of its start.
#[test]
fn a_kill_during_the_start() {
    block_on(async {
        let waits = (0..100).map(|_| {
            let mut child = sh("exec sleep 1000").setsid(true).spawn().unwrap();
            child.start_kill().unwrap();
            async move { child.wait().await.unwrap().signal() }
        });
        for signal in join_all(waits).await {
            assert_eq!(signal, Some(9));
        }
    });
}

/// R265, libuv's `kill`: what this process ignores or blocks is no matter of the child's.
#[test]
fn r265_libuv_kill_children_start_with_the_default_actions() {
    let test = "r265_libuv_kill_children_start_with_the_default_actions";
    let child = in_child(
        &["env", "--ignore-signal=TERM", "--block-signal=USR1"],
        test,
        || {
            block_on(async {
                // Of the sets of blocked and of ignored signals, those with a number below 32.
                let signals = |text: String| {
                    let set = |name| {
                        let line = text.lines().find_map(|line: &str| line.strip_prefix(name));
                        u64::from_str_radix(line.unwrap().trim(), 16).unwrap() & 0x7fff_ffff
                    };
                    [set("SigBlk:"), set("SigIgn:")]
                };
                let own = signals(std::fs::read_to_string("/proc/self/status").unwrap());
                assert!(own[0] != 0 && own[1] != 0, "{own:x?}");
                let text = text_of(Command::new("cat").arg("/proc/self/status")).await;
                assert_eq!(signals(text), [0, 0]);
                let mut child = sleeper();
                child.signal(SignalKind::TERM).unwrap();
                assert_eq!(child.wait().await.unwrap().signal(), Some(15));
            });
        },
    );
    if let Some(child) = child {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
    }
}

// The end of handles.

#[test]
fn r259_a_dropped_child_runs_on_and_is_waited_for() {
    block_on(async {
        let child = sh("read line").stdin(Stdio::piped()).spawn();
        let mut child = child.unwrap();
        let (id, stdin) = (child.id(), child.stdin.take());
        drop(child);
        assert_eq!(LoopHandle::current().handles().len(), 1, "the pipe");
        assert!(exists(id));
        drop(stdin);
        while exists(id) {
            sleep(ms(1)).await;
        }
    });
}

#[test]
fn r259_a_dropped_child_does_not_keep_the_loop_and_is_waited_for_when_the_loop_is_gone() {
    let mut id = 0;
    let result = run(async {
        id = sleeper().id();
    });
    result.unwrap();
    assert!(exists(id), "the loop has not waited for it");
    process::kill(id as i32, SignalKind::KILL).unwrap();
    while exists(id) {
        std::thread::sleep(ms(1));
    }
}

#[test]
fn a_child_that_outlives_its_loop() {
    let (event_loop, _, _, mut child) = on_loop(sleeper);
    drop(event_loop);
    assert!(!child.is_active());
    let error = child.exited().now_or_never().unwrap().unwrap_err();
    assert!(error.to_string().contains("loop"), "{error}");
    assert_eq!(child.try_wait().unwrap(), None);
    child.signal(PROBE).unwrap();
    child.start_kill().unwrap();
    let id = child.id();
    drop(child);
    while exists(id) {
        std::thread::sleep(ms(1));
    }
}

/// A waker may give up another wait for the child that it is cloned for.
#[test]
fn wakers_are_cloned_when_nothing_is_borrowed() {
    block_on(async {
        let child = sleeper();
        let (mut first, mut second) = (child.exited(), child.exited());
        assert_pending!(tokio_test::task::spawn(&mut first).poll());
        let called = Rc::new(Cell::new(false));
        let seen = called.clone();
        let waker = on_clone(move || {
            drop(first);
            seen.set(true);
        });
        assert_pending!(second.poll_unpin(&mut Context::from_waker(&waker)));
        assert!(called.get());
        child.start_kill().unwrap();
        assert_eq!(second.await.unwrap().signal(), Some(9));
    });
}

/// The number of a process that ended may be another's by the time a second thread waits for it.
#[test]
fn one_thread_waits_for_the_children_of_a_loop_that_is_gone() {
    let test = "one_thread_waits_for_the_children_of_a_loop_that_is_gone";
    let alone = in_child(&[], test, || {
        let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
        let mut event_loop = EventLoop::new().unwrap();
        let ids = Rc::new(RefCell::new(Vec::new()));
        for _ in 0..5 {
            let ids = ids.clone();
            drop(event_loop.handle().spawn(async move {
                let mut child = sleeper();
                ids.borrow_mut().push(child.id());
                child.wait().await.unwrap();
            }));
        }
        event_loop.run(RunMode::NoWait).unwrap();
        let before = threads();
        drop(event_loop);
        let after = threads();
        for &id in ids.borrow().iter() {
            process::kill(id as i32, SignalKind::KILL).unwrap();
        }
        assert_eq!((ids.borrow().len(), after - before), (5, 1));
        while ids.borrow().iter().any(|&id| exists(id)) {
            std::thread::sleep(ms(1));
        }
    });
    if let Some(alone) = alone {
        let output = alone.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
    }
}

#[test]
fn kill_on_drop() {
    block_on(async {
        let child = Command::new("sleep")
            .arg("1000")
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let id = child.id();
        // An end that is awaited is delivered all the same.
        let exited = child.exited();
        drop(child);
        assert_eq!(exited.await.unwrap().signal(), Some(9));
        assert!(!exists(id));
        // Given up, it goes, too.
        let mut command = Command::new("sleep");
        let status = command.arg("1000").kill_on_drop(true).status();
        assert!(timeout(ms(5), status).await.is_err());
        let mut command = Command::new("sleep");
        let output = command.arg("1000").kill_on_drop(true).output();
        assert!(timeout(ms(5), output).await.is_err());
    });
}

#[test]
fn r266_libuv_spawn_detached() {
    block_on(async {
        let script = "ps -o sid= -p $$ | tr -d ' '; echo $$";
        let text = text_of(sh(script).setsid(true)).await;
        let (session, id) = text.trim().split_once('\n').unwrap();
        assert_eq!(session, id, "the first of a session");
        let text = text_of(sh("ps -o pgid= -p $$ | tr -d ' '; echo $$").process_group(0)).await;
        let (group, id) = text.trim().split_once('\n').unwrap();
        assert_eq!(group, id, "the first of a group");
    });
}

#[test]
fn r269_libuv_spawn_exercise_sigchld_issue() {
    block_on(async {
        // Ends are seen despite many starts that fail.
        let child = Command::new("true").spawn().unwrap();
        for _ in 0..50 {
            assert!(Command::new("/no/such").spawn().is_err());
        }
        assert!(child.exited().await.unwrap().success());
    });
}

#[test]
fn a_listener_to_sigchld_disturbs_nobody() {
    let (mut event_loop, handle, _, children) =
        on_loop(|| [(); 5].map(|()| Command::new("true").spawn().unwrap()));
    let seen = Rc::new(RefCell::new(0));
    let signal = Signal::new(&handle);
    signal
        .start(SignalKind::CHLD, {
            let seen = seen.clone();
            move |_, _| *seen.borrow_mut() += 1
        })
        .unwrap();
    signal.unref();
    let last = event_loop.enter(|| Command::new("true").spawn().unwrap());
    finish(&mut event_loop);
    assert!(!last.is_active() && children.iter().all(|child| !child.is_active()));
    let timer = Timer::new(&handle);
    timer.start(ms(1), ZERO, |_| {}).unwrap();
    finish(&mut event_loop);
    assert!(*seen.borrow() >= 1);
}

#[test]
fn several_loops_have_their_own_children() {
    let threads: Vec<_> = (0..4)
        .map(|code| {
            std::thread::spawn(move || {
                block_on(async {
                    for _ in 0..20 {
                        let status = sh(&format!("exit {code}")).status().await.unwrap();
                        assert_eq!(status.code(), Some(code));
                    }
                    let task = spawn(async { Command::new("true").status().await });
                    assert!(task.await.unwrap().unwrap().success());
                });
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
