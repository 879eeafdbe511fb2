//! Windows: `ReadDirectoryChangesW`, an overlapped operation for each watched directory. A file is
//! watched by its directory and its name.
//!
//! The OS keeps the changes that come between two operations, so none is lost.
#![allow(unsafe_code, reason = "calls of the OS")]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::windows::ffi::OsStringExt;
use std::os::windows::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use windows_sys::Win32::Foundation::ERROR_NOTIFY_ENUM_DIR;
use windows_sys::Win32::Storage::FileSystem::{
    FILE_ACTION_ADDED, FILE_ACTION_MODIFIED, FILE_ACTION_REMOVED, FILE_ACTION_RENAMED_NEW_NAME,
    FILE_ACTION_RENAMED_OLD_NAME, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OVERLAPPED,
    FILE_LIST_DIRECTORY, FILE_NOTIFY_CHANGE_ATTRIBUTES, FILE_NOTIFY_CHANGE_CREATION,
    FILE_NOTIFY_CHANGE_DIR_NAME, FILE_NOTIFY_CHANGE_FILE_NAME, FILE_NOTIFY_CHANGE_LAST_WRITE,
    FILE_NOTIFY_CHANGE_SECURITY, FILE_NOTIFY_CHANGE_SIZE, FILE_SHARE_DELETE, FILE_SHARE_READ,
    FILE_SHARE_WRITE, ReadDirectoryChangesW,
};

use crate::sys::overlapped::{Operation, Progress};
use crate::sys::poller::{Interest, Polled, Poller, RawSource, Registration, Waitables};
use crate::sys::watch::{Notice, WatchId, WatchKind};

/// What libuv asks for, but for accesses, which are no changes.
const ASKED: u32 = FILE_NOTIFY_CHANGE_FILE_NAME
    | FILE_NOTIFY_CHANGE_DIR_NAME
    | FILE_NOTIFY_CHANGE_ATTRIBUTES
    | FILE_NOTIFY_CHANGE_SIZE
    | FILE_NOTIFY_CHANGE_LAST_WRITE
    | FILE_NOTIFY_CHANGE_CREATION
    | FILE_NOTIFY_CHANGE_SECURITY;

/// The room for changes. The OS keeps as many between two operations.
const ROOM: usize = 16 * 1024;

/// The most watches since the first, which is more than a process has handles.
const MOST: WatchId = 1 << 28;

/// The watched directories on a poller.
pub(crate) struct Notices {
    poller: Rc<Poller>,
    /// The key of the first watch; the others have those below.
    key: usize,
    watched: RefCell<BTreeMap<WatchId, Registration<Directory>>>,
    next: Cell<WatchId>,
}

impl Notices {
    #[expect(
        clippy::unnecessary_wraps,
        reason = "the signature is shared with the platforms that open a descriptor"
    )]
    pub(crate) fn new(poller: Rc<Poller>, key: usize) -> io::Result<Self> {
        Ok(Self {
            poller,
            key,
            watched: RefCell::default(),
            next: Cell::new(0),
        })
    }

    /// Returns whether an event with this key reports changes.
    pub(crate) fn owns(&self, key: usize) -> bool {
        self.key
            .checked_sub(key)
            .is_some_and(|place| place < self.next.get() as usize)
    }

    /// Watches the file at `path`, following symbolic links. A file that is watched already keeps
    /// its number.
    pub(crate) fn add(&self, path: &Path) -> io::Result<WatchId> {
        let target = Target::of(path)?;
        let is_it = |watched: &Registration<Directory>| *watched.get().target.borrow() == target;
        let known = self.watched.borrow();
        if let Some((&id, _)) = known.iter().find(|(_, watched)| is_it(watched)) {
            return Ok(id);
        }
        drop(known);
        let id = self.next.get();
        if id == MOST {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let directory = Directory::open(target)?;
        let key = self.key_of(id);
        let registration = Registration::new(self.poller.clone(), directory, key, Interest::Read)
            .map_err(|(_directory, error)| error)?;
        self.next.set(id + 1);
        registration.rearm(key, true, false)?;
        self.watched.borrow_mut().insert(id, registration);
        Ok(id)
    }

    pub(crate) fn remove(&self, id: WatchId) {
        let removed = self.watched.borrow_mut().remove(&id);
        drop(removed);
    }

    /// Passes pending notifications to `each`, at least `enough` if there are as many. `true`:
    /// there are no more, and the poller will report new ones.
    pub(crate) fn read(&self, enough: usize, mut each: impl FnMut(Notice)) -> io::Result<bool> {
        let mut count = 0;
        for (&id, watched) in &*self.watched.borrow() {
            let directory = watched.get();
            while let Some(changes) = directory.take() {
                for (kind, name) in changes {
                    if let Some(notice) = directory.notice(id, kind, name) {
                        count += 1;
                        each(notice);
                    }
                }
                if count >= enough {
                    return Ok(false);
                }
            }
            if directory.has_ended.get() {
                each(Notice {
                    id: Some(id),
                    kind: None,
                    is_directory: false,
                    name: None,
                });
            } else {
                watched.rearm(self.key_of(id), true, false)?;
            }
        }
        Ok(true)
    }

    fn key_of(&self, id: WatchId) -> usize {
        self.key - id as usize
    }
}

