//! Random bytes from the system.

use std::io;

/// Fills a buffer with random bytes, good enough for keys.
///
/// It may wait while the machine starts, never later. [`random`](crate::os::random) waits on the pool.
///
/// # Errors
///
/// The system's.
///
/// # Examples
///
/// ```
/// let mut key = [0; 32];
/// phaseloop::os::fill_random(&mut key)?;
/// assert_ne!(key, [0; 32]);
/// # std::io::Result::Ok(())
/// ```
pub fn fill_random(buffer: &mut [u8]) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::rand::{GetRandomFlags, getrandom};
        let mut filled = 0;
        while filled < buffer.len() {
            let rest = &mut buffer[filled..];
            filled += rustix::io::retry_on_intr(|| getrandom(&mut *rest, GetRandomFlags::empty()))?;
        }
        Ok(())
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        use std::io::Read;
        std::fs::File::open("/dev/urandom")?.read_exact(buffer)
    }
}
