//! Whether the process has been forked since something was made.
//!
//! A child after `fork` has copies of the descriptors of its parent that stand for the same kernel
//! objects. What it does to an epoll instance happens to that of its parent. So whatever is shared
//! that way remembers the generation of the process that has made it.
#![allow(unsafe_code, reason = "has the C library tell of forks")]

#[cfg(unix)]
mod backend {
    use std::sync::Once;
    use std::sync::atomic::{AtomicU32, Ordering};

    static GENERATION: AtomicU32 = AtomicU32::new(0);

    /// How many forks lie between this process and the one that has first asked.
    #[inline]
    pub(crate) fn generation() -> u32 {
        GENERATION.load(Ordering::Relaxed)
    }

    /// From now on, [`generation`] is another one in a child.
    pub(crate) fn count_forks() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the handler is a function of this program, and does what a child of a process
            // with threads may do. An error (no memory) leaves forks uncounted, as they are before
            // the first loop.
            unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        });
    }

    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(not(unix))]
mod backend {
    /// There are no forks.
    pub(crate) fn generation() -> u32 {
        0
    }

    pub(crate) fn count_forks() {}
}

pub(crate) use backend::{count_forks, generation};
