//! The child processes of this loop, in the order of start, until they are reaped.
//!
//! ```text
//!   start ──> running ── descriptor readable or SIGCHLD ──> end of batch: reaped ──> waiters woken
//!                └── handle dropped: stays listed, reaped like the others, no waiter
//! ```
//!
//! A process descriptor (`pidfd`, on Windows the handle of the process) becomes readable when its
//! child exits. A child without one, because the OS has none or no descriptor is left, is checked
//! after each SIGCHLD.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::io;
use std::process::ExitStatus;
use std::rc::Rc;
use std::task::Waker;

use crate::event_loop::core::Core;
use crate::event_loop::current;
use crate::event_loop::io::Io;
use crate::event_loop::io::after_io::{AfterIo, Order, Subscriber};
use crate::event_loop::io::sources::SourceState;
use crate::event_loop::io::subscribers::Subscribers;
use crate::event_loop::ledger::handles::{Header, Owner};
use crate::keeper::Keeper;
use crate::label::Label;
use crate::phase_order::Phase;
use crate::probe::{Area, Origin};
use crate::sorted::SortedMap;
use crate::sys::poller::{Interest, Notify as _, Registration};
use crate::sys::process::{self, Descriptor, Process};
use crate::sys::signal::CHILD_SIGNAL;
use crate::wait_list::{WaitKey, WaitList};

/// The state that the handle of a child shares with the loop.
pub(crate) struct ChildState {
    pub(crate) header: Rc<Header>,
    pub(crate) process: Process,
    /// The program, as the command names it.
    program: Box<OsStr>,
    place: u64,
    /// The exit status, set when the child was reaped.
    end: Cell<Option<End>>,
    /// Whether the waiters were woken.
    is_announced: Cell<bool>,
    /// The handle was dropped.
    is_orphan: Cell<bool>,
    /// The handle was closed: waiters do not learn of the exit.
    is_closed: Cell<bool>,
    watched: RefCell<Option<Watched>>,
    waiters: RefCell<WaitList>,
}

/// How a child has exited.
#[derive(Clone, Copy)]
pub(crate) enum End {
    Status(ExitStatus),
    /// The OS error of `waitpid`: other code has reaped the child.
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

/// A registered process descriptor.
struct Watched {
    registration: Registration<Descriptor>,
    source: Rc<SourceState>,
}

impl ChildState {
    /// Returns how the child has exited, once the poll phase has delivered the exit.
    pub(crate) fn announced_end(&self) -> Option<End> {
        self.end.get().filter(|_| self.is_announced.get())
    }

    /// Returns whether the handle was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Releases a dropped handle. The loop reaps the child; if the loop was dropped too, a thread
    /// does.
    #[inline]
    pub(crate) fn abandon(&self, core: &Core) {
        if self.is_orphan.replace(true) {
            return;
        }
        // A loop that is being dropped hands its children to that thread itself.
        let is_ours = core.io.children().get(self.place).is_none();
        if core.executor.is_closed() && is_ours && self.end.get().is_none() {
            process::reap_in_background(vec![self.process.clone()]);
        }
    }

    /// Sends a signal, unless the child was reaped: its process id may belong to another process
    /// then.
    // Rule R260.
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

    /// Returns the exit status; asks the OS if it is not known.
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

    /// Adds a waiter, or replaces the waker of the waiter `key`. Returns its key.
    pub(crate) fn wait(&self, key: Option<WaitKey>, waker: &Waker) -> WaitKey {
        // Cloning or dropping a waker may run user code; both happen outside the borrow.
        let mut waker = waker.clone();
        current::note_waker(&waker);
        if let Some(key) = key {
            let replaced = self.waiters.borrow_mut().replace(key, waker);
            match replaced {
                Ok(_before) => return key,
                Err(unused) => waker = unused,
            }
        }
        self.waiters.borrow_mut().push(waker)
    }

    pub(crate) fn stop_waiting(&self, key: WaitKey) {
        let removed = self.waiters.borrow_mut().remove(key);
        drop(removed);
    }
}

impl Owner for ChildState {
    fn label(&self, _: &Core) -> Option<Label> {
        let which = format!("{} {:?}", self.process.id(), self.program);
        Some(Label::new("child", which))
    }

