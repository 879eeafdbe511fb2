//! What the extension reaches of a loop, beyond the public API.

use std::cell::RefCell;
use std::rc::Rc;

use super::{Extension, ExtensionSlot, Kept};
use crate::event_loop::dispatch::once;
use crate::frame::{Restored, Work};
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::probe::{Mode, Origin};
use crate::site::Site;

pub(crate) use crate::event_loop::api::block_on::with_main_future;
pub(crate) use crate::event_loop::api::handle::Header;
pub(crate) use crate::event_loop::core::Core;
pub(crate) use crate::event_loop::current;
pub(crate) use crate::event_loop::phases::queue::Entry;
pub(crate) use crate::event_loop::phases::timers::TimerState;
pub(crate) use crate::event_loop::report::waits::Due;
pub(crate) use crate::event_loop::uncaught::PanicHandler;
pub(crate) use crate::executor::join::panic_message;
pub(crate) use crate::executor::message::Message;
pub(crate) use crate::executor::notes::{
    Combined, Key as WaitKey, NamedWait, NamedWaits, Source, WaitNote,
};
pub(crate) use crate::executor::shared::Shared;

impl ExtensionSlot {
    fn get_or_make<T: Extension>(&self, make: impl FnOnce() -> T) -> &T {
        let kept = self.value.get_or_init(|| Kept {
            value: Box::new(make()),
            as_extension: |value| {
                value
                    .downcast_ref::<T>()
                    .map(|value| value as &dyn Extension)
            },
        });
        let value = kept.value.downcast_ref();
        value.expect("there is one extension")
    }
}

/// The state of the extension.
impl Core {
    /// Returns the state of the extension, if it was used on the loop.
    #[inline]
    pub(crate) fn extension<T: Extension>(&self) -> Option<&T> {
        self.extension.value.get()?.value.downcast_ref()
    }

    /// Calls `f` with the state of the extension. `make` creates the state on first use.
    pub(crate) fn with_extension<T: Extension, R>(
        self: &Rc<Self>,
        make: impl FnOnce(&Rc<Self>) -> T,
        f: impl FnOnce(&T) -> R,
    ) -> R {
        f(self.extension.get_or_make(|| make(self)))
    }
}

/// The program that the extension runs on the loop.
impl Core {
    /// Begins a program: the exit of another on this loop is forgotten.
    pub(crate) fn begin_program(&self) {
        let policy = &self.panic_policy;
        policy.program_has_exited.set(false);
        let has_handler = policy.handler.borrow().is_some();
        self.modes().set(Mode::CONTAINED, has_handler);
        policy.interrupted.set(false);
    }

    /// Marks the program as exited and stops the loop: no callback runs any more.
    pub(crate) fn exit_program(&self) {
        self.stop.set(true);
        self.panic_policy.program_has_exited.set(true);
        self.modes().set(Mode::CONTAINED, true);
    }

    #[inline]
    pub(crate) fn program_has_exited(&self) -> bool {
        self.panic_policy.program_has_exited()
    }

    /// Sets what receives uncaught panics. `None`: they leave the run.
    pub(crate) fn set_panic_handler(&self, handler: Option<PanicHandler>) {
        self.modes().set(Mode::CONTAINED, handler.is_some());
        let before = self.panic_policy.handler.replace(handler);
        drop(before);
    }

    /// Polls the main future.
    pub(crate) fn poll_main_future(&self) {
        self.executor.poll_main_now();
    }

    /// Returns whether the last run was stopped.
    pub(crate) fn was_stopped(&self) -> bool {
        self.was_stopped.get()
    }

    /// Names the main future and the tasks that are pending.
    pub(crate) fn describe_pending(&self, main: Site) -> Box<str> {
        crate::event_loop::api::block_on::describe_pending(main, &self.task_list())
    }
}

/// The lanes.
impl Core {
    pub(crate) fn has_microtasks(&self) -> bool {
        self.executor.has_microtasks()
    }

    pub(crate) fn are_lanes_empty(&self) -> bool {
        self.executor.are_lanes_empty()
    }

    /// Drops the ticks and the microtasks that are no tasks.
    pub(crate) fn drop_queued_calls(&self) {
        drop(self.executor.take_calls());
    }

    /// Drops the contents of both lanes.
    pub(crate) fn drop_lanes(&self) {
        drop((self.executor.take_tasks(), self.executor.take_calls()));
    }

