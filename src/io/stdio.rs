//! Standard input, output and error as streams, whatever they are.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};

use super::pooled::{Leftover, Pooled};
use super::source::Source;
use crate::event_loop::handle::LoopHandle;
use crate::event_loop::handles::{Close, Handle, HandleCore, sealed};
use crate::sys::poller::Ready;
use crate::sys::stdio::{StdioKind, Unblocked};

/// What was read from standard input by jobs whose reader is gone.
static LEFTOVER: Leftover = Leftover::new();

/// How a standard stream gets its bytes.
enum Channel {
    /// At once, or when an event says so.
    Direct(Source<Unblocked>),
    /// By the pool.
    Pooled(Pooled),
}

impl Channel {
    #[track_caller]
    fn new(descriptor: BorrowedFd<'_>, kind: StdioKind) -> io::Result<Self> {
        let handle = LoopHandle::current();
        let direct = Unblocked::new(descriptor, kind)
            .and_then(|unblocked| Source::new_stream(&handle, unblocked, true));
        if let Ok(mut source) = direct {
            // A terminal returns a line at a time, a socket may return a datagram, and a named pipe that was opened again
            // after its last writer had gone does not report the end: only an attempt tells.
            source.short_means_drained = false;
            source.state.add_ready(Ready::READ);
            return Ok(Self::Direct(source));
        }
        let can_wait = !matches!(kind, StdioKind::File | StdioKind::Unknown);
        Ok(Self::Pooled(Pooled::new(&handle, descriptor, can_wait)?))
    }

    fn close(self) -> Close {
        match self {
            Self::Direct(source) => source.close(),
            Self::Pooled(pooled) => pooled.close(),
        }
    }

    fn handle_core(&self) -> &HandleCore {
        match self {
            Self::Direct(source) => sealed::Sealed::handle_core(source),
            Self::Pooled(pooled) => pooled.handle_core(),
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Direct(source) => source.get_ref().as_fd(),
            Self::Pooled(pooled) => pooled.as_fd(),
        }
    }
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
/// use futures::{AsyncBufReadExt, StreamExt, io::BufReader};
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
        channel: Channel::new(stdin.as_fd(), kind)?,
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
/// use futures::AsyncWriteExt;
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
        channel: Channel::new(stdout.as_fd(), kind)?,
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
        channel: Channel::new(stderr.as_fd(), kind)?,
        kind,
    })
}

/// Standard input, made by [`stdin`].
///
/// Reads go through [`AsyncRead`], also of `&Stdin`, and never block the loop. How they are done depends on what standard
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
/// Several handles share what comes: each byte goes to one of them. [`std::io::stdin`] has a buffer of its own; what it has
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
    channel: Channel,
    kind: StdioKind,
}

impl Stdin {
    /// Closes the handle, though not the descriptor 0, and has that reported in the closing phase; see [`Close`].
    pub fn close(self) -> Close {
        self.channel.close()
    }
}

impl AsyncRead for &Stdin {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match &self.channel {
            Channel::Direct(source) => source.poll_read_bytes(cx, buffer),
            Channel::Pooled(pooled) => pooled.poll_read(cx, &LEFTOVER, buffer),
        }
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        match &self.channel {
            Channel::Direct(source) => source.poll_read_buffers(cx, buffers),
            Channel::Pooled(pooled) => {
                let first = buffers.iter_mut().find(|buffer| !buffer.is_empty());
                let buffer = first.map_or(&mut [][..], |buffer| &mut **buffer);
                pooled.poll_read(cx, &LEFTOVER, buffer)
            }
        }
    }
}

impl AsyncRead for Stdin {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self).poll_read(cx, buffer)
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self).poll_read_vectored(cx, buffers)
    }
}

/// Standard output, made by [`stdout`].
///
/// Writes go through [`AsyncWrite`], also of `&Stdout`, and never block the loop; they are done as the reads of [`Stdin`]
/// are, and leave the mode of the descriptor as it is. There is no buffer: a write that returns has been written.
/// What [`print!`] has written to [`std::io::stdout`] and not yet flushed comes later.
///
/// Closing through `AsyncWrite` only flushes, and dropping closes what the handle has opened, never the descriptor 1.
///
/// # Cancel safety
///
/// A write that was given up has written nothing, unless a thread of the pool was at it already: then it may be written
/// all the same. If the same bytes are written next by the same handle, they count as that write and are not written twice.
pub struct Stdout {
    channel: Channel,
    kind: StdioKind,
}

/// Standard error, made by [`stderr`]. The same as [`Stdout`] for the descriptor 2.
pub struct Stderr {
    channel: Channel,
    kind: StdioKind,
}

macro_rules! impl_output {
    ($output:ident) => {
        impl $output {
            /// Closes the handle, though not the descriptor, and has that reported in the closing phase; see [`Close`].
            pub fn close_now(self) -> Close {
                self.channel.close()
            }
        }

        impl AsyncWrite for &$output {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &[u8],
            ) -> Poll<io::Result<usize>> {
                match &self.channel {
                    Channel::Direct(source) => source.poll_write_bytes(cx, buffer),
                    Channel::Pooled(pooled) => pooled.poll_write(cx, buffer),
                }
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffers: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                match &self.channel {
                    Channel::Direct(source) => source.poll_write_buffers(cx, buffers),
                    Channel::Pooled(pooled) => {
                        let first = buffers.iter().find(|buffer| !buffer.is_empty());
                        pooled.poll_write(cx, first.map_or(&[], |buffer| &**buffer))
                    }
                }
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                match &self.channel {
                    Channel::Direct(_) => Poll::Ready(Ok(())),
                    Channel::Pooled(pooled) => pooled.poll_flush(cx),
                }
            }

            fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_flush(cx)
            }
        }

        impl AsyncWrite for $output {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &[u8],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut &*self).poll_write(cx, buffer)
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffers: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut &*self).poll_write_vectored(cx, buffers)
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Pin::new(&mut &*self).poll_flush(cx)
            }

            fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Pin::new(&mut &*self).poll_close(cx)
            }
        }
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
                self.channel.handle_core()
            }
        }

        /// The descriptor that the handle uses, which is one of its own.
        impl AsFd for $stream {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.channel.as_fd()
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
