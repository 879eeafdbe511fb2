//! Where a process runs, and how long at most.

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

/// A process that hangs is ended by the system, so that the suite goes on.
pub(crate) fn die_in_time() {
    const SECONDS: u32 = 180;
    // SAFETY: it takes no pointer, and no code here handles the signal.
    unsafe { libc::alarm(SECONDS) };
}
