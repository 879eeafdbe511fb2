//! The jobs that other threads run for this loop. They keep the loop alive, and its report lists
//! them.

use std::cell::RefCell;

use slab::Slab;

use crate::event_loop::core::Core;
use crate::keeper::Keeper;
use crate::pool::Class;
use crate::site::Site;
use crate::task_info::Id;

/// The purpose of a job.
#[derive(Clone, Copy)]
pub(crate) struct Purpose {
    pub(crate) class: Class,
    /// The name of the function that started it.
    pub(crate) operation: &'static str,
    /// The line that called that function, if known.
    pub(crate) site: Option<Site>,
}

impl Purpose {
    pub(crate) fn new(class: Class, operation: &'static str) -> Self {
        Self {
            class,
            operation,
            site: None,
        }
    }

    pub(crate) fn at(self, site: Site) -> Self {
        Self {
            site: Some(site),
            ..self
        }
    }
}

/// A job in progress.
#[derive(Clone, Copy)]
pub(crate) struct JobInfo {
    pub(crate) purpose: Purpose,
    pub(crate) asked_by: Asker,
}

/// What started a job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    Task(Id),
    /// The main future.
    MainFuture,
    Callback,
}

/// The key of a job from its start to its completion. Other threads carry it along.
#[derive(Clone, Copy)]
pub(crate) struct JobKey(usize);

#[derive(Default)]
pub(crate) struct Jobs {
    list: RefCell<Slab<Job>>,
}

struct Job {
    info: JobInfo,
    after: Option<After>,
    /// The job was in progress in the parent when this process was forked.
    is_lost: bool,
}

/// A callback that the loop runs when a job has completed.
pub(crate) type After = Box<dyn FnOnce()>;

impl Jobs {
    /// Forgets all jobs when the loop is dropped.
    pub(in crate::event_loop) fn clear(&self) {
        // Dropping a callback may run user code; it happens outside the borrow.
        drop(self.list.take());
    }

    pub(in crate::event_loop) fn list(&self) -> Vec<JobInfo> {
        self.list.borrow().iter().map(|(_, job)| job.info).collect()
    }
}

impl Core {
    /// Starts to count a job of other threads; it keeps the loop alive until its completion.
    pub(crate) fn begin_job(&self, purpose: Purpose) -> JobKey {
        self.ledger.add(Keeper::Work);
        let asked_by = if self.executor.polls_main_future() {
            Asker::MainFuture
        } else {
            let task = self.executor.polled_id();
            task.map_or(Asker::Callback, Asker::Task)
        };
        let info = JobInfo { purpose, asked_by };
        let job = Job {
            info,
            after: None,
            is_lost: false,
        };
        JobKey(self.ledger.jobs.list.borrow_mut().insert(job))
    }

    /// Notes that another task than the one that started the job awaits it.
    pub(crate) fn hand_job_to(&self, key: JobKey, task: Id) {
        if let Some(job) = self.ledger.jobs.list.borrow_mut().get_mut(key.0) {
            job.info.asked_by = Asker::Task(task);
        }
    }

    /// Sets the callback that runs when the job has completed.
    pub(crate) fn call_after_job(&self, key: JobKey, after: After) {
        if let Some(job) = self.ledger.jobs.list.borrow_mut().get_mut(key.0) {
            job.after = Some(after);
        }
    }

    /// Stops counting a job that has completed or was cancelled. Returns the callback to run on
    /// completion.
    pub(crate) fn end_job(&self, key: JobKey) -> Option<After> {
        let job = self.ledger.jobs.list.borrow_mut().remove(key.0);
        if !job.is_lost {
            self.ledger.remove(Keeper::Work);
        }
        job.after
    }

    /// Stops counting all jobs after a fork: the threads of the pool belong to the parent, so jobs
    /// in progress complete only there.
    // Rule R329.
    pub(in crate::event_loop) fn lose_jobs(&self) {
        for (_, job) in self.ledger.jobs.list.borrow_mut().iter_mut() {
            if !std::mem::replace(&mut job.is_lost, true) {
                self.ledger.remove(Keeper::Work);
            }
        }
    }
}
