//! Sockets and pipes: TCP, UDP, Unix sockets, name lookup, and what is built on them.

#[path = "../util/faults.rs"]
mod fault_util;
#[path = "../util/peers.rs"]
mod peer_util;
#[path = "../util/pty.rs"]
mod pty_util;
#[path = "../util/tcp.rs"]
mod tcp_util;
#[path = "../util/udp.rs"]
mod udp_util;
#[path = "../util/mod.rs"]
mod util;

mod axum_load;
mod bridges;
mod faults;
mod io_budget;
mod lookup;
mod pipe;
mod short_reads;
mod tcp;
mod tcp_faults;
mod tcp_peers;
mod tcp_rules;
mod tcp_syscalls;
mod udp;
mod udp_batch;
mod udp_peers;
mod unix;
mod unix_datagram;
mod unix_passing;
mod unix_peers;
