//! Options of the functions on files, in the shape of Node's objects.

use super::flags::Flags;
use crate::node::abort::AbortSignal;
use crate::node::delay::Delay;

/// How a file is read. JavaScript: `{ flag: 'r', signal }`.
#[derive(Clone, Debug)]
pub struct ReadFileOptions {
    /// How it is opened; `"r"` by default.
    pub flag: Flags,
    /// Stops the reading, between two of its jobs, with an `AbortError`.
    pub signal: Option<AbortSignal>,
}

impl Default for ReadFileOptions {
    fn default() -> Self {
        Self {
            flag: Flags::from("r"),
            signal: None,
        }
    }
}

/// How a file is written. JavaScript: `{ flag: 'w', mode: 0o666, flush: false, signal }`.
///
/// # Examples
///
/// ```
/// use phaseloop::node::fs::WriteFileOptions;
///
/// let once = WriteFileOptions { flag: "wx".into(), ..Default::default() };
/// assert_eq!(once.mode, 0o666);
/// ```
#[derive(Clone, Debug)]
pub struct WriteFileOptions {
    /// How it is opened; `"w"` by default, `"a"` for
    /// [`append_file_with`](super::append_file_with).
    pub flag: Flags,
    /// The permissions of a file that is made, without those that the process's mask takes away.
    pub mode: u32,
    /// Whether it waits until the disk has everything.
    pub flush: bool,
    /// Stops the writing, between two of its jobs, with an `AbortError`.
    pub signal: Option<AbortSignal>,
}

impl WriteFileOptions {
    /// What [`append_file`](super::append_file) uses: the flag is `"a"`.
    #[must_use]
    pub fn append() -> Self {
        Self {
            flag: Flags::from("a"),
            ..Self::default()
        }
    }
}

impl Default for WriteFileOptions {
    fn default() -> Self {
        Self {
            flag: Flags::from("w"),
            mode: 0o666,
            flush: false,
            signal: None,
        }
    }
}

/// How a file is read as a stream, and which part of it. JavaScript: `{ flags: 'r', mode: 0o666, start: 0, end: Infinity,
/// highWaterMark: 65536 }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadStreamOptions {
    /// How it is opened; `"r"` by default.
    pub flags: Flags,
    /// The permissions of a file that is made, without those that the process's mask takes away.
    pub mode: u32,
    /// The first byte. What cannot seek, such as a pipe, is read from 0.
    pub start: u64,
    /// The last byte, which is read as well; `u64::MAX` for all there is.
    pub end: u64,
    /// How many bytes are read at once, and kept.
    pub high_water_mark: usize,
}

impl Default for ReadStreamOptions {
    /// All of the file, 64 KiB at once.
    fn default() -> Self {
        Self {
            flags: Flags::from("r"),
            mode: 0o666,
            start: 0,
            end: u64::MAX,
            high_water_mark: 64 * 1024,
        }
    }
}

/// How a file is written as a stream, and where. JavaScript: `{ flags: 'w', mode: 0o666, start: 0, highWaterMark: 16384, flush:
/// false }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteStreamOptions {
    /// How it is opened; `"w"` by default. `"r+"` keeps what the file holds.
    pub flags: Flags,
    /// The permissions of a file that is made, without those that the process's mask takes away.
    pub mode: u32,
    /// Where the first byte goes. With `"a"`, all bytes go to the end.
    pub start: u64,
    /// How many bytes may wait before the stream is full.
    pub high_water_mark: usize,
    /// Whether the disk has everything before the file is closed.
    pub flush: bool,
}

impl Default for WriteStreamOptions {
    /// A file that is made, or emptied; 16 KiB may wait.
    fn default() -> Self {
        Self {
            flags: Flags::from("w"),
            mode: 0o666,
            start: 0,
            high_water_mark: 16 * 1024,
            flush: false,
        }
    }
}

/// How a directory is made. JavaScript: `{ recursive: true, mode: 0o777 }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MkdirOptions {
    /// Whether the directories above it are made as well; one that exists is no error then.
    pub recursive: bool,
    /// The permissions, without those that the process's mask takes away.
    pub mode: u32,
}

impl Default for MkdirOptions {
    fn default() -> Self {
        Self {
            recursive: false,
            mode: 0o777,
        }
    }
}

/// How something is removed. JavaScript: `{ recursive: true, force: true, maxRetries: 0, retryDelay: 100 }`.
#[derive(Clone, Copy, Debug)]
pub struct RmOptions {
    /// Whether a directory is removed, with everything in it.
    pub recursive: bool,
    /// Whether it is no error that there is nothing.
    pub force: bool,
    /// How often it is tried again when something is busy. Used with `recursive` only.
    pub max_retries: u32,
    /// How long the first pause is; each one after it is longer by as much.
    pub retry_delay: Delay,
}

impl Default for RmOptions {
    fn default() -> Self {
        Self {
            recursive: false,
            force: false,
            max_retries: 0,
            retry_delay: Delay::from(100),
        }
    }
}

/// How a directory is read. JavaScript: `{ withFileTypes: true, recursive: true }`; the types always come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaddirOptions {
    /// Whether the directories in it are read as well, level by level.
    pub recursive: bool,
}
