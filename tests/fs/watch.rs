//! File watchers, R304–R310: which events a watcher reports, in which order, and when a watch ends.
//!
//! The kernel queues an event before the call that causes it returns, so no test waits: one turn
//! delivers.
//!
//! Ours differs in R304 and R309 (a watcher is started when it is made, and has no flags), in R310
//! (an overflow is an event) and where the watched thing is gone (the stream ends; libuv's handle
//! stays).
#![cfg(all(target_os = "linux", feature = "fs"))]

use crate::util::child::in_child;
use crate::util::files::Directory;
use crate::util::panics::panic_of;
use crate::util::trace::{Trace, finish, ms, paused, turn};
use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::rc::Rc;

use futures::{FutureExt, StreamExt};
use phaseloop::fs::{WatchEvent, WatchKind, Watcher, watch};
use phaseloop::phase::Check;
use phaseloop::task::AbortHandle;
use phaseloop::{EventLoop, Handle, Keeper, LoopHandle, OsError, queue_microtask};
use tokio_test::assert_pending;

/// As a line of a trace has it: `created a`.
fn line(event: &WatchEvent) -> String {
    let kind = match event.kind {
        WatchKind::Modified => "modified",
        WatchKind::Attributes => "attributes",
        WatchKind::Created => "created",
        WatchKind::Removed => "removed",
        WatchKind::MovedFrom(_) => "from",
        WatchKind::MovedTo(_) => "to",
        WatchKind::SelfRemoved => "self-removed",
        WatchKind::SelfMoved => "self-moved",
        WatchKind::Overflow => "overflow",
        _ => "other",
    };
    let name = event.name().unwrap_or_default().to_string_lossy();
    format!("{kind}:{name}")
}

/// Logs what a watcher gets, and its end.
fn log(mut watcher: Watcher, trace: &Trace, label: &'static str) -> AbortHandle {
    let trace = trace.clone();
    let task = watcher.event_loop().spawn(async move {
        while let Some(event) = watcher.recv().await {
            trace.log(format_args!("{label}{}", line(&event)));
        }
        trace.log(format_args!("{label}end"));
    });
    task.abort_handle()
}

/// A loop with a logged watcher on a path.
fn watching(path: &Path) -> (EventLoop, LoopHandle, Trace) {
    let (event_loop, handle, trace) = paused();
    log(Watcher::new_on(&handle, path).unwrap(), &trace, "");
    (event_loop, handle, trace)
}

// The events.

#[test]
fn r305_libuv_fs_event_watch_dir() {
    let dir = Directory::new("watch");
    let (mut event_loop, _, trace) = watching(dir.0.as_path());
    turn(&mut event_loop);
    assert_eq!(trace.take(), "");
    dir.file("a", "text");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "created:a modified:a");
    fs::set_permissions(dir.path("a"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::remove_file(dir.path("a")).unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "attributes:a removed:a");
}

#[test]
fn r305_a_rename_in_a_directory_is_two_events_that_belong_together() {
    let dir = Directory::new("watch");
    dir.file("old", "");
    let (event_loop, handle, _) = paused();
    let mut watcher = Watcher::new_on(&handle, dir.0.as_path()).unwrap();
    fs::rename(dir.path("old"), dir.path("new")).unwrap();
    let events = event_loop.block_on(async { [watcher.recv().await, watcher.recv().await] });
    let [from, to] = events.map(Option::unwrap);
    assert_eq!((&from.path, &to.path), (&dir.path("old"), &dir.path("new")));
    let (WatchKind::MovedFrom(a), WatchKind::MovedTo(b)) = (from.kind, to.kind) else {
        panic!("{from:?} {to:?}");
    };
    assert_eq!(a, b);
}

#[test]
fn r305_the_two_words_of_libuv() {
    let changes = [WatchKind::Modified, WatchKind::Attributes];
    let renames = [
        WatchKind::Created,
        WatchKind::Removed,
        WatchKind::MovedFrom(1),
        WatchKind::MovedTo(1),
        WatchKind::SelfRemoved,
        WatchKind::SelfMoved,
        WatchKind::Unmounted,
    ];
    assert!(
        changes
            .iter()
            .all(|kind| kind.is_change() && !kind.is_rename())
    );
    assert!(
        renames
            .iter()
            .all(|kind| kind.is_rename() && !kind.is_change())
    );
    let overflow = WatchKind::Overflow;
    assert!(!overflow.is_change() && !overflow.is_rename());
}

