//! Programs that could not be started.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use crate::error::{Error, code_of};
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
    match code_of(&error) {
        Some(code) if !EMITTED.contains(&code) => throw(Error::of_call(error, "spawn")),
        _ => Error::of_spawn(error, command.as_std().get_program().as_ref()),
    }
}

/// Throws `ERR_INVALID_ARG_VALUE` for a program without a name.
#[track_caller]
pub(super) fn check_name(program: &OsStr) {
    if program.is_empty() {
        invalid("The argument 'file' cannot be empty. Received ''".to_owned());
    }
}

/// Throws `ERR_INVALID_ARG_VALUE` for a program without a name, and for a NUL byte in a program or
/// an argument.
#[track_caller]
pub(super) fn check_words(program: &OsStr, arguments: &[OsString]) {
    check_text("argument", "file", program);
    check_name(program);
    for (place, argument) in arguments.iter().enumerate() {
        check_text("argument", &format!("args[{place}]"), argument);
    }
}

/// Throws `ERR_INVALID_ARG_VALUE` for a NUL byte in an option.
#[track_caller]
pub(super) fn check_options(
    cwd: Option<&Path>,
    argv0: Option<&OsStr>,
    shell: Option<&Path>,
    env: Option<&[(OsString, OsString)]>,
) {
    if let Some(cwd) = cwd {
        check_text_of(
            "property",
            "options.cwd",
            cwd.as_ref(),
            "string, Uint8Array, or URL",
        );
    }
    if let Some(shell) = shell {
        check_text("property", "options.shell", shell.as_ref());
    }
    if let Some(argv0) = argv0 {
        check_text("property", "options.argv0", argv0);
    }
    for (name, value) in env.unwrap_or_default() {
        let place = format!("options.env['{}']", name.to_string_lossy());
        check_text("property", &place, name);
        check_text("property", &place, value);
    }
}

/// Throws `ERR_INVALID_ARG_VALUE` for a NUL byte.
#[track_caller]
pub(super) fn check_text(kind: &str, name: &str, text: &OsStr) {
    check_text_of(kind, name, text, "string");
}

#[track_caller]
fn check_text_of(kind: &str, name: &str, text: &OsStr, types: &str) {
    if text.as_encoded_bytes().contains(&0) {
        let text = text.to_string_lossy().replace('\0', "\\x00");
        invalid(format!(
            "The {kind} '{name}' must be a {types} without null bytes. Received '{text}'"
        ));
    }
}

#[track_caller]
fn invalid(text: String) -> ! {
    throw(Error::type_error(text).coded("ERR_INVALID_ARG_VALUE"))
}
