//! The ways to wait that are not the kernel: implementors of the trait
//! [`Wait`](crate::event_loop::wait::Wait).

pub(crate) mod hook;
#[cfg(any(test, feature = "test-util"))]
pub(crate) mod paused;
#[cfg(any(test, feature = "test-util"))]
pub(crate) mod peers;
#[cfg(feature = "test-util")]
pub(crate) mod shuffled;
