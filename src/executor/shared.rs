//! What a task and its loop know of each other.

use std::cell::RefCell;
use std::fmt;
use std::panic::Location;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use super::inbox::{Inbox, Notify};
use super::join::panic_message;
use super::message::Message;
use super::registry::{Id, Registry};
use crate::raw::task::{self, Payload};
use crate::raw::thread_bound::ThreadBound;
use crate::sys::poller::Notifier;

/// A task that was woken; see [`crate::raw::task`].
pub(crate) type Runnable = task::Runnable<Local>;

/// A task that is alive, as the registry keeps it.
pub(crate) type Entry = task::Entry<Local>;

/// Where the output of a task arrives.
pub(crate) type Output<T> = task::Output<T, Local>;

/// What every task carries: the loop it belongs to, its number, the line that spawned it.
pub(crate) struct Local {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: Id,
    pub(crate) site: &'static Location<'static>,
}

/// The part of a loop that any thread may touch.
pub(crate) struct Shared {
    pub(crate) inbox: Inbox<Message, Notifier>,
    policy: UnhandledPanic,
    /// The first panic that is to come out of the call that runs the loop.
    unhandled: Mutex<Option<Payload>>,
    /// The loop's tasks, for its own thread, also while the loop does not run. `None` once it is gone.
    registry: ThreadBound<RefCell<Option<Rc<Registry>>>>,
}

impl Shared {
    pub(crate) fn new(notifier: Notifier, policy: UnhandledPanic, registry: Rc<Registry>) -> Self {
        Self {
            inbox: Inbox::new(notifier),
            policy,
            unhandled: Mutex::new(None),
            registry: ThreadBound::new(RefCell::new(Some(registry))),
        }
    }

    /// Calls `f` with the loop's tasks; `None` on other threads, and once the loop is gone. `f` runs no user code.
    #[inline]
    pub(crate) fn with_registry<R>(&self, f: impl FnOnce(&Registry) -> R) -> Option<R> {
        self.registry.get()?.borrow().as_deref().map(f)
    }

    /// Has a task dropped in its next turn, if it is still there and this is the loop's thread.
    pub(crate) fn abort(&self, slot: u32, id: Id) {
        self.with_registry(|registry| registry.abort(slot, id));
    }

    /// The loop is gone, on its own thread, and so are its tasks.
    pub(crate) fn forget_registry(&self) {
        let registry = self.registry.get().and_then(RefCell::take);
        drop(registry);
    }

    /// Deals with a panic that no handle delivers. `true`: the loop is to stop and let it out.
    pub(crate) fn unhandled_panic(&self, task: &dyn fmt::Display, payload: Payload) -> bool {
        match self.policy {
            UnhandledPanic::Ignore => {}
            UnhandledPanic::Report => {
                let message = panic_message(&*payload).unwrap_or("no message");
                eprintln!("phaseloop: {task} panicked and nobody awaits it: {message}");
            }
            UnhandledPanic::Unwind => {
                let mut unhandled = self
                    .unhandled
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                unhandled.get_or_insert(payload);
                return true;
            }
        }
        false
    }

    pub(crate) fn take_unhandled(&self) -> Option<Payload> {
        self.unhandled
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

/// What the loop does with a panic of a task that nobody awaits.
///
/// A task that panics keeps the panic for its [`JoinHandle`](crate::JoinHandle). Only when the handle is dropped
/// without having delivered it does this apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnhandledPanic {
    /// One line on standard error, naming the task.
    #[default]
    Report,
    /// Nothing, beyond what the process's panic hook has printed.
    Ignore,
    /// The loop stops at the end of the turn and the panic continues out of the call that runs it.
    Unwind,
}

impl Notify for Notifier {
    fn notify(&self) {
        Self::notify(self);
    }
}