#[test]
fn r306_libuv_fs_event_watch_file() {
    let dir = Directory::new("watch");
    let path = dir.file("a", "1");
    let (mut event_loop, _, trace) = watching(&path);
    dir.file("a", "2");
    turn(&mut event_loop);
    // Emptied, then written: the kernel makes one of equal events in a row.
    assert_eq!(trace.take(), "modified:a");
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(0)
        .unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "modified:a");
}

#[test]
fn libuv_fs_event_watch_file_exact_path() {
    let dir = Directory::new("watch");
    let path = dir.file("file.js", "");
    dir.file("file.jsx", "");
    let (mut event_loop, _, trace) = watching(&path);
    dir.file("file.jsx", "x");
    dir.file("file.j", "x");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "");
    dir.file("file.js", "");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "modified:file.js");
}

/// In a process of its own, which may change its directory.
#[test]
fn libuv_fs_event_watch_file_current_dir() {
    let child = in_child(&[], "libuv_fs_event_watch_file_current_dir", || {
        let dir = Directory::new("watch");
        dir.file("a", "");
        std::env::set_current_dir(dir.0.as_path()).unwrap();
        let (event_loop, handle, _) = paused();
        let mut watcher = Watcher::new_on(&handle, "a").unwrap();
        dir.file("a", "text");
        let event = event_loop.block_on(watcher.recv()).unwrap();
        assert_eq!(event.path, Path::new("a"));
        assert_eq!(event.name(), Some(OsStr::new("a")));
    });
    succeeded(child);
}

#[track_caller]
fn succeeded(child: Option<std::process::Child>) {
    let Some(child) = child else { return };
    let child = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{stderr}");
}

#[test]
fn r309_directories_inside_are_not_watched() {
    let dir = Directory::new("watch");
    fs::create_dir(dir.path("inside")).unwrap();
    let (mut event_loop, _, trace) = watching(dir.0.as_path());
    dir.file("inside/a", "");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "");
}

#[test]
fn names_of_any_bytes_and_directories() {
    let dir = Directory::new("watch");
    let (event_loop, handle, _) = paused();
    let mut watcher = Watcher::new_on(&handle, dir.0.as_path()).unwrap();
    let name = OsStr::from_bytes(b"\xff \n");
    fs::create_dir(dir.path(name)).unwrap();
    let event = event_loop.block_on(watcher.recv()).unwrap();
    assert_eq!(event.name(), Some(name));
    assert_eq!((event.kind, event.is_directory), (WatchKind::Created, true));
    dir.file("file", "");
    assert!(!event_loop.block_on(watcher.recv()).unwrap().is_directory);
}

#[test]
fn links_are_followed() {
    let dir = Directory::new("watch");
    dir.file("file", "");
    symlink(dir.path("file"), dir.path("link")).unwrap();
    fs::hard_link(dir.path("file"), dir.path("other")).unwrap();
    let (mut event_loop, handle, trace) = paused();
    for (name, label) in [("file", "1:"), ("link", "2:"), ("other", "3:")] {
        log(
            Watcher::new_on(&handle, dir.path(name)).unwrap(),
            &trace,
            label,
        );
    }
    fs::write(dir.path("file"), "").unwrap();
    turn(&mut event_loop);
    assert_eq!(
        trace.take(),
        "1:modified:file 2:modified:link 3:modified:other"
    );
}

// Several watchers.

#[test]
fn r307_libuv_fs_event_watch_file_twice() {
    let dir = Directory::new("watch");
    let path = dir.file("a", "");
    let (mut event_loop, handle, trace) = paused();
    let (first, second) = (
        Watcher::new_on(&handle, &path),
        Watcher::new_on(&handle, &path),
    );
    // The order is that of their making, not that of waiting.
    log(second.unwrap(), &trace, "2:");
    log(first.unwrap(), &trace, "1:");
    turn(&mut event_loop);
    dir.file("a", "x");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    turn(&mut event_loop);
    assert_eq!(
        trace.take(),
        "1:modified:a 2:modified:a 1:attributes:a 2:attributes:a"
    );
}

