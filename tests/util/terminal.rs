//! A process whose terminal is a pseudo-terminal.

use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use crate::util::child::path_of;

/// Starts the test named `test` once more in a process whose terminal this is, where it runs `body`
/// and does not return.
#[track_caller]
pub(crate) fn start_in(
    test: &str,
    terminal: OwnedFd,
    stdout: impl Into<Stdio>,
    body: impl FnOnce(),
) -> Child {
    const MARK: &str = "PHASELOOP_TTY_CHILD";
    if std::env::var_os(MARK).is_some() {
        body();
        std::process::exit(0);
    }
    let child = Command::new("setsid")
        .args(["--ctty", "--wait"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &path_of(test), "--nocapture", "-q"])
        .env(MARK, "1")
        .stdin(terminal)
        .stdout(stdout)
        .stderr(Stdio::piped())
        .spawn();
    child.expect("util-linux is installed")
}
