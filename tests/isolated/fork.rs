//! Loops in children after `fork` without `exec` (R327–R329): real forks.
//!
//! Each test runs in a process of its own, so that no other thread holds a lock when it forks. A
//! child ends by itself after a minute, should it hang.
#![cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]
#![allow(unsafe_code, reason = "forks")]

use crate::util::fork::{alone, fork};
use crate::util::trace::{ZERO, ms};
use std::cell::{Cell, RefCell};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Duration;

use phaseloop::io::{PollEvents, PollHandle, Source};
use phaseloop::time::Timer;
use phaseloop::{AsyncHandle, EventLoop, Keeper, LoopHandle, RunMode};

/// A loop and its handle.
fn new_loop() -> (EventLoop, LoopHandle) {
    let event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    (event_loop, handle)
}

fn finish(event_loop: &mut EventLoop) {
    assert!(!event_loop.run(RunMode::Default).unwrap());
}

fn pair() -> (UnixStream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    (ours, theirs)
}

/// Counts calls.
fn counter() -> (Rc<Cell<u32>>, impl Fn() + Clone + 'static) {
    let count = Rc::new(Cell::new(0));
    let counted = count.clone();
    (count, move || counted.set(counted.get() + 1))
}

#[test]
fn a_child_that_drops_sockets_and_the_loop_does_not_silence_its_parent() {
    alone(
        "a_child_that_drops_sockets_and_the_loop_does_not_silence_its_parent",
        || {
            let (mut event_loop, handle) = new_loop();
            let (ours, mut theirs) = pair();
            let source = RefCell::new(Some(Source::new(&handle, ours).unwrap()));
            let (polled, mut other) = pair();
            let poll = PollHandle::new(&handle, polled).unwrap();
            let (calls, call) = counter();
            poll.start(PollEvents::READABLE, move |poll, _| {
                call();
                poll.stop();
            })
            .unwrap();
            let polls = RefCell::new(Some(poll));
            let loops = RefCell::new(Some(event_loop));
            fork(|| {
                drop(source.take());
                drop(polls.take());
                drop(loops.take());
            })
            .join();
            event_loop = loops.take().unwrap();
            theirs.write_all(b"x").unwrap();
            other.write_all(b"x").unwrap();
            let source = source.take().unwrap();
            event_loop.block_on(async { source.readable().await.unwrap() });
            finish(&mut event_loop);
            assert_eq!(calls.get(), 1);
        },
    );
}

#[test]
fn r327_without_the_call_a_child_can_neither_run_the_loop_nor_add_to_it() {
    alone(
        "r327_without_the_call_a_child_can_neither_run_the_loop_nor_add_to_it",
        || {
            let (mut event_loop, handle) = new_loop();
            let timer = Timer::new(&handle);
            timer.start(ms(1), ZERO, |_| ()).unwrap();
            handle.reinit_after_fork().unwrap();
            fork(|| {
                let error = event_loop.run(RunMode::Default).unwrap_err();
                assert!(error.to_string().contains("reinit_after_fork"), "{error}");
                let error = Source::new(&handle, pair().0).unwrap_err();
                assert!(error.to_string().contains("reinit_after_fork"), "{error}");
                handle.reinit_after_fork().unwrap();
                finish(&mut event_loop);
                assert!(Source::new(&handle, pair().0).is_ok());
            })
            .join();
            finish(&mut event_loop);
        },
    );
}

#[test]
fn r327_libuv_fork_timer() {
    alone("r327_libuv_fork_timer", || {
        let (mut event_loop, handle) = new_loop();
        let (calls, call) = counter();
        let timer = Timer::new(&handle);
        timer.start(ms(5), ZERO, move |_| call()).unwrap();
        let task = handle.spawn(async { phaseloop::time::sleep(ms(5)).await });
        fork(|| {
            handle.reinit_after_fork().unwrap();
            finish(&mut event_loop);
            assert_eq!(calls.get(), 1);
            assert!(task.is_finished());
        })
        .join();
        finish(&mut event_loop);
        assert_eq!(calls.get(), 1);
    });
}

#[test]
fn r327_libuv_fork_socketpair_and_fork_socketpair_started() {
    alone(
        "r327_libuv_fork_socketpair_and_fork_socketpair_started",
        || {
            let (mut event_loop, handle) = new_loop();
            let (for_child, mut to_child) = pair();
            let (for_parent, mut to_parent) = pair();
            let (seen, see) = counter();
            let polls = [for_child, for_parent].map(|end| {
                let (poll, see) = (PollHandle::new(&handle, end).unwrap(), see.clone());
                let callback = move |poll: &PollHandle<UnixStream>, _| {
                    poll.get_ref().read_exact(&mut [0]).unwrap();
                    see();
                    poll.stop();
                };
                poll.start(PollEvents::READABLE, callback).unwrap();
                poll
            });
            // It has been in the kernel's hands before the fork.
            event_loop.run(RunMode::NoWait).unwrap();
            fork(|| {
                handle.reinit_after_fork().unwrap();
                polls[1].stop();
                to_child.write_all(b"x").unwrap();
                finish(&mut event_loop);
                assert_eq!(seen.get(), 1);
            })
            .join();
            polls[0].stop();
            to_parent.write_all(b"x").unwrap();
            finish(&mut event_loop);
            assert_eq!(seen.get(), 1);
        },
    );
}

