//! Tests that use what a process has once: signal handlers, its allocator, its forks, functions of
//! the C library.

#[path = "../util/udp.rs"]
mod udp_util;
#[path = "../util/mod.rs"]
mod util;

mod fork;
mod memory;
mod signal_owners;
mod signals;
mod udp_faults;
