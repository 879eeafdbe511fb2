//! Detects that the process was forked since an object was created.
//!
//! After `fork`, the descriptors of the child refer to the kernel objects of its parent. A change
//! to an epoll instance in the child changes that of the parent. So each shared object stores the
//! generation of the process that created it.
#![allow(unsafe_code, reason = "has the C library report forks")]

#[cfg(unix)]
mod backend {
    use std::sync::Once;
    use std::sync::atomic::{AtomicU32, Ordering};

    static GENERATION: AtomicU32 = AtomicU32::new(0);

    /// Returns the number of forks between this process and the one that first called
    /// [`count_forks`].
    #[inline]
    pub(crate) fn generation() -> u32 {
        GENERATION.load(Ordering::Relaxed)
    }

    /// Starts to count: from now on, [`generation`] differs in a child.
    pub(crate) fn count_forks() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the handler is a function of this program and is async-signal-safe, as the
            // child of a process with threads requires. An error (no memory) leaves forks
            // uncounted, as they are before the first loop.
            unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        });
    }

    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(not(unix))]
mod backend {
    /// Returns 0: this platform has no `fork`.
    pub(crate) fn generation() -> u32 {
        0
    }

    pub(crate) fn count_forks() {}
}

pub(crate) use backend::{count_forks, generation};
