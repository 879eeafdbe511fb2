//! A loop as its extension reaches it, beyond the public API.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::io;
use std::rc::{Rc, Weak};

use crate::event_loop::RunMode;
use crate::event_loop::core::Core;
use crate::event_loop::current;
use crate::event_loop::extension::Extension;
use crate::event_loop::phases::queue::Entry;
use crate::event_loop::uncaught::PanicHandler;
use crate::executor::join::JoinHandle;
use crate::executor::lanes::Lane;
use crate::executor::notes::NamedWaits;
use crate::frame::{Restored, Work};
use crate::metrics::Utilization;
use crate::phase_order::Phase;
use crate::probe::{Area, Mode, Origin, Wants};
use crate::raw::call::Call;
use crate::raw::call::once;
use crate::report;
use crate::runtime::block_on;
use crate::runtime::loop_handle::LoopHandle;
use crate::runtime::remote::Remote;
use crate::site::Site;

/// A loop.
#[derive(Clone)]
pub struct Loop(pub(super) Rc<Core>);

/// A reference that does not keep a loop.
#[derive(Clone, Debug)]
pub struct WeakLoop(Weak<Core>);

impl fmt::Debug for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loop").finish_non_exhaustive()
    }
}

impl WeakLoop {
    /// Returns the loop, unless it was dropped.
    #[inline]
    pub fn upgrade(&self) -> Option<Loop> {
        let core = self.0.upgrade().filter(|core| !core.executor.is_closed())?;
        Some(Loop(core))
    }
}

/// References, and the state of the extension.
impl Loop {
    /// Returns the current loop of the thread.
    pub fn current() -> Option<Self> {
        current::get().map(Self)
    }

    /// Returns the loop of a handle.
    pub fn of(handle: &LoopHandle) -> Self {
        Self(handle.core().clone())
    }

    /// Returns a reference that does not keep the loop.
    pub fn downgrade(&self) -> WeakLoop {
        WeakLoop(Rc::downgrade(&self.0))
    }

    /// Returns a handle for other threads.
    pub fn remote(&self) -> Remote {
        Remote::new(self.0.executor.shared.clone())
    }

    /// Returns the loop of a handle, if it is the current one of the thread.
    #[inline]
    pub fn current_of(remote: &Remote) -> Option<Self> {
        current::get().filter(|core| remote.is_of(core)).map(Self)
    }

    /// Calls `f` with the state of the extension on the current loop of the thread, if there is
    /// one.
    #[inline]
    pub fn with_current_state<T: Extension, R>(f: impl FnOnce(&T) -> R) -> Option<R> {
        current::with(|core| core?.extension.state().map(f))
    }

    /// Calls `f` with the state of the extension. `make` creates the state on first use.
    pub fn with_state<T: Extension, R>(
        &self,
        make: impl FnOnce() -> T,
        f: impl FnOnce(&T) -> R,
    ) -> R {
        f(self.0.extension.state_or_make(make))
    }

    /// Returns what tasks wait for that is no handle of the loop.
    pub fn named_waits(&self) -> &Rc<NamedWaits> {
        self.0.executor.named_waits()
    }

    /// Writes a line of the debug log, if it is on.
    #[inline]
    pub fn log(&self, text: impl Fn() -> String) {
        self.0.executor.probe.log(Area::Node, text);
    }

    /// Returns whether the debug log is on.
    #[inline]
    pub fn is_logged(&self) -> bool {
        self.0.executor.probe.wants(Wants::LOGS)
    }
}

/// Metrics.
impl Loop {
    /// Returns how long the loop was active and idle in its runs.
    pub fn utilization(&self) -> Utilization {
        self.0.counters.utilization(&self.0.executor.clock)
    }
}

/// The clock, in nanoseconds.
impl Loop {
    /// Returns the cached time.
    #[inline]
    pub fn now(&self) -> u64 {
        self.0.executor.clock.now()
    }

    /// Reads the clock, caches its time and returns it.
    #[inline]
    pub fn update_now(&self) -> u64 {
        self.0.executor.clock.update();
        self.0.executor.clock.now()
    }

    /// Reads the clock.
    #[inline]
    pub fn read_clock(&self) -> u64 {
        self.0.executor.clock.read()
    }

