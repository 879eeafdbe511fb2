//! Open files.

mod cursor;
mod streams;
mod writer;

use std::cell::RefCell;
use std::fmt;
use std::fs::{Metadata, Permissions};
use std::future::poll_fn;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::cursor::Cursor;
use self::writer::Shared;
use super::job;
use super::open_options::OpenOptions;
use super::times::FileTimes;
use crate::sys;

/// An open file.
///
/// It is read, written and moved in by the traits of the `futures` crate, also through `&File`. One position serves all
/// three, as in [`std::fs::File`]: the system's. Everything else takes `&self` and needs no order: `read_at` and
/// `write_at`, for example, can be in flight many times at once. All of them come after what was written before.
///
/// **Reading** takes at once what the system has in its memory (on Linux; after the first read, and up to 1 MiB before it lets a
/// poll phase pass). What the system has not, a job fetches: more than is asked for, the more the longer the file is read
/// from front to back, and the next piece while the last one is being used.
/// [`AsyncBufRead`](futures_io::AsyncBufRead) hands it out without a copy. Of files that cannot seek, such as pipes,
/// nothing is read that nobody has asked for.
///
/// **Writing** hands the bytes over and returns; a job writes them, and whatever is handed over meanwhile.
/// [`flush`](https://docs.rs/futures/0.3/futures/io/trait.AsyncWriteExt.html#method.flush) waits until the system has
/// them. An error is reported once: by the next write, flush, sync or [`close`](Self::close).
///
/// # Cancel safety
///
/// A read that is dropped loses nothing: what it would have read is read by the next. A write that is dropped before it
/// returned has written nothing; one that has returned will be carried out whole, also when the file is dropped, unless
/// the process ends. A seek that is dropped has moved the position or not.
///
/// # Closing
///
/// Dropping a file closes it: on this thread, or, with a job under way, on the pool's. Errors are lost then, those of earlier
/// writes as well. [`close`](Self::close) reports them.
///
/// # Examples
///
/// ```
/// use futures::{AsyncBufReadExt, AsyncWriteExt, StreamExt};
/// use phaseloop::fs::{self, File};
///
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     let path = folder.join("list");
///     let mut file = File::create(&path).await?;
///     file.write_all(b"one\ntwo\n").await?;
///     file.close().await?;
///     let mut lines = File::open(&path).await?.lines();
///     assert_eq!(lines.next().await.transpose()?.as_deref(), Some("one"));
///     assert_eq!(lines.next().await.transpose()?.as_deref(), Some("two"));
///     fs::remove_dir_all(folder).await
/// })
/// # }
/// ```
pub struct File {
    shared: Arc<Shared>,
    cursor: RefCell<Cursor>,
}

