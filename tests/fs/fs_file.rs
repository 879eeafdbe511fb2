//! Open files, R293 and R294: one position for reading, writing and seeking, which nothing mixes up
//! that is given up; writes that are accepted are carried out; errors come once.
#![cfg(feature = "fs")]

use crate::util::files::Directory;
use crate::util::panics::panic_of;
use crate::util::polls::poll_once;
use crate::util::pool::{Hold, with_threads};
use crate::util::trace::finish;
use crate::util::wakers::on_clone;
use std::cell::Cell;
use std::fs;
use std::future::{pending, poll_fn};
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use futures::future::{join, join_all};
use futures::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWrite,
    AsyncWriteExt, FutureExt, StreamExt,
};
use phaseloop::fs::{File, OpenOptions};
use phaseloop::pool::Pool;
use phaseloop::task::yield_now;
use phaseloop::{Keeper, RunMode, block_on, spawn};
use tokio_test::assert_pending;
use waker_fn::waker_fn;

/// More than a file keeps of what waits to be written.
const MUCH: usize = 3 << 20;

/// Bytes that show where they are.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 7 + at % 251) as u8).collect()
}

/// The two ends of a pipe.
#[allow(
    clippy::incompatible_msrv,
    reason = "the tests need not run on the oldest compiler"
)]
fn pipe() -> (fs::File, fs::File) {
    #[cfg(unix)]
    use std::os::fd::OwnedFd as Owned;
    #[cfg(windows)]
    use std::os::windows::io::OwnedHandle as Owned;
    let (reader, writer) = std::io::pipe().unwrap();
    (Owned::from(reader).into(), Owned::from(writer).into())
}

/// Reads at an offset, and leaves the position alone.
fn read_at(file: &fs::File, buffer: &mut [u8], offset: u64) -> usize {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_at(file, buffer, offset).unwrap();
    #[cfg(windows)]
    {
        use std::os::windows::fs::FileExt;
        let position = (&*file).stream_position().unwrap();
        let count = file.seek_read(buffer, offset).unwrap();
        (&*file).seek(SeekFrom::Start(position)).unwrap();
        count
    }
}

/// Writes at an offset, and leaves the position alone.
fn write_all_at(file: &fs::File, bytes: &[u8], offset: u64) {
    #[cfg(unix)]
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset).unwrap();
    #[cfg(windows)]
    {
        use std::os::windows::fs::FileExt;
        let position = (&*file).stream_position().unwrap();
        assert_eq!(file.seek_write(bytes, offset).unwrap(), bytes.len());
        (&*file).seek(SeekFrom::Start(position)).unwrap();
    }
}

/// Opens a file for everything, at its beginning.
async fn open(path: impl AsRef<Path>) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).open(path).await.unwrap()
}

/// Opens a file that only pool jobs read, since another process may have it open, too.
fn open_shared(path: impl AsRef<Path>) -> File {
    let mut options = fs::File::options();
    File::from_std(options.read(true).write(true).open(path).unwrap())
}

async fn read_some(file: &File, length: usize) -> String {
    let mut buffer = vec![0; length];
    let mut reader = file;
    let count = reader.read(&mut buffer).await.unwrap();
    String::from_utf8_lossy(&buffer[..count]).into_owned()
}

async fn position(file: &File) -> u64 {
    let mut seeker = file;
    seeker.seek(SeekFrom::Current(0)).await.unwrap()
}

fn jobs(pool: &Pool) -> u64 {
    pool.stats().started
}

// Reading.

#[test]
fn a_file_is_read_from_front_to_end_by_buffers_of_any_size() {
    let directory = Directory::new("read");
    let content = pattern(MUCH);
    let path = directory.file("file", &content);
    block_on(async {
        for size in [1000, 8192, 1 << 16, 1 << 20, 4 << 20] {
            let mut file = File::open(&path).await.unwrap();
            let (mut read, mut buffer) = (Vec::new(), vec![0; size]);
            loop {
                let count = file.read(&mut buffer).await.unwrap();
                if count == 0 {
                    break;
                }
                read.extend_from_slice(&buffer[..count]);
            }
            assert!(read == content, "by {size}");
            assert_eq!(file.read(&mut buffer).await.unwrap(), 0, "the end stays");
        }
    });
}

/// Reads grow, so that a long file takes few jobs, and a short one little memory.
#[test]
fn small_reads_of_a_large_file_take_few_jobs() {
    let directory = Directory::new("read-jobs");
    let path = directory.file("file", pattern(4 << 20));
    let (event_loop, pool) = with_threads(1);
    event_loop.block_on(async {
        let mut file = open_shared(&path);
        let mut buffer = [0; 512];
        let mut length = 0;
        loop {
            match file.read(&mut buffer).await.unwrap() {
                0 => break,
                count => length += count,
            }
        }
        assert_eq!(length, 4 << 20);
    });
    assert!(jobs(&pool) < 20, "{}", jobs(&pool));
}

