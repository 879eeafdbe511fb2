//! Copies a file, and prints the progress if standard error is a terminal.
//!
//! ```text
//! cargo run --release --example fs_copy -- FROM TO
//! ```
//!
//! Without arguments it creates a file, copies it, compares the two and removes them. To copy a
//! file without a progress line, use `fs::copy`: one job, in the kernel.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use phaseloop::fs::{self, File};
use phaseloop::io::{AsyncBufReadExt, AsyncWriteExt};

fn main() -> io::Result<()> {
    let arguments: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    phaseloop::block_on(async {
        match arguments.as_slice() {
            [] => show().await,
            [from, to] => copy(from, to).await,
            _ => Err(io::Error::other("usage: fs_copy [FROM TO]")),
        }
    })
}

async fn show() -> io::Result<()> {
    let folder = fs::mkdtemp(env::temp_dir().join("fs_copy-XXXXXX")).await?;
    let (from, to) = (folder.join("from"), folder.join("to"));
    let content: Vec<u8> = (0..8_000_000_u32).flat_map(u32::to_le_bytes).collect();
    fs::write(&from, &content).await?;
    copy(&from, &to).await?;
    let same = fs::read(&to).await? == content;
    fs::remove_dir_all(folder).await?;
    assert!(same, "the copy differs");
    println!("the copy is the same, and both are removed");
    Ok(())
}

async fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from).await?;
    let metadata = source.metadata().await?;
    let mut target = File::create_new(to).await?;
    target.set_permissions(metadata.permissions()).await?;

    let mut progress = Progress::new(metadata.len());
    loop {
        // `File` reads ahead: the next piece is read while this one is written.
        let piece = source.fill_buf().await?;
        if piece.is_empty() {
            break;
        }
        target.write_all(piece).await?;
        let length = piece.len();
        source.consume_unpin(length);
        progress.add(length)?;
    }
    // A failed write is reported here at the latest.
    target.close().await?;
    progress.end()
}

/// Prints the progress ten times a second, if standard error is a terminal.
struct Progress {
    total: u64,
    done: u64,
    start: Instant,
    shown: Option<Instant>,
}

impl Progress {
    fn new(total: u64) -> Self {
        let start = Instant::now();
        let shown = io::stderr().is_terminal().then_some(start);
        Self {
            total,
            done: 0,
            start,
            shown,
        }
    }

    fn add(&mut self, bytes: usize) -> io::Result<()> {
        self.done += bytes as u64;
        match self.shown {
            Some(shown) if shown.elapsed() >= Duration::from_millis(100) => {
                self.shown = Some(Instant::now());
                // The file may have grown.
                let percent = 100 * self.done / self.total.max(self.done);
                write!(io::stderr(), "\r{percent:3} % of {} bytes", self.total)
            }
            _ => Ok(()),
        }
    }

    fn end(self) -> io::Result<()> {
        if self.shown.is_some() {
            write!(io::stderr(), "\r\x1b[K")?;
        }
        let seconds = self.start.elapsed().as_secs_f64();
        println!("{} bytes in {seconds:.3} s", self.done);
        Ok(())
    }
}
