//! What only Unix has.

use std::io;
use std::ops::BitOr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::{self, OpenOptionsExt};
use std::path::Path;

use super::file::File;
use super::job::{on_path, on_paths};
use super::open_options::OpenOptions;
use crate::sys;

/// What may be done to a file; combined with `|`. For [`access`]; Unix only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access(u8);

impl Access {
    /// It exists.
    pub const EXISTS: Self = Self(0);
    /// It may be read.
    pub const READ: Self = Self(1);
    /// It may be written to.
    pub const WRITE: Self = Self(2);
    /// It may be executed; of a directory, entered.
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

/// Asks whether this process may do something to a file. Unix only.
///
/// The answer may be wrong by the time it is used: to open a file, open it and look at the error.
///
/// # Errors
///
/// [`PermissionDenied`](io::ErrorKind::PermissionDenied) if it may not, [`NotFound`](io::ErrorKind::NotFound) and others
/// of the system.
///
/// # Examples
///
/// ```
/// use phaseloop::fs::{self, Access};
///
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     fs::access("/", Access::READ | Access::EXECUTE).await?;
///     assert!(fs::access("/no/such/file", Access::EXISTS).await.is_err());
///     Ok(())
/// })
/// # }
/// ```
pub async fn access(path: impl AsRef<Path>, access: Access) -> io::Result<()> {
    on_path("access", path.as_ref(), move |path| {
        let asked = [Access::READ, Access::WRITE, Access::EXECUTE];
        sys::fs::access(path, asked.map(|one| access.has(one)))
    })
    .await
}

/// Makes a symbolic link that says `original`. Unix only.
///
/// # Errors
///
/// Those of the system.
pub async fn symlink(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    on_paths(
        "symlink",
        original.as_ref(),
        link.as_ref(),
        |original, link| fs::symlink(original, link),
    )
    .await
}

/// Sets the owner and the group of a file; `None` leaves them. Symbolic links are followed. Unix only.
///
/// # Errors
///
/// Those of the system.
pub async fn chown(
    path: impl AsRef<Path>,
    user: Option<u32>,
    group: Option<u32>,
) -> io::Result<()> {
    on_path("chown", path.as_ref(), move |path| {
        fs::chown(path, user, group)
    })
    .await
}

/// The same for a symbolic link itself. Unix only.
///
/// # Errors
///
/// Those of the system.
pub async fn lchown(
    path: impl AsRef<Path>,
    user: Option<u32>,
    group: Option<u32>,
) -> io::Result<()> {
    on_path("lchown", path.as_ref(), move |path| {
        fs::lchown(path, user, group)
    })
    .await
}

/// Figures of a file system, from [`statfs`]. Unix only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileSystem {
    /// Which one it is: the system's number for it. 0 where it has none.
    pub kind: u64,
    /// The size in which it likes to be read and written.
    pub block_size: u64,
    /// The size in which the blocks below are counted.
    pub fragment_size: u64,
    /// How large it is, in fragments.
    pub blocks: u64,
    /// How much of it is free.
    pub free_blocks: u64,
    /// How much of it is free for everybody.
    pub available_blocks: u64,
    /// How many files it can hold.
    pub files: u64,
    /// How many more.
    pub free_files: u64,
}

/// Figures of the file system that a file is on. Unix only.
///
/// # Errors
///
/// Those of the system.
///
/// # Examples
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let system = phaseloop::fs::statfs(".").await?;
///     let available = system.available_blocks * system.fragment_size;
///     println!("{available} bytes are left");
///     assert!(system.available_blocks <= system.blocks);
///     Ok(())
/// })
/// # }
/// ```
pub async fn statfs(path: impl AsRef<Path>) -> io::Result<FileSystem> {
    let figures = on_path("statfs", path.as_ref(), sys::fs::file_system).await?;
    Ok(FileSystem {
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

/// Copies bytes from an offset of one file to the position of another, in the kernel where it can: one job. Unix only.
///
/// Says how many: less than `length` at the end of the first file, or when an error came after some bytes. The position
/// of the first file stays.
///
/// # Errors
///
/// Those of the system, before anything was copied.
///
/// # Cancel safety
///
/// Dropped, it goes on if it has begun.
pub async fn copy_range(from: &File, offset: u64, to: &File, length: u64) -> io::Result<u64> {
    from.written().await;
    to.rewind("copy_range").await?;
    let target = to.shared();
    from.on_file("copy_range", move |from| {
        sys::fs::copy_range(from, offset, target.file(), length)
    })
    .await
}

impl OpenOptions {
    /// The permissions of a file that is made, less those that the process masks; 0o666 unless told. Unix only.
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        self.options.mode(mode);
        self
    }

    /// Flags of the system's `open`, beside those of the options. Unix only.
    pub fn custom_flags(&mut self, flags: i32) -> &mut Self {
        self.options.custom_flags(flags);
        self
    }
}

impl File {
    /// Sets its owner and its group; `None` leaves them. Unix only.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub async fn chown(&self, user: Option<u32>, group: Option<u32>) -> io::Result<()> {
        self.on_file("chown", move |file| fs::fchown(file, user, group))
            .await
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.get_ref().as_fd()
    }
}

impl AsRawFd for File {
    fn as_raw_fd(&self) -> RawFd {
        self.get_ref().as_raw_fd()
    }
}
