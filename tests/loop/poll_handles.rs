//! Foreign descriptors through `io::Source`, R235–R240: sockets, pipes, an epoll descriptor,
//! standard input.
//!
//! Ours differs: the source is not made non-blocking (R235); the peer's half-close, a hangup, an
//! error and urgent data make a source ready in the directions they concern, beside being events of
//! their own (R236, R238); an event is remembered until an attempt would block (R237, tested with
//! the poll phase, as are R239 and the second source of a descriptor).
#![cfg(target_os = "linux")]

use crate::util::child::path_of;
use crate::util::trace::{finish, paused, turn};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::rc::Rc;

use futures::FutureExt;
use phaseloop::io::Source;
use phaseloop::{AsyncHandle, EventLoop, Handle, LoopHandle, block_on, spawn};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::ioctl_fionbio;
use rustix::pipe::{PipeFlags, pipe_with};
use tokio_test::assert_pending;

/// A pipe that does not block: its reading end and its writing end.
fn pipe() -> (File, File) {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
    (reader.into(), writer.into())
}

/// Two ends of a TCP connection that do not block.
fn tcp_pair() -> [TcpStream; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    let pair = [client, server];
    pair.iter().for_each(|s| s.set_nonblocking(true).unwrap());
    pair
}

fn source<T: AsFd + 'static>(source: T) -> Source<T> {
    Source::new(&LoopHandle::current(), source).unwrap()
}

/// Reads to the end in pieces of different sizes; returns how many bytes that were.
async fn read_all<T>(source: &Source<T>) -> usize
where
    T: AsFd,
    for<'a> &'a T: Read,
{
    let mut total = 0;
    for size in (1..5000).step_by(977).cycle() {
        let mut buffer = vec![0; size];
        let read = source.read_with(|mut source| source.read(&mut buffer));
        match read.await.unwrap() {
            0 => break,
            count => total += count,
        }
    }
    total
}

/// Writes so many bytes in pieces of different sizes.
async fn write_all<T>(source: &Source<T>, mut rest: usize)
where
    T: AsFd,
    for<'a> &'a T: Write,
{
    for size in (1..9000).step_by(1733).cycle() {
        let piece = vec![0; size.min(rest)];
        let written = source.write_with(|mut source| source.write(&piece));
        rest -= written.await.unwrap();
        if rest == 0 {
            return;
        }
    }
}

#[test]
fn r236_libuv_poll_duplex() {
    const TOTAL: usize = 500_000;
    block_on(async {
        let mut tasks = Vec::new();
        for end in (0..8).flat_map(|_| tcp_pair()) {
            let source = Rc::new(source(end));
            let writer = source.clone();
            tasks.push(spawn(async move {
                write_all(&writer, TOTAL).await;
                // The peer reads on; this end does too.
                writer.get_ref().shutdown(Shutdown::Write).unwrap();
                TOTAL
            }));
            tasks.push(spawn(async move { read_all(&source).await }));
        }
        for task in tasks {
            assert_eq!(task.await.unwrap(), TOTAL);
        }
        assert_eq!(LoopHandle::current().handles(), []);
    });
}

#[test]
fn libuv_poll_unidirectional() {
    const TOTAL: usize = 300_000;
    block_on(async {
        let mut tasks = Vec::new();
        for _ in 0..8 {
            let (reader, writer) = pipe();
            let (reader, writer) = (source(reader), source(writer));
            tasks.push(spawn(async move { read_all(&reader).await }));
            tasks.push(spawn(async move {
                write_all(&writer, TOTAL).await;
                TOTAL
            }));
        }
        for task in tasks {
            assert_eq!(task.await.unwrap(), TOTAL);
        }
    });
}

#[test]
fn libuv_poll_close() {
    let (mut event_loop, handle, _) = paused();
    let closed = Rc::new(Cell::new(0));
    let mut peers = Vec::new();
    for _ in 0..128 {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let (source, count) = (Source::new(&handle, ours).unwrap(), closed.clone());
        // A future waits for it, and it is readable.
        (&theirs).write_all(b"x").unwrap();
        event_loop.enter(|| assert_pending!(tokio_test::task::spawn(source.readable()).poll()));
        source.close().then(move || count.set(count.get() + 1));
        peers.push(theirs);
    }
    assert_eq!(closed.get(), 0);
    finish(&mut event_loop);
    assert_eq!((closed.get(), handle.handles().len()), (128, 0));
}

