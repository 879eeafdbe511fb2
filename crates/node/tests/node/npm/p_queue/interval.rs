//! How many tasks start in an interval.

use std::rc::Rc;

use phaseloop_node::{
    Emitter, clear_interval, clear_timeout, queue_microtask, set_interval, set_timeout,
};

use super::{PQueue, RATE_LIMIT, RATE_LIMIT_CLEARED, change, date_now};

impl PQueue {
    pub(super) fn ignores_interval(&self) -> bool {
        self.options.interval_cap == usize::MAX || self.options.interval == 0
    }

    pub(super) fn interval_allows_another(&self) -> bool {
        self.ignores_interval() || self.used_in_interval() < self.options.interval_cap
    }

    fn used_in_interval(&self) -> usize {
        match self.options.strict {
            true => self.strict_ticks.borrow().len(),
            false => self.interval_count.get(),
        }
    }

    fn drop_old_ticks(&self, now: u64) {
        let mut ticks = self.strict_ticks.borrow_mut();
        while ticks
            .front()
            .is_some_and(|tick| now - tick >= self.options.interval)
        {
            ticks.pop_front();
        }
    }

    pub(super) fn roll_back_interval(self: &Rc<Self>) {
        if self.ignores_interval() {
            return;
        }
        match self.options.strict {
            true => _ = self.strict_ticks.borrow_mut().pop_back(),
            false => change(&self.interval_count, -1),
        }
        self.schedule_rate_update();
    }

    pub(super) fn is_interval_paused_at(self: &Rc<Self>, now: u64) -> bool {
        let end = if self.options.strict {
            self.drop_old_ticks(now);
            let ticks = self.strict_ticks.borrow();
            let is_full = ticks.len() >= self.options.interval_cap;
            is_full.then(|| ticks[0] + self.options.interval)
        } else if self.interval_timer.borrow().is_none() {
            let end = self.interval_end.get().filter(|end| *end >= now);
            if end.is_none() {
                self.reset_interval_count();
            }
            end
        } else {
            None
        };
        let mut timer = self.resume_timer.borrow_mut();
        if let (Some(end), None) = (end, &*timer) {
            let queue = self.clone();
            *timer = Some(set_timeout(end - now, move || queue.resume_interval()));
        }
        end.is_some()
    }

    fn reset_interval_count(&self) {
        let carried = self.options.carryover_interval_count;
        self.interval_count
            .set(if carried { self.pending() } else { 0 });
    }

    fn resume_interval(self: &Rc<Self>) {
        self.resume_timer.take();
        self.pass_interval();
        self.begin_interval();
    }

    pub(super) fn begin_interval(self: &Rc<Self>) {
        let has_timer = self.interval_timer.borrow().is_some();
        if self.ignores_interval() || has_timer || self.options.strict {
            return;
        }
        let queue = self.clone();
        let timer = set_interval(self.options.interval, move |_| queue.pass_interval());
        self.interval_timer.replace(Some(timer));
        self.set_interval_end();
    }

    fn set_interval_end(&self) {
        let end = date_now() + self.options.interval;
        self.interval_end.set(Some(end));
    }

    fn pass_interval(self: &Rc<Self>) {
        if !self.options.strict {
            if self.interval_timer.borrow().is_some() {
                match (self.interval_count.get(), self.pending()) {
                    (0, 0) => self.clear_interval_timer(),
                    _ => self.set_interval_end(),
                }
            }
            self.reset_interval_count();
        }
        self.process_queue();
        self.schedule_rate_update();
    }

    pub(super) fn clear_interval_timer(&self) {
        if let Some(timer) = self.interval_timer.take() {
            clear_interval(&timer);
        }
    }

    pub(super) fn clear_resume_timer(&self) {
        if let Some(timer) = self.resume_timer.take() {
            clear_timeout(&timer);
        }
    }

    pub(super) fn schedule_rate_update(self: &Rc<Self>) {
        if !self.ignores_interval() && !self.has_rate_update.replace(true) {
            let queue = self.clone();
            queue_microtask(move || {
                queue.has_rate_update.set(false);
                queue.update_rate_limit();
            });
        }
    }

    pub(super) fn update_rate_limit(&self) {
        let can_be = !self.ignores_interval() && self.size() > 0;
        if can_be && self.options.strict {
            self.drop_old_ticks(date_now());
        }
        let is_limited = can_be && self.used_in_interval() >= self.options.interval_cap;
        if self.is_rate_limited.replace(is_limited) != is_limited {
            let event = if is_limited {
                RATE_LIMIT
            } else {
                RATE_LIMIT_CLEARED
            };
            self.emit(event, ());
        }
    }
}
