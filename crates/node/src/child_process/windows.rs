//! What child processes of Windows have: `cmd.exe`, and neither signals nor users.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use super::Exit;
use phaseloop::process::Command;
use phaseloop::signal::SignalKind;

/// The exit code of a process that was terminated from outside.
const TERMINATED: i32 = 1;

/// Returns how a process has ended. One that was killed has ended by that signal, as in libuv.
pub(super) fn exit_of(status: Option<ExitStatus>, killed_by: Option<SignalKind>) -> Exit {
    let code = status.and_then(|status| status.code());
    let signal = killed_by.filter(|_| code == Some(TERMINATED));
    Exit {
        code: code.filter(|_| signal.is_none()),
        signal,
    }
}

/// Creates a command that runs a line in a shell: `cmd.exe`, unless another is named.
pub(super) fn shell(shell: Option<&Path>, line: &str) -> Command {
    let default = || std::env::var_os("ComSpec").map_or_else(|| "cmd.exe".into(), PathBuf::from);
    let shell = shell.map_or_else(default, Path::to_owned);
    let stem = shell.file_stem().unwrap_or_default();
    let mut command = Command::new(&shell);
    if stem.eq_ignore_ascii_case("cmd") {
        // It takes the line as it is, between quotes.
        command
            .args(["/d", "/s", "/c"])
            .raw_arg(format!("\"{line}\""));
    } else {
        command.args(["-c", line]);
    }
    command
}

/// Does nothing: Windows has no numbers for users and groups.
pub(super) fn set_ids(_: &mut Command, _: Option<u32>, _: Option<u32>) {}
