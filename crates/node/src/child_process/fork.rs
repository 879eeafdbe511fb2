//! Child processes with an IPC channel.

use std::ffi::OsStr;
use std::io;
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use super::{Arguments, ChildProcess, failure};
use crate::error::Error;
use crate::ipc::{self, Ipc, Json};
use phaseloop::process::Command;

/// The descriptor of the channel in the child.
const CHANNEL: i32 = 3;

/// Starts a program with an IPC channel: [`ChildProcess::send`], [`MESSAGE`](super::MESSAGE) and
/// [`DISCONNECT`](super::DISCONNECT). JavaScript: `fork(modulePath, args)`.
///
/// The program may use this crate, with [`process::send`](crate::process::send) and
/// [`process::on_message`](crate::process::on_message), or it may be Node: `fork("node",
/// ["child.js"])`. As in Node, it inherits the standard streams of this process. The channel keeps
/// both loops alive until one side [disconnects](ChildProcess::disconnect).
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```no_run
/// use phaseloop_node::{Emitter, Exit, child_process::{MESSAGE, fork}, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let child = fork("node", ["-e", "process.on('message', (m) => process.send(m + '!'))"]);
///         let this = child.clone();
///         child.on(MESSAGE, move |message| {
///             assert_eq!(message.to_text_value().as_deref(), Some("hello!"));
///             this.disconnect();
///         });
///         child.send("hello");
///     })
/// }
/// ```
#[track_caller]
pub fn fork(program: impl AsRef<OsStr>, arguments: impl Arguments) -> ChildProcess {
    let mut command = Command::new(program);
    command.args(arguments.into_arguments());
    fork_command(command)
}

/// Starts the program of a [`Command`] with an IPC channel on descriptor 3; see [`fork`].
/// JavaScript: `fork(modulePath, args, { cwd, env, stdio })`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn fork_command(mut command: Command) -> ChildProcess {
    let ours = match add_channel(&mut command, CHANNEL) {
        Ok(ours) => ours,
        Err(error) => {
            let error = failure::of_start(error, &command);
            return ChildProcess::failed(error, Default::default());
        }
    };
    let child = ChildProcess::start(&mut command);
    // The command owns the child's end of the channel. It is dropped here, so that the exit of the
    // child closes the channel.
    drop(command);
    child.connect(ours);
    child
}

/// Gives the child a channel with this number, and returns the end of this process.
pub(super) fn add_channel(command: &mut Command, number: i32) -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    command.fd(number, theirs);
    command.env(ipc::VARIABLE, number.to_string());
    command.env(ipc::MODE.0, ipc::MODE.1);
    Ok(ours)
}

/// The IPC channel of a process that was started by [`fork`].
impl ChildProcess {
    #[track_caller]
    pub(super) fn connect(&self, stream: UnixStream) {
        let Ok(ipc) = Ipc::new(stream, self.inner.emitter.clone()) else {
            // The descriptor could not be registered. The channel counts as disconnected.
            return;
        };
        self.inner.open.set(self.inner.open.get() + 1);
        let inner = Rc::downgrade(&self.inner);
        ipc.on_close(move || {
            if let Some(inner) = inner.upgrade() {
                Self { inner }.closed_one();
            }
        });
        let is_first = self.inner.ipc.set(ipc).is_ok();
        debug_assert!(is_first, "a child has one channel");
    }

    /// Returns whether the channel is open. JavaScript: `subprocess.connected`.
    #[must_use]
    pub fn connected(&self) -> bool {
        self.inner.ipc.get().is_some_and(|ipc| ipc.is_connected())
    }

    /// Sends a message. Returns `false` if many messages wait to be sent, or if the channel is
    /// closed; a closed channel also emits the error `ERR_IPC_CHANNEL_CLOSED`. JavaScript:
    /// `subprocess.send(message)`.
    pub fn send(&self, message: impl Into<Json>) -> bool {
        self.send_message(&message.into(), None)
    }

    /// Sends a message, and calls `callback` when it is sent. JavaScript: `subprocess.send(message,
    /// callback)`.
    ///
    /// # Errors
    ///
    /// The callback gets `ERR_IPC_CHANNEL_CLOSED`, or any OS error of `write`.
    pub fn send_with(
        &self,
        message: impl Into<Json>,
        callback: impl FnOnce(Result<(), Error>) + 'static,
    ) -> bool {
        self.send_message(&message.into(), Some(Box::new(callback)))
    }

    fn send_message(&self, message: &Json, callback: Option<ipc::Sent>) -> bool {
        match self.inner.ipc.get() {
            Some(ipc) => ipc.send(message, callback),
            None => ipc::refuse(&self.inner.emitter, callback),
        }
    }

    /// Closes the channel. [`DISCONNECT`](super::DISCONNECT) is emitted here on the next tick, and
    /// in the child when it reads EOF. JavaScript: `subprocess.disconnect()`.
    pub fn disconnect(&self) {
        if let Some(ipc) = self.inner.ipc.get() {
            ipc.disconnect();
        }
    }
}
