//! What the extension reaches of a loop, beyond the public API.

use std::panic::Location;
use std::rc::Rc;

use super::{Extension, ExtensionSlot, Kept};
use crate::event_loop::budget::LEFT;
use crate::event_loop::core::{MAIN_FUTURE, NO_TASK};
use crate::executor::join::JoinHandle;
use crate::executor::shared::Runnable;
use crate::keeper::Keeper;
use crate::probe::Span;
use crate::raw::call::Call;
use crate::site::Site;
use crate::turn::Phase;

pub(crate) use crate::event_loop::api::block_on::with_main_future;
pub(crate) use crate::event_loop::api::handle::Header;
pub(crate) use crate::event_loop::api::report::Due;
pub(crate) use crate::event_loop::core::Core;
pub(crate) use crate::event_loop::current;
pub(crate) use crate::event_loop::phases::queue::Entry;
pub(crate) use crate::event_loop::phases::timers::TimerState;
pub(crate) use crate::event_loop::uncaught::PanicHandler;
pub(crate) use crate::executor::join::panic_message;
pub(crate) use crate::executor::message::Message;
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
        policy.is_contained.set(policy.handler.borrow().is_some());
        policy.interrupted.set(false);
    }

    /// Marks the program as exited and stops the loop: no callback runs any more.
    pub(crate) fn exit_program(&self) {
        self.stop.set(true);
        self.panic_policy.program_has_exited.set(true);
        self.panic_policy.is_contained.set(true);
    }

    #[inline]
    pub(crate) fn program_has_exited(&self) -> bool {
        self.panic_policy.program_has_exited()
    }

    /// Sets what receives uncaught panics. `None`: they leave the run.
    pub(crate) fn set_panic_handler(&self, handler: Option<PanicHandler>) {
        self.panic_policy.is_contained.set(handler.is_some());
        let before = self.panic_policy.handler.replace(handler);
        drop(before);
    }

    /// Polls the main future.
    pub(crate) fn poll_main_future(&self) {
        self.main_future.call();
    }

    /// Returns whether the last run was stopped.
    pub(crate) fn was_stopped(&self) -> bool {
        self.was_stopped.get()
    }

    /// Names the main future and the tasks that are pending.
    pub(crate) fn describe_pending(&self, main: Site) -> Box<str> {
        crate::event_loop::api::block_on::describe_pending(main, &self.tasks.list())
    }
}

/// The lanes.
impl Core {
    #[inline]
    pub(crate) fn push_tick(&self, tick: Call) {
        self.lane.push_tick(tick);
    }

    #[inline]
    pub(crate) fn push_microtask(&self, microtask: Call) {
        self.lane.push_call(microtask);
    }

    pub(crate) fn has_microtasks(&self) -> bool {
        self.lane.has_microtasks()
    }

    pub(crate) fn are_lanes_empty(&self) -> bool {
        self.lane.is_empty()
    }

    /// Drops the ticks and the microtasks that are no tasks.
    pub(crate) fn drop_queued_calls(&self) {
        drop(self.lane.take_calls());
    }

    /// Drops the contents of both lanes.
    pub(crate) fn drop_lanes(&self) {
        drop((self.lane.take_tasks(), self.lane.take_calls()));
    }

    /// Runs the microtasks, and those that they queue, at the end of the program. Ticks stay
    /// queued: Node runs none after `exit`.
    pub(crate) fn drain_microtasks(&self) {
        while let Some(microtask) = self.lane.pop_microtask() {
            self.contain(|| self.run_microtask(microtask));
        }
        self.polled.set(NO_TASK);
    }
}

/// Callbacks and tasks inside a running callback.
impl Core {
    /// Returns the span of a callback, for the observer.
    #[inline]
    pub(crate) fn callback_span(&self, phase: Phase) -> Span<'_> {
        self.probe.callback(phase)
    }

    /// Runs one more callback inside a callback that is running, then drains the lanes.
    pub(crate) fn dispatch_nested(&self, callback: impl FnOnce()) {
        self.run_callback(callback);
    }

    /// Spawns a task and polls it at once, inside this call.
    pub(crate) fn spawn_eager<F>(
        &self,
        future: F,
        site: &'static Location<'static>,
    ) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        if self.is_closed() {
            return JoinHandle::never_started();
        }
        let (runnable, output) = self.new_task(future, site, None);
        self.run_nested(runnable);
        JoinHandle::new(output)
    }

    /// Polls a task that was just spawned, inside its spawner.
    // Rule N19.
    fn run_nested(&self, runnable: Runnable) {
        let (spawner, left) = (self.polled.get(), LEFT.get());
        self.spawners.borrow_mut().push(spawner);
        self.run_task(runnable);
        self.spawners.borrow_mut().pop();
        self.polled.set(spawner);
        LEFT.set(left);
    }

    /// Returns whether a task is being polled. The main future is not a task.
    pub(crate) fn polls_task(&self) -> bool {
        !matches!(self.polled.get(), NO_TASK | MAIN_FUTURE)
    }
}

impl Header {
    /// Creates the flags of an object that counts as a handle but is not listed, since it has no
    /// owner to close it.
    pub(crate) fn unlisted(kind: Keeper, site: Site) -> Rc<Self> {
        Rc::new(Self::new(kind, site, u64::MAX))
    }
}
