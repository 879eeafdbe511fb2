//! The children of this loop, in the order in which they were started, until their end was seen.
//!
//! ```text
//!   start ──> running ── its descriptor is readable, or SIGCHLD ──> end of the poll batch: waited for ──> waiters woken
//!                └── dropped: stays here, waited for like the others, nobody is woken
//! ```
//!
//! Where the system has a descriptor for a child, its event says whom to wait for. A child without one (there is no such
//! thing, or no descriptor is left) is asked about whenever SIGCHLD was caught.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::rc::Rc;
use std::task::Waker;

use super::core::Core;
use super::handles::{Header, Owner};
use super::sources::SourceState;
use crate::kinds::{Kind, Phase};
use crate::sys::poller::Registration;
use crate::sys::process::{self, Process};
use crate::sys::signal::SIGCHLD;

/// What a child's handle and the loop share.
pub(crate) struct ChildState {
    pub(crate) header: Rc<Header>,
    pub(crate) process: Process,
    place: u64,
    /// Set as soon as it was waited for.
    end: Cell<Option<End>>,
    /// Whether those who wait know of it.
    is_announced: Cell<bool>,
    /// Nobody has a handle to it any more.
    is_orphan: Cell<bool>,
    /// The handle was closed: the end is announced to none.
    is_closed: Cell<bool>,
    watched: RefCell<Option<Watched>>,
    waiters: RefCell<VecDeque<(u64, Waker)>>,
    next_waiter: Cell<u64>,
}

/// How a child has ended.
#[derive(Clone, Copy)]
pub(crate) enum End {
    Status(ExitStatus),
    /// The system's refusal: somebody else has waited for it.
    Unknown(i32),
}

