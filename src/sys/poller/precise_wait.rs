//! A wait of epoll with a timeout in nanoseconds: `epoll_pwait2`, which Linux has since 5.11.
#![allow(
    unsafe_code,
    reason = "rustix makes the call only if the whole program gives up older kernels"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::epoll::Event;

/// Whether this process may make the call. An older kernel refuses it, and so do the filters of
/// some containers.
pub(super) static PRECISE: Precise = Precise(AtomicBool::new(true));

pub(super) struct Precise(AtomicBool);

/// The timeout as the kernel takes it, on 32 bits, too.
#[repr(C)]
struct Timeout {
    seconds: i64,
    nanoseconds: i64,
}

impl Precise {
    /// Waits for events, at most for the given time, and fills `list`, which is empty. Returns
    /// `false` without a wait if the kernel refuses the call.
    ///
    /// # Errors
    ///
    /// `Interrupted` if a signal ended the wait; otherwise any OS error.
    pub(super) fn wait(
        &self,
        queue: BorrowedFd<'_>,
        list: &mut Vec<Event>,
        nanoseconds: u64,
    ) -> io::Result<bool> {
        if !self.0.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let timeout = Timeout {
            // Both fit: at most 2^64 nanoseconds.
            seconds: (nanoseconds / 1_000_000_000) as i64,
            nanoseconds: (nanoseconds % 1_000_000_000) as i64,
        };
        debug_assert!(list.is_empty(), "the events of the last wait are taken");
        let room = list.spare_capacity_mut();
        // SAFETY: the kernel reads the timeout, and writes at most as many events as there is room
        // for. `Event` has the kernel's layout: rustix passes it on in the same way.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                queue.as_raw_fd(),
                room.as_mut_ptr(),
                libc::c_int::try_from(room.len()).unwrap_or(libc::c_int::MAX),
                &raw const timeout,
                ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        let Ok(count) = usize::try_from(count) else {
            let error = io::Error::last_os_error();
            let is_refused = matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM));
            self.0.store(!is_refused, Ordering::Relaxed);
            return if is_refused { Ok(false) } else { Err(error) };
        };
        // SAFETY: the kernel has written so many events to the start of the list.
        unsafe { list.set_len(count) };
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::{PRECISE, Precise};
    use rustix::event::epoll::{CreateFlags, create};
    use std::os::fd::AsFd;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    #[test]
    fn a_wait_is_not_rounded_up_to_a_millisecond() {
        let queue = create(CreateFlags::CLOEXEC).unwrap();
        let mut list = Vec::with_capacity(4);
        let tenth = Duration::from_micros(100);
        let mut shortest = Duration::MAX;
        for _ in 0..500 {
            let start = Instant::now();
            if !PRECISE.wait(queue.as_fd(), &mut list, 100_000).unwrap() {
                return; // a kernel before 5.11
            }
            let waited = start.elapsed();
            assert!(waited >= tenth && list.is_empty(), "{waited:?}");
            shortest = shortest.min(waited);
        }
        assert!(shortest < Duration::from_millis(1), "{shortest:?}");
    }

    #[test]
    fn a_call_that_was_refused_is_not_made_again() {
        let refused = Precise(AtomicBool::new(false));
        let queue = create(CreateFlags::CLOEXEC).unwrap();
        let mut list = Vec::with_capacity(4);
        let start = Instant::now();
        let hour = 3_600_000_000_000;
        assert!(!refused.wait(queue.as_fd(), &mut list, hour).unwrap());
        assert!(start.elapsed() < Duration::from_secs(3600) && list.is_empty());
        assert!(!refused.0.load(Ordering::Relaxed));
    }

    #[test]
    fn an_error_is_not_a_refusal() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let mut list = Vec::with_capacity(4);
        let precise = Precise(AtomicBool::new(true));
        let error = precise.wait(file.as_fd(), &mut list, 1).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        assert!(precise.0.load(Ordering::Relaxed));
    }
}
