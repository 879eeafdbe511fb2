//! Files, with callbacks. Node's `fs`, over [`crate::fs`].
//!
//! Each function calls back in the poll phase, in a callback of its own (N90). The same functions in [`promises`] return
//! promises; in plain Rust, those of [`crate::fs`] return futures. What is not here has no callback form: use those.
//!
//! [`create_read_stream`] and [`create_write_stream`] are files as streams.

mod streams;

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

pub use self::streams::{
    OPEN, READY, ReadStreamOptions, create_read_stream, create_read_stream_with,
    create_write_stream, create_write_stream_with,
};
use super::callbacks::in_callbacks;
use super::error::Error;
use super::promise::{Deferred, Promise};
use crate::fs;

/// How much of a file is read at once.
const READ_SIZE: usize = 512 * 1024;

/// Reads a whole file, step by step as Node does: open, metadata, reads, close, each a job of the pool (N91).
async fn read_whole(path: PathBuf) -> io::Result<Vec<u8>> {
    let file = fs::File::open(path).await?;
    let size = usize::try_from(file.metadata().await?.len()).unwrap_or(usize::MAX);
    let mut contents = Vec::new();
    loop {
        let read = contents.len();
        let wanted = if size > read { size - read } else { READ_SIZE };
        contents.resize(read + wanted.min(READ_SIZE), 0);
        let count = file.read_at(&mut contents[read..], read as u64).await?;
        contents.truncate(read + count);
        if count == 0 || contents.len() == size {
            break;
        }
    }
    file.close().await?;
    Ok(contents)
}

async fn names_in(path: PathBuf) -> io::Result<Vec<OsString>> {
    let entries = fs::scan_dir(path).await?;
    Ok(entries
        .iter()
        .map(|entry| entry.file_name().to_owned())
        .collect())
}

/// Each operation with a callback here, and as a promise in [`promises`].
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $kind:ty),*) -> $output:ty = $future:expr;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Panics
            ///
            /// When no loop runs on this thread.
            pub fn $name($($argument: $kind,)* callback: impl FnOnce(Result<$output, Error>) + 'static) {
                let future = $future;
                in_callbacks(async move { callback(future.await.map_err(Error::from)) });
            }
        )*

        /// The same functions, returning promises. Node's `fs/promises`.
        pub mod promises {
            use super::{Deferred, Error, Metadata, OsString, Path, Promise};

            $(
                $(#[$doc])*
                ///
                /// # Panics
                ///
                /// When no loop runs on this thread.
                pub fn $name($($argument: $kind,)*) -> Promise<$output> {
                    let deferred = Deferred::new();
                    let promise = deferred.promise();
                    super::$name($($argument,)* move |result: Result<$output, Error>| match result {
                        Ok(output) => deferred.resolve(output),
                        Err(error) => deferred.reject(error),
                    });
                    promise
                }
            )*
        }
    };
}

operations! {
    /// Reads a whole file, in several steps (N91).
    read_file(path: impl AsRef<Path>) -> Vec<u8> = read_whole(path.as_ref().to_owned());

    /// Writes a whole file; what it held before is gone.
    write_file(path: impl AsRef<Path>, contents: impl Into<Vec<u8>>) -> () = {
        let (path, contents) = (path.as_ref().to_owned(), contents.into());
        async move { fs::write(path, contents).await }
    };

    /// Adds to the end of a file, which is made if there is none.
    append_file(path: impl AsRef<Path>, contents: impl Into<Vec<u8>>) -> () = {
        let (path, contents) = (path.as_ref().to_owned(), contents.into());
        async move { fs::append(path, contents).await }
    };

    /// What the system knows of a file; of what a link points to.
    stat(path: impl AsRef<Path>) -> Metadata = {
        let path = path.as_ref().to_owned();
        async move { fs::metadata(path).await }
    };

    /// Makes a directory.
    mkdir(path: impl AsRef<Path>) -> () = {
        let path = path.as_ref().to_owned();
        async move { fs::create_dir(path).await }
    };

    /// Removes an empty directory.
    rmdir(path: impl AsRef<Path>) -> () = {
        let path = path.as_ref().to_owned();
        async move { fs::remove_dir(path).await }
    };

    /// The names in a directory.
    readdir(path: impl AsRef<Path>) -> Vec<OsString> = names_in(path.as_ref().to_owned());

    /// Removes a file.
    unlink(path: impl AsRef<Path>) -> () = {
        let path = path.as_ref().to_owned();
        async move { fs::remove_file(path).await }
    };

    /// Gives a file another name; one that had that name is gone.
    rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> () = {
        let (from, to) = (from.as_ref().to_owned(), to.as_ref().to_owned());
        async move { fs::rename(from, to).await }
    };

    /// Copies a file, and says how many bytes that were.
    copy_file(from: impl AsRef<Path>, to: impl AsRef<Path>) -> u64 = {
        let (from, to) = (from.as_ref().to_owned(), to.as_ref().to_owned());
        async move { fs::copy(from, to).await }
    };
}