    fn wakers(&self) -> Vec<*const ()> {
        let waiters = self.waiters.borrow();
        waiters.iter().map(Waker::data).collect()
    }

    /// Closes the handle. The child process continues, and the loop reaps it in the background.
    #[inline]
    fn stop_for_good(&self, core: &Core) {
        self.abandon(core);
    }

    fn take_waiters(&self) -> Vec<Waker> {
        self.is_closed.set(true);
        let mut waiters = self.waiters.take();
        std::iter::from_fn(|| waiters.pop_before(u64::MAX)).collect()
    }
}

#[derive(Default)]
struct Children {
    /// The children that are not reaped, and those whose waiters are to be woken.
    list: Subscribers<(), ChildState, ()>,
    /// The places of the children with a process descriptor, by the key of its source.
    by_source: RefCell<SortedMap<usize, u64>>,
    /// The places of the children without a process descriptor.
    by_signal: RefCell<SortedMap<u64, ()>>,
    /// The places of the children whose descriptor has become readable.
    reported: RefCell<SortedMap<u64, ()>>,
    /// Whether the children without a descriptor are to be checked.
    ask: Cell<bool>,
}

impl Children {
    #[inline]
    fn get(&self, place: u64) -> Option<Rc<ChildState>> {
        self.list.get(((), place))
    }

    /// Returns the next waker of a waiter for an exit.
    #[inline]
    fn next(&self) -> Option<Waker> {
        loop {
            let child = self.list.first_due()?;
            let waiter = child.waiters.borrow_mut().pop_before(u64::MAX);
            match waiter {
                Some(waker) => return Some(waker),
                None => drop(self.list.pop_due()),
            }
        }
    }
}

impl Subscriber for Children {
    const ORDER: Order = Order::Children;
}

impl AfterIo for Children {
    #[inline]
    fn as_any(&self) -> &dyn Any {
        self
    }

    /// Notes that the descriptor of a child has become readable: the child has exited.
    #[inline]
    fn note_event(&self, key: usize) {
        if let Some(&place) = self.by_source.borrow().get(key) {
            self.reported.borrow_mut().insert(place, ());
        }
    }

    fn owns_event(&self, key: usize) -> bool {
        self.by_source.borrow().get(key).is_some()
    }

    fn has_pending(&self) -> bool {
        self.ask.get() || !self.reported.borrow().is_empty() || self.has_due()
    }

    fn has_due(&self) -> bool {
        self.list.has_due()
    }

    fn awaited(&self) -> usize {
        let is_awaited = |child: &Rc<ChildState>| !child.waiters.borrow().is_empty();
        self.list
            .list()
            .iter()
            .filter(|child| is_awaited(child))
            .count()
    }

    /// Reaps all children that have exited, in the order of start, before a waiter is woken.
    // Rule R255.
    #[inline]
    fn collect(&self, core: &Core) -> usize {
        if core.io.signals().passes_child() {
            self.ask.set(!self.by_signal.borrow().is_empty());
        }
        let mut places = self.reported.take();
        if self.ask.replace(false) {
            for (place, ()) in self.by_signal.borrow().iter() {
                places.insert(place, ());
            }
        }
        if process::REPORTS_ONE_BY_ONE && !places.is_empty() {
            let listed = self.list.list();
            for child in listed.iter().filter(|child| child.look().is_some()) {
                places.insert(child.place, ());
            }
        }
        let mut ended = 0;
        for child in places.iter().filter_map(|(place, ())| self.get(place)) {
            if child.look().is_some() {
                core.end_child(child);
                ended += 1;
            } else if core.unwatch(&child) {
                // The child has not exited although its descriptor was readable. The descriptor
                // reports once, so SIGCHLD triggers the next check.
                core.watch_by_signal(&child);
            }
        }
        ended
    }

    /// Wakes the waiters for exits.
    #[inline]
    fn deliver(&self, core: &Core) -> usize {
        let mut dispatched = 0;
        while let Some(waker) = self.next() {
            let origin = || Origin::new(Keeper::Child, None);
            core.dispatch(Phase::Poll, origin, || waker.wake());
            dispatched += 1;
        }
        dispatched
    }

