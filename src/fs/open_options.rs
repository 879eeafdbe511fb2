//! How to open a file.

use std::io;
use std::path::Path;

use super::file::File;
use super::job::{Call, submit};
use crate::error::OsError;
use crate::runtime::loop_handle::LoopHandle;
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
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
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
/// }
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions {
    pub(super) options: std::fs::OpenOptions,
}

impl OpenOptions {
    /// Creates options with nothing set.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, OpenOptions};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let mut options = OpenOptions::new();
    ///     options.read(true).write(true).create(true);
    ///     let file = options.open(folder.join("data")).await?; // created, or opened as it is
    ///     assert_eq!(file.metadata().await?.len(), 0);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self {
            options: std::fs::OpenOptions::new(),
        }
    }

    /// Opens the file for reading.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, OpenOptions};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let mut options = OpenOptions::new();
    ///     options.read(true).write(true).create(true);
    ///     let file = options.open(folder.join("data")).await?; // created, or opened as it is
    ///     assert_eq!(file.metadata().await?.len(), 0);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn read(&mut self, read: bool) -> &mut Self {
        self.options.read(read);
        self
    }

    /// Opens the file for writing.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, OpenOptions};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let mut options = OpenOptions::new();
    ///     options.read(true).write(true).create(true);
    ///     let file = options.open(folder.join("data")).await?; // created, or opened as it is
    ///     assert_eq!(file.metadata().await?.len(), 0);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn write(&mut self, write: bool) -> &mut Self {
        self.options.write(write);
        self
    }

    /// Opens the file for appending: every write goes to the end of the file.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, OpenOptions};
    /// use phaseloop::io::AsyncWriteExt;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let path = folder.join("log");
    ///     OpenOptions::new().write(true).create_new(true).open(&path).await?;
    ///     for line in ["one\n", "two\n"] {
    ///         let mut file = OpenOptions::new().append(true).open(&path).await?;
    ///         file.write_all(line.as_bytes()).await?;
    ///         file.flush().await?;
    ///     }
    ///     assert_eq!(fs::read(&path).await?, b"one\ntwo\n");
    ///     OpenOptions::new().write(true).truncate(true).open(&path).await?;
    ///     assert_eq!(fs::metadata(&path).await?.len(), 0);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn append(&mut self, append: bool) -> &mut Self {
        self.options.append(append);
        self
    }

    /// Truncates an existing file to length 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, OpenOptions};
    /// use phaseloop::io::AsyncWriteExt;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let path = folder.join("log");
    ///     OpenOptions::new().write(true).create_new(true).open(&path).await?;
    ///     for line in ["one\n", "two\n"] {
    ///         let mut file = OpenOptions::new().append(true).open(&path).await?;
    ///         file.write_all(line.as_bytes()).await?;
    ///         file.flush().await?;
    ///     }
    ///     assert_eq!(fs::read(&path).await?, b"one\ntwo\n");
    ///     OpenOptions::new().write(true).truncate(true).open(&path).await?;
    ///     assert_eq!(fs::metadata(&path).await?.len(), 0);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn truncate(&mut self, truncate: bool) -> &mut Self {
        self.options.truncate(truncate);
        self
    }

    /// Creates the file if it does not exist.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, OpenOptions};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let mut options = OpenOptions::new();
    ///     options.read(true).write(true).create(true);
    ///     let file = options.open(folder.join("data")).await?; // created, or opened as it is
    ///     assert_eq!(file.metadata().await?.len(), 0);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn create(&mut self, create: bool) -> &mut Self {
        self.options.create(create);
        self
    }

    /// Creates the file, and fails if it exists.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, OpenOptions};
    /// use phaseloop::io::AsyncWriteExt;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let path = folder.join("log");
    ///     OpenOptions::new().write(true).create_new(true).open(&path).await?;
    ///     for line in ["one\n", "two\n"] {
    ///         let mut file = OpenOptions::new().append(true).open(&path).await?;
    ///         file.write_all(line.as_bytes()).await?;
    ///         file.flush().await?;
    ///     }
    ///     assert_eq!(fs::read(&path).await?, b"one\ntwo\n");
    ///     OpenOptions::new().write(true).truncate(true).open(&path).await?;
    ///     assert_eq!(fs::metadata(&path).await?.len(), 0);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, OpenOptions};
    /// use phaseloop::io::AsyncWriteExt;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let path = folder.join("log");
    ///     OpenOptions::new().write(true).create_new(true).open(&path).await?;
    ///     for line in ["one\n", "two\n"] {
    ///         let mut file = OpenOptions::new().append(true).open(&path).await?;
    ///         file.write_all(line.as_bytes()).await?;
    ///         file.flush().await?;
    ///     }
    ///     assert_eq!(fs::read(&path).await?, b"one\ntwo\n");
    ///     OpenOptions::new().write(true).truncate(true).open(&path).await?;
    ///     assert_eq!(fs::metadata(&path).await?.len(), 0);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn open(&self, path: impl AsRef<Path>) -> impl Future<Output = io::Result<File>> {
        self.open_for("open", path)
    }

    /// Opens the file for the function `function` of this module, on behalf of its caller.
    #[track_caller]
    pub(super) fn open_for<P: AsRef<Path>>(
        &self,
        function: &'static str,
        path: P,
    ) -> impl Future<Output = io::Result<File>> + use<P> {
        let options = self.options.clone();
        let call = Call::new(move |site| {
            LoopHandle::current_for(format_args!("fs::{function}"), site);
            let path = path.as_ref();
            let owned = path.to_owned();
            let about = || path.to_owned().into();
            submit("open", site, about, move || {
                match sys::fs::open(&options, &owned) {
                    Ok(file) => Ok((file, owned)),
                    Err(error) => Err(OsError::wrap(error, "open", owned)),
                }
            })
        });
        call.here().map(|(file, path)| File::new(file, path))
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
