//! The messages that other threads send to the loop.

use std::sync::Arc;

use super::shared::Runnable;

/// A message of another thread.
pub(crate) enum Message {
    /// Polls a woken task.
    Wake(Runnable),
    /// Polls the main future.
    WakeMainFuture,
    /// Calls a closure on the owner thread.
    Call(Box<dyn FnOnce() + Send>),
    /// Delivers a value that other threads may hold, too.
    Arrival(Arc<dyn Arrival>),
}

impl Message {
    /// Returns whether this is the completion of a job, the only use of `Arrival`.
    pub(crate) fn is_end_of_job(&self) -> bool {
        matches!(self, Self::Arrival(_))
    }
}

/// A value that another thread sends to the loop, without an allocation for the message.
pub(crate) trait Arrival: Send + Sync {
    /// Runs on the owner thread, as a callback.
    fn arrive(self: Arc<Self>);

    /// Runs on the owner thread when the loop is dropped with this message in its inbox. It must
    /// not run user code other than wakers.
    fn abandon(self: Arc<Self>) {}
}
