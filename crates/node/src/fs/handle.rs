//! Open files.

use std::cell::RefCell;
use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use super::flags::{Flags, Opened};
use super::options::{ReadStreamOptions, WriteStreamOptions};
use super::stats::Stats;
use super::{promise_of, steps, streams};
use crate::callback_futures::{in_callbacks, in_callbacks_as};
use crate::error::Error;
use crate::promise::Promise;
use crate::readline::{self, Interface};
use crate::stream::{Readable, Writable};

/// An open file; returned by [`open`](super::open). A clone is a handle to the same file.
/// JavaScript: `FileHandle`.
///
/// Each method is one job of the pool or several, and returns a promise that is settled in the poll
/// phase. The functions with callbacks, such as [`read`](super::read), [`write`](super::write())
/// and [`close`](super::close), take the handle in place of Node's file descriptor. After the close
/// they fail with `EBADF`, `file closed`. Dropping the last handle closes the file at once.
///
/// # Cancel safety
///
/// Dropping a returned promise discards the result; the operation runs to its end on the pool.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, fs, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let file = fs::promises::open("Cargo.toml", "r").await.unwrap();
///         assert_eq!(file.read(7, Some(1)).await.unwrap(), b"package");
///         file.close().await.unwrap();
///     })
/// }
/// ```
#[derive(Clone)]
pub struct FileHandle {
    file: Rc<RefCell<Option<Opened>>>,
}

impl FileHandle {
    pub(crate) fn of(file: File) -> Self {
        Self {
            file: Rc::new(RefCell::new(Some(Opened::new(file)))),
        }
    }

    pub(crate) fn opened(&self, syscall: &'static str) -> Result<Opened, Error> {
        let file = self.file.borrow().clone();
        file.ok_or_else(|| Error::of_closed_file(syscall))
    }

    /// Takes the file out, to be closed.
    pub(crate) fn take(&self) -> Option<Opened> {
        self.file.take()
    }
}

pub(super) async fn open(path: PathBuf, flags: Flags, mode: u32) -> std::io::Result<FileHandle> {
    let file = flags.open(&path, mode).await?;
    Ok(FileHandle {
        file: Rc::new(RefCell::new(Some(file))),
    })
}

handle_operations! {
    /// Reads up to `size` bytes at `position`, or at the current position. An empty result is EOF.
    ///
    /// JavaScript: `filehandle.read(buffer, 0, size, position)`, `fs.read(fd, buffer, 0, size,
    /// position, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `read`.
    read, read(size: usize, position: Option<u64>) -> Vec<u8> = |file| steps::read(&file, size, position);

    /// Writes at `position`, or at the current position, and returns the number of bytes written.
    ///
    /// JavaScript: `filehandle.write(buffer, 0, size, position)`, `fs.write(fd, buffer, 0, size,
    /// position, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `write`.
    write, write(bytes: impl Into<Vec<u8>> + 'static, position: Option<u64>) -> usize = |file| {
        async { steps::write(&file, bytes.into(), position).await.map(|(count, _)| count) }
    };

    /// Reads into several buffers, one after the other, at `position` or at the current position.
    /// Returns the number of bytes read, and the buffers. JavaScript: `filehandle.readv(buffers,
    /// position)`, `fs.readv(fd, buffers, position, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `read`.
    readv, readv(buffers: Vec<Vec<u8>>, position: Option<u64>) -> (usize, Vec<Vec<u8>>) = |file| {
        steps::read_vectored(&file, buffers, position)
    };

    /// Writes several buffers, one after the other, at `position` or at the current position, and
    /// returns the number of bytes written. JavaScript: `filehandle.writev(buffers, position)`,
    /// `fs.writev(fd, buffers, position, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `write`.
    writev, writev(buffers: Vec<Vec<u8>>, position: Option<u64>) -> usize = |file| {
        steps::write_vectored(&file, buffers, position)
    };

    /// Sets the access time and the modification time. JavaScript: `filehandle.utimes(atime,
    /// mtime)`, `fs.futimes(fd, atime, mtime, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `futimens`.
    utimes, futimes(accessed: SystemTime, modified: SystemTime) -> () = |file| {
        let times = std::fs::FileTimes::new().set_accessed(accessed).set_modified(modified);
        steps::with_file("futime", &file, move |file| file.set_times(times))
    };

    /// Returns the stats of the file. JavaScript: `filehandle.stat()`, `fs.fstat(fd, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `fstat`.
    stat, fstat() -> Stats = |file| {
        steps::with_file("fstat", &file, |file| file.metadata().map(Stats::from))
    };

    /// Truncates the file to a length, or extends it with zeros. JavaScript:
    /// `filehandle.truncate(length)`, `fs.ftruncate(fd, length, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `ftruncate`.
    truncate, ftruncate(length: u64) -> () = |file| {
        steps::with_file("set_len", &file, move |file| file.set_len(length))
    };

    /// Waits until contents and metadata are on disk. JavaScript: `filehandle.sync()`,
    /// `fs.fsync(fd, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `fsync`.
    sync, fsync() -> () = |file| steps::with_file("sync_all", &file, File::sync_all);

    /// Waits until the contents are on disk. JavaScript: `filehandle.datasync()`, `fs.fdatasync(fd,
    /// callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `fdatasync`.
    datasync, fdatasync() -> () = |file| steps::with_file("sync_data", &file, File::sync_data);
}

