//! How to create a directory.

use std::io;
use std::path::Path;

use super::job::on_path;
use super::platform;

/// Options for creating a directory, as [`std::fs::DirBuilder`]. Unix adds `mode`.
///
/// # Examples
///
/// ```
/// use phaseloop::fs::{self, DirBuilder};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     let deep = folder.join("a/b/c");
///     assert!(DirBuilder::new().create(&deep).await.is_err(), "its parent is missing");
///     DirBuilder::new().recursive(true).create(&deep).await?;
///     assert!(fs::metadata(&deep).await?.is_dir());
///     fs::remove_dir_all(folder).await
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct DirBuilder {
    recursive: bool,
    /// `None`: the default of the OS.
    pub(super) mode: Option<u32>,
}

impl DirBuilder {
    /// Creates options with nothing set.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, DirBuilder};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     DirBuilder::new().recursive(true).create(folder.join("a/b/c")).await?;
    ///     assert!(fs::exists(folder.join("a/b")).await?);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether missing parents are created as well. Then a directory that exists already is
    /// not an error. The default is `false`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, DirBuilder};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     DirBuilder::new().recursive(true).create(folder.join("a/b/c")).await?;
    ///     assert!(fs::exists(folder.join("a/b")).await?);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub fn recursive(&mut self, recursive: bool) -> &mut Self {
        self.recursive = recursive;
        self
    }

    /// Creates the directory: one job.
    ///
    /// # Errors
    ///
    /// Any OS error of `mkdir`, such as [`AlreadyExists`](io::ErrorKind::AlreadyExists), or
    /// [`NotFound`](io::ErrorKind::NotFound) if the parent directory does not exist.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the operation may or may not take place: a started job is carried
    /// out.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, DirBuilder};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     DirBuilder::new().recursive(true).create(folder.join("a/b/c")).await?;
    ///     assert!(fs::exists(folder.join("a/b")).await?);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    #[inline]
    pub fn create(&self, path: impl AsRef<Path>) -> impl Future<Output = io::Result<()>> {
        let builder = self.to_std();
        on_path("create_dir", path, move |path| builder.create(path)).here()
    }

    #[inline]
    fn to_std(&self) -> std::fs::DirBuilder {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(self.recursive);
        if let Some(mode) = self.mode {
            platform::set_mode(&mut builder, mode);
        }
        builder
    }
}
