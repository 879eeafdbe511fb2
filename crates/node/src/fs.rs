//! Files with callbacks: Node's `fs`, over [`phaseloop::fs`].
//!
//! ```
//! use phaseloop_node::{Exit, fs, run};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         fs::read_file("Cargo.toml", |result| println!("{} bytes", result.unwrap().len()));
//!     })
//! }
//! ```
//!
//! Each function calls its callback in the poll phase, in a callback of its own. [`promises`] has
//! the functions that return promises. In plain Rust, the functions of [`phaseloop::fs`] return
//! futures; they also cover the operations that have no callback form here.
//!
//! [`create_read_stream`] and [`create_write_stream`] return files as streams.
//!
//! # Cancel safety
//!
//! An operation that has started runs to its end on the pool. Dropping its promise discards the
//! result.
//
// N90.

#[macro_use]
mod operations;

mod cp;
mod dir;
mod flags;
mod glob;
mod handle;
mod options;
#[cfg_attr(unix, path = "fs/unix.rs")]
#[cfg_attr(not(unix), path = "fs/windows.rs")]
mod platform;
mod stats;
mod steps;
mod streams;
mod watch;
mod watch_file;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub use self::cp::CpOptions;
pub use self::dir::{Dir, Dirent};
pub use self::flags::Flags;
pub use self::glob::GlobOptions;
pub use self::handle::{
    FileHandle, close, fdatasync, fstat, fsync, ftruncate, futimes, read, readv, write, writev,
};
pub use self::options::{
    MkdirOptions, ReadFileOptions, ReadStreamOptions, ReaddirOptions, RmOptions, WriteFileOptions,
    WriteStreamOptions,
};
#[cfg(unix)]
pub use self::platform::{chmod, chown, fchmod, fchown, lchown};
pub use self::stats::Stats;
pub use self::streams::{
    OPEN, READY, create_read_stream, create_read_stream_with, create_write_stream,
    create_write_stream_with,
};
pub use self::watch::{CHANGE, FsWatcher, WatchChange, WatchOptions, watch, watch_with};
pub(crate) use self::watch_file::StatWatchers;
pub use self::watch_file::{
    STAT_CHANGE, StatWatcher, WatchFileOptions, unwatch_file, watch_file, watch_file_with,
};
use super::callback_futures::in_callbacks_as;
use super::error::Error;
use super::promise::{Deferred, Promise};
use super::string_decoder::Encoding;
use phaseloop::fs;
pub use phaseloop::fs::{Access, CopyOptions};

async fn names_in(path: PathBuf) -> io::Result<Vec<OsString>> {
    let entries = fs::scan_dir(path).await?;
    Ok(entries
        .iter()
        .map(|entry| entry.file_name().to_owned())
        .collect())
}

/// Returns the result of a function with a callback as a promise.
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

/// Files with promises: the functions of [`fs`](super) without their callbacks. Node's
/// `fs/promises`.
///
/// Dropping a promise discards the result; the operation runs to its end on the pool.
///
/// ```
/// use phaseloop_node::{Exit, fs::promises, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let text = promises::read_file("Cargo.toml").await.unwrap();
///         assert!(text.starts_with(b"[package]"));
///     })
/// }
/// ```
pub mod promises {
    #[cfg(unix)]
    pub use super::platform::promised::*;
    pub use super::promised::*;
}

