//! Where a process runs, how long at most, and with how many open files.

/// Server and client have a core each: the first and the last that the process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Server,
    Client,
}

/// Stays on one core from now on. Without effect where there is only one.
pub(crate) fn pin(side: Side) {
    let mut set = std::mem::MaybeUninit::<libc::cpu_set_t>::zeroed();
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: the pointer is valid for the time of the call, and a set of zeroes is a valid one.
    let allowed = unsafe {
        libc::sched_getaffinity(0, size, set.as_mut_ptr());
        set.assume_init()
    };
    // SAFETY: the numbers are below the size of the set.
    let mut cpus =
        (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &allowed) });
    let cpu = match side {
        Side::Server => cpus.next(),
        Side::Client => cpus.next_back(),
    };
    let Some(cpu) = cpu else { return };
    // SAFETY: as above.
    unsafe {
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut one);
        libc::sched_setaffinity(0, size, &raw const one);
    }
}

/// Ends the process after the longest limit that the driver accepts: one that outlives its driver
/// does not stay for ever.
pub(crate) fn die_in_time() {
    const SECONDS: u32 = crate::LONGEST_LIMIT as u32;
    // SAFETY: it takes no pointer, and no code here handles the signal.
    unsafe { libc::alarm(SECONDS) };
}

/// Permits as many open files as the process may have: many systems permit a thousand at first.
pub(crate) fn allow_many_files() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the pointers are valid for the time of the calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}