    /// Returns whether a test has paused the clock.
    pub fn is_clock_paused(&self) -> bool {
        self.0.executor.clock.is_paused()
    }
}

/// The program that the extension runs on the loop.
impl Loop {
    /// Begins a program: the exit of another on this loop is forgotten.
    pub fn begin_program(&self) {
        let policy = &self.0.panic_policy;
        policy.program_has_exited.set(false);
        let has_handler = policy.handler.borrow().is_some();
        self.0.executor.probe.set(Mode::CONTAINED, has_handler);
        policy.interrupted.set(false);
    }

    /// Marks the program as exited and stops the loop: no callback runs any more.
    pub fn exit_program(&self) {
        self.0.stop.set(true);
        self.0.panic_policy.program_has_exited.set(true);
        self.0.executor.probe.set(Mode::CONTAINED, true);
    }

    /// Returns whether the program has exited.
    #[inline]
    pub fn program_has_exited(&self) -> bool {
        self.0.panic_policy.program_has_exited()
    }

    /// Sets what receives uncaught panics. `None`: they leave the run.
    pub fn set_panic_handler(&self, handler: Option<PanicHandler>) {
        self.0
            .executor
            .probe
            .set(Mode::CONTAINED, handler.is_some());
        let before = self.0.panic_policy.handler.replace(handler);
        drop(before);
    }

    /// Runs `code` and passes its panic to the handler, if there is one. Returns `None` if `code`
    /// panicked or the program has exited.
    pub fn contain<R>(&self, code: impl FnOnce() -> R) -> Option<R> {
        self.0.contain(code)
    }

    /// Makes `future` the main future while `run` runs the loop. `run` begins it.
    ///
    /// # Panics
    ///
    /// If a loop already runs on this thread: before anything has begun.
    #[track_caller]
    pub fn with_main_future<F: Future, R>(
        &self,
        future: F,
        site: Site,
        run: impl FnOnce(&dyn Fn() -> bool) -> R,
    ) -> (Option<F::Output>, R) {
        block_on::with_main_future(&self.0, future, site, run)
    }

    /// Checks that no loop runs on this thread.
    ///
    /// # Panics
    ///
    /// If a loop already runs on this thread.
    #[track_caller]
    pub fn refuse_inside_a_run() {
        current::refuse_inside_a_run();
    }

    /// Makes the first poll of the main future.
    pub fn begin_main_future(&self) {
        self.0.executor.begin_main_future();
    }

    /// Calls `body` as a run of the loop.
    #[track_caller]
    pub fn running<R>(&self, body: impl FnOnce() -> R) -> R {
        self.0.running(body)
    }

    /// Runs the loop and returns whether it is still alive.
    ///
    /// # Errors
    ///
    /// Any OS error of waiting for events. The loop stays usable.
    #[track_caller]
    pub fn run(&self) -> io::Result<bool> {
        self.0.run(RunMode::Default)
    }

    /// Returns whether something keeps the loop alive.
    pub fn is_alive(&self) -> bool {
        self.0.is_alive()
    }

    /// Returns whether the last run was stopped.
    pub fn was_stopped(&self) -> bool {
        self.0.was_stopped.get()
    }

    /// Names the main future and the tasks that are pending.
    pub fn describe_pending(&self, main: Site) -> Box<str> {
        report::pending(&self.0, main)
    }
}

/// The lanes.
impl Loop {
    /// Queues a tick.
    pub fn push_tick(&self, tick: Call) {
        self.0.push_call(Lane::Ticks, tick, None);
    }

    /// Queues a microtask.
    #[inline]
    pub fn push_microtask(&self, microtask: Call) {
        self.0.push_call(Lane::Microtasks, microtask, None);
    }

    /// Returns the number of microtasks that were queued so far. Only its changes mean something.
    pub fn microtasks_queued(&self) -> usize {
        self.0.executor.lanes.queued()
    }

    /// Calls `wake`, and runs the one microtask that it has queued at once, inside of the caller.
    pub fn run_in_place(&self, wake: impl FnOnce()) {
        self.0.executor.run_in_place(wake);
    }

