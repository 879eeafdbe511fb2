//! Whether the process has rights that its user has not.
#![cfg_attr(unix, allow(unsafe_code, reason = "calls of the C library"))]

/// Returns whether the process runs with the rights of another user or group, as a set-user-id
/// program does. Such a program must not do what its environment asks.
#[cfg(unix)]
pub(crate) fn is_elevated() -> bool {
    // SAFETY: the calls only read the ids of the process, and cannot fail.
    unsafe { libc::getuid() != libc::geteuid() || libc::getgid() != libc::getegid() }
}

/// Returns `false`: the platform has no such programs.
#[cfg(not(unix))]
pub(crate) fn is_elevated() -> bool {
    false
}