/// The system has just been given it. Whoever reads it lets others have their turn all the same.
#[test]
fn what_the_system_has_in_memory_is_read_without_jobs_and_by_turns() {
    let directory = Directory::new("at-once");
    let content = pattern(8 << 20);
    let path = directory.file("file", &content);
    let (event_loop, pool) = with_threads(1);
    for size in [1000, 1 << 16, 1 << 20] {
        event_loop.block_on(async {
            let mut file = File::open(&path).await.unwrap();
            let before = jobs(&pool);
            let turns = Rc::new(Cell::new(0));
            let counting = spawn({
                let turns = turns.clone();
                async move {
                    loop {
                        phaseloop::task::yield_now_immediate().await;
                        turns.set(turns.get() + 1);
                    }
                }
            });
            let (mut read, mut buffer) = (Vec::new(), vec![0; size]);
            loop {
                match file.read(&mut buffer).await.unwrap() {
                    0 => break,
                    count => read.extend_from_slice(&buffer[..count]),
                }
            }
            assert!(read == content, "by {size}");
            assert!(turns.get() >= 7, "{} turns", turns.get());
            // One, to see what kind of file it is; more where the file system does not report what it
            // has in memory.
            assert!(jobs(&pool) - before < 40, "{}", jobs(&pool) - before);
            counting.abort();
        });
    }
}

#[test]
fn libuv_fs_read_file_eof_what_is_added_is_read_later() {
    let directory = Directory::new("eof");
    let path = directory.file("file", "one");
    block_on(async {
        let file = File::open(&path).await.unwrap();
        assert_eq!(read_some(&file, 100).await, "one");
        assert_eq!(read_some(&file, 100).await, "");
        assert_eq!(file.read_at(&mut [0; 10], 3).await.unwrap(), 0);
        fs::File::options()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"two")
            .unwrap();
        assert_eq!(read_some(&file, 100).await, "two");
    });
}

#[test]
fn lines_come_from_the_files_own_buffer() {
    let directory = Directory::new("lines");
    let path = directory.path("file");
    let expected: Vec<String> = (0..20_000).map(|line| format!("line {line}")).collect();
    fs::write(&path, expected.join("\n")).unwrap();
    block_on(async {
        let lines = File::open(&path).await.unwrap().lines();
        let lines: Vec<String> = lines.map(Result::unwrap).collect().await;
        assert!(lines == expected);
        let mut file = File::open(&path).await.unwrap();
        let buffered = file.fill_buf().await.unwrap().len();
        file.consume_unpin(5);
        assert_eq!(file.fill_buf().await.unwrap().len(), buffered - 5);
        assert_eq!(read_some(&file, 1).await, "0");
        assert_eq!(position(&file).await, 6);
    });
}

/// Fills as the `fill_buf` of some crates does: it polls once more when the fill is ready.
async fn fill_twice(file: &mut File) -> Vec<u8> {
    poll_fn(|cx| {
        ready!(Pin::new(&mut *file).poll_fill_buf(cx)).unwrap();
        match Pin::new(&mut *file).poll_fill_buf(cx) {
            Poll::Ready(filled) => Poll::Ready(filled.unwrap().to_vec()),
            Poll::Pending => panic!("the second poll is ready like the first"),
        }
    })
    .await
}

#[test]
fn a_fill_at_the_end_is_empty_and_a_later_one_reads_again() {
    let directory = Directory::new("fs-fill-end");
    let path = directory.path("grows");
    fs::write(&path, b"one").unwrap();
    block_on(async {
        let mut file = open(&path).await;
        for text in [b"one", b"two"] {
            assert_eq!(fill_twice(&mut file).await, text);
            file.consume_unpin(3);
            assert!(fill_twice(&mut file).await.is_empty());
            let mut grown = fs::OpenOptions::new().append(true).open(&path).unwrap();
            grown.write_all(b"two").unwrap();
        }
        // After the end was reported once, a seek is not answered by that end.
        let mut file = open(&path).await;
        let mut all = Vec::new();
        AsyncReadExt::read_to_end(&mut file, &mut all)
            .await
            .unwrap();
        assert!(
            AsyncBufReadExt::fill_buf(&mut file)
                .await
                .unwrap()
                .is_empty()
        );
        file.seek(SeekFrom::Start(0)).await.unwrap();
        assert_eq!(AsyncBufReadExt::fill_buf(&mut file).await.unwrap(), all);
    });
}

