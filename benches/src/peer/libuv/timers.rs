//! `uv_timer_t`.

use libuv_sys2::{uv_loop_t, uv_timer_init, uv_timer_start, uv_timer_stop, uv_timer_t};

use super::check;
use crate::meter::{Meter, Reading};

const HOUR: u64 = 3_600_000;

/// Deadlines within four seconds, the same in every run.
fn far_away(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1);
    HOUR + (*state >> 33) % 4000
}

/// A handle is started and stopped while `live` others are armed.
pub(super) fn start_stop(uv: *mut uv_loop_t, live: u64, n: u64) -> Reading {
    let mut random = 1;
    let mut timers: Vec<_> = (0..=live)
        .map(|_| Box::new(std::mem::MaybeUninit::<uv_timer_t>::zeroed()))
        .collect();
    for timer in &mut timers {
        let timer = timer.as_mut_ptr();
        // SAFETY: the handle stays where it is until the process ends.
        unsafe {
            check(uv_timer_init(uv, timer));
            check(uv_timer_start(
                timer,
                Some(nothing),
                far_away(&mut random),
                0,
            ));
        }
    }
    let timer = timers[0].as_mut_ptr();
    let meter = Meter::start();
    for _ in 0..n {
        // SAFETY: the handle is initialized.
        unsafe {
            check(uv_timer_stop(timer));
            check(uv_timer_start(
                timer,
                Some(nothing),
                far_away(&mut random),
                0,
            ));
        }
    }
    let reading = meter.stop();
    // The loop still knows them; it never runs again, and the process ends.
    std::mem::forget(timers);
    reading
}

extern "C" fn nothing(_: *mut uv_timer_t) {}
