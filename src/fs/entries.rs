//! Entries of directories: creating, linking, removing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::job::{on_path, on_paths};
use crate::sys;

/// Removes a file or a symbolic link.
///
/// # Errors
///
/// Any OS error of `unlink`.
///
/// # Cancel safety
///
/// If the future is dropped, the operation may or may not take place: a started job is carried out.
///
/// # Examples
///
/// ```
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     fs::create_dir(folder.join("sub")).await?;
///     fs::write(folder.join("sub/file"), "text").await?;
///     assert!(fs::remove_dir(folder.join("sub")).await.is_err(), "it is not empty");
///     fs::remove_file(folder.join("sub/file")).await?;
///     fs::remove_dir(folder.join("sub")).await?;
///     fs::remove_dir(folder).await?;
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn remove_file(path: impl AsRef<Path>) -> impl Future<Output = io::Result<()>> {
    on_path("remove_file", path, sys::fs::remove_file).here()
}

/// Removes an empty directory.
///
/// # Errors
///
/// Any OS error of `rmdir`, such as [`DirectoryNotEmpty`](io::ErrorKind::DirectoryNotEmpty).
///
/// # Cancel safety
///
/// If the future is dropped, the operation may or may not take place: a started job is carried out.
///
/// # Examples
///
/// ```
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     fs::create_dir(folder.join("sub")).await?;
///     fs::write(folder.join("sub/file"), "text").await?;
///     assert!(fs::remove_dir(folder.join("sub")).await.is_err(), "it is not empty");
///     fs::remove_file(folder.join("sub/file")).await?;
///     fs::remove_dir(folder.join("sub")).await?;
///     fs::remove_dir(folder).await?;
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn remove_dir(path: impl AsRef<Path>) -> impl Future<Output = io::Result<()>> {
    on_path("remove_dir", path, |path| fs::remove_dir(path)).here()
}

/// Removes a directory and everything in it, without following symbolic links. It is one job, which
/// can occupy a pool thread for long.
///
/// # Errors
///
/// Any OS error of reading and removing entries. After an error, part of the tree may be gone.
///
/// # Cancel safety
///
/// If the future is dropped, the operation may or may not take place: a started job is carried out.
///
/// # Examples
///
/// ```
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     fs::create_dir_all(folder.join("a/b/c")).await?;
///     fs::create_dir_all(folder.join("a/b/c")).await?; // no error
///     fs::remove_dir_all(&folder).await?;
///     assert!(!fs::exists(folder).await?);
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn remove_dir_all(path: impl AsRef<Path>) -> impl Future<Output = io::Result<()>> {
    on_path("remove_dir_all", path, |path| fs::remove_dir_all(path)).here()
}

/// Creates a directory.
///
/// # Errors
///
/// Any OS error of `mkdir`, such as [`AlreadyExists`](io::ErrorKind::AlreadyExists), or
/// [`NotFound`](io::ErrorKind::NotFound) if the parent directory does not exist.
///
/// # Cancel safety
///
/// If the future is dropped, the operation may or may not take place: a started job is carried out.
///
/// # Examples
///
/// ```
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     fs::create_dir(folder.join("sub")).await?;
///     fs::write(folder.join("sub/file"), "text").await?;
///     assert!(fs::remove_dir(folder.join("sub")).await.is_err(), "it is not empty");
///     fs::remove_file(folder.join("sub/file")).await?;
///     fs::remove_dir(folder.join("sub")).await?;
///     fs::remove_dir(folder).await?;
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn create_dir(path: impl AsRef<Path>) -> impl Future<Output = io::Result<()>> {
    on_path("create_dir", path, |path| fs::create_dir(path)).here()
}

/// Creates a directory and its missing parents. A directory that exists already is not an error.
///
/// # Errors
///
/// Any OS error of `mkdir`.
///
/// # Cancel safety
///
/// If the future is dropped, the operation may or may not take place: a started job is carried out.
///
/// # Examples
///
/// ```
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     fs::create_dir_all(folder.join("a/b/c")).await?;
///     fs::create_dir_all(folder.join("a/b/c")).await?; // no error
///     fs::remove_dir_all(&folder).await?;
///     assert!(!fs::exists(folder).await?);
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn create_dir_all(path: impl AsRef<Path>) -> impl Future<Output = io::Result<()>> {
    on_path("create_dir_all", path, |path| fs::create_dir_all(path)).here()
}

/// Creates a hard link `link` to the file `original`.
///
/// # Errors
///
/// Any OS error of `link`.
///
/// # Cancel safety
///
/// If the future is dropped, the operation may or may not take place: a started job is carried out.
///
/// # Examples
///
/// ```
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     fs::write(folder.join("one"), "text").await?;
///     fs::hard_link(folder.join("one"), folder.join("other")).await?;
///     assert_eq!(fs::read(folder.join("other")).await?, b"text");
///     fs::remove_dir_all(folder).await?;
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn hard_link(
    original: impl AsRef<Path>,
    link: impl AsRef<Path>,
) -> impl Future<Output = io::Result<()>> {
    on_paths("hard_link", original, link, |original, link| {
        fs::hard_link(original, link)
    })
    .here()
}

/// Returns the target of a symbolic link, as it is stored in the link.
///
/// # Errors
///
/// Any OS error of `readlink`; [`InvalidInput`](io::ErrorKind::InvalidInput) if the path is not a
/// symbolic link.
///
/// # Cancel safety
///
/// Dropping the future discards the result and has no other effect.
///
/// # Examples
///
/// ```ignore-windows
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     fs::symlink("target", folder.join("link")).await?; // the target need not exist
///     assert!(fs::symlink_metadata(folder.join("link")).await?.is_symlink());
///     assert_eq!(fs::read_link(folder.join("link")).await?, std::path::Path::new("target"));
///     fs::remove_dir_all(folder).await?;
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn read_link(path: impl AsRef<Path>) -> impl Future<Output = io::Result<PathBuf>> {
    on_path("read_link", path, |path| fs::read_link(path)).here()
}

/// Returns the absolute path of a file with all symbolic links, `.` and `..` resolved.
///
/// # Errors
///
/// Any OS error of `realpath`.
///
/// # Cancel safety
///
/// Dropping the future discards the result and has no other effect.
///
/// # Examples
///
/// ```
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let path = fs::canonicalize("src/../Cargo.toml").await?;
///     assert!(path.is_absolute() && !path.to_string_lossy().contains(".."));
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn canonicalize(path: impl AsRef<Path>) -> impl Future<Output = io::Result<PathBuf>> {
    on_path("canonicalize", path, |path| fs::canonicalize(path)).here()
}
