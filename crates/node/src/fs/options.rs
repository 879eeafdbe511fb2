//! Options of the functions on files, in the shape of Node's objects.

use super::flags::Flags;
use crate::abort::AbortSignal;
use crate::delay::Delay;
use crate::stream::HIGH_WATER_MARK;

/// Options of [`read_file_with`](super::read_file_with). JavaScript: `{ flag: 'r', signal }`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{AbortSignal, Exit, fs, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let signal = Some(AbortSignal::timeout(5000));
///         let options = fs::ReadFileOptions { signal, ..fs::ReadFileOptions::default() };
///         let bytes = fs::promises::read_file_with("Cargo.toml", options).await.unwrap();
///         assert!(!bytes.is_empty());
///     })
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ReadFileOptions {
    /// The open flags; the default is `"r"`.
    pub flag: Flags,
    /// Aborts the operation, between two of its jobs, with an `AbortError`.
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

/// Options of [`write_file_with`](super::write_file_with). JavaScript: `{ flag: 'w', mode: 0o666,
/// flush: false, signal }`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::fs::WriteFileOptions;
///
/// fn main() {
///     let once = WriteFileOptions { flag: "wx".into(), ..Default::default() };
///     assert_eq!(once.mode, 0o666);
/// }
/// ```
#[derive(Clone, Debug)]
pub struct WriteFileOptions {
    /// The open flags; the default is `"w"`, and `"a"` for
    /// [`append_file_with`](super::append_file_with).
    pub flag: Flags,
    /// The permissions of a created file, before the umask is applied.
    pub mode: u32,
    /// Whether to wait until the contents are on disk.
    pub flush: bool,
    /// Aborts the operation, between two of its jobs, with an `AbortError`.
    pub signal: Option<AbortSignal>,
}

impl WriteFileOptions {
    /// Returns the options of [`append_file`](super::append_file): the flag is `"a"`.
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

/// Options of [`create_read_stream_with`](super::create_read_stream_with). JavaScript: `{ flags:
/// 'r', mode: 0o666, start: 0, end: Infinity, highWaterMark: 65536, autoClose: true, signal }`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::fs::ReadStreamOptions;
///
/// fn main() {
///     let first_kilobyte = ReadStreamOptions { end: 1023, ..ReadStreamOptions::default() };
///     assert_eq!(first_kilobyte.high_water_mark, 64 * 1024);
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ReadStreamOptions {
    /// The open flags; the default is `"r"`.
    pub flags: Flags,
    /// The permissions of a created file, before the umask is applied.
    pub mode: u32,
    /// The offset of the first byte. A file that cannot seek, such as a pipe, must be read from 0.
    pub start: u64,
    /// The offset of the last byte, inclusive; `u64::MAX` reads to EOF.
    pub end: u64,
    /// The size of a read, and of the buffer.
    pub high_water_mark: usize,
    /// Whether the stream is destroyed, and the file closed, at EOF and on an error. Otherwise a
    /// call of `destroy` does it.
    pub auto_close: bool,
    /// Destroys the stream with an `AbortError` when it is aborted.
    pub signal: Option<AbortSignal>,
}

impl Default for ReadStreamOptions {
    /// Reads the whole file, 64 KiB at a time.
    fn default() -> Self {
        Self {
            flags: Flags::from("r"),
            mode: 0o666,
            start: 0,
            end: u64::MAX,
            high_water_mark: 64 * 1024,
            auto_close: true,
            signal: None,
        }
    }
}

/// Options of [`create_write_stream_with`](super::create_write_stream_with). JavaScript: `{ flags:
/// 'w', mode: 0o666, start: 0, highWaterMark: 65536, flush: false, autoClose: true, signal }`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::fs::WriteStreamOptions;
///
/// fn main() {
///     let append = WriteStreamOptions { flags: "a".into(), ..WriteStreamOptions::default() };
///     assert_eq!(append.start, 0);
/// }
/// ```
#[derive(Clone, Debug)]
pub struct WriteStreamOptions {
    /// The open flags; the default is `"w"`. `"r+"` keeps the contents of the file.
    pub flags: Flags,
    /// The permissions of a created file, before the umask is applied.
    pub mode: u32,
    /// The offset of the first byte. With `"a"`, all bytes are appended.
    pub start: u64,
    /// How many bytes may wait before the stream is full.
    pub high_water_mark: usize,
    /// Whether the contents are on disk before the file is closed.
    pub flush: bool,
    /// Whether the stream is destroyed, and the file closed, after the end and on an error.
    /// Otherwise a call of `destroy` does it.
    pub auto_close: bool,
    /// Destroys the stream with an `AbortError` when it is aborted.
    pub signal: Option<AbortSignal>,
}

impl Default for WriteStreamOptions {
    /// Creates or truncates the file; 64 KiB may wait, 16 KiB on Windows.
    fn default() -> Self {
        Self {
            flags: Flags::from("w"),
            mode: 0o666,
            start: 0,
            high_water_mark: HIGH_WATER_MARK,
            flush: false,
            auto_close: true,
            signal: None,
        }
    }
}

/// Options of [`mkdir_with`](super::mkdir_with). JavaScript: `{ recursive: true, mode: 0o777 }`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, fs, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let path = std::env::temp_dir().join("phaseloop-mkdir/a/b");
///         let options = fs::MkdirOptions { recursive: true, ..fs::MkdirOptions::default() };
///         fs::promises::mkdir_with(&path, options).await.unwrap();
///     })
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MkdirOptions {
    /// Whether missing parents are created too; an existing directory is then no error.
    pub recursive: bool,
    /// The permissions, before the umask is applied.
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

/// Options of [`rm`](super::rm()). JavaScript: `{ recursive: true, force: true, maxRetries: 0,
/// retryDelay: 100 }`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, fs, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let path = std::env::temp_dir().join("phaseloop-missing");
///         let options = fs::RmOptions { force: true, ..fs::RmOptions::default() };
///         fs::promises::rm(&path, options).await.unwrap();
///     })
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RmOptions {
    /// Whether a directory is removed with its contents.
    pub recursive: bool,
    /// Whether a missing file is no error.
    pub force: bool,
    /// How often to try again if a file is busy. Used with `recursive` only.
    pub max_retries: u32,
    /// The first pause between two tries; each later pause is longer by this value.
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

/// Options of [`readdir_with`](super::readdir_with). JavaScript: `{ withFileTypes: true, recursive:
/// true }`; entries always have their types.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, fs, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let options = fs::ReaddirOptions { recursive: true };
///         let entries = fs::promises::readdir_with("src", options).await.unwrap();
///         assert!(entries.iter().any(|entry| entry.name() == "lib.rs"));
///     })
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaddirOptions {
    /// Whether subdirectories are read too, level by level.
    pub recursive: bool,
}
