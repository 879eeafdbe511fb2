//! The events of the kernel: each wakes the waiters of a source, or calls a poll handle.

use super::sources::{Direction, SourceState};
use super::waiters::Waiters;
use crate::event_loop::core::Core;
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::sys::poller::{Event, Events, MAX_KEY, Ready};

impl Core {
    /// Dispatches the events of the last wait and returns the number of callbacks.
    pub(super) fn run_events(&self) -> usize {
        let mut dispatched = 0;
        // The only cell that is borrowed while user code runs. No other code borrows it mutably
        // until the next wait, which comes after the last event.
        let events = self.io.events.borrow();
        // A source that user code closes meanwhile stays in memory.
        let sources = self.io.sources.hold();
        while let Some(Event { key, ready }) = events.next() {
            // The event of a closed source is dropped; a new source in its slot has another key
            // (R94).
            let Some(source) = sources.get(key) else {
                dispatched += self.run_event_without_source(key, &events);
                continue;
            };
            source.add_ready(ready);
            if ready.intersects(Ready::READ) && source.is_awaited(Direction::Read) {
                dispatched += self.wake_waiters(source, Direction::Read);
            }
            let mut has_changed = false;
            if ready.intersects(Ready::WRITE) && source.is_awaited(Direction::Write) {
                dispatched += self.wake_waiters(source, Direction::Write);
                has_changed = true;
            }
            if ready.intersects(Ready::PRIORITY.with(Ready::HANG_UP)) {
                dispatched += self.wake_rare(source, ready);
                has_changed = true;
            }
            // Only now: after a panic above, the event is dispatched again. The kernel reports an
            // edge once, so the remaining waiters would otherwise never be woken.
            events.advance();
            // Only now: a reader that was woken usually waits again already, and then the count
            // stays as it is.
            if has_changed || !source.is_awaited(Direction::Read) {
                self.count_waits_after(source);
            }
        }
        dispatched
    }

    /// Dispatches the next event, which belongs to the poller itself, a subscriber, a poll handle,
    /// or a source that was closed. Returns the number of callbacks.
    #[inline(never)]
    fn run_event_without_source(&self, key: usize, events: &Events) -> usize {
        if key > MAX_KEY {
            // The notifier or the timer of the poller has ended the wait.
            events.advance();
            return 0;
        }
        self.io.after_io.note_event(key);
        self.run_poll_handle(key, events)
    }

    #[cold]
    fn wake_rare(&self, source: &SourceState, ready: Ready) -> usize {
        [Direction::Priority, Direction::HangUp]
            .into_iter()
            .filter(|direction| ready.intersects(direction.ready()))
            .map(|direction| self.wake_waiters(source, direction))
            .sum()
    }

    /// Wakes the waiters of a direction that has become ready, one callback for each.
    #[inline(always)]
    fn wake_waiters(&self, source: &SourceState, direction: Direction) -> usize {
        let waiters = source.waiters(direction);
        if !waiters.have_futures() {
            self.wake_slot(source, waiters)
        } else if let Some(waker) = waiters.take_only_future() {
            let put_back = |waker| waiters.put_back_alone(waker);
            self.dispatch_wake(Phase::Poll, || source.header.origin(), waker, put_back);
            1
        } else {
            self.wake_slot_and_futures(source, waiters)
        }
    }

    /// Wakes the waker in the slot, if it is waiting.
    #[inline(always)]
    fn wake_slot(&self, source: &SourceState, waiters: &Waiters) -> usize {
        let Some(waker) = waiters.take_slot() else {
            return 0;
        };
        let put_back = |waker| waiters.put_back(waker);
        self.dispatch_wake(Phase::Poll, || source.header.origin(), waker, put_back);
        1
    }

    /// Wakes the waker in the slot, then the futures that waited when the event was taken.
    #[inline(never)]
    fn wake_slot_and_futures(&self, source: &SourceState, waiters: &Waiters) -> usize {
        let limit = waiters.limit();
        let origin = || source.header.origin();
        let mut dispatched = self.wake_slot(source, waiters);
        // A future that began to wait meanwhile has no lower number than the limit.
        if let Some(waker) = waiters.take_alone_before(limit) {
            let put_back = |waker| waiters.put_back_alone(waker);
            self.dispatch_wake(Phase::Poll, origin, waker, put_back);
            dispatched += 1;
        }
        while let Some(waker) = waiters.next_before(limit) {
            self.dispatch_waker(Phase::Poll, origin, waker);
            dispatched += 1;
        }
        dispatched
    }

    /// Updates liveness after an event, unless the source is the descriptor of a child, whose exit
    /// is noted instead.
    fn count_waits_after(&self, source: &SourceState) {
        if source.header.kind == Keeper::Child {
            self.io.after_io.note_event(source.key);
        } else {
            source.count_waits(self);
        }
    }
}
