//! What other threads are doing for this loop: it keeps the loop alive, and its report names it.

use std::cell::RefCell;

use slab::Slab;

use super::core::{Core, MAIN};
use crate::executor::registry::Id;
use crate::kinds::{Kind, Site};
use crate::pool::Class;

/// What a job is for.
#[derive(Clone, Copy)]
pub(crate) struct Purpose {
    pub(crate) class: Class,
    /// The name of the function that has asked for it.
    pub(crate) operation: &'static str,
    /// The line that has called that function, where it is known.
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

/// A job that is under way.
#[derive(Clone, Copy)]
pub(crate) struct JobInfo {
    pub(crate) purpose: Purpose,
    pub(crate) asked_by: Asker,
}

/// Who has asked for a job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    Task(Id),
    /// The root future.
    Main,
    Callback,
}

/// Names a job from its beginning to its end. Other threads carry it along.
#[derive(Clone, Copy)]
pub(crate) struct JobKey(usize);

#[derive(Default)]
pub(crate) struct Jobs {
    list: RefCell<Slab<Job>>,
}

struct Job {
    info: JobInfo,
    after: Option<After>,
    /// It was under way in the process that this one was forked from.
    is_lost: bool,
}

/// What is called on the loop when a job has ended.
pub(crate) type After = Box<dyn FnOnce()>;

impl Jobs {
    /// Forgets everything: the loop is gone.
    pub(super) fn clear(&self) {
        // The drop of a callback is user code, and is outside the borrow.
        drop(self.list.take());
    }

    pub(super) fn list(&self) -> Vec<JobInfo> {
        self.list.borrow().iter().map(|(_, job)| job.info).collect()
    }
}

impl Core {
    /// A job is handed to other threads; the loop stays alive until its end.
    pub(crate) fn begin_job(&self, purpose: Purpose) -> JobKey {
        self.liveness.add(Kind::Work);
        let asked_by = match self.polled.get() {
            MAIN => Asker::Main,
            polled => self.tasks.id(polled).map_or(Asker::Callback, Asker::Task),
        };
        let info = JobInfo { purpose, asked_by };
        let job = Job {
            info,
            after: None,
            is_lost: false,
        };
        JobKey(self.jobs.list.borrow_mut().insert(job))
    }

    /// The job is awaited by another task than the one that has begun it.
    pub(crate) fn hand_job_to(&self, key: JobKey, task: Id) {
        if let Some(job) = self.jobs.list.borrow_mut().get_mut(key.0) {
            job.info.asked_by = Asker::Task(task);
        }
    }

    /// Has `after` called when the job has ended.
    pub(crate) fn call_after_job(&self, key: JobKey, after: After) {
        if let Some(job) = self.jobs.list.borrow_mut().get_mut(key.0) {
            job.after = Some(after);
        }
    }

    /// The job has ended, or is given up. Returns what is to be called if it has ended.
    pub(crate) fn end_job(&self, key: JobKey) -> Option<After> {
        let job = self.jobs.list.borrow_mut().remove(key.0);
        if !job.is_lost {
            self.liveness.remove(Kind::Work);
        }
        job.after
    }

    /// After a fork: the threads of the pool are the parent's, and jobs under way end there alone (R329).
    pub(super) fn lose_jobs(&self) {
        for (_, job) in self.jobs.list.borrow_mut().iter_mut() {
            if !std::mem::replace(&mut job.is_lost, true) {
                self.liveness.remove(Kind::Work);
            }
        }
    }
}
