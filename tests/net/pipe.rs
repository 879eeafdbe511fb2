//! The ends of pipes, R196 and R206: what they carry, how they end, which mode their descriptors
//! are in.
#![cfg(target_os = "linux")]

use crate::util::trace::{finish, paused, turn};
use std::fs::{self, File};
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use futures::future::join;
use futures::{AsyncReadExt, AsyncWriteExt, FutureExt};
use phaseloop::io::{PipeReader, PipeWriter, pipe};
use phaseloop::{Handle, Keeper, block_on, queue_microtask, spawn};
use rustix::fs::OFlags;
use rustix::io::FdFlags;
use rustix::pipe::PipeFlags;
use tokio_test::assert_pending;

fn is_nonblocking(end: impl AsFd) -> bool {
    let flags = rustix::fs::fcntl_getfl(end).unwrap();
    flags.contains(OFlags::NONBLOCK)
}

fn system_pipe() -> (OwnedFd, OwnedFd) {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap()
}

/// Fills a pipe and returns how many bytes that took.
fn fill(writer: &PipeWriter) -> usize {
    let mut total = 0;
    loop {
        match writer.try_write(&[7; 4096]) {
            Ok(count) => total += count,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                return total;
            }
        }
    }
}

#[test]
fn more_than_a_pipe_holds_goes_through_in_order() {
    block_on(async {
        let (mut reader, mut writer) = pipe().unwrap();
        let sent: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
        let mut received = Vec::new();
        let send = async {
            writer.write_all(&sent).await.unwrap();
            writer.close().await.unwrap();
        };
        let (read, ()) = join(reader.read_to_end(&mut received), send).await;
        assert_eq!(read.unwrap(), sent.len());
        assert!(received == sent);
    });
}

#[test]
fn several_buffers_at_once() {
    block_on(async {
        let (reader, writer) = pipe().unwrap();
        let parts = [IoSlice::new(b"he"), IoSlice::new(b""), IoSlice::new(b"llo")];
        assert_eq!(writer.try_write_vectored(&parts).unwrap(), 5);
        let (mut head, mut tail) = ([0; 3], [0; 8]);
        let mut buffers = [IoSliceMut::new(&mut head), IoSliceMut::new(&mut tail)];
        assert_eq!(reader.try_read_vectored(&mut buffers).unwrap(), 5);
        assert_eq!((&head, &tail[..2]), (b"hel", &b"lo"[..]));
        let count = (&writer).write_vectored(&parts).await.unwrap();
        let mut buffers = [IoSliceMut::new(&mut head), IoSliceMut::new(&mut tail)];
        assert_eq!((&reader).read_vectored(&mut buffers).await.unwrap(), count);
    });
}

#[test]
fn try_never_waits() {
    block_on(async {
        let (reader, writer) = pipe().unwrap();
        let error = reader.try_read(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        let capacity = fill(&writer);
        assert!(capacity >= 4096);
        let room = writer.writable().now_or_never();
        assert!(room.is_none(), "there is none");
        let mut rest = vec![0; capacity];
        (&reader).read_exact(&mut rest).await.unwrap();
        writer.writable().await.unwrap();
        assert_eq!(writer.try_write(b"x").unwrap(), 1);
        reader.readable().await.unwrap();
        assert_eq!(reader.try_read(&mut rest).unwrap(), 1);
    });
}

#[test]
fn the_end_comes_with_the_last_writer() {
    block_on(async {
        let (mut reader, writer) = pipe().unwrap();
        let other = PipeWriter::from_fd(writer.as_fd().try_clone_to_owned().unwrap()).unwrap();
        drop(writer);
        let mut buffer = [0; 8];
        assert_pending!(tokio_test::task::spawn(reader.read(&mut buffer)).poll());
        assert_eq!(other.try_write(b"last").unwrap(), 4);
        drop(other);
        assert_eq!(reader.read(&mut buffer).await.unwrap(), 4);
        assert_eq!(reader.read(&mut buffer).await.unwrap(), 0);
        assert_eq!(reader.read(&mut buffer).await.unwrap(), 0, "and stays");
    });
}

#[test]
fn a_writer_that_is_closed_ends_the_stream_and_refuses_writes() {
    block_on(async {
        let (mut reader, mut writer) = pipe().unwrap();
        (&writer).close().await.unwrap();
        writer.write_all(b"still open").await.unwrap();
        writer.close().await.unwrap();
        writer.close().await.unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "still open");
        let error = writer.write_all(b"too late").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        assert_eq!(error.to_string(), "this end of the stream was closed");
        writer.writable().await.unwrap();
        assert!(writer.try_write(b"too late").is_err());
        assert!(!writer.is_active());
        writer.close_now().await;
    });
}

