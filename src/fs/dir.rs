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

use futures::Stream;

use super::job::{self, Call};
use crate::blocking::Work;
use crate::error::OsError;
use crate::sys;

/// Entries that the first job of a directory reads, and the most that a later job reads.
const FIRST_BATCH: usize = 64;
const LARGEST_BATCH: usize = 1024;

/// Reads a directory as a stream of entries, in the order of the OS and without `.` and `..`.
///
/// Each job reads a batch of entries, and the first job also opens the directory: a small directory
/// costs one job.
///
/// # Errors
///
/// Any OS error of `opendir`, such as [`NotFound`](io::ErrorKind::NotFound) and
/// [`NotADirectory`](io::ErrorKind::NotADirectory).
///
/// # Cancel safety
///
/// Dropping the future discards the result and has no other effect.
///
/// # Examples
///
/// ```
/// use phaseloop::stream::TryStreamExt;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let mut entries = phaseloop::fs::read_dir(".").await?;
///     while let Some(entry) = entries.try_next().await? {
///         println!("{:?} {:?}", entry.file_name(), entry.file_type());
///     }
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn read_dir(path: impl AsRef<Path>) -> impl Future<Output = io::Result<ReadDir>> {
    let call = Call::new(move |site| {
        let path: Arc<Path> = path.as_ref().into();
        let root = path.clone();
        let about = || path.to_path_buf().into();
        job::submit("read_dir", site, about, move || {
            match sys::fs::read_dir(&root) {
                Ok(entries) => Ok((
                    Batch::take(entries, FIRST_BATCH, VecDeque::new(), &root),
                    root,
                )),
                Err(error) => Err(wrap("read_dir", error, &root)),
            }
        })
    });
    call.here().map(|(batch, path)| ReadDir {
        path,
        entries: batch.entries,
        rest: batch.rest.map(Rest::Waiting),
        batch: FIRST_BATCH,
    })
}

/// Reads a whole directory in one job, sorted by the bytes of the names.
///
/// # Errors
///
/// The errors of [`read_dir`], and any OS error of reading an entry.
///
/// # Cancel safety
///
/// Dropping the future discards the result and has no other effect.
///
/// # Examples
///
/// ```
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     for entry in fs::scan_dir(".").await? {
///         println!("{}", entry.path().display());
///     }
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn scan_dir(path: impl AsRef<Path>) -> impl Future<Output = io::Result<Vec<DirEntry>>> {
    job::on_path("scan_dir", path, |path| {
        let root: Arc<Path> = path.into();
        let entries = sys::fs::read_dir(path)?.map(|entry| DirEntry::new(&entry?, &root));
        let mut entries = entries.collect::<io::Result<Vec<_>>>()?;
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    })
    .here()
}

/// A stream of the entries of a directory, returned by [`read_dir`].
///
/// # Cancel safety
///
/// No entry is lost when [`next_entry`](Self::next_entry) is dropped. Dropping the stream closes
/// the directory.
///
/// # Examples
///
/// ```
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let mut entries = phaseloop::fs::read_dir("src").await?;
///     let mut names = Vec::new();
///     while let Some(entry) = entries.next_entry().await? {
///         names.push(entry.file_name().to_owned());
///     }
///     assert!(names.contains(&"lib.rs".into()));
///     Ok(())
/// }
/// ```
pub struct ReadDir {
    path: Arc<Path>,
    entries: VecDeque<io::Result<DirEntry>>,
    /// The unread part of the directory; `None` after the last entry.
    rest: Option<Rest>,
    batch: usize,
}

enum Rest {
    Waiting(fs::ReadDir),
    Coming(Work<Batch>),
}

impl ReadDir {
    /// Returns the next entry, or `None` after the last one. It needs no trait in scope, unlike
    /// `StreamExt::next`.
    ///
    /// # Errors
    ///
    /// Any OS error of `readdir` or of `stat` on the entry. Further entries may follow an error.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no entry.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut directory = fs::read_dir(".").await?;
    ///     let mut count = 0;
    ///     while let Some(_entry) = directory.next_entry().await? {
    ///         count += 1;
    ///     }
    ///     assert!(count > 0);
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub async fn next_entry(&mut self) -> io::Result<Option<DirEntry>> {
        let entry = std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await;
        entry.transpose()
    }
}

impl Stream for ReadDir {
    type Item = io::Result<DirEntry>;

    #[inline]
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
                    let about = || self.path.to_path_buf().into();
                    let take = move || Batch::take(rest, most, room, &root);
                    let work = job::submit("read_dir", None, about, take)?;
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
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadDir").field(&self.path).finish()
    }
}

