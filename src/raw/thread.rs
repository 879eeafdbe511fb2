//! Thread identity that is cheap to read and never reused.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names one thread of the process for good: unlike an address or a system thread id, the number of a
/// thread that ended is not given to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadToken(u32);

/// The token of the calling thread.
///
/// A thread-local read, which `std::thread::current().id()` is not: that counts a reference to the thread.
pub(crate) fn token() -> ThreadToken {
    #[cfg(not(phaseloop_loom))]
    thread_local! {
        /// Zero until the thread first asks.
        static TOKEN: Cell<u32> = const { Cell::new(0) };
    }
    // The threads of a model share one thread of the system.
    #[cfg(phaseloop_loom)]
    loom::thread_local! {
        static TOKEN: Cell<u32> = Cell::new(0);
    }
    static NEXT: AtomicU64 = AtomicU64::new(1);

    TOKEN.with(|token| {
        if token.get() == 0 {
            let next = NEXT.fetch_add(1, Ordering::Relaxed);
            token.set(u32::try_from(next).expect("fewer than 2^32 threads were ever started"));
        }
        ThreadToken(token.get())
    })
}

#[cfg(test)]
mod tests {
    use super::token;

    #[test]
    fn tokens_are_stable_and_distinct() {
        let here = token();
        assert_eq!(here, token());
        let there = std::thread::spawn(token).join().unwrap();
        assert_ne!(here, there);
        let later = std::thread::spawn(token).join().unwrap();
        assert_ne!(there, later);
    }
}
