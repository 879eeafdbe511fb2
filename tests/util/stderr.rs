//! Programs whose standard error cannot be written: what the crate prints on its own account must
//! end none of them.

use std::process::Stdio;

use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};

use super::child::in_child_with;

/// The variable by which the child knows its program.
const PROGRAM: &str = "PHASELOOP_TEST_PROGRAM";

/// A program by its name, with the variable that makes it print.
pub(crate) type Program = (&'static str, &'static str, fn());

/// Runs the program that the parent has chosen, in the child. Returns whether this is the child.
fn is_child(programs: &[Program]) -> bool {
    let Ok(name) = std::env::var(PROGRAM) else {
        return false;
    };
    let program = programs.iter().find(|program| program.0 == name);
    program.unwrap().2();
    true
}

/// Runs each program with what `stderr` returns as its standard error.
#[track_caller]
fn run_with(programs: &[Program], test: &str, stderr: impl Fn() -> Stdio) {
    if is_child(programs) {
        return;
    }
    for (name, variable, _) in programs {
        let program = format!("{PROGRAM}={name}");
        let child = in_child_with(stderr(), &["env", &program, variable], test, || ());
        let status = child.unwrap().wait().unwrap();
        assert!(status.success(), "{name}: {status}");
    }
}

/// Runs the programs with a standard error that is full.
#[track_caller]
pub(crate) fn run_with_full_file(programs: &[Program], test: &str) {
    run_with(programs, test, || {
        let full = rustix::fs::open("/dev/full", OFlags::WRONLY, Mode::empty());
        full.unwrap().into()
    });
}

/// Runs the programs with a standard error that no process reads any more.
#[track_caller]
pub(crate) fn run_without_reader(programs: &[Program], test: &str) {
    run_with(programs, test, || {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        drop(reader);
        writer.into()
    });
}

/// Runs the programs with a pipe as their standard error that is full and does not block.
#[track_caller]
pub(crate) fn run_with_full_pipe(programs: &[Program], test: &str) {
    let (_reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
    while rustix::io::write(&writer, &[b'x'; 4096]).is_ok() {}
    run_with(programs, test, || writer.try_clone().unwrap().into());
}

/// Checks that each program prints, and ends well.
#[track_caller]
pub(crate) fn assert_each_prints(programs: &[Program], test: &str) {
    if is_child(programs) {
        return;
    }
    for (name, variable, _) in programs {
        let program = format!("{PROGRAM}={name}");
        let wrapper = ["env", &program, variable];
        let child = in_child_with(Stdio::piped(), &wrapper, test, || ());
        let output = child.unwrap().wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        let prints = ["phaseloop:", "PHASELOOP"];
        let is_printed = prints.iter().any(|part| text.contains(part));
        assert!(output.status.success() && is_printed, "{name}: {text}");
    }
}
