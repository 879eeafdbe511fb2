//! Everything that depends on the operating system; with [`raw`](crate::raw), every line of `unsafe`.
//!
//! The contract, item by item; the rest of the crate knows nothing else of the platform:
//!
//! | module | offers |
//! |---|---|
//! | [`call`] | a closure that is called once, without an allocation if it is small |
//! | [`clock`] | the monotonic clock |
//! | [`current`] | a thread-local reference to what runs further up the stack |
//! | `datagrams` | many datagrams with one system call |
//! | `descriptor` | pipes, and the modes of open descriptors |
//! | `errno` | the names of error numbers |
//! | `fs` | of files: times, owners, shared data, the figures of a file system, copying in the kernel |
//! | `home` | a value that may travel, but is used and dropped on its own thread only |
//! | `interfaces` | the addresses of the machine |
//! | `names` | the name of an address |
//! | `os` | what the system tells of itself |
//! | [`poller`] | `Poller` (wait for events), `Registration` (a source that leaves the poller before it closes), `Notifier` (wake the wait from any thread) |
//! | `process` | children: how they begin, waiting for one without blocking |
//! | [`scoped`] | a slot through which a borrowed closure can be called from deeper in the stack |
//! | `signal` | what was caught for a loop, and the dispositions of the process |
//! | `slots` | a table that is used through shared references, without the price of a `RefCell` |
//! | `socket` | sockets that do not block, accepting when descriptors run out |
//! | `stdio` | descriptors that are shared with others: their kind, and ways not to block on them |
//! | [`sync`] | the atomics, locks and threads of the inbox and of the pool, replaced by model-checked ones under `cfg(phaseloop_loom)` |
//! | `terminal` | the settings of terminals, brought back from wherever the process ends |
//! | `unix_socket` | names, credentials and passed descriptors of Unix sockets |
//! | [`thread`] | a number for each thread that is never used twice |
//! | [`unwind`] | panics that end where they are |
//! | `watch` | the kernel's notices about files and directories |

pub(crate) mod call;
pub(crate) mod clock;
pub(crate) mod current;
#[cfg(feature = "net")]
pub(crate) mod datagrams;
#[cfg(unix)]
pub(crate) mod descriptor;
pub(crate) mod errno;
pub(crate) mod fork;
#[cfg(feature = "fs")]
pub(crate) mod fs;
pub(crate) mod home;
#[cfg(all(unix, any(feature = "net", feature = "os")))]
pub(crate) mod interfaces;
#[cfg(feature = "net")]
pub(crate) mod names;
#[cfg(all(unix, feature = "os"))]
pub(crate) mod os;
pub(crate) mod poller;
#[cfg(all(unix, feature = "process"))]
pub(crate) mod process;
pub(crate) mod scoped;
#[cfg(all(unix, feature = "signal"))]
pub(crate) mod signal;
pub(crate) mod slots;
#[cfg(feature = "net")]
pub(crate) mod socket;
#[cfg(unix)]
pub(crate) mod stdio;
pub(crate) mod sync;
#[cfg(all(unix, feature = "tty"))]
pub(crate) mod terminal;
pub(crate) mod thread;
#[cfg(all(unix, feature = "net"))]
pub(crate) mod unix_socket;
pub(crate) mod unwind;
#[cfg(feature = "fs")]
pub(crate) mod watch;
