//! The length, the metadata and the state on the disk of an open file.

use std::fs::{Metadata, Permissions};
use std::future::poll_fn;
use std::io;

use super::{File, check_length};
use crate::fs::FileTimes;
use crate::sys;

/// Length, metadata, and the state on the disk.
impl File {
    /// Waits until content and metadata are on the disk, as `fsync` does.
    ///
    /// # Errors
    ///
    /// The error of an accepted write; any OS error of the call.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the operation may or may not take place.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, File};
    /// use phaseloop::io::AsyncWriteExt;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let mut file = File::create(folder.join("journal")).await?;
    ///     file.write_all(b"entry 1\n").await?;
    ///     file.sync_all().await?; // it survives a power failure
    ///     File::close(file).await?;
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub async fn sync_all(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_flush(cx)).await?;
        self.on_file("sync_all", std::fs::File::sync_all).await
    }

    /// Waits until the content is on the disk, as `fdatasync` does.
    ///
    /// # Errors
    ///
    /// The errors of [`sync_all`](Self::sync_all).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the operation may or may not take place.
    #[inline]
    pub async fn sync_data(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_flush(cx)).await?;
        self.on_file("sync_data", std::fs::File::sync_data).await
    }

    /// Truncates the file to a length, or extends it with zeros. The position does not move.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for more than 2⁶³ − 1 bytes, which no file can
    /// have; any OS error of `ftruncate`.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the operation may or may not take place.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, File};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let file = File::create(folder.join("disk")).await?;
    ///     file.set_len(1 << 20).await?;
    ///     assert_eq!(file.metadata().await?.len(), 1 << 20);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub async fn set_len(&self, length: u64) -> io::Result<()> {
        self.change("set_len", move |file| {
            check_length(length)?;
            file.set_len(length)
        })
        .await
    }

    /// Returns the metadata of the file.
    ///
    /// # Errors
    ///
    /// Any OS error of `fstat`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future discards the result and has no other effect.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, File};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let file = File::create(folder.join("disk")).await?;
    ///     file.set_len(1 << 20).await?;
    ///     assert_eq!(file.metadata().await?.len(), 1 << 20);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub async fn metadata(&self) -> io::Result<Metadata> {
        self.written().await;
        self.on_file("metadata", std::fs::File::metadata).await
    }

    /// Sets the permissions of the file.
    ///
    /// # Errors
    ///
    /// Any OS error of `fchmod`.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the operation may or may not take place.
    #[inline]
    pub async fn set_permissions(&self, permissions: Permissions) -> io::Result<()> {
        self.on_file("set_permissions", move |file| {
            file.set_permissions(permissions)
        })
        .await
    }

    /// Sets the access and modification times of the file.
    ///
    /// # Errors
    ///
    /// Any OS error of `futimens`; [`InvalidInput`](io::ErrorKind::InvalidInput) for a time outside
    /// the range of the OS.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the operation may or may not take place.
    #[inline]
    pub async fn set_times(&self, times: FileTimes) -> io::Result<()> {
        self.written().await;
        self.on_file("set_times", move |file| {
            sys::fs::set_file_times(file, times.accessed, times.modified)
        })
        .await
    }
}
