//! Timers, sleeps, and the clock that tests move by hand.
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, reason = "what tests of other systems use")
)]

#[path = "../util"]
mod util {
    pub(crate) mod panics;
    pub(crate) mod polls;
    pub(crate) mod sockets;
    pub(crate) mod trace;
}

mod instants;
mod outside;
mod sleep;
mod time;
mod timers;
mod virtual_clock;
