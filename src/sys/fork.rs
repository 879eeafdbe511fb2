//! Detects that the process was forked since an object was created.
//!
//! After `fork`, the descriptors of the child refer to the kernel objects of its parent. A change
//! to an epoll instance in the child changes that of the parent. So each shared object stores the
//! generation of the process that created it, its [`Maker`](super::poller::Maker).
//!
//! A drop in a child changes nothing that its parent can see: it closes the child's descriptors,
//! and no more. What a program calls by name (`close`, `shutdown`) does what it says.
#![cfg_attr(unix, allow(unsafe_code, reason = "has the C library report forks"))]

use std::sync::atomic::AtomicU32;

/// The number of forks between this process and the one that first called [`count_forks`]; 0 on a
/// platform without `fork`.
pub(crate) static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Starts to count: from now on, [`GENERATION`] differs in a child.
#[cfg(unix)]
pub(crate) fn count_forks() {
    extern "C" fn in_child() {
        GENERATION.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
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