#[test]
fn libuv_fs_event_start_and_close() {
    let dir = Directory::new("watch");
    let (mut event_loop, handle, trace) = paused();
    let [first, second] = [(); 2].map(|()| Watcher::new_on(&handle, dir.0.as_path()).unwrap());
    first.close().then(trace.call("closed"));
    log(second, &trace, "2:");
    dir.file("a", "");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "2:created:a closed");
}

/// More than the kernel lets one user have descriptors for.
#[test]
fn all_watchers_of_a_loop_share_a_descriptor() {
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_user_instances").unwrap();
    let many = limit.trim().parse::<usize>().unwrap().min(1000) + 10;
    let dir = Directory::new("watch");
    let (mut event_loop, handle, trace) = paused();
    for number in 0..many {
        let path = dir.path(number.to_string());
        fs::create_dir(&path).unwrap();
        log(Watcher::new_on(&handle, &path).unwrap(), &trace, "");
    }
    dir.file("3/a", "");
    dir.file("1/b", "");
    turn(&mut event_loop);
    let all = trace.take();
    assert_eq!(all, "created:a created:b");
}

/// In a process of its own, whose descriptors are counted.
#[test]
fn nothing_is_watched_for_nobody() {
    let test = "nothing_is_watched_for_nobody";
    let child = in_child(&[], test, || {
        /// How many things the only inotify descriptor watches; `None` without one.
        fn watched() -> Option<usize> {
            let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
            let is_inotify = |entry: &fs::DirEntry| {
                fs::read_link(entry.path()).is_ok_and(|to| to == Path::new("anon_inode:inotify"))
            };
            let mut inotify: Vec<_> = open.filter(is_inotify).collect();
            let fd = inotify.pop()?.file_name();
            assert!(inotify.is_empty(), "one is enough");
            let info = fs::read_to_string(Path::new("/proc/self/fdinfo").join(fd)).unwrap();
            Some(
                info.lines()
                    .filter(|line| line.starts_with("inotify wd"))
                    .count(),
            )
        }
        let dir = Directory::new("watch");
        let paths = ["a", "b"].map(|name| dir.file(name, ""));
        let (_event_loop, handle, _) = paused();
        let new = |path| Watcher::new_on(&handle, path).unwrap();
        assert_eq!(watched(), None);
        assert!(Watcher::new_on(&handle, dir.path("missing")).is_err());
        assert_eq!(watched(), None);
        let [first, again, other] = [new(&paths[0]), new(&paths[0]), new(&paths[1])];
        assert_eq!(watched(), Some(2));
        drop(again);
        assert_eq!(watched(), Some(2));
        first.close().then(|| ());
        assert_eq!(watched(), Some(1));
        drop(other);
        assert_eq!(watched(), None);
        let _more = new(&paths[0]);
        assert_eq!(watched(), Some(1));
    });
    succeeded(child);
}

/// libuv's `queue_foreach_delete`, for file watchers.
#[test]
fn r308_a_watcher_that_a_sibling_drops_gets_nothing() {
    let dir = Directory::new("watch");
    let (mut event_loop, handle, trace) = paused();
    let [mut first, second, third] =
        [(); 3].map(|()| Watcher::new_on(&handle, dir.0.as_path()).unwrap());
    let second = log(second, &trace, "2:");
    log(third, &trace, "3:");
    let log = trace.clone();
    let task = handle.spawn(async move {
        let event = first.recv().await.unwrap();
        log.log(format_args!("1:{}", line(&event)));
        second.abort();
        // And itself.
    });
    turn(&mut event_loop);
    fs::create_dir(dir.path("a")).unwrap();
    fs::create_dir(dir.path("b")).unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "1:created:a 3:created:a 3:created:b");
    assert!(task.is_finished());
}

// Beginning and end.

