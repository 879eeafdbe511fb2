//! Sockets and pipes: TCP, UDP, Unix sockets, name lookup, and what is built on them.
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, reason = "what tests of other systems use")
)]

#[path = "../util"]
mod util {
    pub(crate) mod child;
    pub(crate) mod errno;
    #[cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]
    pub(crate) mod faults;
    pub(crate) mod files;
    pub(crate) mod panics;
    pub(crate) mod peers;
    pub(crate) mod polls;
    #[cfg(unix)]
    pub(crate) mod pty;
    pub(crate) mod sockets;
    #[cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]
    pub(crate) mod strace;
    pub(crate) mod tcp;
    pub(crate) mod trace;
    pub(crate) mod udp;
}

mod datagram_calls;
mod detached;
mod faults;
mod io_budget;
mod lookup;
mod pipe;
mod readiness;
mod send_file;
mod short_reads;
mod socket_options;
mod tcp;
mod tcp_faults;
mod tcp_peers;
mod tcp_rules;
mod tcp_syscalls;
mod two_directions;
mod udp;
mod udp_batch;
mod udp_faults;
mod udp_peers;
mod udp_reports;
mod udp_segments;
mod unix;
mod unix_datagram;
mod unix_passing;
mod unix_peers;
mod write_interest;