operations! {
    /// Checks whether this process may access a file. JavaScript: `fs.access(path,
    /// fs.constants.R_OK, callback)` is [`Access::READ`]; `fs.access(path, callback)` is
    /// [`Access::EXISTS`].
    ///
    /// # Errors
    ///
    /// Any OS error of `access`: `EACCES` if the access is not permitted.
    access(path: impl AsRef<Path>, access: Access) -> () = {
        let path = path.as_ref().to_owned();
        async move { fs::access(path, access).await }
    };

    /// Creates a symbolic link at `path` that points to `target`. JavaScript: `fs.symlink(target,
    /// path, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `symlink`.
    symlink(target: impl AsRef<Path>, path: impl AsRef<Path>) -> () = {
        let (target, path) = (target.as_ref().to_owned(), path.as_ref().to_owned());
        async move { fs::symlink(target, path).await }
    };

    /// Reads a whole file, in consecutive jobs of the pool. JavaScript: `fs.readFile(path,
    /// callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `open`, `fstat`, `read` and `close`.
    read_file(path: impl AsRef<Path>) -> Vec<u8> = {
        steps::read_file(path.as_ref().to_owned(), ReadFileOptions::default())
    };

    /// Reads a whole file with options: an open flag, or a signal that aborts it. JavaScript:
    /// `fs.readFile(path, { flag, signal }, callback)`.
    ///
    /// # Errors
    ///
    /// The errors of [`read_file`], and an `AbortError`.
    read_file_with(path: impl AsRef<Path>, options: ReadFileOptions) -> Vec<u8> = {
        steps::read_file(path.as_ref().to_owned(), options)
    };

    /// Reads a whole file as text. JavaScript: `fs.readFile(path, 'utf8', callback)`.
    ///
    /// # Errors
    ///
    /// The errors of [`read_file`].
    read_file_text(path: impl AsRef<Path>, encoding: Encoding) -> String = {
        let path = path.as_ref().to_owned();
        async move {
            let bytes = steps::read_file(path, ReadFileOptions::default()).await?;
            Ok::<_, Error>(encoding.decode(&bytes))
        }
    };

    /// Writes a whole file, and replaces its old contents. JavaScript: `fs.writeFile(path, data,
    /// callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `open`, `write` and `close`.
    write_file(path: impl AsRef<Path>, contents: impl Into<Vec<u8>>) -> () = {
        steps::write_file(path.as_ref().to_owned(), contents.into(), WriteFileOptions::default())
    };

    /// Writes a whole file with options: an open flag, a mode, a flush, or a signal that aborts it.
    /// JavaScript: `fs.writeFile(path, data, { flag, mode, flush, signal }, callback)`.
    ///
    /// # Errors
    ///
    /// The errors of [`write_file`], and an `AbortError`.
    write_file_with(path: impl AsRef<Path>, contents: impl Into<Vec<u8>>, options: WriteFileOptions) -> () = {
        steps::write_file(path.as_ref().to_owned(), contents.into(), options)
    };

    /// Appends to a file, which is created if it does not exist. JavaScript: `fs.appendFile(path,
    /// data, callback)`.
    ///
    /// # Errors
    ///
    /// The errors of [`write_file`].
    append_file(path: impl AsRef<Path>, contents: impl Into<Vec<u8>>) -> () = {
        steps::write_file(path.as_ref().to_owned(), contents.into(), WriteFileOptions::append())
    };

    /// Appends to a file with options; start from [`WriteFileOptions::append`]. JavaScript:
    /// `fs.appendFile(path, data, { mode, flush }, callback)`.
    ///
    /// # Errors
    ///
    /// The errors of [`write_file`].
    append_file_with(path: impl AsRef<Path>, contents: impl Into<Vec<u8>>, options: WriteFileOptions) -> () = {
        steps::write_file(path.as_ref().to_owned(), contents.into(), options)
    };

    /// Opens a file and returns its [handle](FileHandle). JavaScript: `fs.open(path, flags,
    /// callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `open`.
    open(path: impl AsRef<Path>, flags: impl Into<Flags>) -> FileHandle = {
        handle::open(path.as_ref().to_owned(), flags.into(), 0o666)
    };

    /// Opens a file with a mode. A file that is created gets the permissions `mode & !umask`.
    /// JavaScript: `fs.open(path, flags, mode, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `open`.
    open_with_mode(path: impl AsRef<Path>, flags: impl Into<Flags>, mode: u32) -> FileHandle = {
        handle::open(path.as_ref().to_owned(), flags.into(), mode)
    };

    /// Truncates a file to a length, or extends it with zeros. JavaScript: `fs.truncate(path,
    /// length, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `open`, `ftruncate` and `close`.
    truncate(path: impl AsRef<Path>, length: u64) -> () = steps::truncate(path.as_ref().to_owned(), length);

    /// Returns the stats of a file, and follows symbolic links. JavaScript: `fs.stat(path,
    /// callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `stat`.
    stat(path: impl AsRef<Path>) -> Stats = {
        let path = path.as_ref().to_owned();
        async move { fs::metadata(path).await.map(Stats::from) }
    };

    /// Returns the stats of a file or of a symbolic link itself. JavaScript: `fs.lstat(path,
    /// callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `lstat`.
    lstat(path: impl AsRef<Path>) -> Stats = {
        let path = path.as_ref().to_owned();
        async move { fs::symlink_metadata(path).await.map(Stats::from) }
    };

    /// Returns the target of a symbolic link. JavaScript: `fs.readlink(path, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `readlink`; `EINVAL` if the file is not a symbolic link.
    readlink(path: impl AsRef<Path>) -> PathBuf = {
        let path = path.as_ref().to_owned();
        async move { fs::read_link(path).await }
    };

    /// Creates a hard link. JavaScript: `fs.link(existingPath, newPath, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `link`.
    link(existing: impl AsRef<Path>, new: impl AsRef<Path>) -> () = {
        let (existing, new) = (existing.as_ref().to_owned(), new.as_ref().to_owned());
        async move { fs::hard_link(existing, new).await }
    };

    /// Returns the canonical path, without symbolic links, `.` and `..`. JavaScript:
    /// `fs.realpath.native(path, callback)`, `fs.promises.realpath(path)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `realpath`.
    realpath(path: impl AsRef<Path>) -> PathBuf = {
        let path = path.as_ref().to_owned();
        async move { fs::canonicalize(path).await }
    };

    /// Sets the access time and the modification time. JavaScript: `fs.utimes(path, atime, mtime,
    /// callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `utimensat`.
    utimes(path: impl AsRef<Path>, accessed: SystemTime, modified: SystemTime) -> () = {
        let path = path.as_ref().to_owned();
        let times = fs::FileTimes::new().set_accessed(accessed).set_modified(modified);
        async move { fs::set_times(path, times).await }
    };

    /// Sets the access time and the modification time of a file, or of a symbolic link itself.
    /// JavaScript: `fs.lutimes(path, atime, mtime, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `utimensat`.
    lutimes(path: impl AsRef<Path>, accessed: SystemTime, modified: SystemTime) -> () = {
        let path = path.as_ref().to_owned();
        let times = fs::FileTimes::new().set_accessed(accessed).set_modified(modified);
        async move { fs::set_times_nofollow(path, times).await }
    };

    /// Returns the figures of the file system that holds a path. JavaScript: `fs.statfs(path,
    /// callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `statfs`.
    statfs(path: impl AsRef<Path>) -> StatFs = {
        let path = path.as_ref().to_owned();
        async move { fs::statfs(path).await.map(StatFs::from) }
    };

    /// Copies a file to a path, whose missing directories are created. JavaScript: `fs.cp(src,
    /// dest, callback)`.
    ///
    /// # Errors
    ///
    /// The errors of [`cp_with`].
    cp(from: impl AsRef<Path>, to: impl AsRef<Path>) -> () = {
        cp::copy(from.as_ref().to_owned(), to.as_ref().to_owned(), CpOptions::default())
    };

    /// Copies a file, or with [`recursive`](CpOptions::recursive) a directory with its contents.
    /// JavaScript: `fs.cp(src, dest, options, callback)`.
    ///
    /// # Errors
    ///
    /// `ERR_FS_EISDIR` for a directory without `recursive`, `ERR_FS_CP_EINVAL` for a copy of a
    /// directory into itself, `ERR_FS_CP_DIR_TO_NON_DIR`, `ERR_FS_CP_NON_DIR_TO_DIR`,
    /// `ERR_FS_CP_EEXIST`, `ERR_FS_CP_SYMLINK_TO_SUBDIRECTORY`, `ERR_FS_CP_FIFO_PIPE`,
    /// `ERR_FS_CP_SOCKET`, and any OS error of the steps.
    cp_with(from: impl AsRef<Path>, to: impl AsRef<Path>, options: CpOptions) -> () = {
        cp::copy(from.as_ref().to_owned(), to.as_ref().to_owned(), options)
    };

    /// Returns the paths that match a pattern, sorted. JavaScript: `fs.glob(pattern, callback)`.
    ///
    /// `*` and `?` stand for characters of a name, `[a-z]` and `[!a-z]` for one of a set, `**` for
    /// any number of directories, `{a,b}` for one of the alternatives. A name that begins with a
    /// dot needs a pattern that does. Unlike Node's, the patterns have neither `\\` nor `+(a|b)`.
    ///
    /// # Errors
    ///
    /// `ERR_INVALID_ARG_VALUE` for more than 10,000 alternatives. What cannot be read is left out.
    glob(pattern: impl Into<String>) -> Vec<PathBuf> = {
        glob::find(vec![pattern.into()], GlobOptions::default())
    };

    /// Returns the paths that match one of the patterns, relative to a directory; see
    /// [`glob`](fn@glob). JavaScript: `fs.glob(patterns, { cwd, exclude }, callback)`.
    ///
    /// # Errors
    ///
    /// See [`glob`](fn@glob).
    glob_with(patterns: impl IntoIterator<Item = impl Into<String>>, options: GlobOptions) -> Vec<PathBuf> = {
        glob::find(patterns.into_iter().map(Into::into).collect(), options)
    };

    /// Creates a directory. JavaScript: `fs.mkdir(path, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `mkdir`.
    mkdir(path: impl AsRef<Path>) -> () = {
        let path = path.as_ref().to_owned();
        async move { fs::create_dir(path).await }
    };

    /// Creates a directory with options. With `recursive`, its missing parents are created too, and
    /// the topmost created directory is returned. JavaScript: `fs.mkdir(path, { recursive: true,
    /// mode }, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `mkdir`. With `recursive`, an existing directory is no error, and an
    /// existing file is `EEXIST`.
    mkdir_with(path: impl AsRef<Path>, options: MkdirOptions) -> Option<PathBuf> = {
        dir::make(path.as_ref().to_owned(), options)
    };

    /// Creates a directory with a unique name: `prefix` and six letters or digits. JavaScript:
    /// `fs.mkdtemp(prefix, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `mkdir`.
    mkdtemp(prefix: impl AsRef<Path>) -> PathBuf = {
        let mut template = prefix.as_ref().as_os_str().to_owned();
        template.push("XXXXXX");
        async move { fs::mkdtemp(template).await }
    };

    /// Removes a file, or a directory with its contents. JavaScript: `fs.rm(path, { recursive:
    /// true, force: true }, callback)`.
    ///
    /// # Errors
    ///
    /// `ERR_FS_EISDIR` for a directory, unless `recursive` is set, and any OS error of `lstat`,
    /// `unlink` and `rmdir`.
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

    /// Returns the names in a directory, sorted. JavaScript: `fs.readdir(path, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `scandir`.
    readdir(path: impl AsRef<Path>) -> Vec<OsString> = names_in(path.as_ref().to_owned());

    /// Returns the entries of a directory with their types, sorted; with `recursive`, also those of
    /// its subdirectories. JavaScript: `fs.readdir(path, { withFileTypes: true, recursive: true },
    /// callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `scandir`.
    readdir_with(path: impl AsRef<Path>, options: ReaddirOptions) -> Vec<Dirent> = {
        dir::read(path.as_ref().to_owned(), options)
    };

    /// Opens a directory, to be read entry by entry. JavaScript: `fs.opendir(path, callback)`.
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

    /// Renames a file, and replaces an existing file of the new name. JavaScript:
    /// `fs.rename(oldPath, newPath, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `rename`.
    rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> () = {
        let (from, to) = (from.as_ref().to_owned(), to.as_ref().to_owned());
        async move { fs::rename(from, to).await }
    };

    /// Copies a file and returns the number of bytes copied. JavaScript: `fs.copyFile(src, dest,
    /// callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `copyfile`.
    copy_file(from: impl AsRef<Path>, to: impl AsRef<Path>) -> u64 = {
        let (from, to) = (from.as_ref().to_owned(), to.as_ref().to_owned());
        async move { fs::copy(from, to).await }
    };

    /// Copies a file with options. `fs.constants.COPYFILE_EXCL` is [`CopyOptions::exclusive`].
    /// JavaScript: `fs.copyFile(src, dest, mode, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `copyfile`.
    copy_file_with(from: impl AsRef<Path>, to: impl AsRef<Path>, options: CopyOptions) -> u64 = {
        let (from, to) = (from.as_ref().to_owned(), to.as_ref().to_owned());
        async move { options.copy(from, to).await }
    };
}

