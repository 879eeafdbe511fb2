//! Watching by looking again and again, R311–R315: what is an event, and when looks are made.
//!
//! On the paused clock, which does not move while a look is under way: looks take no time unless a
//! test lets it pass. The pool of the loop counts them.
//!
//! Ours differs in R311 (a watcher is started when it is made), in R313 (after an error there is no
//! current state instead of an empty one) and in R116 (a close does not wait for the look that is
//! under way).
#![cfg(feature = "fs")]

use crate::util::files::Directory;
use crate::util::panics::panic_of;
use crate::util::trace::{Trace, ZERO, busy, finish, ms, turn};
use std::fs;
use std::io::ErrorKind;
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use futures::{FutureExt, StreamExt};
use phaseloop::fs::{PollEvent, PollWatcher, watch_poll};
use phaseloop::pool::{Class, Pool, PoolBuilder};
use phaseloop::time::sleep;
use phaseloop::{Builder, EventLoop, Handle, Keeper, LoopHandle, OsError, spawn_blocking_as};
use tokio_test::assert_pending;

const PERIOD: Duration = ms(10);

/// A loop on the paused clock with a pool of one thread.
fn one_thread() -> (EventLoop, LoopHandle, Trace, Pool) {
    let pool = PoolBuilder::new().threads(1).build();
    let event_loop = Builder::new().start_paused(true).pool(pool.clone());
    let event_loop = event_loop.build().unwrap();
    let handle = event_loop.handle();
    let trace = Trace::new(&handle);
    (event_loop, handle, trace, pool)
}

/// Holds the only thread of the pool until the sender is dropped.
fn hold(event_loop: &EventLoop) -> mpsc::Sender<()> {
    let (release, wait) = mpsc::channel();
    let (starts, started) = mpsc::channel();
    event_loop.enter(|| {
        drop(spawn_blocking_as(Class::Cpu, move || {
            starts.send(()).unwrap();
            wait.recv()
        }));
    });
    started.recv().unwrap();
    release
}

/// As a trace has it: the sizes before and now, or the error.
fn line(event: &PollEvent) -> String {
    let before = event.previous.as_ref().map(fs::Metadata::len);
    let before = before.map_or("none".to_owned(), |length| length.to_string());
    match &event.current {
        Ok(current) => format!("{before}>{}", current.len()),
        Err(error) => format!("{before}>{:?}", error.kind()),
    }
}

/// Logs events with the time.
fn log(mut watcher: PollWatcher, trace: &Trace) {
    let trace = trace.clone();
    drop(watcher.event_loop().spawn(async move {
        while let Some(event) = watcher.next().await {
            trace.stamp(line(&event));
        }
        trace.log("end");
    }));
}

/// Lets looks be made for a while.
fn rest(event_loop: &mut EventLoop, duration: Duration) {
    event_loop.block_on(async { sleep(duration).await });
}

/// Nothing, a file, another size, nothing again, each for several looks.
#[test]
fn r312_r313_libuv_fs_poll() {
    let dir = Directory::new("watch");
    let (mut event_loop, handle, trace, _) = one_thread();
    log(
        PollWatcher::new_on(&handle, dir.path("a"), PERIOD).unwrap(),
        &trace,
    );
    rest(&mut event_loop, ms(35));
    assert_eq!(trace.take(), "none>NotFound@0", "once for many");
    dir.file("a", "1");
    rest(&mut event_loop, ms(30));
    assert_eq!(trace.take(), "none>1@40");
    dir.file("a", "22");
    rest(&mut event_loop, ms(30));
    assert_eq!(trace.take(), "1>2@70");
    fs::remove_file(dir.path("a")).unwrap();
    rest(&mut event_loop, ms(30));
    assert_eq!(trace.take(), "2>NotFound@100");
    dir.file("a", "22");
    rest(&mut event_loop, ms(30));
    assert_eq!(
        trace.take(),
        "2>2@130",
        "after an error, a success is one in any case"
    );
}

#[test]
fn r312_a_first_success_is_no_event_and_another_error_is_one() {
    let dir = Directory::new("watch");
    let path = dir.file("a", "");
    let (mut event_loop, handle, trace, _) = one_thread();
    // Where the last part of a path is in a file, Unix has another error. Windows has none, so there
    // is no change when the file goes.
    log(
        PollWatcher::new_on(&handle, path.join("b"), PERIOD).unwrap(),
        &trace,
    );
    log(PollWatcher::new_on(&handle, &path, PERIOD).unwrap(), &trace);
    rest(&mut event_loop, ms(25));
    let (first, then) = if cfg!(unix) {
        ("none>NotADirectory@0", "none>NotFound@30 0>NotFound@30")
    } else {
        ("none>NotFound@0", "0>NotFound@30")
    };
    assert_eq!(trace.take(), first);
    fs::remove_file(&path).unwrap();
    rest(&mut event_loop, ms(20));
    assert_eq!(trace.take(), then);
}

