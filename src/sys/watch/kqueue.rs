//! macOS and the BSDs: a kqueue of its own, with one open descriptor for each watched file.
//!
//! The kernel reports that a directory has changed, not which entry: the entries are read again and
//! compared. It does not report that the content of an entry has changed.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::rc::Rc;

use rustix::fs::{Dir, FileType, Mode, OFlags, fstat, open};

use crate::sys::platform::kqueue::{self, EventFilter, EventFlags, VnodeEvents};
use crate::sys::poller::{Interest, Poller, Registration};
use crate::sys::watch::entries::{Change, Entries};
use crate::sys::watch::{Notice, WatchId, WatchKind};

/// The changes that are asked for.
const ASKED: VnodeEvents = VnodeEvents::DELETE
    .union(VnodeEvents::WRITE)
    .union(VnodeEvents::EXTEND)
    .union(VnodeEvents::ATTRIBUTES)
    .union(VnodeEvents::RENAME)
    .union(VnodeEvents::REVOKE)
    .union(VnodeEvents::LINK);

/// The events that one system call returns.
const BATCH: usize = 64;

/// An open file or directory.
struct Watched {
    descriptor: OwnedFd,
    /// Device and number of the file: one file has one watch, whatever path led to it.
    file: (u64, u64),
    /// The entries of a directory.
    entries: Option<Entries>,
}

impl Watched {
    fn open(path: &Path) -> io::Result<Self> {
        // A FIFO is opened without waiting for its other end.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let descriptor = open(path, flags, Mode::empty())?;
        let stat = fstat(&descriptor)?;
        Ok(Self {
            descriptor,
            #[allow(
                clippy::unnecessary_cast,
                clippy::cast_sign_loss,
                reason = "the types differ from platform to platform, and are compared only"
            )]
            file: (stat.st_dev as u64, stat.st_ino as u64),
            entries: (FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
                .then(Entries::default),
        })
    }

    fn id(&self) -> WatchId {
        self.descriptor.as_raw_fd()
    }

    /// Returns whether the last link of the file is gone. A directory has one link.
    fn is_gone(&self) -> bool {
        self.entries.is_some() || fstat(&self.descriptor).map_or(true, |stat| stat.st_nlink == 0)
    }
}

/// A queue for the changes of files, on a poller.
pub(crate) struct Notices {
    registration: Registration<OwnedFd>,
    key: usize,
    watched: RefCell<Vec<Watched>>,
    /// The number of the last rename.
    renames: Cell<u32>,
}

impl Notices {
    pub(crate) fn new(poller: Rc<Poller>, key: usize) -> io::Result<Self> {
        let registration = Registration::new(poller, kqueue::create()?, key, Interest::Read)
            .map_err(|(_queue, error)| error)?;
        Ok(Self {
            registration,
            key,
            watched: RefCell::default(),
            renames: Cell::new(0),
        })
    }

    /// Returns whether an event with this key reports changes.
    pub(crate) fn owns(&self, key: usize) -> bool {
        key == self.key
    }

    /// Watches the file at `path`, following symbolic links. A file that is watched already keeps
    /// its number.
    pub(crate) fn add(&self, path: &Path) -> io::Result<WatchId> {
        let mut new = Watched::open(path)?;
        let mut watched = self.watched.borrow_mut();
        if let Some(known) = watched.iter().find(|known| known.file == new.file) {
            return Ok(known.id());
        }
        let filter = EventFilter::Vnode {
            vnode: new.id(),
            flags: ASKED,
        };
        let add = kqueue::change(filter, EventFlags::ADD | EventFlags::CLEAR, 0);
        let [added] = kqueue::apply(self.registration.get(), [add])?;
        added?;
        if new.entries.is_some() {
            // A change from now on is an event.
            new.entries = Some(read_entries(&new.descriptor)?);
        }
        let id = new.id();
        watched.push(new);
        Ok(id)
    }

    /// Ends a watch. Its descriptor is closed, which removes its events.
    pub(crate) fn remove(&self, id: WatchId) {
        self.watched
            .borrow_mut()
            .retain(|watched| watched.id() != id);
    }

    /// Passes pending notifications to `each`, at least `enough` if there are as many. `true`: the
    /// queue is empty, and the poller will report new ones.
    pub(crate) fn read(&self, enough: usize, mut each: impl FnMut(Notice)) -> io::Result<bool> {
        let mut events = Vec::with_capacity(BATCH);
        let mut count = 0;
        while count < enough {
            events.clear();
            match kqueue::wait(self.registration.get(), &mut events, Some(&kqueue::AT_ONCE)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            for event in &events {
                if let EventFilter::Vnode { vnode, flags } = event.filter() {
                    self.report(vnode, flags, |notice| {
                        count += 1;
                        each(notice);
                    });
                }
            }
            if events.len() < BATCH {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Passes what an event says to `each`.
    fn report(&self, id: WatchId, flags: VnodeEvents, mut each: impl FnMut(Notice)) {
        let mut all = self.watched.borrow_mut();
        let Some(watched) = all.iter_mut().find(|watched| watched.id() == id) else {
            return;
        };
        let is_directory = watched.entries.is_some();
        let of_itself = |kind| Notice {
            id: Some(id),
            kind,
            is_directory: false,
            name: None,
        };
        if flags.intersects(VnodeEvents::WRITE | VnodeEvents::EXTEND) {
            match &mut watched.entries {
                Some(entries) => {
                    for change in changes(entries, &watched.descriptor, &self.renames) {
                        each(Notice {
                            id: Some(id),
                            kind: Some(change.kind),
                            is_directory: change.is_directory,
                            name: Some(change.name),
                        });
                    }
                }
                None => each(of_itself(Some(WatchKind::Modified))),
            }
        }
        // The link count of a directory is that of its subdirectories, which are entries.
        let attributes = if is_directory {
            VnodeEvents::ATTRIBUTES
        } else {
            VnodeEvents::ATTRIBUTES | VnodeEvents::LINK
        };
        let is_removed = flags.contains(VnodeEvents::DELETE) && watched.is_gone();
        if flags.intersects(attributes) || (flags.contains(VnodeEvents::DELETE) && !is_removed) {
            each(of_itself(Some(WatchKind::Attributes)));
        }
        if flags.contains(VnodeEvents::RENAME) {
            each(of_itself(Some(WatchKind::SelfMoved)));
        }
        let end = if is_removed {
            Some(WatchKind::SelfRemoved)
        } else if flags.contains(VnodeEvents::REVOKE) {
            Some(WatchKind::Unmounted)
        } else {
            None
        };
        if end.is_some() {
            each(of_itself(end));
            each(of_itself(None));
        }
    }
}

fn read_entries(directory: &OwnedFd) -> io::Result<Entries> {
    let mut entries = Entries::default();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            let name = OsString::from_vec(name.to_vec());
            entries.insert(name, entry.ino(), entry.file_type() == FileType::Directory);
        }
    }
    Ok(entries)
}

/// Reads the entries of a directory again, and returns what has changed.
///
/// A directory that was removed has no entries. After any other error the entries stay as they are
/// known: a process without a free descriptor has not lost its files.
fn changes(known: &mut Entries, directory: &OwnedFd, renames: &Cell<u32>) -> Vec<Change> {
    match read_entries(directory) {
        Ok(later) => known.update(later, renames),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            known.update(Entries::default(), renames)
        }
        Err(_) => Vec::new(),
    }
}
