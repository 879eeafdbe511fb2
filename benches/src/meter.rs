//! What is read before and after the measured part of a workload.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::latency::Latencies;

/// Allocations since the start of the process; counted by the `allocs` binary only.
pub static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// Bytes that are allocated now; counted by the `allocs` binary only.
pub static LIVE_BYTES: AtomicU64 = AtomicU64::new(0);

/// What the measured part took.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// CPU time of the process, all threads: waiting does not count.
    pub cpu: Duration,
    /// Time on the wall, or what the workload measured itself.
    pub wall: Duration,
    /// The part of the CPU time that was the kernel's, from 0 to 1.
    pub kernel: f64,
    /// How often a thread of the process gave up its core to wait.
    pub switches: u64,
    pub allocations: u64,
    /// How much more is allocated than before.
    pub live_bytes: u64,
    /// How much more memory is resident than before.
    pub resident_bytes: u64,
    /// What a victim of the workload had to wait, each time.
    pub latencies: Option<Latencies>,
}

impl Reading {
    /// One line a figure, as the driver reads them.
    pub fn print(&self) {
        println!("cpu {}", self.cpu.as_nanos());
        println!("kernel {}", self.kernel);
        println!("wall {}", self.wall.as_nanos());
        println!("switches {}", self.switches);
        println!("allocations {}", self.allocations);
        println!("live {}", self.live_bytes);
        println!("resident {}", self.resident_bytes);
        if let Some(latencies) = &self.latencies {
            latencies.print();
        }
    }
}

/// A measurement under way.
pub(crate) struct Meter {
    resident_bytes: u64,
    allocations: u64,
    live_bytes: u64,
    usage: libc::rusage,
    cpu: Duration,
    wall: Instant,
}

impl Meter {
    pub(crate) fn start() -> Self {
        Self {
            resident_bytes: resident_bytes(),
            allocations: ALLOCATIONS.load(Ordering::Relaxed),
            live_bytes: LIVE_BYTES.load(Ordering::Relaxed),
            usage: usage(),
            cpu: cpu_time(),
            wall: Instant::now(),
        }
    }

    pub(crate) fn stop(self) -> Reading {
        let wall = self.wall.elapsed();
        let cpu = cpu_time() - self.cpu;
        let usage = usage();
        let allocations = ALLOCATIONS.load(Ordering::Relaxed) - self.allocations;
        let live_bytes = LIVE_BYTES.load(Ordering::Relaxed);
        Reading {
            cpu,
            wall,
            kernel: kernel_share(&self.usage, &usage),
            // How often a thread of the process went to sleep of itself.
            switches: (usage.ru_nvcsw - self.usage.ru_nvcsw) as u64,
            allocations,
            live_bytes: live_bytes.saturating_sub(self.live_bytes),
            resident_bytes: resident_bytes().saturating_sub(self.resident_bytes),
            latencies: None,
        }
    }
}

/// CPU time, all threads: waiting for a deadline, or for another process, does not count.
fn cpu_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is valid for the time of the call.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0, "every Unix has this clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What the process has used so far, all threads.
fn usage() -> libc::rusage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for the time of the call, and a structure of zeroes is a valid
    // one.
    unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    }
}

/// The system divides the CPU time into its own and the program's by samples, one a tick.
fn kernel_share(before: &libc::rusage, after: &libc::rusage) -> f64 {
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let kernel = seconds(after.ru_stime) - seconds(before.ru_stime);
    let program = seconds(after.ru_utime) - seconds(before.ru_utime);
    kernel / (kernel + program).max(f64::MIN_POSITIVE)
}

/// The resident memory of the process; zero where the system does not say.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kilobytes
        .and_then(|kilobytes| kilobytes.parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}

/// A wall clock for what is waited for, not worked.
pub(crate) struct Stopwatch {
    total: Duration,
}

impl Stopwatch {
    pub(crate) fn new() -> Self {
        Self {
            total: Duration::ZERO,
        }
    }

    pub(crate) fn measure(&mut self, part: impl FnOnce()) {
        let start = Instant::now();
        part();
        self.total += start.elapsed();
    }

    pub(crate) fn total(&self) -> Duration {
        self.total
    }
}
