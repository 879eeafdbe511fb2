//! Tasks and the main future in their contexts; see `frame.rs`.
//!
//! A task takes its frame out of the registry for a poll, and puts it back afterwards, as a change
//! may have left it. Nothing of this is called while contexts are not in use.
//!
//! The first use of a context switches the mode on in the middle of user code. What runs at that
//! time was begun on the plain path, and ends on it: a closure in the lanes gets a wrapper then,
//! and the frame of the task that is being polled is kept when the next activity begins.
//!
//! The drop of a frame is user code, since it may drop a value. The loop drops one in the middle of
//! its work, while it holds what it is about to run. So a panic of such a drop is caught and
//! [reported](Executor::let_go).
// Marks: not inlined, since few programs use contexts.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::shared::{Runnable, Shared};
use super::{Executor, MAIN_FUTURE, NO_TASK, budget};
use crate::frame::{self, Capture, Frame, Work};
use crate::probe::Mode;
use crate::raw::call::Call;
use crate::raw::task::Payload;
use crate::raw::unwind::{discard, ignore_panic};
use crate::task_info::Id;

/// The kind of a task, for a tracker.
const TASK: &str = "TASK";

#[derive(Default)]
pub(super) struct Contexts {
    /// What the main future runs in, while it is not being polled.
    main: RefCell<Frame>,
    /// The task whose poll has begun on the plain path and has used the first context, or the main
    /// future.
    first: Cell<Option<First>>,
    /// What reports the panic of a value that the loop has dropped.
    report: Cell<Option<Report>>,
}

/// Reports the panic of a value that the loop has dropped.
pub(crate) type Report = fn(&Arc<Shared>, Payload);

#[derive(Clone, Copy)]
enum First {
    Task(u32, Id),
    Main,
}

impl Executor {
    /// Begins to use contexts. `wrapped` makes of a queued closure one that calls
    /// [`begin_activity`](Self::begin_activity) first; `report` reports a panic.
    pub(crate) fn use_contexts(&self, wrapped: fn(Call) -> Call, report: Report) {
        if self.uses_contexts() {
            return;
        }
        self.contexts.report.set(Some(report));
        self.probe.set(Mode::CONTEXTS, true);
        self.lanes.wrap_calls(wrapped);
        // The outermost poll, if there is one: those inside of it keep their frames themselves.
        let outermost = self.spawners.borrow().first().copied();
        let first = match outermost.unwrap_or(self.polled.get()) {
            NO_TASK => None,
            MAIN_FUTURE => Some(First::Main),
            slot => self.tasks.id(slot).map(|id| First::Task(slot, id)),
        };
        self.contexts.first.set(first);
    }

    #[inline]
    pub(crate) fn uses_contexts(&self) -> bool {
        self.probe.has(Mode::CONTEXTS)
    }

    /// Empties the frame: the loop is about to run user code, or has run it.
    pub(crate) fn begin_activity(&self) {
        match self.contexts.first.take() {
            Some(First::Task(slot, id)) => self.keep_context(slot, id, None),
            Some(First::Main) => self.keep_main_context(Frame::current()),
            None => {}
        }
        self.clear_frame();
    }

    /// Empties the frame, if contexts are in use: a callback begins without one, and leaves none
    /// behind.
    // Rule O4.
    pub(crate) fn begin_callback(&self) {
        if self.uses_contexts() {
            self.begin_activity();
        }
    }

    fn clear_frame(&self) {
        let before = frame::take();
        if !before.is_empty() {
            self.let_go(before);
        }
    }

