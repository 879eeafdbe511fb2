//! The poll phase: wait for the kernel, then hand out what it reports and what other threads have sent.

use std::io;

use super::Wait;
use super::asyncs::Walk;
use super::core::Core;
use super::sources::{Direction, SourceState, Waiters};
use crate::executor::spawn::Message;
use crate::kinds::{Kind, Phase};
use crate::sys::poller::{BATCH, Event, Ready};

/// How many times one poll phase asks the kernel again because the last answer was full (R89).
const FULL_BATCHES: usize = 48;

/// How many wakes and calls of other threads one poll phase delivers, so that a flood of them leaves the timers their turn. A
/// turn in between costs less than one of so many tasks that are woken. The ends of jobs are not among them (R278).
const CALLS_PER_POLL: usize = 128;

impl Core {
    /// Waits for events and dispatches them; waits again if the answer was full, or if there was no waiter for any of it.
    ///
    /// What was sent or caught until the wait is over is delivered here. What comes while callbacks run is the next look's
    /// (R115, R119).
    pub(super) fn run_poll(&self, wait: Wait) -> io::Result<()> {
        let _span = self.probe.phase(Phase::Poll);
        // What is queued from now on waits for the next turn.
        if !self.poll_queue.is_empty() {
            self.poll_queue.begin_pass();
        }
        let mut timeout = self.poll_timeout(wait);
        let mut full_batches = 0;
        loop {
            self.wait(timeout)?;
            self.clock.update();
            let late = self.late.has_caught();
            let reported = self.events.borrow().len();
            // A wake-up counts, also if there is nothing to call (R90).
            let mut dispatched = usize::from(self.run_messages());
            if reported > 0 {
                dispatched += self.run_events();
            }
            if !self.poll_queue.is_empty() {
                dispatched += self.run_poll_queue();
            }
            let late = late.map_or(0, |caught| self.run_late(caught));
            dispatched += late;
            if dispatched > 0 {
                full_batches += 1;
                // A batch with signals is the last one (R96).
                if late > 0 || reported < BATCH || full_batches == FULL_BATCHES {
                    return Ok(());
                }
                timeout = Some(0);
            } else {
                // An event without a waiter, a signal of others, or the end of the wait: the deadline decides (R90, R91).
                timeout = self.poll_timeout(wait);
                if timeout == Some(0) {
                    return Ok(());
                }
            }
        }
    }

    /// Wakes those who waited for the phase when it began.
    fn run_poll_queue(&self) -> usize {
        let mut dispatched = 0;
        while let Some(entry) = self.poll_queue.next() {
            self.uncount_entry(&entry);
            self.dispatch_entry(Phase::Poll, entry);
            dispatched += 1;
        }
        dispatched
    }

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

    /// Asks the kernel for events. An interrupted wait is a wait without events.
    fn wait(&self, mut timeout: Option<u64>) -> io::Result<()> {
        if !self.events.borrow().is_empty() {
            // A panic left some; they come first.
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

    fn ask_kernel(&self, timeout: Option<u64>) -> io::Result<()> {
        match self.poller.wait(&mut self.events.borrow_mut(), timeout) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    /// The wait on a paused clock: what has happened already comes first, then the clock jumps to where the wait
    /// would have ended. `false`: there is no such time, or work on other threads is under way; wait for real.
    fn wait_paused(&self, timeout: Option<u64>) -> io::Result<bool> {
        self.ask_kernel(Some(0))?;
        // Where the wake of a signal is no event, the look has taken it.
        let is_late = self.late.any();
        if is_late || !self.events.borrow().is_empty() || self.shared.inbox.is_pending() {
            return Ok(true);
        }
        let Some(timeout) = timeout else {
            return Ok(false);
        };
        if self.liveness.count(Kind::Work) > 0 {
            return Ok(false);
        }
        self.clock
            .advance_to(self.clock.read().saturating_add(timeout));
        Ok(true)
    }

    /// Dispatches the events of the last wait; returns how many callbacks that made.
    fn run_events(&self) -> usize {
        let mut dispatched = 0;
        // Borrowed while user code runs, alone of all: the kernel is not asked again before its last answer is dealt with.
        let events = self.events.borrow();
        while let Some(Event { key, ready }) = events.next() {
            // A source that is gone gets nothing, and neither does the next tenant of its slot (R94).
            let Some(source) = self.sources.get(key) else {
                self.late.note_event(key);
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
            // Not if a panic came between: an edge is reported once, and all who wait are to be woken.
            events.advance();
            // Not before: who was woken has mostly begun to wait again.
            if !source.reads_only() && !self.late.note_child(&source) {
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

    /// Wakes those who wait for a direction that has become ready, one callback each.
    #[inline(always)]
    fn wake_waiters(&self, waiters: &Waiters) -> usize {
        let futures = if waiters.have_futures() {
            waiters.limit()
        } else {
            0
        };
        let mut dispatched = 0;
        if let Some(waker) = waiters.take_slot() {
            self.dispatch_wake(Phase::Poll, waker, |waker| waiters.keep(waker));
            dispatched += 1;
        }
        if futures > 0 {
            dispatched += self.wake_futures(waiters, futures);
        }
        dispatched
    }

    /// Wakes the futures whose number is below `limit`.
    #[inline(never)]
    fn wake_futures(&self, waiters: &Waiters, limit: u64) -> usize {
        let mut dispatched = 0;
        while let Some(waker) = waiters.next_before(limit) {
            self.dispatch_waker(Phase::Poll, waker);
            dispatched += 1;
        }
        dispatched
    }

    /// What other threads have sent: first the messages, then the async handles (R121). `false`: nothing was sent.
    fn run_messages(&self) -> bool {
        if self.messages.borrow().is_empty() {
            if !self.shared.inbox.unpark() {
                return false;
            }
            let mut messages = self.messages.borrow_mut();
            self.shared.inbox.take(&mut messages);
            messages.reverse();
        }
        // Before the messages: a handle that one of them makes is in none of this (R123).
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

    /// Delivers the ends of jobs among the messages that are left; the others come with the next turn.
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
            // The next turn does not sleep.
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
            Message::WakeRoot => self.dispatch(Phase::Poll, || self.push_root()),
            Message::Call(call) => self.dispatch(Phase::Poll, call),
            Message::Arrival(arrival) => self.dispatch(Phase::Poll, || arrival.arrive()),
        }
    }
}
