//! Detects that the process was forked since an object was created.
//!
//! After `fork`, the descriptors of the child refer to the kernel objects of its parent. A change
//! to an epoll instance in the child changes that of the parent. So each shared object stores the
//! generation of the process that created it, its [`Maker`].
//!
//! A drop in a child changes nothing that its parent can see: it closes the child's descriptors,
//! and no more. What a program calls by name (`close`, `shutdown`) does what it says.
#![cfg_attr(unix, allow(unsafe_code, reason = "has the C library report forks"))]

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of forks between this process and the one that first called [`count_forks`]; 0 on a
/// platform without `fork`.
pub(crate) static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Starts to count: from now on, [`GENERATION`] differs in a child.
#[cfg(unix)]
pub(crate) fn count_forks() {
    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }

    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is a function of this program and is async-signal-safe, as the child
        // of a process with threads requires. An error (no memory) leaves forks uncounted, as they
        // are before the first loop.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

#[cfg(not(unix))]
pub(crate) fn count_forks() {}

/// The process that created an object, identified by its generation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Maker {
    generation: u32,
}

impl Maker {
    #[inline]
    pub(crate) fn this_process() -> Self {
        count_forks();
        Self {
            generation: GENERATION.load(Ordering::Relaxed),
        }
    }

    /// Returns whether this process is a forked child of the maker, and so shares the object with
    /// it.
    #[inline]
    pub(crate) fn is_parent(self) -> bool {
        self.generation != GENERATION.load(Ordering::Relaxed)
    }

    /// # Errors
    ///
    /// In a forked child of the maker: its registrations and waits would act on the parent's
    /// poller.
    #[inline]
    pub(crate) fn check(self) -> io::Result<()> {
        if self.is_parent() {
            return Err(inherited());
        }
        Ok(())
    }
}

fn inherited() -> io::Error {
    io::Error::other(
        "this process was forked from the one that has made the loop: call `LoopHandle::reinit_after_fork` before it goes \
         on here",
    )
}
