//! The platform layer: all code that depends on the OS, behind an interface that does not.
//!
//! The rest of the crate uses the platform through these modules only. Together with
//! [`raw`](crate::raw), which holds `unsafe` code that needs no OS, this is the only place for
//! `unsafe`.
//!
//! | module | offers |
//! |---|---|
//! | `affinity` | on which processors a thread runs |
//! | `at_exit` | what is called when the process exits |
//! | [`clock`] | the monotonic clock |
//! | `control` | control messages: what the kernel passes beside the bytes of a message |
//! | `datagrams` | many datagrams with one system call |
//! | `descriptor` | pipes, and the flags of open descriptors |
//! | [`describe`] | the names of descriptors: `TcpListener 127.0.0.1:7000` |
//! | `ends` | the two addresses of a descriptor |
//! | `errno` | names of OS error numbers |
//! | `fork` | detection of forks |
//! | `fs` | file times, owners, reflinks, file-system statistics, copies in the kernel |
//! | `interfaces` | the addresses of the network interfaces |
//! | `names` | reverse name lookup |
//! | `os` | queries about the machine, the process and its users |
//! | `overlapped` | operations of Windows, which the kernel carries out on memory of its own |
//! | [`pipe`] | the ends of pipes |
//! | `platform` | the files for events, exits of children and changes of files, by platform |
//! | [`poller`] | `Poller` waits for events, `Registration` owns a source, `Notifier` ends a wait |
//! | `privilege` | whether the process has rights that its user has not |
//! | `process` | child processes: the steps before `exec`, pidfds, reaping; handles of processes |
//! | `send_file` | bytes of a file to a socket without a copy; which of them are cached |
//! | `signal` | the signal handler, caught signals, signal dispositions; the events of a console |
//! | `socket` | non-blocking sockets, a reserve descriptor for `accept` |
//! | `stall` | the stack of another thread |
//! | `stdio` | shared descriptors: their kind, non-blocking access without a change of mode |
//! | `terminal` | terminal settings, restored however the process ends |
//! | `unfilled` | receiving into memory that is not initialised |
//! | `unix_socket` | abstract names, credentials, passing descriptors |
//! | `usage` | CPU time and context switches of a thread |
//! | `watch` | kernel notifications about files and directories |

#[cfg(feature = "cluster")]
pub(crate) mod affinity;
pub(crate) mod at_exit;
pub(crate) mod clock;
#[cfg(all(unix, feature = "net"))]
mod control;
#[cfg(feature = "net")]
pub(crate) mod datagrams;
pub(crate) mod describe;
#[cfg(unix)]
pub(crate) mod descriptor;
#[cfg(any(test, feature = "test-util"))]
pub(crate) mod ends;
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
#[cfg(windows)]
pub(crate) mod overlapped;
pub(crate) mod pipe;
// What each platform waits for events with. This is the only list of the platforms that have a
// kqueue.
#[cfg_attr(
    any(target_os = "android", target_os = "linux"),
    path = "platform/linux.rs"
)]
#[cfg_attr(
    any(
        target_vendor = "apple",
        target_os = "dragonfly",
        target_os = "freebsd",
        target_os = "netbsd",
        target_os = "openbsd"
    ),
    path = "platform/bsd.rs"
)]
#[cfg_attr(windows, path = "platform/windows.rs")]
mod platform;
pub(crate) mod poller;
pub(crate) mod privilege;
#[cfg(feature = "process")]
#[cfg_attr(windows, path = "process/windows.rs")]
pub(crate) mod process;
#[cfg(all(feature = "fs", feature = "net"))]
pub(crate) mod send_file;
#[cfg(feature = "signal")]
#[cfg_attr(windows, path = "signal/windows.rs")]
pub(crate) mod signal;
#[cfg(feature = "net")]
pub(crate) mod socket;
#[cfg(feature = "probe")]
pub(crate) mod stall;
pub(crate) mod stdio;
#[cfg(all(unix, feature = "tty"))]
pub(crate) mod terminal;
#[cfg(feature = "net")]
pub(crate) mod unfilled;
#[cfg(all(unix, feature = "net"))]
pub(crate) mod unix_socket;
#[cfg(feature = "probe")]
pub(crate) mod usage;
#[cfg(feature = "fs")]
pub(crate) mod watch;
