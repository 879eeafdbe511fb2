//! What a task and its loop know of each other.

use std::sync::Arc;

use super::inbox::{Inbox, Notify};
use super::registry::Id;
use crate::sys::poller::Notifier;
use crate::sys::task;

/// A task that was woken; see [`crate::sys::task`].
pub(crate) type Runnable = task::Runnable<Meta>;

/// A hold on a task.
pub(crate) type TaskRef = task::TaskRef<Meta>;

/// Where the output of a task arrives.
pub(crate) type Output<T> = task::Output<T, Meta>;

/// What every task carries: the loop it belongs to, its number, and its slot in the registry there.
pub(crate) struct Meta {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: Id,
    pub(crate) slot: u32,
}

/// The part of a loop that any thread may touch.
pub(crate) struct Shared {
    pub(crate) inbox: Inbox<Message, Notifier>,
}

/// What other threads send.
pub(crate) enum Message {
    /// A task was woken.
    Wake(Runnable),
    /// The future of `block_on` was woken.
    WakeRoot,
    /// Something is to be done on the loop's thread.
    Call(Box<dyn FnOnce() + Send>),
}

impl Notify for Notifier {
    fn notify(&self) {
        Self::notify(self);
    }
}
