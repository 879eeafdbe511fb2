//! What child processes of Windows have: `cmd.exe`, and neither signals nor users.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use super::{ChildProcess, Exit, Stdio};
use phaseloop::process::Command;
use phaseloop::signal::SignalKind;

/// The exit code of a process that was terminated from outside.
const TERMINATED: i32 = 1;

/// The flags of `CreateProcess` for a process with a console and a process group of its own.
const DETACHED: u32 = 0x0000_0008 | 0x0000_0200;

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

/// Does nothing: the command line of Windows begins with the program.
pub(super) fn set_name(_: &mut Command, _: Option<&OsStr>) {}

/// Detaches a process from the console.
pub(super) fn set_detached(command: &mut Command, is_detached: bool) {
    if is_detached {
        command.creation_flags(DETACHED);
    }
}

/// The further pipes: none.
pub(super) struct Pipes;

/// Does nothing: processes of Windows have no numbers for further descriptors.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the signature is shared with the platform that has descriptors"
)]
pub(super) fn add_descriptors(_: &mut Command, _: &[Stdio]) -> io::Result<Pipes> {
    Ok(Pipes)
}

impl Pipes {
    #[track_caller]
    #[expect(
        clippy::unused_self,
        reason = "the signature is shared with the platform that has pipes"
    )]
    pub(super) fn start(self, mut command: Command) -> ChildProcess {
        ChildProcess::start(&mut command)
    }
}