#[test]
fn a_reader_that_goes_breaks_the_pipe() {
    block_on(async {
        let (reader, writer) = pipe().unwrap();
        fill(&writer);
        let waiting = spawn(async move { (&writer).write_all(b"x").await });
        queue_microtask(move || drop(reader));
        let error = waiting.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_read_that_is_given_up_takes_nothing() {
    block_on(async {
        let (mut reader, writer) = pipe().unwrap();
        assert_pending!(tokio_test::task::spawn(reader.read(&mut [0; 8])).poll());
        writer.try_write(b"kept").unwrap();
        let mut buffer = [0; 8];
        assert_eq!(reader.read(&mut buffer).await.unwrap(), 4);
        assert_eq!(&buffer[..4], b"kept");
    });
}

#[test]
fn r206_fresh_ends_do_not_block_and_are_not_inherited() {
    block_on(async {
        let (reader, writer) = pipe().unwrap();
        for end in [reader.as_fd(), writer.as_fd()] {
            assert!(is_nonblocking(end));
            assert_eq!(rustix::io::fcntl_getfd(end).unwrap(), FdFlags::CLOEXEC);
        }
        // Other programs that inherit one expect a blocking pipe.
        assert!(!is_nonblocking(reader.into_owned_fd().unwrap()));
        assert!(!is_nonblocking(writer.into_owned_fd().unwrap()));
    });
}

#[test]
fn r196_an_adopted_end_gets_its_mode_back() {
    block_on(async {
        for blocks in [true, false] {
            let (reader, writer) = system_pipe();
            for end in [&reader, &writer] {
                rustix::io::ioctl_fionbio(end, !blocks).unwrap();
            }
            let reader = PipeReader::from_fd(reader).unwrap();
            let writer = PipeWriter::from_fd(writer).unwrap();
            assert!(is_nonblocking(&reader) && is_nonblocking(&writer));
            assert_eq!(!is_nonblocking(reader.into_owned_fd().unwrap()), blocks);
            assert_eq!(!is_nonblocking(writer.into_owned_fd().unwrap()), blocks);
        }
    });
}

#[test]
fn r196_the_wrong_end_and_a_regular_file_are_refused() {
    block_on(async {
        let (reader, writer) = system_pipe();
        let error = PipeReader::from_fd(writer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let error = PipeWriter::from_fd(reader).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let file = File::open("/proc/self/exe").unwrap();
        let error = PipeReader::from_fd(file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    });
}

/// One descriptor for both directions, as of a named pipe that is its own peer.
#[test]
fn named_pipes_are_pipes() {
    let path = std::env::temp_dir().join(format!("phaseloop-{}-fifo", std::process::id()));
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, 0o600.into(), 0).unwrap();
    block_on(async {
        let both = File::options().read(true).write(true).open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let mut reader = PipeReader::from_fd(both.try_clone().unwrap()).unwrap();
        let mut writer = PipeWriter::from_fd(both).unwrap();
        writer.write_all(b"hello").await.unwrap();
        let mut buffer = [0; 5];
        reader.read_exact(&mut buffer).await.unwrap();
        assert_eq!(&buffer, b"hello");
    });
}

/// Bytes that are there are read without an event, the short read that empties the pipe is the last
/// before the wait.
#[test]
fn a_waiting_reader_is_woken_in_the_poll_phase_and_keeps_the_loop_alive() {
    let (mut event_loop, handle, trace) = paused();
    let (reader, writer) = event_loop.enter(|| pipe().unwrap());
    let reader = Rc::new(reader);
    let task = {
        let (reader, trace) = (reader.clone(), trace.clone());
        handle.spawn(async move {
            let mut buffer = [0; 8];
            let read = (&*reader).read(&mut buffer).await.unwrap();
            trace.log(format_args!("read {read}"));
        })
    };
    assert!(turn(&mut event_loop));
    assert!(reader.is_active());
    assert_eq!(handle.keepers(), [(Keeper::Io, 1)]);
    reader.unref();
    assert!(!turn(&mut event_loop), "unref'd");
    reader.ref_();
    handle.set_immediate(trace.call("check"));
    writer.try_write(b"abc").unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "read 3 check");
    drop(task);
}

#[test]
fn a_close_is_reported_in_the_closing_phase() {
    let (mut event_loop, _, trace) = paused();
    let (reader, writer) = event_loop.enter(|| pipe().unwrap());
    reader.close().then(trace.call("reader"));
    writer.close_now().then(trace.call("writer"));
    assert_eq!(trace.take(), "");
    finish(&mut event_loop);
    assert_eq!(trace.take(), "writer reader");
}

#[test]
fn the_other_side_may_be_any_process() {
    block_on(async {
        let (reader, mut writer) = pipe().unwrap();
        let thread = std::thread::spawn({
            let mut reader = File::from(reader.into_owned_fd().unwrap());
            move || {
                let mut text = String::new();
                reader.read_to_string(&mut text).unwrap();
                text
            }
        });
        writer.write_all(b"across").await.unwrap();
        drop(writer);
        assert_eq!(thread.join().unwrap(), "across");
    });
}
