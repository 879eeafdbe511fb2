//! The loop of a job, as the job sees it. The loom models have a type of this name in its place.

use std::sync::Arc;

use crate::event_loop::current;
use crate::event_loop::ledger::jobs::{After, JobKey};
use crate::executor::message::Message;
use crate::executor::shared::Shared;
use crate::pool::Job;
use crate::raw::task::Payload;
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::task_info::{Id, Info};

pub(super) struct Home {
    shared: Arc<Shared>,
    key: JobKey,
    /// The number and the line of a job that counts as a task.
    spawned: Option<(Id, Site)>,
}

impl Home {
    pub(super) fn new(handle: &LoopHandle, key: JobKey, spawned: Option<(Id, Site)>) -> Self {
        Self {
            shared: handle.core().executor.shared.clone(),
            key,
            spawned,
        }
    }

    pub(super) fn key(&self) -> JobKey {
        self.key
    }

    /// Sends a completed job to the loop, from a thread of the pool; [`Job::arrive`] follows on the
    /// owner thread. Returns `false` if the loop was dropped.
    ///
    /// Completions go through the inbox, even if a job completes before it is awaited, so that they
    /// arrive in the poll phase and in order.
    // Rule R277.
    pub(super) fn send(&self, ended: Arc<dyn Job>) -> bool {
        self.shared.push(Message::JobEnded(ended)).is_ok()
    }

    /// Returns whether the loop was dropped.
    pub(super) fn is_gone(&self) -> bool {
        self.shared.inbox.is_closed()
    }

    /// Returns whether this is the thread of the loop.
    pub(super) fn is_owner_thread(&self) -> bool {
        self.shared.is_owner_thread()
    }

    /// Returns whether the job counts as a task.
    pub(super) fn is_spawned(&self) -> bool {
        self.spawned.is_some()
    }

    /// Returns the line that started the job, if known, on the owner thread.
    pub(super) fn site(&self) -> Option<Site> {
        current::with_loop_of(&self.shared, |core| core?.ledger.job_site(self.key))
    }

    /// # Panics
    ///
    /// If the job does not count as a task.
    pub(super) fn id(&self) -> Id {
        self.spawned
            .expect("a job with a handle counts as a task")
            .0
    }

    /// Stops counting a job. Returns the callback to run on completion.
    pub(super) fn end(&self) -> Option<After> {
        current::with_loop_of(&self.shared, |core| core?.end_job(self.key))
    }

    /// Calls `call` as a microtask.
    pub(super) fn schedule(&self, call: impl FnOnce() + Send + 'static) {
        current::schedule_call(&self.shared, call);
    }

    /// Reports a panic that no handle will return.
    pub(super) fn unhandled(&self, panic: Payload) {
        if let Some((id, site)) = self.spawned {
            current::unhandled_panic(&self.shared, &Info::unnamed(id, site), panic);
        }
    }
}
