//! What can go wrong with files: no room, no permission, the wrong kind of file, odd names, and a
//! loop that goes while jobs are under way. Nothing hangs, nothing is lost in silence, and the
//! error names the path.
#![cfg(all(target_os = "linux", feature = "fs"))]

use crate::util::child::in_child;
use crate::util::files::Directory;
use crate::util::polls::poll_once;
use crate::util::pool::{Hold, with_threads};
use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::{ErrorKind, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::pin::pin;
use std::process::Child;
use std::sync::mpsc::channel;

use futures::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use phaseloop::fs::{self, Access, File, FileTimes, OpenOptions};
use phaseloop::{OsError, block_on, spawn, spawn_blocking};
use tokio_test::assert_pending;

#[track_caller]
fn succeeds(child: Option<Child>) {
    let Some(child) = child else {
        return;
    };
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{errors}", output.status);
}

/// The error's kind, after a look whether its text begins so.
#[track_caller]
fn kind_of<T>(result: std::io::Result<T>, start: &str) -> ErrorKind {
    let error = result.err().expect("it fails");
    assert!(error.to_string().starts_with(start), "{error}");
    error.kind()
}

// No room.

#[test]
fn a_full_disk_is_reported_and_says_where() {
    block_on(async {
        let full = |result| kind_of::<()>(result, "write \"/dev/full\": ");
        let written = fs::write("/dev/full", "x").await;
        assert_eq!(full(written), ErrorKind::StorageFull);
        let appended = fs::append("/dev/full", "x").await;
        let kind = kind_of(appended, "append \"/dev/full\": ");
        assert_eq!(kind, ErrorKind::StorageFull);
        let file = OpenOptions::new().write(true).open("/dev/full").await;
        let mut file = file.unwrap();
        let written = file.write_at(b"x", 0).await;
        let kind = kind_of(written, "write_at \"/dev/full\": ");
        assert_eq!(kind, ErrorKind::StorageFull);

        // Accepted, and reported by the next flush: once.
        file.write_all(b"x").await.unwrap();
        assert_eq!(full(file.flush().await), ErrorKind::StorageFull);
        file.flush().await.unwrap();
        // By the next sync.
        file.write_all(b"x").await.unwrap();
        assert_eq!(full(file.sync_all().await), ErrorKind::StorageFull);
        // By a later write.
        file.write_all(b"x").await.unwrap();
        let later = loop {
            if let Err(error) = file.write(b"x").await {
                break Err(error);
            }
            phaseloop::task::yield_now_immediate().await;
        };
        assert_eq!(full(later), ErrorKind::StorageFull);
        // What asks for something else leaves it for those.
        file.write_all(b"x").await.unwrap();
        file.metadata().await.unwrap();
        assert_eq!(file.seek(SeekFrom::Start(0)).await.unwrap(), 0);
        assert_eq!(full(file.flush().await), ErrorKind::StorageFull);
        // By the close.
        file.write_all(b"x").await.unwrap();
        assert_eq!(full(file.close().await), ErrorKind::StorageFull);
        // By the way to the standard library.
        let file = OpenOptions::new().write(true).open("/dev/full").await;
        let mut file = file.unwrap();
        file.write_all(b"x").await.unwrap();
        let taken = file.into_std().await.map(drop);
        assert_eq!(full(taken), ErrorKind::StorageFull);
    });
}

/// Files of this process may have 8 KiB and no more.
#[test]
fn r294_a_write_that_ends_half_way_says_how_far_it_came() {
    let limit = ["sh", "-c", "trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\""];
    let test = "r294_a_write_that_ends_half_way_says_how_far_it_came";
    succeeds(in_child(&limit, test, || {
        let directory = Directory::new("fsize");
        let path = directory.path("file");
        block_on(async {
            let mut file = File::create_new(&path).await.unwrap();
            // Of 512 or of 1024 bytes each, as the shell has it.
            let most = file.write_at(&[1; 100_000], 0).await.unwrap();
            assert!([8192, 16384].contains(&most), "{most}");
            let error = file.write_at(&[1], most as u64).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::FileTooLarge);
            let whole = file.write_all_at(&[1; 100_000], 0).await;
            let start = format!("write_all_at {path:?}: ");
            assert_eq!(kind_of(whole, &start), ErrorKind::FileTooLarge);
            file.write_all(&[2; 100_000]).await.unwrap();
            let start = format!("write {path:?}: ");
            assert_eq!(kind_of(file.flush().await, &start), ErrorKind::FileTooLarge);
            assert_eq!(file.metadata().await.unwrap().len(), most as u64);
            let written = fs::write(&path, [3; 100_000]).await;
            assert_eq!(kind_of(written, &start), ErrorKind::FileTooLarge);
            // A copy that has failed is removed (R299).
            let zeros = directory.path("sparse");
            let source = File::open("/proc/self/exe").await.unwrap();
            assert!(source.metadata().await.unwrap().len() > most as u64);
            let copied = fs::copy("/proc/self/exe", &zeros).await;
            assert_eq!(kind_of(copied, "copy "), ErrorKind::FileTooLarge);
            assert!(!fs::exists(&zeros).await.unwrap());
            let target = File::create(&zeros).await.unwrap();
            let copied = fs::copy_range(&source, 0, &target, 1 << 20).await;
            assert_eq!(copied.unwrap(), most as u64);
        });
    }));
}

