//! How to open a file.

use std::io;
use std::path::Path;

use super::file::File;
use super::job::{needs_loop, on_path};
use crate::sys;

/// Options for opening a file, as [`std::fs::OpenOptions`]. Unix adds `mode` and `custom_flags`.
///
/// Files are opened with `O_CLOEXEC`: child processes do not inherit them.
///
/// # Examples
///
/// ```
/// use phaseloop::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
/// use phaseloop::fs::{self, OpenOptions};
/// use std::io::SeekFrom;
///
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     let path = folder.join("file");
///     let mut options = OpenOptions::new();
///     let mut file = options.read(true).write(true).create_new(true).open(&path).await?;
///     file.write_all(b"hello").await?;
///     file.seek(SeekFrom::Start(1)).await?;
///     let mut rest = String::new();
///     file.read_to_string(&mut rest).await?;
///     assert_eq!(rest, "ello");
///     file.close().await?;
///     fs::remove_dir_all(folder).await
/// })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions {
    pub(super) options: std::fs::OpenOptions,
}

impl OpenOptions {
    /// Creates options with nothing set.
    #[must_use]
    pub fn new() -> Self {
        Self {
            options: std::fs::OpenOptions::new(),
        }
    }

    /// Opens the file for reading.
    pub fn read(&mut self, read: bool) -> &mut Self {
        self.options.read(read);
        self
    }

    /// Opens the file for writing.
    pub fn write(&mut self, write: bool) -> &mut Self {
        self.options.write(write);
        self
    }

    /// Opens the file for appending: every write goes to the end of the file.
    pub fn append(&mut self, append: bool) -> &mut Self {
        self.options.append(append);
        self
    }

    /// Truncates an existing file to length 0.
    pub fn truncate(&mut self, truncate: bool) -> &mut Self {
        self.options.truncate(truncate);
        self
    }

    /// Creates the file if it does not exist.
    pub fn create(&mut self, create: bool) -> &mut Self {
        self.options.create(create);
        self
    }

    /// Creates the file, and fails if it exists.
    pub fn create_new(&mut self, create_new: bool) -> &mut Self {
        self.options.create_new(create_new);
        self
    }

    /// Opens the file: one job.
    ///
    /// # Errors
    ///
    /// Any OS error of `open`; [`InvalidInput`](io::ErrorKind::InvalidInput) for a contradictory
    /// combination of options, and for a path that contains a zero byte.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the file if it has been opened. The file may have been created or
    /// truncated.
    #[track_caller]
    pub fn open(&self, path: impl AsRef<Path>) -> impl Future<Output = io::Result<File>> {
        needs_loop("open", async move {
            let (options, path) = (self.options.clone(), path.as_ref());
            let file = on_path("open", path, move |path| sys::fs::open(&options, path)).await?;
            Ok(File::new(file, path.to_owned()))
        })
    }
}

impl From<std::fs::OpenOptions> for OpenOptions {
    fn from(options: std::fs::OpenOptions) -> Self {
        Self { options }
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}