/// What is watched: a directory, or a file in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    directory: PathBuf,
    file: Option<OsString>,
}

impl Target {
    fn of(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        if fs::metadata(&path)?.is_dir() {
            return Ok(Self {
                directory: path,
                file: None,
            });
        }
        match (path.parent(), path.file_name()) {
            (Some(directory), Some(file)) => Ok(Self {
                directory: directory.to_owned(),
                file: Some(file.to_owned()),
            }),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Returns whether a reported name is that of the watched file. The case of letters does not
    /// matter. A short name is looked up.
    fn is_file(&self, name: &OsStr) -> bool {
        let Some(file) = &self.file else {
            return false;
        };
        let lower = |name: &OsStr| name.to_string_lossy().to_lowercase();
        if lower(file) == lower(name) {
            return true;
        }
        let is_short = name.as_encoded_bytes().contains(&b'~');
        let long = is_short.then(|| fs::canonicalize(self.directory.join(name)).ok());
        long.flatten().is_some_and(|long| {
            long.file_name()
                .is_some_and(|long| lower(long) == lower(file))
        })
    }
}

/// A watched directory.
struct Directory {
    target: RefCell<Target>,
    /// `None` while it is dropped.
    operation: Option<Operation>,
    /// The number of the rename whose second name follows.
    rename: Cell<u32>,
    /// Whether nothing will be reported any more.
    has_ended: Cell<bool>,
    /// Whether the watched file has got its next name.
    is_renamed: Cell<bool>,
}

impl Directory {
    fn open(target: Target) -> io::Result<Self> {
        let file = OpenOptions::new()
            .access_mode(FILE_LIST_DIRECTORY)
            .share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE)
            .custom_flags(FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OVERLAPPED)
            .open(&target.directory)?;
        let directory = Self {
            target: RefCell::new(target),
            operation: Some(Operation::new(Arc::new(file.into()), ROOM)?),
            rename: Cell::new(0),
            has_ended: Cell::new(false),
            is_renamed: Cell::new(false),
        };
        directory.start()?;
        Ok(directory)
    }

    fn operation(&self) -> &Operation {
        self.operation.as_ref().expect("only a drop takes it")
    }

    fn start(&self) -> io::Result<Progress> {
        let read = |file, buffer: *mut u8, length, overlapped| {
            let mut count = 0;
            // SAFETY: the file is an open directory, and the kernel gets the memory of the
            // operation.
            unsafe {
                ReadDirectoryChangesW(
                    file,
                    buffer.cast(),
                    length,
                    0,
                    ASKED,
                    &mut count,
                    overlapped,
                    None,
                )
            }
        };
        // SAFETY: `ReadDirectoryChangesW` uses the pointers for one overlapped operation.
        unsafe { self.operation().start(ROOM, read) }
    }

    /// Takes changes, and asks for the next ones. `None`: there are none yet, or the end has come.
    fn take(&self) -> Option<Vec<(WatchKind, OsString)>> {
        if self.has_ended.get() {
            return None;
        }
        let overflow = || (WatchKind::Overflow, OsString::new());
        let mut changes = match self.operation().progress() {
            Ok(Progress::Pending) => return None,
            // The changes were too many for the memory.
            Ok(Progress::Done(0)) => vec![overflow()],
            Ok(Progress::Done(count)) => {
                let operation = self.operation();
                operation.with_buffer(|changes| self.parse(&changes[..count]))
            }
            Err(error) if is_overflow(&error) => vec![overflow()],
            Err(_gone) => return Some(vec![self.end()]),
        };
        let started = match self.start() {
            // The OS has kept too many changes since the last operation.
            Err(error) if is_overflow(&error) => {
                changes.push(overflow());
                self.start()
            }
            started => started,
        };
        if let Err(_gone) = started {
            changes.push(self.end());
        }
        Some(changes)
    }

    /// Ends the watch, after an error: the directory is gone, or its volume.
    fn end(&self) -> (WatchKind, OsString) {
        self.has_ended.set(true);
        let is_there = fs::metadata(&self.target.borrow().directory).is_ok();
        let kind = match is_there {
            true => WatchKind::Unmounted,
            false => WatchKind::SelfRemoved,
        };
        (kind, OsString::new())
    }

    /// Parses a list of `FILE_NOTIFY_INFORMATION`.
    fn parse(&self, mut bytes: &[u8]) -> Vec<(WatchKind, OsString)> {
        let mut changes = Vec::new();
        while let Some((entry, next)) = Entry::parse(bytes) {
            let kind = match entry.action {
                FILE_ACTION_ADDED => Some(WatchKind::Created),
                FILE_ACTION_REMOVED => Some(WatchKind::Removed),
                FILE_ACTION_MODIFIED => Some(WatchKind::Modified),
                FILE_ACTION_RENAMED_OLD_NAME => {
                    self.rename.set(self.rename.get().wrapping_add(1));
                    Some(WatchKind::MovedFrom(self.rename.get()))
                }
                FILE_ACTION_RENAMED_NEW_NAME => Some(WatchKind::MovedTo(self.rename.get())),
                _ => None,
            };
            changes.extend(kind.map(|kind| (kind, entry.name)));
            bytes = next;
        }
        changes
    }

    /// Returns the notice of a change, if it concerns what is watched.
    fn notice(&self, id: WatchId, kind: WatchKind, name: OsString) -> Option<Notice> {
        let of_all = |kind| Notice {
            id: Some(id),
            kind: Some(kind),
            is_directory: false,
            name: None,
        };
        if name.is_empty() {
            return Some(of_all(kind));
        }
        if self.target.borrow().file.is_some() {
            return self.kind_for_file(kind, &name).map(of_all);
        }
        let is_gone = matches!(kind, WatchKind::Removed | WatchKind::MovedFrom(_));
        let path = self.target.borrow().directory.join(&name);
        let is_directory =
            !is_gone && fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
        Some(Notice {
            is_directory,
            name: Some(name),
            ..of_all(kind)
        })
    }

    /// Returns what a change in the directory means for the watched file.
    fn kind_for_file(&self, kind: WatchKind, name: &OsStr) -> Option<WatchKind> {
        if let (WatchKind::MovedTo(_), true) = (kind, self.is_renamed.take()) {
            self.target.borrow_mut().file = Some(name.to_owned());
            return None;
        }
        if self.has_ended.get() || !self.target.borrow().is_file(name) {
            return None;
        }
        match kind {
            WatchKind::Modified => Some(kind),
            WatchKind::MovedFrom(_) => {
                self.is_renamed.set(true);
                Some(WatchKind::SelfMoved)
            }
            // Another file has taken the name.
            WatchKind::Removed | WatchKind::MovedTo(_) => {
                self.has_ended.set(true);
                Some(WatchKind::SelfRemoved)
            }
            _ => None,
        }
    }
}

impl Polled for Directory {
    fn raw_source(&self) -> RawSource {
        RawSource::Waitable(Waitables::new(Some(self.operation().event()), None))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Some(operation) = self.operation.take() {
            if operation.is_pending() {
                operation.cancel();
            }
            operation.leave();
        }
    }
}

/// Returns whether an error says that changes were lost.
fn is_overflow(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ERROR_NOTIFY_ENUM_DIR as i32)
}

