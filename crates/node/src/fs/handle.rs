//! Open files.

use std::cell::RefCell;
use std::fmt;
use std::fs::Metadata;
use std::path::PathBuf;
use std::rc::Rc;

use super::flags::{Flags, Opened};
use super::{promise_of, steps};
use crate::callback_futures::{in_callbacks, in_callbacks_as};
use crate::error::Error;
use crate::promise::Promise;

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
/// use phaseloop_node::{fs, run};
///
/// run(async {
///     let file = fs::promises::open("Cargo.toml", "r").await.unwrap();
///     assert_eq!(file.read(7, Some(1)).await.unwrap(), b"package");
///     file.close().await.unwrap();
/// });
/// ```
#[derive(Clone)]
pub struct FileHandle {
    file: Rc<RefCell<Option<Opened>>>,
}

impl FileHandle {
    pub(super) fn opened(&self) -> Result<Opened, Error> {
        let file = self.file.borrow().clone();
        file.ok_or_else(|| Error::with_code("EBADF", "file closed"))
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

    /// Returns the metadata of the file. JavaScript: `filehandle.stat()`, `fs.fstat(fd, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `fstat`.
    stat, fstat() -> Metadata = |file| steps::with_file("fstat", &file, std::fs::File::metadata);

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
    sync, fsync() -> () = |file| steps::with_file("sync_all", &file, std::fs::File::sync_all);

    /// Waits until the contents are on disk. JavaScript: `filehandle.datasync()`, `fs.fdatasync(fd,
    /// callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `fdatasync`.
    datasync, fdatasync() -> () = |file| steps::with_file("sync_data", &file, std::fs::File::sync_data);
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
        self.promise(|file| async move { steps::read_rest(&file, None).await })
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
        self.promise(|file| async move { steps::write_all(&file, contents, None).await })
    }

    fn promise<T, F>(&self, work: impl FnOnce(Opened) -> F + 'static) -> Promise<T>
    where
        T: Clone + 'static,
        F: Future<Output = Result<T, Error>> + 'static,
    {
        let opened = self.opened();
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
    let file = handle.file.take();
    in_callbacks(async move {
        callback(match file {
            Some(file) => steps::close(file).await.map_err(Error::from),
            None => Ok(()),
        });
    });
}

impl fmt::Debug for FileHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileHandle")
            .field(&self.file.borrow())
            .finish()
    }
}
