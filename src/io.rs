//! I/O: anything the system can report ready, on the loop; and what can be done with streams of any kind.

#[cfg(feature = "net")]
mod bytes;
mod copy;
mod source;
mod split;

pub use copy::{copy, copy_both_ways};
pub use source::{Readiness, Source};
pub use split::{Duplex, OwnedReadHalf, OwnedWriteHalf, ReuniteError, split};

pub use crate::sys::poller::AsSource;
