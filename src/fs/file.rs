//! Open files.

mod attributes;
mod cursor;
mod streams;
mod writer;

#[cfg(feature = "tokio-io")]
use std::cell::Cell;
use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::cursor::Cursor;
use self::writer::Shared;
use super::job;
use super::open_options::OpenOptions;
use crate::sys;

/// An open file.
///
/// It implements the I/O traits of the `futures` crate, also for `&File`. Reads, writes and seeks
/// share one position, that of the OS, as in [`std::fs::File`]. All other methods take `&self` and
/// are independent of it: many `read_at` and `write_at` calls can be in flight at once. Each of
/// them runs after the writes that were accepted before it.
///
/// **Reading.** On Linux, data in the page cache is read on the loop's thread, after the first read
/// and up to 1 MiB before a poll phase runs. Other data is read by a job. A job reads more than was
/// requested, and the amount grows while the file is read sequentially; the next piece is fetched
/// while the last one is in use. [`AsyncBufRead`](crate::io::AsyncBufRead) exposes it without a
/// copy. Files that cannot seek, such as pipes, are not read ahead.
///
/// **Writing.** A write copies the bytes and returns; a job writes them, together with bytes that
/// arrive meanwhile.
/// [`flush`](https://docs.rs/futures/0.3/futures/io/trait.AsyncWriteExt.html#method.flush) waits
/// until the OS has accepted them. An error is reported once, by the next write, flush, sync or
/// [`close`](Self::close).
///
/// # Cancel safety
///
/// Dropping a read loses no data: the next read returns it. Dropping a write before it has
/// completed writes nothing. A completed write is carried out even if the file is dropped, unless
/// the process exits. Dropping a seek leaves the position either moved or unmoved.
///
/// # Closing
///
/// Dropping a file closes it on this thread, or on a pool thread if a job is in flight. Errors are
/// lost then, including those of accepted writes. [`close`](Self::close) reports them.
///
/// # Examples
///
/// ```
/// use phaseloop::io::{AsyncBufReadExt, AsyncWriteExt};
/// use phaseloop::stream::StreamExt;
/// use phaseloop::fs::{self, File};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     let path = folder.join("list");
///     let mut file = File::create(&path).await?;
///     file.write_all(b"one\ntwo\n").await?;
///     file.close().await?;
///     let mut lines = File::open(&path).await?.lines();
///     assert_eq!(lines.next().await.transpose()?.as_deref(), Some("one"));
///     assert_eq!(lines.next().await.transpose()?.as_deref(), Some("two"));
///     fs::remove_dir_all(folder).await
/// }
/// ```
pub struct File {
    shared: Arc<Shared>,
    cursor: RefCell<Cursor>,
    /// The seek that tokio's trait has started.
    #[cfg(feature = "tokio-io")]
    sought: Cell<Option<SeekFrom>>,
}

impl File {
    /// Opens a file for reading.
    ///
    /// # Errors
    ///
    /// The errors of [`OpenOptions::open`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the new descriptor.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::File;
    /// use phaseloop::io::AsyncReadExt;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut file = File::open("Cargo.toml").await?;
    ///     let mut text = String::new();
    ///     file.read_to_string(&mut text).await?;
    ///     assert!(text.starts_with("[package]"));
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn open(path: impl AsRef<Path>) -> impl Future<Output = io::Result<Self>> {
        OpenOptions::new().read(true).open_for("open", path)
    }