#[test]
fn libuv_fs_read_bufs_several_buffers_are_filled_in_turn() {
    let directory = Directory::new("read-bufs");
    let path = directory.file("file", "0123456789");
    block_on(async {
        let mut file = File::open(&path).await.unwrap();
        let (mut one, mut two, mut three) = ([0; 3], [0; 0], [0; 9]);
        let mut buffers = [&mut one[..], &mut two, &mut three].map(IoSliceMut::new);
        assert_eq!(file.read_vectored_at(&mut buffers, 2).await.unwrap(), 8);
        assert_eq!((&one, &three[..5]), (b"234", &b"56789"[..]));
        let mut buffers = [&mut one[..], &mut two, &mut three].map(IoSliceMut::new);
        assert_eq!(file.read_vectored(&mut buffers).await.unwrap(), 10);
        assert_eq!((&one, &three[..7]), (b"012", &b"3456789"[..]));
    });
}

/// A pipe can be read partially, too. No more bytes are taken from it than were requested.
#[test]
fn libuv_fs_partial_read_a_short_read_is_a_short_read() {
    let (raw, mut writer) = pipe();
    block_on(async {
        let mut peer = raw.try_clone().unwrap();
        let file = File::from_std(raw);
        writer.write_all(b"0123456789").unwrap();
        assert_eq!(read_some(&file, 4).await, "0123");
        let mut rest = [0; 3];
        peer.read_exact(&mut rest).unwrap();
        assert_eq!(&rest, b"456", "left where it was");
        assert_eq!(
            read_some(&file, 100).await,
            "789",
            "no more, and no waiting"
        );
        // The job of a dropped read keeps its bytes for the next read.
        assert_pending!(tokio_test::task::spawn(pin!(read_some(&file, 100))).poll());
        writer.write_all(b"late").unwrap();
        // Positions and pipes do not go together.
        let error = (&file).seek(SeekFrom::Start(0)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSeekable);
        assert_eq!(read_some(&file, 2).await, "la");
        assert_eq!(read_some(&file, 100).await, "te");
        drop(writer);
        assert_eq!(read_some(&file, 100).await, "");
    });
}

// The position.

#[test]
fn libuv_fs_file_pos_after_op_with_offset_r293() {
    let directory = Directory::new("r293");
    let path = directory.file("file", "0123456789");
    block_on(async {
        let mut file = open(&path).await;
        assert_eq!(position(&file).await, 0);
        let mut two = [0; 2];
        file.read_exact_at(&mut two, 4).await.unwrap();
        assert_eq!((&two, position(&file).await), (b"45", 0));
        file.write_all_at(b"xy", 6).await.unwrap();
        assert_eq!(position(&file).await, 0);
        assert_eq!(read_some(&file, 3).await, "012");
        assert_eq!(position(&file).await, 3);
        file.write_all(b"ab").await.unwrap();
        assert_eq!(position(&file).await, 5);
        assert_eq!(read_some(&file, 100).await, "5xy89");
        assert_eq!(fs::read(&path).unwrap(), b"012ab5xy89");
    });
}

#[test]
fn reading_ahead_is_not_seen_at_the_position() {
    let directory = Directory::new("ahead");
    let path = directory.file("file", "0123456789");
    block_on(async {
        let mut file = open(&path).await;
        assert_eq!(read_some(&file, 2).await, "01");
        assert_eq!(file.seek(SeekFrom::Current(3)).await.unwrap(), 5);
        assert_eq!(read_some(&file, 2).await, "56");
        assert_eq!(file.seek(SeekFrom::Current(-6)).await.unwrap(), 1);
        // A seek that fails goes nowhere.
        for bad in [
            SeekFrom::Current(-100),
            SeekFrom::Current(i64::MIN),
            SeekFrom::End(-11),
        ] {
            let before = position(&file).await;
            assert_eq!(read_some(&file, 2).await.len(), 2);
            let error = file.seek(bad).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().starts_with("seek "), "{error}");
            assert_eq!(position(&file).await, before + 2);
        }
        file.seek(SeekFrom::Start(8)).await.unwrap();
        assert_eq!(read_some(&file, 1).await, "8");
        // What others write is read, once it was not read ahead.
        file.write_all_at(b"!", 9).await.unwrap();
        assert_eq!(read_some(&file, 5).await, "!");
        file.seek(SeekFrom::Start(4)).await.unwrap();
        assert_eq!(read_some(&file, 1).await, "4");
        file.set_len(6).await.unwrap();
        assert_eq!(read_some(&file, 5).await, "5");
        assert_eq!(file.seek(SeekFrom::End(-1)).await.unwrap(), 5);
    });
}

