//! The current loop of each thread, and the way of a wake: on the owner thread into the microtask
//! lane, from elsewhere through the inbox.
// Marks: `schedule` and `schedule_again` are each wake of a task (rows `ping_pong`,
// `self_wake/1`): no call lies between a wake and the lane. What is `cold` happens once in a
// thread, or off its thread.

use std::any::type_name;
use std::cell::Cell;
use std::fmt::Display;
use std::ptr::NonNull;
use std::rc::{self, Rc};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::core::Core;
use super::phases::timers::Payload as Timed;
use crate::executor::lanes::Lane;
use crate::executor::message::Message;
use crate::executor::notes::WaitNote;
use crate::executor::primitives::{Primitive, TaskKey};
use crate::executor::shared::{Local, Runnable, Shared};
use crate::frame;
use crate::probe::Area;
use crate::raw::call::Call;
use crate::raw::current::{self, Current};
use crate::raw::stock::{Stock, Stocked};
use crate::raw::task::{self, Payload};
use crate::raw::unwind::ignore_panic;
use crate::sorted::SortedMap;

thread_local! {
    /// The loop that runs, or is entered or dropped, on this thread.
    static CURRENT: Current<Core> = const { Current::new() };
    /// The loop that runs on this thread. It need not be the current one: `enter` may nest another.
    static RUNNING: Cell<Option<Run>> = const { Cell::new(None) };
}

/// The run of a loop.
#[derive(Clone, Copy)]
struct Run {
    /// The tag of the loop.
    tag: NonNull<()>,
    /// Whether another runtime waits in its place.
    is_in_hook: bool,
}

/// Checks that no loop runs on this thread.
///
/// # Panics
///
/// If a loop already runs on this thread.
#[track_caller]
pub(crate) fn refuse_inside_a_run() {
    assert!(
        RUNNING.get().is_none(),
        "cannot run an event loop from inside one that runs on this thread: `.await` the future, `spawn` it on the running \
         loop, or run the loop on another thread"
    );
}

/// Calls `body` as the run of a loop on this thread.
///
/// # Panics
///
/// If a loop already runs on this thread.
#[track_caller]
pub(crate) fn run<R>(core: &Rc<Core>, body: impl FnOnce() -> R) -> R {
    struct Stopped;
    impl Drop for Stopped {
        fn drop(&mut self) {
            RUNNING.set(None);
        }
    }

    refuse_inside_a_run();
    RUNNING.set(Some(Run {
        tag: tag(&core.executor.shared),
        is_in_hook: core.waits.hook().is_some(),
    }));
    let _stopped = Stopped;
    enter(core, body)
}

/// Makes `core` the current loop of the thread while `body` runs.
pub(crate) fn enter<R>(core: &Rc<Core>, body: impl FnOnce() -> R) -> R {
    if frame::is_used() {
        core.executor.use_contexts(wrapped, drop_panicked);
    }
    let value = current::enter(&CURRENT, core, tag(&core.executor.shared), body);
    if frame::is_used() {
        // The body may have used the first context, inside of another loop.
        announce_contexts();
    }
    value
}

/// Begins to use contexts on this thread. It is called before the first frame is made.
#[inline]
pub fn use_contexts() {
    if !frame::is_used() {
        frame::use_on_this_thread();
        announce_contexts();
    }
}

/// Logs that a variable gets a value, on the current loop.
pub fn log_value<T>() {
    if_any(|core| {
        let text = || format!("a value of type {} is set", type_name::<T>());
        core.executor.probe.log(Area::Context, text);
    });
}

/// Notifies the current loop that contexts are in use.
#[cold]
fn announce_contexts() {
    if_any(|core| core.executor.use_contexts(wrapped, drop_panicked));
}

/// Reports the panic of a value of a context that its loop has dropped.
fn drop_panicked(shared: &Arc<Shared>, payload: Payload) {
    unhandled_panic(shared, &"the drop of a context variable's value", payload);
}

/// Makes a closure, which was queued before contexts were in use, one that begins without a frame.
fn wrapped(call: Call) -> Call {
    Call::new(move || {
        if_any(|core| core.executor.begin_activity());
        call.call();
    })
}

/// Calls `body` as another thread would: no loop is current, and none runs.
#[cfg(feature = "test-util")]
pub(crate) fn apart<R>(body: impl FnOnce() -> R) -> R {
    struct Back(Option<Run>);
    impl Drop for Back {
        fn drop(&mut self) {
            RUNNING.set(self.0);
        }
    }

    let _back = Back(RUNNING.take());
    current::leave(&CURRENT, body)
}

/// Returns the address that identifies a loop on any thread.
#[inline]
fn tag(shared: &Arc<Shared>) -> NonNull<()> {
    NonNull::from(&**shared).cast()
}

