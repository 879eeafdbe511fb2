//! One socket, read by one task and written by another: an event in one direction leaves the wait
//! for the other. `--cfg phaseloop_oneshot` runs these on interests that an event takes back.

use crate::util::tcp::pair;
use std::time::Duration;

use futures::{AsyncReadExt, AsyncWriteExt};
use phaseloop::io::split;
use phaseloop::phase::poll;
use phaseloop::time::timeout;
use phaseloop::{block_on, spawn};

/// More than the buffers of a socket hold.
const MUCH: usize = 8 << 20;
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn a_reader_still_waits_after_a_write_was_served() {
    block_on(async {
        let (near, mut far) = pair().await;
        let (mut reader, mut writer) = split(near);
        let reading = spawn(async move {
            let mut bytes = [0; 5];
            reader.read_exact(&mut bytes).await.map(|()| bytes)
        });
        poll().await;
        let writing = spawn(async move { writer.write_all(&vec![0; MUCH]).await.map(|()| writer) });
        poll().await;
        far.read_exact(&mut vec![0; MUCH]).await.unwrap();
        let _writer = writing.await.unwrap().unwrap();
        far.write_all(b"hello").await.unwrap();
        let read = timeout(LIMIT, reading).await.expect("the reader waits on");
        assert_eq!(&read.unwrap().unwrap(), b"hello");
    });
}

#[test]
fn a_writer_still_waits_after_a_read_was_served() {
    block_on(async {
        let (near, mut far) = pair().await;
        let (mut reader, mut writer) = split(near);
        let writing = spawn(async move { writer.write_all(&vec![0; MUCH]).await.map(|()| writer) });
        poll().await;
        let reading = spawn(async move { reader.read_exact(&mut [0; 5]).await.map(|()| reader) });
        poll().await;
        far.write_all(b"hello").await.unwrap();
        let _reader = reading.await.unwrap().unwrap();
        far.read_exact(&mut vec![0; MUCH]).await.unwrap();
        let written = timeout(LIMIT, writing).await.expect("the writer waits on");
        written.unwrap().unwrap();
    });
}