    /// Queues a closure that polls again what has woken itself, and is no task: as a microtask, or
    /// for the next poll phase if the self-wakes of this drain are used up.
    pub fn poll_again(&self, poll: Call) {
        self.0.poll_again(poll);
    }

    /// Queues a call for the check phase.
    pub fn push_immediate(&self, call: Call) {
        self.0.enqueue(Phase::Check, Entry::Call(call), None);
    }

    /// Returns whether a microtask is queued.
    pub fn has_microtasks(&self) -> bool {
        self.0.executor.lanes.has_microtasks()
    }

    /// Returns whether neither a tick nor a microtask is queued.
    pub fn are_lanes_empty(&self) -> bool {
        self.0.executor.lanes.is_empty()
    }

    /// Drops the ticks and the microtasks that are no tasks.
    pub fn drop_queued_calls(&self) {
        drop(self.0.executor.take_calls());
    }

    /// Drops the contents of both lanes.
    pub fn drop_lanes(&self) {
        drop((self.0.executor.take_tasks(), self.0.executor.take_calls()));
    }

    /// Drains the lanes between two user callbacks that one callback of the loop runs.
    #[inline]
    pub fn drain(&self) {
        self.0.drain();
    }

    /// Runs the microtasks, and those that they queue, at the end of the program. Ticks stay
    /// queued: Node runs none after `exit`.
    pub fn drain_microtasks(&self) {
        while let Some(run) = self.0.executor.next_microtask() {
            self.0.contain(run);
        }
    }
}

/// Callbacks and tasks inside a running callback.
impl Loop {
    /// Runs one of several user callbacks that one callback of the timers phase runs, without a
    /// drain. `origin` returns the line that queued it, and its deadline.
    #[inline]
    pub fn call_nested(&self, origin: impl FnOnce() -> Origin, callback: impl FnOnce()) {
        let core = &*self.0;
        core.counters.count_callback(Phase::Timers);
        if core.executor.probe.has(Mode::CALLBACK) {
            core.call_watched(Phase::Timers, origin(), &mut once(callback));
        } else {
            callback();
        }
    }

    /// Runs one more callback inside a callback that is running, and in its frame, then drains the
    /// lanes. What it enters stays for the callback around.
    pub fn dispatch_nested(&self, callback: impl FnOnce()) {
        let core = &*self.0;
        if !core.executor.probe.has(Mode::DISPATCH) {
            callback();
            if !core.executor.probe.has(Mode::DISPATCH) {
                return core.drain();
            }
            let _frame = Restored::current();
            core.drain();
        } else {
            let frame = RefCell::new(Restored::current());
            let callback = || {
                let _entered = Entered(&frame);
                callback();
            };
            let origin = Origin::default();
            core.call_and_drain(Phase::Poll, origin, &mut once(callback));
        }
    }

    /// Spawns a task and polls it at once, inside of the caller.
    pub fn spawn_eager<F>(&self, future: F, site: Site) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.0.executor.spawn_eager(future, site)
    }

    /// Sets the work that the next poll of the running task continues.
    pub fn set_next_work(&self, work: Box<dyn Work>) {
        self.0.executor.set_next_work(work);
    }

    /// Returns whether a task is being polled. The main future is not a task.
    pub fn polls_task(&self) -> bool {
        self.0.executor.is_polling() && !self.0.executor.polls_main_future()
    }

    /// Returns whether the main future is being polled, or what it has called.
    pub fn is_in_main_future(&self) -> bool {
        self.0.executor.is_in_main_future()
    }
}

/// Keeps what a callback has entered, when it has returned or panicked.
struct Entered<'a>(&'a RefCell<Restored>);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.borrow_mut().keep_current();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::future::poll_fn;
    use std::rc::Rc;
    use std::task::{Poll, Waker};

    use crate::runtime::loop_handle::LoopHandle;

    /// Wakes a task, then queues a closure, both after a drain inside of the caller.
    fn wake_and_queue(waker: &Waker, log: &Rc<RefCell<Vec<&'static str>>>) {
        let handle = LoopHandle::current();
        let inner = log.clone();
        handle.queue_microtask(move || inner.borrow_mut().push("inner"));
        super::Loop::of(&handle).dispatch_nested(|| ());
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
