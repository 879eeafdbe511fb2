//! macOS and the BSDs: kqueue.

#[path = "../kqueue.rs"]
pub(in crate::sys) mod kqueue;

#[path = "../poller/kqueue.rs"]
pub(in crate::sys) mod poller;

#[cfg(feature = "fs")]
#[path = "../watch/kqueue.rs"]
pub(in crate::sys) mod watch;

#[cfg(feature = "process")]
#[path = "../process/kqueue.rs"]
pub(in crate::sys) mod exits;
