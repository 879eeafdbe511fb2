//! One order for the jobs of the engine and the microtasks of the loop.
//!
//! A run of jobs is one entry of the microtask lane. If Rust queues a microtask while jobs wait, the
//! run is cut there by a mark, a job that ends the run. So both are one FIFO.
//!
//! ```text
//! jobs   a b | c d | e          lane   E(a b)  rust  E(c d)  rust  E(e)
//!            ^mark ^mark
//! ```

use std::cell::Cell;
use std::os::raw::c_int;
use std::rc::Rc;

use phaseloop_node::host;
use rquickjs::qjs;

use super::{Inner, Scope};

/// A kind of job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    /// One of the program.
    Program,
    /// The end of a run.
    Mark,
    /// One that enters a frame for the next.
    Enter,
}

thread_local! {
    /// What the job that ran last was.
    static LAST: Cell<Last> = const { Cell::new(Last::Program) };
}

#[derive(Default)]
pub(super) struct Hook {
    /// An entry for the youngest jobs is in the lane, or runs.
    is_open: Cell<bool>,
    /// JavaScript ran since the last mark. Without it, two empty runs would queue each other.
    is_fresh: Cell<bool>,
    /// The number of microtasks queued, when last looked at.
    seen: Cell<usize>,
    /// How many marks wait.
    marks: Cell<usize>,
}

impl Hook {
    pub(super) fn begin_js(&self) {
        self.is_fresh.set(true);
    }
}

/// The job that ends a run.
///
/// # Safety
///
/// The engine calls it with its own arguments; none is used.
unsafe extern "C" fn mark(
    _ctx: *mut qjs::JSContext,
    _argc: c_int,
    _argv: *mut qjs::JSValue,
) -> qjs::JSValue {
    LAST.set(Last::Mark);
    qjs::JS_UNDEFINED
}

/// The job before the rest of an async function.
///
/// # Safety
///
/// The engine calls it with its own arguments; none is used.
pub(super) unsafe extern "C" fn enter(
    _ctx: *mut qjs::JSContext,
    _argc: c_int,
    _argv: *mut qjs::JSValue,
) -> qjs::JSValue {
    LAST.set(Last::Enter);
    qjs::JS_UNDEFINED
}

impl Inner {
    fn has_jobs(&self) -> bool {
        // SAFETY: the runtime is alive.
        unsafe { qjs::JS_IsJobPending(qjs::JS_GetRuntime(self.raw.as_ptr())) }
    }

    /// JavaScript returns to Rust: its jobs get an entry of the lane.
    pub(super) fn hook_to_rust(self: &Rc<Self>) {
        let hook = &self.hook;
        if hook.is_fresh.get() && !hook.is_open.get() && self.has_jobs() {
            self.queue_run();
            hook.is_open.set(true);
            hook.seen.set(host::microtasks_queued());
        }
    }

    /// Rust returns to JavaScript: what Rust has queued cuts the run.
    pub(super) fn hook_to_js(&self) {
        let hook = &self.hook;
        let queued = host::microtasks_queued();
        if queued == hook.seen.replace(queued) {
            return;
        }
        // Also without jobs: what JavaScript queues from now on must not join the open run.
        if hook.is_fresh.get() && hook.is_open.get() {
            hook.marks.set(hook.marks.get() + 1);
            // SAFETY: the context is alive, and the job takes no arguments.
            unsafe {
                qjs::JS_EnqueueJob(self.raw.as_ptr(), Some(mark), 0, std::ptr::null_mut());
            }
        }
        hook.is_open.set(false);
        hook.is_fresh.set(false);
    }

    fn queue_run(self: &Rc<Self>) {
        let weak = Rc::downgrade(self);
        host::queue_jobs(move || {
            if let Some(inner) = weak.upgrade() {
                inner.run_jobs();
            }
        });
    }

    /// Runs jobs up to a mark, or to the last.
    fn run_jobs(self: &Rc<Self>) {
        self.hook_to_js();
        let fault = self.inside(|scope| self.run_each_job(scope));
        self.hook_to_rust();
        self.unwind();
        if let Some(error) = fault {
            phaseloop_node::throw(error);
        }
    }

    fn run_each_job(self: &Rc<Self>, scope: &Scope<'_>) -> Option<crate::Error> {
        let hook = &self.hook;
        loop {
            LAST.set(Last::Program);
            let mut ctx = std::ptr::null_mut();
            // SAFETY: the runtime is alive, and `ctx` is a place for the context of the job.
            let ran = unsafe {
                let runtime = qjs::JS_GetRuntime(self.raw.as_ptr());
                qjs::JS_ExecutePendingJob(runtime, &mut ctx)
            };
            let last = LAST.replace(Last::Program);
            self.end_job(last);
            if last == Last::Mark {
                hook.marks.set(hook.marks.get() - 1);
                return None;
            }
            if ran == 0 {
                hook.is_open.set(false);
                return None;
            }
            hook.is_fresh.set(true);
            if ran < 0 {
                // The jobs that are left get another entry.
                let error = scope.take_error();
                match hook.marks.get() {
                    0 => hook.is_open.set(false),
                    _ => self.queue_run(),
                }
                return Some(error);
            }
        }
    }
}