/// The result of a job.
struct Batch {
    entries: VecDeque<io::Result<DirEntry>>,
    /// `None`: the last entry was read and the directory is closed.
    rest: Option<fs::ReadDir>,
}

impl Batch {
    /// Reads up to `most` entries into the empty list `entries`, whose allocation is reused.
    #[inline]
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

#[inline]
fn wrap(operation: &'static str, error: io::Error, path: &Path) -> io::Error {
    OsError::wrap(error, operation, path.to_owned())
}

/// An entry of a directory: its name and its type.
///
/// # Examples
///
/// ```
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     for entry in phaseloop::fs::scan_dir("src").await? {
///         if entry.file_type().is_file() {
///             println!("{:?}: {} bytes", entry.path(), entry.metadata().await?.len());
///         }
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct DirEntry {
    root: Arc<Path>,
    name: OsString,
    file_type: FileType,
}

impl DirEntry {
    /// Runs on the pool, since a directory without entry types costs a `stat` here.
    #[inline]
    fn new(entry: &fs::DirEntry, root: &Arc<Path>) -> io::Result<Self> {
        Ok(Self {
            root: root.clone(),
            name: entry.file_name(),
            file_type: entry.file_type()?,
        })
    }

    /// The path of the directory joined with the name of the entry.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     for entry in fs::scan_dir(".").await? {
    ///         if entry.file_name() == "Cargo.toml" {
    ///             assert!(entry.file_type().is_file());
    ///             assert!(entry.metadata().await?.len() > 0);
    ///             println!("{}", entry.path().display());
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn path(&self) -> PathBuf {
        self.root.join(&self.name)
    }

    /// The name of the entry.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     for entry in fs::scan_dir(".").await? {
    ///         if entry.file_name() == "Cargo.toml" {
    ///             assert!(entry.file_type().is_file());
    ///             assert!(entry.metadata().await?.len() > 0);
    ///             println!("{}", entry.path().display());
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn file_name(&self) -> &OsStr {
        &self.name
    }

    /// The type of the entry, as it was when the directory was read.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     for entry in fs::scan_dir(".").await? {
    ///         if entry.file_name() == "Cargo.toml" {
    ///             assert!(entry.file_type().is_file());
    ///             assert!(entry.metadata().await?.len() > 0);
    ///             println!("{}", entry.path().display());
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn file_type(&self) -> FileType {
        self.file_type
    }

    /// Returns the current metadata of the entry, without following symbolic links.
    ///
    /// # Errors
    ///
    /// Any OS error of `lstat`, such as [`NotFound`](io::ErrorKind::NotFound) if the entry is gone.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future discards the result and has no other effect.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     for entry in fs::scan_dir(".").await? {
    ///         if entry.file_name() == "Cargo.toml" {
    ///             assert!(entry.file_type().is_file());
    ///             assert!(entry.metadata().await?.len() > 0);
    ///             println!("{}", entry.path().display());
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub async fn metadata(&self) -> io::Result<Metadata> {
        super::symlink_metadata(self.path()).await
    }
}

impl fmt::Debug for DirEntry {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DirEntry").field(&self.path()).finish()
    }
}