#[test]
fn r235_libuv_poll_bad_fdtype() {
    let (_event_loop, handle, _) = paused();
    for path in ["/proc/self/exe", "/", "/etc/passwd"] {
        let refused = Source::new(&handle, File::open(path).unwrap());
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{path}");
    }
    assert_eq!(handle.handles(), []);
}

#[test]
fn r235_libuv_poll_multiple_handles() {
    let (mut event_loop, handle, trace) = paused();
    let (reader, mut writer) = pipe();
    let reader: &'static File = Box::leak(Box::new(reader));
    let first = Source::new(&handle, reader).unwrap();
    for _ in 0..2 {
        let error = Source::new(&handle, reader).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    }
    // When the first has gone, there may be another, and it works.
    let reader = first.into_inner();
    let second = Source::new(&handle, reader).unwrap();
    let log = trace.clone();
    drop(handle.spawn(async move {
        let mut byte = [0];
        let read = second.read_with(|&(mut file)| file.read(&mut byte));
        log.log(read.await.unwrap());
    }));
    writer.write_all(b"x").unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "1");
    // A copy of a descriptor is another one.
    let copy = reader.try_clone().unwrap();
    let _both = [File::try_clone(reader).unwrap(), copy].map(|file| Source::new(&handle, file));
    assert_eq!(handle.handles().len(), 2);
}

/// The attempt blocks if the source is blocking: its mode was not changed.
#[test]
fn r235_the_mode_of_the_source_is_left_alone() {
    let (_event_loop, handle, _) = paused();
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let source = Source::new(&handle, ours).unwrap();
    let mut ours = source.into_inner();
    let writer = std::thread::spawn(move || theirs.write_all(b"x"));
    // Fails with `WouldBlock` if it comes too early and does not block.
    ours.read_exact(&mut [0]).unwrap();
    writer.join().unwrap().unwrap();
}

/// Whether urgent data and hang-ups can be waited for.
const REPORTS_PRIORITY: bool = cfg!(not(phaseloop_portable_poller));

#[cfg(feature = "net")]
#[test]
fn r236_libuv_poll_oob() {
    use rustix::net::{RecvFlags, SendFlags, recv, send};
    let (mut event_loop, handle, trace) = paused();
    let [ours, theirs] = tcp_pair();
    let source = Rc::new(Source::new(&handle, ours).unwrap());
    let (urgent, log) = (source.clone(), trace.clone());
    drop(handle.spawn(async move {
        match urgent.priority().await {
            Ok(()) => log.log("urgent"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported),
        }
    }));
    let (readable, log) = (source.clone(), trace.clone());
    drop(handle.spawn(async move {
        readable.readable().await.unwrap();
        log.log("readable");
        let mut byte = [0_u8];
        recv(readable.get_ref(), &mut byte, RecvFlags::OOB).unwrap();
        log.log(char::from(byte[0]));
    }));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "");
    assert!(source.is_active());
    send(&theirs, b"!", SendFlags::OOB).unwrap();
    finish(&mut event_loop);
    let urgent = if REPORTS_PRIORITY { " urgent" } else { "" };
    assert_eq!(trace.take(), format!("readable !{urgent}"));
    assert!(!source.is_active());
}

#[cfg(feature = "net")]
#[test]
fn r236_one_event_of_urgent_data_ends_one_wait() {
    use rustix::net::{SendFlags, send};
    if !REPORTS_PRIORITY {
        return;
    }
    block_on(async {
        let [ours, theirs] = tcp_pair();
        let source = source(ours);
        for _ in 0..2 {
            assert_pending!(tokio_test::task::spawn(source.priority()).poll());
            send(&theirs, b"!", SendFlags::OOB).unwrap();
            source.readable().await.unwrap();
            source.priority().await.unwrap();
        }
        // Ordinary data is none.
        (&theirs).write_all(b"x").unwrap();
        phaseloop::task::yield_now_immediate().await;
        assert_pending!(tokio_test::task::spawn(source.priority()).poll());
    });
}