#[test]
fn a_clone_has_the_same_position_and_so_has_the_standard_librarys_file() {
    let directory = Directory::new("clone");
    let path = directory.file("file", "0123456789");
    block_on(async {
        let mut file = open(&path).await;
        assert_eq!(read_some(&file, 2).await, "01");
        let clone = file.try_clone().await.unwrap();
        assert_eq!(clone.path(), Some(&*path));
        assert_eq!(read_some(&clone, 2).await, "23");
        let mut raw = clone.into_std().await.unwrap();
        assert_eq!(raw.stream_position().unwrap(), 4);
        file.write_all(b"ab").await.unwrap();
        assert_eq!(read_some(&file, 1).await, "6");
        let file = file.into_std().await.unwrap();
        assert_eq!(raw.stream_position().unwrap(), 7);
        let mut rest = String::new();
        raw.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "789");
        // Taken back, with a write under way.
        let mut file = File::from(file);
        file.seek(SeekFrom::Start(0)).await.unwrap();
        file.write_all(b"z").await.unwrap();
        let file = file.into_std().await.unwrap();
        assert_eq!(raw.stream_position().unwrap(), 1);
        let mut first = [0];
        assert_eq!(read_at(&file, &mut first, 0), 1);
        assert_eq!(&first, b"z");
    });
}

/// The thread is held, so that the dropped operation is queued and not begun.
#[test]
fn a_read_that_is_given_up_loses_nothing_and_moves_nothing() {
    let directory = Directory::new("given-up");
    let path = directory.file("file", "0123456789");
    let (event_loop, _) = with_threads(1);
    event_loop.block_on(async {
        let given_up = async |file: &File| {
            let hold = Hold::new();
            assert_pending!(tokio_test::task::spawn(pin!(read_some(file, 4))).poll());
            drop(hold);
        };
        let mut file = open_shared(&path);
        given_up(&file).await;
        assert_eq!(read_some(&file, 2).await, "01");
        // The buffer is used up first.
        file.seek(SeekFrom::Start(2)).await.unwrap();
        given_up(&file).await;
        assert_eq!(position(&file).await, 2);
        given_up(&file).await;
        file.write_all(b"x").await.unwrap();
        given_up(&file).await;
        assert_eq!(file.seek(SeekFrom::Current(1)).await.unwrap(), 4);
        given_up(&file).await;
        assert_eq!(
            file.try_clone()
                .await
                .unwrap()
                .into_std()
                .await
                .unwrap()
                .stream_position()
                .unwrap(),
            4
        );
        given_up(&file).await;
        file.set_len(5).await.unwrap();
        assert_eq!(read_some(&file, 9).await, "4");
        given_up(&file).await;
        assert_eq!(file.into_std().await.unwrap().stream_position().unwrap(), 5);
    });
    assert_eq!(fs::read(&path).unwrap(), b"01x34");
}

#[test]
fn a_seek_that_is_given_up_has_moved_or_not() {
    let directory = Directory::new("seek-given-up");
    let path = directory.file("file", "0123456789");
    let (event_loop, _) = with_threads(1);
    event_loop.block_on(async {
        for mut file in [open(&path).await, open_shared(&path)] {
            let hold = Hold::new();
            assert_pending!(tokio_test::task::spawn(file.seek(SeekFrom::Start(5))).poll());
            drop(hold);
            // Another comes after it, and gets its own answer.
            assert_eq!(file.seek(SeekFrom::Start(3)).await.unwrap(), 3);
            assert_eq!(read_some(&file, 1).await, "3");
            let hold = Hold::new();
            assert_pending!(tokio_test::task::spawn(file.seek(SeekFrom::Start(5))).poll());
            drop(hold);
            let read = read_some(&file, 1).await;
            assert!(read == "4" || read == "5", "{read}");
            // What was asked before is not taken for the answer to what is asked now.
            assert_eq!(file.seek(SeekFrom::Start(5)).await.unwrap(), 5);
            assert_eq!(read_some(&file, 1).await, "5");
        }
    });
}

#[test]
fn a_seek_that_was_given_up_is_no_answer_after_a_change() {
    let directory = Directory::new("seek-stale");
    let path = directory.file("file", "hello");
    let (event_loop, _) = with_threads(1);
    event_loop.block_on(async {
        let mut file = open(&path).await;
        assert_pending!(tokio_test::task::spawn(file.seek(SeekFrom::End(0))).poll());
        file.set_len(1000).await.unwrap();
        assert_eq!(file.seek(SeekFrom::End(0)).await.unwrap(), 1000);
        assert_pending!(tokio_test::task::spawn(file.seek(SeekFrom::End(0))).poll());
        file.write_all_at(b"!", 1000).await.unwrap();
        assert_eq!(file.seek(SeekFrom::End(0)).await.unwrap(), 1001);
        // A clone moves the position of both.
        assert_pending!(tokio_test::task::spawn(file.seek(SeekFrom::Start(0))).poll());
        let mut clone = file.try_clone().await.unwrap();
        assert_eq!(clone.seek(SeekFrom::Start(3)).await.unwrap(), 3);
        assert_eq!(file.seek(SeekFrom::Start(0)).await.unwrap(), 0);
        assert_eq!(read_some(&file, 2).await, "he");
        // A relative one is not done twice.
        file.seek(SeekFrom::Start(0)).await.unwrap();
        assert_pending!(tokio_test::task::spawn(file.seek(SeekFrom::Current(2))).poll());
        file.set_len(5).await.unwrap();
        assert_eq!(file.seek(SeekFrom::Current(2)).await.unwrap(), 2);
    });
}