    /// Opens a file for writing. The file is created, or truncated.
    ///
    /// # Errors
    ///
    /// The errors of [`OpenOptions::open`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the file may have been created; its descriptor is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, File};
    /// use phaseloop::io::AsyncWriteExt;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let mut file = File::create(folder.join("greeting")).await?;
    ///     file.write_all(b"hello").await?;
    ///     file.flush().await?; // errors of accepted writes arrive here
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn create(path: impl AsRef<Path>) -> impl Future<Output = io::Result<Self>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        options.open_for("create", path)
    }

    /// Creates a file and opens it for reading and writing. It fails if the file exists.
    ///
    /// # Errors
    ///
    /// The errors of [`OpenOptions::open`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the file may have been created; its descriptor is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, File};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     File::create_new(folder.join("lock")).await?;
    ///     assert!(File::create_new(folder.join("lock")).await.is_err(), "it exists");
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn create_new(path: impl AsRef<Path>) -> impl Future<Output = io::Result<Self>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        options.open_for("create_new", path)
    }

    /// Returns options for opening a file.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::File;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let file = File::options().read(true).open("Cargo.toml").await?;
    ///     assert!(file.metadata().await?.is_file());
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// Wraps an open file. Its errors name no path.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::File;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let file = File::from_std(std::fs::File::open("Cargo.toml")?);
    ///     assert_eq!(file.path(), None);
    ///     let _file: std::fs::File = file.into_std().await?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn from_std(file: std::fs::File) -> Self {
        Self::with(file, None)
    }

    /// Wraps a file that was just opened and has no other descriptor.
    #[inline]
    pub(super) fn new(file: std::fs::File, path: PathBuf) -> Self {
        let is_read_at_once = sys::fs::is_read_at_once(&file);
        let mut file = Self::with(file, Some(path));
        file.cursor.get_mut().set_reads_at_once(is_read_at_once);
        file
    }

    #[inline]
    fn with(file: std::fs::File, path: Option<PathBuf>) -> Self {
        Self {
            shared: Arc::new(Shared::new(file, path)),
            cursor: RefCell::default(),
            #[cfg(feature = "tokio-io")]
            sought: Cell::new(None),
        }
    }

    /// The path under which the file was opened.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::File;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let file = File::open("Cargo.toml").await?;
    ///     assert_eq!(file.path(), Some("Cargo.toml".as_ref()));
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn path(&self) -> Option<&Path> {
        self.shared.path()
    }

    /// Converts into a file of the standard library at the same position, once accepted writes are
    /// done.
    ///
    /// # Errors
    ///
    /// The error of an accepted write; any OS error of the call.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the file.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::File;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let file = File::from_std(std::fs::File::open("Cargo.toml")?);
    ///     assert_eq!(file.path(), None);
    ///     let _file: std::fs::File = file.into_std().await?;
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub async fn into_std(self) -> io::Result<std::fs::File> {
        poll_fn(|cx| self.poll_flush(cx)).await?;
        self.rewind("into_std").await?;
        match Arc::try_unwrap(self.shared) {
            Ok(shared) => Ok(shared.into_file()),
            // A job whose future was dropped still holds the file.
            Err(shared) => shared.file().try_clone(),
        }
    }

    /// Converts into a file of the standard library at the same position, without waiting.
    ///
    /// # Errors
    ///
    /// Returns the file if an operation is in flight, also one whose future was dropped; if an
    /// accepted write has failed; if bytes are left that were read from a file that cannot seek;
    /// and if the position cannot be restored. [`into_std`](Self::into_std) waits, and returns the
    /// error of the write.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{fs::File, io::AsyncWriteExt};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let path = std::env::temp_dir().join(format!("doc-{}", std::process::id()));
    ///     let mut file = File::create(&path).await?;
    ///     file.write_all(b"hello").await?;
    ///     let mut file = file.try_into_std().expect_err("a job writes the bytes");
    ///     file.flush().await?;
    ///     let file: std::fs::File = file.into_std().await?;
    ///     std::fs::remove_file(path)?;
    ///     assert_eq!(file.metadata()?.len(), 5);
    ///     Ok(())
    /// }
    /// ```
    #[expect(
        clippy::result_large_err,
        reason = "the file comes back, by the signature of tokio"
    )]
    #[inline]
    pub fn try_into_std(self) -> Result<std::fs::File, Self> {
        let is_at_rest = self.cursor.borrow_mut().comes_to_rest(&self.shared);
        if !is_at_rest || self.shared.has_failed() {
            return Err(self);
        }
        match Arc::try_unwrap(self.shared) {
            Ok(shared) => Ok(shared.into_file()),
            // A job whose future was dropped still holds the file.
            Err(shared) => Err(Self {
                shared,
                #[cfg(feature = "tokio-io")]
                sought: self.sought,
                cursor: self.cursor,
            }),
        }
    }

    /// Duplicates the descriptor. Both files share one position.
    ///
    /// # Errors
    ///
    /// Any OS error of `dup`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the new descriptor.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::File;
    /// use phaseloop::io::AsyncReadExt;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let one = File::open("Cargo.toml").await?;
    ///     let mut other = one.try_clone().await?;
    ///     drop(one); // the other one stays open
    ///     let mut text = String::new();
    ///     other.read_to_string(&mut text).await?;
    ///     assert!(text.starts_with("[package]"));
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub async fn try_clone(&self) -> io::Result<Self> {
        self.rewind("try_clone").await?;
        self.cursor.borrow_mut().set_reads_at_once(false);
        let clone = self.on_file("try_clone", |file| file.try_clone()).await?;
        Ok(Self::with(clone, self.path().map(Path::to_owned)))
    }

    /// Closes the file on the pool, once accepted writes are done.
    ///
    /// # Errors
    ///
    /// The error of an accepted write; any OS error of `close`. The file is closed in any case.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the file is closed all the same; the error is lost.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, File};
    /// use phaseloop::io::AsyncWriteExt;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let mut file = File::create(folder.join("journal")).await?;
    ///     file.write_all(b"entry 1\n").await?;
    ///     file.sync_all().await?; // it survives a power failure
    ///     File::close(file).await?;
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub async fn close(self) -> io::Result<()> {
        let written = poll_fn(|cx| self.poll_flush(cx)).await;
        let closed = match Arc::try_unwrap(self.shared) {
            Ok(shared) => {
                let about = shared.about();
                job::run_on("close", || about.clone(), move || shared.close()).await
            }
            // The job that still holds the file closes it.
            Err(_) => Ok(()),
        };
        written.and(closed)
    }

    /// Waits until accepted writes are done.
    #[inline]
    pub(crate) async fn written(&self) {
        poll_fn(|cx| self.poll_at(cx, |_, shared| Cursor::poll_written(shared))).await;
    }

    /// Fills buffers from an offset out of the page cache. `None`: a job must read.
    #[inline]
    pub(super) fn fill_at_once_from(
        &self,
        buffers: &mut [io::IoSliceMut<'_>],
        offset: u64,
    ) -> Option<usize> {
        let mut cursor = self.cursor.borrow_mut();
        cursor.fill_at_once_from(&self.shared, buffers, offset)
    }

    /// Waits until no job uses the position, and discards data that was read ahead: it may be
    /// stale.
    #[inline]
    pub(super) async fn forget_ahead(&self) {
        poll_fn(|cx| self.poll_at(cx, |cursor, shared| cursor.poll_idle(shared))).await;
        self.cursor.borrow_mut().forget_ahead();
    }

    /// Moves the OS position back over data that was read ahead.
    #[inline]
    pub(super) async fn rewind(&self, operation: &'static str) -> io::Result<()> {
        self.forget_ahead().await;
        let Some(behind) = self.cursor.borrow_mut().take_behind() else {
            return Ok(());
        };
        self.on_file(operation, move |mut file| {
            sys::fs::at_position(file, || file.seek(SeekFrom::Current(behind))).map(drop)
        })
        .await
    }

    /// Runs a job that may change data that was read ahead, or the length of the file.
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

    /// Runs a job on the file. An error names the operation and the path.
    pub(super) async fn on_file<T: Send + 'static>(
        &self,
        operation: &'static str,
        job: impl FnOnce(&std::fs::File) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let shared = self.shared.clone();
        let result = job::run_on(
            operation,
            || self.shared.about(),
            move || job(shared.file()).map_err(|error| shared.wrap(error, operation)),
        )
        .await;
        self.cursor.borrow_mut().after_job();
        result
    }

    /// The shared state, for a job that uses two files.
    #[inline]
    pub(super) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// The file of the standard library.
    #[inline]
    pub(crate) fn get_ref(&self) -> &std::fs::File {
        self.shared.file()
    }
}

/// The system counts the bytes of a file with a sign.
#[inline]
fn check_length(length: u64) -> io::Result<()> {
    const LONGEST: i64 = i64::MAX;
    if i64::try_from(length).is_ok() {
        return Ok(());
    }
    let text = format!("a file cannot have {length} bytes: {LONGEST} is the most");
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

impl From<std::fs::File> for File {
    #[inline]
    fn from(file: std::fs::File) -> Self {
        Self::from_std(file)
    }
}

impl fmt::Debug for File {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File")
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}
