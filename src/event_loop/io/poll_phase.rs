//! The poll phase: waits for the kernel, then dispatches its events and the messages of other
//! threads. The other ways to wait are in `wait.rs`.
// Marks: a turn with one event makes no call of the loop itself (rows `tcp_echo/*`, `immediates`).
// What is `inline(never)` or `cold` is the rest, which would cost that turn registers.

use std::io;

use super::sources::{Direction, SourceState, source_of};
use super::waiters::Waiters;
use crate::clock::NEVER;
use crate::event_loop::MaxWait;
use crate::event_loop::core::Core;
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::probe::{Area, Mode, Origin};
use crate::raw::call::once;
use crate::sys::poller::{BATCH, Event, Events, MAX_KEY, Ready};

/// The number of times that one poll phase asks the kernel again because the last batch was full.
// Rule R89.
const FULL_BATCHES: usize = 48;

/// The longest wait in one system call, in nanoseconds. A longer wait takes several calls.
// Rule R34.
const LONGEST_WAIT: u64 = i32::MAX as u64 * 1_000_000;

impl Core {
    /// Waits for events and dispatches them. It waits again if the batch was full, or if no event
    /// had a waiter.
    ///
    /// Messages and signals that arrive before the wait ends are delivered here. Those that arrive
    /// while callbacks run are left to the next wait.
    // Rules R115, R119.
    #[inline(always)]
    pub(in crate::event_loop) fn run_poll(&self, wait: MaxWait) -> io::Result<()> {
        // Entries that are queued from now on wait for the next turn.
        if self.phases.load(Phase::Poll) != 0 {
            self.phases.queue(Phase::Poll).begin_pass();
        }
        let mut timeout = self.poll_timeout(wait).unwrap_or(NEVER);
        let mut full_batches = 0;
        loop {
            let reported = self.wait(timeout)?;
            let mut dispatched = 0;
            // Asked once: what subscribes in a callback below has nothing from this wait.
            let has_after_io = self.io.after_io.is_used.get();
            if has_after_io {
                let way = self.waits.chosen();
                if !way.is_some_and(|way| way.holds_signals(self)) {
                    self.io.after_io.end_wait();
                }
                if way.is_some() {
                    dispatched += self.run_wakes_of_hook();
                }
            }
            // A wake-up counts as progress even if it has no callback (R90).
            // Messages that were taken and not delivered keep the inbox pending.
            if self.io.shared.inbox.unpark() {
                self.run_messages();
                dispatched += 1;
            }
            if reported > 0 {
                dispatched += self.run_events();
            }
            if self.phases.load(Phase::Poll) != 0 {
                dispatched += self.run_poll_queue();
            }
            let mut after_io = 0;
            if has_after_io {
                after_io = self.run_after_io();
                dispatched += after_io;
            }
            if dispatched > 0 {
                full_batches += 1;
                // A batch with signals is the last one of the phase (R96).
                if after_io > 0 || reported < BATCH || full_batches == FULL_BATCHES {
                    return Ok(());
                }
                timeout = 0;
            } else {
                // Without a dispatch, the work that kept the phase from sleeping is still there.
                if timeout == 0 && full_batches == 0 {
                    return Ok(());
                }
                // There was no waiter for the events, or the wait timed out: wait for the rest of
                // the time (R90, R91).
                timeout = self.rest_of_wait(wait).unwrap_or(NEVER);
                if timeout == 0 {
                    return Ok(());
                }
            }
        }
    }

    /// Runs the entries that were queued for the phase when it began.
    #[inline(never)]
    fn run_poll_queue(&self) -> usize {
        let mut dispatched = 0;
        let queue = self.phases.queue(Phase::Poll);
        while let Some((entry, site)) = queue.next() {
            self.uncount_entry(&entry);
            let origin = || Origin::new(Keeper::Queued, site);
            self.dispatch(Phase::Poll, origin, || entry.run());
            dispatched += 1;
        }
        dispatched
    }

