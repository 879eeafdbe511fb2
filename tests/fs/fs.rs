//! File system operations, R289–R303: what each does, on which errors, and that a call is one job.
//!
//! Ours differs: without a loop there is `std::fs` (R290); `Result` in place of signed numbers
//! (R291); an interrupted read is tried again (R292); no buffers are no error (R294); times are
//! `SystemTime`s (R298); a copy that fails leaves a target alone that was there and has not been
//! touched (R299); what is to be sent may be of any length (R301).
#![cfg(feature = "fs")]

use crate::util::errno::Errno;
use crate::util::files::Directory;
use crate::util::polls::poll_once;
use crate::util::pool::{Hold, with_threads};
use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::Permissions;
use std::io::{ErrorKind, SeekFrom};
#[cfg(unix)]
use std::os::fd::AsFd;
#[cfg(unix)]
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{io, thread};

use futures::future::join_all;
use futures::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt, StreamExt, TryStreamExt};
#[cfg(unix)]
use phaseloop::fs::Access;
use phaseloop::fs::{self, CopyOptions, File, FileTimes, OpenOptions, Reflink};
use phaseloop::time::Timer;
use phaseloop::{LoopHandle, OsError, block_on, next_tick, set_immediate, spawn};
#[cfg(unix)]
use rustix::io::{FdFlags, fcntl_getfd};
use tokio_test::assert_pending;

/// The OS error number.
#[track_caller]
fn number_of<T>(result: io::Result<T>) -> Errno {
    let error = result.err().expect("it fails");
    let inner = OsError::of(&error).expect("errors of files say what was done");
    Errno::from_raw_os_error(inner.raw_os_error().expect("the system was asked"))
}

/// Which kind of error it is, after a look at what else it says.
#[track_caller]
fn kind_of<T>(result: io::Result<T>, operation: &str, path: impl AsRef<Path>) -> ErrorKind {
    let error = result.err().expect("it fails");
    let inner = OsError::of(&error).expect("errors of files say what was done");
    assert_eq!(inner.operation(), operation);
    assert_eq!(inner.path(), Some(path.as_ref()));
    let text = error.to_string();
    let start = format!("{operation} {:?}", path.as_ref());
    assert!(text.starts_with(&start), "{text}");
    error.kind()
}

/// Permissions with this mode; where files have none, those of any file.
fn permissions(mode: u32) -> Permissions {
    #[cfg(unix)]
    return Permissions::from_mode(mode);
    #[cfg(not(unix))]
    {
        let _ = mode;
        std::fs::metadata("Cargo.toml").unwrap().permissions()
    }
}