#[test]
fn r304_libuv_fs_event_watch_invalid_path() {
    let (mut event_loop, handle, _) = paused();
    for (path, kind) in [
        ("/no/such/file", ErrorKind::NotFound),
        ("", ErrorKind::NotFound),
        ("/dev/null/x", ErrorKind::NotADirectory),
        ("a\0b", ErrorKind::InvalidInput),
    ] {
        let error = Watcher::new_on(&handle, path).unwrap_err();
        assert_eq!(error.kind(), kind, "{path:?}");
        let inner = OsError::of(&error).unwrap();
        assert_eq!(
            (inner.operation(), inner.path()),
            ("watch", Some(Path::new(path)))
        );
        assert!(error.to_string().starts_with("watch \""), "{error}");
    }
    assert_eq!(handle.handles(), []);
    assert!(!handle.is_alive());
    finish(&mut event_loop);
    assert!(event_loop.close().is_ok(), "nothing is left");
}

/// In a process of its own, which runs out of descriptors.
#[test]
fn without_a_descriptor_there_is_an_error_and_later_a_watcher() {
    let test = "without_a_descriptor_there_is_an_error_and_later_a_watcher";
    let child = in_child(
        &["sh", "-c", "ulimit -n 64; exec \"$@\"", "sh"],
        test,
        || {
            let dir = Directory::new("watch");
            let (mut event_loop, handle, trace) = paused();
            let taken: Vec<_> = std::iter::from_fn(|| fs::File::open("/dev/null").ok()).collect();
            let error = Watcher::new_on(&handle, dir.0.as_path()).unwrap_err();
            let inner = OsError::of(&error).unwrap();
            assert_eq!(
                inner.raw_os_error(),
                Some(rustix::io::Errno::MFILE.raw_os_error())
            );
            assert_eq!(handle.handles(), []);
            drop(taken);
            log(
                Watcher::new_on(&handle, dir.0.as_path()).unwrap(),
                &trace,
                "",
            );
            fs::create_dir(dir.path("a")).unwrap();
            turn(&mut event_loop);
            assert_eq!(trace.take(), "created:a");
        },
    );
    succeeded(child);
}

#[test]
fn r315_libuv_fs_event_getpath() {
    let dir = Directory::new("watch");
    let (_event_loop, handle, _) = paused();
    let watcher = Watcher::new_on(&handle, dir.0.as_path()).unwrap();
    assert_eq!(watcher.path(), dir.0.as_path());
    assert!(format!("{watcher:?}").contains("phaseloop-"));
}

#[test]
fn libuv_fs_event_ref() {
    let dir = Directory::new("watch");
    let (mut event_loop, handle, _) = paused();
    let watcher = Watcher::new_on(&handle, dir.0.as_path()).unwrap();
    assert!(watcher.is_active() && watcher.has_ref());
    assert_eq!(handle.keepers(), [(Keeper::Watch, 1)]);
    assert!(turn(&mut event_loop), "it keeps the loop alive");
    watcher.unref();
    finish(&mut event_loop);
    watcher.ref_();
    assert!(handle.is_alive());
    drop(watcher);
    finish(&mut event_loop);
}

#[test]
fn libuv_fs_event_no_callback_on_close_and_fs_event_immediate_close() {
    let dir = Directory::new("watch");
    let (mut event_loop, handle, trace) = paused();
    let mut watcher = Watcher::new_on(&handle, dir.0.as_path()).unwrap();
    watcher.close().then(trace.call("closed"));
    assert!(!watcher.is_active() && watcher.is_closing());
    assert_eq!(watcher.recv().now_or_never(), Some(None));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "closed");
    assert_eq!(watcher.recv().now_or_never(), Some(None));
}