impl File {
    /// Opens a file for reading.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`].
    pub async fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        OpenOptions::new().read(true).open(path).await
    }

    /// Opens a file for writing; it is made, or emptied.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`].
    pub async fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .await
    }

    /// Makes a file, where there must be none, for reading and writing.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`].
    pub async fn create_new(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .await
    }

    /// How to open a file in another way.
    #[must_use]
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// A file that was opened elsewhere. Its errors name no path.
    #[must_use]
    pub fn from_std(file: std::fs::File) -> Self {
        Self::with(file, None)
    }

    /// A file that was opened just now, and that nobody else has.
    pub(super) fn new(file: std::fs::File, path: PathBuf) -> Self {
        let file = Self::with(file, Some(path));
        file.cursor.borrow_mut().set_reads_at_once(true);
        file
    }

    fn with(file: std::fs::File, path: Option<PathBuf>) -> Self {
        Self {
            shared: Arc::new(Shared::new(file, path)),
            cursor: RefCell::default(),
        }
    }

    /// The path that it was opened by.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.shared.path()
    }

    /// The file for the standard library, at the same position, after what was written before.
    ///
    /// # Errors
    ///
    /// Of an earlier write; those of the system.
    pub async fn into_std(self) -> io::Result<std::fs::File> {
        poll_fn(|cx| self.poll_flush(cx)).await?;
        self.rewind("into_std").await?;
        match Arc::try_unwrap(self.shared) {
            Ok(shared) => Ok(shared.into_file()),
            // A job whose future was dropped has it still.
            Err(shared) => shared.file().try_clone(),
        }
    }

    /// A second file of the same position and system object.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub async fn try_clone(&self) -> io::Result<Self> {
        self.rewind("try_clone").await?;
        self.cursor.borrow_mut().set_reads_at_once(false);
        let clone = self.on_file("try_clone", |file| file.try_clone()).await?;
        Ok(Self::with(clone, self.path().map(Path::to_owned)))
    }

    /// Closes the file on the pool, after what was written before.
    ///
    /// # Errors
    ///
    /// Of an earlier write; those of the system. The file is closed in any case.
    pub async fn close(self) -> io::Result<()> {
        let written = poll_fn(|cx| self.poll_flush(cx)).await;
        let closed = match Arc::try_unwrap(self.shared) {
            Ok(shared) => job::run("close", move || shared.close()).await,
            // Closed by the job that has it still.
            Err(_) => Ok(()),
        };
        written.and(closed)
    }

    /// Waits until all of it is on the disk, with what the system knows of it.
    ///
    /// # Errors
    ///
    /// Of an earlier write; those of the system.
    pub async fn sync_all(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_flush(cx)).await?;
        self.on_file("sync_all", std::fs::File::sync_all).await
    }

    /// Waits until its content is on the disk.
    ///
    /// # Errors
    ///
    /// As [`sync_all`](Self::sync_all).
    pub async fn sync_data(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_flush(cx)).await?;
        self.on_file("sync_data", std::fs::File::sync_data).await
    }

    /// Cuts the file to a length, or extends it with zeros. The position stays.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub async fn set_len(&self, length: u64) -> io::Result<()> {
        self.change("set_len", move |file| file.set_len(length))
            .await
    }

    /// What the system knows of it.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub async fn metadata(&self) -> io::Result<Metadata> {
        self.written().await;
        self.on_file("metadata", std::fs::File::metadata).await
    }

    /// Sets its permissions.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub async fn set_permissions(&self, permissions: Permissions) -> io::Result<()> {
        self.on_file("set_permissions", move |file| {
            file.set_permissions(permissions)
        })
        .await
    }

    /// Sets its times.
    ///
    /// # Errors
    ///
    /// Those of the system; [`InvalidInput`](io::ErrorKind::InvalidInput) for a time that it cannot express.
    pub async fn set_times(&self, times: FileTimes) -> io::Result<()> {
        self.written().await;
        self.on_file("set_times", move |file| {
            sys::fs::set_file_times(file, times.accessed, times.modified)
        })
        .await
    }

    /// Waits until what was written before is with the system.
    pub(super) async fn written(&self) {
        poll_fn(|cx| self.poll_at(cx, |_, shared| Cursor::poll_written(shared))).await;
    }

    /// Waits until nothing is under way at the position, and forgets what was read ahead: it may not be true any more.
    pub(super) async fn forget_ahead(&self) {
        poll_fn(|cx| self.poll_at(cx, |cursor, shared| cursor.poll_idle(shared))).await;
        self.cursor.borrow_mut().forget_ahead();
    }

    /// Brings the system's position back from what was read ahead.
    pub(super) async fn rewind(&self, operation: &'static str) -> io::Result<()> {
        self.forget_ahead().await;
        let Some(behind) = self.cursor.borrow_mut().take_behind() else {
            return Ok(());
        };
        self.on_file(operation, move |mut file| {
            file.seek(SeekFrom::Current(behind)).map(drop)
        })
        .await
    }

    /// One job that may change what was read ahead, or where the end is.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        operation: &'static str,
        job: impl FnOnce(&std::fs::File) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        self.forget_ahead().await;
        let result = self.on_file(operation, job).await;
        self.cursor.borrow_mut().forget_sought();
        result
    }

    /// One job with the file; its error names the operation and the path.
    pub(super) async fn on_file<T: Send + 'static>(
        &self,
        operation: &'static str,
        job: impl FnOnce(&std::fs::File) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let shared = self.shared.clone();
        job::run(operation, move || {
            job(shared.file()).map_err(|error| shared.wrap(error, operation))
        })
        .await
    }

    /// What a job needs of a second file.
    pub(super) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// The file itself.
    pub(super) fn get_ref(&self) -> &std::fs::File {
        self.shared.file()
    }
}

impl From<std::fs::File> for File {
    fn from(file: std::fs::File) -> Self {
        Self::from_std(file)
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File")
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}