    /// Drops a frame or what else the loop has kept of a context. A panic of a value is reported as
    /// that of a task which is not awaited.
    pub(crate) fn let_go<T>(&self, value: T) {
        let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) else {
            return;
        };
        match self.contexts.report.get() {
            Some(report) => _ = ignore_panic(|| report(&self.shared, payload)),
            None => discard(payload),
        }
    }

    /// Ends a run.
    pub(crate) fn end_contexts(&self) {
        self.begin_activity();
        if let Some(tracker) = frame::tracker() {
            tracker.reset();
        }
    }

    /// Lets a task that was just queued run in the current context.
    pub(super) fn set_context(&self, slot: u32, id: Id) {
        let context = Capture::of(TASK);
        // The tracker, which is user code, may have dropped the loop.
        let before = if self.tasks.id(slot) == Some(id) {
            self.tasks.set_context(slot, context)
        } else {
            Some(context)
        };
        self.let_go(before);
    }

    /// Aborts the tasks whose frame meets a condition, oldest slot first. It runs no user code.
    #[cfg(feature = "test-util")]
    pub(crate) fn abort_in_context(&self, is_meant: impl Fn(&Frame) -> bool) {
        let mut slots = self.tasks.slots_in_context(&is_meant);
        let polled = self.polled.get();
        // The frame of the task that is being polled is the current one.
        if polled != NO_TASK && polled != MAIN_FUTURE && is_meant(&Frame::current()) {
            slots.push(polled);
        }
        slots.sort_unstable();
        for slot in slots {
            if let Some(id) = self.tasks.id(slot) {
                self.tasks.abort(slot, id);
            }
        }
    }

    /// Polls a task in its frame.
    #[inline(never)]
    pub(super) fn run_task_in_context(&self, runnable: Runnable) {
        self.begin_activity();
        let (slot, id) = (runnable.slot(), runnable.local().id);
        let context = self.tasks.take_context(slot).unwrap_or_default();
        drop(context.frame.enter());
        frame::call_as(context.work.as_deref(), || self.run_or_drop(runnable));
        // The poll may have begun other work, which the next poll continues.
        self.keep_context(slot, id, context.work);
        self.clear_frame();
    }

    /// Polls a task that was just spawned, inside its spawner. Up to the first await, the task and
    /// its spawner have one frame.
    // Rule O6.
    pub(super) fn run_in_spawner(&self, runnable: Runnable) {
        let (slot, id) = (runnable.slot(), runnable.local().id);
        if self.uses_contexts() {
            // It is called inside its spawner, and is no work of its own.
            self.polled.set(slot);
            budget::begin_poll();
            self.run_or_drop(runnable);
        } else {
            self.run_task(runnable);
        }
        if self.uses_contexts() {
            self.keep_context(slot, id, None);
        }
    }

    /// Keeps the current frame for the next poll of a task, if it has one.
    fn keep_context(&self, slot: u32, id: Id, work: Option<Box<dyn Work>>) {
        if self.tasks.id(slot) != Some(id) {
            return self.let_go(work);
        }
        let (begun, left) = match self.tasks.take_context(slot) {
            Some(begun) => (begun.work, Some(begun.frame)),
            None => (None, None),
        };
        let (work, left) = match begun {
            Some(begun) => (Some(begun), (left, work)),
            None => (work, (left, None)),
        };
        let frame = Frame::current();
        if !frame.is_empty() || work.is_some() {
            self.tasks.set_context(slot, Capture { frame, work });
        }
        self.let_go(left);
    }

    /// Sets the work that the next poll of the running task continues.
    pub(crate) fn set_next_work(&self, work: Box<dyn Work>) {
        let slot = self.polled.get();
        if slot != NO_TASK && slot != MAIN_FUTURE {
            let context = Capture {
                frame: Frame::default(),
                work: Some(work),
            };
            let before = self.tasks.set_context(slot, context);
            self.let_go(before);
        }
    }

    /// Lets the main future run in the current frame. The drop of the result ends that.
    pub(super) fn begin_main_context(&self) -> impl Drop + '_ {
        MainContext {
            executor: self,
            before: self.contexts.main.replace(Frame::current()),
        }
    }

    /// Calls `poll`, a poll of the main future, in its frame.
    pub(super) fn in_main_context<R>(&self, poll: impl FnOnce() -> R) -> R {
        if !self.uses_contexts() {
            return poll();
        }
        self.begin_activity();
        drop(self.contexts.main.take().enter());
        let polled = poll();
        self.keep_main_context(Frame::current());
        self.clear_frame();
        polled
    }

    fn keep_main_context(&self, frame: Frame) {
        let before = self.contexts.main.replace(frame);
        self.let_go(before);
    }
}

struct MainContext<'a> {
    executor: &'a Executor,
    before: Frame,
}

impl Drop for MainContext<'_> {
    fn drop(&mut self) {
        self.executor
            .keep_main_context(std::mem::take(&mut self.before));
    }
}
