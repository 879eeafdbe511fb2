//! The synchronisation types of the cross-thread inbox.
//!
//! One door, so that a build with `--cfg loom` checks the very code that ships.

#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex,
    atomic::{AtomicU8, Ordering},
};

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex,
    atomic::{AtomicU8, Ordering},
};
