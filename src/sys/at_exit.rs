//! What is called when the process exits.
#![cfg_attr(unix, allow(unsafe_code, reason = "a call of the C library"))]

/// Has `f` called at the end of `main`, or inside `std::process::exit`, on the thread that exits.
#[cfg(unix)]
pub(crate) fn call(f: extern "C" fn()) {
    // SAFETY: `f` is a safe function of this program, which may be called at any time. The call
    // fails only without memory; then `f` is not called.
    unsafe { libc::atexit(f) };
}

/// Does nothing: `f` is not called.
#[cfg(not(unix))]
pub(crate) fn call(_: extern "C" fn()) {}
