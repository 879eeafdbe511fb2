//! The synchronisation types of what several threads reach: the inbox, the pool and its jobs.
//!
//! One door, so that a build with `--cfg phaseloop_loom` checks the very code that ships.

#[cfg(not(phaseloop_loom))]
pub(crate) use std::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicU8, Ordering},
    },
    thread,
};

#[cfg(phaseloop_loom)]
pub(crate) use loom::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicU8, Ordering},
    },
    thread,
};
