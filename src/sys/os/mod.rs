//! What the system says of itself: thin calls, without a loop.
//!
//! Linux tells most of it in text files that it makes up when they are read. Their readers take the text, so that tests
//! can hand them any.

pub(crate) mod cpu;
pub(crate) mod machine;
pub(crate) mod memory;
pub(crate) mod process;
pub(crate) mod random;
pub(crate) mod user;

use std::io;

/// A small file of the system's, whole. Errors name it.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn read(path: &str) -> io::Result<String> {
    std::fs::read_to_string(path)
        .map_err(|error| io::Error::new(error.kind(), format!("read \"{path}\": {error}")))
}

/// The error of a file that does not say what it should.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn not_in(path: &str, what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("read \"{path}\": no {what}"),
    )
}

/// The error of what has no way to be asked on this system.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn unsupported<T>() -> io::Result<T> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "known on Linux only",
    ))
}
