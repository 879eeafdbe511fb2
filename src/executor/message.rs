//! What other threads send to the loop.

use std::sync::Arc;

use super::shared::Runnable;

/// What other threads send.
pub(crate) enum Message {
    /// A task was woken.
    Wake(Runnable),
    /// The future of `block_on` was woken.
    WakeMainFuture,
    /// Something is to be done on the loop's thread.
    Call(Box<dyn FnOnce() + Send>),
    /// Something comes to the loop that others hold, too.
    Arrival(Arc<dyn Arrival>),
}

impl Message {
    /// Whether a job has ended; nothing else arrives.
    pub(crate) fn is_end_of_job(&self) -> bool {
        matches!(self, Self::Arrival(_))
    }
}

/// What another thread has dealt with and sends to the loop, without an allocation for the sending.
pub(crate) trait Arrival: Send + Sync {
    /// On the loop's thread, as a callback.
    fn arrive(self: Arc<Self>);

    /// The loop is gone, and this was in its inbox. On the loop's thread; must not run user code
    /// other than wakers.
    fn abandon(self: Arc<Self>) {}
}
