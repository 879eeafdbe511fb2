//! Tests that use what a process has once: signal handlers, its allocator, its forks.
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, reason = "what tests of other systems use")
)]

#[path = "../util"]
mod util {
    pub(crate) mod child;
    #[cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]
    pub(crate) mod fork;
    pub(crate) mod gate;
    pub(crate) mod memory;
    pub(crate) mod panics;
    #[cfg(all(target_os = "linux", feature = "tty"))]
    pub(crate) mod pty;
    #[cfg(unix)]
    pub(crate) mod raise;
    #[cfg(target_os = "linux")]
    pub(crate) mod stderr;
    pub(crate) mod trace;
}

mod fork;
mod memory;
mod report_on;
mod shuffle_cost;
mod shuffled_signals;
mod signals;
#[cfg(target_os = "linux")]
mod stderr;
mod variables;
