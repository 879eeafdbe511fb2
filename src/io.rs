//! I/O on the loop: every source whose readiness the kernel reports, and helpers for byte streams.
//!
//! Sockets, pipes, files and terminals implement the I/O traits of the `futures` crate. This module
//! re-exports the traits, and extension traits with `read`, `write_all`, `lines`, `seek` and the
//! rest, so that a program needs no second crate. All of them are those of the `futures` crate.
//!
//! ```
//! use phaseloop::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, pipe};
//!
//! #[phaseloop::main]
//! async fn main() -> std::io::Result<()> {
//!     let (reader, mut writer) = pipe()?;
//!     writer.write_all(b"first\nsecond\n").await?;
//!     let mut line = String::new();
//!     BufReader::new(reader).read_line(&mut line).await?;
//!     assert_eq!(line, "first\n");
//!     Ok(())
//! }
//! ```
//!
//! # Cancel safety
//!
//! A `read` or `fill_buf` that is dropped has consumed no data. A `read_until` on a [`BufReader`]
//! that is dropped has moved bytes into the caller's buffer, and a `read_line` that is dropped
//! loses the start of its line. `lines` keeps that start from one `next` to the other. A
//! `read_exact`, `read_to_end` or `write_all` that is dropped has transferred an unknown part.

pub(crate) mod bytes;
mod copy;
#[cfg(feature = "net")]
mod interest;
mod pipe;
mod poll_handle;
mod pooled;
pub(crate) mod shared_fd;
mod source;
mod split;
mod stdio;
mod when_ready;

pub use futures::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWrite,
    AsyncWriteExt, BufReader, BufWriter, Cursor, Lines,
};

pub use copy::{copy, copy_both_ways};
#[cfg(feature = "net")]
pub use interest::{Interest, Ready};
pub use pipe::{PipeReader, PipeWriter, pipe};
pub use poll_handle::PollHandle;
#[cfg(feature = "net")]
pub(crate) use source::Moving;
pub use source::Source;
pub use split::{Duplex, OwnedReadHalf, OwnedWriteHalf, ReuniteError, split};
pub use stdio::{Stderr, Stdin, Stdout, stderr, stdin, stdout};
pub use when_ready::Readiness;

pub use crate::kinds::{PollEvents, StdioKind};
pub use crate::sys::poller::AsSource;