/// Calls `callback` with whether a path exists, in the poll phase. JavaScript: `fs.exists(path,
/// callback)`.
///
/// The answer may be stale when it arrives: to open a file, open it and handle the error.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, fs, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         fs::exists("Cargo.toml", |exists| assert!(exists));
///     })
/// }
/// ```
pub fn exists(path: impl AsRef<Path>, callback: impl FnOnce(bool) + 'static) {
    access(path, Access::EXISTS, |result| callback(result.is_ok()));
}

/// The figures of a file system. JavaScript: `fs.StatFs`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, fs, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let system = fs::promises::statfs(".").await.unwrap();
///         println!("{} bytes are available", system.bavail * system.bsize);
///     })
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatFs {
    /// The type, as a number of the OS; 0 where it has none. JavaScript: `statFs.type`.
    pub kind: u64,
    /// The size of a block in bytes.
    pub bsize: u64,
    /// The number of blocks.
    pub blocks: u64,
    /// The number of free blocks.
    pub bfree: u64,
    /// The number of free blocks for unprivileged users.
    pub bavail: u64,
    /// The number of files that there is room for; 0 on Windows.
    pub files: u64,
    /// The number of files that can still be created; 0 on Windows.
    pub ffree: u64,
}

impl From<fs::FileSystem> for StatFs {
    fn from(system: fs::FileSystem) -> Self {
        Self {
            kind: system.kind,
            bsize: system.block_size,
            blocks: system.blocks,
            bfree: system.free_blocks,
            bavail: system.available_blocks,
            files: system.files,
            ffree: system.free_files,
        }
    }
}
