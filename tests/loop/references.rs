//! Active, ref and unref, R322–R326 and N37, with libuv's `ref` tests: what is unref'd does not
//! hold the loop, and works as long as something else does. Sources stand for the sockets of those
//! tests.

use crate::util::polls::poll_once;
use crate::util::sockets::udp_pair;
use crate::util::trace::{ZERO, finish, ms, paused, turn};
use std::net::{TcpListener, UdpSocket};
use std::rc::Rc;

use phaseloop::io::{AsSource, Source};
use phaseloop::phase::{Check, Hook, HookPhase, Idle, Prepare};
use phaseloop::task::yield_now_immediate;
use phaseloop::time::{Timer, sleep};
use phaseloop::{AsyncHandle, Handle, Keeper, LoopHandle, RunMode};
use tokio_test::assert_pending;

/// Unrefs and refs a handle that is active, and nothing else on its loop is.
fn flags_not_counters(active: &impl Handle) {
    let handle = active.event_loop();
    assert!(active.is_active() && active.has_ref() && handle.is_alive());
    active.ref_();
    active.ref_();
    active.unref();
    assert!(active.is_active() && !active.has_ref() && !handle.is_alive());
    active.unref();
    active.unref();
    active.ref_();
    assert!(active.has_ref() && handle.is_alive());
}

/// libuv's `has_ref`, too.
#[test]
fn r322_ref_and_unref_are_flags() {
    let (_event_loop, handle, _) = paused();
    let timer = Timer::new(&handle);
    timer.start(ms(1), ZERO, |_| ()).unwrap();
    flags_not_counters(&timer);
    drop(timer);
    let idle = Idle::new(&handle);
    idle.start(|_| ()).unwrap();
    flags_not_counters(&idle);
    drop(idle);
    flags_not_counters(&AsyncHandle::new(&handle, |_| ()).unwrap());
    assert!(!handle.is_alive());
}

#[test]
fn r322_the_flag_may_change_before_the_start_while_active_and_while_closing() {
    let (mut event_loop, handle, _) = paused();
    let timer = Timer::new(&handle);
    timer.unref();
    timer.start(ms(1), ms(1), |_| ()).unwrap();
    assert!(!handle.is_alive());
    timer.stop();
    timer.ref_();
    assert!(!handle.is_alive(), "not active");
    timer.start(ms(1), ms(1), |_| ()).unwrap();
    assert_eq!(handle.keepers(), [(Keeper::Timer, 1)]);
    timer.unref();
    timer.stop();
    timer.ref_();
    drop(timer.close());
    timer.unref();
    timer.ref_();
    assert_eq!(handle.keepers(), [(Keeper::Closing, 1)]);
    finish(&mut event_loop);
    assert_eq!(handle.keepers(), []);
}

/// libuv's `unref_in_prepare_cb`.
#[test]
fn r323_unref_of_the_last_one_ends_the_run_after_the_turn() {
    let (mut event_loop, handle, trace) = paused();
    let (prepare, check) = (Prepare::new(&handle), Check::new(&handle));
    let log = trace.clone();
    let unref = move |prepare: &Prepare| {
        log.log("prepare");
        prepare.unref();
    };
    prepare.start(unref).unwrap();
    check.start(trace.on("check")).unwrap();
    check.unref();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "prepare check");
    assert!(prepare.is_active());
}

#[test]
fn r324_what_is_unrefd_works_while_the_loop_runs() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer
        .start(ms(10), ms(10), trace.on_stamped("unrefd"))
        .unwrap();
    timer.unref();
    let sent = AsyncHandle::new(&handle, trace.on("async")).unwrap();
    sent.unref();
    sent.sender().send().unwrap();
    let (ours, theirs) = udp_pair();
    let source = Rc::new(Source::new(&handle, ours).unwrap());
    source.unref();
    let (reader, log) = (source.clone(), trace.clone());
    drop(handle.spawn(async move {
        reader.readable().await.unwrap();
        log.log("readable");
    }));
    theirs.send(b"x").unwrap();
    let keep = Timer::new(&handle);
    keep.start(ms(25), ZERO, trace.on_stamped("kept")).unwrap();
    turn(&mut event_loop);
    let in_poll = trace.take();
    assert!(
        ["readable async", "async readable"].contains(&&*in_poll),
        "in any order: {in_poll}"
    );
    finish(&mut event_loop);
    assert_eq!(trace.take(), "unrefd@10 unrefd@20 kept@25");
}