/// Also `fs_event_close_with_pending_event` and `fs_event_close_with_pending_delete_event`.
#[test]
fn r308_libuv_fs_event_no_callback_after_close() {
    let dir = Directory::new("watch");
    let (mut event_loop, handle, trace) = paused();
    for is_delivered in [false, true] {
        let inside = dir.path("inside");
        fs::create_dir(&inside).unwrap();
        let mut watcher = Watcher::new_on(&handle, &inside).unwrap();
        dir.file("inside/a", "");
        fs::remove_dir_all(&inside).unwrap();
        if is_delivered {
            turn(&mut event_loop);
        }
        watcher.close().then(trace.call("closed"));
        assert_eq!(watcher.recv().now_or_never(), Some(None));
        finish(&mut event_loop);
        assert_eq!(watcher.recv().now_or_never(), Some(None));
        assert_eq!(trace.take(), "closed");
    }
}

/// Also `fs_event_stop_in_cb`.
#[test]
fn r308_libuv_fs_event_close_in_callback() {
    let dir = Directory::new("watch");
    let (mut event_loop, handle, trace) = paused();
    let mut watcher = Watcher::new_on(&handle, dir.0.as_path()).unwrap();
    let log = trace.clone();
    let task = handle.spawn(async move {
        let event = watcher.recv().await.unwrap();
        log.log(line(&event));
        watcher.close().await;
        log.log("closed");
        watcher.recv().await
    });
    for name in ["a", "b", "c"] {
        dir.file(name, "");
    }
    finish(&mut event_loop);
    assert_eq!(trace.take(), "created:a closed");
    assert_eq!(event_loop.block_on(task).unwrap(), None);
}

#[test]
fn libuv_fs_event_watch_delete_dir() {
    let dir = Directory::new("watch");
    let inside = dir.path("inside");
    fs::create_dir(&inside).unwrap();
    let (mut event_loop, handle, trace) = paused();
    log(Watcher::new_on(&handle, &inside).unwrap(), &trace, "1:");
    log(Watcher::new_on(&handle, &inside).unwrap(), &trace, "2:");
    fs::remove_dir(&inside).unwrap();
    // Not alive any more: what was watched is gone.
    finish(&mut event_loop);
    assert_eq!(
        trace.take(),
        "1:self-removed:inside 2:self-removed:inside 1:end 2:end"
    );
}

/// Events from before the end can still be received. The end itself need not be received.
#[test]
fn a_watcher_of_what_is_gone_does_not_keep_the_loop_alive() {
    let dir = Directory::new("watch");
    let path = dir.file("a", "");
    let (mut event_loop, handle, _) = paused();
    let mut watcher = Watcher::new_on(&handle, &path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(watcher.is_active());
    finish(&mut event_loop);
    assert!(!watcher.is_active());
    let rest: Vec<_> = event_loop.block_on(watcher.by_ref().map(|event| line(&event)).collect());
    assert_eq!(rest, ["attributes:a", "self-removed:a"]);
    assert_eq!(event_loop.block_on(watcher.recv()), None);
}

/// What is watched is the file, not its name: an editor that saves by renaming ends the watch.
#[test]
fn a_file_that_is_replaced_is_gone() {
    let dir = Directory::new("watch");
    let path = dir.file("a", "old");
    let (mut event_loop, handle, trace) = paused();
    log(Watcher::new_on(&handle, &path).unwrap(), &trace, "file:");
    log(
        Watcher::new_on(&handle, dir.0.as_path()).unwrap(),
        &trace,
        "dir:",
    );
    dir.file("a.new", "new");
    turn(&mut event_loop);
    trace.take();
    fs::rename(dir.path("a.new"), &path).unwrap();
    turn(&mut event_loop);
    assert_eq!(
        trace.take(),
        "dir:from:a.new dir:to:a file:attributes:a file:self-removed:a file:end"
    );
    dir.file("a", "newer");
    turn(&mut event_loop);
    assert_eq!(
        trace.take(),
        "dir:modified:a",
        "the directory sees the new file"
    );
}

#[test]
fn a_file_that_is_renamed_is_still_watched() {
    let dir = Directory::new("watch");
    let path = dir.file("a", "");
    let (mut event_loop, _, trace) = watching(&path);
    fs::rename(&path, dir.path("b")).unwrap();
    dir.file("b", "");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "self-moved:a modified:a");
}

