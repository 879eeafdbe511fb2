//! Linux and Android: inotify.

use std::ffi::{CStr, OsStr};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use crate::sys::poller::{Interest, Poller, Registration};
use crate::sys::watch::{Notice, WatchId, WatchKind};

/// The events that libuv requests.
const ASKED: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MOVE_SELF);

/// An inotify descriptor on a poller.
pub(crate) struct Notices {
    registration: Registration<OwnedFd>,
    key: usize,
}

impl Notices {
    pub(crate) fn new(poller: Rc<Poller>, key: usize) -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let registration = Registration::new(poller, inotify, key, Interest::Read)
            .map_err(|(_inotify, error)| error)?;
        let notices = Self { registration, key };
        notices.rearm()?;
        Ok(notices)
    }

    /// Returns whether an event with this key reports changes.
    pub(crate) fn owns(&self, key: usize) -> bool {
        key == self.key
    }

    /// Watches the file at `path`, following symbolic links. A file that is watched already keeps
    /// its watch descriptor.
    pub(crate) fn add(&self, path: &Path) -> io::Result<WatchId> {
        Ok(inotify::add_watch(self.registration.get(), path, ASKED)?)
    }

    /// Ends a watch. In a forked child of the process that has started it, the watch stays: the
    /// child shares the descriptor with its parent.
    pub(crate) fn remove(&self, id: WatchId) {
        if self.registration.is_inherited() {
            return;
        }
        // An error means that the kernel has removed the watch already.
        let _ = inotify::remove_watch(self.registration.get(), id);
    }

    /// Passes pending notifications to `each`, at least `enough` if there are as many. `true`: the
    /// queue is empty, and the poller will report new ones.
    pub(crate) fn read(&self, enough: usize, mut each: impl FnMut(Notice)) -> io::Result<bool> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(self.registration.get(), &mut buffer);
        let mut count = 0;
        while count < enough || !reader.is_buffer_empty() {
            match reader.next() {
                Ok(event) => each(notice(&event)),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {
                    self.rearm()?;
                    return Ok(true);
                }
                Err(error) => return Err(error.into()),
            }
            count += 1;
        }
        Ok(false)
    }

    fn rearm(&self) -> io::Result<()> {
        self.registration.rearm(self.key, true, false)
    }
}

fn notice(event: &inotify::Event<'_>) -> Notice {
    let flags = event.events();
    let kinds = [
        (ReadFlags::MODIFY, WatchKind::Modified),
        (ReadFlags::ATTRIB, WatchKind::Attributes),
        (ReadFlags::CREATE, WatchKind::Created),
        (ReadFlags::DELETE, WatchKind::Removed),
        (ReadFlags::MOVED_FROM, WatchKind::MovedFrom(event.cookie())),
        (ReadFlags::MOVED_TO, WatchKind::MovedTo(event.cookie())),
        (ReadFlags::DELETE_SELF, WatchKind::SelfRemoved),
        (ReadFlags::MOVE_SELF, WatchKind::SelfMoved),
        (ReadFlags::UNMOUNT, WatchKind::Unmounted),
        (ReadFlags::QUEUE_OVERFLOW, WatchKind::Overflow),
    ];
    let known = kinds.iter().find(|(flag, _)| flags.contains(*flag));
    let name = |name: &CStr| OsStr::from_bytes(name.to_bytes()).to_owned();
    Notice {
        id: (!flags.contains(ReadFlags::QUEUE_OVERFLOW)).then(|| event.wd()),
        // The remaining flag is `IN_IGNORED`.
        kind: known.map(|&(_, kind)| kind),
        is_directory: flags.contains(ReadFlags::ISDIR),
        name: event.file_name().map(name),
    }
}
