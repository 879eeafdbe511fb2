//! Tests that use what a process has once: signal handlers, its allocator, its forks.
//! the C library.
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
mod shuffled_signals;
mod signal_owners;
mod signals;
mod socket_memory;
mod variables;
