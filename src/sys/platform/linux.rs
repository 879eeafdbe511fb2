//! Linux and Android: epoll, inotify, and on Linux pidfds.
//!
//! `--cfg phaseloop_portable_poller` selects the files of other platforms, to test them here.

#[cfg_attr(not(phaseloop_portable_poller), path = "../poller/epoll.rs")]
#[cfg_attr(phaseloop_portable_poller, path = "../poller/portable.rs")]
pub(in crate::sys) mod poller;

#[cfg(feature = "fs")]
#[path = "../watch/inotify.rs"]
pub(in crate::sys) mod watch;

#[cfg(feature = "process")]
#[cfg_attr(
    all(target_os = "linux", not(phaseloop_portable_poller)),
    path = "../process/pidfd.rs"
)]
#[cfg_attr(
    not(all(target_os = "linux", not(phaseloop_portable_poller))),
    path = "../process/by_signal.rs"
)]
pub(in crate::sys) mod exits;
