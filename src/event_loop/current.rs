//! Which loop runs on this thread: the only thread-local of the loop, and the one branch a wake takes.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::core::Core;
use crate::executor::lane::Microtask;
use crate::executor::spawn::{Message, Runnable, Shared};

thread_local! {
    /// The loop that runs, or is being set up or torn down, on this thread.
    static CURRENT: RefCell<Option<Rc<Core>>> = const { RefCell::new(None) };
}

/// Makes `core` the thread's loop until the guard is dropped.
pub(crate) fn enter(core: &Rc<Core>) -> Enter {
    let before = CURRENT.with(|current| current.borrow_mut().replace(core.clone()));
    Enter { before }
}

/// Puts the thread's former loop back.
pub(crate) struct Enter {
    before: Option<Rc<Core>>,
}

impl Drop for Enter {
    fn drop(&mut self) {
        let ours = CURRENT.with(|current| current.replace(self.before.take()));
        // Outside the borrow: the last reference may be this one.
        drop(ours);
    }
}

/// The thread's loop.
pub(crate) fn get() -> Option<Rc<Core>> {
    // The thread-local is gone while the thread's other locals are destroyed.
    CURRENT
        .try_with(|current| current.borrow().clone())
        .unwrap_or(None)
}

/// Where every wake of a task ends up: on the loop's own thread in the microtask lane, from anywhere else in
/// the inbox.
pub(crate) fn schedule(runnable: Runnable) {
    let mut runnable = Some(runnable);
    let _ = CURRENT.try_with(|current| {
        if let Some(core) = &*current.borrow() {
            if let Some(local) = runnable.take_if(|r| core.is_home_of(&r.metadata().shared)) {
                core.lane.push_microtask(Microtask::Task(local));
            }
        }
    });
    if let Some(remote) = runnable {
        let shared = remote.metadata().shared.clone();
        // Refused: the loop is gone, and all its tasks are closed. The runnable leaks if it must.
        let _ = shared.inbox.push(Message::Wake(remote));
    }
}

/// The same for the future of `block_on`.
pub(crate) fn schedule_root(shared: &Arc<Shared>) {
    match get() {
        Some(core) if core.is_home_of(shared) => core.lane.push_microtask(Microtask::Root),
        // A loop that is gone polls nothing any more.
        _ => drop(shared.inbox.push(Message::WakeRoot)),
    }
}
