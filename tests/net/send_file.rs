//! Files to sockets: the bytes of a range, what a slow, a gone and a hostile peer cause, what a drop
//! leaves behind, files that end early, and when a job is needed.

use crate::util::child::in_child;
use crate::util::files::Directory;
use crate::util::polls::poll_once;
use crate::util::tcp::{expect_success, pair, run, run_on, std_pair};
use crate::util::trace::ms;
use std::cell::Cell;
use std::io::{ErrorKind, Read};
use std::ops::{Bound, RangeBounds};
use std::pin::Pin;
use std::rc::Rc;
use std::thread;

use futures::future::join;
use futures::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::fs::File;
use phaseloop::net::TcpStream;
#[cfg(unix)]
use phaseloop::net::UnixStream;
use phaseloop::pool::{Pool, PoolBuilder};
use phaseloop::task::yield_now;
use phaseloop::time::sleep;
use phaseloop::{Builder, EventLoop, LoopHandle, OsError, os_error, spawn};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Bytes of which no two pages are equal.
fn content(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    for (number, page) in bytes.chunks_mut(4 * KIB).enumerate() {
        page.fill(number as u8);
        let count = page.len().min(8);
        page[..count].copy_from_slice(&number.to_le_bytes()[..count]);
    }
    bytes
}

async fn read_all(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    bytes
}

/// Sends a range and returns what arrives.
async fn sent(file: &File, range: impl RangeBounds<u64>) -> Vec<u8> {
    let (ours, theirs) = pair().await;
    let send = async move {
        let count = ours.send_file(file, range).await.unwrap();
        drop(ours);
        count
    };
    let (count, bytes) = join(send, read_all(theirs)).await;
    assert_eq!(count, bytes.len() as u64);
    bytes
}

#[test]
fn the_bytes_of_a_range_arrive_and_no_others() {
    let directory = Directory::new("send-file-ranges");
    let all = content(3 * MIB + 5);
    let path = directory.file("file", &all);
    run(async {
        let file = File::open(&path).await.unwrap();
        let size = all.len() as u64;
        assert_eq!(sent(&file, ..).await, all);
        assert_eq!(sent(&file, 0..size).await, all);
        assert_eq!(sent(&file, 4095..4098).await, all[4095..4098]);
        assert_eq!(sent(&file, 1..=2_000_000).await, all[1..=2_000_000]);
        assert_eq!(sent(&file, size - 7..).await, all[all.len() - 7..]);
        assert_eq!(sent(&file, size - 7..size + 9).await, all[all.len() - 7..]);
        let behind = (Bound::Excluded(9), Bound::Included(12));
        assert_eq!(sent(&file, behind).await, all[10..=12]);
        for nothing in [0..0, size..size, size..size + 9, u64::MAX..u64::MAX] {
            assert_eq!(sent(&file, nothing).await, []);
        }
    });
}

#[test]
fn a_file_without_bytes_sends_none() {
    let directory = Directory::new("send-file-empty");
    let path = directory.file("file", "");
    run(async {
        let file = File::open(&path).await.unwrap();
        assert_eq!(sent(&file, ..).await, []);
        assert_eq!(sent(&file, ..100).await, []);
    });
}

#[test]
fn the_position_stays_and_accepted_writes_are_sent() {
    let directory = Directory::new("send-file-position");
    run(async {
        let path = directory.path("file");
        let mut file = File::create_new(&path).await.unwrap();
        file.write_all(b"one two").await.unwrap();
        assert_eq!(sent(&file, ..).await, b"one two");
        file.write_all(b" three").await.unwrap();
        assert_eq!(sent(&file, 4..).await, b"two three");
        file.close().await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one two three");
    });
}

