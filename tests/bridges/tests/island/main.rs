//! A tokio runtime inside the wait of the loop.
#![cfg(unix)]

#[path = "../../../util"]
mod util {
    #[cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]
    pub(crate) mod child;
    #[cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]
    pub(crate) mod fork;
    #[allow(dead_code, reason = "others use the rest")]
    pub(crate) mod panics;
    pub(crate) mod trace;
}

mod fork;
mod island;
mod island_tasks;
