//! I/O: anything the system can report ready, on the loop; and what can be done with streams of any
//! kind.
//!
//! Sockets, pipes, files and terminals implement the I/O traits of the `futures` crate. The traits
//! are here, too, with the extension traits that bring `read`, `write_all`, `lines`, `seek` and the
//! rest: a program needs no other crate to use a stream. They are the items of `futures::io`
//! themselves, so that both names can be mixed.
//!
//! ```
//! use phaseloop::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, pipe};
//!
//! # #[cfg(unix)]
//! phaseloop::block_on(async {
//!     let (reader, mut writer) = pipe()?;
//!     writer.write_all(b"first\nsecond\n").await?;
//!     let mut line = String::new();
//!     BufReader::new(reader).read_line(&mut line).await?;
//!     assert_eq!(line, "first\n");
//!     std::io::Result::Ok(())
//! })
//! # .unwrap();
//! ```

#[cfg(any(unix, feature = "net"))]
pub(crate) mod bytes;
mod copy;
#[cfg(unix)]
mod pipe;
mod poll_handle;
#[cfg(unix)]
mod pooled;
#[cfg(unix)]
pub(crate) mod shared_fd;
mod source;
mod split;
#[cfg(unix)]
mod stdio;

pub use futures::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWrite,
    AsyncWriteExt, BufReader, BufWriter, Cursor, LineWriter,
};

pub use copy::{copy, copy_both_ways};
#[cfg(unix)]
pub use pipe::{PipeReader, PipeWriter, pipe};
pub use poll_handle::PollHandle;
pub use source::{Readiness, Source};
pub use split::{Duplex, OwnedReadHalf, OwnedWriteHalf, ReuniteError, split};
#[cfg(unix)]
pub use stdio::{Stderr, Stdin, Stdout, stderr, stdin, stdout};

pub use crate::sys::poller::{AsSource, PollEvents};
#[cfg(unix)]
pub use crate::sys::stdio::StdioKind;
