//! Random bytes from the kernel.

use std::future::Future;
use std::io;
use std::panic::Location;

use crate::blocking::Work;
use crate::event_loop::ledger::jobs::Purpose;
use crate::pool::Class;
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys;

/// The most bytes that one call of [`random`] returns.
// R336.
const MOST_RANDOM: usize = i32::MAX as usize;

/// Fills a buffer with random bytes, suitable for keys.
///
/// The call can block shortly after boot, while the kernel's generator has not been seeded.
/// [`random`] does not block the loop then.
///
/// # Errors
///
/// Any OS error of `getrandom`, or of reading `/dev/urandom` on platforms other than Linux.
///
/// # Examples
///
/// ```
/// fn main() -> std::io::Result<()> {
///     let mut key = [0; 32];
///     phaseloop::os::fill_random(&mut key)?;
///     assert_ne!(key, [0; 32]);
///     Ok(())
/// }
/// ```
pub fn fill_random(buffer: &mut [u8]) -> io::Result<()> {
    sys::os::fill_random(buffer)
}

/// Returns random bytes, suitable for keys. They are made on the thread pool and delivered in the
/// poll phase.
///
/// # Errors
///
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for more than 2³¹ − 1 bytes; otherwise the errors
/// of [`fill_random`].
///
/// # Cancel safety
///
/// Dropping the future takes the job out of the pool's queue, or discards its result.
///
/// # Panics
///
/// When the future is awaited and no loop runs on this thread.
///
/// # Examples
///
/// ```
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let token = phaseloop::os::random(16).await?;
///     assert_eq!(token.len(), 16);
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn random(length: usize) -> impl Future<Output = io::Result<Vec<u8>>> {
    random_at(length, Location::caller())
}

async fn random_at(length: usize, site: Site) -> io::Result<Vec<u8>> {
    if length > MOST_RANDOM {
        let text = format!("at most {MOST_RANDOM} random bytes at once");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let job = move || {
        let mut bytes = vec![0; length];
        fill_random(&mut bytes).map(|()| bytes)
    };
    let purpose = Purpose::new(Class::Cpu, "random");
    let handle = LoopHandle::current_for("os::random", Some(site));
    Work::submit(&handle, purpose, job)?.await
}
