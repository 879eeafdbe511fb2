//! Descriptors shared with other processes: their kind, and reading and writing them without
//! changing the mode that the other processes see.

#[cfg_attr(unix, path = "stdio/unix.rs")]
#[cfg_attr(windows, path = "stdio/windows.rs")]
mod platform;

pub(crate) use crate::kinds::StdioKind;
pub(crate) use platform::*;
