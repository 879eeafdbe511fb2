//! Lines on standard error.
//!
//! `eprintln!` panics when standard error is full, or its reader is gone. The crate prints on its
//! own account, in the middle of programs that may not print at all, so nothing of it may fail.

use std::fmt;
#[cfg(feature = "test-util")]
use std::io::IsTerminal;
use std::io::{self, Write};

/// Returns whether standard error is a terminal.
#[cfg(feature = "test-util")]
pub(crate) fn is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Prints a line on standard error, and ignores an error.
// Not inlined: a line is rare, and its formatting is large.
#[cold]
pub fn print(line: fmt::Arguments<'_>) {
    write(&format!("{line}\n"));
}

/// Writes a text to standard error, and ignores an error. A pipe in non-blocking mode that is full
/// gets a part of the text.
// One write, so that lines of several threads and processes do not mix.
#[cold]
pub fn write(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
