//! Timers, sleeps, and the clock that tests move.
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, reason = "what tests of other systems use")
)]

#[path = "../util"]
mod util {
    #[cfg(target_os = "linux")]
    pub(crate) mod child;
    pub(crate) mod panics;
    pub(crate) mod polls;
    pub(crate) mod sockets;
    #[cfg(target_os = "linux")]
    pub(crate) mod strace;
    pub(crate) mod trace;
}

mod instants;
mod outside;
mod precise_wait;
mod sleep;
mod time;
mod timers;
mod virtual_clock;
