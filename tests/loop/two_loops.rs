//! Futures that belong to one loop and are awaited on another: when their own loop goes, they are
//! woken and come to an end.

use crate::util::trace::ms;
use std::future::Future;

use phaseloop::pool::PoolBuilder;
use phaseloop::time::sleep;
use phaseloop::{Builder, spawn, spawn_blocking};
#[cfg(unix)]
use rustix::io::Errno;
use tokio_test::assert_pending;

/// Awaits what `make` makes on one loop on another one, and drops the first meanwhile.
/// `run_until_done` would report a main future that is never woken.
fn outcome<F: Future + 'static>(make: impl FnOnce() -> F) -> F::Output
where
    F::Output: 'static,
{
    let pool = PoolBuilder::new().threads(1).build();
    let [home, mut other] = [(); 2].map(|()| Builder::new().pool(pool.clone()).build().unwrap());
    let future = home.enter(make);
    let done = other.run_until_done(async move {
        let task = spawn(future);
        // The pool has one thread: with this job the one of the future has ended, too, and its end
        // is in the inbox of the loop that does not run.
        spawn_blocking(|| ()).await.unwrap();
        assert!(!task.is_finished());
        drop(home);
        task.await.unwrap()
    });
    done.unwrap()
}

#[test]
fn a_sleep_ends_with_its_loop() {
    outcome(|| sleep(ms(60_000)));
}

#[cfg(feature = "fs")]
#[test]
fn a_job_that_has_ended_is_delivered_though_its_loop_goes() {
    // Begun on its own loop by the first poll.
    let begun = || {
        let mut read = Box::pin(phaseloop::fs::read(file!()));
        assert_pending!(tokio_test::task::spawn(&mut read).poll());
        read
    };
    let bytes = outcome(begun).unwrap();
    assert!(
        String::from_utf8(bytes)
            .unwrap()
            .starts_with("//! Futures that belong")
    );
}

#[cfg(all(unix, feature = "signal"))]
#[test]
fn a_stream_of_signals_ends_with_its_loop() {
    use phaseloop::signal::{SignalKind, Signals};
    let signal = outcome(|| {
        let mut signals = Signals::new([SignalKind::USR2]).unwrap();
        async move { signals.recv().await }
    });
    assert_eq!(signal, None);
}

#[cfg(all(unix, feature = "process"))]
#[test]
fn a_wait_for_a_child_fails_with_its_loop() {
    use phaseloop::process::Command;
    let error = outcome(|| {
        let mut child = Command::new("sleep")
            .arg("60")
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        async move { child.wait().await.unwrap_err() }
    });
    assert_eq!(error.raw_os_error(), Some(Errno::CANCELED.raw_os_error()));
}

#[cfg(all(target_os = "linux", feature = "fs"))]
#[test]
fn a_watch_ends_with_its_loop() {
    let event = outcome(|| {
        let mut watch = phaseloop::fs::watch(".").unwrap();
        async move { watch.recv().await.is_none() }
    });
    assert!(event);
}

#[test]
fn a_phase_ends_with_its_loop() {
    let begun = || {
        let mut phase = Box::pin(phaseloop::phase::check());
        assert_pending!(tokio_test::task::spawn(&mut phase).poll());
        phase
    };
    outcome(begun);
}

#[test]
fn a_close_ends_with_its_loop() {
    let timer_closes = || {
        let handle = phaseloop::LoopHandle::current();
        let timer = phaseloop::time::Timer::new(&handle);
        timer.close()
    };
    outcome(timer_closes);
}

#[cfg(all(unix, feature = "net"))]
#[test]
fn a_read_fails_with_its_loop() {
    use futures::AsyncReadExt;
    let error = outcome(|| {
        let (mut one, other) = phaseloop::net::UnixStream::pair().unwrap();
        async move {
            let error = one.read(&mut [0]).await.unwrap_err();
            drop(other);
            error
        }
    });
    assert_eq!(error.raw_os_error(), Some(Errno::CANCELED.raw_os_error()));
}
