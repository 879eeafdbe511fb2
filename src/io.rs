//! I/O: anything the system can report ready, on the loop; and what can be done with streams of any kind.

#[cfg(any(unix, feature = "net"))]
pub(crate) mod bytes;
#[cfg(unix)]
pub(crate) mod channel;
mod copy;
#[cfg(unix)]
mod pipe;
#[cfg(unix)]
mod pooled;
mod source;
mod split;
#[cfg(unix)]
mod stdio;

pub use copy::{copy, copy_both_ways};
#[cfg(unix)]
pub use pipe::{PipeReader, PipeWriter, pipe};
pub use source::{Readiness, Source};
pub use split::{Duplex, OwnedReadHalf, OwnedWriteHalf, ReuniteError, split};
#[cfg(unix)]
pub use stdio::{Stderr, Stdin, Stdout, stderr, stdin, stdout};

pub use crate::sys::poller::AsSource;
#[cfg(unix)]
pub use crate::sys::stdio::StdioKind;
