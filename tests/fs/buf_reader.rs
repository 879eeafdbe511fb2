//! Buffered readers at EOF.
#![cfg(all(unix, feature = "fs"))]

use std::cell::Cell;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use phaseloop::block_on;
use phaseloop::fs::File;
use phaseloop::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use phaseloop::stream::StreamExt as _;

use crate::util::files::Directory;
use tokio_test::assert_pending;

type Reader = Box<dyn AsyncBufRead + Unpin>;

/// The ways to read a file through a buffer: its own, and a `BufReader` of several sizes.
async fn readers(path: &Path) -> [Reader; 4] {
    let file = async || File::open(path).await.unwrap();
    let adopted = File::from_std(fs::File::open(path).unwrap());
    [
        Box::new(file().await),
        Box::new(BufReader::new(file().await)),
        Box::new(BufReader::with_capacity(5, file().await)),
        Box::new(BufReader::new(adopted)),
    ]
}

fn append(path: &Path, bytes: &[u8]) {
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

async fn line(reader: &mut Reader) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).await.unwrap();
    line
}

async fn fill(reader: &mut Reader) -> Vec<u8> {
    reader.fill_buf().await.unwrap().to_vec()
}

#[test]
fn lines_of_a_file_come_to_their_end() {
    let directory = Directory::new("buf-lines");
    for (name, text) in [
        ("empty", String::new()),
        ("open-end", "one\ntwo\r\n\nthree".to_owned()),
        ("many", "a line\n".repeat(10_000)),
    ] {
        let path = directory.path(name);
        fs::write(&path, &text).unwrap();
        block_on(async {
            for reader in readers(&path).await {
                let mut lines = reader.lines();
                let mut seen = Vec::new();
                while let Some(line) = lines.next().await {
                    seen.push(line.unwrap());
                }
                assert_eq!(seen, text.lines().collect::<Vec<_>>(), "{name}");
                assert!(lines.next().await.is_none());
            }
        });
    }
}

#[test]
fn every_way_to_read_reports_the_end_as_often_as_it_is_asked() {
    let directory = Directory::new("buf-ends");
    for text in ["", "one,two"] {
        let path = directory.path("text");
        fs::write(&path, text).unwrap();
        block_on(async {
            for mut reader in readers(&path).await {
                let mut all = Vec::new();
                while reader.read_until(b',', &mut all).await.unwrap() > 0 {}
                assert_eq!(all, text.as_bytes());
                for _ in 0..3 {
                    assert!(fill(&mut reader).await.is_empty());
                    assert_eq!(reader.read_until(b',', &mut all).await.unwrap(), 0);
                    assert_eq!(reader.read_line(&mut String::new()).await.unwrap(), 0);
                    assert_eq!(reader.read(&mut [0; 4]).await.unwrap(), 0);
                }
            }
        });
    }
}

#[test]
fn bytes_behind_the_end_are_read_when_the_file_has_grown() {
    let directory = Directory::new("buf-grows");
    let path = directory.path("log");
    block_on(async {
        for at in 0..4 {
            fs::write(&path, "one\n").unwrap();
            let mut reader = readers(&path).await.into_iter().nth(at).unwrap();
            assert_eq!(line(&mut reader).await, "one\n");
            assert_eq!(line(&mut reader).await, "");
            append(&path, b"two\n");
            assert_eq!(line(&mut reader).await, "two\n");
            assert!(fill(&mut reader).await.is_empty());
            append(&path, b"three\n");
            let filled = fill(&mut reader).await;
            assert!(!filled.is_empty() && b"three\n".starts_with(&filled));
            assert_eq!(line(&mut reader).await, "three\n");
            assert_eq!(reader.read(&mut [0; 4]).await.unwrap(), 0);
            append(&path, b"four\n");
            let mut rest = Vec::new();
            reader.read_to_end(&mut rest).await.unwrap();
            assert_eq!(rest, b"four\n", "{at}");
        }
    });
}

/// Finds EOF once, and waits from then on, like a terminal.
struct Terminal {
    reads: Rc<Cell<usize>>,
}

impl AsyncRead for Terminal {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.reads.set(self.reads.get() + 1);
        match self.reads.get() {
            1 => Poll::Ready(Ok(0)),
            _ => Poll::Pending,
        }
    }
}

#[test]
fn a_fill_at_the_end_does_not_wait_for_bytes_behind_it_and_a_later_read_does() {
    let reads = Rc::new(Cell::new(0));
    let terminal = || {
        BufReader::new(Terminal {
            reads: reads.clone(),
        })
    };
    let mut reader = terminal();
    assert!(
        reader
            .fill_buf()
            .now_or_never()
            .unwrap()
            .unwrap()
            .is_empty()
    );
    assert_eq!(reads.take(), 1);
    let (mut reader, mut line) = (terminal(), String::new());
    assert_eq!(
        reader.read_line(&mut line).now_or_never().unwrap().unwrap(),
        0
    );
    assert_pending!(tokio_test::task::spawn(reader.read_line(&mut line)).poll());
    assert_eq!(reads.take(), 2);
}
