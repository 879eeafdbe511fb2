//! Everything that depends on the operating system; with [`raw`](crate::raw), every line of
//! `unsafe`.
//!
//! The contract, item by item; the rest of the crate knows nothing else of the platform:
//!
//! | module | offers |
//! |---|---|
//! | [`clock`] | the monotonic clock |
//! | `datagrams` | many datagrams with one system call |
//! | `descriptor` | pipes, and the modes of open descriptors |
//! | `errno` | the names of error numbers |
//! | `fs` | of files: times, owners, shared data, the figures of a file system, copying in the kernel |
//! | `interfaces` | the addresses of the machine |
//! | `names` | the name of an address |
//! | `os` | what the system tells of itself |
//! | [`poller`] | `Poller` (wait for events), `Registration` (a source that leaves the poller before it closes), `Notifier` (wake the wait from any thread) |
//! | `process` | children: how they begin, waiting for one without blocking |
//! | `signal` | what was caught for a loop, and the dispositions of the process |
//! | `socket` | sockets that do not block, accepting when descriptors run out |
//! | `stdio` | descriptors that are shared with others: their kind, and ways not to block on them |
//! | `terminal` | the settings of terminals, brought back from wherever the process ends |
//! | `unix_socket` | names, credentials and passed descriptors of Unix sockets |
//! | `watch` | the kernel's notices about files and directories |

pub(crate) mod clock;
#[cfg(feature = "net")]
pub(crate) mod datagrams;
#[cfg(unix)]
pub(crate) mod descriptor;
pub(crate) mod errno;
pub(crate) mod fork;
#[cfg(feature = "fs")]
pub(crate) mod fs;
#[cfg(all(unix, any(feature = "net", feature = "os")))]
pub(crate) mod interfaces;
#[cfg(feature = "net")]
pub(crate) mod names;
#[cfg(all(unix, feature = "os"))]
pub(crate) mod os;
pub(crate) mod poller;
#[cfg(all(unix, feature = "process"))]
pub(crate) mod process;
#[cfg(all(unix, feature = "signal"))]
pub(crate) mod signal;
#[cfg(feature = "net")]
pub(crate) mod socket;
#[cfg(unix)]
pub(crate) mod stdio;
#[cfg(all(unix, feature = "tty"))]
pub(crate) mod terminal;
#[cfg(all(unix, feature = "net"))]
pub(crate) mod unix_socket;
#[cfg(feature = "fs")]
pub(crate) mod watch;
