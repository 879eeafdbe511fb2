//! Files, with callbacks. Node's `fs`, over [`crate::fs`].
//!
//! Each function calls back in the poll phase, in a callback of its own (N90). The same functions in [`promises`] return
//! promises; in plain Rust, those of [`crate::fs`] return futures. What is not here has no callback form: use those.
//!
//! [`create_read_stream`] and [`create_write_stream`] are files as streams.

#[macro_use]
mod operations;

mod dir;
mod flags;
mod handle;
mod options;
mod steps;
mod streams;
#[cfg(unix)]
mod unix;

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub use self::dir::{Dir, Dirent};
pub use self::flags::Flags;
pub use self::handle::{FileHandle, close, fdatasync, fstat, fsync, ftruncate, read, write};
pub use self::options::{
    MkdirOptions, ReadFileOptions, ReadStreamOptions, ReaddirOptions, RmOptions, WriteFileOptions,
    WriteStreamOptions,
};
pub use self::streams::{
    OPEN, READY, create_read_stream, create_read_stream_with, create_write_stream,
    create_write_stream_with,
};
#[cfg(unix)]
pub use self::unix::{Access, access, chmod, chown, fchmod, symlink};
use super::callback_futures::in_callbacks;
use super::error::Error;
use super::promise::{Deferred, Promise};
use super::string_decoder::Encoding;
use crate::fs;
pub use crate::fs::CopyOptions;

async fn names_in(path: PathBuf) -> io::Result<Vec<OsString>> {
    let entries = fs::scan_dir(path).await?;
    Ok(entries
        .iter()
        .map(|entry| entry.file_name().to_owned())
        .collect())
}

/// What a function with a callback calls back with, as a promise.
fn promise_of<T: Clone + 'static>(
    start: impl FnOnce(Box<dyn FnOnce(Result<T, Error>)>),
) -> Promise<T> {
    let deferred = Deferred::new();
    let promise = deferred.promise();
    start(Box::new(move |result| match result {
        Ok(output) => deferred.resolve(output),
        Err(error) => deferred.reject(error),
    }));
    promise
}

/// Files, as promises: each function of the module above without its callback. Node's `fs/promises`.
pub mod promises {
    pub use super::promised::*;
    #[cfg(unix)]
    pub use super::unix::promised::*;
}

