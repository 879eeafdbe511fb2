//! Thread identity that is cheap to read and never reused.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Identifies a thread of the process. Unlike an address or an OS thread id, it is not reused after
/// the thread has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadToken(u32);

/// Returns the token of the calling thread.
///
/// It is one thread-local read; `std::thread::current().id()` also clones an `Arc`.
pub(crate) fn token() -> ThreadToken {
    #[cfg(not(phaseloop_loom))]
    thread_local! {
        /// Zero until the first call on the thread.
        static TOKEN: Cell<u32> = const { Cell::new(0) };
    }
    // loom runs the threads of a model on one OS thread.
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
