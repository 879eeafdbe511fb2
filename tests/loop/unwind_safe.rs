//! Types that may be used after a panic that was caught: those for which tokio states it, and those
//! that other threads hold. The compiler is the test.

use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::rc::Rc;

use phaseloop::{EventLoop, LoopHandle, fs, io, net, process, signal, task, time};

fn is_unwind_safe<T: UnwindSafe + RefUnwindSafe>() {}

#[test]
fn what_tokio_calls_unwind_safe_is_so_here() {
    // Nothing is asked of the output.
    is_unwind_safe::<task::JoinHandle<Rc<std::cell::Cell<u8>>>>();
    is_unwind_safe::<task::AbortHandle>();
    is_unwind_safe::<task::JoinError>();
    is_unwind_safe::<task::Id>();
    is_unwind_safe::<EventLoop>();
    is_unwind_safe::<LoopHandle>();
    is_unwind_safe::<time::Elapsed>();
    is_unwind_safe::<time::MissedTicks>();
    is_unwind_safe::<net::TcpListener>();
    is_unwind_safe::<net::TcpSocket>();
    is_unwind_safe::<net::TcpStream>();
    is_unwind_safe::<net::UdpSocket>();
    #[cfg(unix)]
    {
        is_unwind_safe::<net::UnixDatagram>();
        is_unwind_safe::<net::UnixListener>();
        is_unwind_safe::<net::UnixStream>();
    }
    is_unwind_safe::<io::PipeReader>();
    is_unwind_safe::<io::PipeWriter>();
    is_unwind_safe::<io::Stderr>();
    is_unwind_safe::<io::Stdin>();
    is_unwind_safe::<io::Stdout>();
    is_unwind_safe::<fs::DirBuilder>();
    is_unwind_safe::<fs::DirEntry>();
    is_unwind_safe::<fs::OpenOptions>();
    is_unwind_safe::<process::ChildStderr>();
    is_unwind_safe::<process::ChildStdin>();
    is_unwind_safe::<process::ChildStdout>();
    is_unwind_safe::<signal::SignalKind>();
}

#[test]
fn what_other_threads_hold_is_unwind_safe() {
    is_unwind_safe::<phaseloop::AsyncSender>();
    is_unwind_safe::<phaseloop::Error>();
    is_unwind_safe::<phaseloop::Remote>();
    is_unwind_safe::<phaseloop::RemoteJoinHandle<Rc<std::cell::Cell<u8>>>>();
    is_unwind_safe::<process::Command>();
}

/// What the marks promise.
#[test]
fn a_loop_and_its_handles_are_usable_after_a_panic_that_was_caught() {
    let event_loop = EventLoop::new().unwrap();
    let (handle, remote) = (event_loop.handle(), event_loop.remote());
    let task = handle.spawn(async { 7 });
    let (of_task, of_loop) = (task.abort_handle(), &event_loop);
    let caught = catch_unwind(|| {
        remote.call(|| panic!("on purpose")).unwrap();
        of_loop.block_on(std::future::pending::<()>())
    });
    assert!(caught.is_err());
    assert!(!remote.is_closed() && of_task.is_finished());
    assert_eq!(event_loop.block_on(task).unwrap(), 7);
    let mut command = process::Command::new("true");
    let text = catch_unwind(AssertUnwindSafe(|| drop(command.spawn())));
    assert!(text.is_err(), "no loop runs here");
    let status = event_loop.block_on(async { command.status().await });
    assert!(status.unwrap().success());
}