impl FileHandle {
    /// Reads from the current position to EOF. JavaScript: `filehandle.readFile()`.
    ///
    /// # Errors
    ///
    /// The promise is rejected with the errors of [`read`](Self::read).
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn read_file(&self) -> Promise<Vec<u8>> {
        self.promise("readFile", |file| async move {
            steps::read_rest(&file, None, None).await
        })
    }

    /// Writes all bytes at the current position. JavaScript: `filehandle.writeFile(data)`,
    /// `filehandle.appendFile(data)`.
    ///
    /// # Errors
    ///
    /// The promise is rejected with the errors of [`write`](Self::write).
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn write_file(&self, contents: impl Into<Vec<u8>>) -> Promise<()> {
        let contents = contents.into();
        self.promise("writeFile", |file| async move {
            steps::write_all(&file, contents, None).await
        })
    }

    /// Returns a stream that reads the file from `start`, or from its current position if `start`
    /// is 0. The stream closes the file at its end, unless
    /// [`auto_close`](ReadStreamOptions::auto_close) is `false`. `flags` and `mode` have no effect.
    /// JavaScript: `filehandle.createReadStream(options)`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread. [Throws](crate::throw) `ERR_OUT_OF_RANGE` if `start` is
    /// greater than `end`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, fs, run};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let file = fs::promises::open("Cargo.toml", "r").await.unwrap();
    ///         let options = fs::ReadStreamOptions { start: 1, end: 7, ..Default::default() };
    ///         file.create_read_stream(options).on_data(|bytes| assert_eq!(bytes, b"package"));
    ///     })
    /// }
    /// ```
    pub fn create_read_stream(&self, options: ReadStreamOptions) -> Readable<Vec<u8>> {
        streams::reader(streams::FileSource::Handle(self.clone()), options)
    }

    /// Returns a stream that writes the file from `start`, or from its current position if `start`
    /// is 0. The stream closes the file at its end, unless
    /// [`auto_close`](WriteStreamOptions::auto_close) is `false`. `flags` and `mode` have no
    /// effect. JavaScript: `filehandle.createWriteStream(options)`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn create_write_stream(&self, options: WriteStreamOptions) -> Writable<Vec<u8>> {
        streams::writer(streams::FileSource::Handle(self.clone()), options)
    }

    /// Reads the file line by line, and closes it at its end. JavaScript: `filehandle.readLines()`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::stream::StreamExt;
    /// use phaseloop_node::{Exit, fs, run};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let file = fs::promises::open("Cargo.toml", "r").await.unwrap();
    ///         let mut lines = file.read_lines().lines();
    ///         assert_eq!(lines.next().await.unwrap().unwrap(), "[package]");
    ///     })
    /// }
    /// ```
    #[track_caller]
    pub fn read_lines(&self) -> Interface {
        readline::create_interface(&self.create_read_stream(ReadStreamOptions::default()))
    }

    fn promise<T, F>(
        &self,
        syscall: &'static str,
        work: impl FnOnce(Opened) -> F + 'static,
    ) -> Promise<T>
    where
        T: Clone + 'static,
        F: Future<Output = Result<T, Error>> + 'static,
    {
        let opened = self.opened(syscall);
        promise_of(|callback| {
            in_callbacks(async move {
                callback(match opened {
                    Ok(file) => work(file).await,
                    Err(error) => Err(error),
                });
            });
        })
    }

    /// Closes the file when the jobs that use it have ended. A second close has no effect.
    ///
    /// JavaScript: `filehandle.close()`.
    ///
    /// # Errors
    ///
    /// The promise is rejected with any OS error of `close`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn close(&self) -> Promise<()> {
        promise_of(|callback| close(self, callback))
    }
}

/// Closes a file, and calls `callback` in the poll phase; see [`FileHandle::close`]. JavaScript:
/// `fs.close(fd, callback)`.
///
/// # Errors
///
/// Any OS error of `close`.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn close(handle: &FileHandle, callback: impl FnOnce(Result<(), Error>) + 'static) {
    let file = handle.take();
    in_callbacks(async move {
        callback(match file {
            Some(file) => steps::close(file).await.map_err(Error::from),
            None => Ok(()),
        });
    });
}

impl From<File> for FileHandle {
    /// Converts a file that is open already: also a pipe or a socket whose descriptor is a `File`.
    fn from(file: File) -> Self {
        Self {
            file: Rc::new(RefCell::new(Some(Arc::new(file)))),
        }
    }
}

impl fmt::Debug for FileHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileHandle")
            .field(&self.file.borrow())
            .finish()
    }
}
