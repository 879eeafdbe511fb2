//! What child processes of Unix have: signals, users, groups, and the shell `/bin/sh`.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use super::Exit;
use phaseloop::process::Command;
use phaseloop::signal::SignalKind;

/// Returns how a process has ended.
pub(super) fn exit_of(status: Option<ExitStatus>, _killed_by: Option<SignalKind>) -> Exit {
    Exit {
        code: status.and_then(|status| status.code()),
        signal: status
            .and_then(|status| status.signal())
            .map(SignalKind::from_raw),
    }
}

/// Creates a command that runs a line in a shell.
pub(super) fn shell(shell: Option<&Path>, line: &str) -> Command {
    let mut command = Command::new(shell.unwrap_or(Path::new("/bin/sh")));
    command.args(["-c", line]);
    command
}

/// Sets the user and the group of a process.
pub(super) fn set_ids(command: &mut Command, user: Option<u32>, group: Option<u32>) {
    if let Some(user) = user {
        command.uid(user);
    }
    if let Some(group) = group {
        command.gid(group);
    }
}
