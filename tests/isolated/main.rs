//! Tests that use what a process has once: signal handlers, its allocator, its forks.
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, reason = "what tests of other systems use")
)]

#[path = "../util"]
mod util {
    pub(crate) mod child;
    pub(crate) mod gate;
    pub(crate) mod panics;
    pub(crate) mod trace;
}

mod fork;
mod http_idle;
mod http_memory;
mod memory;
mod report_on;
mod shuffle_cost;
mod shuffled_signals;
mod signal_owners;
mod signals;
mod socket_memory;
#[cfg(target_os = "linux")]
mod stderr;
mod variables;
