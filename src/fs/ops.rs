//! Operations that take a path and are over with their call.

use std::fs::Metadata;
use std::io;
use std::path::Path;

use super::job::on_path;

/// Reads a whole file: one job.
///
/// # Errors
///
/// Those of the system, such as [`NotFound`](io::ErrorKind::NotFound) and
/// [`IsADirectory`](io::ErrorKind::IsADirectory); [`InvalidInput`](io::ErrorKind::InvalidInput) for a path with a zero byte.
///
/// # Examples
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let manifest = phaseloop::fs::read("Cargo.toml").await?;
///     assert!(manifest.starts_with(b"[package]"));
///     Ok(())
/// })
/// # }
/// ```
pub async fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    on_path("read", path.as_ref(), |path| std::fs::read(path)).await
}

/// What the system knows of a file; symbolic links are followed.
///
/// # Errors
///
/// As [`read`].
pub async fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    on_path("metadata", path.as_ref(), |path| std::fs::metadata(path)).await
}

/// What the system knows of a file; of a symbolic link, the link itself.
///
/// # Errors
///
/// As [`read`].
pub async fn symlink_metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    on_path("symlink_metadata", path.as_ref(), |path| {
        std::fs::symlink_metadata(path)
    })
    .await
}
