//! `tail -f`: prints the bytes that are appended to a file, also after it was truncated or
//! replaced.
//!
//! ```text
//! cargo run --release --example tail /var/log/syslog    # until ctrl-c
//! cargo run --release --example tail                    # a demo with a file of its own
//! ```
//!
//! It watches the directory: a watch on the file itself would follow the old file when logs are
//! rotated.

use std::io::{self, ErrorKind, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use phaseloop::fs::{self, File, WatchKind};
use phaseloop::io::{AsyncReadExt, AsyncSeekExt};
use phaseloop::time::sleep;

fn main() -> io::Result<()> {
    phaseloop::block_on(async {
        if let Some(path) = std::env::args_os().nth(1) {
            return tail(Path::new(&path)).await;
        }
        let directory = fs::mkdtemp(std::env::temp_dir().join("tail-XXXXXX")).await?;
        let path = directory.join("log");
        fs::write(&path, "written before\n").await?;
        let writer = phaseloop::spawn(write_log(directory));
        // Returns when the directory is removed.
        tail(&path).await?;
        writer.await.expect("the writer does not panic")
    })
}

/// Prints appended bytes from now on, until the directory is removed.
async fn tail(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut watcher = fs::watch(directory)?;
    let mut log = Log::open(path.to_owned()).await?;
    log.position = log.length().await?;
    while let Some(event) = watcher.recv().await {
        match event.kind {
            // Events were lost: check everything.
            WatchKind::Overflow => log.reopen().await?,
            _ if event.name() != path.file_name() => {}
            WatchKind::Modified => log.print_new().await?,
            WatchKind::Created | WatchKind::MovedTo(_) => log.reopen().await?,
            // An open file keeps its directory from being reported as gone.
            WatchKind::Removed => log.close().await?,
            _ => {}
        }
    }
    Ok(())
}

/// The file that has the name now, or had it last.
struct Log {
    path: PathBuf,
    /// `None` once it was removed.
    file: Option<File>,
    position: u64,
}

impl Log {
    async fn open(path: PathBuf) -> io::Result<Self> {
        Ok(Self {
            file: Some(File::open(&path).await?),
            path,
            position: 0,
        })
    }

    async fn length(&self) -> io::Result<u64> {
        match &self.file {
            Some(file) => Ok(file.metadata().await?.len()),
            None => Ok(self.position),
        }
    }

    /// Prints the bytes appended since the last call.
    async fn print_new(&mut self) -> io::Result<()> {
        if self.length().await? < self.position {
            eprintln!("(truncated)");
            self.position = 0;
        }
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(self.position)).await?;
        file.read_to_end(&mut text).await?;
        self.position += text.len() as u64;
        io::stdout().write_all(&text)
    }

    /// Prints the rest of a removed file, and closes it.
    async fn close(&mut self) -> io::Result<()> {
        self.print_new().await?;
        self.file = None;
        Ok(())
    }

    /// Another file has the name: prints the rest of the old file, then the new one.
    async fn reopen(&mut self) -> io::Result<()> {
        self.print_new().await?;
        match Self::open(self.path.clone()).await {
            Ok(log) => *self = log,
            // The new file is removed already.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        }
        eprintln!("(another file)");
        self.print_new().await
    }
}

/// Changes the file as a program and a log rotator do.
async fn write_log(directory: PathBuf) -> io::Result<()> {
    let path = directory.join("log");
    let pause = || sleep(Duration::from_millis(20));
    for number in 1..=3 {
        pause().await;
        fs::append(&path, format!("appended {number}\n")).await?;
    }
    pause().await;
    fs::write(&path, "truncated, and written anew\n").await?;
    pause().await;
    fs::rename(&path, directory.join("log.1")).await?;
    fs::write(&path, "the first line of the next file\n").await?;
    pause().await;
    fs::append(&path, "the last line\n").await?;
    fs::remove_dir_all(directory).await
}