    /// Runs the microtasks, and those that they queue, at the end of the program. Ticks stay
    /// queued: Node runs none after `exit`.
    pub(crate) fn drain_microtasks(&self) {
        while let Some(run) = self.executor.next_microtask() {
            self.contain(run);
        }
    }
}

/// Callbacks and tasks inside a running callback.
impl Core {
    /// Runs one of several user callbacks that one callback of the loop runs, without a drain.
    #[inline]
    pub(crate) fn call_nested(
        &self,
        phase: Phase,
        origin: impl FnOnce() -> Origin,
        callback: impl FnOnce(),
    ) {
        self.counters.count_callback(phase);
        if self.modes().is_unwatched() {
            callback();
        } else {
            self.call_watched(phase, origin(), &mut once(callback));
        }
    }

    /// Drains the lanes between two user callbacks that one callback of the loop runs.
    #[inline(always)]
    pub(crate) fn drain_nested(&self) {
        self.drain();
    }

    /// Runs one more callback inside a callback that is running, and in its frame, then drains the
    /// lanes. What it enters stays for the callback around.
    pub(crate) fn dispatch_nested(&self, callback: impl FnOnce()) {
        if self.modes().is_plain() {
            callback();
            if self.modes().is_plain() {
                return self.drain();
            }
            let _frame = Restored::current();
            self.drain();
        } else {
            let frame = RefCell::new(Restored::current());
            let callback = || {
                let _entered = Entered(&frame);
                callback();
            };
            let origin = Origin::default();
            self.call_and_drain(Phase::Poll, origin, &mut once(callback));
        }
    }

    /// Sets the work that the next poll of the running task continues.
    pub(crate) fn set_next_work(&self, work: Work) {
        self.executor.set_next_work(work);
    }

    /// Returns whether a task is being polled. The main future is not a task.
    pub(crate) fn polls_task(&self) -> bool {
        self.executor.is_polling() && !self.executor.polls_main_future()
    }
}

/// Keeps what a callback has entered, when it has returned or panicked.
struct Entered<'a>(&'a RefCell<Restored>);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.borrow_mut().keep_current();
    }
}

impl Header {
    /// Creates the flags of an object that counts as a handle but is not listed, since it has no
    /// owner to close it.
    pub(crate) fn unlisted(kind: Keeper, site: Site) -> Rc<Self> {
        Rc::new(Self::new(kind, site, u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::future::poll_fn;
    use std::rc::Rc;
    use std::task::{Poll, Waker};

    use crate::event_loop::api::loop_handle::LoopHandle;

    /// Wakes a task, then queues a closure, both after a drain inside of the caller.
    fn wake_and_queue(waker: &Waker, log: &Rc<RefCell<Vec<&'static str>>>) {
        let handle = LoopHandle::current();
        let inner = log.clone();
        handle.queue_microtask(move || inner.borrow_mut().push("inner"));
        handle.core().dispatch_nested(|| ());
        waker.wake_by_ref();
        let behind = log.clone();
        handle.queue_microtask(move || behind.borrow_mut().push("closure"));
    }

    /// The lanes keep their order if a drain runs inside a microtask, which a drain or an event has
    /// called.
    #[test]
    fn what_follows_a_drain_inside_a_drain_keeps_its_order() {
        for is_event in [false, true] {
            let log = Rc::new(RefCell::new(Vec::new()));
            let waker = Rc::new(Cell::new(None::<Waker>));
            crate::block_on(async {
                let (slot, task_log) = (waker.clone(), log.clone());
                let mut polls = 0;
                let task = crate::spawn(poll_fn(move |cx| {
                    polls += 1;
                    slot.set(Some(cx.waker().clone()));
                    if polls == 1 {
                        return Poll::Pending;
                    }
                    task_log.borrow_mut().push("task");
                    Poll::Ready(())
                }));
                crate::phase::check().await;
                let waker = waker.take().unwrap();
                let inner_log = log.clone();
                let caller = crate::spawn(async move {
                    if is_event {
                        crate::phase::check().await;
                    }
                    wake_and_queue(&waker, &inner_log);
                });
                caller.await.unwrap();
                task.await.unwrap();
                crate::phase::check().await;
            });
            assert_eq!(*log.borrow(), ["inner", "task", "closure"], "{is_event}");
        }
    }
}