#[test]
fn out_of_descriptors_a_file_cannot_be_opened_and_later_it_can() {
    let limit = ["sh", "-c", "ulimit -n 32; exec \"$0\" \"$@\""];
    let test = "out_of_descriptors_a_file_cannot_be_opened_and_later_it_can";
    succeeds(in_child(&limit, test, || {
        block_on(async {
            let mut files = Vec::new();
            let error = loop {
                match File::open("/dev/null").await {
                    Ok(file) => files.push(file),
                    Err(error) => break error,
                }
            };
            assert!(
                error.to_string().starts_with("open \"/dev/null\": "),
                "{error}"
            );
            assert_eq!(OsError::of(&error).unwrap().raw_os_error(), Some(24));
            files.pop();
            File::open("/dev/null").await.unwrap();
        });
    }));
}

// No permission.

/// If root runs the tests, the thread drops its privileges first; threads that it starts inherit
/// that.
#[test]
fn what_is_forbidden_is_denied_and_says_so() {
    let directory = Directory::new("denied");
    let path = directory.file("file", "secret");
    let folder = directory.path("folder");
    std::fs::create_dir(&folder).unwrap();
    for path in [&path, &folder] {
        std::fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap();
    }
    std::fs::set_permissions(&directory.0, Permissions::from_mode(0o755)).unwrap();
    let root = rustix::process::getuid().is_root();
    let work = || {
        if root {
            let unprivileged = rustix::process::Uid::from_raw(65534);
            rustix::thread::set_thread_uid(unprivileged).unwrap();
        }
        let (event_loop, _) = with_threads(1);
        event_loop.block_on(async {
            macro_rules! denied {
                ($($operation:ident($path:expr $(, $more:expr)*)),+ $(,)?) => {
                    $(
                        let start = format!("{} {:?}", stringify!($operation), $path);
                        let kind = kind_of(fs::$operation($path $(, $more)*).await, &start);
                        assert_eq!(kind, ErrorKind::PermissionDenied, "{start}");
                    )+
                };
            }
            let inside = folder.join("inside");
            denied!(
                read(&path),
                read_to_string(&path),
                write(&path, "x"),
                append(&path, "x"),
                truncate(&path, 0),
                copy(&path, directory.path("copy")),
                read_dir(&folder),
                scan_dir(&folder),
                metadata(&inside),
                create_dir(&inside),
                canonicalize(&inside),
                access(&path, Access::READ),
            );
            if root {
                denied!(
                    remove_file(&path),
                    rename(&path, directory.path("other")),
                    create_dir(directory.path("new")),
                );
                // Forbidden in other words.
                let times = FileTimes::new().set_modified(std::time::UNIX_EPOCH);
                fs::set_times(&path, times).await.unwrap_err();
                let open = Permissions::from_mode(0o666);
                fs::set_permissions(&path, open).await.unwrap_err();
                fs::chown(&path, Some(65534), None).await.unwrap_err();
            }
            let start = format!("open {path:?}: ");
            let kind = kind_of(File::open(&path).await, &start);
            assert_eq!(kind, ErrorKind::PermissionDenied);
        });
    };
    std::thread::scope(|scope| scope.spawn(work).join().unwrap());
    std::fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn what_is_not_open_for_it_is_refused() {
    let directory = Directory::new("bad-mode");
    let path = directory.file("file", "content");
    block_on(async {
        let mut file = File::open(&path).await.unwrap();
        // Accepted; that the file is not open for it is seen when it is written.
        file.write_all(b"x").await.unwrap();
        kind_of(file.flush().await, &format!("write {path:?}: "));
        kind_of(file.set_len(0).await, &format!("set_len {path:?}: "));
        let mut content = String::new();
        file.read_to_string(&mut content).await.unwrap();
        assert_eq!(content, "content");
        let mut file = OpenOptions::new().write(true).open(&path).await.unwrap();
        kind_of(file.read(&mut [0]).await, &format!("read {path:?}: "));
        // Options that do not go together.
        let opened = OpenOptions::new()
            .read(true)
            .truncate(true)
            .open(&path)
            .await;
        assert_eq!(kind_of(opened, "open "), ErrorKind::InvalidInput);
        let opened = OpenOptions::new().open(&path).await;
        assert_eq!(kind_of(opened, "open "), ErrorKind::InvalidInput);
        assert_eq!(fs::read(&path).await.unwrap(), b"content");
    });
}

// The wrong kind of file.

#[test]
fn a_directory_is_no_file() {
    let directory = Directory::new("is-dir");
    let path = &directory.0;
    block_on(async {
        macro_rules! refused {
            ($($operation:ident($($more:expr),*)),+ $(,)?) => {
                $(
                    let start = format!("{} {path:?}: ", stringify!($operation));
                    let kind = kind_of(fs::$operation(path $(, $more)*).await, &start);
                    assert_eq!(kind, ErrorKind::IsADirectory, "{start}");
                )+
            };
        }
        refused!(
            read(),
            read_to_string(),
            write("x"),
            append("x"),
            truncate(0),
            remove_file()
        );
        let created = File::create(path).await;
        assert_eq!(kind_of(created, "open "), ErrorKind::IsADirectory);
        // And a file is no directory.
        let file = directory.file("file", "");
        let removed = fs::remove_dir(&file).await;
        assert_eq!(kind_of(removed, "remove_dir "), ErrorKind::NotADirectory);
        let read = fs::read(file.join("below")).await;
        assert_eq!(kind_of(read, "read "), ErrorKind::NotADirectory);
    });
}

#[test]
fn a_link_that_leads_nowhere() {
    let directory = Directory::new("broken-link");
    let link = directory.path("link");
    block_on(async {
        fs::symlink("nowhere", &link).await.unwrap();
        let start = format!("read {link:?}: ");
        assert_eq!(kind_of(fs::read(&link).await, &start), ErrorKind::NotFound);
        assert_eq!(
            kind_of(fs::metadata(&link).await, "metadata "),
            ErrorKind::NotFound
        );
        let real = fs::canonicalize(&link).await;
        assert_eq!(kind_of(real, "canonicalize "), ErrorKind::NotFound);
        assert!(!fs::exists(&link).await.unwrap());
        assert!(fs::symlink_metadata(&link).await.unwrap().is_symlink());
        assert_eq!(fs::read_link(&link).await.unwrap(), Path::new("nowhere"));
        let entries = fs::scan_dir(&directory.0).await.unwrap();
        assert!(entries[0].file_type().is_symlink());
        // Written to, it leads somewhere.
        fs::write(&link, "now").await.unwrap();
        assert_eq!(fs::read(directory.path("nowhere")).await.unwrap(), b"now");
        fs::remove_file(directory.path("nowhere")).await.unwrap();
        fs::remove_file(&link).await.unwrap();
    });
}

// Names.

#[test]
fn a_zero_byte_is_in_no_name() {
    let bad = Path::new("a\0b");
    block_on(async {
        macro_rules! refused {
            ($($operation:ident($($more:expr),*)),+ $(,)?) => {
                $(
                    let start = format!("{} \"a\\0b\"", stringify!($operation));
                    let kind = kind_of(fs::$operation(bad $(, $more)*).await, &start);
                    assert_eq!(kind, ErrorKind::InvalidInput, "{start}");
                )+
            };
        }
        refused!(
            read(),
            read_to_string(),
            write(""),
            append(""),
            truncate(0),
            metadata(),
            symlink_metadata(),
            exists(),
            rename("x"),
            remove_file(),
            remove_dir(),
            remove_dir_all(),
            create_dir(),
            create_dir_all(),
            hard_link("x"),
            read_link(),
            canonicalize(),
            set_permissions(Permissions::from_mode(0o000)),
            set_times(FileTimes::new().set_modified_now()),
            set_times_nofollow(FileTimes::new().set_modified_now()),
            read_dir(),
            scan_dir(),
            copy("x"),
            access(Access::EXISTS),
            symlink("x"),
            chown(None, None),
            lchown(None, None),
            statfs(),
        );
        for made in [
            fs::mkdtemp("a\0bXXXXXX").await.map(drop),
            fs::mkstemp("a\0bXXXXXX").await.map(drop),
            File::open(bad).await.map(drop),
            File::create(bad).await.map(drop),
            fs::rename("Cargo.toml", bad).await,
            fs::hard_link("Cargo.toml", bad).await,
            fs::copy("Cargo.toml", bad).await.map(drop),
            fs::symlink("x", bad).await,
        ] {
            assert_eq!(kind_of(made, ""), ErrorKind::InvalidInput);
        }
    });
}

#[test]
fn names_need_not_be_text() {
    let directory = Directory::new("not-text");
    let name = OsStr::from_bytes(b"caf\xe9 \xff\xfe");
    let path = directory.path(name);
    block_on(async {
        fs::write(&path, "content").await.unwrap();
        assert_eq!(fs::read(&path).await.unwrap(), b"content");
        let mut entries = fs::read_dir(&directory.0).await.unwrap();
        let entry = entries.next_entry().await.unwrap().unwrap();
        assert_eq!((entry.file_name(), entry.path()), (name, path.clone()));
        let real = fs::canonicalize(&path).await.unwrap();
        assert_eq!(real.file_name(), Some(name));
        let link = directory.path("link");
        fs::symlink(name, &link).await.unwrap();
        assert_eq!(fs::read_link(&link).await.unwrap(), Path::new(name));
        let template = directory.path(OsStr::from_bytes(b"\xff-XXXXXX"));
        let folder = fs::mkdtemp(&template).await.unwrap();
        let made = folder.file_name().unwrap().as_bytes();
        assert!(made.starts_with(b"\xff-") && made.len() == 8);
        fs::remove_file(&path).await.unwrap();
        let error = fs::read(&path).await.unwrap_err();
        let inner = OsError::of(&error).unwrap();
        assert_eq!(
            inner.path(),
            Some(&*path),
            "as it was, whatever the text shows"
        );
    });
}

// Files that change.

#[test]
fn a_file_that_is_cut_while_it_is_read_ends_there() {
    let directory = Directory::new("cut");
    let path = directory.file("file", vec![1; 3 << 20]);
    block_on(async {
        let mut file = File::open(&path).await.unwrap();
        let mut start = vec![0; 1 << 20];
        file.read_exact(&mut start).await.unwrap();
        std::fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(10)
            .unwrap();
        // What was read ahead, and no more.
        let mut rest = Vec::new();
        file.read_to_end(&mut rest).await.unwrap();
        assert!(rest.len() < 2 << 20 && rest.iter().all(|&byte| byte == 1));
        assert_eq!(file.read(&mut start).await.unwrap(), 0);
        let exact = file.read_exact_at(&mut [0; 5], 8).await;
        let start = format!("read_exact_at {path:?}: ");
        assert_eq!(kind_of(exact, &start), ErrorKind::UnexpectedEof);
        assert_eq!(file.read_at(&mut [0; 5], 8).await.unwrap(), 2);
        // Removed, it can be read on.
        fs::remove_file(&path).await.unwrap();
        file.seek(SeekFrom::Start(0)).await.unwrap();
        assert_eq!(file.read_to_end(&mut rest).await.unwrap(), 10);
    });
}

/// Read as a whole, again and again, while another thread rewrites it: some state of it, never an
/// error.
#[test]
fn a_file_that_changes_while_it_is_read_as_a_whole() {
    let directory = Directory::new("changes");
    let path = directory.file("file", "");
    let (stop, stopped) = channel::<()>();
    let writer = std::thread::spawn({
        let path = path.clone();
        move || {
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            let mut length = 0;
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                length = (length + 777) % 100_000;
                file.set_len(length).unwrap();
            }
        }
    });
    block_on(async {
        for _ in 0..300 {
            let content = fs::read(&path).await.unwrap();
            assert!(content.len() < 100_000 + 777, "{}", content.len());
        }
    });
    drop(stop);
    writer.join().unwrap();
}