impl End {
    pub(crate) fn result(self) -> io::Result<ExitStatus> {
        match self {
            Self::Status(status) => Ok(status),
            Self::Unknown(error) => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// A descriptor that tells of the end.
struct Watched {
    registration: Registration<OwnedFd>,
    source: Rc<SourceState>,
}

impl ChildState {
    /// How the child has ended, once that was delivered in the poll phase.
    pub(crate) fn announced_end(&self) -> Option<End> {
        self.end.get().filter(|_| self.is_announced.get())
    }

    /// Whether the handle was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// The handle is gone; the loop, or if that is gone too a thread, waits for the child from now on.
    pub(crate) fn abandon(&self, core: &Core) {
        if self.is_orphan.replace(true) {
            return;
        }
        // The loop hands on itself those that it still has.
        let is_ours = !core
            .late
            .parts()
            .children
            .list
            .borrow()
            .contains_key(&self.place);
        if core.is_closed() && is_ours && self.end.get().is_none() {
            process::reap_in_background(vec![self.process]);
        }
    }

    /// Sends a signal, unless the end is known: the number may be somebody else's then (R260).
    pub(crate) fn signal(&self, number: i32) -> io::Result<()> {
        if self.end.get().is_some() {
            return Err(process::no_such_process());
        }
        match &*self.watched.borrow() {
            Some(watched) => {
                let descriptor = watched.registration.get();
                self.process.signal_by(descriptor, number)
            }
            None => self.process.signal(number),
        }
    }

    /// Asks the system, unless it is known.
    pub(crate) fn look(&self) -> Option<End> {
        if self.end.get().is_none() {
            match self.process.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => self.end.set(Some(End::Status(status))),
                Err(error) => {
                    let number = error.raw_os_error().unwrap_or(0);
                    self.end.set(Some(End::Unknown(number)));
                }
            }
        }
        self.end.get()
    }

    /// Adds somebody who waits, or renews the waker of the one with this number. Returns the number.
    pub(crate) fn wait(&self, id: Option<u64>, waker: &Waker) -> u64 {
        let id = id.unwrap_or_else(|| {
            let id = self.next_waiter.get();
            self.next_waiter.set(id + 1);
            id
        });
        // Cloned and dropped outside of the borrow: both may be anybody's code.
        let waker = waker.clone();
        let before = {
            let mut waiters = self.waiters.borrow_mut();
            match waiters.iter_mut().find(|(known, _)| *known == id) {
                Some((_, current)) => Some(std::mem::replace(current, waker)),
                None => {
                    waiters.push_back((id, waker));
                    None
                }
            }
        };
        drop(before);
        id
    }

    pub(crate) fn stop_waiting(&self, id: u64) {
        let mut waiters = self.waiters.borrow_mut();
        let place = waiters.iter().position(|(known, _)| *known == id);
        let removed = place.and_then(|place| waiters.remove(place));
        drop(waiters);
        drop(removed);
    }
}

impl Owner for ChildState {
    fn wakers(&self) -> Vec<*const ()> {
        let waiters = self.waiters.borrow();
        waiters.iter().map(|(_, waker)| waker.data()).collect()
    }

    /// The child runs on, and is waited for in the background.
    fn shut(&self, core: &Core) {
        self.abandon(core);
    }

    fn take_waiters(&self) -> Vec<Waker> {
        self.is_closed.set(true);
        let waiters = self.waiters.take();
        waiters.into_iter().map(|(_, waker)| waker).collect()
    }
}

#[derive(Default)]
pub(crate) struct Children {
    /// Those whose end was not seen, by place, which is the order of start.
    list: RefCell<BTreeMap<u64, Rc<ChildState>>>,
    /// The places of those with a descriptor, by the key of its source.
    by_source: RefCell<BTreeMap<usize, u64>>,
    /// Those without.
    by_signal: RefCell<BTreeSet<u64>>,
    next_place: Cell<u64>,
    /// Those whose descriptor has told of their end.
    reported: RefCell<BTreeSet<u64>>,
    /// Whether those without a descriptor are to be asked about.
    ask: Cell<bool>,
    /// Who is to be woken.
    due: RefCell<VecDeque<Rc<ChildState>>>,
}

impl Children {
    /// Whether there is something to collect or to deliver.
    pub(super) fn any(&self) -> bool {
        self.ask.get() || !self.reported.borrow().is_empty() || self.has_due()
    }

    pub(super) fn has_due(&self) -> bool {
        !self.due.borrow().is_empty()
    }

    /// SIGCHLD was caught.
    pub(super) fn ask(&self) {
        self.ask.set(!self.by_signal.borrow().is_empty());
    }

    /// A source has become ready. `true`: it is the descriptor of a child, which has ended.
    #[inline]
    pub(super) fn report(&self, source: &SourceState) -> bool {
        let is_child = source.header.kind == Kind::Child;
        if is_child {
            self.report_end(source);
        }
        is_child
    }

    fn report_end(&self, source: &SourceState) {
        if let Some(&place) = self.by_source.borrow().get(&source.key) {
            self.reported.borrow_mut().insert(place);
        }
    }

    /// After a fork: asks for all of them, who are none of this process. Returns whether there are any.
    pub(super) fn ask_all(&self) -> bool {
        let list = self.list.borrow();
        self.reported.borrow_mut().extend(list.keys());
        !list.is_empty()
    }

    /// The next one who is to be told of an end.
    fn next(&self) -> Option<Waker> {
        loop {
            let child = self.due.borrow().front()?.clone();
            let waiter = child.waiters.borrow_mut().pop_front();
            match waiter {
                Some((_, waker)) => return Some(waker),
                None => drop(self.due.borrow_mut().pop_front()),
            }
        }
    }

    /// The loop is gone: hands on those that still run and that nobody has a handle to.
    pub(super) fn drain(&self) {
        self.by_source.take();
        self.by_signal.take();
        self.reported.take();
        let due = self.due.take();
        let list = self.list.take();
        let orphans = list
            .values()
            .filter(|child| child.is_orphan.get() && child.end.get().is_none());
        process::reap_in_background(orphans.map(|child| child.process).collect());
        for child in list.into_values() {
            drop(child.watched.take());
            drop(child.waiters.take());
        }
        drop(due);
    }
}

impl Core {
    /// Takes in a child that was just started.
    pub(crate) fn add_child(&self, header: Rc<Header>, process: Process) -> Rc<ChildState> {
        let children = &self.late.parts().children;
        let place = children.next_place.get();
        children.next_place.set(place + 1);
        let child = Rc::new(ChildState {
            header,
            process,
            place,
            end: Cell::new(None),
            is_announced: Cell::new(false),
            is_orphan: Cell::new(false),
            is_closed: Cell::new(false),
            watched: RefCell::new(None),
            waiters: RefCell::default(),
            next_waiter: Cell::new(0),
        });
        let owner = Rc::downgrade(&child);
        child.header.belongs_to(owner);
        children.list.borrow_mut().insert(place, child.clone());
        self.set_active(&child.header, true);
        if !self.watch_by_descriptor(&child) {
            self.watch_by_signal(&child);
        }
        child
    }

    fn watch_by_descriptor(&self, child: &ChildState) -> bool {
        let Some(descriptor) = child.process.open() else {
            return false;
        };
        let source = self.sources.insert(child.header.clone());
        let registration = Registration::new(self.poller.clone(), descriptor, source.key)
            .map_err(|(_, error)| error)
            .and_then(|registration| registration.rearm(true, false).map(|()| registration));
        let Ok(registration) = registration else {
            self.sources.remove(&source);
            return false;
        };
        let by_source = &self.late.parts().children.by_source;
        by_source.borrow_mut().insert(source.key, child.place);
        child.watched.replace(Some(Watched {
            registration,
            source,
        }));
        true
    }

    fn watch_by_signal(&self, child: &ChildState) {
        let (children, signals) = (&self.late.parts().children, &self.late.parts().signals);
        if children.by_signal.borrow().is_empty() {
            // SIGCHLD can always be listened to.
            let held = signals.hold(&self.poller, SIGCHLD);
            debug_assert!(held.is_ok(), "listening to SIGCHLD: {held:?}");
        }
        children.by_signal.borrow_mut().insert(child.place);
        // It may have ended before anybody listened.
        children.ask.set(true);
        self.poller.notifier().notify();
    }

    /// Waits for all that have ended, in the order of start, before anybody is told (R255). Returns how many they are.
    pub(super) fn collect_children(&self) -> usize {
        let children = &self.late.parts().children;
        let mut places = children.reported.take();
        if children.ask.replace(false) {
            places.extend(children.by_signal.borrow().iter());
        }
        let mut ended = 0;
        for place in places {
            let Some(child) = children.list.borrow().get(&place).cloned() else {
                continue;
            };
            if child.look().is_some() {
                self.end_child(child);
                ended += 1;
            } else if self.unwatch(&child) {
                // Its descriptor will not tell again.
                self.watch_by_signal(&child);
            }
        }
        ended
    }

    /// Wakes those who wait for an end; returns how many.
    pub(super) fn run_exits(&self) -> usize {
        let mut dispatched = 0;
        while let Some(waker) = self.late.parts().children.next() {
            self.dispatch(Phase::Poll, || waker.wake());
            dispatched += 1;
        }
        dispatched
    }

    fn end_child(&self, child: Rc<ChildState>) {
        let (children, signals) = (&self.late.parts().children, &self.late.parts().signals);
        self.unwatch(&child);
        let was_by_signal = children.by_signal.borrow_mut().remove(&child.place);
        if was_by_signal && children.by_signal.borrow().is_empty() {
            signals.release(SIGCHLD);
        }
        children.list.borrow_mut().remove(&child.place);
        self.set_active(&child.header, false);
        child.is_announced.set(true);
        children.due.borrow_mut().push_back(child);
    }

    /// Drops the descriptor of a child. `false`: it had none.
    fn unwatch(&self, child: &ChildState) -> bool {
        let Some(watched) = child.watched.take() else {
            return false;
        };
        let by_source = &self.late.parts().children.by_source;
        by_source.borrow_mut().remove(&watched.source.key);
        self.sources.remove(&watched.source);
        true
    }
}
