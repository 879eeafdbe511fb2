//! `uv_timer_t`. Handles are boxed, and live until the process ends or the loop has closed them.

use std::mem::MaybeUninit;

use libuv_sys2::{
    uv_close, uv_loop_t, uv_timer_init, uv_timer_start, uv_timer_stop, uv_timer_t, uv_update_time,
};

use super::{check, run_loop};
use crate::meter::{Meter, Reading};

const HOUR: u64 = 3_600_000;

/// Timers of one batch fire within so many milliseconds.
const FIRE_WITHIN: u64 = 10;

type Timers = Vec<Box<MaybeUninit<uv_timer_t>>>;

/// A fixed seed, so that every run uses equal numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % limit
    }

    /// Within four seconds of each other.
    fn far_away(&mut self) -> u64 {
        HOUR + self.below(4000)
    }
}

fn timers(uv: *mut uv_loop_t, n: u64) -> Timers {
    let new = || {
        let mut timer = Box::new(MaybeUninit::zeroed());
        // SAFETY: the handle stays where it is as long as the loop knows it.
        check(unsafe { uv_timer_init(uv, timer.as_mut_ptr()) });
        timer
    };
    (0..n).map(|_| new()).collect()
}

fn start(timer: &mut Box<MaybeUninit<uv_timer_t>>, milliseconds: u64) {
    let timer = timer.as_mut_ptr();
    // SAFETY: the handle is initialized.
    check(unsafe { uv_timer_start(timer, Some(nothing), milliseconds, 0) });
}

fn stop(timer: &mut Box<MaybeUninit<uv_timer_t>>) {
    // SAFETY: the handle is initialized.
    check(unsafe { uv_timer_stop(timer.as_mut_ptr()) });
}

extern "C" fn nothing(_: *mut uv_timer_t) {}

/// A handle is started and stopped while `live` others are armed.
pub(super) fn start_stop(uv: *mut uv_loop_t, live: u64, n: u64) -> Reading {
    let mut random = Random(1);
    let mut timers = timers(uv, live + 1);
    for timer in &mut timers {
        start(timer, random.far_away());
    }
    let meter = Meter::start();
    for _ in 0..n {
        stop(&mut timers[0]);
        start(&mut timers[0], random.far_away());
    }
    let reading = meter.stop();
    // The loop still knows them; it never runs again, and the process ends.
    std::mem::forget(timers);
    reading
}

/// One of them, chosen by chance, is stopped and started with another time.
pub(super) fn replace(uv: *mut uv_loop_t, live: u64, n: u64) -> Reading {
    let mut random = Random(1);
    let mut timers = timers(uv, live);
    for timer in &mut timers {
        start(timer, random.far_away());
    }
    let meter = Meter::start();
    for _ in 0..n {
        let timer = &mut timers[random.below(live) as usize];
        stop(timer);
        start(timer, random.far_away());
    }
    let reading = meter.stop();
    // As above.
    std::mem::forget(timers);
    reading
}

/// All are started, then all are stopped.
pub(super) fn start_stop_all(uv: *mut uv_loop_t, live: u64, n: u64) -> Reading {
    let mut random = Random(1);
    let mut timers = timers(uv, live);
    let meter = Meter::start();
    for _ in 0..n / live {
        for timer in &mut timers {
            start(timer, random.far_away());
        }
        timers.iter_mut().for_each(stop);
    }
    let reading = meter.stop();
    // As above.
    std::mem::forget(timers);
    reading
}

/// Handles are made, started, fire and are closed.
pub(super) fn fire(uv: *mut uv_loop_t, live: u64, n: u64, slowdown: u32) -> Reading {
    extern "C" fn fired(timer: *mut uv_timer_t) {
        // SAFETY: the handle is open, and lives until the loop has run to its end.
        unsafe { uv_close(timer.cast(), None) };
    }
    let mut random = Random(1);
    let arming = (live / 500).max(2) * u64::from(slowdown);
    let meter = Meter::start();
    for _ in 0..n / live {
        // SAFETY: the loop is the default one.
        unsafe { uv_update_time(uv) };
        let mut timers = timers(uv, live);
        for timer in &mut timers {
            let timeout = arming + random.below(FIRE_WITHIN);
            // SAFETY: the handle is initialized.
            check(unsafe { uv_timer_start(timer.as_mut_ptr(), Some(fired), timeout, 0) });
        }
        run_loop(uv);
    }
    meter.stop()
}

/// Handles that are armed take memory.
pub(super) fn idle(uv: *mut uv_loop_t, n: u64) -> Reading {
    let meter = Meter::start();
    let mut timers = timers(uv, n);
    for timer in &mut timers {
        start(timer, HOUR);
    }
    let reading = meter.stop();
    // As above.
    std::mem::forget(timers);
    reading
}

/// A loop that waits while others are armed.
pub(super) fn rest(uv: *mut uv_loop_t, milliseconds: u64) -> Reading {
    extern "C" fn over(timer: *mut uv_timer_t) {
        // SAFETY: the handle was initialized with its loop.
        unsafe { libuv_sys2::uv_stop((*timer).loop_) };
    }
    let mut timers = timers(uv, crate::workload::process::IDLE_TASKS + 1);
    for timer in &mut timers {
        start(timer, HOUR);
    }
    let mut run = |milliseconds| {
        let last = timers[0].as_mut_ptr();
        // SAFETY: the handle is initialized.
        check(unsafe { uv_timer_start(last, Some(over), milliseconds, 0) });
        run_loop(uv);
    };
    run(10);
    let meter = Meter::start();
    run(milliseconds);
    let reading = meter.stop();
    // As above.
    std::mem::forget(timers);
    reading
}
