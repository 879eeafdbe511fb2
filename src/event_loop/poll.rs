//! The poll phase: waits for the kernel, then dispatches its events and the messages of other
//! threads.

use std::io;

use super::Wait;
use super::core::Core;
use super::phases::asyncs::Walk;
use super::phases::sources::{Direction, SourceState, Waiters};
use crate::executor::message::Message;
use crate::keeper::Keeper;
use crate::sys::poller::{BATCH, Event, Ready};
use crate::turn::Phase;

/// The number of times that one poll phase asks the kernel again because the last batch was full.
// Rule R89.
const FULL_BATCHES: usize = 48;

/// The number of wakes and calls of other threads that one poll phase delivers. The limit keeps a
/// flood of messages from starving the timers. A turn in between is cheap: it costs less than one
/// of so many woken tasks. Completions of jobs do not count.
// Rule R278.
const CALLS_PER_POLL: usize = 128;

impl Core {
    /// Waits for events and dispatches them. It waits again if the batch was full, or if no event
    /// had a waiter.
    ///
    /// Messages and signals that arrive before the wait ends are delivered here. Those that arrive
    /// while callbacks run are left to the next wait.
    // Rules R115, R119.
    pub(super) fn run_poll(&self, wait: Wait) -> io::Result<()> {
        let _span = self.probe.phase(Phase::Poll);
        // Entries that are queued from now on wait for the next turn.
        if !self.poll_queue.is_empty() {
            self.poll_queue.begin_pass();
        }
        let mut timeout = self.poll_timeout(wait);
        let mut full_batches = 0;
        loop {
            self.wait(timeout)?;
            self.clock.update();
            let caught = self.after_io.has_caught();
            let reported = self.events.borrow().len();
            // A wake-up counts as progress even if it has no callback (R90).
            let mut dispatched = usize::from(self.run_messages());
            if reported > 0 {
                dispatched += self.run_events();
            }
            if !self.poll_queue.is_empty() {
                dispatched += self.run_poll_queue();
            }
            let after_io = caught.map_or(0, |caught| self.run_after_io(caught));
            dispatched += after_io;
            if dispatched > 0 {
                full_batches += 1;
                // A batch with signals is the last one of the phase (R96).
                if after_io > 0 || reported < BATCH || full_batches == FULL_BATCHES {
                    return Ok(());
                }
                timeout = Some(0);
            } else {
                // Without a dispatch, the work that kept the phase from sleeping is still there.
                if timeout == Some(0) && full_batches == 0 {
                    return Ok(());
                }
                // There was no waiter for the events, or the wait timed out: wait for the rest of
                // the time (R90, R91).
                timeout = self.rest_of_wait(wait);
                if timeout == Some(0) {
                    return Ok(());
                }
            }
        }
    }

    /// Runs the entries that were queued for the phase when it began.
    fn run_poll_queue(&self) -> usize {
        let mut dispatched = 0;
        while let Some(entry) = self.poll_queue.next() {
            self.uncount_entry(&entry);
            self.dispatch_entry(Phase::Poll, entry);
            dispatched += 1;
        }
        dispatched
    }

    /// Returns how long the phase may sleep after a wait without a dispatch. It is a function of
    /// its own, to keep the path of a turn with events short.
    #[inline(never)]
    fn rest_of_wait(&self, wait: Wait) -> Option<u64> {
        self.poll_timeout(wait)
    }

    #[inline]
    fn poll_timeout(&self, wait: Wait) -> Option<u64> {
        let Wait::Until(until) = wait else {
            return Some(0);
        };
        let next = self.next_timeout();
        let Some(until) = until else {
            return next;
        };
        let limit = until.saturating_sub(self.clock.read());
        Some(next.map_or(limit, |next| next.min(limit)))
    }

    /// Waits for events. An interrupted wait is a wait without events.
    fn wait(&self, mut timeout: Option<u64>) -> io::Result<()> {
        if !self.events.borrow().is_empty() {
            // A panic left events of the last batch; they come first.
            return Ok(());
        }
        if self.clock.is_paused() && timeout != Some(0) {
            if self.wait_paused(timeout)? {
                return Ok(());
            }
            timeout = None;
        }
        if timeout != Some(0) && !self.shared.inbox.park() {
            timeout = Some(0);
        }
        self.ask_kernel(timeout)
    }