/// Whatever is done, in whatever order, and given up in between: as the standard library does it on
/// another file.
#[test]
fn r293_files_behave_as_those_of_the_standard_library() {
    let directory = Directory::new("model");
    for seed in 0..40_u64 {
        let content = pattern(if seed % 2 == 0 { 300 } else { 700_000 });
        let path = directory.file("ours", &content);
        let other = directory.file("theirs", &content);
        let mut theirs = fs::File::options()
            .read(true)
            .write(true)
            .open(&other)
            .unwrap();
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below.max(1) as u64) as usize
        };
        let size = content.len();
        block_on(async {
            let mut ours = match seed % 4 {
                0 | 1 => open(&path).await,
                _ => open_shared(&path),
            };
            for step in 0..60 {
                let what = random(12);
                let at = random(size + size / 4);
                let most = if random(3) == 0 { size } else { 200 };
                let length = random(most);
                let label = format!("seed {seed}, step {step}: {what} at {at}, {length} bytes");
                match what {
                    0..=3 => {
                        let (mut one, mut two) = (vec![0; length], vec![0; length]);
                        // As much as there is, in however many pieces.
                        let mut done = 0;
                        while done < length {
                            match ours.read(&mut one[done..]).await.unwrap() {
                                0 => break,
                                count => done += count,
                            }
                        }
                        let mut expected = 0;
                        while expected < length {
                            match theirs.read(&mut two[expected..]).unwrap() {
                                0 => break,
                                count => expected += count,
                            }
                        }
                        assert!(done == expected && one == two, "{label}");
                    }
                    4 | 5 => {
                        let bytes = vec![step as u8; length];
                        ours.write_all(&bytes).await.unwrap();
                        theirs.write_all(&bytes).unwrap();
                    }
                    6 => {
                        let to = match random(3) {
                            0 => SeekFrom::Start(at as u64),
                            1 => SeekFrom::Current(length as i64 - 100),
                            _ => SeekFrom::End(-(length as i64)),
                        };
                        let (one, two) = (ours.seek(to).await, theirs.seek(to));
                        assert_eq!(one.ok(), two.ok(), "{label}: {to:?}");
                    }
                    7 => {
                        let bytes = vec![step as u8; length];
                        ours.write_all_at(&bytes, at as u64).await.unwrap();
                        write_all_at(&theirs, &bytes, at as u64);
                    }
                    8 => {
                        let (mut one, mut two) = (vec![0; length], vec![0; length]);
                        let count = ours.read_at(&mut one, at as u64).await.unwrap();
                        assert_eq!(count, read_at(&theirs, &mut two, at as u64), "{label}");
                        assert!(one == two, "{label}");
                    }
                    9 => {
                        ours.set_len(at as u64).await.unwrap();
                        theirs.set_len(at as u64).unwrap();
                    }
                    10 => {
                        // Given up, if it is not there already.
                        let mut buffer = vec![0; length];
                        let taken = ours.read(&mut buffer).now_or_never();
                        if let Some(count) = taken {
                            let mut expected = vec![0; count.unwrap()];
                            theirs.read_exact(&mut expected).unwrap();
                            assert!(buffer.starts_with(&expected), "{label}");
                        }
                    }
                    _ => {
                        ours.flush().await.unwrap();
                        assert_eq!(
                            ours.metadata().await.unwrap().len(),
                            theirs.metadata().unwrap().len(),
                            "{label}"
                        );
                    }
                }
            }
            let mut ours = ours.into_std().await.unwrap();
            let expected = theirs.stream_position().unwrap();
            assert_eq!(ours.stream_position().unwrap(), expected, "seed {seed}");
        });
        assert!(
            fs::read(&path).unwrap() == fs::read(&other).unwrap(),
            "seed {seed}"
        );
    }
}

// Writing.

#[test]
fn libuv_fs_write_multiple_bufs_and_fs_write_alotof_bufs_with_and_without_offset() {
    let directory = Directory::new("write-bufs");
    let path = directory.path("file");
    let pieces: Vec<String> = (0..5000).map(|number| format!("{number},")).collect();
    let buffers: Vec<_> = pieces
        .iter()
        .map(|piece| IoSlice::new(piece.as_bytes()))
        .collect();
    let whole = pieces.concat();
    block_on(async {
        let mut file = File::create_new(&path).await.unwrap();
        assert_eq!(file.write_vectored(&buffers).await.unwrap(), whole.len());
        file.flush().await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), whole);
        let offset = 10_000;
        let written = file.write_vectored_at(&buffers, offset).await.unwrap();
        assert_eq!(written, whole.len());
        let expected = format!("{}{whole}", &whole[..10_000]);
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        assert_eq!(position(&file).await, whole.len() as u64);
    });
}

