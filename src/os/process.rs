//! Resource usage and scheduling priority of processes.

use std::io;
use std::time::Duration;

use crate::sys::os::{self, RESIDENT_UNIT, RawUsage};

/// Resources used by a process or a thread since its start; see [`resource_usage`].
///
/// # Examples
///
/// ```
/// fn main() -> std::io::Result<()> {
///     let usage = phaseloop::os::resource_usage()?;
///     println!("{:?} in user mode, {} bytes at most", usage.user_time, usage.max_resident);
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceUsage {
    /// CPU time in user mode.
    pub user_time: Duration,
    /// CPU time in the kernel.
    pub system_time: Duration,
    /// Peak resident memory, in bytes.
    pub max_resident: u64,
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// Block input operations.
    pub block_reads: u64,
    /// Block output operations.
    pub block_writes: u64,
    /// Context switches because it waited.
    pub voluntary_switches: u64,
    /// Context switches because its time slice ended or a higher priority was ready.
    pub involuntary_switches: u64,
}

/// Resources used by this process, all threads together.
///
/// # Errors
///
/// Any OS error of `getrusage`.
///
/// # Examples
///
/// ```
/// fn main() -> std::io::Result<()> {
///     let usage = phaseloop::os::resource_usage()?;
///     assert!(usage.max_resident > 0);
///     Ok(())
/// }
/// ```
pub fn resource_usage() -> io::Result<ResourceUsage> {
    os::process_usage().map(ResourceUsage::from_raw)
}

/// Resources used by this thread. `max_resident` is that of the whole process.
///
/// # Errors
///
/// [`Unsupported`](io::ErrorKind::Unsupported) on platforms other than Linux; otherwise any OS
/// error of `getrusage`.
pub fn thread_resource_usage() -> io::Result<ResourceUsage> {
    os::thread_usage().map(ResourceUsage::from_raw)
}

impl ResourceUsage {
    fn from_raw(usage: RawUsage) -> Self {
        Self {
            user_time: time(usage.ru_utime.tv_sec, usage.ru_utime.tv_usec),
            system_time: time(usage.ru_stime.tv_sec, usage.ru_stime.tv_usec),
            max_resident: count(usage.ru_maxrss).saturating_mul(RESIDENT_UNIT),
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            block_reads: count(usage.ru_inblock),
            block_writes: count(usage.ru_oublock),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
        }
    }
}

/// Converts a count that the kernel keeps in a signed number.
fn count(number: impl TryInto<u64>) -> u64 {
    number.try_into().unwrap_or(0)
}

fn time(seconds: impl TryInto<u64>, microseconds: impl TryInto<u64>) -> Duration {
    Duration::from_secs(count(seconds)) + Duration::from_micros(count(microseconds))
}

/// The nice value of a process, from 19 (lowest priority) to -20; `None` is this process.
///
/// Linux keeps a nice value for each thread: `None` reads that of the calling thread, a process id
/// that of the main thread of the process. A new thread inherits the value of its creator.
///
/// # Errors
///
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for 0, which is not a process id; any OS error of
/// `getpriority`, such as `ESRCH` for a process that does not exist.
///
/// # Examples
///
/// ```
/// fn main() -> std::io::Result<()> {
///     let priority = phaseloop::os::priority(None)?;
///     assert!((-20..=19).contains(&priority));
///     Ok(())
/// }
/// ```
pub fn priority(process: Option<u32>) -> io::Result<i32> {
    os::nice_value(process).map_err(|error| error.unwrap_or_else(|| not_a_process(process)))
}

/// Sets the nice value of a process, from 19 (lowest priority) to -20; `None` is this process. On
/// Linux it applies to one thread, as described at [`priority`].
///
/// # Errors
///
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for a value outside this range, and for process
/// id 0; [`PermissionDenied`](io::ErrorKind::PermissionDenied) for a higher priority without the
/// privilege; any other OS error of `setpriority`.
///
/// # Examples
///
/// ```
/// use phaseloop::os;
///
/// fn main() -> std::io::Result<()> {
///     let nice = os::priority(None)?;
///     os::set_priority(None, nice)?; // a lower number needs the privilege
///     Ok(())
/// }
/// ```
pub fn set_priority(process: Option<u32>, priority: i32) -> io::Result<()> {
    if !(-20..=19).contains(&priority) {
        let text = format!("a priority is from -20 to 19, not {priority}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    os::set_nice_value(process, priority)
        .map_err(|error| error.unwrap_or_else(|| not_a_process(process)))
}

fn not_a_process(process: Option<u32>) -> io::Error {
    let text = format!("{} is not a process id", process.unwrap_or(0));
    io::Error::new(io::ErrorKind::InvalidInput, text)
}
