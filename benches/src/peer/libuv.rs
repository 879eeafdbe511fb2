//! libuv, by its own calls: callbacks instead of tasks.
//!
//! Everything runs on the default loop of the one thread that calls [`run`]. What the callbacks
//! share is a structure of the workload that the handle's `data` points to and that outlives the
//! loop's run.

mod bursts;
mod files;
mod sockets;
mod timers;
mod victims;
mod wakes;

use std::ffi::CStr;

use libuv_sys2::{uv_default_loop, uv_loop_t, uv_run, uv_run_mode_UV_RUN_DEFAULT, uv_strerror};

use crate::catalogue::{Burst, Kind, Thing};
use crate::meter::Reading;
use crate::workload::sockets::{BUFFER, buffer_length};

/// `None` if the workload is none of libuv's.
pub(crate) fn run(kind: Kind, n: u64, slowdown: u32) -> Option<Reading> {
    // SAFETY: it has no requirements; no other code uses the loop.
    let uv = unsafe { uv_default_loop() };
    Some(match kind {
        Kind::Immediates { .. } => wakes::check_turns(uv, n),
        Kind::CrossThreadWake => wakes::cross_thread_wake(uv, n, slowdown),
        Kind::TimerDrop { live } => timers::start_stop(uv, live, n),
        Kind::TimerDropAll { live } => timers::start_stop_all(uv, live, n),
        Kind::TimerReplace { live } => timers::replace(uv, live, n),
        Kind::TimerFire { live } => timers::fire(uv, live, n, slowdown),
        Kind::StartStop => wakes::loops(n),
        Kind::ColdStart => wakes::loops(1),
        Kind::Idle => timers::rest(uv, n),
        Kind::IdleTimer | Kind::IdleSleeper => timers::idle(uv, n),
        Kind::Alone | Kind::Hog | Kind::CompletionStorm | Kind::AcceptFlood => {
            victims::run(uv, kind, n)
        }
        Kind::TcpEcho {
            connections,
            bytes,
            buffer,
        } => sockets::tcp_echo(uv, connections, buffer_length(buffer, bytes)),
        Kind::TcpRate { connections, .. } => sockets::tcp_echo(uv, connections, BUFFER),
        Kind::Grow(Thing::Connection, _) => sockets::connections(uv, n),
        Kind::Grow(Thing::Timer, size) => timers::fire(uv, size.min(n), n, slowdown),
        Kind::Grow(Thing::Job, size) => wakes::blocking(uv, size.min(n), n),
        Kind::Burst(Burst::Sleeps) => bursts::sleeps(uv, n),
        Kind::Burst(Burst::Jobs) => bursts::jobs(uv, n),
        Kind::UdpEcho { .. } => sockets::udp_echo(uv),
        Kind::IdleConnection => sockets::idle_connection(uv, n),
        Kind::Blocking { in_flight } => wakes::blocking(uv, in_flight, n),
        Kind::ReadFiles { in_flight } => files::read_files(uv, in_flight, n),
        _ => return None,
    })
}

/// The smallest server.
pub(crate) fn tcp_echo(connections: u64, buffer: usize) -> Reading {
    // SAFETY: as above.
    sockets::tcp_echo(unsafe { uv_default_loop() }, connections, buffer)
}

/// Runs the loop until nothing is left to wait for.
fn run_loop(uv: *mut uv_loop_t) {
    // SAFETY: the loop is the default one, and runs on this thread only.
    unsafe { uv_run(uv, uv_run_mode_UV_RUN_DEFAULT) };
}

/// Panics with libuv's words if a call failed.
#[track_caller]
fn check(status: i32) -> i32 {
    if status < 0 {
        // SAFETY: it returns a string that lives for ever, for errors that it knows.
        let message = unsafe { CStr::from_ptr(uv_strerror(status)) };
        panic!("libuv: {}", message.to_string_lossy());
    }
    status
}
