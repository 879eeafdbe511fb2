//! The ends of pipes, on which reads and writes do not block.

#[cfg(all(windows, feature = "net"))]
mod named;
#[cfg(windows)]
mod windows;

#[cfg(all(windows, feature = "net"))]
pub(crate) use named::{PipeListener, drain, open, wait_for_instance};
#[cfg(windows)]
pub(crate) use windows::{Access, PipeEnd, pipe};

/// An open end of a pipe, in non-blocking mode.
#[cfg(unix)]
pub(crate) type PipeEnd = std::fs::File;

/// Creates a non-blocking pipe: its reading end, its writing end.
#[cfg(unix)]
pub(crate) fn pipe() -> std::io::Result<(PipeEnd, PipeEnd)> {
    let (reader, writer) = super::descriptor::pipe()?;
    Ok((reader.into(), writer.into()))
}
