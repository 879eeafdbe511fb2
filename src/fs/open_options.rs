//! How to open a file.

use std::io;
use std::path::Path;

use super::file::File;
use super::job::on_path;

/// How to open a file, as [`std::fs::OpenOptions`]. On Unix also `mode` and `custom_flags`.
///
/// Files are not inherited by child processes.
///
/// # Examples
///
/// ```
/// use futures::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
/// use phaseloop::fs::{self, OpenOptions};
/// use std::io::SeekFrom;
///
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     let path = folder.join("file");
///     let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).await?;
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
    /// Nothing is set.
    #[must_use]
    pub fn new() -> Self {
        Self {
            options: std::fs::OpenOptions::new(),
        }
    }

    /// It will be read from.
    pub fn read(&mut self, read: bool) -> &mut Self {
        self.options.read(read);
        self
    }

    /// It will be written to.
    pub fn write(&mut self, write: bool) -> &mut Self {
        self.options.write(write);
        self
    }

    /// What is written goes to its end, wherever the position is.
    pub fn append(&mut self, append: bool) -> &mut Self {
        self.options.append(append);
        self
    }

    /// It is emptied.
    pub fn truncate(&mut self, truncate: bool) -> &mut Self {
        self.options.truncate(truncate);
        self
    }

    /// It is made if there is none.
    pub fn create(&mut self, create: bool) -> &mut Self {
        self.options.create(create);
        self
    }

    /// It is made; there must be none.
    pub fn create_new(&mut self, create_new: bool) -> &mut Self {
        self.options.create_new(create_new);
        self
    }

    /// Opens the file: one job.
    ///
    /// # Errors
    ///
    /// Those of the system; [`InvalidInput`](io::ErrorKind::InvalidInput) for options that do not go together, and for a
    /// path with a zero byte.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes what has been opened. A file that was to be made may have been made.
    pub async fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let (options, path) = (self.options.clone(), path.as_ref());
        let file = on_path("open", path, move |path| options.open(path)).await?;
        Ok(File::new(file, path.to_owned()))
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}
