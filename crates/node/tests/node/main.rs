//! Node's modules by their own rules; what Node itself prints is compared by `tests/conformance`.
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, reason = "what tests of other systems use")
)]

#[path = "../../../../tests/util"]
mod util {
    pub(crate) mod child;
    pub(crate) mod clusters;
    #[cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]
    pub(crate) mod faults;
    pub(crate) mod files;
    #[path = "../../crates/node/tests/util/http.rs"]
    pub(crate) mod http;
    pub(crate) mod panics;
    pub(crate) mod peers;
    #[cfg(target_os = "linux")]
    pub(crate) mod pty;
    #[cfg(target_os = "linux")]
    pub(crate) mod screen;
    pub(crate) mod sites;
    #[cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]
    pub(crate) mod strace;
    #[cfg(target_os = "linux")]
    pub(crate) mod terminal;
    pub(crate) mod trace;
    pub(crate) mod wakers;
}

/// Runs a program whose main future must complete.
#[track_caller]
pub(crate) fn run_to_end<T>(main: impl Future<Output = T>) {
    completed(phaseloop_node::run(main));
}

/// Runs a program on a loop. Its main future must complete.
#[track_caller]
pub(crate) fn run_on_to_end<T>(
    event_loop: &mut phaseloop::EventLoop,
    main: impl Future<Output = T>,
) {
    completed(phaseloop_node::run_on(event_loop, main));
}

/// An uncaught error resumes as a panic here.
#[track_caller]
fn completed<T>(exit: phaseloop_node::Exit<T>) {
    assert!(exit.into_output().is_some(), "the main future is pending");
}

mod cluster;
mod contexts;
mod deep;
mod events;
mod faults;
mod fetch;
mod fetch_peers;
mod fork;
mod http_client;
mod http_client_faults;
mod http_faults;
mod http_left;
mod http_limits;
mod http_peers;
mod http_server;
mod io;
mod memory_network;
mod messages;
mod npm;
mod process;
mod promises;
mod readline;
mod readline_tty;
mod reports;
mod sites;
mod streams;
mod suite;
mod system;
mod text;
mod timers;
mod timers_promises;
mod tls;
mod tls_over;
mod waits;
mod weak_this;
#[cfg(windows)]
mod windows;
mod zlib;
