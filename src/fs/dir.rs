//! Directories.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, FileType, Metadata};
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::job;
use crate::blocking::Work;
use crate::error::OsError;

/// How many entries the first job of a directory takes, and how many a later one at most.
const FIRST_BATCH: usize = 64;
const LARGEST_BATCH: usize = 1024;

/// Reads a directory, entry by entry, in the system's order and without `.` and `..`.
///
/// Entries are taken in batches, one job each, the first with the opening: a small directory is one job.
///
/// # Errors
///
/// Those of the system: [`NotFound`](io::ErrorKind::NotFound), [`NotADirectory`](io::ErrorKind::NotADirectory) and others.
///
/// # Examples
///
/// ```
/// use futures::TryStreamExt;
///
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let mut entries = phaseloop::fs::read_dir(".").await?;
///     while let Some(entry) = entries.try_next().await? {
///         println!("{:?} {:?}", entry.file_name(), entry.file_type());
///     }
///     Ok(())
/// })
/// # }
/// ```
pub async fn read_dir(path: impl AsRef<Path>) -> io::Result<ReadDir> {
    let path: Arc<Path> = path.as_ref().into();
    let root = path.clone();
    let batch = job::run("read_dir", move || match fs::read_dir(&root) {
        Ok(entries) => Ok(Batch::take(entries, FIRST_BATCH, VecDeque::new(), &root)),
        Err(error) => Err(wrap("read_dir", error, &root)),
    })
    .await?;
    Ok(ReadDir {
        path,
        entries: batch.entries,
        rest: batch.rest.map(Rest::Waiting),
        batch: FIRST_BATCH,
    })
}

/// Reads a whole directory in one job, sorted by the bytes of the names (R296).
///
/// # Errors
///
/// As [`read_dir`], and those of the entries.
pub async fn scan_dir(path: impl AsRef<Path>) -> io::Result<Vec<DirEntry>> {
    job::on_path("scan_dir", path.as_ref(), |path| {
        let root: Arc<Path> = path.into();
        let entries = fs::read_dir(path)?.map(|entry| DirEntry::new(&entry?, &root));
        let mut entries = entries.collect::<io::Result<Vec<_>>>()?;
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    })
    .await
}

/// The entries of a directory, a stream; made by [`read_dir`].
///
/// # Cancel safety
///
/// No entry is lost when [`next_entry`](Self::next_entry) is dropped. Dropping the stream closes the directory.
pub struct ReadDir {
    path: Arc<Path>,
    entries: VecDeque<io::Result<DirEntry>>,
    /// What is still in the directory; `None` at its end.
    rest: Option<Rest>,
    batch: usize,
}

enum Rest {
    Waiting(fs::ReadDir),
    Coming(Work<Batch>),
}

impl ReadDir {
    /// The next entry, `None` at the end; as the stream's, without a trait.
    ///
    /// # Errors
    ///
    /// Those of the system. Another entry may follow.
    pub async fn next_entry(&mut self) -> io::Result<Option<DirEntry>> {
        let entry = std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await;
        entry.transpose()
    }
}

impl Stream for ReadDir {
    type Item = io::Result<DirEntry>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(entry) = self.entries.pop_front() {
                return Poll::Ready(Some(entry));
            }
            match self.rest.take() {
                None => return Poll::Ready(None),
                Some(Rest::Waiting(rest)) => {
                    self.batch = (self.batch * 2).min(LARGEST_BATCH);
                    let (most, root) = (self.batch, self.path.clone());
                    let room = std::mem::take(&mut self.entries);
                    let work =
                        job::submit("read_dir", move || Batch::take(rest, most, room, &root))?;
                    self.rest = Some(Rest::Coming(work));
                }
                Some(Rest::Coming(mut work)) => {
                    let Poll::Ready(batch) = Pin::new(&mut work).poll(cx) else {
                        self.rest = Some(Rest::Coming(work));
                        return Poll::Pending;
                    };
                    self.entries = batch.entries;
                    self.rest = batch.rest.map(Rest::Waiting);
                }
            }
        }
    }
}

impl fmt::Debug for ReadDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadDir").field(&self.path).finish()
    }
}

/// What a job brings.
struct Batch {
    entries: VecDeque<io::Result<DirEntry>>,
    /// `None`: that was all; the directory has been closed.
    rest: Option<fs::ReadDir>,
}

impl Batch {
    /// Takes entries, `most` of them, into a list that is empty.
    fn take(
        mut rest: fs::ReadDir,
        most: usize,
        mut entries: VecDeque<io::Result<DirEntry>>,
        root: &Arc<Path>,
    ) -> Self {
        while entries.len() < most {
            let Some(entry) = rest.next() else {
                return Self {
                    entries,
                    rest: None,
                };
            };
            let entry = entry.and_then(|entry| DirEntry::new(&entry, root));
            entries.push_back(entry.map_err(|error| wrap("read_dir", error, root)));
        }
        Self {
            entries,
            rest: Some(rest),
        }
    }
}

fn wrap(operation: &'static str, error: io::Error, path: &Path) -> io::Error {
    OsError::wrap(error, operation, path.to_owned())
}

/// What is in a directory: a name and a type.
#[derive(Clone)]
pub struct DirEntry {
    root: Arc<Path>,
    name: OsString,
    file_type: FileType,
}

impl DirEntry {
    /// On the pool: where the directory does not tell the type, the file is asked.
    fn new(entry: &fs::DirEntry, root: &Arc<Path>) -> io::Result<Self> {
        Ok(Self {
            root: root.clone(),
            name: entry.file_name(),
            file_type: entry.file_type()?,
        })
    }

    /// The directory's path with the name.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.root.join(&self.name)
    }

    /// The name alone.
    #[must_use]
    pub fn file_name(&self) -> &OsStr {
        &self.name
    }

    /// Whether it is a file, a directory, a symbolic link; known since the directory was read.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        self.file_type
    }

    /// What the system knows of it now; symbolic links are not followed.
    ///
    /// # Errors
    ///
    /// Those of the system: it may be gone.
    pub async fn metadata(&self) -> io::Result<Metadata> {
        super::symlink_metadata(self.path()).await
    }
}

impl fmt::Debug for DirEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DirEntry").field(&self.path()).finish()
    }
}