// R312: Windows has one number for a file that is not there, and another for its directory; libuv
// knows one error.
#[test]
fn r312_a_missing_file_whose_directory_goes_is_no_other_error() {
    let dir = Directory::new("watch");
    let below = dir.path("below");
    fs::create_dir(&below).unwrap();
    let (mut event_loop, handle, trace, _) = one_thread();
    log(
        PollWatcher::new_on(&handle, below.join("a"), PERIOD).unwrap(),
        &trace,
    );
    rest(&mut event_loop, ms(25));
    assert_eq!(trace.take(), "none>NotFound@0");
    fs::remove_dir(&below).unwrap();
    rest(&mut event_loop, ms(30));
    assert_eq!(trace.take(), "");
}

#[test]
fn the_error_names_the_path() {
    let (event_loop, handle, ..) = one_thread();
    for (path, kind) in [
        ("/no/such/file", ErrorKind::NotFound),
        ("a\0b", ErrorKind::InvalidInput),
    ] {
        let mut watcher = PollWatcher::new_on(&handle, path, PERIOD).unwrap();
        let event = event_loop.block_on(watcher.recv()).unwrap();
        let error = event.current.unwrap_err();
        assert_eq!(error.kind(), kind);
        let inner = OsError::of(&error).unwrap();
        assert_eq!(inner.operation(), "watch_poll");
        assert_eq!(inner.path(), Some(path.as_ref()));
    }
}

/// Each of these changes one thing of a file; its size stays.
#[cfg(unix)]
#[test]
fn r313_what_counts_as_a_change() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Directory::new("watch");
    let path = dir.file("a", "1");
    let (mut event_loop, handle, trace, _) = one_thread();
    log(PollWatcher::new_on(&handle, &path, PERIOD).unwrap(), &trace);
    rest(&mut event_loop, ms(5));
    let set_modified = |time: SystemTime| {
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(time).unwrap();
    };
    let changes: [(&str, &dyn Fn()); 4] = [
        ("permissions", &|| {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }),
        ("time", &|| set_modified(SystemTime::UNIX_EPOCH)),
        ("another file", &|| {
            let other = dir.file("b", "1");
            fs::rename(other, &path).unwrap();
        }),
        ("a directory", &|| {
            fs::remove_file(&path).unwrap();
            fs::create_dir(&path).unwrap();
        }),
    ];
    for (what, change) in changes {
        rest(&mut event_loop, ms(20));
        assert_eq!(trace.take(), "", "before {what}");
        change();
        rest(&mut event_loop, ms(10));
        assert!(trace.take().starts_with("1>"), "{what}");
    }
}

#[test]
fn r313_looking_is_no_change() {
    let dir = Directory::new("watch");
    let path = dir.file("a", "1");
    let (mut event_loop, handle, trace, pool) = one_thread();
    log(PollWatcher::new_on(&handle, &path, PERIOD).unwrap(), &trace);
    rest(&mut event_loop, ms(5));
    for _ in 0..10 {
        fs::read(&path).unwrap();
        rest(&mut event_loop, ms(10));
    }
    assert_eq!(trace.take(), "");
    assert_eq!(pool.stats().started, 11);
}

#[test]
fn r311_an_interval_of_zero_is_a_millisecond() {
    let (mut event_loop, handle, trace, pool) = one_thread();
    log(PollWatcher::new_on(&handle, "/", ZERO).unwrap(), &trace);
    rest(&mut event_loop, Duration::from_micros(20_500));
    assert_eq!(pool.stats().started, 21);
}

#[test]
fn a_huge_interval_is_one_look() {
    let (mut event_loop, handle, trace, pool) = one_thread();
    log(
        PollWatcher::new_on(&handle, "/", Duration::MAX).unwrap(),
        &trace,
    );
    rest(&mut event_loop, Duration::from_secs(1_000_000));
    assert_eq!(pool.stats().started, 1);
}

/// The only thread is held, so that the look waits. Meanwhile time passes.
#[test]
fn r314_the_grid_is_kept_and_looks_do_not_overlap() {
    let dir = Directory::new("watch");
    let path = dir.file("a", "1");
    let (mut event_loop, handle, trace, pool) = one_thread();
    log(PollWatcher::new_on(&handle, &path, PERIOD).unwrap(), &trace);
    rest(&mut event_loop, ms(5));
    let release = hold(&event_loop);
    // Until the second look, of the 10th millisecond, stands behind the job.
    event_loop.enter(|| busy(ms(5)));
    while pool.stats().queued == 0 {
        turn(&mut event_loop);
    }
    for _ in 0..3 {
        event_loop.enter(|| busy(ms(9)));
        turn(&mut event_loop);
        assert_eq!(pool.stats().queued, 1, "one at a time");
    }
    dir.file("a", "22");
    drop(release);
    rest(&mut event_loop, ms(1));
    assert_eq!(trace.take(), "1>2@37");
    dir.file("a", "333");
    rest(&mut event_loop, ms(10));
    assert_eq!(trace.take(), "2>3@40", "not at 47");
}

