//! Platforms without a file of their own, such as illumos: what `polling` offers, and no more.

#[path = "../poller/portable.rs"]
pub(in crate::sys) mod poller;

#[cfg(feature = "fs")]
#[path = "../watch/unsupported.rs"]
pub(in crate::sys) mod watch;

#[cfg(feature = "process")]
#[path = "../process/by_signal.rs"]
pub(in crate::sys) mod exits;
