//! What waits for the phases, one structure in each file, and the passes over them (`run_timers`,
//! `run_closing`, `run_hooks`, `run_queue`). A structure returns one entry at a time and runs no
//! user code; the pass hands the entry to `dispatch.rs`.

pub(crate) mod after_io;
pub(crate) mod asyncs;
pub(crate) mod callback;
#[cfg(all(unix, feature = "process"))]
pub(crate) mod children;
#[cfg(not(all(unix, feature = "process")))]
#[path = "phases/no_children.rs"]
mod children;
pub(crate) mod closing;
pub(crate) mod hooks;
pub(crate) mod jobs;
pub(crate) mod polls;
pub(crate) mod queue;
#[cfg(all(unix, feature = "signal"))]
pub(crate) mod signals;
#[cfg(not(all(unix, feature = "signal")))]
#[path = "phases/no_signals.rs"]
mod signals;
pub(crate) mod sources;
pub(crate) mod timers;
pub(crate) mod wait_list;
#[cfg(feature = "fs")]
pub(crate) mod watches;
#[cfg(not(feature = "fs"))]
#[path = "phases/no_watches.rs"]
mod watches;
