//! The events of the kernel: each wakes the waiters of a source, or calls a poll handle.

use super::sources::{Direction, SourceState};
use super::waiters::Waiters;
use crate::event_loop::core::Core;
use crate::event_loop::dispatch::once;
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::probe::{Area, Origin};
use crate::sys::poller::{Event, Events, MAX_KEY, Ready};

impl Core {
    /// Dispatches the events of the last wait and returns the number of callbacks.
    // Inlined, since the poll phase is: a turn with one event makes no call for it.
    #[inline(always)]
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
            let mut has_changed = false;
            if !is_for_readers(source, ready) {
                let woken = self.wake_directions(source, ready);
                dispatched += woken;
                has_changed = woken > 0;
            } else if source.is_awaited(Direction::Read) {
                dispatched += self.wake_readers(source);
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

    /// Wakes the waiters of all directions that an event reports: readers first, then writers, then
    /// the rare ones.
    #[inline(never)]
    fn wake_directions(&self, source: &SourceState, ready: Ready) -> usize {
        Direction::ALL
            .into_iter()
            .filter(|direction| ready.intersects(direction.ready()))
            .map(|direction| match source.is_awaited(direction) {
                true => self.wake_slot_and_futures(source, source.waiters(direction)),
                false => 0,
            })
            .sum()
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

    /// Wakes the readers of a source, one callback for each.
    #[inline(always)]
    fn wake_readers(&self, source: &SourceState) -> usize {
        let waiters = source.waiters(Direction::Read);
        let origin = || self.ready_origin(source);
        // The waker goes back before the task is polled, so that the poll finds it stored.
        if let Some(waker) = waiters.take_only_slot() {
            self.dispatch(Phase::Poll, origin, || {
                waker.wake_by_ref();
                waiters.put_back(waker);
            });
            1
        } else if let Some(waker) = waiters.take_only_future() {
            self.dispatch(Phase::Poll, origin, || {
                waker.wake_by_ref();
                waiters.put_back_alone(waker);
            });
            1
        } else {
            self.wake_slot_and_futures(source, waiters)
        }
    }

    /// Wakes the waker in the slot, then the futures that waited when the event was taken.
    #[inline(never)]
    fn wake_slot_and_futures(&self, source: &SourceState, waiters: Waiters<'_>) -> usize {
        let limit = waiters.limit();
        let mut dispatched = 0;
        // One copy of the poll is enough for what is rare.
        let mut dispatch = |wake: &mut dyn FnMut()| {
            self.dispatch(Phase::Poll, || self.ready_origin(source), wake);
            dispatched += 1;
        };
        if let Some(waker) = waiters.take_slot() {
            dispatch(&mut once(|| {
                waker.wake_by_ref();
                waiters.put_back(waker);
            }));
        }
        // A future that began to wait meanwhile has no lower number than the limit.
        if let Some(waker) = waiters.take_alone_before(limit) {
            dispatch(&mut once(|| {
                waker.wake_by_ref();
                waiters.put_back_alone(waker);
            }));
        }
        while let Some(waker) = waiters.next_before(limit) {
            dispatch(&mut once(|| waker.wake()));
        }
        dispatched
    }

    /// Returns the origin of a wake, and names the source in the debug log.
    #[cold]
    fn ready_origin(&self, source: &SourceState) -> Origin {
        let header = &source.header;
        let name = || format!("{} ({}) is ready", header.label(self), header.site());
        self.executor.probe.log(Area::Io, name);
        header.origin()
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

/// Returns whether an event concerns readers only, as most do: it reports data to read, and nothing
/// else that a task waits for. A stream that was registered for both directions is usually writable
/// as well.
#[inline(always)]
fn is_for_readers(source: &SourceState, ready: Ready) -> bool {
    ready == Ready::READ
        || ready == Ready::READ.with(Ready::WRITE) && !source.is_awaited(Direction::Write)
}
