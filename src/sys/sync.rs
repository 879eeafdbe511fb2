//! The synchronisation types of what other threads reach: the inbox and the state of a task.
//!
//! One door, so that a build with `--cfg phaseloop_loom` checks the very code that ships.

#[cfg(not(phaseloop_loom))]
pub(crate) use std::sync::{
    Mutex,
    atomic::{AtomicU8, AtomicUsize, Ordering},
};

#[cfg(phaseloop_loom)]
pub(crate) use loom::sync::{
    Mutex,
    atomic::{AtomicU8, AtomicUsize, Ordering},
};
