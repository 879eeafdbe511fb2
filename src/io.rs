//! I/O: anything the system can report ready, on the loop; and what can be done with streams of any kind.

#[cfg(any(unix, feature = "net"))]
pub(crate) mod bytes;
mod copy;
#[cfg(unix)]
mod pipe;
mod source;
mod split;

pub use copy::{copy, copy_both_ways};
#[cfg(unix)]
pub use pipe::{PipeReader, PipeWriter, pipe};
pub use source::{Readiness, Source};
pub use split::{Duplex, OwnedReadHalf, OwnedWriteHalf, ReuniteError, split};

pub use crate::sys::poller::AsSource;
