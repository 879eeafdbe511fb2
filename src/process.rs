//! Child processes on the loop; on Unix only.
//!
//! [`Command`] has the shape of [`std::process::Command`], and what libuv has beyond it: descriptors at chosen numbers, a
//! session of its own, groups, a [`Channel`] for messages and sockets. Its [`Child`] reads and writes on the loop.
//!
//! # How a child ends
//!
//! Its end is seen in the poll phase, after all else of its batch and after the signals. Children that have ended
//! together are delivered in the order in which they were started, and all of them were waited for before the first one
//! is delivered. A child keeps the loop alive until then, unless it is [unref'd](crate::Handle::unref). The end of a child
//! and the end of its output have no order: another process may hold the pipe open, and a child may close it and live.
//!
//! A [`Child`] that is dropped goes on running, unless [`kill_on_drop`](Command::kill_on_drop) says otherwise. The loop
//! waits for it when it ends, and when the loop is gone a thread does: no zombie stays. Nobody else's children are touched.
//!
//! A process that calls `fork` by itself, without `exec`, shares the loop with its child; see
//! [`LoopHandle::reinit_after_fork`](crate::LoopHandle::reinit_after_fork).
//!
//! On Linux each child has a descriptor that tells of its end. Elsewhere, and when no descriptor is left, the loop
//! listens to SIGCHLD while such a child runs.
//!
//! # Examples
//!
//! ```
//! use phaseloop::io::AsyncReadExt;
//! use phaseloop::process::{Command, Stdio};
//!
//! # fn main() -> std::io::Result<()> {
//! phaseloop::block_on(async {
//!     let mut child = Command::new("echo").arg("hello").stdout(Stdio::piped()).spawn()?;
//!     let mut text = String::new();
//!     child.stdout.take().unwrap().read_to_string(&mut text).await?;
//!     assert_eq!(text, "hello\n");
//!     assert!(child.wait().await?.success());
//!     Ok(())
//! })
//! # }
//! ```

mod channel;
mod child;
mod command;

use std::io;

use crate::signal::SignalKind;
use crate::sys;

pub use channel::{Channel, Message};
pub use child::{Child, ChildStderr, ChildStdin, ChildStdout, Exited};
pub use command::Command;
pub use std::process::{ExitStatus, Output, Stdio};

/// Sends a signal to a process of whatever parent; number 0 only asks whether it could be sent.
///
/// A negative number stands for a process group, 0 for the group of the caller, as the system has it. To signal a child,
/// prefer [`Child::signal`], which never meets a stranger that has inherited the number.
///
/// # Errors
///
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for what is no signal,
/// [`PermissionDenied`](io::ErrorKind::PermissionDenied), and ESRCH when there is no such process.
///
/// # Examples
///
/// ```
/// use phaseloop::{process, signal::SignalKind};
///
/// let alive = SignalKind::from_raw(0);
/// assert!(process::kill(std::process::id() as i32, alive).is_ok());
/// ```
pub fn kill(process: i32, kind: SignalKind) -> io::Result<()> {
    sys::process::kill(process, kind.as_raw()).map_err(|error| kind.explain(error))
}