#[test]
fn a_range_that_ends_before_it_starts_is_an_error() {
    let directory = Directory::new("send-file-inverted");
    let path = directory.file("file", "text");
    run(async {
        let file = File::open(&path).await.unwrap();
        let (ours, _theirs) = pair().await;
        let range = (Bound::Included(3), Bound::Excluded(2));
        let error = ours.send_file(&file, range).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

#[cfg(unix)]
#[test]
fn a_unix_socket_sends_files_too() {
    let directory = Directory::new("send-file-unix");
    let all = content(2 * MIB + 3);
    let path = directory.file("file", &all);
    run(async {
        let file = File::open(&path).await.unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let send = async {
            let count = ours.send_file(&file, 5..).await.unwrap();
            drop(ours);
            count
        };
        let mut bytes = Vec::new();
        let (count, read) = join(send, theirs.read_to_end(&mut bytes)).await;
        assert_eq!(count, all.len() as u64 - 5);
        assert_eq!(read.unwrap() as u64, count);
        assert_eq!(bytes, all[5..]);
    });
}

/// Lets the kernel take what it takes, and returns how much that is.
async fn until_full(
    stream: &TcpStream,
    mut sending: Pin<&mut phaseloop::net::SendFile<'_>>,
) -> u64 {
    let mut before = None;
    // The peer's buffer takes its part in the background, so that there may be room once more.
    while before != Some(sending.sent()) {
        before = Some(sending.sent());
        for _ in 0..20 {
            assert!(poll_once(sending.as_mut()).await.is_pending());
            sleep(ms(1)).await;
        }
    }
    assert!(stream.peer_addr().is_ok());
    sending.sent()
}

#[test]
fn a_peer_that_does_not_read_stops_the_send_and_nothing_else() {
    let directory = Directory::new("send-file-slow");
    let all = content(24 * MIB);
    let path = directory.file("file", &all);
    run(async {
        let file = File::open(&path).await.unwrap();
        let (ours, mut theirs) = pair().await;
        let ticks = Rc::new(Cell::new(0));
        let count = ticks.clone();
        let clock = spawn(async move {
            loop {
                sleep(ms(1)).await;
                count.set(count.get() + 1);
            }
        });
        let mut sending = ours.send_file(&file, ..);
        let full = until_full(&ours, Pin::new(&mut sending)).await;
        assert!(full > 0 && full < all.len() as u64, "{full}");
        let before = ticks.get();
        assert!(before >= 20, "{before}");
        // A peer that takes little at a time: whatever it takes is the right bytes.
        let mut bytes = vec![0; 100];
        theirs.read_exact(&mut bytes).await.unwrap();
        let rest = async {
            assert_eq!((&mut sending).await.unwrap(), all.len() as u64);
            ours.shutdown(std::net::Shutdown::Write).unwrap();
        };
        join(rest, theirs.read_to_end(&mut bytes)).await.1.unwrap();
        assert!(bytes == all);
        clock.abort();
    });
}

#[test]
fn a_dropped_send_knows_how_much_went_out_and_can_go_on() {
    let directory = Directory::new("send-file-drop");
    let all = content(16 * MIB);
    let path = directory.file("file", &all);
    run(async {
        let file = File::open(&path).await.unwrap();
        let (ours, theirs) = pair().await;
        let mut first = ours.send_file(&file, ..);
        let full = until_full(&ours, Pin::new(&mut first)).await;
        drop(first);
        let rest = async {
            // Nothing more goes out meanwhile.
            sleep(ms(20)).await;
            let rest = ours.send_file(&file, full..).await.unwrap();
            assert_eq!(full + rest, all.len() as u64);
            drop(ours);
        };
        let (_, bytes) = join(rest, read_all(theirs)).await;
        assert!(bytes == all);
    });
}

/// The wait of a dropped send does not keep the loop alive.
#[test]
fn a_dropped_send_leaves_no_wait_behind() {
    let directory = Directory::new("send-file-wait");
    let path = directory.file("file", content(16 * MIB));
    let mut event_loop = EventLoop::new().unwrap();
    let kept = run_on(&mut event_loop, async {
        let file = File::open(&path).await.unwrap();
        let (ours, theirs) = pair().await;
        let mut sending = ours.send_file(&file, ..);
        until_full(&ours, Pin::new(&mut sending)).await;
        drop(sending);
        (ours, theirs)
    });
    assert!(!event_loop.run(phaseloop::RunMode::NoWait).unwrap());
    drop(kept);
}

#[test]
fn a_file_that_shrinks_meanwhile_ends_the_send() {
    let directory = Directory::new("send-file-shrinks");
    let path = directory.file("file", content(16 * MIB));
    run(async {
        let file = File::open(&path).await.unwrap();
        let (ours, theirs) = pair().await;
        let mut sending = ours.send_file(&file, 0..16 * MIB as u64);
        let full = until_full(&ours, Pin::new(&mut sending)).await;
        let writer = std::fs::File::options().write(true).open(&path).unwrap();
        writer.set_len(full + 10).unwrap();
        let send = async {
            let count = (&mut sending).await.unwrap();
            ours.shutdown(std::net::Shutdown::Write).unwrap();
            count
        };
        let (count, bytes) = join(send, read_all(theirs)).await;
        assert_eq!(count, full + 10);
        assert_eq!(count, bytes.len() as u64);
    });
}

#[test]
fn a_peer_that_is_gone_is_an_error_with_the_file() {
    let directory = Directory::new("send-file-gone");
    let path = directory.file("file", content(16 * MIB));
    run(async {
        let file = File::open(&path).await.unwrap();
        let (ours, theirs) = pair().await;
        let mut sending = ours.send_file(&file, ..);
        let full = until_full(&ours, Pin::new(&mut sending)).await;
        theirs.reset().unwrap().await;
        let error = (&mut sending).await.unwrap_err();
        let kinds = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset];
        assert!(kinds.contains(&error.kind()), "{error}");
        let details = OsError::of(&error).unwrap();
        assert_eq!(details.operation(), "send_file");
        assert_eq!(details.path(), Some(&*path));
        assert!(os_error(&error).is_some());
        assert!(sending.sent() >= full);
    });
}

#[cfg(unix)]
#[test]
fn a_directory_is_an_error_with_its_path() {
    let directory = Directory::new("send-file-directory");
    run(async {
        let opened = std::fs::File::open(&directory.0).unwrap();
        let unnamed = File::from_std(opened);
        let (ours, _theirs) = pair().await;
        let error = ours.send_file(&unnamed, ..).await.unwrap_err();
        assert_eq!(OsError::of(&error).unwrap().operation(), "send_file");
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
    });
}

/// It has no offsets. Neither a writer nor a byte is waited for.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_an_error_at_once() {
    let directory = Directory::new("send-file-pipe");
    let path = directory.0.join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).unwrap();
    run(async {
        // Opened for both directions, it waits for no other end.
        let opened = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path);
        let file = File::from_std(opened.unwrap());
        let (ours, _theirs) = pair().await;
        let mut sending = ours.send_file(&file, ..10);
        let error = (&mut sending).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSeekable);
        assert_eq!(sending.sent(), 0);
    });
}