#[test]
fn r236_a_hang_up_is_told_before_all_is_read_and_stays() {
    block_on(async {
        let [ours, theirs] = tcp_pair();
        let source = source(ours);
        if !REPORTS_PRIORITY {
            let refused = source.hang_up().await.unwrap_err();
            return assert_eq!(refused.kind(), ErrorKind::Unsupported);
        }
        (&theirs).write_all(b"last words").unwrap();
        source.readable().await.unwrap();
        assert_pending!(tokio_test::task::spawn(source.hang_up()).poll());
        assert!(!source.is_active(), "given up");
        theirs.shutdown(Shutdown::Write).unwrap();
        source.hang_up().await.unwrap();
        assert_eq!(read_all(&source).await, 10);
        source.hang_up().now_or_never().unwrap().unwrap();
    });
}

#[test]
fn r236_r238_a_half_close_is_the_end_and_a_hangup_ends_both_directions() {
    block_on(async {
        let [ours, theirs] = tcp_pair();
        let source = source(ours);
        theirs.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_all(&source).await, 0);
        write_all(&source, 3).await;
        // The pipe is full: a writer waits, and is woken when the reader is closed.
        let (reader, writer) = pipe();
        let writer = self::source(writer);
        let waiting = spawn(async move {
            let piece = [0; 1 << 16];
            loop {
                let written = writer.write_with(|mut pipe| pipe.write(&piece)).await;
                if let Err(error) = written {
                    return error.kind();
                }
            }
        });
        phaseloop::task::yield_now_immediate().await;
        assert!(!waiting.is_finished());
        drop(reader);
        assert_eq!(waiting.await.unwrap(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn libuv_poll_nested_epoll() {
    let (mut event_loop, handle, trace) = paused();
    let inner = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let (reader, mut writer) = pipe();
    let data = epoll::EventData::new_u64(7);
    epoll::add(&inner, &reader, data, epoll::EventFlags::IN).unwrap();
    let (source, log) = (Source::new(&handle, inner).unwrap(), trace.clone());
    drop(handle.spawn(async move {
        source.readable().await.unwrap();
        let mut events = Vec::with_capacity(4);
        let now = Timespec::default();
        let buffer = rustix::buffer::spare_capacity(&mut events);
        epoll::wait(source.get_ref(), buffer, Some(&now)).unwrap();
        log.log(events[0].data.u64());
    }));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "");
    writer.write_all(b"x").unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "7");
}

#[test]
fn a_loop_watches_another_one() {
    let (mut outer, handle, trace) = paused();
    let inner = EventLoop::new().unwrap();
    let remote = inner.remote();
    let descriptor = inner.backend_fd().try_clone_to_owned().unwrap();
    let source = Source::new(&handle, descriptor).unwrap();
    let log = trace.clone();
    drop(handle.spawn(async move {
        source.readable().await.unwrap();
        log.log("inner");
    }));
    turn(&mut outer);
    assert_eq!(trace.take(), "");
    remote.wake().unwrap();
    finish(&mut outer);
    assert_eq!(trace.take(), "inner");
}

#[test]
fn libuv_close_fd() {
    let (mut event_loop, handle, trace) = paused();
    let (reader, mut writer) = pipe();
    let (source, log) = (Source::new(&handle, reader).unwrap(), trace.clone());
    drop(handle.spawn(async move {
        let mut buffer = [0; 8];
        loop {
            let read = source.read_with(|mut pipe| pipe.read(&mut buffer));
            match read.await.unwrap() {
                0 => return log.log("end"),
                count => log.log(count),
            }
        }
    }));
    writer.write_all(b"abc").unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "3");
    drop(writer);
    finish(&mut event_loop);
    assert_eq!(trace.take(), "end");
}

/// Whether the loop's poller has something to report.
fn has_events(event_loop: &EventLoop) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(
        event_loop.backend_fd(),
        PollFlags::IN,
    )];
    poll(&mut fds, Some(&Timespec::default())).unwrap() > 0
}