#[test]
fn r327_futures_that_wait_for_a_source_go_on_in_the_child() {
    alone(
        "r327_futures_that_wait_for_a_source_go_on_in_the_child",
        || {
            let (mut event_loop, handle) = new_loop();
            let (ours, mut theirs) = pair();
            let source = Source::new(&handle, ours).unwrap();
            let task = handle.spawn(async move {
                let mut buffer = [0; 8];
                let read = source.read_with(|mut stream| stream.read(&mut buffer));
                read.await.unwrap()
            });
            event_loop.run(RunMode::NoWait).unwrap();
            assert_eq!(handle.keepers(), [(Keeper::Io, 1)]);
            fork(|| {
                handle.reinit_after_fork().unwrap();
                theirs.write_all(b"abc").unwrap();
                assert_eq!(event_loop.block_on(task).unwrap(), 3);
            })
            .join();
        },
    );
}

#[test]
fn r328_async_sends_are_cleared_and_the_handle_works() {
    alone("r328_async_sends_are_cleared_and_the_handle_works", || {
        let (mut event_loop, handle) = new_loop();
        let (calls, call) = counter();
        let sent = AsyncHandle::new(&handle, move |_| call()).unwrap();
        sent.send().unwrap();
        fork(|| {
            handle.reinit_after_fork().unwrap();
            event_loop.run(RunMode::NoWait).unwrap();
            assert_eq!(calls.get(), 0);
            // From a thread of the child, while the loop sleeps.
            let sender = sent.sender();
            let thread = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                sender.send().unwrap();
            });
            event_loop.run(RunMode::Once).unwrap();
            thread.join().unwrap();
            assert_eq!(calls.get(), 1);
        })
        .join();
        event_loop.run(RunMode::NoWait).unwrap();
        assert_eq!(calls.get(), 1, "the parent's is untouched");
    });
}

#[cfg(feature = "signal")]
#[test]
fn r328_libuv_fork_signal_to_child_and_fork_close_signal_in_child() {
    use phaseloop::signal::{Signal, SignalKind};
    alone(
        "r328_libuv_fork_signal_to_child_and_fork_close_signal_in_child",
        || {
            let (mut event_loop, handle) = new_loop();
            let (calls, call) = counter();
            let signal = Signal::new(&handle);
            signal
                .start(SignalKind::USR1, move |signal, _| {
                    call();
                    signal.stop();
                })
                .unwrap();
            // Caught, and not delivered before the fork.
            // SAFETY: no pointers; the signal has a handler.
            let raise = || unsafe { libc::raise(libc::SIGUSR1) };
            raise();
            fork(|| {
                handle.reinit_after_fork().unwrap();
                event_loop.run(RunMode::NoWait).unwrap();
                assert_eq!(calls.get(), 0, "that one is the parent's");
                raise();
                finish(&mut event_loop);
                assert_eq!(calls.get(), 1);
            })
            .join();
            finish(&mut event_loop);
            assert_eq!(calls.get(), 1, "one, not that of the child, too");
        },
    );
}

#[test]
fn r329_libuv_fork_threadpool_queue_work_simple() {
    alone("r329_libuv_fork_threadpool_queue_work_simple", || {
        let (mut event_loop, handle) = new_loop();
        let (calls, call) = counter();
        let queue = |handle: &LoopHandle| {
            let call = call.clone();
            let after = move |result: Result<u32, _>| {
                assert_eq!(result.unwrap(), 42);
                call();
            };
            handle.queue_work(|| 42, after).unwrap();
        };
        queue(&handle);
        finish(&mut event_loop);
        for _ in 0..2 {
            fork(|| {
                handle.reinit_after_fork().unwrap();
                queue(&handle);
                finish(&mut event_loop);
                assert_eq!(calls.get(), 2);
                // A grandchild has threads of its own, too.
                fork(|| {
                    handle.reinit_after_fork().unwrap();
                    queue(&handle);
                    finish(&mut event_loop);
                    assert_eq!(calls.get(), 3);
                })
                .join();
            })
            .join();
        }
        queue(&handle);
        finish(&mut event_loop);
        assert_eq!(calls.get(), 2);
    });
}