/// What is under way once, and has no handle: libuv's requests.
#[test]
fn r325_queued_entries_always_count() {
    let (mut event_loop, handle, trace) = paused();
    let immediate = handle.set_immediate(trace.call("immediate"));
    assert_eq!(handle.keepers(), [(Keeper::Queued, 1)]);
    assert!(immediate.clear() && !immediate.clear());
    assert_eq!(handle.keepers(), []);
    drop(handle.spawn(yield_now_immediate()));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "");
    event_loop.remote().call(|| ()).unwrap();
    assert!(handle.is_alive());
}

#[test]
fn r325_but_a_sleep_can_be_unrefd() {
    let (mut event_loop, handle, trace) = paused();
    for arm_first in [false, true] {
        let log = trace.clone();
        let task = handle.spawn(async move {
            let mut sleep = sleep(ms(100));
            if arm_first {
                assert_pending!(poll_once(&mut sleep).await);
            }
            sleep.unref().await;
            log.log("slept");
        });
        finish(&mut event_loop);
        assert!(!task.is_finished());
        assert_eq!(handle.keepers(), []);
        let keep = Timer::new(&handle);
        keep.start(ms(200), ZERO, |_| ()).unwrap();
        finish(&mut event_loop);
        assert_eq!(trace.take(), "slept", "{arm_first}");
    }
}

#[test]
fn r326_a_source_is_active_while_somebody_waits() {
    let (mut event_loop, handle, _) = paused();
    let (ours, theirs) = udp_pair();
    let source = Rc::new(Source::new(&handle, ours).unwrap());
    assert!(!source.is_active() && !handle.is_alive());
    let both = [source.clone(), source.clone()].map(|source| {
        handle.spawn(async move {
            let mut byte = [0];
            source
                .read_with(|socket| socket.recv(&mut byte))
                .await
                .unwrap();
        })
    });
    turn(&mut event_loop);
    assert!(source.is_active());
    assert_eq!(handle.keepers(), [(Keeper::Io, 1)], "once for both");
    theirs.send(b"x").unwrap();
    turn(&mut event_loop);
    assert!(source.is_active(), "one of them still waits");
    let [first, second] = both;
    assert!(first.is_finished());
    second.abort();
    turn(&mut event_loop);
    assert!(!source.is_active() && !handle.is_alive());
}

#[test]
fn libuv_ref() {
    let (mut event_loop, handle, _) = paused();
    finish(&mut event_loop);
    assert_eq!(handle.turns(), 0);
}

/// libuv's `idle_ref`, `prepare_ref`, `check_ref`.
#[test]
fn libuv_hooks_ref() {
    fn proof<P: HookPhase>(new: fn(&LoopHandle) -> Hook<P>) {
        let (mut event_loop, handle, trace) = paused();
        let hook = new(&handle);
        hook.start(trace.on("called")).unwrap();
        hook.unref();
        finish(&mut event_loop);
        assert_eq!(trace.take(), "");
        hook.close().then(trace.call("closed"));
        finish(&mut event_loop);
        assert_eq!(trace.take(), "closed");
    }
    proof(Idle::new);
    proof(Prepare::new);
    proof(Check::new);
}

#[test]
fn libuv_async_ref() {
    let (mut event_loop, handle, _) = paused();
    let sent = AsyncHandle::new(&handle, |_| ()).unwrap();
    sent.unref();
    finish(&mut event_loop);
}

/// libuv's `timer_ref` and `timer_ref2`.
#[test]
fn libuv_timer_ref() {
    for repeat in [ZERO, ms(1)] {
        let (mut event_loop, handle, trace) = paused();
        let timer = Timer::new(&handle);
        timer.start(ms(1), repeat, trace.on("called")).unwrap();
        timer.unref();
        finish(&mut event_loop);
        assert_eq!(trace.take(), "");
        assert!(timer.is_active());
    }
}

/// An open source, a source that a future waits for, and the close of the latter; all unref'd.
fn unrefd_source_does_not_hold<T: AsSource + 'static>(make: impl Fn() -> T) {
    let (mut event_loop, handle, trace) = paused();
    let source = Source::new(&handle, make()).unwrap();
    source.unref();
    finish(&mut event_loop);
    drop(source);

    let source = Source::new(&handle, make()).unwrap();
    source.unref();
    let log = trace.clone();
    let task = handle.spawn(async move {
        let waited = phaseloop::time::timeout(ms(50), source.readable());
        assert!(waited.await.is_err());
        source.close().then(log.call("closed"));
    });
    // The timeout is what keeps it alive, not the source.
    turn(&mut event_loop);
    assert_eq!(handle.keepers(), [(Keeper::Sleep, 1)]);
    finish(&mut event_loop);
    assert!(task.is_finished());
    assert_eq!(trace.take(), "closed");
}

