//! A value that may be sent between threads, but is used and dropped on its owner thread only.
#![allow(
    unsafe_code,
    reason = "lets a value that is not `Send` pass through interfaces that ask for it"
)]

use std::fmt;
use std::mem::ManuallyDrop;

use super::thread::{self, ThreadToken};

/// Holds a value for its owner thread, which created it.
///
/// On any other thread the value is not accessible, and dropping the holder leaks it.
pub struct ThreadBound<T> {
    owner: ThreadToken,
    value: ManuallyDrop<T>,
}

// SAFETY: on other threads the value is not accessed: `get` and `get_mut` return `None`, and `drop`
// leaks it. Tokens are never reused.
unsafe impl<T> Send for ThreadBound<T> {}
// SAFETY: the same checks apply to shared references.
unsafe impl<T> Sync for ThreadBound<T> {}

impl<T> fmt::Debug for ThreadBound<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadBound").finish_non_exhaustive()
    }
}

impl<T> ThreadBound<T> {
    /// Binds a value to the calling thread.
    pub fn new(value: T) -> Self {
        Self {
            owner: thread::token(),
            value: ManuallyDrop::new(value),
        }
    }

    /// Returns the value on its owner thread, and `None` on any other.
    pub(crate) fn get(&self) -> Option<&T> {
        (self.owner == thread::token()).then_some(&*self.value)
    }

    /// Returns the value on its owner thread, and `None` on any other.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        (self.owner == thread::token()).then_some(&mut *self.value)
    }
}

impl<T> Drop for ThreadBound<T> {
    fn drop(&mut self) {
        if self.owner == thread::token() {
            // SAFETY: this is the owner thread, and the value is not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ThreadBound;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static DROPS: AtomicUsize = AtomicUsize::new(0);

    /// Owns no memory: one that leaks is nothing to a leak checker.
    struct Counted;

    impl Drop for Counted {
        fn drop(&mut self) {
            DROPS.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn away_from_home_the_value_is_neither_reached_nor_dropped() {
        let mut bound = ThreadBound::new(Counted);
        assert!(bound.get().is_some() && bound.get_mut().is_some());
        std::thread::spawn(move || {
            assert!(bound.get().is_none() && bound.get_mut().is_none());
            drop(bound);
        })
        .join()
        .unwrap();
        assert_eq!(DROPS.load(Ordering::Relaxed), 0, "leaked");
        drop(ThreadBound::new(Counted));
        assert_eq!(
            DROPS.load(Ordering::Relaxed),
            1,
            "dropped on the owner thread"
        );
    }
}