/// The mode of a file; `_expected` where files have none.
fn mode_of(_metadata: &std::fs::Metadata, _expected: u32) -> u32 {
    #[cfg(unix)]
    return _metadata.mode() & 0o777;
    #[cfg(not(unix))]
    _expected
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Waits until the pool's threads have run that many jobs and sleep.
fn wait_for_jobs(pool: &phaseloop::pool::Pool, jobs: u64) {
    while pool.stats().started < jobs || pool.stats().idle < pool.stats().threads {
        thread::yield_now();
    }
}

// One job a call, and its end in the poll phase.

#[test]
fn r290_n091_a_call_is_one_job_of_the_pool() {
    let directory = Directory::new("r290");
    let (event_loop, pool) = with_threads(2);
    let path = directory.path("file");
    event_loop.block_on(async {
        let mut before = 0;
        let mut jobs = || {
            let started = pool.stats().started;
            started - std::mem::replace(&mut before, started)
        };
        fs::write(&path, [7; 1024]).await.unwrap();
        assert_eq!(jobs(), 1);
        assert_eq!(fs::read(&path).await.unwrap(), [7; 1024]);
        assert_eq!(jobs(), 1);
        fs::metadata(&path).await.unwrap();
        assert_eq!(jobs(), 1);
        fs::copy(&path, directory.path("copy")).await.unwrap();
        assert_eq!(jobs(), 1);
        let entries: Vec<_> = fs::read_dir(&directory.0).await.unwrap().collect().await;
        assert_eq!((entries.len(), jobs()), (2, 1));
        fs::create_dir_all(directory.path("a/b/c")).await.unwrap();
        fs::remove_dir_all(directory.path("a")).await.unwrap();
        assert_eq!(jobs(), 2);
    });
    assert_eq!(pool.stats().queued, 0);
}

/// The thread has done both before the loop looks: one poll delivers them, in their order, each
/// with what it set off.
#[test]
fn n090_n092_ends_come_in_the_poll_phase_each_with_its_drain() {
    let directory = Directory::new("n090");
    let path = directory.file("file", "x");
    let (event_loop, pool) = with_threads(1);
    let log = Rc::new(RefCell::new(Vec::new()));
    event_loop.block_on(async {
        let tasks = ["one", "two"].map(|name| {
            let (path, log) = (path.clone(), log.clone());
            spawn(async move {
                let metadata = fs::metadata(&path).await.unwrap();
                log.borrow_mut().push(format!("{name} {}", metadata.len()));
                let (tick, later) = (log.clone(), log.clone());
                next_tick(move || tick.borrow_mut().push(format!("{name} tick")));
                set_immediate(move || later.borrow_mut().push(format!("{name} immediate")));
                // Begun in this poll phase, it ends in another.
                fs::metadata(&path).await.unwrap();
                log.borrow_mut().push(format!("{name} again"));
            })
        });
        // The tasks are polled before this goes on.
        phaseloop::task::yield_microtask().await;
        wait_for_jobs(&pool, 2);
        for task in tasks {
            task.await.unwrap();
        }
    });
    let log = log.borrow().join(", ");
    let first = "one 1, one tick, two 1, two tick, one immediate, two immediate, ";
    assert!(log.starts_with(first), "{log}");
    assert!(log.contains("one again") && log.ends_with("again"), "{log}");
}

#[cfg(target_os = "linux")]
#[test]
fn r303_n093_calls_have_no_order_between_them() {
    let directory = Directory::new("r303");
    let pipe = directory.path("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    let (event_loop, _) = with_threads(2);
    event_loop.block_on(async {
        // The first waits for a writer of the pipe; the second does not wait for the first.
        let reading = spawn(fs::read_to_string(pipe.clone()));
        phaseloop::task::yield_now().await;
        assert!(fs::metadata(&pipe).await.unwrap().file_type().is_fifo());
        assert!(!reading.is_finished());
        fs::write(&pipe, "hello").await.unwrap();
        assert_eq!(reading.await.unwrap().unwrap(), "hello");
    });
}

#[test]
fn r114_the_close_of_a_handle_leaves_calls_alone() {
    let (event_loop, _) = with_threads(1);
    event_loop.block_on(async {
        let hold = Hold::new();
        let mut asking = pin!(fs::metadata("."));
        assert_pending!(poll_once(&mut asking).await);
        Timer::new(&LoopHandle::current()).close().await;
        drop(hold);
        assert!(asking.await.unwrap().is_dir());
    });
}

#[test]
fn r302_a_path_is_copied() {
    let directory = Directory::new("r302");
    block_on(async {
        let writing = {
            let mut path = directory.path("file");
            let mut content = b"content".to_vec();
            let mut writing = Box::pin(fs::write(path.clone(), content.clone()));
            assert_pending!(poll_once(&mut writing).await);
            path.push("elsewhere");
            content.clear();
            writing
        };
        writing.await.unwrap();
        let content = fs::read(directory.path("file")).await.unwrap();
        assert_eq!(content, b"content");
    });
}

/// The thread is held: what is dropped has not begun, and never does.
#[test]
fn r280_libuv_threadpool_cancel_fs() {
    let directory = Directory::new("r280");
    let path = directory.file("file", "untouched");
    let (event_loop, _) = with_threads(1);
    event_loop.block_on(async {
        let hold = Hold::new();
        let file = File::from_std(std::fs::File::options().write(true).open(&path).unwrap());
        assert_pending!(tokio_test::task::spawn(fs::write(&path, "other")).poll());
        assert_pending!(tokio_test::task::spawn(fs::append(&path, "other")).poll());
        assert_pending!(tokio_test::task::spawn(fs::truncate(&path, 0)).poll());
        assert_pending!(tokio_test::task::spawn(fs::remove_file(&path)).poll());
        assert_pending!(tokio_test::task::spawn(fs::rename(&path, directory.path("new"))).poll());
        assert_pending!(
            tokio_test::task::spawn(fs::hard_link(&path, directory.path("new"))).poll()
        );
        #[cfg(unix)]
        assert_pending!(tokio_test::task::spawn(fs::symlink(&path, directory.path("new"))).poll());
        assert_pending!(tokio_test::task::spawn(fs::copy(&path, directory.path("new"))).poll());
        assert_pending!(tokio_test::task::spawn(fs::create_dir(directory.path("new"))).poll());
        assert_pending!(tokio_test::task::spawn(fs::create_dir_all(directory.path("new"))).poll());
        assert_pending!(tokio_test::task::spawn(fs::mkdtemp(directory.path("XXXXXX"))).poll());
        assert_pending!(tokio_test::task::spawn(fs::mkstemp(directory.path("XXXXXX"))).poll());
        assert_pending!(tokio_test::task::spawn(fs::remove_dir_all(&directory.0)).poll());
        assert_pending!(
            tokio_test::task::spawn(fs::set_permissions(&path, permissions(0o000))).poll()
        );
        assert_pending!(tokio_test::task::spawn(File::create(&path)).poll());
        assert_pending!(tokio_test::task::spawn(file.set_len(0)).poll());
        assert_pending!(tokio_test::task::spawn(file.write_at(b"other", 0)).poll());
        drop(hold);
        let entries = fs::scan_dir(&directory.0).await.unwrap();
        assert_eq!(entries.len(), 1, "{entries:?}");
        let content = fs::read_to_string(&path).await.unwrap();
        assert_eq!(content, "untouched");
        assert!(!fs::metadata(&path).await.unwrap().permissions().readonly());
    });
}

// Errors.

#[test]
fn libuv_fs_file_noent_and_fs_stat_missing_path_errors_name_operation_and_path() {
    let directory = Directory::new("noent");
    let path = directory.path("missing");
    block_on(async {
        macro_rules! fails {
            ($path:ident: $($operation:ident($($more:expr),*)),+ $(,)?) => {
                $(
                    let result = fs::$operation(&$path $(, $more)*).await;
                    let kind = kind_of(result, stringify!($operation), &$path);
                    assert_eq!(kind, ErrorKind::NotFound, stringify!($operation));
                )+
            };
        }
        let other = directory.path("other");
        fails!(path:
            read(),
            read_to_string(),
            truncate(0),
            metadata(),
            symlink_metadata(),
            rename(&other),
            remove_file(),
            remove_dir(),
            remove_dir_all(),
            hard_link(&other),
            read_link(),
            canonicalize(),
            set_permissions(permissions(0o600)),
            set_times(FileTimes::new().set_modified_now()),
            set_times_nofollow(FileTimes::new().set_modified_now()),
            read_dir(),
            scan_dir(),
            copy(&other),
        );
        #[cfg(unix)]
        fails!(path:
            access(Access::EXISTS),
            chown(None, None),
            lchown(None, None),
            statfs(),
        );
        assert_eq!(
            kind_of(File::open(&path).await, "open", &path),
            ErrorKind::NotFound
        );
        assert!(!fs::exists(&path).await.unwrap());
        // Where the directory is missing.
        let path = path.join("file");
        fails!(path: write(""), append(""), create_dir());
        let template = path.join("XXXXXX");
        let made = fs::mkdtemp(&template).await;
        assert_eq!(kind_of(made, "mkdtemp", &template), ErrorKind::NotFound);
        let made = fs::mkstemp(&template).await;
        assert_eq!(kind_of(made, "mkstemp", &template), ErrorKind::NotFound);
        #[cfg(unix)]
        {
            let linked = fs::symlink("anything", &path).await;
            assert_eq!(linked.unwrap_err().kind(), ErrorKind::NotFound);
        }
    });
}

#[test]
fn libuv_fs_get_system_error_two_paths_are_both_named() {
    let directory = Directory::new("two-paths");
    let (from, to) = (directory.path("from"), directory.path("to"));
    let error = block_on(fs::rename(&from, &to)).unwrap_err();
    let missing = io::Error::from_raw_os_error(2);
    let text = format!("rename {from:?} to {to:?}: {missing}");
    assert_eq!(error.to_string(), text);
    let inner = OsError::of(&error).unwrap();
    assert_eq!((inner.path(), inner.target()), (Some(&*from), Some(&*to)));
    assert_eq!(inner.raw_os_error(), Some(2));
    assert!(OsError::of(&io::Error::from(ErrorKind::NotFound)).is_none());
}

#[cfg(target_os = "linux")]
#[test]
fn libuv_fs_file_nametoolong_and_fs_file_loop() {
    let directory = Directory::new("names");
    block_on(async {
        let long = directory.path("x".repeat(300));
        assert_eq!(number_of(File::open(&long).await), Errno::NAMETOOLONG);
        let circle = directory.path("circle");
        fs::symlink(&circle, &circle).await.unwrap();
        assert_eq!(number_of(File::open(&circle).await), Errno::LOOP);
    });
}

// Files, from front to end.

#[test]
fn libuv_fs_file_async_a_file_from_its_making_to_its_end() {
    let directory = Directory::new("file-async");
    let (one, two) = (directory.path("one"), directory.path("two"));
    block_on(async {
        let mut options = OpenOptions::new();
        options.write(true).create(true);
        #[cfg(unix)]
        options.mode(0o600);
        let mut file = options.open(&one).await.unwrap();
        file.write_all(b"test-buffer\n").await.unwrap();
        file.sync_data().await.unwrap();
        file.sync_all().await.unwrap();
        file.set_len(7).await.unwrap();
        file.close().await.unwrap();
        fs::rename(&one, &two).await.unwrap();
        assert_eq!(fs::read_to_string(&two).await.unwrap(), "test-bu");
        fs::truncate(&two, 4).await.unwrap();
        assert_eq!(fs::read_to_string(&two).await.unwrap(), "test");
        let metadata = fs::metadata(&two).await.unwrap();
        assert_eq!(mode_of(&metadata, 0o600), 0o600);
        fs::remove_file(&two).await.unwrap();
        assert!(!fs::exists(&one).await.unwrap() && !fs::exists(&two).await.unwrap());
    });
}

#[test]
fn libuv_fs_posix_delete_an_open_file_can_be_removed() {
    let directory = Directory::new("posix-delete");
    let folder = directory.path("folder");
    block_on(async {
        fs::create_dir(&folder).await.unwrap();
        let mut file = File::create_new(folder.join("file")).await.unwrap();
        fs::remove_file(folder.join("file")).await.unwrap();
        fs::remove_dir(&folder).await.unwrap();
        file.write_all(b"still there").await.unwrap();
        assert_eq!(file.metadata().await.unwrap().len(), 11);
    });
}

#[test]
fn libuv_fs_file_write_null_buffer_r294_nothing_is_written_and_no_error() {
    let directory = Directory::new("null-buffer");
    block_on(async {
        let mut file = File::create_new(directory.path("file")).await.unwrap();
        assert_eq!(file.write(&[]).await.unwrap(), 0);
        assert_eq!(file.write_vectored(&[]).await.unwrap(), 0);
        assert_eq!(file.write_at(&[], 10).await.unwrap(), 0);
        assert_eq!(file.read(&mut []).await.unwrap(), 0);
        assert_eq!(file.read_at(&mut [], 0).await.unwrap(), 0);
        assert_eq!(file.metadata().await.unwrap().len(), 0);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn r295_files_are_not_inherited() {
    let directory = Directory::new("r295");
    block_on(async {
        let made = File::create(directory.path("file")).await.unwrap();
        let opened = File::open(directory.path("file")).await.unwrap();
        let (temporary, _) = fs::mkstemp(directory.path("XXXXXX")).await.unwrap();
        let clone = temporary.try_clone().await.unwrap();
        for file in [made, opened, temporary, clone] {
            assert_eq!(fcntl_getfd(file.as_fd()).unwrap(), FdFlags::CLOEXEC);
        }
    });
}

#[test]
fn r289_whole_files_are_read_whatever_their_size() {
    let directory = Directory::new("whole");
    block_on(async {
        for size in [0, 1, 1024, 65_535, 65_536, 3_000_000] {
            let content: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            let path = directory.file("file", &content);
            assert!(fs::read(&path).await.unwrap() == content, "{size}");
        }
        if cfg!(target_os = "linux") {
            // It says that it has no bytes, and has some.
            let status = fs::read_to_string("/proc/self/status").await.unwrap();
            assert!(status.starts_with("Name:") && status.len() > 500);
        }
        let path = directory.file("bytes", [b'a', 0xff]);
        let read = fs::read_to_string(&path).await;
        assert_eq!(
            kind_of(read, "read_to_string", &path),
            ErrorKind::InvalidData
        );
    });
}

#[test]
fn libuv_fs_rename_to_existing_file_replaces_it() {
    let directory = Directory::new("rename");
    let (from, to) = (directory.file("from", "new"), directory.file("to", "old"));
    block_on(async {
        fs::rename(&from, &to).await.unwrap();
        assert_eq!(fs::read_to_string(&to).await.unwrap(), "new");
        assert!(!fs::exists(&from).await.unwrap());
    });
}

// Directories.

#[cfg(target_os = "linux")]
#[test]
fn libuv_fs_async_dir_and_fs_readdir_non_empty_dir_r296() {
    let directory = Directory::new("dir");
    let folder = directory.path("folder");
    block_on(async {
        fs::create_dir(&folder).await.unwrap();
        let again = fs::create_dir(&folder).await;
        assert_eq!(
            kind_of(again, "create_dir", &folder),
            ErrorKind::AlreadyExists
        );
        fs::write(folder.join("file"), "x").await.unwrap();
        fs::create_dir(folder.join("dir")).await.unwrap();
        fs::symlink("file", folder.join("link")).await.unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, folder.join("pipe"), 0o600.into()).unwrap();
        let mut types = HashSet::new();
        let mut entries = fs::read_dir(&folder).await.unwrap();
        while let Some(entry) = entries.next_entry().await.unwrap() {
            let (name, kind) = (entry.file_name().to_owned(), entry.file_type());
            assert_eq!(entry.path(), folder.join(&name));
            assert_eq!(entry.metadata().await.unwrap().file_type(), kind);
            let is = [
                kind.is_file(),
                kind.is_dir(),
                kind.is_symlink(),
                kind.is_fifo(),
            ];
            types.insert((name.into_string().unwrap(), is));
        }
        let expected = ["file", "dir", "link", "pipe"].into_iter().enumerate();
        let expected =
            expected.map(|(at, name)| (name.to_owned(), std::array::from_fn(|index| index == at)));
        assert_eq!(types, expected.collect());
        assert!(entries.next_entry().await.unwrap().is_none(), "for good");
        let full = fs::remove_dir(&folder).await;
        assert_eq!(
            kind_of(full, "remove_dir", &folder),
            ErrorKind::DirectoryNotEmpty
        );
        fs::remove_dir_all(&folder).await.unwrap();
        assert!(!fs::exists(&folder).await.unwrap());
    });
}

#[test]
fn r296_a_large_directory_comes_in_batches_and_sorted_if_one_wants() {
    let directory = Directory::new("r296");
    let names: Vec<String> = (0..1500).map(|number| format!("{number}")).collect();
    for name in &names {
        directory.file(name, "");
    }
    let mut expected = names.clone();
    expected.sort();
    let (event_loop, pool) = with_threads(1);
    event_loop.block_on(async {
        let entries = fs::read_dir(&directory.0).await.unwrap();
        assert_eq!(
            pool.stats().started,
            1,
            "the first entries come with the opening"
        );
        let entries: Vec<_> = entries.try_collect().await.unwrap();
        // 64, 128, 256, 512, the rest and, if that was not clear before, the end.
        assert!(
            (5..=6).contains(&pool.stats().started),
            "{}",
            pool.stats().started
        );
        let name = |entry: &fs::DirEntry| entry.file_name().to_str().unwrap().to_owned();
        let mut found: Vec<_> = entries.iter().map(name).collect();
        found.sort();
        assert_eq!(found, expected);
        let before = pool.stats().started;
        let scanned = fs::scan_dir(&directory.0).await.unwrap();
        assert_eq!(pool.stats().started - before, 1);
        assert_eq!(scanned.iter().map(name).collect::<Vec<_>>(), expected);
    });
}

#[test]
fn libuv_fs_scandir_empty_dir_and_fs_readdir_empty_dir() {
    let directory = Directory::new("empty-dir");
    block_on(async {
        assert!(fs::scan_dir(&directory.0).await.unwrap().is_empty());
        let mut entries = fs::read_dir(&directory.0).await.unwrap();
        assert!(entries.next().await.is_none());
    });
}

#[test]
fn libuv_fs_scandir_file_and_fs_readdir_file_a_file_is_no_directory() {
    let directory = Directory::new("no-dir");
    let path = directory.file("file", "");
    block_on(async {
        assert_eq!(number_of(fs::scan_dir(&path).await), Errno::NOTDIR);
        let opened = fs::read_dir(&path).await;
        assert_eq!(kind_of(opened, "read_dir", &path), ErrorKind::NotADirectory);
    });
}

/// What has been fetched, what is being fetched and the directory itself go with the stream.
#[cfg(target_os = "linux")]
#[test]
fn libuv_fs_scandir_early_exit_a_stream_may_be_dropped_at_any_time() {
    let directory = Directory::new("early-exit");
    for number in 0..200 {
        directory.file(&number.to_string(), "");
    }
    let open = || {
        std::fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter(|fd| {
                let link = std::fs::read_link(fd.as_ref().unwrap().path());
                link.is_ok_and(|link| link.starts_with(&directory.0))
            })
            .count()
    };
    let (event_loop, pool) = with_threads(1);
    event_loop.block_on(async {
        let mut entries = fs::read_dir(&directory.0).await.unwrap();
        assert_eq!(open(), 1);
        entries.next().await.unwrap().unwrap();
        drop(entries);
        assert_eq!(open(), 0);
        let mut entries = fs::read_dir(&directory.0).await.unwrap();
        for _ in 0..64 {
            entries.next().await.unwrap().unwrap();
        }
        let hold = Hold::new();
        assert_pending!(tokio_test::task::spawn(entries.next()).poll());
        drop(entries);
        assert_eq!(open(), 0, "a queued job is dropped at once");
        drop(hold);
        // A dropped `next` loses no entry.
        let mut entries = fs::read_dir(&directory.0).await.unwrap();
        let mut names = HashSet::new();
        for _ in 0..64 {
            names.insert(
                entries
                    .next()
                    .await
                    .unwrap()
                    .unwrap()
                    .file_name()
                    .to_owned(),
            );
        }
        assert_pending!(tokio_test::task::spawn(entries.next()).poll());
        while let Some(entry) = entries.try_next().await.unwrap() {
            names.insert(entry.file_name().to_owned());
        }
        assert_eq!(names.len(), 200);
    });
    assert_eq!(pool.stats().queued, 0);
}

#[cfg(target_os = "linux")]
#[test]
fn libuv_fs_open_dir_and_fs_read_dir_a_directory_can_be_opened_and_not_read() {
    let directory = Directory::new("open-dir");
    block_on(async {
        let mut file = File::open(&directory.0).await.unwrap();
        assert!(file.metadata().await.unwrap().is_dir());
        let read = file.read(&mut [0]).await;
        assert_eq!(kind_of(read, "read", &directory.0), ErrorKind::IsADirectory);
        let read = file.read_at(&mut [0], 0).await;
        assert_eq!(
            kind_of(read, "read_at", &directory.0),
            ErrorKind::IsADirectory
        );
    });
}

// Temporary files.

#[test]
fn libuv_fs_mkdtemp_and_fs_mkstemp_r300() {
    let directory = Directory::new("r300");
    block_on(async {
        let template = directory.path("x-XXXXXX");
        let folders = join_all((0..8).map(|_| fs::mkdtemp(&template))).await;
        let folders: HashSet<PathBuf> = folders.into_iter().map(Result::unwrap).collect();
        assert_eq!(folders.len(), 8, "each has its own name");
        for folder in &folders {
            assert_eq!(folder.as_os_str().len(), template.as_os_str().len());
            let name = folder.file_name().unwrap().to_str().unwrap();
            let random = name.strip_prefix("x-").unwrap();
            assert!(
                random.chars().all(|one| one.is_ascii_alphanumeric()),
                "{name}"
            );
            let metadata = fs::metadata(folder).await.unwrap();
            assert!(metadata.is_dir());
            assert_eq!(mode_of(&metadata, 0o700), 0o700);
        }
        let (mut file, path) = fs::mkstemp(&template).await.unwrap();
        assert_eq!(file.path(), Some(&*path));
        file.write_all(b"hello").await.unwrap();
        file.seek(SeekFrom::Start(0)).await.unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "hello");
        let metadata = fs::metadata(&path).await.unwrap();
        assert_eq!(mode_of(&metadata, 0o600), 0o600);
        for bad in ["x", "XXXXX", "XXXXXXx", ""] {
            let bad = directory.path(bad);
            let made = fs::mkdtemp(&bad).await;
            assert_eq!(kind_of(made, "mkdtemp", &bad), ErrorKind::InvalidInput);
            let made = fs::mkstemp(&bad).await;
            assert_eq!(kind_of(made, "mkstemp", &bad), ErrorKind::InvalidInput);
        }
    });
}

// Metadata of files.

#[cfg(target_os = "linux")]
#[test]
fn libuv_fs_fstat_and_fs_fstat_st_dev_r297() {
    let directory = Directory::new("fstat");
    let path = directory.path("file");
    let link = directory.path("link");
    block_on(async {
        let before = SystemTime::now() - seconds(2);
        let mut file = File::create_new(&path).await.unwrap();
        file.write_all(b"0123456789").await.unwrap();
        fs::symlink(&path, &link).await.unwrap();
        let by_file = file.metadata().await.unwrap();
        let by_path = fs::metadata(&path).await.unwrap();
        let by_link = fs::metadata(&link).await.unwrap();
        let link = fs::symlink_metadata(&link).await.unwrap();
        assert!(link.is_symlink() && !by_link.is_symlink());
        for metadata in [&by_file, &by_path, &by_link] {
            let fields = |metadata: &std::fs::Metadata| {
                [
                    metadata.dev(),
                    metadata.ino(),
                    metadata.mode().into(),
                    metadata.nlink(),
                    metadata.uid().into(),
                    metadata.gid().into(),
                    metadata.size(),
                    metadata.blksize(),
                ]
            };
            assert_eq!(fields(metadata), fields(&std::fs::metadata(&path).unwrap()));
            assert_eq!(metadata.len(), 10);
            // Born, written and read between then and now. With musl, std cannot report the birth.
            let born = match metadata.created() {
                Err(error) if cfg!(target_env = "musl") => {
                    assert_eq!(error.kind(), ErrorKind::Unsupported);
                    None
                }
                born => Some(born),
            };
            let others = [metadata.modified(), metadata.accessed()];
            for time in born.into_iter().chain(others) {
                let time = time.unwrap();
                assert!(before <= time && time <= SystemTime::now() + seconds(2));
            }
        }
        assert_eq!(link.dev(), by_file.dev());
        assert_ne!(link.ino(), by_file.ino());
    });
}

#[cfg(target_os = "linux")]
#[test]
fn libuv_fs_fstat_stdio() {
    block_on(async {
        let stdio = io::stderr().as_fd().try_clone_to_owned().unwrap();
        let file = File::from_std(std::fs::File::from(stdio));
        let metadata = file.metadata().await.unwrap();
        assert!(!metadata.is_dir());
        assert_eq!(file.path(), None);
        // Without a path, the operation is all that can be said.
        let error = file.read_at(&mut [0], 1 << 63).await.unwrap_err();
        assert!(error.to_string().starts_with("read_at: "), "{error}");
        file.into_std().await.unwrap();
    });
}

#[test]
fn libuv_fs_stat_batch_multiple() {
    block_on(async {
        let all = join_all((0..300).map(|_| fs::metadata("."))).await;
        assert!(all.into_iter().all(|metadata| metadata.unwrap().is_dir()));
    });
}

#[cfg(target_os = "linux")]
#[test]
fn libuv_fs_statfs() {
    let directory = Directory::new("statfs");
    block_on(async {
        let system = fs::statfs(&directory.0).await.unwrap();
        assert!(system.block_size > 0 && system.fragment_size > 0 && system.blocks > 0);
        assert!(system.available_blocks <= system.blocks && system.free_blocks <= system.blocks);
        assert!(system.free_files <= system.files);
        // Its number is known.
        assert_eq!(fs::statfs("/proc").await.unwrap().kind, 0x9fa0);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn libuv_fs_access() {
    let directory = Directory::new("access");
    let path = directory.file("file", "");
    block_on(async {
        fs::set_permissions(&path, Permissions::from_mode(0o600))
            .await
            .unwrap();
        fs::access(&path, Access::EXISTS).await.unwrap();
        fs::access(&path, Access::READ | Access::WRITE)
            .await
            .unwrap();
        // Not even root may execute a file without an execute bit.
        let executed = fs::access(&path, Access::READ | Access::EXECUTE).await;
        assert_eq!(
            kind_of(executed, "access", &path),
            ErrorKind::PermissionDenied
        );
        fs::access(&directory.0, Access::EXECUTE).await.unwrap();
    });
}

#[cfg(target_os = "linux")]
#[test]
fn libuv_fs_chmod_and_fs_unlink_readonly() {
    let directory = Directory::new("chmod");
    let path = directory.file("file", "");
    block_on(async {
        let file = File::open(&path).await.unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o200))
            .await
            .unwrap();
        assert_eq!(file.metadata().await.unwrap().mode() & 0o777, 0o200);
        file.set_permissions(Permissions::from_mode(0o400))
            .await
            .unwrap();
        let metadata = fs::metadata(&path).await.unwrap();
        assert_eq!(metadata.mode() & 0o777, 0o400);
        assert!(metadata.permissions().readonly());
        fs::remove_file(&path).await.unwrap();
        assert!(!fs::exists(&path).await.unwrap());
    });
}

/// Any user may give a file to its own owner.
#[cfg(target_os = "linux")]
#[test]
fn libuv_fs_chown() {
    let directory = Directory::new("chown");
    let path = directory.file("file", "");
    let link = directory.path("link");
    block_on(async {
        let metadata = fs::metadata(&path).await.unwrap();
        let (user, group) = (Some(metadata.uid()), Some(metadata.gid()));
        fs::chown(&path, None, None).await.unwrap();
        fs::chown(&path, user, group).await.unwrap();
        let file = File::open(&path).await.unwrap();
        file.chown(user, group).await.unwrap();
        fs::symlink("nowhere", &link).await.unwrap();
        fs::lchown(&link, user, group).await.unwrap();
        let followed = fs::chown(&link, user, group).await;
        assert_eq!(kind_of(followed, "chown", &link), ErrorKind::NotFound);
        if user == Some(0) {
            fs::chown(&path, Some(1), None).await.unwrap();
            file.chown(None, Some(2)).await.unwrap();
            let metadata = fs::metadata(&path).await.unwrap();
            assert_eq!((metadata.uid(), metadata.gid()), (1, 2));
            fs::lchown(&link, Some(3), Some(4)).await.unwrap();
            let metadata = fs::symlink_metadata(&link).await.unwrap();
            assert_eq!((metadata.uid(), metadata.gid()), (3, 4));
        }
    });
}

// Times.

#[cfg(target_os = "linux")]
#[test]
fn libuv_fs_utime_fs_futime_and_fs_lutime_r298() {
    let directory = Directory::new("utime");
    let path = directory.file("file", "");
    let link = directory.path("link");
    let then = UNIX_EPOCH + Duration::new(400_497_753, 250_000_000);
    let times = FileTimes::new().set_accessed(then).set_modified(then);
    block_on(async {
        let of = |metadata: std::fs::Metadata| {
            (metadata.accessed().unwrap(), metadata.modified().unwrap())
        };
        fs::symlink(&path, &link).await.unwrap();
        fs::set_times(&link, times).await.unwrap();
        assert_eq!(of(fs::metadata(&path).await.unwrap()), (then, then));
        let of_link = of(fs::symlink_metadata(&link).await.unwrap());
        assert!(of_link.1 > then);
        // What is not set stays, and now is now.
        let before = SystemTime::now() - seconds(2);
        fs::set_times(&path, FileTimes::new().set_modified_now())
            .await
            .unwrap();
        let (accessed, modified) = of(fs::metadata(&path).await.unwrap());
        assert!(accessed == then && before <= modified);
        fs::set_times(&path, FileTimes::new()).await.unwrap();
        let same = of(fs::metadata(&path).await.unwrap());
        assert_eq!(same, (accessed, modified));

        let file = File::open(&path).await.unwrap();
        file.set_times(FileTimes::new().set_modified(then).set_accessed_now())
            .await
            .unwrap();
        let (accessed, modified) = of(file.metadata().await.unwrap());
        assert!(modified == then && before <= accessed);

        fs::set_times_nofollow(&link, times).await.unwrap();
        assert_eq!(of(fs::symlink_metadata(&link).await.unwrap()), (then, then));
        assert!(of(fs::metadata(&path).await.unwrap()).0 >= before);
    });
}

#[test]
fn libuv_fs_utime_round_r298_times_before_1970_and_fractions_of_seconds() {
    let directory = Directory::new("utime-round");
    let path = directory.file("file", "");
    block_on(async {
        for before in [
            Duration::from_millis(250),
            Duration::from_millis(1750),
            Duration::new(14_245, 0),
            Duration::new(1, 1),
        ] {
            let then = UNIX_EPOCH - before;
            let times = FileTimes::new().set_accessed(then).set_modified(then);
            fs::set_times(&path, times).await.unwrap();
            let metadata = fs::metadata(&path).await.unwrap();
            assert_eq!(metadata.modified().unwrap(), then, "{before:?} before 1970");
            assert_eq!(metadata.accessed().unwrap(), then);
        }
    });
}

// Links.

#[test]
fn libuv_fs_link_is_a_second_name() {
    let directory = Directory::new("link");
    let (path, link) = (directory.file("file", "hello"), directory.path("link"));
    block_on(async {
        fs::hard_link(&path, &link).await.unwrap();
        fs::append(&link, "!").await.unwrap();
        assert_eq!(fs::read(&path).await.unwrap(), b"hello!");
        #[cfg(unix)]
        assert_eq!(fs::metadata(&path).await.unwrap().nlink(), 2);
        let again = fs::hard_link(&path, &link).await;
        assert_eq!(kind_of(again, "hard_link", &path), ErrorKind::AlreadyExists);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn libuv_fs_symlink_fs_readlink_and_fs_realpath() {
    let directory = Directory::new("symlink");
    let path = directory.file("file", "hello");
    let link = directory.path("link");
    block_on(async {
        fs::symlink("file", &link).await.unwrap();
        assert_eq!(fs::read_to_string(&link).await.unwrap(), "hello");
        assert_eq!(fs::read_link(&link).await.unwrap(), Path::new("file"));
        let read = fs::read_link(&path).await;
        assert_eq!(kind_of(read, "read_link", &path), ErrorKind::InvalidInput);
        let real = std::fs::canonicalize(&path).unwrap();
        let round = directory.path("./nothing/../link");
        assert_eq!(fs::canonicalize(&link).await.unwrap(), real);
        let missing = fs::canonicalize(&round).await;
        assert_eq!(
            kind_of(missing, "canonicalize", &round),
            ErrorKind::NotFound
        );
        // Removing the link leaves the file.
        fs::remove_file(&link).await.unwrap();
        assert!(fs::exists(&path).await.unwrap());
    });
}

#[cfg(target_os = "linux")]
#[test]
fn libuv_fs_symlink_dir_a_directory_is_read_through_its_link() {
    let directory = Directory::new("symlink-dir");
    let link = directory.path("link");
    directory.file("file", "");
    block_on(async {
        fs::symlink(&directory.0, &link).await.unwrap();
        let names = async |path: &Path| {
            let entries = fs::scan_dir(path).await.unwrap();
            let names = entries.iter().map(|entry| entry.file_name().to_owned());
            names.collect::<Vec<_>>()
        };
        assert_eq!(names(&link).await, ["file", "link"]);
        assert!(fs::symlink_metadata(&link).await.unwrap().is_symlink());
        // The link goes, not what it leads to.
        fs::remove_dir_all(&link).await.unwrap();
        assert_eq!(names(&directory.0).await, ["file"]);
    });
}

// Copies.

#[test]
fn libuv_fs_copyfile_r299() {
    let directory = Directory::new("copyfile");
    let (from, to) = (directory.file("from", "content"), directory.path("to"));
    let then = UNIX_EPOCH + seconds(1_000_000);
    block_on(async {
        fs::set_permissions(&from, permissions(0o640))
            .await
            .unwrap();
        let times = FileTimes::new().set_accessed(then).set_modified(then);
        fs::set_times(&from, times).await.unwrap();
        assert_eq!(fs::copy(&from, &to).await.unwrap(), 7);
        assert_eq!(fs::read(&to).await.unwrap(), b"content");
        let metadata = fs::metadata(&to).await.unwrap();
        assert_eq!(mode_of(&metadata, 0o640), 0o640);
        assert_eq!(metadata.modified().unwrap(), then);
        // Over a longer one with other permissions.
        let longer = directory.file("longer", "something longer");
        fs::set_permissions(&longer, permissions(0o600))
            .await
            .unwrap();
        assert_eq!(fs::copy(&from, &longer).await.unwrap(), 7);
        assert_eq!(fs::read(&longer).await.unwrap(), b"content");
        let metadata = fs::metadata(&longer).await.unwrap();
        assert_eq!(mode_of(&metadata, 0o640), 0o640);
        // Onto itself, also by another name.
        let link = directory.path("link");
        fs::hard_link(&from, &link).await.unwrap();
        for to in [&from, &link] {
            assert_eq!(fs::copy(&from, to).await.unwrap(), 0);
            assert_eq!(fs::read(to).await.unwrap(), b"content");
        }
        // Nothing, and much.
        for size in [0, 5_000_000_usize] {
            let content: Vec<u8> = (0..size).map(|at| (at % 253) as u8).collect();
            let large = directory.file("large", &content);
            assert_eq!(fs::copy(&large, &to).await.unwrap(), size as u64);
            assert!(fs::read(&to).await.unwrap() == content);
        }
    });
}

#[test]
fn r299_an_exclusive_copy_needs_a_free_name() {
    let directory = Directory::new("copy-exclusive");
    let (from, to) = (directory.file("from", "new"), directory.path("to"));
    block_on(async {
        let exclusive = CopyOptions::new().exclusive(true);
        assert_eq!(exclusive.copy(&from, &to).await.unwrap(), 3);
        fs::write(&to, "old").await.unwrap();
        let copied = exclusive.copy(&from, &to).await;
        assert_eq!(kind_of(copied, "copy", &from), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&to).await.unwrap(), b"old");
    });
}

/// `/dev/shm`, where there is one, cannot share data; other file systems may.
#[test]
fn r299_a_reflink_is_tried_or_required() {
    let directory = Directory::new("copy-reflink");
    let from = directory.file("from", "content");
    block_on(async {
        let to = directory.path("tried");
        let tried = CopyOptions::new().reflink(Reflink::Try);
        assert_eq!(tried.copy(&from, &to).await.unwrap(), 7);
        assert_eq!(fs::read(&to).await.unwrap(), b"content");
        let required = CopyOptions::new().reflink(Reflink::Require);
        let to = directory.path("required");
        let is_possible = match required.copy(&from, &to).await {
            Ok(length) => {
                assert_eq!(length, 7);
                assert_eq!(fs::read(&to).await.unwrap(), b"content");
                true
            }
            Err(_) => false,
        };
        assert_eq!(
            fs::exists(&to).await.unwrap(),
            is_possible,
            "a new target goes"
        );
        let old = directory.file("old", "something longer");
        match required.copy(&from, &old).await {
            Ok(_) => assert_eq!(fs::read(&old).await.unwrap(), b"content"),
            Err(_) => assert_eq!(fs::read(&old).await.unwrap(), b"something longer"),
        }
    });
}

/// A pipe stands for what has no length and belongs to others, such as a device.
#[cfg(unix)]
#[test]
fn r299_a_copy_to_a_pipe_fails_and_leaves_the_pipe() {
    let directory = Directory::new("copy-pipe");
    let (from, pipe) = (directory.file("from", "content"), directory.path("pipe"));
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    // With both ends open no copy waits for the other end.
    let mut options = std::fs::OpenOptions::new();
    let _ends = options.read(true).write(true).open(&pipe).unwrap();
    block_on(async {
        fs::set_permissions(&from, permissions(0o640))
            .await
            .unwrap();
        for reflink in [Reflink::Never, Reflink::Try, Reflink::Require] {
            let copied = CopyOptions::new().reflink(reflink).copy(&from, &pipe).await;
            assert!(copied.is_err());
            let metadata = fs::metadata(&pipe).await.unwrap();
            assert!(metadata.file_type().is_fifo());
            assert_eq!(mode_of(&metadata, 0o600), 0o600);
        }
    });
}

#[test]
fn r299_what_cannot_be_copied() {
    let directory = Directory::new("copy-errors");
    let from = directory.file("from", "content");
    block_on(async {
        let copied = fs::copy(&directory.0, directory.path("to")).await;
        assert_eq!(
            kind_of(copied, "copy", &directory.0),
            ErrorKind::InvalidInput
        );
        let copied = fs::copy(&from, &directory.0).await;
        assert_eq!(kind_of(copied, "copy", &from), ErrorKind::IsADirectory);
        let copied = fs::copy(&from, directory.path("missing/to")).await;
        assert_eq!(kind_of(copied, "copy", &from), ErrorKind::NotFound);
        // Through a link that leads nowhere to what it names.
        #[cfg(unix)]
        {
            let (link, target) = (directory.path("link"), directory.path("target"));
            fs::symlink("target", &link).await.unwrap();
            assert_eq!(fs::copy(&from, &link).await.unwrap(), 7);
            assert_eq!(fs::read(target).await.unwrap(), b"content");
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn libuv_fs_async_sendfile_and_fs_async_sendfile_nodata_r301() {
    let directory = Directory::new("sendfile");
    let from = directory.file(
        "from",
        "begin\n................................................end\n",
    );
    let empty = directory.file("empty", "");
    block_on(async {
        let mut source = File::open(&from).await.unwrap();
        let mut target = File::create_new(directory.path("to")).await.unwrap();
        assert_eq!(fs::copy_range(&source, 0, &target, 6).await.unwrap(), 6);
        target.write_all(b"middle\n").await.unwrap();
        let length = u64::MAX;
        assert_eq!(
            fs::copy_range(&source, 54, &target, length).await.unwrap(),
            4
        );
        assert_eq!(
            fs::copy_range(&source, 58, &target, length).await.unwrap(),
            0
        );
        assert_eq!(fs::copy_range(&source, 900, &target, 5).await.unwrap(), 0);
        assert_eq!(fs::copy_range(&source, 0, &target, 0).await.unwrap(), 0);
        let content = fs::read_to_string(directory.path("to")).await.unwrap();
        assert_eq!(content, "begin\nmiddle\nend\n");
        // The first one's position has not moved.
        let mut begin = [0; 5];
        source.read_exact(&mut begin).await.unwrap();
        assert_eq!(&begin, b"begin");
        // The second one's is where it seems to be, whatever was read ahead.
        let mut target = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&from)
            .await
            .unwrap();
        target.read_exact(&mut begin).await.unwrap();
        let digits = File::open(directory.file("digits", "0123456789"))
            .await
            .unwrap();
        assert_eq!(fs::copy_range(&digits, 2, &target, 3).await.unwrap(), 3);
        let content = fs::read_to_string(&from).await.unwrap();
        assert!(content.starts_with("begin234...."), "{content}");
        let empty = File::open(&empty).await.unwrap();
        assert_eq!(fs::copy_range(&empty, 0, &target, 100).await.unwrap(), 0);
        // What the kernel cannot copy is read and written.
        let status = File::open("/proc/self/status").await.unwrap();
        let target = File::create(directory.path("status")).await.unwrap();
        assert!(fs::copy_range(&status, 0, &target, 1 << 20).await.unwrap() > 500);
        let refused = fs::copy_range(&target, 0, &status, 10).await;
        assert_eq!(number_of(refused), Errno::BADF);
    });
}
