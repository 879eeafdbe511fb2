//! What processes use, and how important they are.
#![allow(
    unsafe_code,
    reason = "the use of resources is to be had from libc only"
)]

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::process::{Pid, getpriority_process, setpriority_process};

/// What this process has used since it was started, as [`resource_usage`] tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceUsage {
    /// Time in its own code.
    pub user_time: Duration,
    /// Time in the kernel on its behalf.
    pub system_time: Duration,
    /// The most memory it had at once, in bytes.
    pub max_resident: u64,
    /// Pages that were found in memory.
    pub minor_faults: u64,
    /// Pages that were read from a disk.
    pub major_faults: u64,
    /// How often a disk was read.
    pub block_reads: u64,
    /// How often a disk was written.
    pub block_writes: u64,
    /// How often it waited and let others run.
    pub voluntary_switches: u64,
    /// How often others were let run in its place.
    pub involuntary_switches: u64,
}

/// What this process has used, all its threads together.
///
/// # Errors
///
/// The system's.
///
/// # Examples
///
/// ```
/// let usage = phaseloop::os::resource_usage()?;
/// assert!(usage.max_resident > 0);
/// # std::io::Result::Ok(())
/// ```
pub fn resource_usage() -> io::Result<ResourceUsage> {
    usage_of(libc::RUSAGE_SELF)
}

/// What this thread has used; the most memory is that of the process.
///
/// # Errors
///
/// [`Unsupported`](io::ErrorKind::Unsupported) elsewhere than on Linux, else the system's.
pub fn thread_resource_usage() -> io::Result<ResourceUsage> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return usage_of(libc::RUSAGE_THREAD);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    super::unsupported()
}

fn usage_of(who: libc::c_int) -> io::Result<ResourceUsage> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: there is room for the structure; the call fills it when it succeeds. The type of `who` differs between
    // systems, its values do not.
    let usage = unsafe {
        if libc::getrusage(who as _, usage.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        usage.assume_init()
    };
    #[cfg(target_vendor = "apple")]
    const UNIT: u64 = 1;
    #[cfg(not(target_vendor = "apple"))]
    const UNIT: u64 = 1024;
    Ok(ResourceUsage {
        user_time: time(usage.ru_utime),
        system_time: time(usage.ru_stime),
        max_resident: count(usage.ru_maxrss).saturating_mul(UNIT),
        minor_faults: count(usage.ru_minflt),
        major_faults: count(usage.ru_majflt),
        block_reads: count(usage.ru_inblock),
        block_writes: count(usage.ru_oublock),
        voluntary_switches: count(usage.ru_nvcsw),
        involuntary_switches: count(usage.ru_nivcsw),
    })
}

/// A count that the system keeps in a signed number.
fn count(number: impl TryInto<u64>) -> u64 {
    number.try_into().unwrap_or(0)
}

fn time(time: libc::timeval) -> Duration {
    Duration::from_secs(count(time.tv_sec)) + Duration::from_micros(count(time.tv_usec))
}

/// How important a process is to the scheduler, from 19, the least, to -20; `None` is this process.
///
/// Linux keeps one for each thread: `None` is that of this thread, the number of a process that of its first thread. A new
/// thread begins with that of the one that starts it.
///
/// # Errors
///
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for 0, which is no process; the system's when there is no such process.
///
/// # Examples
///
/// ```
/// let priority = phaseloop::os::priority(None)?;
/// assert!((-20..=19).contains(&priority));
/// # std::io::Result::Ok(())
/// ```
pub fn priority(process: Option<u32>) -> io::Result<i32> {
    Ok(getpriority_process(pid(process)?)?)
}

/// Changes how important a process is to the scheduler, from 19, the least, to -20; `None` is this process. As for
/// [`priority`], Linux does so for one thread.
///
/// # Errors
///
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for a priority beyond these, and for the process 0;
/// [`PermissionDenied`](io::ErrorKind::PermissionDenied) for a more important one without the right to it; the system's
/// when there is no such process.
pub fn set_priority(process: Option<u32>, priority: i32) -> io::Result<()> {
    if !(-20..=19).contains(&priority) {
        let text = format!("a priority is from -20 to 19, not {priority}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(setpriority_process(pid(process)?, priority)?)
}

fn pid(process: Option<u32>) -> io::Result<Option<Pid>> {
    let Some(process) = process else {
        return Ok(None);
    };
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    pid.map(Some).ok_or_else(|| {
        let text = format!("{process} is not the number of a process");
        io::Error::new(io::ErrorKind::InvalidInput, text)
    })
}