// The loop.

/// The thread is held, so that everything is under way when the loop goes: what has been accepted
/// is carried out, the rest is not.
#[test]
fn a_loop_may_go_while_jobs_are_under_way() {
    let directory = Directory::new("loop-goes");
    let path = directory.path("file");
    let (event_loop, pool) = with_threads(1);
    let kept = directory.file("kept", "content");
    let (hold, outside) = event_loop.block_on(async {
        let mut inside = File::create(&path).await.unwrap();
        let mut outside = File::open(&kept).await.unwrap();
        let hold = Hold::new();
        inside.write_all(b"accepted").await.unwrap();
        assert_pending!(tokio_test::task::spawn(outside.read(&mut [0; 3])).poll());
        // Tasks that are dropped with the loop.
        let removed = kept.clone();
        drop(spawn(async move { fs::remove_file(removed).await }));
        drop(spawn(async move { inside.read(&mut [0]).await }));
        phaseloop::task::yield_now().await;
        (hold, outside)
    });
    drop(event_loop);
    drop(hold);
    // A file may go after its loop, or be used on another.
    let other = phaseloop::Builder::new().pool(pool).build().unwrap();
    other.block_on(async {
        // One thread: what was queued before has ended.
        spawn_blocking(|| ()).await.unwrap();
        assert_eq!(fs::read(&path).await.unwrap(), b"accepted");
        assert_eq!(fs::read(&kept).await.unwrap(), b"content");
    });
    drop(outside);
}

