//! Standard input, output and error as streams, whatever object is behind them.

#[cfg_attr(unix, path = "stdio/unix.rs")]
#[cfg_attr(not(unix), path = "stdio/windows.rs")]
mod platform;

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use super::bytes::{impl_async_read, impl_async_write};
use super::pooled::Leftover;
use super::shared_fd::SharedFd;
use crate::label::Role;
use crate::runtime::handle::{Close, impl_handle};
use crate::sys::stdio::{StdioKind, borrow};

/// Bytes of standard input that a job has read for a reader that was dropped.
#[inline]
fn leftover_of_stdin() -> Arc<Leftover> {
    static LEFTOVER: OnceLock<Arc<Leftover>> = OnceLock::new();
    let leftover = LEFTOVER.get_or_init(|| Arc::new(Leftover::new()));
    leftover.clone()
}

/// Opens standard input as a stream.
///
/// Several handles may exist, in one loop or in many; see [`Stdin`].
///
/// # Errors
///
/// Any OS error of duplicating or reopening the descriptor: it is closed, or the process is out of
/// descriptors.
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
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let mut lines = BufReader::new(phaseloop::io::stdin()?).lines();
///     while let Some(line) = lines.next().await {
///         println!("{}", line?);
///     }
///     Ok(())
/// }
/// ```
#[track_caller]
#[inline]
pub fn stdin() -> io::Result<Stdin> {
    let stdin = io::stdin();
    let kind = StdioKind::of(&stdin);
    Ok(Stdin {
        source: SharedFd::new(borrow(&stdin), kind, leftover_of_stdin(), Role::Stdin)?,
        kind,
    })
}

/// Opens standard output as a stream; see [`Stdout`].
///
/// # Errors
///
/// Any OS error of duplicating or reopening the descriptor: it is closed, or the process is out of
/// descriptors.
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
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     phaseloop::io::stdout()?.write_all(b"hello\n").await
/// }
/// ```
#[track_caller]
#[inline]
pub fn stdout() -> io::Result<Stdout> {
    let stdout = io::stdout();
    let kind = StdioKind::of(&stdout);
    Ok(Stdout {
        source: SharedFd::unshared(borrow(&stdout), kind, Role::Stdout)?,
        kind,
    })
}

/// Opens standard error as a stream; see [`Stdout`].
///
/// # Errors
///
/// Any OS error of duplicating or reopening the descriptor: it is closed, or the process is out of
/// descriptors.
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
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     phaseloop::io::stderr()?.write_all(b"a line of a log\n").await
/// }
/// ```
#[track_caller]
#[inline]
pub fn stderr() -> io::Result<Stderr> {
    let stderr = io::stderr();
    let kind = StdioKind::of(&stderr);
    Ok(Stderr {
        source: SharedFd::unshared(borrow(&stderr), kind, Role::Stderr)?,
        kind,
    })
}

/// Standard input, returned by [`stdin`].
///
/// `Stdin` and `&Stdin` implement [`AsyncRead`](crate::io::AsyncRead), and never block the loop.
/// The way of reading depends on the [kind](Self::kind) of standard input. Its open file
/// description is usually shared with other processes, such as the shell, so its mode is not
/// changed:
///
/// | standard input | how it is read |
/// |---|---|
/// | terminal | opened a second time, without blocking |
/// | pipe | on Linux, opened a second time, without blocking |
/// | socket | with `MSG_DONTWAIT` |
/// | file, `/dev/null`, other devices | by a thread of the pool |
/// | one that cannot be opened again | by a thread of the pool, once it is readable |
/// | on Windows: any | by a thread of the pool; a console by lines, through [`std::io::stdin`] |
///
/// One task at a time may wait through a handle; open more handles for more tasks. Each byte goes
/// to one of them. Bytes in the buffer of [`std::io::stdin`] are not seen here. No more is read
/// than is requested, so that a child process finds the rest; use a `BufReader` to read lines.
///
/// Dropping the handle closes the descriptor that it has opened, never descriptor 0.
///
/// # Cancel safety
///
/// Dropping a read loses no data. A read that runs on the pool goes on, and the next reader, of any
/// handle, gets its bytes. Until it ends it keeps the loop alive, unref'd or not.
///
/// # Examples
///
/// ```no_run
/// use phaseloop::io::{self, AsyncBufReadExt, BufReader};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let mut input = BufReader::new(io::stdin()?);
///     let mut line = String::new();
///     while input.read_line(&mut line).await? > 0 {
///         println!("{} bytes", line.len());
///         line.clear();
///     }
///     Ok(())
/// }
/// ```
pub struct Stdin {
    source: SharedFd,
    kind: StdioKind,
}

impl Stdin {
    /// Closes the handle, but not descriptor 0. The close completes in the closing phase; see
    /// [`Close`].
    #[inline]
    pub fn close(self) -> Close {
        self.source.close()
    }
}

impl_async_read!(Stdin);

/// Standard output, returned by [`stdout`].
///
/// `Stdout` and `&Stdout` implement [`AsyncWrite`](crate::io::AsyncWrite), and never block the
/// loop. Writes use the ways listed at [`Stdin`], and leave the mode of the descriptor unchanged.
/// There is no buffer: a completed write has reached the OS. One task at a time may wait through a
/// handle; open more handles for more tasks. Text that [`print!`] has left in the buffer of
/// [`std::io::stdout`] appears later.
///
/// Closing through `AsyncWrite` only flushes. Dropping closes the descriptor that the handle has
/// opened, never descriptor 1.
///
/// # Cancel safety
///
/// Dropping a write before it completes writes nothing, unless a pool thread has started it: then
/// the bytes may be written. If the handle writes the same bytes next, that write counts as the one
/// in flight, and they are not written twice.
///
/// # Examples
///
/// ```no_run
/// use phaseloop::io::{self, AsyncWriteExt};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let mut output = io::stdout()?;
///     output.write_all(b"a slow terminal does not block the loop\n").await
/// }
/// ```
pub struct Stdout {
    source: SharedFd,
    kind: StdioKind,
}

/// Standard error, returned by [`stderr`]. It works as [`Stdout`] does, on descriptor 2.
///
/// # Examples
///
/// ```
/// use phaseloop::io::AsyncWriteExt;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     phaseloop::io::stderr()?.write_all(b"a warning\n").await?;
///     Ok(())
/// }
/// ```
pub struct Stderr {
    source: SharedFd,
    kind: StdioKind,
}

macro_rules! impl_output {
    ($output:ident) => {
        impl $output {
            /// Closes the handle, but not the standard descriptor. The close completes in the
            /// closing phase; see [`Close`].
            #[inline]
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
            /// The kind of object behind the descriptor.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::io::stdout;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let stdout = stdout()?;
            ///     println!("{:?}, a terminal: {}", stdout.kind(), stdout.is_terminal());
            ///     Ok(())
            /// }
            /// ```
            #[must_use]
            pub fn kind(&self) -> StdioKind {
                self.kind
            }

            /// Whether the descriptor is a terminal.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::io::stdout;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let stdout = stdout()?;
            ///     println!("{:?}, a terminal: {}", stdout.kind(), stdout.is_terminal());
            ///     Ok(())
            /// }
            /// ```
            #[must_use]
            pub fn is_terminal(&self) -> bool {
                self.kind == StdioKind::Terminal
            }
        }

        impl_handle!($stream, |this| this.source.handle_core());

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
