//! Directories: creation, reading, removal.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::FileType;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures::Stream;

use super::options::{MkdirOptions, ReaddirOptions, RmOptions};
use super::promise_of;
use crate::callback_futures::in_callbacks;
use crate::error::Error;
use crate::promise::Promise;
use phaseloop::extension::About;
use phaseloop::extension::{errno_name, files};
use phaseloop::fs;
use phaseloop::time;
use phaseloop::{OsError, os_error};

/// An entry of a directory: a name, its directory, and its type. JavaScript: `fs.Dirent`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, fs, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let options = fs::ReaddirOptions { recursive: false };
///         for entry in fs::promises::readdir_with("src", options).await.unwrap() {
///             println!("{} is a directory: {}", entry.path().display(), entry.is_directory());
///         }
///     })
/// }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Dirent {
    name: OsString,
    parent: PathBuf,
    file_type: FileType,
}

impl Dirent {
    fn new(parent: &Path, entry: &fs::DirEntry) -> Self {
        Self {
            name: entry.file_name().to_owned(),
            parent: parent.to_owned(),
            file_type: entry.file_type(),
        }
    }

    /// Returns the name of the entry, without its directory. JavaScript: `dirent.name`.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Returns the directory of the entry, as the caller has named it. JavaScript:
    /// `dirent.parentPath`.
    #[must_use]
    pub fn parent_path(&self) -> &Path {
        &self.parent
    }

    /// Returns the directory joined with the name.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    /// Returns the type of the entry, for types without a method below.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        self.file_type
    }

    /// Returns whether the entry is a regular file. JavaScript: `dirent.isFile()`.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.file_type.is_file()
    }

    /// Returns whether the entry is a directory. JavaScript: `dirent.isDirectory()`.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.file_type.is_dir()
    }

    /// Returns whether the entry is a symbolic link. JavaScript: `dirent.isSymbolicLink()`.
    #[must_use]
    pub fn is_symbolic_link(&self) -> bool {
        self.file_type.is_symlink()
    }
}

impl fmt::Debug for Dirent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dirent").field(&self.path()).finish()
    }
}

/// Reads a directory and, with `recursive`, its subdirectories: level by level, as Node's callback
/// form does.
pub(super) async fn read(path: PathBuf, options: ReaddirOptions) -> io::Result<Vec<Dirent>> {
    let mut found = Vec::new();
    let mut left = VecDeque::from([path]);
    while let Some(path) = left.pop_front() {
        for entry in fs::scan_dir(&path).await? {
            let entry = Dirent::new(&path, &entry);
            if options.recursive && entry.is_directory() {
                left.push_back(entry.path());
            }
            found.push(entry);
        }
    }
    Ok(found)
}

/// Creates a directory. With `recursive`, returns the topmost directory that was created.
pub(super) async fn make(path: PathBuf, options: MkdirOptions) -> io::Result<Option<PathBuf>> {
    files::on_path("create_dir", &path, move |path| {
        if options.recursive {
            make_all(path, options.mode)
        } else {
            files::create_dir(path, options.mode).map(|()| None)
        }
    })
    .await
}

fn make_all(path: &Path, mode: u32) -> io::Result<Option<PathBuf>> {
    let mut missing = Vec::new();
    let mut current = path;
    // Goes up to the first directory that exists or can be created.
    let first = loop {
        match make_one(current, mode) {
            Ok(is_new) => break is_new.then_some(current),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let Some(parent) = current.parent().filter(|parent| *parent != Path::new(""))
                else {
                    return Err(error);
                };
                missing.push(current);
                current = parent;
            }
            Err(error) => return Err(error),
        }
    };
    // `components` removes `.` and repeated separators that the caller may have written.
    let topmost = first.or(missing.last().copied());
    let topmost = topmost.map(|path| path.components().collect());
    for path in missing.into_iter().rev() {
        make_one(path, mode)?;
    }
    Ok(topmost)
}

