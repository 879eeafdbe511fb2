//! How many seconds a cell is expected to take: for the progress line, and for what is said before
//! the start.

use crate::catalogue::{Kind, Thing, Topic, Workload};
use crate::client;

/// To start a process and to end it.
const START: f64 = 0.03;
/// The factor under callgrind, which translates the code it runs.
const START_UNDER_CALLGRIND: f64 = 0.6;

/// One run of `n` operations; the average over the runtimes.
pub(crate) fn timed(workload: &Workload, n: u64) -> f64 {
    START + preparation(workload) + work(workload, n)
}

/// Two runs, of `n` and of twice as many operations.
pub(crate) fn under_callgrind(workload: &Workload, n: u64) -> f64 {
    let slowdown = match workload.topic() {
        Topic::Sockets => 3.0,
        _ => 12.0,
    };
    2.0 * (START_UNDER_CALLGRIND + preparation(workload)) + slowdown * work(workload, 3 * n)
}

/// The kernel counts without delay; perf itself takes its time to start.
pub(crate) fn under_perf(workload: &Workload, n: u64) -> f64 {
    2.0 * (4.0 * START + preparation(workload)) + 1.3 * work(workload, 3 * n)
}

/// The factor under strace, which slows down system calls only.
pub(crate) fn under_strace(workload: &Workload, n: u64) -> f64 {
    let slowdown = match workload.topic() {
        Topic::Sockets | Topic::Pool | Topic::Lanes => 15.0,
        _ => 3.0,
    };
    2.0 * (START + preparation(workload)) + slowdown * work(workload, 3 * n)
}

/// What is there before the first operation.
fn preparation(workload: &Workload) -> f64 {
    match workload.kind {
        Kind::TcpEcho { connections, .. } | Kind::TcpRate { connections, .. } => {
            0.02 + connections as f64 * 50e-6
        }
        Kind::ReadFiles { .. } => 0.3,
        Kind::ReadPages { .. } => 0.05,
        Kind::ReadThrough { .. } => 0.05,
        Kind::TimerDrop { live } | Kind::TimerReplace { live } => live as f64 * 0.3e-6,
        Kind::Grow(Thing::Connection, size) => size as f64 * 50e-6,
        _ => 0.0,
    }
}

/// So many operations.
fn work(workload: &Workload, n: u64) -> f64 {
    let n = n as f64;
    match workload.kind {
        Kind::Immediates { at_once: 1 } | Kind::YieldImmediate => n * 1e-6,
        Kind::CrossThreadWake => n * 140e-6,
        Kind::TimerFire { live } | Kind::Grow(Thing::Timer, live) => {
            n * 3e-6 + (n / live as f64).ceil() * 12e-3
        }
        Kind::Grow(Thing::Job, _) => n * 5e-6,
        Kind::Grow(Thing::Connection, _) => n * 20e-6,
        Kind::Grow(..) => n * 0.5e-6,
        Kind::Burst(_) => n * 40e-3,
        Kind::TcpEcho { connections: 1, .. } => n * 20e-6,
        Kind::TcpEcho { bytes, .. } => n * (4e-6 + bytes as f64 * 0.5e-9),
        Kind::TcpRate { per_second, .. } => n / per_second as f64,
        Kind::UdpEcho { .. } | Kind::UdpBatched { .. } => n * 4e-6,
        Kind::Http { .. } => n * 8e-6,
        Kind::HttpWrk { .. } => client::wrk_seconds(n as u64) as f64,
        Kind::Axum { .. } => n * 10e-6,
        Kind::HttpBody { .. } => n * 0.4e-3,
        Kind::IdleHttp => n * 60e-6,
        Kind::Blocking { in_flight: 1 } => n * 15e-6,
        Kind::Blocking { .. } => n * 3e-6,
        Kind::ReadFiles { .. } => n * 15e-6,
        Kind::ReadPages { .. } => n * 8e-6,
        Kind::ReadThrough { .. } => n * 0.4e-3,
        Kind::StartStop => n * 30e-6,
        Kind::Idle => n * 1e-3,
        Kind::IdleConnection => n * 40e-6,
        Kind::ShortSleep => n * 1.1e-3,
        Kind::Alone | Kind::Hog | Kind::CompletionStorm | Kind::AcceptFlood => n * 1.3e-3,
        Kind::WakeStorm => n * 10e-3,
        _ => n * 0.2e-6,
    }
}