#[test]
fn libuv_fs_file_open_append_writes_go_to_the_end() {
    let directory = Directory::new("append");
    let path = directory.file("file", "one ");
    block_on(async {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).open(&path).await.unwrap();
        assert_eq!(read_some(&file, 2).await, "on");
        file.write_all(b"two ").await.unwrap();
        file.seek(SeekFrom::Start(0)).await.unwrap();
        file.write_all(b"three").await.unwrap();
        assert_eq!(position(&file).await, 13);
        file.seek(SeekFrom::Start(0)).await.unwrap();
        assert_eq!(read_some(&file, 100).await, "one two three");
    });
}

/// A pipe has room for little at a time.
#[test]
fn libuv_fs_partial_write_a_short_write_goes_on() {
    let (mut reader, writer) = pipe();
    let content = pattern(MUCH);
    let reading = std::thread::spawn(move || {
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        read
    });
    block_on(async {
        let mut file = File::from_std(writer);
        file.write_all(&content).await.unwrap();
        file.close().await.unwrap();
    });
    assert!(reading.join().unwrap() == content);
}

#[test]
fn many_small_writes_take_few_jobs() {
    let directory = Directory::new("small-writes");
    let path = directory.path("file");
    let (event_loop, pool) = with_threads(1);
    event_loop.block_on(async {
        let mut file = File::create(&path).await.unwrap();
        let hold = Hold::new();
        let before = jobs(&pool);
        for number in 0..1000 {
            file.write_all(format!("{number}\n").as_bytes())
                .await
                .unwrap();
        }
        drop(hold);
        file.flush().await.unwrap();
        assert_eq!(jobs(&pool) - before, 1);
    });
    let expected: String = (0..1000).map(|number| format!("{number}\n")).collect();
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
}

/// The only thread waits for a reader of the pipe. What is accepted meanwhile is written behind the
/// job that came first, and not at once: another file that is written without end would have the
/// thread for itself.
#[test]
fn writes_take_turns_with_other_jobs() {
    let (mut reader, writer) = pipe();
    let (event_loop, pool) = with_threads(1);
    let full = vec![1; 1 << 17];
    event_loop.block_on(async {
        let mut file = File::from_std(writer);
        file.write_all(&full).await.unwrap();
        while jobs(&pool) == 0 {
            std::thread::yield_now();
        }
        let asking = spawn(phaseloop::fs::metadata("."));
        yield_now().await;
        file.write_all(&full).await.unwrap();
        let mut first = vec![0; full.len()];
        reader.read_exact(&mut first).unwrap();
        // The second piece has no room in the pipe, so nothing follows until it is read.
        assert!(asking.await.unwrap().unwrap().is_dir());
        reader.read_exact(&mut first).unwrap();
        file.close().await.unwrap();
    });
}

/// What is accepted while a job writes is written by the same, or by another; nothing waits for
/// ever.
#[test]
fn what_is_written_while_a_job_writes_follows_it() {
    let directory = Directory::new("follow");
    let path = directory.path("file");
    let content = pattern(MUCH);
    block_on(async {
        for piece in [1000, 50_000, 2 << 20] {
            let mut file = File::create(&path).await.unwrap();
            for (number, bytes) in content.chunks(piece).enumerate() {
                file.write_all(bytes).await.unwrap();
                if number % 3 == 0 {
                    // The job may end between two writes.
                    yield_now().await;
                }
            }
            file.close().await.unwrap();
            assert!(fs::read(&path).unwrap() == content, "by {piece}");
        }
    });
}

#[test]
fn a_write_that_is_given_up_has_written_nothing_and_an_accepted_one_everything() {
    let directory = Directory::new("write-given-up");
    let path = directory.path("file");
    let (mut event_loop, _) = with_threads(1);
    let accepted = event_loop.block_on(async {
        let mut file = File::create(&path).await.unwrap();
        let hold = Hold::new();
        let mut accepted = 0;
        // Until there is no room.
        while let Some(count) = file.write(&[1; 100_000]).now_or_never() {
            accepted += count.unwrap();
        }
        assert!(accepted >= 1 << 20);
        assert_pending!(tokio_test::task::spawn(file.write(&[2; 10])).poll());
        // Neither the file nor its loop is needed any more.
        drop(file);
        drop(hold);
        accepted
    });
    finish(&mut event_loop);
    assert!(fs::read(&path).unwrap() == vec![1; accepted]);
}