/// libuv's `tcp_ref`, `tcp_ref2`, `tcp_ref2b`.
#[test]
fn libuv_tcp_ref() {
    unrefd_source_does_not_hold(|| TcpListener::bind("127.0.0.1:0").unwrap());
}

/// libuv's `udp_ref`, `udp_ref2`.
#[test]
fn libuv_udp_ref() {
    unrefd_source_does_not_hold(|| UdpSocket::bind("127.0.0.1:0").unwrap());
}

/// libuv's `pipe_ref`, `pipe_ref2`.
#[cfg(unix)]
#[test]
fn libuv_pipe_ref() {
    use std::os::unix::net::UnixListener;
    let path = std::env::temp_dir().join(format!("phaseloop-ref-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    unrefd_source_does_not_hold(|| {
        let listener = UnixListener::bind(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        listener
    });
}

/// libuv's `tcp_ref3` and `pipe_ref3`: a connect that is under way holds the loop, and there is no
/// handle to unref yet.
#[cfg(unix)]
#[test]
fn libuv_connect_holds_the_loop() {
    use phaseloop::net::{TcpStream, UnixStream};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let path = std::env::temp_dir().join(format!("phaseloop-connect-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let unix_listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let (mut event_loop, handle, trace) = paused();
    let (log, name) = (trace.clone(), path.clone());
    drop(handle.spawn(async move {
        TcpStream::connect(address).await.unwrap().unref();
        log.log("tcp");
        UnixStream::connect(name).await.unwrap().unref();
        log.log("unix");
    }));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "tcp unix");
    drop(unix_listener);
    std::fs::remove_file(path).unwrap();
}

/// libuv's `tcp_ref4`, `udp_ref3` and `pipe_ref4`, and ours differs: a future that waits to write
/// on an unref'd source does not keep the loop alive either. That is up to the caller of `unref`.
#[cfg(unix)]
#[test]
fn libuv_write_on_an_unrefd_source_does_not_hold() {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    let (mut event_loop, handle, trace) = paused();
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    while (&ours).write(&[0; 4096]).is_ok() {}
    let source = Source::new(&handle, ours).unwrap();
    source.unref();
    let log = trace.clone();
    drop(handle.spawn(async move {
        let written = source.write_with(|mut stream| stream.write(b"x")).await;
        assert!(written.is_err(), "the peer is gone");
        log.log("ended");
    }));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "");
    drop(theirs);
    let keep = handle.set_immediate(|| ());
    finish(&mut event_loop);
    assert_eq!(trace.take(), "ended", "it works while the loop runs");
    drop(keep);
}

/// A running child, seen through its descriptor.
#[cfg(target_os = "linux")]
#[test]
fn libuv_process_ref() {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    let (mut event_loop, handle, trace) = paused();
    // Its end is that of its input.
    let mut cat = std::process::Command::new("cat");
    let cat = cat.stdin(std::process::Stdio::piped()).spawn();
    let mut child = cat.unwrap();
    let fd = pidfd_open(Pid::from_child(&child), PidfdFlags::NONBLOCK).unwrap();
    let source = Rc::new(Source::new(&handle, fd).unwrap());
    source.unref();
    let (exit, log) = (source.clone(), trace.clone());
    drop(handle.spawn(async move {
        exit.readable().await.unwrap();
        log.log("exit");
    }));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "", "it runs, and does not hold the loop");
    child.kill().unwrap();
    source.ref_();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "exit");
    assert!(!child.wait().unwrap().success());
}

#[test]
fn n037_a_loop_entered_without_anything_refd_runs_nothing() {
    for mode in [RunMode::Default, RunMode::Once, RunMode::NoWait] {
        let (mut event_loop, handle, trace) = paused();
        let timer = Timer::new(&handle);
        timer.start(ZERO, ZERO, trace.on("timer")).unwrap();
        timer.unref();
        // A task that waits for nothing on this loop does not count, as a promise does not.
        drop(handle.spawn(std::future::pending::<()>()));
        assert!(!event_loop.run(mode).unwrap());
        assert_eq!(trace.take(), "");
    }
}
