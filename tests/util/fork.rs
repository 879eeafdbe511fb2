//! Real forks, without `exec`.
//!
//! Each test runs in a process of its own, so that no other thread holds a lock when it forks. A
//! child ends by itself after a minute, should it hang.
#![allow(unsafe_code, reason = "forks")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::child::in_child;

/// Runs `body` in a process of its own with one thread of interest: that of the test.
#[track_caller]
pub(crate) fn alone(test: &str, body: impl FnOnce()) {
    if let Some(child) = in_child(&[], test, body) {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
    }
}

/// Calls `body` in a forked child; it has to return.
pub(crate) fn fork(body: impl FnOnce()) -> Forked {
    // SAFETY: the child goes on with this thread alone and ends by `_exit`; the other threads of
    // the test harness wait, and hold no lock that is needed here.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: no pointers.
            unsafe { libc::alarm(60) };
            let is_fine = catch_unwind(AssertUnwindSafe(body)).is_ok();
            // SAFETY: ends the child without running what belongs to its parent.
            unsafe { libc::_exit(i32::from(!is_fine)) }
        }
        child => Forked { child },
    }
}

/// A forked child.
pub(crate) struct Forked {
    child: libc::pid_t,
}

impl Forked {
    /// Waits for the child, which has to have come to its end.
    pub(crate) fn join(self) {
        let mut status = 0;
        // SAFETY: `status` has room for the answer.
        let waited = unsafe { libc::waitpid(self.child, &raw mut status, 0) };
        assert_eq!((waited, status), (self.child, 0), "the child has failed");
    }
}