/// A change, as the kernel reports it.
struct Entry {
    action: u32,
    name: OsString,
}

impl Entry {
    /// Parses the first entry of a list. It also returns the rest of the list.
    fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let number = |place: usize| {
            let bytes = bytes.get(place..place + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?))
        };
        let (next, action, length) = (number(0)?, number(4)?, number(8)?);
        let name = bytes.get(12..12 + length as usize)?;
        let name: Vec<u16> = name
            .chunks_exact(2)
            .map(|unit| u16::from_ne_bytes([unit[0], unit[1]]))
            .collect();
        let name = OsString::from_wide(&name);
        let rest = match next {
            0 => &[],
            next => bytes.get(next as usize..)?,
        };
        Some((Self { action, name }, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::Entry;

    #[test]
    fn a_list_of_changes_is_parsed_entry_by_entry() {
        let entry = |next: u32, action: u32, name: &str| {
            let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_ne_bytes).collect();
            let mut bytes = [next, action, name.len() as u32]
                .iter()
                .flat_map(|number| number.to_ne_bytes())
                .collect::<Vec<_>>();
            bytes.extend(name);
            bytes.resize((next as usize).max(bytes.len()), 0);
            bytes
        };
        let list = [entry(20, 1, "one"), entry(0, 3, "zwei")].concat();
        let (first, rest) = Entry::parse(&list).unwrap();
        assert_eq!((first.action, first.name.to_str()), (1, Some("one")));
        let (second, rest) = Entry::parse(rest).unwrap();
        assert_eq!((second.action, second.name.to_str()), (3, Some("zwei")));
        assert!(Entry::parse(rest).is_none());
        assert!(Entry::parse(&list[..14]).is_none(), "it is cut");
    }
}