    /// Returns how long the phase may sleep after a wait without a dispatch. It is a function of
    /// its own, to keep the path of a turn with events short.
    #[inline(never)]
    fn rest_of_wait(&self, wait: MaxWait) -> Option<u64> {
        let rest = self.poll_timeout(wait);
        if self.executor.probe.has(Mode::OTHER_WAIT) && rest != Some(0) {
            self.waits.note_quiet();
        }
        rest
    }

    #[inline(always)]
    fn poll_timeout(&self, wait: MaxWait) -> Option<u64> {
        let MaxWait::Until(until) = wait else {
            return Some(0);
        };
        let next = self.next_timeout();
        let Some(until) = until else {
            return next;
        };
        let limit = until
            .saturating_sub(self.executor.clock.read())
            .min(LONGEST_WAIT);
        Some(next.map_or(limit, |next| next.min(limit)))
    }

    /// Returns how long the poll phase may sleep, in nanoseconds: zero if there is work, otherwise
    /// until the earliest timer. `None` means without a limit.
    // Rule R32.
    #[inline(always)]
    pub(crate) fn next_timeout(&self) -> Option<u64> {
        if self.has_work_now() {
            return Some(0);
        }
        if self.phases.load(Phase::Timers) == 0 {
            return None;
        }
        let next = self.phases.next_timer()?;
        let now = if next.by_real_clock {
            self.executor.clock.read()
        } else {
            self.executor.clock.now()
        };
        Some(next.deadline.saturating_sub(now).min(LONGEST_WAIT))
    }

    /// Returns whether a wait would keep something waiting: what is to run in this turn or the
    /// next, or the end of a run that nothing keeps alive.
    #[inline(always)]
    pub(crate) fn has_work_now(&self) -> bool {
        self.stop.get()
            || (!self.ledger.has_keepers() && self.waits.keepers(&self.executor) == 0)
            || self.ledger.count(Keeper::Queued) > 0
            || self.ledger.count(Keeper::Closing) > 0
            || self.phases.load(Phase::Idle) != 0
            || !self.executor.lanes.is_empty()
            || self.io.shared.inbox.is_pending()
    }

    /// Asks for events, and waits for them unless `timeout` is zero; [`NEVER`] is a wait without an
    /// end. Then updates the time. Returns the number of events. An interrupted wait is a wait
    /// without events.
    #[inline(always)]
    fn wait(&self, timeout: u64) -> io::Result<usize> {
        if !self.io.events.borrow().is_empty() {
            // A panic left events of the last batch; they come first.
            self.executor.clock.update();
            return Ok(self.io.events.borrow().len());
        }
        if self.executor.probe.has(Mode::OTHER_WAIT) {
            if let Some(way) = self.waits.next(&self.executor.clock) {
                return way.wait(self, timeout);
            }
        }
        if timeout != 0 && self.io.shared.inbox.park() {
            let timeout = (timeout != NEVER).then_some(timeout);
            self.waiting(timeout, false, |timeout, _| self.ask_kernel(timeout))
        } else {
            self.end_look(self.ask_kernel(Some(0)))
        }
    }

    /// Ends a look at the events that are there already, and returns their number. The busy period
    /// ends, too.
    // It takes the result, not a closure, which would be a call of its own: 11 instructions a turn.
    #[inline(always)]
    pub(crate) fn end_look(&self, looked: io::Result<()>) -> io::Result<usize> {
        let (now, events) = (self.executor.clock.read(), self.io.events.borrow().len());
        self.executor.clock.set_now(now);
        let busy_since = self.counters.count_look(now, events);
        if self.executor.probe.has(Mode::WAIT) {
            self.end_busy_watched(busy_since, now);
            self.executor.probe.begin_busy(now);
        }
        looked?;
        Ok(events)
    }

