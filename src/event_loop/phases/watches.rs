//! The file watches of this loop, in the order of start, and the notices of the kernel for them.
//!
//! ```text
//!   kernel ── event ──> readable ── end of the poll batch: collect ──> due: (watch, notice)
//!                                                                       └── next ──> delivered
//! ```
//!
//! All watches of a loop share one descriptor, which exists while there are watches. Watches of one
//! file have one number, whatever their paths. A watch that is stopped between the event and its
//! delivery is skipped.
// Rules of tests/LIBUV.md: R308.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::sources::WATCHES_KEY;
use crate::event_loop::api::handle::{Header, Owner};
use crate::event_loop::core::Core;
use crate::sys::poller::Poller;
use crate::sys::watch::{Notice, Notices, WatchId, WatchKind};
use crate::turn::Phase;

/// The number of notices that one poll phase takes from the kernel. The last read may exceed it.
const NOTICES_PER_POLL: usize = 1024;

/// The number of notices that a watch keeps until they are received; the kernel's default is the
/// same.
const MOST_KEPT: usize = 16_384;

/// The state that a watcher shares with the loop.
pub(crate) struct Watch {
    pub(crate) header: Rc<Header>,
    /// The watched file, and the place in the order of start. `None` if the watch is not started,
    /// or has ended.
    key: Cell<Option<(WatchId, u64)>>,
    path: OnceCell<PathBuf>,
    received: RefCell<VecDeque<Notice>>,
    waker: RefCell<Option<Waker>>,
}

impl Owner for Watch {
    fn wakers(&self) -> Vec<*const ()> {
        Vec::from_iter(self.waker.borrow().as_ref().map(Waker::data))
    }

    fn stop_for_good(&self, core: &Core) {
        core.after_io.parts().watches.stop(self);
    }

    fn take_waiters(&self) -> Vec<Waker> {
        Vec::from_iter(self.waker.take())
    }
}

impl Watch {
    pub(crate) fn new(header: Rc<Header>) -> Rc<Self> {
        let watch = Rc::new(Self {
            header,
            key: Cell::new(None),
            path: OnceCell::new(),
            received: RefCell::default(),
            waker: RefCell::default(),
        });
        let owner = Rc::downgrade(&watch);
        watch.header.belongs_to(owner);
        watch
    }

    /// Polls for the next notice; `None` is the end.
    pub(crate) fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<Notice>> {
        if let Some(notice) = self.received.borrow_mut().pop_front() {
            return Poll::Ready(Some(notice));
        }
        if self.key.get().is_none() {
            return Poll::Ready(None);
        }
        let before = self.waker.replace(Some(cx.waker().clone()));
        drop(before);
        Poll::Pending
    }

    /// Stores a notice and wakes the receiver. The notice of the end is not stored.
    fn deliver(&self, notice: Notice) {
        if notice.kind.is_some() {
            self.store(notice);
        }
        self.wake();
    }

    fn wake(&self) {
        let waker = self.waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn store(&self, notice: Notice) {
        let mut received = self.received.borrow_mut();
        if received.len() < MOST_KEPT {
            received.push_back(notice);
        } else if let Some(last) = received.back_mut() {
            *last = OVERFLOW;
        }
    }
}

const OVERFLOW: Notice = Notice {
    id: None,
    kind: Some(WatchKind::Overflow),
    is_directory: false,
    name: None,
};

#[derive(Default)]
pub(crate) struct Watches {
    /// The descriptor, while there are watches.
    notices: RefCell<Option<Rc<Notices>>>,
    /// The watches, by number, then by place.
    watches: RefCell<BTreeMap<(WatchId, u64), Rc<Watch>>>,
    next_place: Cell<u64>,
    /// Whether the kernel may have notices.
    readable: Cell<bool>,
    /// The notices to deliver, each with its watch.
    due: RefCell<VecDeque<(Rc<Watch>, Notice)>>,
}

impl Watches {
    /// Starts a watch behind all others.
    pub(crate) fn start(
        &self,
        poller: &Rc<Poller>,
        watch: &Rc<Watch>,
        path: &Path,
    ) -> io::Result<()> {
        let known = self.notices.borrow().clone();
        let notices = match known {
            Some(notices) => notices,
            None => Rc::new(Notices::new(poller.clone(), WATCHES_KEY)?),
        };
        let id = notices.add(path)?;
        watch.path.get_or_init(|| path.to_owned());
        let place = self.next_place.get();
        self.next_place.set(place + 1);
        watch.key.set(Some((id, place)));
        self.watches.borrow_mut().insert((id, place), watch.clone());
        self.notices.replace(Some(notices));
        Ok(())
    }