/// Calls `f` with the current loop of the thread.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(Option<&Core>) -> R) -> R {
    current::with(&CURRENT, f)
}

/// Calls `f` with the current loop of the thread, if there is one.
#[inline]
pub(crate) fn if_any(f: impl FnOnce(&Core)) {
    with(|core| core.map_or((), f));
}

/// Notes for reports which task of the current loop registers a waker.
#[inline]
pub fn note_waker(waker: &Waker) {
    if_any(|core| core.note_waker(waker));
}

/// The wakers of other libraries: which task each of them belongs to, for reports.
impl Core {
    /// Notes which task a waker belongs to, if the waker itself does not show it.
    #[inline]
    pub(crate) fn note_waker(&self, waker: &Waker) {
        if !self.executor.is_waker_of_polled(waker) {
            note_foreign_waker(self, waker);
        }
    }
}

// Not inlined, so that the callers save no registers for it.
#[cold]
fn note_foreign_waker(core: &Core, waker: &Waker) {
    if core.executor.note_foreign(waker) {
        core.executor.forget_foreign(&registered_wakers(core));
    }
}

/// Returns the data pointers of all wakers that are registered on the loop.
#[cold]
fn registered_wakers(core: &Core) -> SortedMap<usize, ()> {
    let mut wakers = Vec::new();
    core.phases.each_timer(|_, payload, _| {
        if let Timed::Sleep { waker, .. } = payload {
            wakers.push(waker.data());
        }
    });
    for source in core.io.sources() {
        wakers.extend(source.waits().into_iter().flat_map(|(_, who)| who));
    }
    for header in core.ledger.headers() {
        wakers.extend(header.wakers());
    }
    wakers.extend(core.task_states().iter().filter_map(|task| task.awaiter));
    let sets = core.executor.awaited_sets();
    wakers.extend(sets.into_iter().map(|(waker, _)| waker));
    let named = core.executor.named_waits().all();
    wakers.extend(named.into_iter().map(|(_, waker)| waker));
    let wakers = wakers.into_iter();
    wakers.map(|waker| (waker.addr(), ())).collect()
}

/// Returns what the current loop polls.
#[inline]
pub(crate) fn task_key() -> TaskKey {
    with(|core| core.map_or(TaskKey::NONE, |core| core.executor.task_key()))
}

/// Returns what the current loop polls, which is about to wait for a primitive. The loop notes the
/// primitive for reports, unless `noted` says that it has. It runs no user code.
#[inline]
pub(crate) fn begin_wait(
    noted: &Cell<*const ()>,
    primitive: impl FnOnce() -> rc::Weak<dyn Primitive>,
) -> TaskKey {
    with(|core| {
        let Some(core) = core else {
            return TaskKey::NONE;
        };
        core.executor.note_primitive(noted, primitive);
        core.executor.task_key()
    })
}

/// Notes for reports whether a future of the current loop waits, and returns what its poll returns.
#[inline]
pub fn note_wait<T>(note: &mut WaitNote, cx: &Context<'_>, polled: Poll<T>) -> Poll<T> {
    if polled.is_ready() {
        note.end();
    } else {
        if_any(|core| {
            core.note_waker(cx.waker());
            note.begin(core.executor.named_waits(), cx.waker());
        });
    }
    polled
}

/// Returns the current loop of the thread.
pub(crate) fn get() -> Option<Rc<Core>> {
    current::get(&CURRENT)
}

/// Returns whether `core` runs on this thread.
pub(crate) fn is_running(core: &Core) -> bool {
    RUNNING
        .get()
        .is_some_and(|run| run.tag == tag(&core.executor.shared))
}

/// Returns whether a loop runs on this thread in whose place another runtime waits.
#[allow(dead_code, reason = "only a feature above sets a hook")]
pub(crate) fn runs_in_hook() -> bool {
    RUNNING.get().is_some_and(|run| run.is_in_hook)
}

/// Calls `f` with the current loop of the thread if it is the one that `shared` belongs to.
#[inline]
pub(crate) fn with_loop_of<R>(shared: &Arc<Shared>, f: impl FnOnce(Option<&Core>) -> R) -> R {
    current::with_tagged(&CURRENT, tag(shared), f)
}

impl Stocked for Shared {
    #[inline(always)]
    fn with_stock<R>(f: impl FnOnce(Option<&Stock<Self>>) -> R) -> R {
        with(|core| f(core.map(|core| &core.executor.stock)))
    }
}

