//! Signals for the thread that raises them.
#![allow(unsafe_code, reason = "rustix sends signals to processes only")]

use phaseloop::signal::SignalKind;

/// Has this thread catch the signal before it returns.
pub(crate) fn raise(kind: SignalKind) {
    // SAFETY: no pointers.
    let result = unsafe { libc::raise(kind.as_raw()) };
    assert_eq!(result, 0, "{kind} can be raised");
}