    /// Calls `wait` with the timeout and the time, and returns the number of events. The busy
    /// period ends before that, and another one begins after it. The caller knows whether the clock
    /// is paused.
    #[inline(always)]
    pub(crate) fn waiting(
        &self,
        mut timeout: Option<u64>,
        mut is_paused: bool,
        wait: impl FnOnce(Option<u64>, u64) -> io::Result<()>,
    ) -> io::Result<usize> {
        let (clock, counters) = (&self.executor.clock, &self.counters);
        let pace = &self.executor.shared.pace;
        let mut start = clock.read();
        let busy_since = counters.begin_wait(start, (!is_paused).then_some(pace));
        let is_watched = self.executor.probe.has(Mode::WAIT);
        let mut is_by_another_clock = false;
        if is_watched {
            self.end_busy_watched(busy_since, start);
            self.executor.probe.begin_wait(start);
            // The observers have taken time, which is no part of the wait.
            let now = clock.read();
            timeout = timeout.map(|left| left.saturating_sub(now - start));
            start = now;
            is_by_another_clock = is_paused != clock.is_paused();
        }
        let waited = if is_by_another_clock {
            // An observer has paused the clock, or resumed it. The next wait is by that clock.
            is_paused = clock.is_paused();
            self.ask_kernel(Some(0))
        } else {
            wait(timeout, start)
        };
        let (end, events) = (clock.read(), self.io.events.borrow().len());
        clock.set_now(end);
        counters.end_wait(start, end, events, (!is_paused).then_some(pace));
        if is_paused {
            counters.publish(&self.executor);
        }
        if is_watched {
            self.executor.probe.begin_busy(end);
            self.executor.probe.end_wait(start, end, events);
        }
        waited?;
        Ok(events)
    }

    /// Makes the events of the kernel the batch of this wait. `None` waits without an end.
    #[inline(always)]
    pub(crate) fn ask_kernel(&self, timeout: Option<u64>) -> io::Result<()> {
        let polls = &self.counters.kernel_polls;
        polls.set(polls.get() + 1);
        let asked = self
            .io
            .poller
            .wait(&mut self.io.events.borrow_mut(), timeout);
        match asked {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }
}

/// The events of the kernel: each wakes the waiters of a source, or calls a poll handle.
impl Core {
    /// Dispatches the events of the last wait and returns the number of callbacks.
    // Inlined, since the poll phase is: a turn with one event makes no call for it.
    #[inline(always)]
    fn run_events(&self) -> usize {
        let mut dispatched = 0;
        // The only cell that is borrowed while user code runs. No other code borrows it mutably
        // until the next wait, which comes after the last event.
        let events = self.io.events.borrow();
        // A source that user code closes meanwhile stays in memory.
        let sources = self.io.sources.slots.hold();
        while let Some(Event { key, ready }) = events.next() {
            if key > MAX_KEY {
                // The notifier or the timer of the poller has ended the wait.
                events.advance();
                continue;
            }
            // The event of a closed source is dropped; a new source in its slot has another key
            // (R94).
            let Some(source) = source_of(&sources, key) else {
                dispatched += self.run_event_without_source(key, &events);
                continue;
            };
            source.add_ready(ready);
            // Most events concern readers only: they report data to read, and nothing else that a
            // task waits for. A stream that was registered for both directions is usually writable
            // as well.
            let is_for_readers = match ready {
                Ready::READ => true,
                Ready::READ_AND_WRITE => !source.is_awaited(Direction::Write),
                _ => false,
            };
            let mut has_changed = false;
            if !is_for_readers {
                let woken = self.wake_directions(source, ready);
                dispatched += woken;
                has_changed = woken > 0;
            } else if let Some(slot) = source.waiters(Direction::Read).end_only() {
                // The waker is in its slot again before the task is polled, which finds it there.
                self.dispatch(Phase::Poll, || self.ready_origin(source), || slot.wake());
                dispatched += 1;
            } else if source.is_awaited(Direction::Read) {
                let readers = source.waiters(Direction::Read);
                dispatched += self.wake_slot_and_futures(source, readers);
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

    /// Dispatches the next event, which belongs to a subscriber, a poll handle, or a source that
    /// was closed. Returns the number of callbacks.
    #[inline(never)]
    fn run_event_without_source(&self, key: usize, events: &Events) -> usize {
        self.io.after_io.note_event(key);
        self.run_poll_handle(key, events)
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
        if let Some(slot) = waiters.end_slot() {
            dispatch(&mut || slot.wake());
        }
        // A future that began to wait meanwhile has no lower number than the limit.
        if let Some(slot) = waiters.end_alone_before(limit) {
            dispatch(&mut || slot.wake());
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
        let name = || format!("{} ({}) is ready", header.label(self), header.site);
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