impl task::Local for Local {
    /// Schedules a woken task: into the microtask lane on the owner thread, into the inbox from any
    /// other thread.
    // One comparison finds the owner thread: the thread-local holds the tag of the current loop.
    // Another loop of the same thread fails the comparison, and its wake goes through the inbox.
    #[inline(always)]
    fn schedule(runnable: Runnable) {
        let tag = tag(&runnable.local().shared.value);
        let pushed = current::with_tagged(&CURRENT, tag, |core| match core {
            Some(core) => core.executor.try_push_task(runnable),
            None => Err(runnable),
        });
        if let Err(runnable) = pushed {
            schedule_cold(runnable);
        }
    }

    #[inline(always)]
    fn schedule_again(runnable: Runnable) {
        let tag = tag(&runnable.local().shared.value);
        let pushed = current::with_tagged(&CURRENT, tag, |core| match core {
            Some(core) if core.executor.take_self_wake() => core.executor.try_push_again(runnable),
            Some(core) => {
                core.postpone(runnable);
                Ok(())
            }
            None => Err(runnable),
        });
        if let Err(runnable) = pushed {
            schedule_cold(runnable);
        }
    }

    fn unhandled(&self, slot: u32, payload: Payload) {
        let info = self
            .shared
            .with_registry(|tasks| tasks.info(slot))
            .flatten();
        match info.filter(|info| info.id() == self.id) {
            Some(info) => unhandled_panic(&self.shared, &info, payload),
            None => unhandled_panic(&self.shared, &format_args!("task {}", self.id), payload),
        }
    }

    fn keep(&self, payload: Payload) {
        self.shared.keep_panic(self.id, payload);
    }

    fn take_kept(&self) -> Option<Payload> {
        self.shared.take_panic(self.id)
    }

    fn awaited(waker: &Waker) {
        note_waker(waker);
    }

    fn ended(&self, slot: u32) {
        with_loop_of(&self.shared, |core| {
            let Some(core) = core else {
                let context = self.shared.with_registry(|tasks| {
                    tasks.remove(slot);
                    tasks.remove_extras(slot)
                });
                // The loop is not the current one, so the panic of a value goes nowhere.
                ignore_panic(|| drop(context));
                return;
            };
            if core.executor.forget(slot) {
                core.executor.forget_extras(slot);
            }
            if core.panic_policy.program_has_exited() {
                core.end_lanes();
            }
        });
    }

    fn later(work: Box<dyn FnOnce()>) {
        let work = Call::new(work);
        // Dropping the closure here would run user code in the middle of the caller.
        with(|core| match core {
            Some(core) if core.executor.is_closed() => core.executor.lanes.push_call(work),
            Some(core) => core.push_call(Lane::Microtasks, work, None),
            None => std::mem::forget(work),
        });
    }
}

/// Schedules a task that was woken on another thread, outside of a run, or into a lane that has to
/// grow. It is a separate function to keep the common path short.
#[cold]
fn schedule_cold(runnable: Runnable) {
    let shared = runnable.local().shared.clone();
    let refused = with_loop_of(&shared, |core| match core {
        Some(core) => {
            core.executor.lanes.push_task(runnable);
            Ok(())
        }
        None => shared.push(Message::Wake(runnable)),
    });
    // The inbox refuses a message only after the loop was dropped. Its tasks were dropped with it,
    // except one whose poll dropped the loop. That task leaks: this may be another thread, where
    // its future must not be dropped.
    std::mem::forget(refused);
}

/// Wakes the future that is being polled, to the back of the microtask lane. This is no self-wake
/// that counts: the caller asks for the lane, and not for a way to let others run.
#[inline]
pub fn hop(waker: &Waker) {
    if_any(|core| core.executor.permit_self_wake());
    waker.wake_by_ref();
}

/// Applies the policy of the loop to a panic of `task` that no handle will return.
pub(crate) fn unhandled_panic(shared: &Arc<Shared>, task: &dyn Display, payload: Payload) {
    with_loop_of(shared, |core| {
        if core.is_some_and(|core| core.panic_policy.program_has_exited()) {
            // `process::exit` unwinds through the task that called it; that is not a panic.
            return;
        }
        let stop = shared.unhandled_panic(task, payload);
        if let (true, Some(core)) = (stop, core) {
            core.stop.set(true);
        }
    });
}

/// Calls `call` as a microtask, in the poll phase if the loop does not run now.
// The models of threads have no jobs on a loop, which are its callers.
#[cfg(not(all(test, phaseloop_loom)))]
pub(crate) fn schedule_call(shared: &Arc<Shared>, call: impl FnOnce() + Send + 'static) {
    with_loop_of(shared, |core| match core {
        Some(core) => core.push_call(Lane::Microtasks, Call::new(call), None),
        // A dropped loop calls nothing.
        None => drop(shared.push(Message::Call(Box::new(call)))),
    });
}