    /// Requests a check of all children: they are not children of this process, and the check finds
    /// that out.
    #[inline]
    fn reinit_after_fork(&self, core: &Core) -> io::Result<()> {
        for child in self.list.list() {
            self.reported.borrow_mut().insert(child.place, ());
        }
        if self.has_pending() {
            core.executor.shared.inbox.signal();
        }
        Ok(())
    }

    /// Hands running children without a handle to a thread.
    #[inline]
    fn shut_down(&self) {
        self.by_source.take();
        self.by_signal.take();
        self.reported.take();
        let list = self.list.take();
        let orphans = list
            .iter()
            .filter(|child| child.is_orphan.get() && child.end.get().is_none());
        process::reap_in_background(orphans.map(|child| child.process.clone()).collect());
        for child in list {
            drop(child.watched.take());
            drop(child.waiters.take());
        }
    }
}

impl Io {
    #[inline]
    fn children(&self) -> &Children {
        self.subscriber()
    }
}

impl Core {
    /// Adds a child that was just started.
    #[inline]
    pub(crate) fn add_child(
        &self,
        header: Rc<Header>,
        process: Process,
        program: &OsStr,
    ) -> Rc<ChildState> {
        self.waits.note_outside("a child process", header.site);
        let children = self.io.children();
        let child = Rc::new(ChildState {
            header,
            process,
            program: program.into(),
            place: children.list.next_place(),
            end: Cell::new(None),
            is_announced: Cell::new(false),
            is_orphan: Cell::new(false),
            is_closed: Cell::new(false),
            watched: RefCell::new(None),
            waiters: RefCell::default(),
        });
        child.header.belongs_to(&child);
        children.list.insert((), child.clone());
        self.set_active(&child.header, true);
        if !self.watch_by_descriptor(&child) {
            self.watch_by_signal(&child);
        }
        child
    }

    #[inline]
    fn watch_by_descriptor(&self, child: &ChildState) -> bool {
        let Some(descriptor) = child.process.open() else {
            return false;
        };
        let source = self.io.add_source(child.header.clone(), false);
        let registration = Registration::new(
            self.io.poller().clone(),
            descriptor,
            source.key,
            Interest::Read,
        )
        .map_err(|(_, error)| error)
        .and_then(|registration| {
            registration.rearm(source.key, true, false)?;
            Ok(registration)
        });
        let Ok(registration) = registration else {
            self.io.remove_source(&source);
            return false;
        };
        let by_source = &self.io.children().by_source;
        by_source.borrow_mut().insert(source.key, child.place);
        child.watched.replace(Some(Watched {
            registration,
            source,
        }));
        true
    }

    #[inline]
    fn watch_by_signal(&self, child: &ChildState) {
        let children = self.io.children();
        if let (true, Some(signal)) = (children.by_signal.borrow().is_empty(), CHILD_SIGNAL) {
            // A handler for SIGCHLD can always be installed.
            let held = self.io.signals().hold(self.io.poller(), signal);
            debug_assert!(held.is_ok(), "listening to SIGCHLD: {held:?}");
        }
        children.by_signal.borrow_mut().insert(child.place, ());
        // The child may have exited before the handler was installed.
        children.ask.set(true);
        self.io.poller().notifier().notify();
    }

    #[inline]
    fn end_child(&self, child: Rc<ChildState>) {
        let children = self.io.children();
        self.executor.probe.log(Area::Process, || {
            format!("{} has exited", child.header.label(self))
        });
        self.unwatch(&child);
        let was_by_signal = children.by_signal.borrow_mut().remove(child.place);
        if let (Some(()), Some(signal)) = (was_by_signal, CHILD_SIGNAL) {
            if children.by_signal.borrow().is_empty() {
                self.io.signals().release(signal);
            }
        }
        children.list.remove(((), child.place));
        self.set_active(&child.header, false);
        child.is_announced.set(true);
        children.list.push_due(child, ());
    }

    /// Drops the process descriptor of a child. Returns `false` if it had none.
    #[inline]
    fn unwatch(&self, child: &ChildState) -> bool {
        let Some(watched) = child.watched.take() else {
            return false;
        };
        let by_source = &self.io.children().by_source;
        by_source.borrow_mut().remove(watched.source.key);
        self.io.remove_source(&watched.source);
        true
    }
}