/// The kernel reports the removal when the last name is removed and the file is not open anywhere.
#[test]
fn an_open_file_is_not_gone() {
    let dir = Directory::new("watch");
    let path = dir.file("a", "");
    let open = fs::File::open(&path).unwrap();
    let (mut event_loop, _, trace) = watching(&path);
    fs::remove_file(&path).unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "attributes:a");
    drop(open);
    finish(&mut event_loop);
    assert_eq!(trace.take(), "self-removed:a end");
}

#[test]
fn a_loop_goes_with_its_watchers() {
    let dir = Directory::new("watch");
    let (event_loop, handle, _) = paused();
    let mut watcher = Watcher::new_on(&handle, dir.0.as_path()).unwrap();
    event_loop.enter(|| assert_pending!(tokio_test::task::spawn(watcher.recv()).poll()));
    drop(event_loop);
    assert_eq!(watcher.recv().now_or_never(), Some(None));
    assert!(!watcher.is_active());
    let error = Watcher::new_on(&handle, dir.0.as_path()).unwrap_err();
    assert!(error.to_string().contains("dropped"), "{error}");
}

#[test]
fn outside_a_loop_the_panic_says_what_to_call() {
    let text = panic_of(|| watch("/"));
    assert!(text.contains("block_on"), "{text}");
}

// Floods.

/// As many events as the kernel keeps, and some more.
#[test]
fn r310_an_overflow_of_the_kernels_queue_is_told_to_all() {
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit = limit.trim().parse::<usize>().unwrap();
    if limit > 100_000 {
        eprintln!("skipped: the kernel keeps {limit} events");
        return;
    }
    let [dir, quiet] = [Directory::new("watch"), Directory::new("watch")];
    let (mut event_loop, handle, trace) = paused();
    let counted = Rc::new(Cell::new(0));
    let mut watcher = Watcher::new_on(&handle, dir.0.as_path()).unwrap();
    let (count, log_overflow) = (counted.clone(), trace.clone());
    drop(handle.spawn(async move {
        while let Some(event) = watcher.recv().await {
            count.set(count.get() + 1);
            if event.kind == WatchKind::Overflow {
                assert_eq!(event.path, watcher.path());
                log_overflow.log(format_args!("overflow after {}", count.get() - 1));
            }
        }
    }));
    // In the order of their making, which is not that of the kernel's numbers.
    for (path, label) in [(quiet.0.as_path(), "quiet:"), (dir.0.as_path(), "last:")] {
        let (mut watcher, log) = (Watcher::new_on(&handle, path).unwrap(), trace.clone());
        drop(handle.spawn(async move {
            while let Some(event) = watcher.recv().await {
                if event.kind == WatchKind::Overflow {
                    log.log(format_args!("{label}overflow"));
                }
            }
        }));
    }
    // Two different events in turn: equal ones would become one.
    let (a, b) = (dir.file("a", ""), dir.path("b"));
    for _ in 0..limit / 4 + 10 {
        fs::rename(&a, &b).unwrap();
        fs::rename(&b, &a).unwrap();
    }
    while handle.next_timeout() == Some(ms(0)) || counted.get() == 0 {
        turn(&mut event_loop);
    }
    let expected = format!("overflow after {limit} quiet:overflow last:overflow");
    assert_eq!(trace.take(), expected);
    // It goes on after that.
    fs::remove_file(&a).unwrap();
    turn(&mut event_loop);
    assert_eq!(counted.get(), limit + 2);
}

/// The loop takes events from the kernel while none is received.
#[test]
fn r310_what_a_watcher_does_not_receive_is_bounded() {
    let dir = Directory::new("watch");
    let (mut event_loop, handle, _) = paused();
    let mut watcher = Watcher::new_on(&handle, dir.0.as_path()).unwrap();
    let (a, b) = (dir.file("a", ""), dir.path("b"));
    for _ in 0..50 {
        for _ in 0..100 {
            fs::rename(&a, &b).unwrap();
            fs::rename(&b, &a).unwrap();
        }
        turn(&mut event_loop);
    }
    let kept: Vec<_> = std::iter::from_fn(|| watcher.recv().now_or_never().flatten()).collect();
    assert_eq!(kept.len(), 16_384);
    assert_eq!(kept[0].kind, WatchKind::Created);
    let is_overflow = |event: &WatchEvent| event.kind == WatchKind::Overflow;
    assert!(is_overflow(&kept[16_383]));
    assert_eq!(kept.iter().filter(|event| is_overflow(event)).count(), 1);
}

