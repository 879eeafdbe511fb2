//! The messages that other threads send to the loop.

use std::sync::Arc;

use super::shared::Runnable;
use crate::pool::Job;

/// A message of another thread.
pub(crate) enum Message {
    /// Polls a woken task, or the main future.
    Wake(Runnable),
    /// Calls a closure on the owner thread.
    Call(Box<dyn FnOnce() + Send>),
    /// Delivers the completion of a job.
    JobEnded(Arc<dyn Job>),
}