#[test]
fn accepted_writes_keep_the_loop_alive_until_they_are_done() {
    let directory = Directory::new("write-alive");
    let path = directory.path("file");
    let (mut event_loop, _) = with_threads(1);
    let hold = event_loop.block_on(async {
        let mut file = File::create(&path).await.unwrap();
        let hold = Hold::new();
        file.write_all(b"content").await.unwrap();
        hold
    });
    let handle = event_loop.handle();
    assert!(event_loop.run(RunMode::NoWait).unwrap());
    assert!(
        handle
            .keepers()
            .iter()
            .any(|&(kind, _)| kind == Keeper::Work)
    );
    assert_eq!(fs::read(&path).unwrap(), b"");
    drop(hold);
    finish(&mut event_loop);
    assert_eq!(fs::read(&path).unwrap(), b"content");
    assert_eq!(handle.keepers(), []);
}

#[test]
fn a_waker_that_panics_on_the_pool_loses_nothing_and_does_not_hold_the_loop() {
    let directory = Directory::new("write-panic");
    let path = directory.path("file");
    let (mut event_loop, _) = with_threads(1);
    let accepted = event_loop.block_on(async {
        let mut file = File::create(&path).await.unwrap();
        let hold = Hold::new();
        let (bytes, waker) = (
            vec![1; 1 << 20],
            waker_fn(|| panic!("a waker panics on purpose")),
        );
        let mut accepted = 0;
        while let Poll::Ready(count) =
            Pin::new(&mut file).poll_write(&mut Context::from_waker(&waker), &bytes)
        {
            accepted += count.unwrap();
        }
        drop(hold);
        file.flush().await.unwrap();
        accepted
    });
    assert_eq!(fs::metadata(&path).unwrap().len(), accepted as u64);
    assert_eq!(event_loop.handle().keepers(), []);
    finish(&mut event_loop);
}

/// The completion of a job wakes all that wait.
#[test]
fn a_waker_that_panics_keeps_no_other_from_its_wake() {
    let directory = Directory::new("waker-panic");
    let path = directory.file("file", "");
    let (event_loop, _) = with_threads(1);
    let wakes = Arc::new(AtomicUsize::new(0));
    let run = || {
        event_loop.block_on(async {
            let mut file = &open(&path).await;
            let hold = Hold::new();
            let hostile = waker_fn(|| panic!("a waker"));
            let counted = waker_fn({
                let wakes = wakes.clone();
                move || {
                    wakes.fetch_add(1, Ordering::Relaxed);
                }
            });
            for waker in [&hostile, &counted] {
                assert_pending!(
                    Pin::new(&mut file).poll_read(&mut Context::from_waker(waker), &mut [0; 4])
                );
            }
            drop(hold);
            pending::<()>().await;
        })
    };
    assert_eq!(panic_of(run), "a waker");
    assert_eq!(wakes.load(Ordering::Relaxed), 1);
}

/// A waker may use the file that it is cloned for.
#[test]
fn wakers_are_cloned_when_nothing_is_borrowed() {
    let directory = Directory::new("waker-clone");
    let path = directory.file("file", "0123456789");
    let (event_loop, _) = with_threads(1);
    event_loop.block_on(async {
        let file = Rc::new(open(&path).await);
        let (called, inner) = (Rc::new(Cell::new(0)), file.clone());
        let waker = || {
            let (called, inner) = (called.clone(), inner.clone());
            on_clone(move || {
                assert_pending!(tokio_test::task::spawn(pin!(read_some(&inner, 1))).poll());
                called.set(called.get() + 1);
            })
        };
        let (read, seek, write) = (waker(), waker(), waker());
        let hold = Hold::new();
        let mut reader = &*file;
        assert_pending!(
            Pin::new(&mut reader).poll_read(&mut Context::from_waker(&read), &mut [0; 4])
        );
        assert_pending!(
            Pin::new(&mut reader).poll_seek(&mut Context::from_waker(&seek), SeekFrom::Start(0))
        );
        assert_pending!(Pin::new(&mut reader).poll_write(&mut Context::from_waker(&write), b"x"));
        assert_eq!(called.get(), 3);
        drop(hold);
        assert_eq!(read_some(&file, 4).await, "0123");
    });
}

/// The completion of a dropped read is received later. It does not keep the loop alive.
#[test]
fn a_read_that_was_given_up_does_not_keep_the_loop_alive() {
    let directory = Directory::new("read-alive");
    let path = directory.file("file", "content");
    let (mut event_loop, _) = with_threads(1);
    let file = event_loop.block_on(async {
        let mut file = File::open(&path).await.unwrap();
        assert_pending!(tokio_test::task::spawn(file.read(&mut [0; 10])).poll());
        file
    });
    finish(&mut event_loop);
    assert_eq!(event_loop.block_on(read_some(&file, 10)), "content");
}

