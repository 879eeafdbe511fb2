//! The start and the end of a run, and the drop of the loop.

use std::panic::catch_unwind;
use std::rc::Rc;
use std::sync::Once;

use super::EventLoop;
use super::core::Core;
use super::current;
use crate::executor::Executor;
use crate::executor::message::Message;
use crate::executor::shared::Runnable;
use crate::frame::{self, Restored};
use crate::probe::{Flush, Wants};
use crate::raw::unwind::{Steps, ignore_panic};
use crate::sys::at_exit;

impl Core {
    /// Calls `body` as a run of this loop on this thread.
    ///
    /// # Panics
    ///
    /// If a loop already runs on this thread.
    #[track_caller]
    pub(crate) fn running<R>(self: &Rc<Self>, body: impl FnOnce() -> R) -> R {
        current::run(self, || {
            self.inside(true, || {
                self.executor.shared.inbox.resume();
                self.counters.begin_run(&self.executor);
                if self.executor.probe.wants(Wants::BUSY) {
                    self.executor.probe.begin_busy(self.executor.clock.read());
                }
                let _frame = Restored::current();
                let _running = Running { core: self };
                body()
            })
        })
    }

    /// Has the observers that hold something back flushed also if user code ends the process.
    pub(crate) fn flush_at_exit(&self) {
        static AT_EXIT: Once = Once::new();
        if self.executor.probe.wants(Wants::FLUSHES) {
            AT_EXIT.call_once(|| at_exit::call(flush_running));
        }
    }

    /// Calls `body` with this loop as the current loop of the thread.
    pub(crate) fn entered<R>(self: &Rc<Self>, body: impl FnOnce() -> R) -> R {
        current::enter(self, || self.inside(false, body))
    }

    /// Ends a run that did not panic: resumes the panic of an unawaited task if the policy asks for
    /// it.
    pub(super) fn end_run(&self) {
        if let Some(payload) = self.executor.shared.take_unhandled() {
            std::panic::resume_unwind(payload);
        }
    }

    /// Drops everything that is left on the loop, on its owner thread.
    fn shut_down(&self) {
        // What is dropped is not part of the program that drops the loop.
        let _frame = Restored::current();
        // The frame is kept above, so nothing is dropped here.
        drop(frame::take());
        self.executor.close();
        // Each step may drop what belongs to the user, whose panic must not keep the others from
        // their end.
        let mut steps = Steps::default();
        let mut messages = self.drop_tasks(&mut steps);
        messages.append(&mut self.executor.shared.inbox.close());
        // After the tasks, which may own handles of jobs.
        for job in self.ledger.spawned_jobs() {
            steps.run(|| job.abandon());
        }
        for message in messages {
            steps.run(|| {
                // The job may be awaited on another loop.
                if let Message::JobEnded(job) = message {
                    job.abandon();
                }
            });
        }

        if let Some(extension) = self.extension.get() {
            steps.run(|| extension.shut_down());
        }
        // Waiters may be tasks of other loops of this thread. They are woken at the end, to find
        // this loop dropped.
        let mut waiting = self.ledger.take_wakers();
        steps.run(|| self.phases.stop_timers(&mut waiting));
        steps.run(|| self.phases.stop_hooks());
        steps.run(|| self.io.stop_subscribers());
        self.ledger.shut_down_handles(&mut steps);
        steps.run(|| self.io.stop_sources(self));
        steps.run(|| self.end_closes(&mut waiting));
        self.phases.clear_queues(&mut waiting, &mut steps);
        steps.run(|| self.io.forget_deferred());
        if let Some(wait) = self.waits.chosen() {
            steps.run(|| wait.drop_user_code());
        }
        for calls in self.executor.take_calls() {
            steps.drop_each(calls);
        }
        // The drops above may have counted something again; a dropped loop has nothing alive.
        self.ledger.clear(&mut steps);
        // After the tasks of the loop, which may still use it.
        if let Some(wait) = self.waits.chosen() {
            steps.run(|| wait.shut_down(self.io.poller().is_inherited()));
        }
        for waker in waiting {
            ignore_panic(|| waker.wake());
        }
        steps.end();
    }
}

