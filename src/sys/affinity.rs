//! On which processors a thread runs.

use std::io;

#[cfg(any(target_os = "android", target_os = "linux"))]
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Restores the processors of the thread on drop.
pub(crate) struct Pinned {
    #[cfg(any(target_os = "android", target_os = "linux"))]
    before: CpuSet,
}

/// Returns the first `count` processors that the process may use.
///
/// # Errors
///
/// `Unsupported` if there are fewer, or on a platform that does not say.
#[cfg(any(target_os = "android", target_os = "linux"))]
pub(crate) fn places(count: usize) -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    let all = 0..CpuSet::MAX_CPU;
    let places: Vec<_> = all.filter(|place| set.is_set(*place)).take(count).collect();
    if places.len() < count {
        let text = format!(
            "{count} loops cannot be pinned to {} processors",
            places.len()
        );
        return Err(io::Error::new(io::ErrorKind::Unsupported, text));
    }
    Ok(places)
}

/// Keeps the calling thread on a processor, until the result is dropped.
#[cfg(any(target_os = "android", target_os = "linux"))]
pub(crate) fn stay(place: usize) -> io::Result<Pinned> {
    let before = sched_getaffinity(None)?;
    let mut set = CpuSet::new();
    set.set(place);
    sched_setaffinity(None, &set)?;
    Ok(Pinned { before })
}

#[cfg(any(target_os = "android", target_os = "linux"))]
impl Drop for Pinned {
    fn drop(&mut self) {
        // The processors may be taken from the process in the meantime.
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(not(any(target_os = "android", target_os = "linux")))]
pub(crate) fn places(_count: usize) -> io::Result<Vec<usize>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(any(target_os = "android", target_os = "linux")))]
pub(crate) fn stay(_place: usize) -> io::Result<Pinned> {
    Err(io::ErrorKind::Unsupported.into())
}
