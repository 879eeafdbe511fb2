//! What the calling thread has used: CPU time and context switches.
#![cfg_attr(
    any(target_os = "linux", target_os = "android"),
    allow(unsafe_code, reason = "calls of the C library")
)]

/// What a thread has used since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// CPU time, in nanoseconds.
    pub(crate) cpu: u64,
    /// Context switches because the thread waited.
    pub(crate) voluntary: u64,
    /// Context switches because another thread was given the processor.
    pub(crate) involuntary: u64,
}

impl Usage {
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            voluntary: self.voluntary.saturating_sub(earlier.voluntary),
            involuntary: self.involuntary.saturating_sub(earlier.involuntary),
        }
    }
}

/// Returns what the calling thread has used; `None` where the platform does not report it.
#[cfg(target_os = "linux")]
pub(crate) fn of_thread() -> Option<Usage> {
    use std::mem::MaybeUninit;

    let mut time = MaybeUninit::uninit();
    let mut usage = MaybeUninit::uninit();
    // SAFETY: both calls write to the structures of their types that they are given, and both
    // structures are initialised if the calls return 0.
    let (time, usage): (libc::timespec, libc::rusage) = unsafe {
        if libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, time.as_mut_ptr()) != 0
            || libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) != 0
        {
            return None;
        }
        (time.assume_init(), usage.assume_init())
    };
    Some(Usage {
        cpu: number(time.tv_sec) * 1_000_000_000 + number(time.tv_nsec),
        voluntary: number(usage.ru_nvcsw),
        involuntary: number(usage.ru_nivcsw),
    })
}

/// Converts a number of the C library, whose width depends on the platform.
#[cfg(target_os = "linux")]
fn number(value: impl TryInto<u64>) -> u64 {
    value.try_into().unwrap_or(0)
}

/// Returns what the calling thread has used; `None` where the platform does not report it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn of_thread() -> Option<Usage> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::of_thread;
    use std::time::Duration;

    #[test]
    fn cpu_time_passes_while_a_thread_works_and_a_sleep_is_a_switch() {
        let before = of_thread().unwrap();
        while of_thread().unwrap().since(before).cpu < 2_000_000 {}
        let worked = of_thread().unwrap();
        std::thread::sleep(Duration::from_millis(1));
        let slept = of_thread().unwrap().since(worked);
        assert!(slept.voluntary >= 1, "{slept:?}");
    }
}