impl Core {
    /// Drops the futures of all tasks, so that no waker can schedule a task afterwards. Returns the
    /// messages that were not wakes.
    ///
    /// A task is dropped through its runnable, which exists only while the task is scheduled. So
    /// each task that is not scheduled is woken here. The runnable of a scheduled one is in the
    /// lane, among the messages, or about to be sent by another thread; the loop below waits for
    /// that thread.
    fn drop_tasks(&self, steps: &mut Steps) -> Vec<Message> {
        let mut others = Vec::new();
        while self.executor.has_idle_tasks() {
            self.executor.wake_all();
            let mut sent = Vec::new();
            self.executor.shared.inbox.take(&mut sent);
            let mut messages = self.take_messages();
            messages.append(&mut sent);
            let mut woken = self.executor.take_tasks();
            for message in messages {
                match message {
                    Message::Wake(runnable) => woken.push(runnable),
                    other => others.push(other),
                }
            }
            if woken.is_empty() {
                std::thread::yield_now();
            }
            drop_by_slot(woken);
        }
        steps.run(|| self.executor.shared.forget_registry());
        others.append(&mut self.take_messages());
        others
    }

    /// Takes the messages that are not delivered, in their order.
    fn take_messages(&self) -> Vec<Message> {
        let mut messages = self.io.take_messages();
        if let Some(wait) = self.waits.chosen() {
            messages.append(&mut wait.take_messages());
        }
        messages
    }

    /// Drops the contents of the lanes, because the program has exited.
    // Not inlined: every end of a task asks, and should save no registers for it.
    #[cold]
    pub(super) fn end_lanes(&self) {
        // This is called at the end of a task, which must not unwind.
        let tasks = self.executor.take_tasks();
        let calls = self.executor.take_calls();
        for task in tasks {
            ignore_panic(|| drop(task));
        }
        for call in calls.into_iter().flatten() {
            ignore_panic(|| drop(call));
        }
    }
}

/// Drops tasks in the order of their slots. Each has a slot of its own, so no sort is needed.
fn drop_by_slot(mut tasks: Vec<Runnable>) {
    // A run that was interrupted leaves its main future behind, which owns nothing.
    tasks.retain(|task| !Executor::is_main_future(task));
    let mut by_slot: Vec<Option<Runnable>> = Vec::new();
    for task in tasks {
        let slot = task.slot() as usize;
        if slot >= by_slot.len() {
            by_slot.resize_with(slot + 1, || None);
        }
        by_slot[slot] = Some(task);
    }
    for task in by_slot {
        drop(task);
    }
}

/// Flushes the observers of the loop that runs on this thread: user code has called
/// `std::process::exit`.
extern "C" fn flush_running() {
    // A panic must not leave an exit handler.
    let _ = catch_unwind(|| current::if_any(|core| core.executor.probe.flush(Flush::Exit)));
}

/// A run in progress; the drop ends it.
struct Running<'a> {
    core: &'a Core,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let core = self.core;
        if std::thread::panicking() {
            core.panic_policy.resume();
            // The rest of an interrupted phase runs with the next run. The queues keep their own
            // rest.
            core.put_back_timers();
            if core.io.was_interrupted() || core.phases.was_closing_interrupted() {
                core.was_interrupted.set(true);
                core.executor.shared.inbox.signal();
            }
        }
        if frame::is_used() {
            core.executor.end_contexts();
        }
        core.executor.clock.catch_up();
        core.end_busy_run();
        if std::thread::panicking() {
            core.executor.probe.flush(Flush::Panic);
        }
        core.was_stopped.set(core.stop.replace(false));
        core.executor.shared.inbox.leave_parked();
    }
}

impl Drop for EventLoop {
    fn drop(&mut self) {
        let mut steps = Steps::default();
        steps.run(|| self.core.entered(|| self.core.shut_down()));
        steps.run(|| self.core.executor.probe.flush(Flush::Dropped));
        steps.end();
    }
}
