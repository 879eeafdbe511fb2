//! What the poll phase delivers after the rest of its batch: file changes, then signals, then exits
//! of children.
//!
//! Each of them subscribes when it is first used on the loop. A program that uses none of them does
//! not contain their code, and its loop pays for one check.
// Rules of tests/LIBUV.md: R95.
// Marks: kept out of the poll phase, since most loops have no subscriber.
#![allow(
    dead_code,
    reason = "not every feature has a subscriber, and some is for ways to wait of tests"
)]

use std::any::Any;
use std::cell::{Cell, OnceCell};
use std::io;

use super::Io;
use crate::event_loop::core::Core;

/// A kind of event that comes last in the poll phase.
pub(crate) trait AfterIo: Any {
    fn as_any(&self) -> &dyn Any;

    /// Notes what had happened when a wait ended: what comes later is left to the next wait.
    fn end_wait(&self) {}

    /// Notes an event of the kernel that belongs to no source, or to a source of a subscriber.
    fn note_event(&self, _key: usize) {}

    /// Returns whether the events of this key belong to the subscriber.
    fn owns_event(&self, _key: usize) -> bool {
        false
    }

    /// Returns whether there is something that [`end_wait`](Self::end_wait) would note.
    fn has_caught(&self) -> bool {
        false
    }

    /// Returns whether there is something to collect or to deliver.
    fn has_pending(&self) -> bool;

    /// Returns whether a panic left events that were not delivered.
    fn has_due(&self) -> bool;

    /// Returns how many processes outside are awaited.
    fn awaited(&self) -> usize {
        0
    }

    /// Takes what has happened from the kernel and returns the number of events. All subscribers
    /// collect before the first delivers, so that user code cannot change what is collected.
    fn collect(&self, core: &Core) -> usize;

    /// Runs the callbacks of the collected events and returns their number.
    fn deliver(&self, core: &Core) -> usize;

    /// Sets the subscriber up in the child process after a fork.
    fn reinit_after_fork(&self, core: &Core) -> io::Result<()>;

    /// Stops everything when the loop is dropped.
    fn shut_down(&self);
}

/// The place of a subscriber in the order of delivery.
#[derive(Clone, Copy)]
pub(crate) enum Order {
    Watches,
    Signals,
    Children,
}

/// A type that can subscribe.
pub(crate) trait Subscriber: AfterIo + Default {
    const ORDER: Order;
}

/// The subscribers, in the order of delivery. Each is created by its first user.
#[derive(Default)]
pub(super) struct AfterIoList {
    list: [OnceCell<Box<dyn AfterIo>>; 3],
    pub(super) is_used: Cell<bool>,
}

impl AfterIoList {
    /// Returns a subscriber. It is created on first use.
    pub(super) fn subscriber<S: Subscriber>(&self) -> &S {
        let subscriber = self.list[S::ORDER as usize].get_or_init(|| {
            self.note_use();
            Box::new(S::default())
        });
        let typed = (**subscriber).as_any().downcast_ref();
        typed.expect("a place belongs to one type")
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = &dyn AfterIo> {
        self.list
            .iter()
            .filter_map(|one| one.get().map(|one| &**one))
    }

    /// Notes that something comes after the wait: a subscriber, or the wakes of a hook.
    pub(super) fn note_use(&self) {
        self.is_used.set(true);
    }

    #[inline(never)]
    pub(super) fn end_wait(&self) {
        self.iter().for_each(AfterIo::end_wait);
    }

    /// Notes an event that belongs to no source, or to a source of a subscriber.
    #[cold]
    pub(super) fn note_event(&self, key: usize) {
        self.iter().for_each(|one| one.note_event(key));
    }

    /// Returns whether the events of this key belong to a subscriber.
    pub(super) fn owns_event(&self, key: usize) -> bool {
        self.iter().any(|one| one.owns_event(key))
    }

    /// Returns whether there is something that [`end_wait`](Self::end_wait) would note.
    pub(super) fn has_caught(&self) -> bool {
        self.iter().any(AfterIo::has_caught)
    }

    /// Returns whether there is something to deliver.
    pub(super) fn has_pending(&self) -> bool {
        self.iter().any(AfterIo::has_pending)
    }

    /// Returns whether a panic left events that were not delivered.
    pub(super) fn was_interrupted(&self) -> bool {
        self.iter().any(AfterIo::has_due)
    }

    /// Returns how many processes outside are awaited.
    pub(super) fn awaited(&self) -> usize {
        self.iter().map(AfterIo::awaited).sum()
    }

    pub(super) fn reinit_after_fork(&self, core: &Core) -> io::Result<()> {
        // The signals and the children first: they cannot fail.
        self.iter()
            .rev()
            .try_for_each(|one| one.reinit_after_fork(core))
    }

    pub(super) fn shut_down(&self) {
        self.iter().for_each(AfterIo::shut_down);
    }
}

impl Io {
    /// Returns the subscriber of a kind, which its first use creates.
    #[inline]
    pub(crate) fn subscriber<S: Subscriber>(&self) -> &S {
        self.after_io.subscriber()
    }
}

impl Core {
    /// Delivers file changes, signals and exits, and returns the number of events.
    // Rule R115.
    #[inline(never)]
    pub(super) fn run_after_io(&self) -> usize {
        let after_io = &self.io.after_io;
        let collected: usize = after_io.iter().map(|one| one.collect(self)).sum();
        let delivered: usize = after_io.iter().map(|one| one.deliver(self)).sum();
        collected + delivered
    }
}
