//! The synchronisation types of shared state: the inbox, the pool and its jobs.
//!
//! They are imported in one place, so that a build with `--cfg phaseloop_loom` model-checks the
//! shipped code.

#[cfg(not(phaseloop_loom))]
#[allow(unused_imports, reason = "not every feature counts")]
pub(crate) use std::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
    thread,
};

#[cfg(phaseloop_loom)]
#[allow(unused_imports, reason = "not every feature counts")]
pub(crate) use loom::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
    thread,
};
