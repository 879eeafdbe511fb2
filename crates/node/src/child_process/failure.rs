//! Programs that could not be started.

use std::io;

use crate::error::Error;
use crate::reason::throw;
use phaseloop::os_error;
use phaseloop::process::Command;

/// The errors that are emitted. As in Node, the others are thrown.
const EMITTED: [&str; 5] = ["EACCES", "EAGAIN", "EMFILE", "ENFILE", "ENOENT"];

/// Returns the error of a start, for the process to emit.
///
/// # Panics
///
/// Throws an error that does not depend on what the system has and permits at the moment.
#[track_caller]
pub(super) fn of_start(error: io::Error, command: &Command) -> Error {
    let has_nul = error.kind() == io::ErrorKind::InvalidInput && os_error(&error).is_none();
    if has_nul {
        // The standard library has replaced the text with the NUL byte by another.
        let text =
            "The program, an argument or the environment must be a string without null bytes";
        throw(Error::type_error(text).coded("ERR_INVALID_ARG_VALUE"));
    }
    let error = Error::of_spawn(error, command.as_std().get_program().as_ref());
    match error.code() {
        Some(code) if EMITTED.contains(&code) => error,
        Some(code) => {
            let text = format!("spawn {code}");
            throw(Error::with_code(code.to_owned(), text).caused_by(error))
        }
        None => error,
    }
}