/// A child holds the same open file; ours is closed, and what happens to theirs is no event here.
#[test]
fn libuv_closed_fd_events() {
    let (mut event_loop, handle, _) = paused();
    let (reader, mut writer) = pipe();
    // Only holds it, until its input ends.
    let mut child = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(OwnedFd::from(reader.try_clone().unwrap()))
        .spawn()
        .unwrap();
    let source = Source::new(&handle, reader).unwrap();
    let _keep = AsyncHandle::new(&handle, |_| ()).unwrap();
    turn(&mut event_loop);
    drop(source);
    turn(&mut event_loop);
    writer.write_all(b"no line yet").unwrap();
    assert!(!has_events(&event_loop), "although there is data");
    drop(writer);
    assert!(!has_events(&event_loop), "although it has ended");
    assert!(child.try_wait().unwrap().is_none());
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// The hangup of one pipe is under way when another gets its number.
#[test]
fn libuv_iouring_pollhup() {
    let (mut event_loop, handle, trace) = paused();
    let (reader, writer) = pipe();
    let number = reader.as_raw_fd();
    let first = Source::new(&handle, reader).unwrap();
    let _keep = AsyncHandle::new(&handle, |_| ()).unwrap();
    turn(&mut event_loop);
    drop(writer);
    // Closes the first and replaces it by another one at once, so that no other thread can get the
    // number.
    let (reader, writer) = pipe();
    let mut first = OwnedFd::from(first.into_inner());
    rustix::io::dup2(&reader, &mut first).unwrap();
    assert_eq!(first.as_raw_fd(), number);
    let (second, log) = (
        Source::new(&handle, File::from(first)).unwrap(),
        trace.clone(),
    );
    drop(handle.spawn(async move {
        let mut byte = [0];
        let read = second.read_with(|mut pipe| pipe.read(&mut byte));
        log.log(read.await.unwrap());
    }));
    drop(reader);
    for _ in 0..3 {
        turn(&mut event_loop);
    }
    assert_eq!(trace.take(), "", "no hangup here");
    (&writer).write_all(b"x").unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "1");
}

#[test]
fn r240_the_descriptor_stays_with_its_owner() {
    let (mut event_loop, handle, _) = paused();
    let (reader, mut writer) = pipe();
    let reader: &'static File = Box::leak(Box::new(reader));
    for close in [false, true] {
        let source = Source::new(&handle, reader).unwrap();
        event_loop.enter(|| assert_pending!(tokio_test::task::spawn(source.readable()).poll()));
        if close {
            drop(source.close());
        } else {
            drop(source);
        }
        writer.write_all(b"x").unwrap();
        let mut owner = reader;
        assert_eq!(owner.read(&mut [0; 8]).unwrap(), 1, "open, and ours");
        turn(&mut event_loop);
    }
    assert_eq!(handle.handles(), []);
}

/// A child reads its standard input on a loop until the writer has closed it.
#[test]
fn libuv_pipe_close_stdout_read_stdin() {
    const CHILD: &str = "PHASELOOP_TEST_STDIN";
    if std::env::var_os(CHILD).is_some() {
        let input = io::stdin();
        ioctl_fionbio(&input, true).unwrap();
        return block_on(async {
            let (source, mut total) = (source(input), 0);
            loop {
                let mut buffer = [0; 16];
                let read = source.read_with(|stdin| stdin.lock().read(&mut buffer));
                match read.await.unwrap() {
                    0 => return assert_eq!(total, 9),
                    count => total += count,
                }
            }
        });
    }
    let test = "libuv_pipe_close_stdout_read_stdin";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &path_of(test), "--nocapture"])
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"some text").unwrap();
    drop(input);
    let child = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{stderr}");
}

/// What a child writes comes through a source on its output, then the end.
#[test]
fn libuv_stdio_over_pipes() {
    block_on(async {
        let mut child = Command::new("sh")
            .args(["-c", "echo hello; echo world"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = OwnedFd::from(child.stdout.take().unwrap());
        ioctl_fionbio(&output, true).unwrap();
        let (source, mut text) = (source(File::from(output)), Vec::<u8>::new());
        loop {
            let mut buffer = [0; 64];
            let read = source.read_with(|mut pipe| pipe.read(&mut buffer));
            match read.await.unwrap() {
                0 => break,
                count => text.extend(&buffer[..count]),
            }
        }
        assert_eq!(text, b"hello\nworld\n");
        assert!(!source.is_active());
        child.wait().unwrap();
    });
}
