//! What the system knows of a file.

use std::fmt;
use std::fs::Metadata;
use std::time::{SystemTime, UNIX_EPOCH};

/// What the system knows of a file: its type, size, owner and times. JavaScript: `fs.Stats`.
///
/// The values of a file that does not exist, which [`watch_file`](super::watch_file()) reports, are
/// all zero. On Windows, what the system has no number for is zero too: `dev`, `ino`, `uid`,
/// `gid`, `rdev`, `blksize`, `blocks`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, fs, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let stats = fs::promises::stat("Cargo.toml").await.unwrap();
///         assert!(stats.is_file() && stats.size() > 0);
///         assert!(stats.mtime_ms() > 0.0);
///     })
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    pub(super) numbers: Numbers,
    size: u64,
    atime: SystemTime,
    mtime: SystemTime,
    ctime: SystemTime,
    birthtime: SystemTime,
}

/// What each platform has of its own.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) dev: u64,
    pub(super) ino: u64,
    pub(super) mode: u32,
    pub(super) nlink: u64,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) rdev: u64,
    pub(super) blksize: u64,
    pub(super) blocks: u64,
}

/// The bits of a mode that are the type.
const TYPE: u32 = 0o170_000;

impl Stats {
    /// The stats of a file that does not exist.
    pub(super) const ZERO: Self = Self {
        numbers: Numbers {
            dev: 0,
            ino: 0,
            mode: 0,
            nlink: 0,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 0,
            blocks: 0,
        },
        size: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        birthtime: UNIX_EPOCH,
    };

    fn is(&self, kind: u32) -> bool {
        self.mode() & TYPE == kind
    }

    /// Returns whether it is a regular file. JavaScript: `stats.isFile()`.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.is(0o100_000)
    }

    /// Returns whether it is a directory. JavaScript: `stats.isDirectory()`.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.is(0o040_000)
    }

    /// Returns whether it is a symbolic link, which [`lstat`](super::lstat) reports. JavaScript:
    /// `stats.isSymbolicLink()`.
    #[must_use]
    pub fn is_symbolic_link(&self) -> bool {
        self.is(0o120_000)
    }

    /// Returns whether it is a named pipe. JavaScript: `stats.isFIFO()`.
    #[must_use]
    pub fn is_fifo(&self) -> bool {
        self.is(0o010_000)
    }

    /// Returns whether it is a local socket. JavaScript: `stats.isSocket()`.
    #[must_use]
    pub fn is_socket(&self) -> bool {
        self.is(0o140_000)
    }

    /// Returns whether it is a block device. JavaScript: `stats.isBlockDevice()`.
    #[must_use]
    pub fn is_block_device(&self) -> bool {
        self.is(0o060_000)
    }

    /// Returns whether it is a character device. JavaScript: `stats.isCharacterDevice()`.
    #[must_use]
    pub fn is_character_device(&self) -> bool {
        self.is(0o020_000)
    }

    /// Returns the number of the device that holds the file. JavaScript: `stats.dev`.
    #[must_use]
    pub fn dev(&self) -> u64 {
        self.numbers.dev
    }

    /// Returns the number of the inode. JavaScript: `stats.ino`.
    #[must_use]
    pub fn ino(&self) -> u64 {
        self.numbers.ino
    }

    /// Returns the type and the permissions. JavaScript: `stats.mode`.
    #[must_use]
    pub fn mode(&self) -> u32 {
        self.numbers.mode
    }

    /// Returns the number of hard links. JavaScript: `stats.nlink`.
    #[must_use]
    pub fn nlink(&self) -> u64 {
        self.numbers.nlink
    }

    /// Returns the id of the owner. JavaScript: `stats.uid`.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.numbers.uid
    }

    /// Returns the id of the group. JavaScript: `stats.gid`.
    #[must_use]
    pub fn gid(&self) -> u32 {
        self.numbers.gid
    }

    /// Returns the number of the device that a special file stands for. JavaScript: `stats.rdev`.
    #[must_use]
    pub fn rdev(&self) -> u64 {
        self.numbers.rdev
    }

    /// Returns the size in bytes. JavaScript: `stats.size`.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the block size for I/O. JavaScript: `stats.blksize`.
    #[must_use]
    pub fn blksize(&self) -> u64 {
        self.numbers.blksize
    }

    /// Returns the number of blocks of 512 bytes that the file occupies. JavaScript:
    /// `stats.blocks`.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.numbers.blocks
    }

    /// Returns the time of the last access. JavaScript: `stats.atime`.
    #[must_use]
    pub fn atime(&self) -> SystemTime {
        self.atime
    }

    /// Returns the time of the last change of the contents. JavaScript: `stats.mtime`.
    #[must_use]
    pub fn mtime(&self) -> SystemTime {
        self.mtime
    }

    /// Returns the time of the last change of contents or attributes. JavaScript: `stats.ctime`.
    #[must_use]
    pub fn ctime(&self) -> SystemTime {
        self.ctime
    }

    /// Returns the time of the creation, or [`ctime`](Self::ctime) where the file system does not
    /// keep it. JavaScript: `stats.birthtime`.
    #[must_use]
    pub fn birthtime(&self) -> SystemTime {
        self.birthtime
    }

    /// Returns [`atime`](Self::atime) in milliseconds since 1970. JavaScript: `stats.atimeMs`.
    #[must_use]
    pub fn atime_ms(&self) -> f64 {
        milliseconds(self.atime)
    }

    /// Returns [`mtime`](Self::mtime) in milliseconds since 1970. JavaScript: `stats.mtimeMs`.
    #[must_use]
    pub fn mtime_ms(&self) -> f64 {
        milliseconds(self.mtime)
    }

    /// Returns [`ctime`](Self::ctime) in milliseconds since 1970. JavaScript: `stats.ctimeMs`.
    #[must_use]
    pub fn ctime_ms(&self) -> f64 {
        milliseconds(self.ctime)
    }

    /// Returns [`birthtime`](Self::birthtime) in milliseconds since 1970. JavaScript:
    /// `stats.birthtimeMs`.
    #[must_use]
    pub fn birthtime_ms(&self) -> f64 {
        milliseconds(self.birthtime)
    }
}

fn milliseconds(time: SystemTime) -> f64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_secs_f64() * 1e3,
        Err(before) => before.duration().as_secs_f64() * -1e3,
    }
}

impl From<&Metadata> for Stats {
    fn from(metadata: &Metadata) -> Self {
        let (numbers, ctime) = super::platform::numbers(metadata);
        let mtime = metadata.modified().unwrap_or(UNIX_EPOCH);
        let ctime = ctime.unwrap_or(mtime);
        Self {
            numbers,
            size: metadata.len(),
            atime: metadata.accessed().unwrap_or(UNIX_EPOCH),
            mtime,
            ctime,
            birthtime: metadata.created().unwrap_or(ctime),
        }
    }
}

impl From<Metadata> for Stats {
    fn from(metadata: Metadata) -> Self {
        Self::from(&metadata)
    }
}

impl fmt::Debug for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stats")
            .field("mode", &format_args!("{:o}", self.mode()))
            .field("size", &self.size)
            .field("mtime", &self.mtime)
            .finish_non_exhaustive()
    }
}
