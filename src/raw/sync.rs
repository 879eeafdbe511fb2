//! The synchronisation types of shared state: the inbox, the pool and its jobs.
//!
//! They are imported in one place, so that a build with `--cfg phaseloop_loom` model-checks the
//! shipped code.

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
