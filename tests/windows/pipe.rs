//! Pipes on the loop.

use std::io::ErrorKind;

use futures::future::join;
use phaseloop::io::{AsyncReadExt, AsyncWriteExt, PipeReader, pipe};
use phaseloop::{EventLoop, Handle, LoopHandle, RunMode};

use crate::run;
use tokio_test::assert_pending;

#[test]
fn bytes_written_are_read_and_then_comes_eof() {
    run(async {
        let (mut reader, mut writer) = pipe().unwrap();
        writer.write_all(b"hello").await.unwrap();
        writer.close().await.unwrap();
        let late = writer.write(b"late").await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::BrokenPipe);
        let mut text = String::new();
        reader.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "hello");
        assert_eq!(reader.read(&mut [0; 8]).await.unwrap(), 0, "again");
    });
}

#[test]
fn more_than_the_pipe_holds_arrives_in_order() {
    run(async {
        let (mut reader, mut writer) = pipe().unwrap();
        let sent: Vec<u8> = (0..1_000_000_u32)
            .map(|number| (number % 251) as u8)
            .collect();
        let mut received = Vec::new();
        let write = async {
            writer.write_all(&sent).await.unwrap();
            writer.flush().await.unwrap();
            drop(writer);
        };
        let (read, ()) = join(reader.read_to_end(&mut received), write).await;
        assert_eq!(read.unwrap(), sent.len());
        assert!(received == sent);
    });
}

#[test]
fn attempts_do_not_wait() {
    run(async {
        let (reader, writer) = pipe().unwrap();
        let mut buffer = [0; 8];
        let empty = reader.try_read(&mut buffer).unwrap_err();
        assert_eq!(empty.kind(), ErrorKind::WouldBlock);
        assert_eq!(writer.try_write(b"abc").unwrap(), 3);
        reader.readable().await.unwrap();
        assert_eq!(reader.try_read(&mut buffer).unwrap(), 3);
        let chunk = [0; 60_000];
        let full = std::iter::repeat_with(|| writer.try_write(&chunk)).find(Result::is_err);
        let full = full.unwrap().unwrap_err();
        assert_eq!(full.kind(), ErrorKind::WouldBlock);
        drop(reader);
        writer.writable().await.unwrap();
        let broken = std::iter::repeat_with(|| writer.try_write(&chunk)).find(Result::is_err);
        assert_eq!(broken.unwrap().unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_read_that_is_given_up_loses_nothing() {
    run(async {
        let (mut reader, mut writer) = pipe().unwrap();
        let mut buffer = [0; 8];
        for round in 0..100_u8 {
            assert_pending!(tokio_test::task::spawn(reader.read(&mut buffer)).poll());
            writer.write_all(&[round]).await.unwrap();
            assert_eq!(reader.read(&mut buffer).await.unwrap(), 1);
            assert_eq!(buffer[0], round);
        }
    });
}

/// The kernel has the memory of the read until it has given it up.
#[test]
fn a_pipe_may_be_dropped_while_the_kernel_reads_or_writes() {
    run(async {
        for _ in 0..200 {
            let (mut reader, writer) = pipe().unwrap();
            let mut buffer = [0; 8];
            assert_pending!(tokio_test::task::spawn(reader.read(&mut buffer)).poll());
            drop(reader);
            drop(writer);
            let (reader, writer) = pipe().unwrap();
            while writer.try_write(&[0; 60_000]).is_ok() {}
            drop(writer);
            drop(reader);
        }
    });
    let event_loop = EventLoop::new().unwrap();
    let (reader, _writer) = event_loop.enter(|| pipe().unwrap());
    let mut reader = std::pin::pin!(reader);
    assert_pending!(tokio_test::task::spawn(reader.read(&mut [0; 8])).poll());
    drop(event_loop);
}

#[test]
fn a_waiting_reader_keeps_the_loop_alive_and_learns_of_its_close() {
    let mut event_loop = EventLoop::new().unwrap();
    let (mut reader, writer) = event_loop.enter(|| pipe().unwrap());
    let view = reader.any();
    let task = event_loop
        .handle()
        .spawn(async move { reader.read(&mut [0; 8]).await });
    assert!(event_loop.run(RunMode::NoWait).unwrap(), "it is kept alive");
    drop(view.close());
    assert!(!event_loop.run(RunMode::Default).unwrap());
    assert!(event_loop.block_on(task).unwrap().is_err());
    drop(writer);
}

#[test]
fn a_report_calls_it_a_pipe() {
    run(async {
        let (reader, _writer) = pipe().unwrap();
        let handles = LoopHandle::current().handles();
        assert!(
            handles.iter().any(|handle| handle.name == "pipe"),
            "{handles:?}"
        );
        drop(reader);
    });
}

#[test]
fn a_handle_whose_reads_would_block_is_refused() {
    run(async {
        let (reader, _writer) = std::io::pipe().unwrap();
        let refused = PipeReader::from_handle(reader).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    });
}
