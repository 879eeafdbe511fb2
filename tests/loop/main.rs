//! The loop: its phases, lanes, tasks, handles, references and reports.
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, reason = "what tests of other systems use")
)]

#[path = "../util"]
mod util {
    pub(crate) mod browser;
    pub(crate) mod child;
    pub(crate) mod facts;
    pub(crate) mod files;
    pub(crate) mod gate;
    pub(crate) mod json;
    pub(crate) mod panics;
    pub(crate) mod polls;
    pub(crate) mod pool;
    #[cfg(unix)]
    pub(crate) mod pty;
    pub(crate) mod sites;
    pub(crate) mod sockets;
    pub(crate) mod trace;
    pub(crate) mod wakers;
}

mod abort_handles;
mod async_handle;
mod attributes;
mod blocking;
mod budget;
mod circles;
mod closing;
mod contexts;
mod embed;
mod futurelock;
mod harness;
mod hooks;
mod hostile_drops;
mod job_handles;
mod join_set;
mod lanes;
mod liveness;
mod local;
mod metrics;
mod names;
mod observer;
mod panics;
mod pending;
mod phase_calls;
mod phase_order;
mod poll;
mod poll_callbacks;
mod poll_handles;
mod queue_work;
mod recorder;
mod references;
mod remote;
mod report;
mod run_modes;
mod scopes;
mod select;
// The portable poller reports other events than epoll, so other questions are asked.
#[cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]
mod shuffle;
mod sites;
mod spawn;
mod sync;
mod timeline;
mod tree;
mod two_loops;
mod unwind_safe;
mod wake_storm;
mod walk;
mod watchdog;
mod yields;
