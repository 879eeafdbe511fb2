//! The types that a task and its loop share.

use std::cell::RefCell;
use std::fmt;
use std::panic::Location;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::counters::Pace;
use super::inbox::Inbox;
use super::join::panic_message;
use super::message::Message;
use super::registry::Registry;
use crate::raw::stock::Lent;
use crate::raw::task::{self, Payload};
use crate::raw::thread_bound::ThreadBound;
use crate::raw::unwind::discard;
use crate::stderr;
use crate::sys::poller::Notifier;
use crate::task_info::Id;

/// A woken task; see [`crate::raw::task`].
pub(crate) type Runnable = task::Runnable<Local>;

/// A live task, as the registry keeps it.
pub(crate) type Entry = task::Entry<Local>;

/// A reference to a task for any thread.
pub(crate) type TaskRef = task::TaskRef<Local>;

/// The receiving side of a task's output.
pub(crate) type Output<T> = task::Output<T, Local>;

/// The data of each task: its loop, its number, and the line that spawned it.
pub(crate) struct Local {
    pub(crate) shared: Lent<Shared>,
    pub(crate) id: Id,
    pub(crate) site: &'static Location<'static>,
}

/// The part of a loop that any thread may use.
pub(crate) struct Shared {
    pub(crate) inbox: Inbox<Message, Notifier>,
    policy: UnhandledPanic,
    /// The index of the loop among several of one program.
    pub(crate) index: Option<u32>,
    pub(crate) pace: Pace,
    /// The accepted connections that are open. Only the owner thread stores it.
    #[cfg(feature = "cluster")]
    pub(crate) connections: std::sync::atomic::AtomicUsize,
    /// The senders of a loop that refuses other threads.
    #[cfg(feature = "test-util")]
    pub(crate) foreign_senders: super::foreign_senders::ForeignSenders,
    /// The first panic that is to propagate out of the run of the loop.
    unhandled: Mutex<Option<Payload>>,
    /// The panics of tasks whose drop has panicked, until their handles take them. There are few,
    /// so no task has room of its own for one.
    kept: Mutex<Vec<(Id, Payload)>>,
    /// The loop's tasks, for the owner thread only, also while the loop does not run. `None` once
    /// the loop was dropped.
    registry: ThreadBound<RefCell<Option<Rc<Registry>>>>,
}

impl Shared {
    pub(crate) fn new(
        notifier: Notifier,
        policy: UnhandledPanic,
        registry: Rc<Registry>,
        index: Option<u32>,
    ) -> Self {
        Self {
            index,
            inbox: Inbox::new(notifier),
            policy,
            pace: Pace::new(),
            #[cfg(feature = "cluster")]
            connections: std::sync::atomic::AtomicUsize::new(0),
            #[cfg(feature = "test-util")]
            foreign_senders: super::foreign_senders::ForeignSenders::default(),
            unhandled: Mutex::new(None),
            kept: Mutex::default(),
            registry: ThreadBound::new(RefCell::new(Some(registry))),
        }
    }

    /// Sends a message to the loop, from any thread.
    ///
    /// # Errors
    ///
    /// Returns the message if the loop was dropped.
    #[inline]
    pub(crate) fn push(&self, message: Message) -> Result<(), Message> {
        self.note_sender();
        self.inbox.push(message)
    }

