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

use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::event_loop::core::Core;
use crate::event_loop::current;
use crate::event_loop::io::Io;
use crate::event_loop::io::after_io::{AfterIo, Order, Subscriber};
use crate::event_loop::io::subscribers::Subscribers;
use crate::event_loop::ledger::handles::{Header, Owner};
use crate::keeper::Keeper;
use crate::label::Label;
use crate::phase_order::Phase;
use crate::sys::poller::{MAX_KEY, Poller};
use crate::sys::watch::{Notice, Notices, WatchId, WatchKind};

/// The key of the descriptor that reports file changes; no source has it, nor a key shortly below
/// it, which further descriptors have on platforms with several.
const WATCHES_KEY: usize = MAX_KEY;

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
    fn label(&self, _: &Core) -> Option<Label> {
        let path = self.path.get()?;
        Some(Label::new(Keeper::Watch.text(), path.to_string_lossy()))
    }

    fn wakers(&self) -> Vec<*const ()> {
        Vec::from_iter(self.waker.borrow().as_ref().map(Waker::data))
    }

    #[inline]
    fn stop_for_good(&self, core: &Core) {
        core.io.watches().stop(self);
    }

    fn take_waiters(&self) -> Vec<Waker> {
        Vec::from_iter(self.waker.take())
    }
}

impl Watch {
    #[inline]
    pub(crate) fn new(header: Rc<Header>) -> Rc<Self> {
        let watch = Rc::new(Self {
            header,
            key: Cell::new(None),
            path: OnceCell::new(),
            received: RefCell::default(),
            waker: RefCell::default(),
        });
        watch.header.belongs_to(&watch);
        watch
    }

    /// Polls for the next notice; `None` is the end.
    pub(crate) fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<Notice>> {
        if let Some(notice) = self.received.borrow_mut().pop_front() {
            return Poll::Ready(Some(notice));
        }
        // The clone may run user code, which may close the handle.
        let waker = cx.waker().clone();
        if self.key.get().is_none() {
            return Poll::Ready(None);
        }
        current::note_waker(&waker);
        let before = self.waker.replace(Some(waker));
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
pub(super) struct Watches {
    /// The descriptor, while there are watches.
    notices: RefCell<Option<Rc<Notices>>>,
    /// The watches by number, with the notices that are due to them.
    watches: Subscribers<WatchId, Watch, Notice>,
    /// Whether the kernel may have notices.
    readable: Cell<bool>,
}

impl Watches {
    /// Starts a watch behind all others.
    #[inline]
    fn start(&self, poller: &Rc<Poller>, watch: &Rc<Watch>, path: &Path) -> io::Result<()> {
        let known = self.notices.borrow().clone();
        let notices = match known {
            Some(notices) => notices,
            None => Rc::new(Notices::new(poller.clone(), WATCHES_KEY)?),
        };
        let id = notices.add(path)?;
        watch.path.get_or_init(|| path.to_owned());
        watch.key.set(Some(self.watches.insert(id, watch.clone())));
        self.notices.replace(Some(notices));
        Ok(())
    }

    /// Stops a watch and drops its notices.
    #[inline]
    fn stop(&self, watch: &Watch) {
        drop(watch.received.take());
        self.forget(watch);
    }

    #[inline]
    fn forget(&self, watch: &Watch) {
        let Some(key) = watch.key.take() else {
            return;
        };
        drop(self.watches.remove(key));
        if self.watches.is_empty() {
            self.notices.replace(None);
            self.readable.set(false);
        } else if !self.watches.has(key.0) {
            if let Some(notices) = &*self.notices.borrow() {
                notices.remove(key.0);
            }
        }
    }

    /// Creates an entry for each watch of each notice: notices in the kernel's order, watches in
    /// the order of start. Returns `true` if the kernel has more notices.
    #[inline]
    fn read_notices(&self) -> bool {
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

    #[inline]
    fn assign(&self, notice: &Notice) {
        let push = |watch: &Rc<Watch>| self.watches.push_due(watch.clone(), notice.clone());
        match notice.id {
            Some(id) => self.watches.each(id, |_, watch| push(watch)),
            None => self.watches.list().iter().for_each(push),
        }
    }

    /// Returns the next watch and its notice.
    #[inline]
    fn next(&self) -> Option<(Rc<Watch>, Notice)> {
        loop {
            let (watch, notice) = self.watches.pop_due()?;
            if watch.key.get().is_some() {
                return Some((watch, notice));
            }
        }
    }
}

impl Subscriber for Watches {
    const ORDER: Order = Order::Watches;
}

impl AfterIo for Watches {
    #[inline]
    fn as_any(&self) -> &dyn Any {
        self
    }

    /// Notes the event of the descriptor.
    fn note_event(&self, key: usize) {
        let notices = self.notices.borrow();
        if notices.as_ref().is_some_and(|notices| notices.owns(key)) {
            self.readable.set(true);
        }
    }

    fn has_pending(&self) -> bool {
        self.readable.get() || self.has_due()
    }

    fn has_due(&self) -> bool {
        self.watches.has_due()
    }

    /// Collects the notices and delivers them at once: signals and exits are collected after the
    /// callbacks of the watches.
    #[inline]
    fn collect(&self, core: &Core) -> usize {
        if self.read_notices() {
            // The rest is left to the next turn, which does not sleep.
            core.executor.shared.inbox.signal();
        }
        let mut dispatched = 0;
        while let Some((watch, notice)) = self.next() {
            if notice.kind.is_none() {
                self.forget(&watch);
                core.set_active(&watch.header, false);
            }
            core.dispatch(
                Phase::Poll,
                || watch.header.origin(),
                || watch.deliver(notice),
            );
            dispatched += 1;
        }
        dispatched
    }

    fn deliver(&self, _core: &Core) -> usize {
        0
    }

    /// Starts the watches again. A watch of a file that cannot be watched any more ends.
    #[inline]
    fn reinit_after_fork(&self, core: &Core) -> io::Result<()> {
        let watches = self.watches.take();
        drop(self.notices.take());
        self.readable.set(false);
        for watch in watches {
            watch.key.set(None);
            let path = watch.path.get().cloned().unwrap_or_default();
            match self.start(core.io.poller(), &watch, &path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    core.set_active(&watch.header, false);
                    watch.wake();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    #[inline]
    fn shut_down(&self) {
        for watch in self.watches.take() {
            watch.key.set(None);
        }
        drop(self.notices.take());
    }
}

impl Io {
    #[inline]
    fn watches(&self) -> &Watches {
        self.subscriber()
    }
}

impl Core {
    /// Starts to watch a path.
    #[inline]
    pub(crate) fn start_watch(&self, watch: &Rc<Watch>, path: &Path) -> io::Result<()> {
        self.waits
            .note_outside("a watch of a file", watch.header.site);
        self.io.watches().start(self.io.poller(), watch, path)
    }
}
