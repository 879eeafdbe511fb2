//! Operations that the standard library lacks, or has on some platforms only.

use std::io;
use std::ops::BitOr;
use std::panic::Location;
use std::path::Path;

use super::file::File;
use super::job::{on_path, on_paths};
use crate::runtime::loop_handle::LoopHandle;
use crate::sys;

/// Permissions to check with [`access`], combined with `|`.
///
/// # Examples
///
/// ```
/// use phaseloop::fs::{self, Access};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     fs::access("Cargo.toml", Access::READ).await?;
///     #[cfg(unix)]
///     assert!(fs::access("Cargo.toml", Access::READ | Access::EXECUTE).await.is_err());
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access(u8);

impl Access {
    /// The file exists.
    pub const EXISTS: Self = Self(0);
    /// The file may be read.
    pub const READ: Self = Self(1);
    /// The file may be written.
    pub const WRITE: Self = Self(2);
    /// The file may be executed; a directory may be searched.
    pub const EXECUTE: Self = Self(4);

    fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Access {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Checks the permissions of this process for a file.
///
/// On Windows every file may be read and executed, and one that is read-only may not be written, as
/// libuv has it. The access lists of the file are not asked.
///
/// The answer can be stale when it is used: to open a file, open it and handle the error.
///
/// # Errors
///
/// [`PermissionDenied`](io::ErrorKind::PermissionDenied) without the permission,
/// [`NotFound`](io::ErrorKind::NotFound), and any other OS error of `access`.
///
/// # Cancel safety
///
/// Dropping the future discards the result and has no other effect.
///
/// # Examples
///
/// ```
/// use phaseloop::fs::{self, Access};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     fs::access("/", Access::READ | Access::EXECUTE).await?;
///     assert!(fs::access("/no/such/file", Access::EXISTS).await.is_err());
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn access(path: impl AsRef<Path>, access: Access) -> impl Future<Output = io::Result<()>> {
    on_path("access", path, move |path| {
        let asked = [Access::READ, Access::WRITE, Access::EXECUTE];
        sys::fs::access(path, asked.map(|one| access.has(one)))
    })
    .here()
}

/// Creates a symbolic link at `link` with the target `original`.
///
/// Windows has links to files and links to directories: the link is one to a directory if the
/// target is a directory now, as Node has it. The process needs a privilege there, or the developer
/// mode.
///
/// # Errors
///
/// Any OS error of `symlink` or `CreateSymbolicLink`.
///
/// # Cancel safety
///
/// If the future is dropped, the operation may or may not take place: a started job is carried out.
///
/// # Examples
///
/// ```ignore-windows
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     fs::write(folder.join("release-2"), "text").await?;
///     fs::symlink("release-2", folder.join("current")).await?;
///     assert_eq!(fs::read(folder.join("current")).await?, b"text");
///     fs::remove_dir_all(folder).await?;
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn symlink(
    original: impl AsRef<Path>,
    link: impl AsRef<Path>,
) -> impl Future<Output = io::Result<()>> {
    on_paths("symlink", original, link, sys::fs::symlink).here()
}

/// Statistics of a file system, returned by [`statfs`].
///
/// # Examples
///
/// ```
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let system = phaseloop::fs::statfs(".").await?;
///     let free = system.available_blocks * system.fragment_size;
///     println!("{free} bytes are available");
///     assert!(system.available_blocks <= system.blocks);
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileSystem {
    /// Type of the file system, as the magic number of the OS; 0 where it has none.
    pub kind: u64,
    /// Preferred block size for I/O, in bytes.
    pub block_size: u64,
    /// Fragment size in bytes, the unit of the block counts.
    pub fragment_size: u64,
    /// Total blocks.
    pub blocks: u64,
    /// Free blocks.
    pub free_blocks: u64,
    /// Free blocks available to unprivileged users.
    pub available_blocks: u64,
    /// Total inodes.
    pub files: u64,
    /// Free inodes.
    pub free_files: u64,
}

/// Returns statistics of the file system that holds a path. On Windows the numbers of files are 0.
///
/// # Errors
///
/// Any OS error of `statfs` or `GetDiskFreeSpace`.
///
/// # Cancel safety
///
/// Dropping the future discards the result and has no other effect.
///
/// # Examples
///
/// ```
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let system = phaseloop::fs::statfs(".").await?;
///     let available = system.available_blocks * system.fragment_size;
///     println!("{available} bytes are left");
///     assert!(system.available_blocks <= system.blocks);
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn statfs(path: impl AsRef<Path>) -> impl Future<Output = io::Result<FileSystem>> {
    let call = on_path("statfs", path, sys::fs::file_system);
    call.here().map(|figures| FileSystem {
        kind: figures.kind,
        block_size: figures.block_size,
        fragment_size: figures.fragment_size,
        blocks: figures.blocks,
        free_blocks: figures.free_blocks,
        available_blocks: figures.available_blocks,
        files: figures.files,
        free_files: figures.free_files,
    })
}

/// Copies bytes from an offset of one file to the position of another in one job, inside the kernel
/// where possible.
///
/// Returns the number of bytes copied: fewer than `length` if `from` ends, or if an error occurs
/// after some. The position of `from` does not move.
///
/// # Errors
///
/// Any OS error before the first byte was copied.
///
/// # Cancel safety
///
/// Dropping the future does not stop a job that has started.
///
/// # Examples
///
/// ```
/// use phaseloop::fs::{self, File};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     let from = File::open("Cargo.toml").await?;
///     let to = File::create(folder.join("part")).await?;
///     assert_eq!(fs::copy_range(&from, 1, &to, 7).await?, 7);
///     assert_eq!(fs::read(folder.join("part")).await?, b"package");
///     fs::remove_dir_all(folder).await?;
///     Ok(())
/// }
/// ```
#[track_caller]
#[inline]
pub fn copy_range(
    from: &File,
    offset: u64,
    to: &File,
    length: u64,
) -> impl Future<Output = io::Result<u64>> {
    let site = Location::caller();
    async move {
        LoopHandle::current_for("fs::copy_range", Some(site));
        from.written().await;
        to.rewind("copy_range").await?;
        let target = to.shared();
        from.on_file("copy_range", move |from| {
            sys::fs::copy_range(from, offset, target.file(), length)
        })
        .await
    }
}