    #[inline(always)]
    fn ask_kernel(&self, timeout: Option<u64>) -> io::Result<()> {
        match self.poller.wait(&mut self.events.borrow_mut(), timeout) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    /// Waits on a paused clock. Events that are there already come first; without any, the clock
    /// advances to the end of the wait. Returns `false` if the wait has no end or a job runs on
    /// another thread: then the wait must be real.
    #[cold]
    fn wait_paused(&self, timeout: Option<u64>) -> io::Result<bool> {
        self.ask_kernel(Some(0))?;
        // On platforms where the wake-up of a signal is not an event, the call above has consumed
        // it.
        let is_after_io_due = self.after_io.has_pending();
        if is_after_io_due || !self.events.borrow().is_empty() || self.shared.inbox.is_pending() {
            return Ok(true);
        }
        let Some(timeout) = timeout else {
            return Ok(false);
        };
        if self.liveness.count(Keeper::Work) > 0 {
            return Ok(false);
        }
        self.clock
            .advance_to(self.clock.read().saturating_add(timeout));
        Ok(true)
    }

    /// Dispatches the events of the last wait and returns the number of callbacks.
    fn run_events(&self) -> usize {
        let mut dispatched = 0;
        // The only cell that is borrowed while user code runs. No other code borrows it mutably
        // until the next wait, which comes after the last event.
        let events = self.events.borrow();
        while let Some(Event { key, ready }) = events.next() {
            // The event of a closed source is dropped; a new source in its slot has another key
            // (R94).
            let Some(source) = self.sources.get(key) else {
                self.after_io.note_event(key);
                dispatched += self.run_poll_handle(key, &events);
                continue;
            };
            source.add_ready(ready);
            if ready.intersects(Ready::READ) && source.is_awaited(Direction::Read) {
                dispatched += self.wake_waiters(source.waiters(Direction::Read));
            }
            if ready.intersects(Ready::WRITE) && source.is_awaited(Direction::Write) {
                dispatched += self.wake_waiters(source.waiters(Direction::Write));
            }
            if ready.intersects(Ready::PRIORITY.with(Ready::HANG_UP)) {
                dispatched += self.wake_rare(&source, ready);
            }
            // Only now: after a panic above, the event is dispatched again. The kernel reports an
            // edge once, so the remaining waiters would otherwise never be woken.
            events.advance();
            // Only now: the woken task usually waits again already, and the count stays as it is.
            if !source.reads_only() && !self.after_io.note_child(&source) {
                source.count_waits(self);
            }
        }
        dispatched
    }

    #[cold]
    fn wake_rare(&self, source: &SourceState, ready: Ready) -> usize {
        [Direction::Priority, Direction::HangUp]
            .into_iter()
            .filter(|direction| ready.intersects(direction.ready()))
            .map(|direction| self.wake_waiters(source.waiters(direction)))
            .sum()
    }

    /// Wakes the waiters of a direction that has become ready, one callback for each.
    #[inline(always)]
    fn wake_waiters(&self, waiters: &Waiters) -> usize {
        if waiters.have_futures() {
            self.wake_slot_and_futures(waiters)
        } else {
            self.wake_slot(waiters)
        }
    }

    /// Wakes the waker in the slot, if it is waiting.
    #[inline(always)]
    fn wake_slot(&self, waiters: &Waiters) -> usize {
        let Some(waker) = waiters.take_slot() else {
            return 0;
        };
        self.dispatch_wake(Phase::Poll, waker, |waker| waiters.put_back(waker));
        1
    }

    /// Wakes the waker in the slot, then the futures that waited when the event was taken.
    #[inline(never)]
    fn wake_slot_and_futures(&self, waiters: &Waiters) -> usize {
        let limit = waiters.limit();
        let mut dispatched = self.wake_slot(waiters);
        while let Some(waker) = waiters.next_before(limit) {
            self.dispatch_waker(Phase::Poll, waker);
            dispatched += 1;
        }
        dispatched
    }

    /// Delivers what other threads have sent: first the messages, then the async handles.
    /// Returns `false` if nothing was sent.
    // Rule R121.
    fn run_messages(&self) -> bool {
        if self.messages.borrow().is_empty() {
            if !self.shared.inbox.unpark() {
                return false;
            }
            let mut messages = self.messages.borrow_mut();
            self.shared.inbox.take(&mut messages);
            messages.reverse();
        }
        // The walk is taken before the messages run, so that a handle that a message creates is not
        // visited (R123).
        let walk = self.asyncs.walk();
        let mut calls = 0;
        while calls < CALLS_PER_POLL {
            let Some(message) = self.messages.borrow_mut().pop() else {
                break;
            };
            calls += usize::from(!message.is_end_of_job());
            self.dispatch_message(message);
        }
        if !self.messages.borrow().is_empty() {
            self.run_ends_of_jobs();
        }
        self.run_asyncs(walk);
        true
    }

    /// Delivers the completions of jobs among the remaining messages. The other messages wait for
    /// the next turn.
    #[cold]
    fn run_ends_of_jobs(&self) {
        let left = self.messages.take().into_iter();
        let (ends, calls): (Vec<_>, Vec<_>) = left.partition(Message::is_end_of_job);
        let count = ends.len();
        self.messages
            .borrow_mut()
            .extend(calls.into_iter().chain(ends));
        for _ in 0..count {
            let end = self.messages.borrow_mut().pop();
            if let Some(end) = end {
                self.dispatch_message(end);
            }
        }
        if !self.messages.borrow().is_empty() {
            // Keeps the next turn from sleeping.
            self.shared.inbox.signal();
        }
    }

    fn run_asyncs(&self, mut walk: Walk) {
        while let Some(handle) = self.asyncs.next(&mut walk) {
            let mut again = true;
            while again {
                self.dispatch(Phase::Poll, || handle.callback.call());
                again = handle.again.take();
            }
        }
    }

    fn dispatch_message(&self, message: Message) {
        match message {
            Message::Wake(runnable) => self.dispatch_woken(Phase::Poll, runnable),
            Message::WakeMainFuture => self.dispatch(Phase::Poll, || self.push_main_future()),
            Message::Call(call) => self.dispatch(Phase::Poll, call),
            Message::Arrival(arrival) => self.dispatch(Phase::Poll, || arrival.arrive()),
        }
    }
}
