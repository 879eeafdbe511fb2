//! What child processes of Unix have: signals, users, groups, and the shell `/bin/sh`.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use super::fork::add_channel;
use super::{ChildProcess, Exit, Stdio};
use crate::error::Error;
use crate::net::socket_of;
use crate::reason::throw;
use phaseloop::process::Command;
use phaseloop::signal::SignalKind;

/// The number of the first descriptor beyond the standard ones.
const FIRST_FURTHER: i32 = 3;

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

/// Sets `argv[0]` of a process.
pub(super) fn set_name(command: &mut Command, name: Option<&OsStr>) {
    if let Some(name) = name {
        command.arg0(name);
    }
}

/// Gives a process a session of its own.
pub(super) fn set_detached(command: &mut Command, is_detached: bool) {
    command.setsid(is_detached);
}

/// The ends of the pipes beyond the standard streams that this process keeps.
#[derive(Default)]
pub(super) struct Pipes {
    sockets: Vec<(usize, UnixStream)>,
    channel: Option<UnixStream>,
}

/// Adds the descriptors from number 3 on.
///
/// # Panics
///
/// Throws `ERR_IPC_ONE_PIPE` for a second channel.
#[track_caller]
pub(super) fn add_descriptors(command: &mut Command, list: &[Stdio]) -> io::Result<Pipes> {
    let mut pipes = Pipes::default();
    for (number, stdio) in (FIRST_FURTHER..).zip(list) {
        let descriptor: OwnedFd = match stdio {
            Stdio::Ignore | Stdio::Inherit => continue,
            Stdio::Pipe => {
                let (ours, theirs) = UnixStream::pair()?;
                pipes.sockets.push((number as usize, ours));
                theirs.into()
            }
            Stdio::Ipc if pipes.channel.is_some() => {
                let text = "Child process can have only one IPC pipe";
                throw(Error::new(text).coded("ERR_IPC_ONE_PIPE"))
            }
            Stdio::Ipc => {
                pipes.channel = Some(add_channel(command, number)?);
                continue;
            }
            Stdio::File(file) => file.try_clone()?.into(),
        };
        command.fd(number, descriptor);
    }
    Ok(pipes)
}

impl Pipes {
    /// Starts the program. The command owns the child's ends: it is dropped here, so that the exit
    /// of the child closes them.
    #[track_caller]
    pub(super) fn start(self, mut command: Command) -> ChildProcess {
        let child = ChildProcess::start(&mut command);
        drop(command);
        for (number, stream) in self.sockets {
            child.add_socket(number, stream);
        }
        if let Some(channel) = self.channel {
            child.connect(channel);
        }
        child
    }
}

impl ChildProcess {
    #[track_caller]
    fn add_socket(&self, number: usize, stream: UnixStream) {
        let Ok(socket) = socket_of(stream) else {
            // The descriptor could not be registered. The pipe counts as closed.
            return;
        };
        self.inner.open.set(self.inner.open.get() + 1);
        self.wait_for(&socket);
        self.inner.sockets.borrow_mut().push((number, socket));
    }
}
