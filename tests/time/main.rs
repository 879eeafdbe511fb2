//! Timers, sleeps, and the clock that tests move by hand.

#[path = "../util"]
mod util {
    pub(crate) mod panics;
    pub(crate) mod sockets;
    pub(crate) mod trace;
}

mod outside;
mod sleep;
mod time;
mod timers;
mod virtual_clock;