    /// Notes a send from another thread on a loop that refuses it.
    #[inline]
    #[cfg_attr(
        not(feature = "test-util"),
        expect(clippy::unused_self, reason = "only tests refuse threads")
    )]
    pub(crate) fn note_sender(&self) {
        #[cfg(feature = "test-util")]
        if self.foreign_senders.are_refused() && !self.is_owner_thread() {
            self.foreign_senders.note();
        }
    }

    /// Calls `f` with the loop's tasks. Returns `None` on other threads and once the loop was
    /// dropped. `f` must not run user code.
    #[inline]
    pub(crate) fn with_registry<R>(&self, f: impl FnOnce(&Registry) -> R) -> Option<R> {
        self.registry.get()?.borrow().as_deref().map(f)
    }

    /// Returns whether this is the thread of the loop.
    pub(crate) fn is_owner_thread(&self) -> bool {
        self.registry.get().is_some()
    }

    /// Marks a task to be dropped when the lane reaches it, if it is still alive and this is the
    /// owner thread.
    pub(crate) fn abort(&self, slot: u32, id: Id) {
        self.with_registry(|registry| registry.abort(slot, id));
    }

    /// Drops the registry, on the owner thread, when the loop and its tasks were dropped.
    pub(crate) fn forget_registry(&self) {
        let registry = self.registry.get().and_then(RefCell::take);
        drop(registry);
    }

    /// Applies the policy to a panic that no handle returns. The result is `true` if the loop has
    /// to stop and propagate the panic.
    pub(crate) fn unhandled_panic(&self, task: &dyn fmt::Display, payload: Payload) -> bool {
        match self.policy {
            UnhandledPanic::Ignore => discard(payload),
            UnhandledPanic::Report => {
                let message = panic_message(&*payload).unwrap_or("no message");
                stderr::print(format_args!(
                    "phaseloop: {task} panicked and is not awaited: {message}"
                ));
                discard(payload);
            }
            UnhandledPanic::Unwind => {
                // The drop of the second payload is user code, which may panic in turn: the lock is
                // free by then.
                if let Some(second) = self.set_unhandled(payload) {
                    discard(second);
                }
                return true;
            }
        }
        false
    }

    /// Keeps the first panic that is to propagate. Returns any other.
    fn set_unhandled(&self, payload: Payload) -> Option<Payload> {
        let mut unhandled = self.unhandled();
        if unhandled.is_some() {
            return Some(payload);
        }
        *unhandled = Some(payload);
        None
    }

    pub(crate) fn take_unhandled(&self) -> Option<Payload> {
        self.unhandled().take()
    }

    /// Keeps the panic of a task for its handle.
    pub(crate) fn keep_panic(&self, task: Id, payload: Payload) {
        self.kept().push((task, payload));
    }

    /// Takes the panic of a task.
    pub(crate) fn take_panic(&self, task: Id) -> Option<Payload> {
        let mut kept = self.kept();
        let at = kept.iter().position(|(id, _)| *id == task)?;
        Some(kept.swap_remove(at).1)
    }

    fn kept(&self) -> MutexGuard<'_, Vec<(Id, Payload)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unhandled(&self) -> MutexGuard<'_, Option<Payload>> {
        self.unhandled
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last waker of a task may drop this value, on any thread, where no panic may leave the drop.
impl Drop for Shared {
    fn drop(&mut self) {
        let kept = std::mem::take(&mut *self.kept());
        let kept = kept.into_iter().map(|(_, payload)| payload);
        self.take_unhandled()
            .into_iter()
            .chain(kept)
            .for_each(discard);
    }
}

/// What the loop does with a panic of a task that is not awaited.
///
/// The panic of a task is returned by its [`JoinHandle`](crate::JoinHandle). This policy applies if
/// the handle is dropped before it has returned the panic.
///
/// # Examples
///
/// A program that ends with the first panic of a detached task:
///
/// ```
/// use phaseloop::{Builder, UnhandledPanic, phase, spawn};
///
/// fn main() -> std::io::Result<()> {
///     let event_loop = Builder::new().unhandled_panic(UnhandledPanic::Unwind).build()?;
///     let run = std::panic::AssertUnwindSafe(|| {
///         event_loop.block_on(async {
///             spawn(async { panic!("a bug") }).detach();
///             phase::check().await;
///         });
///     });
///     assert!(std::panic::catch_unwind(run).is_err());
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnhandledPanic {
    /// Prints one line with the task on standard error.
    #[default]
    Report,
    /// Ignores the panic; only the panic hook of the process has printed it.
    Ignore,
    /// Stops the loop at the end of the turn, and propagates the panic out of the call that runs
    /// it.
    Unwind,
}
