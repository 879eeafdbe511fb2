//! Timers, sleeps, and the clock that tests move by hand.

#[path = "../util/mod.rs"]
mod util;

mod sleep;
mod time;
mod timers;
mod virtual_clock;