/// Each `block_on` has a loop of its own, which takes the news of a job with it when it goes.
#[test]
fn a_file_goes_from_loop_to_loop() {
    let directory = Directory::new("loop-to-loop");
    let path = directory.file("file", vec![b'.'; 1 << 20]);
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    for _ in 0..20 {
        let mut file = block_on(options.open(&path)).unwrap();
        block_on(file.write_all(b"one ")).unwrap();
        block_on(file.write_all(b"two ")).unwrap();
        block_on(file.flush()).unwrap();
        block_on(file.write_all(&vec![b'-'; 1 << 19])).unwrap();
        let position = block_on(file.seek(SeekFrom::Current(0)));
        assert_eq!(position.unwrap(), 8 + (1 << 19));
        // A read that is dropped with its loop.
        let mut byte = [0];
        block_on(async { assert_pending!(tokio_test::task::spawn(file.read(&mut byte)).poll()) });
        block_on(file.read_exact(&mut byte)).unwrap();
        assert_eq!(&byte, b".");
        block_on(async {
            assert_pending!(tokio_test::task::spawn(file.seek(SeekFrom::Start(4))).poll())
        });
        assert_eq!(block_on(file.seek(SeekFrom::Start(4))).unwrap(), 4);
        let mut word = [0; 3];
        block_on(file.read_exact(&mut word)).unwrap();
        assert_eq!(&word, b"two");
        block_on(file.write_all(b"!")).unwrap();
        block_on(file.close()).unwrap();
        assert!(std::fs::read(&path).unwrap().starts_with(b"one two!--"));
    }
}

/// The job is at work when its loop goes, and ends while another waits for it.
#[test]
fn a_job_whose_loop_is_gone_wakes_the_next_that_waits() {
    let directory = Directory::new("next-loop");
    let pipe = directory.path("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    let both = std::fs::File::options().read(true).write(true).open(&pipe);
    let mut both = both.unwrap();
    let mut file = File::from_std(both.try_clone().unwrap());
    let (first, pool) = with_threads(1);
    first.block_on(async {
        assert_pending!(tokio_test::task::spawn(file.read(&mut [0; 5])).poll())
    });
    while pool.stats().started == 0 {
        std::thread::yield_now();
    }
    drop(first);
    let mut word = [0; 5];
    block_on(async {
        let mut reading = pin!(file.read_exact(&mut word));
        assert_pending!(poll_once(&mut reading).await);
        both.write_all(b"hello").unwrap();
        reading.await.unwrap();
    });
    assert_eq!(&word, b"hello");
}