operations! {
    /// Reads a whole file, in several jobs of the pool, one after the other. JavaScript: `fs.readFile(path, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `open`, `fstat`, `read` and `close`.
    read_file(path: impl AsRef<Path>) -> Vec<u8> = {
        steps::read_file(path.as_ref().to_owned(), ReadFileOptions::default())
    };

    /// Reads a whole file that is opened in another way, or stopped by a signal. JavaScript: `fs.readFile(path, { flag,
    /// signal }, callback)`.
    ///
    /// # Errors
    ///
    /// As [`read_file`], and an `AbortError`.
    read_file_with(path: impl AsRef<Path>, options: ReadFileOptions) -> Vec<u8> = {
        steps::read_file(path.as_ref().to_owned(), options)
    };

    /// Reads a whole file as text. JavaScript: `fs.readFile(path, 'utf8', callback)`.
    ///
    /// # Errors
    ///
    /// As [`read_file`].
    read_file_text(path: impl AsRef<Path>, encoding: Encoding) -> String = {
        let path = path.as_ref().to_owned();
        async move {
            let bytes = steps::read_file(path, ReadFileOptions::default()).await?;
            Ok::<_, Error>(encoding.decode(&bytes))
        }
    };

    /// Writes a whole file; what it held before is gone. JavaScript: `fs.writeFile(path, data, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `open`, `write` and `close`.
    write_file(path: impl AsRef<Path>, contents: impl Into<Vec<u8>>) -> () = {
        steps::write_file(path.as_ref().to_owned(), contents.into(), WriteFileOptions::default())
    };

    /// Writes a whole file that is opened in another way, or stopped by a signal. JavaScript: `fs.writeFile(path, data,
    /// { flag, mode, flush, signal }, callback)`.
    ///
    /// # Errors
    ///
    /// As [`write_file`], and an `AbortError`.
    write_file_with(path: impl AsRef<Path>, contents: impl Into<Vec<u8>>, options: WriteFileOptions) -> () = {
        steps::write_file(path.as_ref().to_owned(), contents.into(), options)
    };

    /// Adds to the end of a file, which is made if there is none. JavaScript: `fs.appendFile(path, data, callback)`.
    ///
    /// # Errors
    ///
    /// As [`write_file`].
    append_file(path: impl AsRef<Path>, contents: impl Into<Vec<u8>>) -> () = {
        steps::write_file(path.as_ref().to_owned(), contents.into(), WriteFileOptions::append())
    };

    /// Adds to the end of a file, with options: [`WriteFileOptions::append`] is where to begin. JavaScript:
    /// `fs.appendFile(path, data, { mode, flush }, callback)`.
    ///
    /// # Errors
    ///
    /// As [`write_file`].
    append_file_with(path: impl AsRef<Path>, contents: impl Into<Vec<u8>>, options: WriteFileOptions) -> () = {
        steps::write_file(path.as_ref().to_owned(), contents.into(), options)
    };

    /// Opens a file, to be used by its [handle](FileHandle). JavaScript: `fs.open(path, flags, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `open`.
    open(path: impl AsRef<Path>, flags: impl Into<Flags>) -> FileHandle = {
        handle::open(path.as_ref().to_owned(), flags.into(), 0o666)
    };

    /// Opens a file; one that is made gets these permissions, without those that the process's mask takes away.
    /// JavaScript: `fs.open(path, flags, mode, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `open`.
    open_with_mode(path: impl AsRef<Path>, flags: impl Into<Flags>, mode: u32) -> FileHandle = {
        handle::open(path.as_ref().to_owned(), flags.into(), mode)
    };

    /// Cuts a file to a length, or extends it with zeros. JavaScript: `fs.truncate(path, length, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `open`, `ftruncate` and `close`.
    truncate(path: impl AsRef<Path>, length: u64) -> () = steps::truncate(path.as_ref().to_owned(), length);

    /// What the system knows of a file; of what a link points to. JavaScript: `fs.stat(path, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `stat`.
    stat(path: impl AsRef<Path>) -> Metadata = {
        let path = path.as_ref().to_owned();
        async move { fs::metadata(path).await }
    };

    /// What the system knows of a file; of a link itself. JavaScript: `fs.lstat(path, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `lstat`.
    lstat(path: impl AsRef<Path>) -> Metadata = {
        let path = path.as_ref().to_owned();
        async move { fs::symlink_metadata(path).await }
    };

    /// Where a symbolic link points to. JavaScript: `fs.readlink(path, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `readlink`; `EINVAL` for what is not a link.
    readlink(path: impl AsRef<Path>) -> PathBuf = {
        let path = path.as_ref().to_owned();
        async move { fs::read_link(path).await }
    };

    /// Gives a file a second name. JavaScript: `fs.link(existingPath, newPath, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `link`.
    link(existing: impl AsRef<Path>, new: impl AsRef<Path>) -> () = {
        let (existing, new) = (existing.as_ref().to_owned(), new.as_ref().to_owned());
        async move { fs::hard_link(existing, new).await }
    };

    /// The path without links, `.` and `..`. JavaScript: `fs.realpath.native(path, callback)`, `fs.promises.realpath(path)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `realpath`.
    realpath(path: impl AsRef<Path>) -> PathBuf = {
        let path = path.as_ref().to_owned();
        async move { fs::canonicalize(path).await }
    };

    /// Sets the times of the last access and of the last change. JavaScript: `fs.utimes(path, atime, mtime, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `utimensat`.
    utimes(path: impl AsRef<Path>, accessed: SystemTime, modified: SystemTime) -> () = {
        let path = path.as_ref().to_owned();
        let times = fs::FileTimes::new().set_accessed(accessed).set_modified(modified);
        async move { fs::set_times(path, times).await }
    };

    /// Makes a directory. JavaScript: `fs.mkdir(path, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `mkdir`.
    mkdir(path: impl AsRef<Path>) -> () = {
        let path = path.as_ref().to_owned();
        async move { fs::create_dir(path).await }
    };

    /// Makes a directory, and those above it if that is asked for; then the topmost one that was made is returned.
    /// JavaScript: `fs.mkdir(path, { recursive: true, mode }, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `mkdir`. A directory that exists is none if `recursive` is set; a file is `EEXIST`.
    mkdir_with(path: impl AsRef<Path>, options: MkdirOptions) -> Option<PathBuf> = {
        dir::make(path.as_ref().to_owned(), options)
    };

    /// Makes a directory with a name of its own: `prefix` and six letters or digits. JavaScript: `fs.mkdtemp(prefix,
    /// callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `mkdir`.
    mkdtemp(prefix: impl AsRef<Path>) -> PathBuf = {
        let mut template = prefix.as_ref().as_os_str().to_owned();
        template.push("XXXXXX");
        async move { fs::mkdtemp(template).await }
    };

    /// Removes a file, or a directory with all that is in it. JavaScript: `fs.rm(path, { recursive: true, force: true },
    /// callback)`.
    ///
    /// # Errors
    ///
    /// `ERR_FS_EISDIR` for a directory, unless `recursive` is set, and any OS error of `lstat`, `unlink` and `rmdir`.
    rm(path: impl AsRef<Path>, options: RmOptions) -> () = dir::remove(path.as_ref().to_owned(), options);

    /// Removes an empty directory. JavaScript: `fs.rmdir(path, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `rmdir`.
    rmdir(path: impl AsRef<Path>) -> () = {
        let path = path.as_ref().to_owned();
        async move { fs::remove_dir(path).await }
    };

    /// The names in a directory, sorted. JavaScript: `fs.readdir(path, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `scandir`.
    readdir(path: impl AsRef<Path>) -> Vec<OsString> = names_in(path.as_ref().to_owned());

    /// What is in a directory, with types, sorted; also what is in the directories in it, if that is asked for. JavaScript:
    /// `fs.readdir(path, { withFileTypes: true, recursive: true }, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `scandir`.
    readdir_with(path: impl AsRef<Path>, options: ReaddirOptions) -> Vec<Dirent> = {
        dir::read(path.as_ref().to_owned(), options)
    };

    /// Opens a directory, to read it entry by entry. JavaScript: `fs.opendir(path, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `opendir`.
    opendir(path: impl AsRef<Path>) -> Dir = dir::open(path.as_ref().to_owned());

    /// Removes a file. JavaScript: `fs.unlink(path, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `unlink`.
    unlink(path: impl AsRef<Path>) -> () = {
        let path = path.as_ref().to_owned();
        async move { fs::remove_file(path).await }
    };

    /// Gives a file another name; one that had that name is gone. JavaScript: `fs.rename(oldPath, newPath, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `rename`.
    rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> () = {
        let (from, to) = (from.as_ref().to_owned(), to.as_ref().to_owned());
        async move { fs::rename(from, to).await }
    };

    /// Copies a file, and says how many bytes that were. JavaScript: `fs.copyFile(src, dest, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `copyfile`.
    copy_file(from: impl AsRef<Path>, to: impl AsRef<Path>) -> u64 = {
        let (from, to) = (from.as_ref().to_owned(), to.as_ref().to_owned());
        async move { fs::copy(from, to).await }
    };

    /// Copies a file in another way. JavaScript: `fs.copyFile(src, dest, fs.constants.COPYFILE_EXCL, callback)` is
    /// [`CopyOptions::exclusive`].
    ///
    /// # Errors
    ///
    /// Any OS error of `copyfile`.
    copy_file_with(from: impl AsRef<Path>, to: impl AsRef<Path>, options: CopyOptions) -> u64 = {
        let (from, to) = (from.as_ref().to_owned(), to.as_ref().to_owned());
        async move { options.copy(from, to).await }
    };
}
