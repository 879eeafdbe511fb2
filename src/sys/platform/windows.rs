//! Windows: sockets and handles by `polling`, changes of directories. `sys/process/windows.rs` has
//! the exits of children.

#[path = "../poller/portable.rs"]
pub(in crate::sys) mod poller;

#[cfg(feature = "fs")]
#[path = "../watch/windows.rs"]
pub(in crate::sys) mod watch;