/// A poll phase takes about a thousand; the next turn, which does not sleep, goes on.
#[test]
fn a_flood_leaves_others_their_turn() {
    let dir = Directory::new("watch");
    let (mut event_loop, handle, trace) = paused();
    let mut watcher = Watcher::new_on(&handle, dir.0.as_path()).unwrap();
    let count = Rc::new(Cell::new(0));
    let received = count.clone();
    drop(handle.spawn(async move {
        while watcher.next().await.is_some() {
            received.set(received.get() + 1);
        }
    }));
    let check = Check::new(&handle);
    check.start(trace.on("check")).unwrap();
    let a = dir.file("a", "");
    for _ in 0..1500 {
        fs::rename(&a, dir.path("b")).unwrap();
        fs::rename(dir.path("b"), &a).unwrap();
    }
    let mut each = Vec::new();
    while count.get() < 6001 {
        let before = count.get();
        turn(&mut event_loop);
        each.push(count.get() - before);
        let sleeps = handle.next_timeout() != Some(ms(0));
        assert_eq!(sleeps, count.get() == 6001, "while there is more");
    }
    assert!(
        each.iter().all(|&events| (1..1300).contains(&events)),
        "{each:?}"
    );
    assert_eq!(trace.take(), "check ".repeat(each.len()).trim_end());
}

/// A task that writes the file on each event of a write receives the next event, but not in the
/// same turn.
#[test]
fn who_causes_what_it_watches_does_not_stop_the_loop() {
    let dir = Directory::new("watch");
    let path = dir.file("a", "");
    let (mut event_loop, handle, trace) = paused();
    let mut watcher = Watcher::new_on(&handle, &path).unwrap();
    let log = trace.clone();
    drop(handle.spawn(async move {
        while let Some(event) = watcher.recv().await {
            log.log(line(&event));
            fs::write(&event.path, "more").unwrap();
        }
    }));
    let check = Check::new(&handle);
    check.start(trace.on("check")).unwrap();
    fs::write(&path, "first").unwrap();
    for _ in 0..3 {
        turn(&mut event_loop);
        assert_eq!(trace.take(), "modified:a check");
    }
}

/// A panic that comes out of the run in the middle of a batch loses nothing of the batch.
#[test]
fn after_a_panic_the_rest_comes_with_the_next_run() {
    let dir = Directory::new("watch");
    let (mut event_loop, handle, _) = paused();
    let mut watcher = Watcher::new_on(&handle, dir.0.as_path()).unwrap();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let log = seen.clone();
    drop(handle.spawn(async move {
        while let Some(event) = watcher.recv().await {
            log.borrow_mut().push(line(&event));
            if event.name() == Some(OsStr::new("b")) {
                queue_microtask(|| panic!("at b"));
            }
        }
    }));
    for name in ["a", "b", "c"] {
        fs::create_dir(dir.path(name)).unwrap();
    }
    assert_eq!(panic_of(|| turn(&mut event_loop)), "at b");
    assert_eq!(*seen.borrow(), ["created:a", "created:b"]);
    assert_eq!(
        handle.next_timeout(),
        Some(ms(0)),
        "the next turn does not sleep"
    );
    turn(&mut event_loop);
    assert_eq!(*seen.borrow(), ["created:a", "created:b", "created:c"]);
}

#[test]
fn giving_up_a_recv_loses_nothing() {
    let dir = Directory::new("watch");
    let (mut event_loop, handle, _) = paused();
    let mut watcher = Watcher::new_on(&handle, dir.0.as_path()).unwrap();
    assert_pending!(tokio_test::task::spawn(watcher.recv()).poll());
    fs::create_dir(dir.path("a")).unwrap();
    turn(&mut event_loop);
    let event = watcher.recv().now_or_never().flatten().unwrap();
    assert_eq!(line(&event), "created:a");
}