    /// Stops a watch and drops its notices.
    pub(crate) fn stop(&self, watch: &Watch) {
        drop(watch.received.take());
        self.forget(watch);
    }

    fn forget(&self, watch: &Watch) {
        let Some(key) = watch.key.take() else {
            return;
        };
        let mut watches = self.watches.borrow_mut();
        watches.remove(&key);
        let is_last = watches.range(all_of(key.0)).next().is_none();
        if watches.is_empty() {
            self.notices.replace(None);
            self.readable.set(false);
        } else if is_last {
            if let Some(notices) = &*self.notices.borrow() {
                notices.remove(key.0);
            }
        }
    }

    /// Notes an event that belongs to no source: that of the descriptor, or of a closed source.
    pub(in crate::event_loop) fn note_event(&self, key: usize) {
        if key == WATCHES_KEY && self.notices.borrow().is_some() {
            self.readable.set(true);
        }
    }

    /// Returns whether there is something to collect, or left from a pass that a panic interrupted.
    pub(in crate::event_loop) fn has_pending(&self) -> bool {
        self.readable.get() || self.has_due()
    }

    pub(in crate::event_loop) fn has_due(&self) -> bool {
        !self.due.borrow().is_empty()
    }

    /// Creates an entry for each watch of each notice: notices in the kernel's order, watches in
    /// the order of start. Returns `true` if the kernel has more notices.
    fn collect(&self) -> bool {
        let notices = self.notices.borrow().clone();
        let Some(notices) = notices.filter(|_| self.readable.get()) else {
            return false;
        };
        let drained = notices
            .read(NOTICES_PER_POLL, |notice| self.assign(&notice))
            .unwrap_or_else(|_| {
                // After an error of the read, notices may be lost: every watch reports an overflow.
                self.assign(&OVERFLOW);
                true
            });
        self.readable.set(!drained);
        !drained
    }

    fn assign(&self, notice: &Notice) {
        let watches = self.watches.borrow();
        let mut due = self.due.borrow_mut();
        if let Some(id) = notice.id {
            let range = watches.range(all_of(id));
            due.extend(range.map(|(_, watch)| (watch.clone(), notice.clone())));
        } else {
            let mut all: Vec<_> = watches.iter().collect();
            all.sort_unstable_by_key(|((_, place), _)| *place);
            due.extend(
                all.into_iter()
                    .map(|(_, watch)| (watch.clone(), notice.clone())),
            );
        }
    }

    /// Returns the next watch and its notice.
    fn next(&self) -> Option<(Rc<Watch>, Notice)> {
        loop {
            let (watch, notice) = self.due.borrow_mut().pop_front()?;
            if watch.key.get().is_some() {
                return Some((watch, notice));
            }
        }
    }

    /// Stops all watches when the loop is dropped.
    pub(in crate::event_loop) fn drain(&self) {
        for watch in self.watches.take().into_values() {
            watch.key.set(None);
        }
        drop(self.due.take());
        drop(self.notices.take());
    }
}

fn all_of(id: WatchId) -> std::ops::RangeInclusive<(WatchId, u64)> {
    (id, 0)..=(id, u64::MAX)
}

impl Core {
    /// Starts to watch a path.
    pub(crate) fn start_watch(&self, watch: &Rc<Watch>, path: &Path) -> io::Result<()> {
        let watches = &self.after_io.parts().watches;
        watches.start(&self.poller, watch, path)
    }

    /// Starts the watches in the child process after a fork. A watch of a file that cannot be
    /// watched any more ends.
    pub(in crate::event_loop) fn restart_watches(&self) -> io::Result<()> {
        let watches = &self.after_io.parts().watches;
        let before = watches.watches.take();
        drop(watches.due.take());
        drop(watches.notices.take());
        watches.readable.set(false);
        let mut started: Vec<_> = before.into_iter().collect();
        started.sort_unstable_by_key(|&((_, place), _)| place);
        for (_, watch) in started {
            watch.key.set(None);
            let path = watch.path.get().cloned().unwrap_or_default();
            match watches.start(&self.poller, &watch, &path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.set_active(&watch.header, false);
                    watch.wake();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Delivers notices to their watches and returns the number of callbacks.
    pub(in crate::event_loop) fn run_watches(&self) -> usize {
        let watches = &self.after_io.parts().watches;
        if watches.collect() {
            // The rest is left to the next turn, which does not sleep.
            self.shared.inbox.signal();
        }
        let mut dispatched = 0;
        while let Some((watch, notice)) = watches.next() {
            if notice.kind.is_none() {
                watches.forget(&watch);
                self.set_active(&watch.header, false);
            }
            self.dispatch(Phase::Poll, || watch.deliver(notice));
            dispatched += 1;
        }
        dispatched
    }
}
