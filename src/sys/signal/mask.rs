//! Sets of signals, and which signals a thread blocks. All functions are async-signal-safe.
#![allow(unsafe_code, reason = "a set of signals is a C structure")]

use std::io;
use std::mem::MaybeUninit;

/// Returns the set of these signals.
pub(in crate::sys) fn of(numbers: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the first call fills the set. The others change it; with a number that is no signal
    // they do nothing.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for number in numbers {
            libc::sigaddset(set.as_mut_ptr(), *number);
        }
        set.assume_init()
    }
}

#[cfg(feature = "process")]
pub(in crate::sys) fn contains(set: &libc::sigset_t, number: i32) -> bool {
    // SAFETY: the call reads the set.
    unsafe { libc::sigismember(set, number) == 1 }
}

/// Changes which signals this thread blocks, as `how` (`SIG_BLOCK`, `SIG_SETMASK`) says. Returns
/// those that it has blocked before.
pub(in crate::sys) fn change(how: libc::c_int, set: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut before = MaybeUninit::uninit();
    // SAFETY: the call reads `set`, and fills `before` if it succeeds.
    unsafe {
        match libc::pthread_sigmask(how, set, before.as_mut_ptr()) {
            0 => Ok(before.assume_init()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }
}
