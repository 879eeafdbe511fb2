//! Child processes, channels to them, standard streams, terminals, and what the OS says of itself.
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, reason = "what tests of other systems use")
)]

#[path = "../util"]
mod util {
    pub(crate) mod child;
    pub(crate) mod errno;
    #[cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]
    pub(crate) mod faults;
    pub(crate) mod files;
    pub(crate) mod panics;
    pub(crate) mod polls;
    #[cfg(unix)]
    pub(crate) mod pty;
    pub(crate) mod screen;
    #[cfg(target_os = "linux")]
    pub(crate) mod strace;
    #[cfg(all(target_os = "linux", feature = "tty"))]
    pub(crate) mod terminal;
    pub(crate) mod trace;
    pub(crate) mod wakers;
}

mod channel;
mod channel_faults;
mod os;
mod os_errors;
mod process;
mod process_faults;
mod process_stdio;
mod process_storm;
mod stdio;
mod tty;
