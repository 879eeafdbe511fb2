//! Which loop runs on this thread: the only thread-local of the loop, and the one branch a wake takes.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use super::core::Core;
use crate::executor::lane::Microtask;
use crate::executor::spawn::{Message, Meta, Runnable, Shared};
use crate::sys::current::{self, Current};
use crate::sys::task::{Metadata, Payload, WakerTable};

thread_local! {
    /// The loop that runs, or is being set up or torn down, on this thread.
    static CURRENT: Current<Core> = const { Current::new() };
    /// Whether a loop runs on this thread, whichever is current.
    static RUNNING: Cell<bool> = const { Cell::new(false) };
}

/// The check of everything that runs a loop.
///
/// # Panics
///
/// If one runs on this thread already.
#[track_caller]
pub(crate) fn refuse_inside_a_run() {
    assert!(
        !RUNNING.get(),
        "cannot run an event loop from inside one that runs on this thread: `.await` the future, `spawn` it on the running \
         loop, or run the loop on another thread"
    );
}

/// Calls `body` as the run of a loop on this thread.
///
/// # Panics
///
/// If one runs already.
#[track_caller]
pub(crate) fn run<R>(core: &Rc<Core>, body: impl FnOnce() -> R) -> R {
    struct Stopped;
    impl Drop for Stopped {
        fn drop(&mut self) {
            RUNNING.set(false);
        }
    }

    refuse_inside_a_run();
    RUNNING.set(true);
    let _stopped = Stopped;
    enter(core, body)
}

/// Makes `core` the thread's loop while `body` runs.
pub(crate) fn enter<R>(core: &Rc<Core>, body: impl FnOnce() -> R) -> R {
    current::enter(&CURRENT, core, body)
}

/// Calls `f` with the thread's loop.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(Option<&Core>) -> R) -> R {
    current::with(&CURRENT, f)
}

/// The thread's loop.
pub(crate) fn get() -> Option<Rc<Core>> {
    current::get(&CURRENT)
}

/// Calls `f` with the thread's loop, if it is the one that `shared` belongs to.
#[inline]
fn at_home<R>(shared: &Arc<Shared>, f: impl FnOnce(Option<&Core>) -> R) -> R {
    current::with(&CURRENT, |core| {
        f(core.filter(|core| Arc::ptr_eq(&core.shared, shared)))
    })
}

impl Metadata for Meta {
    #[inline]
    fn waker_table() -> &'static WakerTable<Self> {
        static TABLE: WakerTable<Meta> = WakerTable::new();
        &TABLE
    }

    /// Where every wake of a task ends up: on the loop's own thread in the microtask lane, from anywhere else in the inbox.
    #[inline]
    fn schedule(runnable: Runnable) {
        // A pointer, not a borrow: the runnable itself moves on.
        let shared = Arc::as_ptr(&runnable.metadata().shared);
        current::with(&CURRENT, |core| match core {
            Some(core) if Arc::as_ptr(&core.shared) == shared => {
                core.lane.push_microtask(Microtask::Task(runnable));
            }
            _ => send_home(runnable),
        });
    }

    fn unseen(&self, payload: Payload) {
        at_home(&self.shared, |core| {
            if core.is_some_and(|core| core.containment.has_ended()) {
                // Not a panic: the program was told to end, from inside this task.
                return;
            }
            let info = core.and_then(|core| core.tasks.info(self.slot));
            let stop = match info.filter(|info| info.id() == self.id) {
                Some(info) => self.shared.unseen_panic(&info, payload),
                None => self
                    .shared
                    .unseen_panic(&format_args!("task {}", self.id), payload),
            };
            if let (true, Some(core)) = (stop, core) {
                core.stop.set(true);
            }
        });
    }
}

/// A wake from elsewhere. Apart, to keep the usual way short.
#[cold]
fn send_home(runnable: Runnable) {
    let shared = runnable.metadata().shared.clone();
    // Refused: the loop is gone, and all its tasks are closed.
    let _ = shared.inbox.push(Message::Wake(runnable));
}

/// The same for the future of `block_on`.
pub(crate) fn schedule_root(shared: &Arc<Shared>) {
    at_home(shared, |core| match core {
        Some(core) => core.push_root(),
        // A loop that is gone polls nothing any more.
        None => drop(shared.inbox.push(Message::WakeRoot)),
    });
}
