//! Reads at an offset that the page cache answers, without a job.
#![cfg(all(feature = "fs", target_os = "linux"))]

use crate::util::files::Directory;
use crate::util::polls::poll_once;
use crate::util::pool::with_threads;
use std::io::IoSliceMut;
use std::pin::pin;
use std::task::Poll;

use phaseloop::fs::{File, OpenOptions};
use phaseloop::io::AsyncReadExt;

const PAGE: usize = 4096;

/// As a read past the page cache asks for it.
#[repr(align(4096))]
struct Aligned([u8; PAGE]);

/// Whether the file system of the temporary directory reports what is cached.
fn is_asked(path: &std::path::Path) -> bool {
    use rustix::io::{ReadWriteFlags, preadv2};
    let file = std::fs::File::open(path).unwrap();
    let mut byte = [0];
    preadv2(
        &file,
        &mut [IoSliceMut::new(&mut byte)],
        0,
        ReadWriteFlags::NOWAIT,
    ) == Ok(1)
}

fn content() -> Vec<u8> {
    (0..8 * PAGE).map(|at| (at / 7 % 251) as u8).collect()
}

#[test]
fn cached_bytes_at_an_offset_are_read_without_a_job() {
    let directory = Directory::new("cached-at");
    let content = content();
    let path = directory.file("file", &content);
    if !is_asked(&path) {
        return;
    }
    let (event_loop, pool) = with_threads(1);
    event_loop.block_on(async {
        let file = File::open(&path).await.unwrap();
        let before = pool.stats().started;
        let (mut one, mut two) = ([0; 100], [0; PAGE]);
        assert_eq!(file.read_at(&mut one, 5).await.unwrap(), 100);
        assert_eq!(one, content[5..105]);
        file.read_exact_at(&mut two, 4000).await.unwrap();
        assert_eq!(two, content[4000..4000 + PAGE]);
        let mut both = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
        let read = file.read_vectored_at(&mut both, 9000).await.unwrap();
        assert_eq!(read, 100 + PAGE);
        assert_eq!(two, content[9100..9100 + PAGE]);
        assert_eq!(pool.stats().started, before);
        // Near EOF a job finds out whether more is to come.
        assert_eq!(file.read_at(&mut two, 8 * 4096 - 7).await.unwrap(), 7);
        assert_eq!(pool.stats().started, before + 1);
    });
}

/// Small reads count as pages: a million of them in one turn would take a second.
#[test]
fn after_a_megabyte_without_a_job_a_job_lets_a_poll_phase_run() {
    let directory = Directory::new("cached-turns");
    let path = directory.file("file", content());
    if !is_asked(&path) {
        return;
    }
    let (event_loop, pool) = with_threads(1);
    event_loop.block_on(async {
        let file = File::open(&path).await.unwrap();
        let before = pool.stats().started;
        for _ in 0..600 {
            file.read_exact_at(&mut [0; 16], 100).await.unwrap();
        }
        assert_eq!(pool.stats().started - before, 2);
    });
}

#[test]
fn a_file_opened_past_the_page_cache_is_read_by_a_job() {
    let directory = Directory::new("direct-at");
    let path = directory.file("file", content());
    // What has to be written first would be refused.
    std::fs::File::open(&path).unwrap().sync_all().unwrap();
    let (event_loop, _) = with_threads(1);
    event_loop.block_on(async {
        let mut options = OpenOptions::new();
        let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
        let Ok(file) = options.read(true).custom_flags(flags).open(&path).await else {
            return; // the file system has no such files
        };
        let mut buffer = Box::new(Aligned([0; PAGE]));
        let reading = pin!(file.read_at(&mut buffer.0, 0));
        assert!(matches!(poll_once(reading).await, Poll::Pending));
    });
}

/// A copy of any length would stop the loop: a job makes the long ones.
#[test]
fn a_read_of_more_than_a_megabyte_is_no_copy_on_the_loop() {
    let directory = Directory::new("cached-long");
    let content = vec![7; 3 << 20];
    let path = directory.file("file", &content);
    if !is_asked(&path) {
        return;
    }
    let (event_loop, pool) = with_threads(1);
    event_loop.block_on(async {
        let mut file = File::open(&path).await.unwrap();
        let before = pool.stats().started;
        let mut bytes = vec![0; 2 << 20];
        file.read_exact_at(&mut bytes, 0).await.unwrap();
        assert_eq!(bytes, content[..2 << 20]);
        assert_eq!(pool.stats().started, before + 1);
        let mut read = 0;
        while read < content.len() {
            let count = file.read(&mut bytes).await.unwrap();
            assert!((1..=1 << 20).contains(&count), "{count} bytes at {read}");
            read += count;
        }
        assert_eq!(read, content.len());
    });
}