/// Who does not wait for events has no looks made.
#[test]
fn after_the_first_one_looks_are_made_for_who_waits() {
    let dir = Directory::new("watch");
    let path = dir.file("a", "1");
    let (mut event_loop, handle, _, pool) = one_thread();
    let mut watcher = PollWatcher::new_on(&handle, &path, PERIOD).unwrap();
    rest(&mut event_loop, ms(100));
    assert_eq!(pool.stats().started, 1);
    dir.file("a", "22");
    let event = event_loop.block_on(watcher.recv()).unwrap();
    assert_eq!(
        line(&event),
        "1>2",
        "since the first look, which was made at once"
    );
}

#[test]
fn giving_up_a_recv_loses_nothing() {
    let dir = Directory::new("watch");
    let path = dir.file("a", "1");
    let (mut event_loop, handle, ..) = one_thread();
    let mut watcher = PollWatcher::new_on(&handle, &path, PERIOD).unwrap();
    event_loop.enter(|| assert_pending!(tokio_test::task::spawn(watcher.recv()).poll()));
    rest(&mut event_loop, ms(5));
    event_loop.enter(|| assert_pending!(tokio_test::task::spawn(watcher.recv()).poll()));
    dir.file("a", "22");
    rest(&mut event_loop, ms(5));
    let event = event_loop.block_on(watcher.recv()).unwrap();
    assert_eq!(line(&event), "1>2");
}

// Beginning and end.

#[test]
fn libuv_fs_poll_getpath() {
    let (_event_loop, handle, ..) = one_thread();
    let watcher = PollWatcher::new_on(&handle, "/tmp/x", PERIOD).unwrap();
    assert_eq!(watcher.path().to_str(), Some("/tmp/x"));
    assert!(format!("{watcher:?}").contains("interval: 10ms"));
}

#[test]
fn libuv_fs_poll_ref() {
    let (mut event_loop, handle, ..) = one_thread();
    let mut watcher = PollWatcher::new_on(&handle, "/", PERIOD).unwrap();
    assert_eq!(handle.keepers(), [(Keeper::Work, 1), (Keeper::Watch, 1)]);
    watcher.unref();
    // The look that is under way keeps the loop alive, and is the last.
    finish(&mut event_loop);
    event_loop.enter(|| assert_pending!(tokio_test::task::spawn(watcher.recv()).poll()));
    assert!(!handle.is_alive(), "neither does the wait for the next");
    watcher.ref_();
    assert_eq!(handle.keepers(), [(Keeper::Watch, 1)]);
    drop(watcher);
    finish(&mut event_loop);
}

/// The only thread is held: the look has not even begun.
#[test]
fn r116_libuv_fs_poll_close_request() {
    let (mut event_loop, handle, trace, pool) = one_thread();
    let release = hold(&event_loop);
    let mut watcher = PollWatcher::new_on(&handle, "/no/such", PERIOD).unwrap();
    watcher.close().then(trace.call("closed"));
    assert!(!watcher.is_active() && watcher.is_closing());
    turn(&mut event_loop);
    assert_eq!(trace.take(), "closed");
    assert_eq!(
        watcher.recv().now_or_never().map(|event| event.is_none()),
        Some(true)
    );
    assert_eq!(pool.stats().started, 1, "the look was not waited for");
    drop(release);
    finish(&mut event_loop);
}

/// Also `fs_poll_close_request_multi_stop_start`: there is no stop, and so many watchers come and
/// go.
#[test]
fn libuv_fs_poll_close_request_multi_start_stop() {
    let (mut event_loop, handle, trace, _) = one_thread();
    for _ in 0..10 {
        let mut watcher = PollWatcher::new_on(&handle, "/no/such", PERIOD).unwrap();
        drop(PollWatcher::new_on(&handle, "/", PERIOD).unwrap());
        watcher.close().then(trace.call("closed"));
        drop(watcher);
    }
    finish(&mut event_loop);
    assert_eq!(trace.take(), "closed ".repeat(10).trim_end());
}

#[test]
fn libuv_fs_poll_close_request_stop_when_active() {
    let (mut event_loop, handle, trace, _) = one_thread();
    let mut watcher = PollWatcher::new_on(&handle, "/", PERIOD).unwrap();
    let log = trace.clone();
    let waiting = handle.spawn(async move {
        // Between two looks.
        assert!(
            phaseloop::time::timeout(ms(15), watcher.recv())
                .await
                .is_err()
        );
        watcher.close().await;
        log.stamp("closed");
        assert!(watcher.recv().await.is_none());
    });
    finish(&mut event_loop);
    assert!(waiting.is_finished());
    assert_eq!(trace.take(), "closed@15");
}

#[test]
fn a_loop_goes_with_its_watchers() {
    let (event_loop, handle, ..) = one_thread();
    let mut watcher = PollWatcher::new_on(&handle, "/", PERIOD).unwrap();
    drop(event_loop);
    let next = watcher.recv().now_or_never().expect("known at once");
    assert!(next.is_none());
    let error = PollWatcher::new_on(&handle, "/", PERIOD).unwrap_err();
    assert!(error.to_string().contains("dropped"), "{error}");
}

#[test]
fn outside_a_loop_the_panic_says_what_to_call() {
    let text = panic_of(|| watch_poll("/", PERIOD));
    assert!(text.contains("block_on"), "{text}");
}
