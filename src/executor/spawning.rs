//! Spawning: a task starts in the microtask lane, or inside its spawner.
// Marks: the future is written to its task, not copied on the way (row `spawn_join`).

use std::future::Future;
use std::rc::Rc;

use super::join::JoinHandle;
use super::shared::{Local, Runnable};
use super::{Executor, budget};
use crate::frame;
use crate::probe::Mode;
use crate::raw::stock::Lent;
use crate::raw::task;
use crate::site::Site;

impl Executor {
    /// Spawns a task. Its first poll is queued in the microtask lane.
    pub(crate) fn spawn<F>(
        &self,
        future: F,
        site: Site,
        name: Option<Rc<str>>,
    ) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.start(future, site, name, |runnable| {
            if self.probe.has(Mode::SPAWN) || !frame::is_plain() {
                self.push_spawned_watched(runnable);
            } else {
                self.lanes.push_task(runnable);
            }
        })
    }

    /// Spawns a task on the current loop. Its first poll is queued in the microtask lane.
    #[inline(always)]
    pub(crate) fn spawn_current<F>(&self, future: F, site: Site) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.start(future, site, None, |runnable| {
            // The current loop knows whether contexts are in use.
            if self.probe.has(Mode::SPAWN) {
                self.push_spawned_watched(runnable);
            } else {
                self.lanes.push_task(runnable);
            }
        })
    }

    /// Spawns a task and polls it at once, inside this call.
    // Rule N19.
    pub(crate) fn spawn_eager<F>(&self, future: F, site: Site) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.start(future, site, None, |runnable| self.run_nested(runnable))
    }

    #[inline(always)]
    fn start<F>(
        &self,
        future: F,
        site: Site,
        name: Option<Rc<str>>,
        begin: impl FnOnce(Runnable),
    ) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        if self.is_closed() {
            return JoinHandle::never_started(self.tasks.new_job_id());
        }
        let (runnable, output) = self.tasks.insert(name, |id, slot| {
            let local = Local {
                shared: Lent::new(&self.stock),
                id,
                site,
            };
            let (runnable, entry, output) = task::spawn_local(local, slot, future, &self.wakers);
            (entry, (runnable, output))
        });
        begin(runnable);
        JoinHandle::new(output)
    }

    /// Polls a task that was just spawned, inside its spawner.
    fn run_nested(&self, runnable: Runnable) {
        self.run_inside(|| {
            let slot = runnable.slot();
            // An observer, which is user code, must not find the task missing in the lane: it is
            // being polled.
            self.polled.set(slot);
            self.probe.spawned(|| self.tasks.info(slot));
            self.run_in_spawner(runnable);
        });
    }

    /// Calls `poll`, which polls a task, inside of what is being polled.
    pub(super) fn run_inside(&self, poll: impl FnOnce()) {
        let inside = Inside {
            executor: self,
            spawner: self.polled.get(),
            left: budget::left(),
        };
        self.spawners.borrow_mut().push(inside.spawner);
        self.self_wakes.apart(poll);
    }
}

/// A poll inside of another one; the drop ends it, also after a panic of the main future.
struct Inside<'a> {
    executor: &'a Executor,
    spawner: u32,
    /// The budget of the spawner.
    left: i32,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.executor.spawners.borrow_mut().pop();
        self.executor.polled.set(self.spawner);
        budget::restore(self.left);
    }
}