#[test]
fn several_tasks_may_use_a_file() {
    let directory = Directory::new("tasks");
    let path = directory.path("file");
    let content = pattern(1 << 20);
    block_on(async {
        let file = Rc::new(File::create_new(&path).await.unwrap());
        // At offsets, in any order.
        let writes = content.chunks(1 << 16).enumerate().map(|(number, bytes)| {
            let file = file.clone();
            async move {
                file.write_all_at(bytes, (number << 16) as u64)
                    .await
                    .unwrap()
            }
        });
        join_all(writes).await;
        let reads = (0..16).map(|number| {
            let file = file.clone();
            async move {
                let mut buffer = vec![0; 1 << 16];
                file.read_exact_at(&mut buffer, number << 16).await.unwrap();
                buffer
            }
        });
        assert!(join_all(reads).await.concat() == content);
        // At the position, one after the other, however they take turns.
        let writers = ["a", "b", "c"].map(|letter| {
            let file = file.clone();
            spawn(async move {
                let mut file = &*file;
                for _ in 0..200 {
                    file.write_all(letter.as_bytes()).await.unwrap();
                    file.flush().await.unwrap();
                    file.sync_data().await.unwrap();
                }
            })
        });
        for writer in writers {
            writer.await.unwrap();
        }
        assert_eq!(position(&file).await, 600);
        let mut start = vec![0; 600];
        file.read_exact_at(&mut start, 0).await.unwrap();
        for letter in b"abc" {
            assert_eq!(start.iter().filter(|&one| one == letter).count(), 200);
        }
        // Two futures wait for the same job.
        (&*file).write_all(b"!").await.unwrap();
        let (one, two) = join(file.sync_all(), file.metadata()).await;
        one.unwrap();
        assert_eq!(two.unwrap().len(), 1 << 20);
    });
}

/// One waits for a job to end, another writes in the meantime: both get on.
#[test]
fn a_flush_is_woken_although_another_task_goes_on_writing() {
    let directory = Directory::new("flush-woken");
    let (event_loop, _) = with_threads(1);
    event_loop.block_on(async {
        let file = Rc::new(File::create(directory.path("file")).await.unwrap());
        for _ in 0..50 {
            (&*file).write_all(b"one").await.unwrap();
            let flushed = Rc::new(Cell::new(false));
            let flushing = spawn({
                let (file, flushed) = (file.clone(), flushed.clone());
                async move {
                    (&*file).flush().await.unwrap();
                    flushed.set(true);
                }
            });
            yield_now().await;
            while !flushed.get() {
                (&*file).write_all(b"two").await.unwrap();
                // A turn, in which the job may end, unseen by the one that writes.
                phaseloop::task::yield_now_immediate().await;
            }
            flushing.await.unwrap();
        }
    });
}

#[test]
fn a_file_that_is_dropped_while_a_job_reads_it_is_closed_later() {
    let directory = Directory::new("closed-later");
    let path = directory.file("file", "content");
    let (event_loop, _) = with_threads(2);
    event_loop.block_on(async {
        let file = File::open(&path).await.unwrap();
        let mut buffer = [0; 10];
        // Two jobs at once: one is polled and dropped with the file, the other comes after.
        {
            let reading = pin!(file.read_at(&mut buffer, 0));
            assert_pending!(poll_once(reading).await);
        }
        file.close().await.unwrap();
        assert_eq!(phaseloop::fs::read(&path).await.unwrap(), b"content");
    });
}

/// The job may have ended, or be at work, or not have begun.
#[test]
fn a_job_that_nobody_waits_for_is_in_nobodys_way() {
    let directory = Directory::new("nobodys-job");
    let path = directory.file("file", "content");
    let (event_loop, _) = with_threads(2);
    event_loop.block_on(async {
        for round in 0..200 {
            let mut file = File::open(&path).await.unwrap();
            assert_pending!(tokio_test::task::spawn(file.metadata()).poll());
            assert_pending!(tokio_test::task::spawn(file.read(&mut [0; 4])).poll());
            if round % 2 == 0 {
                let mut raw = file.into_std().await.unwrap();
                assert_eq!(raw.stream_position().unwrap(), 0);
            } else {
                file.close().await.unwrap();
            }
        }
    });
}

/// After each mebibyte that was read without a job, a turn passes. The buffer of the next read is
/// filled as before, not from a buffer of the file.
#[test]
fn a_large_buffer_is_filled_directly_after_each_turn() {
    let directory = Directory::new("large-steps");
    let content = pattern(6 << 20);
    let path = directory.file("file", &content);
    block_on(async {
        let mut file = open(&path).await;
        let (mut buffer, mut read, mut lengths) = (vec![0; 1 << 20], Vec::new(), Vec::new());
        loop {
            let count = file.read(&mut buffer).await.unwrap();
            if count == 0 {
                break;
            }
            read.extend_from_slice(&buffer[..count]);
            lengths.push(count);
        }
        assert!(read == content);
        let short = lengths.iter().filter(|&&length| length == 64 << 10).count();
        assert!(short <= 1, "{lengths:?}");
    });
}
