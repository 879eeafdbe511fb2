//! Who watches files on this loop, in the order of start, and what the kernel has told of them.
//!
//! ```text
//!   kernel ── event ──> readable ── end of the poll batch: collect ──> due, one entry a watch ── next ──> delivered
//! ```
//!
//! All watches of a loop share one descriptor, which is there while there are any. Watches of the
//! same file have the same number, by whatever path. One that is stopped between the event and its
//! turn is passed over (R308).

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::core::Core;
use super::handles::{Header, Owner};
use super::sources::WATCHES_KEY;
use crate::kinds::Phase;
use crate::sys::poller::Poller;
use crate::sys::watch::{Notice, Notices, WatchId, WatchKind};

/// How many notices one poll phase takes from the kernel, and a few more: those of the last read.
const NOTICES_PER_POLL: usize = 1024;

/// How many notices a watch keeps for who does not receive them; as many as the kernel usually
/// does.
const MOST_KEPT: usize = 16_384;

/// What a watcher and the loop share.
pub(crate) struct Watch {
    pub(crate) header: Rc<Header>,
    /// What it watches, and its place in the order of start. `None`: nothing, or nothing any more.
    key: Cell<Option<(WatchId, u64)>>,
    path: OnceCell<PathBuf>,
    received: RefCell<VecDeque<Notice>>,
    waker: RefCell<Option<Waker>>,
}

impl Owner for Watch {
    fn wakers(&self) -> Vec<*const ()> {
        Vec::from_iter(self.waker.borrow().as_ref().map(Waker::data))
    }

    fn shut(&self, core: &Core) {
        core.late.parts().watches.stop(self);
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

    /// The next notice, or the end.
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

    /// Keeps a notice for who receives it, and wakes them; also for the end, which is not kept.
    fn deliver(&self, notice: Notice) {
        if notice.kind.is_some() {
            self.keep(notice);
        }
        self.wake();
    }

    fn wake(&self) {
        let waker = self.waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn keep(&self, notice: Notice) {
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
    /// There while anything is watched.
    notices: RefCell<Option<Rc<Notices>>>,
    /// By number, then by place.
    watches: RefCell<BTreeMap<(WatchId, u64), Rc<Watch>>>,
    next_place: Cell<u64>,
    /// Whether the kernel may have something to tell.
    readable: Cell<bool>,
    /// Whose turn it is.
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

    /// Stops a watch and drops what it has not received.
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

    /// An event has come that is no source's: of the descriptor, or of a source that is gone.
    pub(super) fn note_event(&self, key: usize) {
        if key == WATCHES_KEY && self.notices.borrow().is_some() {
            self.readable.set(true);
        }
    }

    /// Whether there is something to collect, or left from a pass that a panic cut short.
    pub(super) fn any(&self) -> bool {
        self.readable.get() || self.has_due()
    }

    pub(super) fn has_due(&self) -> bool {
        !self.due.borrow().is_empty()
    }

    /// Makes an entry for each watch that a notice is for: notices in the kernel's order, watches
    /// in that of their start. `true`: the kernel has more to tell.
    fn collect(&self) -> bool {
        let notices = self.notices.borrow().clone();
        let Some(notices) = notices.filter(|_| self.readable.get()) else {
            return false;
        };
        let drained = notices
            .read(NOTICES_PER_POLL, |notice| self.assign(&notice))
            .unwrap_or_else(|_| {
                // Whatever it was, there may be events that nobody has seen.
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

    /// The next watch that is to be told, and what.
    fn next(&self) -> Option<(Rc<Watch>, Notice)> {
        loop {
            let (watch, notice) = self.due.borrow_mut().pop_front()?;
            if watch.key.get().is_some() {
                return Some((watch, notice));
            }
        }
    }

    /// The loop is gone.
    pub(super) fn drain(&self) {
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
    /// After a fork: has the kernel tell this process, too. What cannot be watched any more is at
    /// its end.
    pub(super) fn restart_watches(&self) -> io::Result<()> {
        let watches = &self.late.parts().watches;
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

    /// Tells watches what has happened; returns how many callbacks that made.
    pub(super) fn run_watches(&self) -> usize {
        let watches = &self.late.parts().watches;
        if watches.collect() {
            // The rest comes with the next turn, which does not sleep then.
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