/// The end is that of the file when the send gets there.
#[test]
fn a_file_that_grows_meanwhile_is_sent_to_its_new_end() {
    let directory = Directory::new("send-file-grows");
    let path = directory.file("file", content(8 * MIB));
    run(async {
        let file = File::open(&path).await.unwrap();
        let (ours, theirs) = pair().await;
        let send = async move {
            let mut sending = ours.send_file(&file, ..);
            // The peer does not read yet, so the end is far.
            assert!(poll_once(Pin::new(&mut sending)).await.is_pending());
            let appended = std::fs::OpenOptions::new().append(true).open(&path);
            std::io::Write::write_all(&mut appended.unwrap(), &[9; 1000]).unwrap();
            let count = sending.await.unwrap();
            drop(ours);
            count
        };
        let (count, bytes) = join(send, read_all(theirs)).await;
        assert_eq!(
            (count, bytes.len()),
            (8 * MIB as u64 + 1000, 8 * MIB + 1000)
        );
        assert!(bytes[8 * MIB..].iter().all(|byte| *byte == 9));
    });
}

/// The kernel cannot map these files, has no size for them, and makes their content on each read.
#[cfg(target_os = "linux")]
#[test]
fn a_file_of_proc_is_sent_by_a_copy_if_need_be() {
    run(async {
        let file = File::open("/proc/self/limits").await.unwrap();
        let expected = std::fs::read("/proc/self/limits").unwrap();
        assert_eq!(sent(&file, ..).await, expected);
    });
}

