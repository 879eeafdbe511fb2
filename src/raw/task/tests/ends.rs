//! The order of the steps at the end of a task, and user code that uses its own task in the middle
//! of them.

use std::cell::RefCell;
use std::future::{poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use super::super::{Entry, Output};
use super::{Guard, PanicsWhenDropped, Task, World, counter, guard, poll, returned};

/// The action that user code takes at a critical moment.
type Plot = Rc<RefCell<Option<Box<dyn FnOnce()>>>>;

fn carry_out(plot: &RefCell<Option<Box<dyn FnOnce()>>>) {
    let plot = plot.take();
    if let Some(plot) = plot {
        plot();
    }
}

thread_local! {
    static PLOT: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Returns a waker that runs the thread's action when it is cloned, woken or dropped, whichever is
/// first.
fn plotting_waker() -> Waker {
    fn carry_out_plot() {
        PLOT.with(carry_out);
    }
    const VTABLE: RawWakerVTable = RawWakerVTable::new(
        |pointer| {
            carry_out_plot();
            RawWaker::new(pointer, &VTABLE)
        },
        |_| carry_out_plot(),
        |_| carry_out_plot(),
        |_| carry_out_plot(),
    );
    // SAFETY: the functions ignore the pointer.
    unsafe { Waker::new(std::ptr::null(), &VTABLE) }
}

#[test]
fn the_future_goes_first_then_the_registry_hears_then_the_awaiter_is_woken() {
    let world = World::new();
    let trace = Rc::<RefCell<Vec<&str>>>::default();
    struct Traced(Rc<RefCell<Vec<&'static str>>>, Arc<World>);
    impl Drop for Traced {
        fn drop(&mut self) {
            assert_eq!(self.1.ended(), 0);
            self.0.borrow_mut().push("future dropped");
        }
    }
    let held = Traced(trace.clone(), world.clone());
    let (_, mut output) = world.spawn(async move {
        let _held = held;
        7
    });
    let waker = plotting_waker();
    assert!(output.poll(&Context::from_waker(&waker)).is_pending());
    let (inner, inner_world) = (trace.clone(), world.clone());
    PLOT.set(Some(Box::new(move || {
        assert_eq!(inner_world.ended(), 1);
        inner.borrow_mut().push("awaiter woken");
    })));
    world.run();
    assert_eq!(*trace.borrow(), ["future dropped", "awaiter woken"]);
    assert_eq!(returned(&mut output), 7);
    drop(output);
    world.ends_with(&[]);
}

/// `async_task` has the output only after the wake, so a poll before that is woken once more.
#[test]
fn an_awaiter_that_polls_at_once_is_woken_again() {
    let world = World::new();
    let (_, mut output) = world.spawn(async { 7 });
    assert!(
        output
            .poll(&Context::from_waker(&plotting_waker()))
            .is_pending()
    );
    let (wakes, waker) = counter();
    let place = Rc::new(RefCell::new(Some(output)));
    let inner = place.clone();
    PLOT.set(Some(Box::new(move || {
        let mut output = inner.borrow_mut();
        let output = output.as_mut().unwrap();
        assert!(!output.is_finished());
        assert!(output.poll(&Context::from_waker(&waker)).is_pending());
    })));
    world.run();
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    let mut output = place.take().unwrap();
    assert!(output.is_finished());
    assert_eq!(returned(&mut output), 7);
    drop(output);
    world.ends_with(&[]);
}

#[test]
fn the_last_one_to_await_is_woken_at_the_end() {
    let world = World::new();
    let (_, mut output) = world.spawn(async {});
    let (first_wakes, first) = counter();
    let (wakes, waker) = counter();
    assert!(output.poll(&Context::from_waker(&first)).is_pending());
    assert_eq!(Arc::strong_count(&first_wakes), 3);
    for _ in 0..2 {
        assert!(output.poll(&Context::from_waker(&waker)).is_pending());
        assert_eq!(Arc::strong_count(&wakes), 3);
    }
    assert_eq!(Arc::strong_count(&first_wakes), 2);
    world.run();
    assert_eq!(first_wakes.0.load(Ordering::Relaxed), 0);
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    assert_eq!(Arc::strong_count(&wakes), 2);

    let (_, mut output) = world.spawn(async {});
    assert!(output.poll(&Context::from_waker(&waker)).is_pending());
    drop(output);
    world.run();
    assert_eq!(
        wakes.0.load(Ordering::Relaxed),
        1,
        "nothing awaits it any more"
    );
    assert_eq!(Arc::strong_count(&wakes), 2);
}

#[test]
fn a_handle_dropped_by_the_wake_of_its_awaiter_drops_the_output_later() {
    let world = World::new();
    for (fragile, unhandled) in [(false, 0), (true, 1)] {
        let (guard, drops) = guard();
        let held = fragile.then(|| PanicsWhenDropped("output"));
        let (_, mut output) = world.spawn(ready((guard, held)));
        assert!(
            output
                .poll(&Context::from_waker(&plotting_waker()))
                .is_pending()
        );
        PLOT.set(Some(Box::new(move || drop(output))));
        world.run();
        assert_eq!(drops.get(), 1);
        assert_eq!(world.unhandled.lock().unwrap().len(), unhandled);
    }
    world.ends_with(&["output"]);
}

#[test]
fn a_cancelled_task_may_be_let_go_of_by_the_wake_of_its_awaiter() {
    let world = World::new();
    let (guard, drops) = guard();
    let (entry, mut output) = world.spawn(ready(guard));
    assert!(
        output
            .poll(&Context::from_waker(&plotting_waker()))
            .is_pending()
    );
    PLOT.set(Some(Box::new(move || drop(output))));
    entry.abort();
    world.run();
    assert_eq!(drops.get(), 1);

    world.ends_with(&[]);
}

#[test]
fn an_awaiter_whose_clone_runs_the_task_finds_the_output() {
    let world = World::new();
    let (_, mut output) = world.spawn(async { 1 });
    let inner = world.clone();
    PLOT.set(Some(Box::new(move || inner.run())));
    let polled = output.poll(&Context::from_waker(&plotting_waker()));
    assert!(matches!(polled, Poll::Ready(Some(Ok(1)))));
    drop(output);
    world.ends_with(&[]);
}

#[test]
fn an_awaiter_whose_clone_panics_is_not_awaited() {
    let world = World::new();
    let (_, mut output) = world.spawn(async { 1 });
    PLOT.set(Some(Box::new(|| panic_any("clone"))));
    let waker = plotting_waker();
    let polled = catch_unwind(AssertUnwindSafe(|| {
        output.poll(&Context::from_waker(&waker)).is_pending()
    }));
    assert!(polled.is_err());
    world.run();
    assert_eq!(returned(&mut output), 1);
    drop(output);
    world.ends_with(&[]);
}

/// Runs its action when it is dropped.
struct Meddler {
    plot: Plot,
    _guard: Guard,
}

impl Drop for Meddler {
    fn drop(&mut self) {
        carry_out(&self.plot);
    }
}

/// Uses and drops every handle that a task can own to itself: aborts, wakes, polls, detaches, drops
/// the last waker.
fn meddle<T>(entry: Option<Entry<Task>>, output: Option<Output<T, Task>>, waker: Option<Waker>) {
    if let Some(entry) = entry {
        entry.abort();
    }
    if let Some(waker) = waker {
        waker.wake_by_ref();
        waker.wake();
    }
    if let Some(mut output) = output {
        drop(poll(&mut output));
        drop(output);
    }
}

/// The critical moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Poll,
    DropAfterReturn,
    DropAfterPanic,
    Abort,
    DropOfRunnable,
    DropOfOutput,
}

/// Runs a task that uses itself at `moment`, with or without its own join handle.
fn check(moment: Moment, owns_output: bool) {
    let world = World::new();
    let (guard, drops) = guard();
    let plot = Plot::default();
    let waker = Rc::<RefCell<Option<Waker>>>::default();
    let mut meddler = Some(Meddler {
        plot: plot.clone(),
        _guard: guard,
    });
    let inner = waker.clone();
    let (entry, output) = world.spawn(poll_fn(move |cx| {
        inner.replace(Some(cx.waker().clone()));
        match moment {
            Moment::Poll => {
                meddler = None;
                Poll::Ready(None)
            }
            Moment::DropAfterReturn => Poll::Ready(None),
            Moment::DropAfterPanic => panic_any("poll"),
            Moment::Abort | Moment::DropOfRunnable => Poll::Pending,
            Moment::DropOfOutput => Poll::Ready(meddler.take()),
        }
    }));
    let mut output = Some(output);
    let own = output.take_if(|_| owns_output);
    let stray = Rc::new(RefCell::new(None));
    plot.replace(Some(Box::new({
        let (waker, entry) = (waker.clone(), stray.clone());
        // The output is dropped after the registry has forgotten the task.
        let is_alive = moment != Moment::DropOfOutput;
        move || meddle(entry.take().filter(|_| is_alive), own, waker.take())
    })));
    if matches!(moment, Moment::Abort | Moment::DropOfRunnable) {
        world.run();
        entry.abort();
        stray.replace(Some(entry));
        if moment == Moment::Abort {
            world.run();
        } else {
            drop(world.pop());
        }
    } else {
        stray.replace(Some(entry));
        world.run();
    }
    drop(output);
    assert_eq!(drops.get(), 1);
    drop(waker.take());
    let panicked = moment == Moment::DropAfterPanic;
    world.ends_with(if panicked { &["poll"] } else { &[] });
}

#[test]
fn a_task_may_meddle_with_itself_at_any_moment() {
    for moment in [
        Moment::Poll,
        Moment::DropAfterReturn,
        Moment::DropAfterPanic,
        Moment::Abort,
        Moment::DropOfRunnable,
        Moment::DropOfOutput,
    ] {
        for owns_output in [false, true] {
            if owns_output && moment == Moment::DropOfOutput {
                // An output that holds its own join handle is a cycle, which leaks.
                continue;
            }
            let checked = catch_unwind(AssertUnwindSafe(|| check(moment, owns_output)));
            assert!(checked.is_ok(), "at {moment:?}, owns_output: {owns_output}");
        }
    }
}
