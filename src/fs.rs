//! Files and directories, on the loop's thread pool.
//!
//! Functions have the names and arguments of [`std::fs`]'s, and a few more that libuv has. Each call is one job of the pool
//! (class [`Fs`](crate::pool::Class::Fs)), however many system calls it needs: [`read`] opens, reads and closes a file in
//! one go. Its end is delivered in the poll phase. Two calls in flight have no order between them.
//!
//! A job owns its arguments. Dropping the future of a call takes it out of the pool's queue if no thread has begun it; one
//! that has begun goes on to its end. Until then it keeps the loop alive.
//!
//! Errors are those of the system, with the operation and the path in their text and, as a value, in [`Error`].
//!
//! All functions panic when they are polled and no loop runs on this thread.

mod error;
mod job;
mod ops;

pub use error::Error;
pub use ops::{metadata, read, symlink_metadata};