fn with_pool() -> (EventLoop, Pool) {
    let pool = PoolBuilder::new().threads(1).build();
    let event_loop = Builder::new().pool(pool.clone()).build().unwrap();
    (event_loop, pool)
}

/// Sends the whole file to a thread, and returns how many jobs that took.
async fn jobs_of_send(pool: &Pool, file: &File, length: usize) -> u64 {
    let (ours, mut theirs) = std_pair();
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        theirs.read_to_end(&mut bytes).unwrap();
        bytes.len()
    });
    let ours = TcpStream::from_std(ours).unwrap();
    // A worker counts a job after it has delivered the end.
    while pool.metrics().busy > 0 {
        thread::yield_now();
    }
    let before = pool.metrics().done;
    assert_eq!(ours.send_file(file, ..).await.unwrap(), length as u64);
    while pool.metrics().busy > 0 {
        thread::yield_now();
    }
    let jobs = pool.metrics().done - before;
    drop(ours);
    assert_eq!(reader.join().unwrap(), length);
    jobs
}

/// On the loop where the pages are cached, by jobs where they are not: no send waits for a disk.
#[cfg(target_os = "linux")]
#[test]
fn what_is_cached_needs_no_job_and_what_is_not_is_read_by_jobs() {
    use rustix::fs::{Advice, fadvise};
    let directory = Directory::new("send-file-cached");
    let length = 5 * MIB + 1;
    let path = directory.file("file", content(length));
    let plain = std::fs::File::open(&path).unwrap();
    plain.sync_all().unwrap();
    let mut byte = [0];
    let mut buffers = [std::io::IoSliceMut::new(&mut byte)];
    let flags = rustix::io::ReadWriteFlags::NOWAIT;
    if rustix::io::preadv2(&plain, &mut buffers, 0, flags).is_err() {
        eprintln!("skipped: the file system does not say what is cached");
        return;
    }
    let (mut event_loop, pool) = with_pool();
    run_on(&mut event_loop, async {
        let file = File::open(&path).await.unwrap();
        assert_eq!(jobs_of_send(&pool, &file, length).await, 0);
        fadvise(&plain, 0, None, Advice::DontNeed).unwrap();
        let cold = jobs_of_send(&pool, &file, length).await;
        assert!(
            (1..=7).contains(&cold),
            "at most one for each piece: {cold}"
        );
        assert_eq!(jobs_of_send(&pool, &file, length).await, 0);
    });
}

/// A peer that reads as fast as it can does not keep the task inside one turn.
#[test]
fn a_fast_peer_leaves_the_loop_its_turns() {
    let directory = Directory::new("send-file-fast");
    let length = 24 * MIB;
    let path = directory.file("file", content(length));
    let (mut event_loop, pool) = with_pool();
    run_on(&mut event_loop, async {
        let file = File::open(&path).await.unwrap();
        let before = LoopHandle::current().turns();
        jobs_of_send(&pool, &file, length).await;
        let turns = LoopHandle::current().turns() - before;
        assert!(turns >= 24, "{turns}");
    });
}

#[cfg(target_os = "linux")]
#[test]
fn dropped_sends_leave_no_descriptor_and_no_wait() {
    let test = "dropped_sends_leave_no_descriptor_and_no_wait";
    expect_success(in_child(&[], test, || run(drop_many())));
}

#[cfg(target_os = "linux")]
async fn drop_many() {
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let directory = Directory::new("send-file-many");
    let path = directory.file("file", content(8 * MIB));
    let file = File::open(&path).await.unwrap();
    let mut before = 0;
    for round in 0..500 {
        if round == 20 {
            before = open();
        }
        let (ours, theirs) = pair().await;
        let mut sending = ours.send_file(&file, ..);
        let mut sending = Pin::new(&mut sending);
        // Some end in a wait for the poll phase, others in one for the socket.
        for _ in 0..round % 20 {
            assert!(poll_once(sending.as_mut()).await.is_pending());
            yield_now().await;
        }
        drop(theirs);
    }
    assert_eq!(open(), before);
}
