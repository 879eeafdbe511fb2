//! What comes from outside of a shuffled loop: other threads, children, sockets of the standard
//! library.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use phaseloop::net::{UnixDatagram, UnixStream};
use phaseloop::process::Command;
use phaseloop::shuffle::{Explore, Found, Kind, Threads};
use phaseloop::time::{self, sleep};
use phaseloop::{AsyncHandle, LoopHandle, spawn};

use super::kinds::{Trace, immediates, note, run};
use crate::util::panics::panic_of;

/// Starts a thread with a name and waits for its end.
fn in_thread(name: &str, body: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().name(name.into());
    thread.spawn(body).unwrap().join().unwrap();
}

/// Waits for a wake that a thread sends.
async fn wake_from_a_thread() {
    let (sender, receiver) = futures::channel::oneshot::channel();
    in_thread("the waker", move || {
        thread::sleep(Duration::from_millis(1));
        let _ = sender.send(());
    });
    // The receiver is polled for the first time after the send: nothing is woken yet.
    receiver.await.unwrap();
    let (sender, receiver) = futures::channel::oneshot::channel();
    let waits = spawn(async move { receiver.await.unwrap() });
    sleep(Duration::from_millis(1)).await;
    in_thread("the waker", move || {
        let _ = sender.send(());
    });
    waits.await.unwrap();
}

/// Waits for a thread that sends while the loop waits.
async fn late_wake_from_a_thread() {
    let (sender, receiver) = futures::channel::oneshot::channel();
    let thread = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        sender.send(()).unwrap();
    });
    receiver.await.unwrap();
    thread.join().unwrap();
}

#[test]
fn a_loop_waits_for_other_threads_if_they_may_send() {
    let allowed = Explore::new().seeds(3).threads(Threads::Allow);
    allowed.try_run(late_wake_from_a_thread).unwrap();
}

async fn call_from_a_thread() {
    let remote = LoopHandle::current().remote();
    in_thread("the caller", move || remote.call(|| ()).unwrap());
}

async fn send_from_a_thread() {
    let handle = AsyncHandle::new(&LoopHandle::current(), |_| ()).unwrap();
    let sender = handle.sender();
    in_thread("the sender", move || sender.send().unwrap());
}

fn refused<F: Future<Output = ()>>(program: impl Fn() -> F, thread: &str) {
    let found = Explore::new().seeds(1).try_run(&program).unwrap_err();
    for part in [thread, "cannot be repeated", "Threads::Allow"] {
        assert!(found.message.contains(part), "{found}");
    }
    assert!(found.shrunk.is_empty(), "the usual run fails as well");
    let allowed = Explore::new().seeds(5).threads(Threads::Allow);
    allowed.try_run(&program).unwrap();
}

#[test]
fn what_another_thread_sends_fails_the_run_and_the_thread_is_named() {
    refused(wake_from_a_thread, "the thread \"the waker\"");
    refused(call_from_a_thread, "the thread \"the caller\"");
    refused(send_from_a_thread, "the thread \"the sender\"");
}

#[test]
fn jobs_of_the_pool_are_no_other_threads() {
    let explored = Explore::new().seeds(20).try_run(|| async {
        let remote = LoopHandle::current().remote();
        let (sender, receiver) = futures::channel::oneshot::channel();
        phaseloop::spawn_blocking(move || {
            remote.call(|| ()).unwrap();
            sender.send(()).unwrap();
        })
        .detach();
        receiver.await.unwrap();
    });
    explored.unwrap();
}

#[test]
fn the_clock_of_a_shuffled_loop_cannot_be_resumed() {
    let found = Explore::new().seeds(1).try_run(|| async { time::resume() });
    let found = found.unwrap_err();
    assert!(found.message.contains("stays paused"), "{found}");
    assert!(found.message.contains("outside.rs"), "{found}");
    let text = panic_of(|| {
        let event_loop = phaseloop::Builder::new()
            .shuffle(|_: &phaseloop::shuffle::Question<'_>| 0)
            .build()
            .unwrap();
        event_loop.block_on(async { time::resume() });
    });
    assert!(text.contains("stays paused"), "{text}");
}

fn failure_of<F: Future<Output = ()>>(program: impl Fn() -> F) -> Box<Found> {
    let found = Explore::new().seeds(1).try_run(program).unwrap_err();
    assert!(found.message.starts_with("planned"), "{found}");
    found
}

#[test]
fn a_report_names_what_cannot_be_repeated() {
    let found = failure_of(|| async {
        let _child = Command::new("true").spawn().unwrap();
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let _streams = [ours, theirs].map(|end| UnixStream::from_std(end).unwrap());
        panic!("planned");
    });
    let names = ["a child process (", "a socket of the standard library ("];
    assert_eq!(found.not_repeatable.len(), names.len(), "{found}");
    for (line, name) in found.not_repeatable.iter().zip(names) {
        assert!(
            line.starts_with(name) && line.contains("outside.rs:"),
            "{line}"
        );
        assert!(
            found
                .to_string()
                .contains(&format!("not repeatable: {line}"))
        );
    }
}

#[test]
fn pairs_of_the_crate_can_be_repeated() {
    let found = failure_of(|| async {
        let _streams = UnixStream::pair().unwrap();
        let _sockets = UnixDatagram::pair().unwrap();
        let _channels = phaseloop::process::Channel::pair().unwrap();
        panic!("planned");
    });
    assert!(found.not_repeatable.is_empty(), "{found}");
}

/// A child that has exited before the loop polls, beside an immediate in each of three turns.
#[cfg(target_os = "linux")]
async fn a_child_beside_immediates(trace: Trace) {
    let mut child = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
    let stat = format!("/proc/{}/stat", child.id());
    let is_gone = || std::fs::read_to_string(&stat).unwrap().contains(") Z ");
    let start = Instant::now();
    while !is_gone() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never exits");
        thread::sleep(Duration::from_millis(1));
    }
    immediates(&trace, 3);
    child.wait().await.unwrap();
    note(&trace, "exit");
    sleep(Duration::from_millis(1)).await;
}

#[cfg(target_os = "linux")]
#[test]
fn exit_moves_the_end_of_a_child_to_a_later_turn() {
    let exits = |answer| {
        let trace = run(Kind::Exit, answer, a_child_beside_immediates);
        trace.iter().position(|line| line == "exit").unwrap()
    };
    assert_eq!(exits(0), 0);
    assert_eq!(exits(1), 1, "one immediate comes first");
}