/// Creates one directory. Returns `false` if it exists.
fn make_one(path: &Path, mode: u32) -> io::Result<bool> {
    match files::create_dir(path, mode) {
        Ok(()) => Ok(true),
        // Some platforms report a missing permission before they report that the directory exists.
        Err(error) if error.kind() != io::ErrorKind::NotFound && path.is_dir() => {
            drop(error);
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Removes a file, or a directory with its contents.
pub(super) async fn remove(path: PathBuf, options: RmOptions) -> Result<(), Error> {
    let metadata = match fs::symlink_metadata(&path).await {
        Err(error) if options.force && error.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata?,
    };
    if metadata.is_dir() && !options.recursive {
        return Err(Error::of_rm_of_directory(path));
    }
    let mut retries = 0;
    loop {
        let removed = if metadata.is_dir() {
            fs::remove_dir_all(&path).await
        } else {
            fs::remove_file(&path).await
        };
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if is_busy(&error) && options.recursive && retries < options.max_retries => {
                retries += 1;
                let pause = u64::from(options.retry_delay.as_millis()) * u64::from(retries);
                time::sleep(std::time::Duration::from_millis(pause)).await;
            }
            removed => return Ok(removed?),
        }
    }
}

fn is_busy(error: &io::Error) -> bool {
    let codes = ["EBUSY", "EMFILE", "ENFILE", "ENOTEMPTY", "EPERM"];
    let code = os_error(error).and_then(errno_name);
    code.is_some_and(|code| codes.contains(&code))
}

/// Opens a directory, to be read entry by entry.
pub(super) async fn open(path: PathBuf) -> io::Result<Dir> {
    let entries = fs::read_dir(&path).await.map_err(|error| {
        let number = os_error(&error).map(io::Error::from_raw_os_error);
        OsError::wrap(number.unwrap_or(error), "opendir", path.clone())
    })?;
    Ok(Dir {
        inner: Rc::new(Inner {
            path,
            entries: RefCell::new(State::Open(Box::new(entries))),
        }),
    })
}

/// An open directory; returned by [`opendir`](super::opendir). A clone is a handle to the same
/// directory. JavaScript: `fs.Dir`.
///
/// It is a [stream](Stream) of entries, in the order of the OS. JavaScript: `for await (const
/// dirent of await fs.promises.opendir('.'))`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, fs, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let dir = fs::promises::opendir("src").await.unwrap();
///         while let Some(entry) = dir.read().await.unwrap() {
///             println!("{}", entry.name().to_string_lossy());
///         }
///         dir.close().await.unwrap();
///     })
/// }
/// ```
#[derive(Clone)]
pub struct Dir {
    inner: Rc<Inner>,
}

struct Inner {
    path: PathBuf,
    entries: RefCell<State>,
}

enum State {
    Open(Box<fs::ReadDir>),
    /// A read has taken the value.
    Busy,
    Closed,
}

impl Dir {
    /// Returns the path with which the directory was opened. JavaScript: `dir.path`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Returns the next entry, or `None` at the end. JavaScript: `await dir.read()`.
    ///
    /// # Errors
    ///
    /// The promise is rejected with `ERR_DIR_CLOSED` after the close, with
    /// `ERR_DIR_CONCURRENT_OPERATION` while another read waits, and with any OS error of `readdir`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[must_use]
    pub fn read(&self) -> Promise<Option<Dirent>> {
        promise_of(|callback| self.read_with(callback))
    }

    /// Calls `callback` with the next entry, in the poll phase. JavaScript: `dir.read((err, dirent)
    /// => ..)`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn read_with(&self, callback: impl FnOnce(Result<Option<Dirent>, Error>) + 'static) {
        let dir = self.clone();
        in_callbacks(async move { callback(dir.next_entry().await) });
    }

    async fn next_entry(&self) -> Result<Option<Dirent>, Error> {
        let mut entries = self.take()?;
        let next = entries.next_entry().await;
        let mut state = self.inner.entries.borrow_mut();
        if matches!(*state, State::Busy) {
            *state = State::Open(entries);
        }
        drop(state);
        let entry = next?;
        Ok(entry.map(|entry| Dirent::new(&self.inner.path, &entry)))
    }

    fn take(&self) -> Result<Box<fs::ReadDir>, Error> {
        let mut state = self.inner.entries.borrow_mut();
        match std::mem::replace(&mut *state, State::Busy) {
            State::Open(entries) => Ok(entries),
            State::Busy => Err(Error::with_code(
                "ERR_DIR_CONCURRENT_OPERATION",
                "Cannot do synchronous work on directory handle with concurrent asynchronous operations",
            )),
            State::Closed => {
                *state = State::Closed;
                Err(closed())
            }
        }
    }

    /// Closes the directory. JavaScript: `await dir.close()`.
    ///
    /// # Errors
    ///
    /// The promise is rejected with `ERR_DIR_CLOSED` if the directory is already closed.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[must_use]
    pub fn close(&self) -> Promise<()> {
        promise_of(|callback| self.close_with(callback))
    }

    /// Closes the directory, and calls `callback` in the poll phase. JavaScript: `dir.close((err)
    /// => ..)`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn close_with(&self, callback: impl FnOnce(Result<(), Error>) + 'static) {
        let state = self.inner.entries.replace(State::Closed);
        in_callbacks(async move {
            callback(match state {
                State::Closed => Err(closed()),
                open => {
                    let closed = files::run_on("closedir", About::default, || Ok(())).await;
                    drop(open);
                    closed.map_err(Error::from)
                }
            });
        });
    }
}

fn closed() -> Error {
    Error::with_code("ERR_DIR_CLOSED", "Directory handle was closed")
}

/// The entries of the directory. The directory is closed when the stream ends.
///
/// # Cancel safety
///
/// Dropping a pending wait for the next entry loses no entry.
impl Stream for Dir {
    type Item = Result<Dirent, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut state = self.inner.entries.borrow_mut();
        let State::Open(entries) = &mut *state else {
            return Poll::Ready(match *state {
                State::Closed => None,
                _ => Some(Err(closed())),
            });
        };
        let next = Pin::new(&mut **entries).poll_next(cx);
        if let Poll::Ready(None) = next {
            *state = State::Closed;
        }
        drop(state);
        next.map(|entry| {
            let path = &self.inner.path;
            entry.map(|entry| Ok(Dirent::new(path, &entry?)))
        })
    }
}

impl fmt::Debug for Dir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dir").field(&self.inner.path).finish()
    }
}
