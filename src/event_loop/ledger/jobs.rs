//! The jobs that other threads run for this loop. They keep the loop alive, and its report lists
//! them.

use std::cell::RefCell;
use std::sync::Arc;

use slab::Slab;

use super::Ledger;
use crate::event_loop::core::Core;
use crate::executor::registry::TaskState;
use crate::frame::carry_once;
use crate::keeper::Keeper;
use crate::pool::{Class, Job};
use crate::probe::Area;
use crate::raw::unwind::Steps;
use crate::site::Site;
use crate::task_info::{Id, Info};

/// The kind of a callback for a job's end, for a tracker.
const WORK: &str = "WORKER";

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
#[derive(Clone)]
pub(crate) struct JobInfo {
    pub(crate) purpose: Purpose,
    pub(crate) asked_by: Asker,
}

/// What started a job.
#[derive(Clone)]
pub(crate) enum Asker {
    Task(Id),
    /// The main future.
    MainFuture,
    Callback,
    /// The job has a handle, and counts as a task. It is cancelled with the loop.
    Handle {
        id: Id,
        job: Arc<dyn Job>,
    },
}

/// The key of a job from its start to its completion. Other threads carry it along.
#[derive(Clone, Copy)]
pub(crate) struct JobKey(usize);

#[derive(Default)]
pub(crate) struct Jobs {
    list: RefCell<Slab<Entry>>,
}

struct Entry {
    info: JobInfo,
    after: Option<After>,
    /// The job was in progress in the parent when this process was forked.
    is_lost: bool,
}

/// A callback that the loop runs when a job has completed.
pub(crate) type After = Box<dyn FnOnce()>;

/// The jobs.
impl Ledger {
    /// Forgets all jobs when the loop is dropped.
    pub(super) fn clear_jobs(&self, steps: &mut Steps) {
        // Dropping a callback may run user code; it happens outside the borrow.
        steps.drop_each(self.jobs.list.take());
    }

    /// Returns the jobs in progress.
    #[inline]
    pub(crate) fn jobs(&self) -> Vec<JobInfo> {
        let list = self.jobs.list.borrow();
        list.iter().map(|(_, entry)| entry.info.clone()).collect()
    }

    /// Returns the jobs that count as tasks.
    pub(in crate::event_loop) fn spawned_jobs(&self) -> Vec<Arc<dyn Job>> {
        let jobs = self
            .jobs()
            .into_iter()
            .filter_map(|info| match info.asked_by {
                Asker::Handle { job, .. } => Some(job),
                _ => None,
            });
        jobs.collect()
    }

    /// Describes the jobs that count as tasks.
    pub(in crate::event_loop) fn job_states(&self) -> Vec<TaskState> {
        let states = self.jobs().into_iter().filter_map(|info| {
            let (Asker::Handle { id, job }, Some(site)) = (info.asked_by, info.purpose.site) else {
                return None;
            };
            Some(TaskState {
                info: Info::unnamed(id, site),
                slot: None,
                waker: Arc::as_ptr(&job).cast(),
                awaiter: job.awaiter(),
            })
        });
        states.collect()
    }

    /// Returns the line that started a job that has not ended, if known.
    pub(crate) fn job_site(&self, key: JobKey) -> Option<Site> {
        let list = self.jobs.list.borrow();
        list.get(key.0)?.info.purpose.site
    }

    /// Sets the callback that runs when the job has completed.
    pub(crate) fn call_after_job(&self, key: JobKey, after: After) {
        if let Some(job) = self.jobs.list.borrow_mut().get_mut(key.0) {
            job.after = Some(carry_once(WORK, after));
        }
    }

    /// Stops counting all jobs after a fork: the threads of the pool belong to the parent, so jobs
    /// in progress complete only there.
    // Rule R329.
    pub(in crate::event_loop) fn lose_jobs(&self) {
        for (_, job) in self.jobs.list.borrow_mut().iter_mut() {
            if !std::mem::replace(&mut job.is_lost, true) {
                self.remove(Keeper::Work);
            }
        }
    }
}

impl Core {
    /// Starts to count a job of other threads; it keeps the loop alive until its completion.
    pub(crate) fn begin_job(&self, purpose: Purpose) -> JobKey {
        // A file operation has logged its path.
        if purpose.class != Class::Fs {
            self.log_job(purpose, "is queued");
        }
        let asked_by = if self.executor.polls_main_future() {
            Asker::MainFuture
        } else {
            let task = self.executor.polled_id();
            task.map_or(Asker::Callback, Asker::Task)
        };
        self.ledger.add(Keeper::Work);
        let info = JobInfo { purpose, asked_by };
        JobKey(self.ledger.jobs.list.borrow_mut().insert(Entry {
            info,
            after: None,
            is_lost: false,
        }))
    }

    /// Starts to count the job that `make` creates, which counts as a task. `make` must not use
    /// the list of jobs, which is borrowed; it runs no user code.
    #[inline]
    pub(crate) fn begin_spawned_job<J: Job + 'static>(
        &self,
        purpose: Purpose,
        make: impl FnOnce(JobKey, Id) -> Arc<J>,
    ) -> Arc<J> {
        self.log_job(purpose, "is queued");
        self.ledger.add(Keeper::Work);
        let mut list = self.ledger.jobs.list.borrow_mut();
        let vacant = list.vacant_entry();
        let id = self.executor.tasks.new_job_id();
        let job = make(JobKey(vacant.key()), id);
        let asked_by = Asker::Handle {
            id,
            job: job.clone(),
        };
        vacant.insert(Entry {
            info: JobInfo { purpose, asked_by },
            after: None,
            is_lost: false,
        });
        job
    }

    /// Stops counting a job that has completed or was cancelled. Returns the callback to run on
    /// completion.
    pub(crate) fn end_job(&self, key: JobKey) -> Option<After> {
        let job = self.ledger.jobs.list.borrow_mut().remove(key.0);
        self.log_job(job.info.purpose, "has ended");
        if !job.is_lost {
            self.ledger.remove(Keeper::Work);
        }
        job.after
    }

    fn log_job(&self, purpose: Purpose, what: &str) {
        let area = match purpose.class {
            Class::Fs => Area::Fs,
            Class::Cpu | Class::Dns => Area::Pool,
        };
        self.executor.probe.log(area, || match purpose.site {
            Some(site) => format!("{} ({site}) {what}", purpose.operation),
            None => format!("{} {what}", purpose.operation),
        });
    }
}
