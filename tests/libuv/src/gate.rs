//! Holds libuv's thread pool, which has one thread here, except before a wait of the loop.
//!
//! The thread runs a job that waits at the gate, so that what is queued meanwhile can be cancelled.
//! Before a wait the gate lets that job go, all queued work runs in its order, and the next job is
//! at the gate before the loop asks the kernel.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::{Condvar, Mutex, PoisonError};

use libuv_sys2::{
    uv_loop_init, uv_loop_t, uv_queue_work, uv_run, uv_run_mode_UV_RUN_NOWAIT, uv_work_t,
};

/// How many jobs have come to the gate, and how many may pass.
struct Gate {
    come: u64,
    passed: u64,
}

static GATE: Mutex<Gate> = Mutex::new(Gate { come: 0, passed: 0 });
static CHANGED: Condvar = Condvar::new();

/// The loop that the jobs at the gate belong to.
struct Owner(*mut uv_loop_t);

// SAFETY: only the main thread uses the loop; the lock is for the compiler.
unsafe impl Send for Owner {}

static OWNER: Mutex<Option<Owner>> = Mutex::new(None);

/// Closes the gate for the first time.
pub(crate) fn close() {
    let uv = Box::leak(Box::new(MaybeUninit::<uv_loop_t>::uninit())).as_mut_ptr();
    // SAFETY: the memory is valid, and lives for ever.
    assert_eq!(unsafe { uv_loop_init(uv) }, 0);
    *OWNER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Owner(uv));
    send_to_gate();
}

/// Runs all work that is queued.
pub(crate) fn let_work_pass() {
    open();
    send_to_gate();
    with_owner(|uv| {
        // SAFETY: the loop is valid and does not run.
        unsafe { uv_run(uv, uv_run_mode_UV_RUN_NOWAIT) };
    });
}

/// Opens the gate, for good if no other job is sent to it.
pub(crate) fn open() {
    let mut gate = GATE.lock().unwrap_or_else(PoisonError::into_inner);
    gate.passed += 1;
    CHANGED.notify_all();
}

/// Queues a job that waits at the gate, and waits until it is there.
fn send_to_gate() {
    let work = Box::leak(Box::new(MaybeUninit::<uv_work_t>::uninit())).as_mut_ptr();
    let mut gate = GATE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = gate.come;
    with_owner(|uv| {
        // SAFETY: the loop is valid, and the work lives until `passed` frees it.
        let queued = unsafe { uv_queue_work(uv, work, Some(wait_at_gate), Some(passed)) };
        assert_eq!(queued, 0);
    });
    while gate.come == before {
        gate = CHANGED.wait(gate).unwrap_or_else(PoisonError::into_inner);
    }
}

fn with_owner(call: impl FnOnce(*mut uv_loop_t)) {
    let owner = OWNER.lock().unwrap_or_else(PoisonError::into_inner);
    call(owner.as_ref().expect("the gate was closed").0);
}

extern "C" fn wait_at_gate(_: *mut uv_work_t) {
    let mut gate = GATE.lock().unwrap_or_else(PoisonError::into_inner);
    gate.come += 1;
    let mine = gate.come;
    CHANGED.notify_all();
    while gate.passed < mine {
        gate = CHANGED.wait(gate).unwrap_or_else(PoisonError::into_inner);
    }
}

extern "C" fn passed(work: *mut uv_work_t, _: c_int) {
    // SAFETY: it was leaked from a box, and libuv is done with it.
    drop(unsafe { Box::from_raw(work.cast::<MaybeUninit<uv_work_t>>()) });
}
