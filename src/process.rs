//! Child processes on the loop.
//!
//! ```
//! use phaseloop::io::AsyncReadExt;
//! use phaseloop::process::{Command, Stdio};
//!
//! #[phaseloop::main]
//! async fn main() -> std::io::Result<()> {
//!     let mut child = Command::new("echo").arg("hello").stdout(Stdio::piped()).spawn()?;
//!     let mut text = String::new();
//!     child.stdout.take().unwrap().read_to_string(&mut text).await?;
//!     assert_eq!(text, "hello\n");
//!     assert!(child.wait().await?.success());
//!     Ok(())
//! }
//! ```
//!
//! [`Command`] has the API of [`std::process::Command`]. On Unix it has libuv's additions:
//! descriptors at chosen numbers, a new session, supplementary groups, and a `Channel` for messages
//! and sockets. The standard streams of its [`Child`] are pipes on the loop.
//!
//! # How a child ends
//!
//! The exit of a child is delivered in the poll phase, after the I/O of its batch and after the
//! signals. Children that exit together are all reaped first, and then delivered in the order of
//! their start. A child keeps the loop alive until then, unless it is
//! [unref'd](crate::Handle::unref). The exit of a child and EOF of its output have no order:
//! another process may hold the pipe open, and a child may close its output and go on.
//!
//! The process of a dropped [`Child`] goes on running, unless
//! [`kill_on_drop`](Command::kill_on_drop) is set. The loop reaps it when it exits; if the loop was
//! dropped, a thread does. No zombie is left. Only children started here are reaped.
//!
//! A program that calls `fork` itself, without `exec`, shares the loop with its child; see
//! [`LoopHandle::reinit_after_fork`](crate::LoopHandle::reinit_after_fork).
//!
//! A descriptor reports the exit of a child: a pidfd on Linux, a kqueue with `NOTE_EXIT` on macOS
//! and the BSDs. On Windows the handle of the process does; wait threads of the OS watch the
//! handles, one thread for many. On other platforms, and if no descriptor is left, the loop listens
//! to SIGCHLD while such a child runs.

#[cfg(unix)]
mod channel;
mod child;
mod children;
mod command;
#[cfg(unix)]
mod pipe_stdio;
mod stdio;

use std::io;

use crate::signal::SignalKind;
use crate::sys;

#[cfg(unix)]
pub use channel::{Channel, Message};
pub use child::{Child, ChildStderr, ChildStdin, ChildStdout, Exited};
pub use command::Command;
pub use std::process::{ExitStatus, Output};
pub use stdio::Stdio;

/// Sends a signal to any process. Signal 0 only checks whether a signal could be sent.
///
/// A negative number is a process group and 0 is the group of the caller, as for `kill(2)`. To
/// signal a child, prefer [`Child::signal`], which never reaches another process that reuses the
/// number.
///
/// On Windows, SIGINT, SIGQUIT, SIGTERM and SIGKILL terminate the process, as libuv does, and there
/// are no groups; other signals are [`Unsupported`](io::ErrorKind::Unsupported).
///
/// # Errors
///
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for an invalid signal number,
/// [`PermissionDenied`](io::ErrorKind::PermissionDenied) without the privilege, `ESRCH` if no such
/// process exists.
///
/// # Examples
///
/// ```
/// use phaseloop::{process, signal::SignalKind};
///
/// fn main() {
///     let alive = SignalKind::from_raw(0);
///     assert!(process::kill(std::process::id() as i32, alive).is_ok());
/// }
/// ```
pub fn kill(process: i32, kind: SignalKind) -> io::Result<()> {
    sys::process::kill(process, kind.as_raw()).map_err(|error| kind.explain(error))
}
