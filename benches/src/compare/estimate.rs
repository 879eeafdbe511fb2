//! How many seconds a cell is expected to take: for the progress line, and for what is said before the start.

use phaseloop_benches::catalogue::{Kind, Workload};

/// To start a process and to end it.
const START: f64 = 0.03;
/// The same under callgrind, which translates what it runs.
const START_UNDER_CALLGRIND: f64 = 1.0;

/// One run of `n` operations; the average over the runtimes.
pub(crate) fn timed(workload: &Workload, n: u64) -> f64 {
    let n = n as f64;
    START
        + match workload.kind {
            Kind::TcpRate { per_second, .. } => 0.1 + n / per_second as f64,
            Kind::Idle => n / 1e3,
            Kind::Alone | Kind::Hog | Kind::CompletionStorm | Kind::AcceptFlood => n * 1.3e-3,
            Kind::WakeStorm => n * 10e-3,
            Kind::CrossThreadWake => n * 140e-6,
            Kind::TimerFire { live } => n * 3e-6 + n / live as f64 * 12e-3,
            Kind::TcpEcho { bytes, .. } => 0.05 + n * (5e-6 + bytes as f64 * 0.5e-9),
            Kind::UdpEcho { .. } | Kind::UdpBatched { .. } => n * 5e-6,
            Kind::Http { .. } => n * 8e-6,
            Kind::Blocking { .. } => n * 5e-6,
            Kind::ReadFiles { .. } => 0.4 + n * 20e-6,
            Kind::ReadThrough => 0.2 + n * 0.5e-3,
            Kind::StartStop => n * 30e-6,
            Kind::IdleConnection => 0.1 + n * 30e-6,
            Kind::TimerDrop { live } => (n + live as f64) * 0.2e-6,
            _ => n * 0.2e-6,
        }
}

/// Two runs, of `n` and of twice as many operations.
pub(crate) fn under_callgrind(workload: &Workload, n: u64) -> f64 {
    2.0 * START_UNDER_CALLGRIND + slowly(workload, n)
}

pub(crate) fn under_strace(workload: &Workload, n: u64) -> f64 {
    2.0 * START + slowly(workload, n)
}

/// What is watched is slow, unless it waits.
fn slowly(workload: &Workload, n: u64) -> f64 {
    const SLOWDOWN: f64 = 12.0;
    SLOWDOWN * (timed(workload, n) + timed(workload, 2 * n))
}
