//! The ends of pipes as the standard descriptors of a child.

use std::io;
use std::os::fd::OwnedFd;
use std::process;

use super::Stdio;
use super::stdio::from;

use crate::io::{PipeReader, PipeWriter};

from!(OwnedFd);

/// Hands the reading end to a child, such as the [`ChildStdout`](super::ChildStdout) of another. It
/// leaves the loop, and its blocking mode is restored. Unix only.
///
/// # Errors
///
/// Any OS error of `fcntl`. The descriptor is closed then.
///
/// # Examples
///
/// `echo hello | cat`:
///
/// ```
/// use phaseloop::process::{Command, Stdio};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let mut echo = Command::new("echo").arg("hello").stdout(Stdio::piped()).spawn()?;
///     let hello: Stdio = echo.stdout.take().unwrap().try_into()?;
///     let output = Command::new("cat").stdin(hello).output().await?;
///     assert_eq!(output.stdout, b"hello\n");
///     assert!(echo.wait().await?.success());
///     Ok(())
/// }
/// ```
impl TryFrom<PipeReader> for Stdio {
    type Error = io::Error;

    #[inline]
    fn try_from(end: PipeReader) -> io::Result<Self> {
        end.into_owned_fd().map(Self::from)
    }
}

/// Hands the writing end to a child, such as the [`ChildStdin`](super::ChildStdin) of another. It
/// leaves the loop, and its blocking mode is restored. Unix only.
///
/// # Errors
///
/// [`BrokenPipe`](io::ErrorKind::BrokenPipe) if the writer was closed through `AsyncWrite`;
/// otherwise any OS error of `fcntl`. The descriptor is closed then.
impl TryFrom<PipeWriter> for Stdio {
    type Error = io::Error;

    #[inline]
    fn try_from(end: PipeWriter) -> io::Result<Self> {
        // A write of nothing fails for a writer without a descriptor only.
        match end.try_write(&[]) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(error),
            _ => end.into_owned_fd().map(Self::from),
        }
    }
}

/// Does what the conversion into [`Stdio`] does, for the standard library's type.
impl TryFrom<PipeReader> for process::Stdio {
    type Error = io::Error;

    #[inline]
    fn try_from(end: PipeReader) -> io::Result<Self> {
        Stdio::try_from(end).map(Self::from)
    }
}

/// Does what the conversion into [`Stdio`] does, for the standard library's type.
impl TryFrom<PipeWriter> for process::Stdio {
    type Error = io::Error;

    #[inline]
    fn try_from(end: PipeWriter) -> io::Result<Self> {
        Stdio::try_from(end).map(Self::from)
    }
}
