//! The poll phase: waits for the kernel, then dispatches its events and the messages of other
//! threads.

use std::io;

use crate::clock::NEVER;
use crate::event_loop::Wait;
use crate::event_loop::core::Core;
use crate::event_loop::io::wait_hook::WaitHook;
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::probe::Origin;
use crate::sys::poller::BATCH;

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
    pub(in crate::event_loop) fn run_poll(&self, wait: Wait) -> io::Result<()> {
        // Entries that are queued from now on wait for the next turn.
        let queue = self.phases.queue(Phase::Poll);
        if !queue.is_empty() {
            queue.begin_pass();
        }
        let mut timeout = self.poll_timeout(wait).unwrap_or(NEVER);
        let mut full_batches = 0;
        loop {
            let reported = self.wait(timeout)?;
            let mut dispatched = 0;
            let has_after_io = self.io.after_io.is_used();
            if has_after_io {
                if !self.holds_signals() {
                    self.io.after_io.end_wait();
                }
                dispatched += self.run_wakes_of_hook();
            }
            // A wake-up counts as progress even if it has no callback (R90).
            if self.run_messages() {
                dispatched += 1;
            }
            if reported > 0 {
                dispatched += self.run_events();
            }
            if !queue.is_empty() {
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
    fn rest_of_wait(&self, wait: Wait) -> Option<u64> {
        let rest = self.poll_timeout(wait);
        if rest != Some(0) {
            self.note_quiet_wait();
        }
        rest
    }

    #[inline(always)]
    fn poll_timeout(&self, wait: Wait) -> Option<u64> {
        let Wait::Until(until) = wait else {
            return Some(0);
        };
        let next = self.next_timeout();
        let Some(until) = until else {
            return next;
        };
        // A limit is never [`NEVER`], which is a wait without an end.
        let limit = until.saturating_sub(self.clock().read()).min(NEVER - 1);
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
        let next = self.next_timer()?;
        let now = if next.by_real_clock {
            self.clock().read()
        } else {
            self.clock().now()
        };
        Some(next.deadline.saturating_sub(now).min(LONGEST_WAIT))
    }

    #[inline(always)]
    pub(super) fn has_work_now(&self) -> bool {
        self.stop.get()
            || (!self.ledger.has_keepers() && !self.is_kept_by_hook())
            || self.ledger.count(Keeper::Queued) > 0
            || self.ledger.count(Keeper::Closing) > 0
            || self.phases.has_idle_hooks()
            || !self.executor.are_lanes_empty()
            || self.io.shared.inbox.is_pending()
    }

    /// Asks the kernel for events, and waits for them unless `timeout` is zero; [`NEVER`] is a wait
    /// without an end. Then updates the time. Returns the number of events. An interrupted wait is
    /// a wait without events.
    #[inline(always)]
    fn wait(&self, timeout: u64) -> io::Result<usize> {
        if !self.io.events.borrow().is_empty() {
            // A panic left events of the last batch; they come first.
            self.clock().update();
            return Ok(self.io.events.borrow().len());
        }
        let is_for_tests = self.clock().is_paused() || self.io.is_shuffled();
        if is_for_tests && (timeout != 0 || self.io.is_shuffled()) {
            self.wait_in_test((timeout != NEVER).then_some(timeout))
        } else if timeout != 0 && self.io.shared.inbox.park() {
            self.wait_for_events((timeout != NEVER).then_some(timeout))
        } else {
            self.look_for_events()
        }
    }

    /// Asks the kernel for the events that are there already. The busy period ends after that.
    #[inline(always)]
    fn look_for_events(&self) -> io::Result<usize> {
        let asked = self.ask_kernel(Some(0));
        let (now, events) = (self.clock().read(), self.io.events.borrow().len());
        self.clock().set_now(now);
        let busy_since = self.counters.end_busy(now);
        self.counters.count_events(events, false);
        if !self.modes().is_unwatched() {
            self.end_busy_watched(busy_since, now);
            self.probe().begin_period();
        }
        asked?;
        Ok(events)
    }

    /// Waits for events, by the real clock.
    #[inline(always)]
    fn wait_for_events(&self, timeout: Option<u64>) -> io::Result<usize> {
        self.waiting(timeout, false, |timeout, now| {
            self.ask_kernel_at(timeout, || now)
        })
    }

    /// Waits for events on a paused clock, or on a loop whose order is shuffled.
    #[cold]
    #[inline(never)]
    fn wait_in_test(&self, timeout: Option<u64>) -> io::Result<usize> {
        self.waiting(timeout, self.clock().is_paused(), |timeout, _| {
            #[cfg(feature = "test-util")]
            if let Some(shuffled) = &self.io.shuffled {
                return self.wait_shuffled(shuffled, timeout);
            }
            self.wait_paused(timeout)
        })
    }

    /// Calls `wait` with the timeout and the time. The busy period ends before that, and another
    /// one begins after it.
    #[inline(always)]
    fn waiting(
        &self,
        mut timeout: Option<u64>,
        is_paused: bool,
        wait: impl FnOnce(Option<u64>, u64) -> io::Result<()>,
    ) -> io::Result<usize> {
        let clock = self.clock();
        let mut start = clock.read_as(is_paused);
        let busy_since = self.count_wait(start, is_paused);
        let is_unwatched = self.modes().is_unwatched();
        if !is_unwatched {
            self.end_busy_watched(busy_since, start);
            self.probe().rest();
            self.probe().begin_wait();
            // The sinks have taken time, which is no part of the wait.
            let now = clock.read();
            timeout = timeout.map(|left| left.saturating_sub(now - start));
            start = now;
            if is_paused != clock.is_paused() {
                return self.look_by_another_clock(start);
            }
        }
        let waited = wait(timeout, start);
        self.end_wait(waited, start, is_paused, is_unwatched)
    }

    /// Makes no wait, since an observer has paused the clock, or resumed it. The next wait is by
    /// that clock.
    #[cold]
    #[inline(never)]
    fn look_by_another_clock(&self, start: u64) -> io::Result<usize> {
        let asked = self.ask_kernel(Some(0));
        self.end_wait(asked, start, self.clock().is_paused(), false)
    }

    #[inline(always)]
    fn end_wait(
        &self,
        waited: io::Result<()>,
        start: u64,
        is_paused: bool,
        is_unwatched: bool,
    ) -> io::Result<usize> {
        let clock = self.clock();
        let (end, events) = (clock.read_as(is_paused), self.io.events.borrow().len());
        clock.set_now(end);
        self.count_end_of_wait(start, end, is_paused);
        self.counters.count_events(events, true);
        if !is_unwatched {
            self.probe().begin_period();
            self.probe().end_wait(start, end, events);
        }
        waited?;
        Ok(events)
    }

    /// Waits in the kernel, or inside the hook.
    #[inline(always)]
    pub(super) fn ask_kernel(&self, timeout: Option<u64>) -> io::Result<()> {
        self.ask_kernel_at(timeout, || self.clock().read())
    }

    /// Does what [`ask_kernel`](Self::ask_kernel) does, for callers that know the time. Only a hook
    /// asks for it.
    #[inline(always)]
    fn ask_kernel_at(&self, timeout: Option<u64>, now: impl FnOnce() -> u64) -> io::Result<()> {
        match self.wait_hook() {
            None => self.ask_poller(timeout),
            Some(hook) => self.ask_behind_hook(hook, timeout, now()),
        }
    }

    #[inline(always)]
    fn ask_poller(&self, timeout: Option<u64>) -> io::Result<()> {
        self.counters.count_kernel_poll();
        match self
            .io
            .poller
            .wait(&mut self.io.events.borrow_mut(), timeout)
        {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    /// Waits inside the hook, and asks the kernel only if its descriptor has become readable.
    #[cold]
    fn ask_behind_hook(
        &self,
        hook: &dyn WaitHook,
        timeout: Option<u64>,
        now: u64,
    ) -> io::Result<()> {
        if self.wait_in_hook(hook, timeout, now)? {
            self.ask_poller(Some(0))?;
            self.note_full_batch();
        } else {
            self.io.events.borrow_mut().clear();
        }
        Ok(())
    }

    /// Returns whether the last call to the kernel has left something to do.
    pub(super) fn has_arrived(&self) -> bool {
        // On platforms where the wake-up of a signal is not an event, the call has consumed it.
        self.io.after_io.has_pending() || !self.io.events.borrow().is_empty() || self.has_work_now()
    }

    /// Waits on a paused clock. Events that are there already come first; without any, and if
    /// nothing comes from outside of the loop, the clock advances to the end of the wait. If the
    /// wait has no end or a job runs on another thread, the wait is real.
    #[cold]
    fn wait_paused(&self, timeout: Option<u64>) -> io::Result<()> {
        self.ask_kernel(Some(0))?;
        if self.has_arrived() {
            return Ok(());
        }
        let can_advance = self.clock().auto_advance() && self.ledger.count(Keeper::Work) == 0;
        match timeout {
            Some(timeout) if can_advance => {
                #[cfg(any(test, feature = "test-util"))]
                if self.hears_from_peers(timeout)? {
                    return Ok(());
                }
                let end = self.clock().read().saturating_add(timeout);
                self.clock().advance_to(end);
                Ok(())
            }
            _ if self.io.shared.inbox.park() => self.ask_kernel(None),
            _ => self.ask_kernel(Some(0)),
        }
    }
}