#[test]
fn r329_work_that_was_under_way_is_lost_and_keeps_no_loop_alive() {
    alone(
        "r329_work_that_was_under_way_is_lost_and_keeps_no_loop_alive",
        || {
            let (mut event_loop, handle) = new_loop();
            let (calls, call) = counter();
            let (open, opened) = std::sync::mpsc::channel::<()>();
            let (started, has_started) = std::sync::mpsc::channel();
            let work = move || {
                started.send(()).unwrap();
                let _ = opened.recv();
            };
            handle.queue_work(work, move |_| call()).unwrap();
            has_started.recv().unwrap();
            fork(|| {
                handle.reinit_after_fork().unwrap();
                assert_eq!(handle.keepers(), []);
                finish(&mut event_loop);
                assert_eq!(calls.get(), 0);
            })
            .join();
            assert_eq!(handle.keepers(), [(Keeper::Work, 1)]);
            drop(open);
            finish(&mut event_loop);
            assert_eq!(calls.get(), 1);
        },
    );
}

#[cfg(feature = "fs")]
#[test]
fn r327_libuv_fork_fs_events_child() {
    use phaseloop::fs::Watcher;
    alone("r327_libuv_fork_fs_events_child", || {
        let (event_loop, handle) = new_loop();
        let name = format!("phaseloop-fork-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory).unwrap();
        let mut watcher = Watcher::new_on(&handle, &directory).unwrap();
        fork(|| {
            handle.reinit_after_fork().unwrap();
            std::fs::write(directory.join("child"), "").unwrap();
            let event = event_loop.block_on(watcher.recv()).unwrap();
            assert_eq!(event.name().unwrap(), "child");
        })
        .join();
        // The parent was notified all the same: the child has read nothing of the parent's.
        let event = event_loop.block_on(watcher.recv()).unwrap();
        assert_eq!(event.name().unwrap(), "child");
        std::fs::remove_dir_all(&directory).unwrap();
    });
}

#[cfg(feature = "process")]
#[test]
fn the_children_of_the_parent_are_none_of_the_forked_process() {
    use phaseloop::process::Command;
    alone(
        "the_children_of_the_parent_are_none_of_the_forked_process",
        || {
            let (mut event_loop, handle) = new_loop();
            let mut command = Command::new("cat");
            command.stdin(std::process::Stdio::piped());
            let child = event_loop.enter(|| command.spawn().unwrap());
            fork(|| {
                handle.reinit_after_fork().unwrap();
                let ended = event_loop.block_on(child.exited());
                assert_eq!(ended.unwrap_err().raw_os_error(), Some(libc::ECHILD));
                finish(&mut event_loop);
            })
            .join();
            child.start_kill().unwrap();
            let status = event_loop.block_on(child.exited()).unwrap();
            assert_eq!(status.code(), None, "killed by the parent, not before");
        },
    );
}

/// Whether a stream has not ended.
fn is_open(stream: &mut UnixStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let read = stream.read(&mut [0]);
    read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[cfg(feature = "net")]
#[test]
fn a_child_that_drops_sockets_leaves_their_files_to_its_parent() {
    use phaseloop::net::{UnixDatagram, UnixListener};
    let test = "a_child_that_drops_sockets_leaves_their_files_to_its_parent";
    alone(test, || {
        let (event_loop, handle) = new_loop();
        let path = |kind| {
            let name = format!("phaseloop-fork-{kind}-{}", std::process::id());
            std::env::temp_dir().join(name)
        };
        let (one, two) = (path("listener"), path("datagram"));
        let sockets = event_loop.enter(|| {
            let listener = UnixListener::bind(&one).unwrap();
            (listener, UnixDatagram::bind(&two).unwrap())
        });
        let sockets = RefCell::new(Some(sockets));
        fork(|| {
            handle.reinit_after_fork().unwrap();
            drop(sockets.take());
        })
        .join();
        fork(|| drop(sockets.take())).join();
        assert!(one.exists() && two.exists());
        drop(sockets.take());
        assert!(!one.exists() && !two.exists());
    });
}

#[cfg(feature = "net")]
#[test]
fn a_child_that_drops_a_half_leaves_the_direction_open() {
    let test = "a_child_that_drops_a_half_leaves_the_direction_open";
    alone(test, || {
        let (event_loop, handle) = new_loop();
        let (ours, mut theirs) = pair();
        let stream = event_loop.enter(|| phaseloop::net::UnixStream::from_std(ours).unwrap());
        let halves = RefCell::new(Some(stream.into_split()));
        fork(|| drop(halves.take())).join();
        assert!(is_open(&mut theirs));
        fork(|| {
            handle.reinit_after_fork().unwrap();
            drop(halves.take());
        })
        .join();
        assert!(is_open(&mut theirs));
        let (_reader, writer) = halves.take().unwrap();
        drop(writer);
        assert!(!is_open(&mut theirs));
    });
}

#[cfg(feature = "process")]
#[test]
fn a_child_that_drops_the_channel_to_the_grandparent_leaves_it_open() {
    use phaseloop::process::Channel;
    use std::os::fd::AsRawFd;
    let test = "a_child_that_drops_the_channel_to_the_grandparent_leaves_it_open";
    alone(test, || {
        let (event_loop, _handle) = new_loop();
        let (ours, mut theirs) = pair();
        let inode = rustix::fs::fstat(&ours).unwrap().st_ino;
        let described = format!("{}:{inode}", ours.as_raw_fd());
        // SAFETY: no other thread of this process reads the environment now.
        unsafe { std::env::set_var("PHASELOOP_CHANNEL", described) };
        let channel = event_loop.enter(|| Channel::from_env().unwrap().unwrap());
        let channel = RefCell::new(Some(channel));
        fork(|| drop(channel.take())).join();
        assert!(is_open(&mut theirs));
        drop(channel.take());
        assert!(!is_open(&mut theirs));
    });
}

#[cfg(feature = "fs")]
#[test]
fn a_child_that_drops_a_watcher_does_not_silence_its_parent() {
    use phaseloop::fs::Watcher;
    let test = "a_child_that_drops_a_watcher_does_not_silence_its_parent";
    alone(test, || {
        let (event_loop, handle) = new_loop();
        let name = format!("phaseloop-fork-drop-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let [one, two] = ["one", "two"].map(|name| directory.join(name));
        std::fs::create_dir_all(&one).unwrap();
        std::fs::create_dir(&two).unwrap();
        let first = Watcher::new_on(&handle, &one).unwrap();
        let _second = Watcher::new_on(&handle, &two).unwrap();
        let first = RefCell::new(Some(first));
        fork(|| drop(first.take())).join();
        std::fs::write(one.join("file"), "").unwrap();
        let mut first = first.take().unwrap();
        let event = event_loop.block_on(first.recv()).unwrap();
        assert_eq!(event.name().unwrap(), "file");
        std::fs::remove_dir_all(&directory).unwrap();
    });
}

#[cfg(feature = "tty")]
#[test]
fn a_child_that_drops_a_terminal_leaves_its_mode_to_the_parent() {
    use crate::util::pty::open_pty;
    use phaseloop::tty::{Mode, Tty};
    use rustix::termios::{LocalModes, tcgetattr};
    let test = "a_child_that_drops_a_terminal_leaves_its_mode_to_the_parent";
    alone(test, || {
        let (event_loop, _handle) = new_loop();
        let (_controller, terminal) = open_pty();
        let is_raw = || {
            let settings = tcgetattr(&terminal).unwrap();
            !settings.local_modes.contains(LocalModes::ICANON)
        };
        let tty = event_loop.enter(|| Tty::from_fd(&terminal).unwrap());
        tty.set_mode(Mode::Raw).unwrap();
        let tty = RefCell::new(Some(tty));
        fork(|| drop(tty.take())).join();
        assert!(is_raw());
        drop(tty.take());
        assert!(!is_raw());
    });
}

/// Keeps the kinds of errors that a caller can distinguish.
#[test]
fn the_refusal_is_no_os_error() {
    alone("the_refusal_is_no_os_error", || {
        let (mut event_loop, handle) = new_loop();
        let timer = Timer::new(&handle);
        timer.start(ms(1), ZERO, |_| ()).unwrap();
        fork(|| {
            let error = event_loop.run(RunMode::Default).unwrap_err();
            assert_eq!(
                (error.kind(), error.raw_os_error()),
                (ErrorKind::Other, None)
            );
        })
        .join();
    });
}

/// The number of the descriptor stays, so the host in the child waits for the loop of the child.
#[test]
fn r327_the_owned_descriptor_tells_of_timers_in_the_child() {
    alone(
        "r327_the_owned_descriptor_tells_of_timers_in_the_child",
        || {
            let (mut event_loop, handle) = new_loop();
            let backend = event_loop.backend().unwrap();
            let fired = Rc::new(Cell::new(false));
            let (timer, mark) = (Timer::new(&handle), fired.clone());
            timer.start(ms(20), ZERO, move |_| mark.set(true)).unwrap();
            let mut drive = |reinit: bool| {
                if reinit {
                    handle.reinit_after_fork().unwrap();
                    event_loop.turn(Some(ZERO)).unwrap();
                }
                while !fired.get() {
                    // It would wait for ever if the timer did not make it readable.
                    let mut fds = [rustix::event::PollFd::new(
                        &backend,
                        rustix::event::PollFlags::IN,
                    )];
                    rustix::event::poll(&mut fds, None).unwrap();
                    event_loop.turn(Some(ZERO)).unwrap();
                }
            };
            let child = fork(|| drive(true));
            drive(false);
            child.join();
        },
    );
}
