//! I/O: anything the system can report ready, on the loop.

mod source;

pub use source::{Readiness, Source};

pub use crate::sys::poller::AsSource;
