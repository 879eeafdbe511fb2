//! Standard input, output and error as streams, whatever they are.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};

use super::bytes::{impl_async_read, impl_async_write};
use super::channel::Channel;
use super::pooled::Leftover;
use crate::event_loop::handles::{Close, Handle, HandleCore, sealed};
use crate::sys::stdio::StdioKind;

/// What was read from standard input by jobs whose reader is gone.
fn leftover_of_stdin() -> Arc<Leftover> {
    static LEFTOVER: OnceLock<Arc<Leftover>> = OnceLock::new();
    let leftover = LEFTOVER.get_or_init(|| Arc::new(Leftover::new()));
    leftover.clone()
}

/// Standard input as a stream.
///
/// See [`Stdin`]; there may be several, in one loop or in many.
///
/// # Errors
///
/// The system's, when the descriptor is closed or there is none left.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```no_run
/// use phaseloop::io::{AsyncBufReadExt, BufReader};
/// use phaseloop::stream::StreamExt;
///
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let mut lines = BufReader::new(phaseloop::io::stdin()?).lines();
///     while let Some(line) = lines.next().await {
///         println!("{}", line?);
///     }
///     Ok(())
/// })
/// # }
/// ```
#[track_caller]
pub fn stdin() -> io::Result<Stdin> {
    let stdin = io::stdin();
    let kind = StdioKind::of(&stdin);
    Ok(Stdin {
        source: Channel::new(stdin.as_fd(), kind, leftover_of_stdin())?,
        kind,
    })
}

/// Standard output as a stream; see [`Stdout`].
///
/// # Errors
///
/// The system's, when the descriptor is closed or there is none left.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::io::AsyncWriteExt;
///
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     phaseloop::io::stdout()?.write_all(b"hello\n").await
/// })
/// # }
/// ```
#[track_caller]
pub fn stdout() -> io::Result<Stdout> {
    let stdout = io::stdout();
    let kind = StdioKind::of(&stdout);
    Ok(Stdout {
        source: Channel::unshared(stdout.as_fd(), kind)?,
        kind,
    })
}

/// Standard error as a stream; see [`Stdout`].
///
/// # Errors
///
/// The system's, when the descriptor is closed or there is none left.
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn stderr() -> io::Result<Stderr> {
    let stderr = io::stderr();
    let kind = StdioKind::of(&stderr);
    Ok(Stderr {
        source: Channel::unshared(stderr.as_fd(), kind)?,
        kind,
    })
}

/// Standard input, made by [`stdin`].
///
/// Reads go through [`AsyncRead`](crate::io::AsyncRead), also of `&Stdin`, and never block the loop. How they are done depends on what standard
/// input [is](Self::kind). Its open file is usually shared with other processes, the shell among them; its mode is left
/// as it is:
///
/// | standard input | how it is read |
/// |---|---|
/// | terminal | opened a second time, without blocking |
/// | pipe | on Linux, opened a second time, without blocking |
/// | socket | each call says that it must not block |
/// | file, `/dev/null`, other devices | by a thread of the pool |
/// | what cannot be opened again: another user's, pipes elsewhere than on Linux | by a thread of the pool when there is something to read |
///
/// One task at a time may wait through a handle; for more, make more handles. They share what comes: each byte goes to one
/// of them. [`std::io::stdin`] has a buffer of its own; what it has
/// read is not seen here. No more is read than is asked for, so that a child process finds the rest; wrap it in a
/// `BufReader` to read lines.
///
/// Dropping it closes what it has opened, never the descriptor 0.
///
/// # Cancel safety
///
/// A read that was given up loses nothing. One that is on the pool goes on, and the next reader, of whatever handle, gets
/// its bytes; until it ends it keeps the loop alive, unref'd or not.
pub struct Stdin {
    source: Channel,
    kind: StdioKind,
}

impl Stdin {
    /// Closes the handle, though not the descriptor 0, and has that reported in the closing phase; see [`Close`].
    pub fn close(self) -> Close {
        self.source.close()
    }
}

impl_async_read!(Stdin);

/// Standard output, made by [`stdout`].
///
/// Writes go through [`AsyncWrite`](crate::io::AsyncWrite), also of `&Stdout`, and never block the loop; they are done as the reads of [`Stdin`]
/// are, and leave the mode of the descriptor as it is. There is no buffer: a write that returns has been written.
/// One task at a time may wait through a handle; for more, make more handles.
/// What [`print!`] has written to [`std::io::stdout`] and not yet flushed comes later.
///
/// Closing through `AsyncWrite` only flushes, and dropping closes what the handle has opened, never the descriptor 1.
///
/// # Cancel safety
///
/// A write that was given up has written nothing, unless a thread of the pool was at it already: then it may be written
/// all the same. If the same bytes are written next by the same handle, they count as that write and are not written twice.
pub struct Stdout {
    source: Channel,
    kind: StdioKind,
}

/// Standard error, made by [`stderr`]. The same as [`Stdout`] for the descriptor 2.
pub struct Stderr {
    source: Channel,
    kind: StdioKind,
}

macro_rules! impl_output {
    ($output:ident) => {
        impl $output {
            /// Closes the handle, though not the descriptor, and has that reported in the closing phase; see [`Close`].
            pub fn close_now(self) -> Close {
                self.source.close()
            }
        }

        impl_async_write!($output, |_stream| Ok(()), |_stream| Ok(()));
    };
}

macro_rules! impl_standard {
    ($stream:ident) => {
        impl $stream {
            /// What the descriptor refers to.
            #[must_use]
            pub fn kind(&self) -> StdioKind {
                self.kind
            }

            /// Whether it is a terminal.
            #[must_use]
            pub fn is_terminal(&self) -> bool {
                self.kind == StdioKind::Terminal
            }
        }

        impl Handle for $stream {}

        impl sealed::Sealed for $stream {
            fn handle_core(&self) -> &HandleCore {
                self.source.handle_core()
            }
        }

        /// The descriptor that the handle uses, which is one of its own.
        impl AsFd for $stream {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.source.as_fd()
            }
        }

        impl fmt::Debug for $stream {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($stream))
                    .field("kind", &self.kind)
                    .finish_non_exhaustive()
            }
        }
    };
}

impl_output!(Stdout);
impl_output!(Stderr);
impl_standard!(Stdin);
impl_standard!(Stdout);
impl_standard!(Stderr);
