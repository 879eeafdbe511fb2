//! Futures, outputs and wakers that reach back to their own task while it uses them.

use std::cell::RefCell;
use std::future::{poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use super::super::{Outcome, Output, TaskRef};
use super::{Guard, Meta, World, guard, poll, returned};

/// What is to be done at a bad moment.
type Plot = Rc<RefCell<Option<Box<dyn FnOnce()>>>>;

fn carry_out(plot: &RefCell<Option<Box<dyn FnOnce()>>>) {
    let plot = plot.take();
    if let Some(plot) = plot {
        plot();
    }
}

/// Does it when it is dropped.
struct Meddler {
    plot: Plot,
    _guard: Guard,
}

impl Drop for Meddler {
    fn drop(&mut self) {
        carry_out(&self.plot);
    }
}

/// Uses and drops all that a task can have of itself: aborts, cancels, wakes, asks, detaches, lets go of the last waker.
fn meddle<T>(task: TaskRef<Meta>, output: Option<Output<T, Meta>>, waker: Option<Waker>) {
    task.abort();
    task.cancel();
    if let Some(waker) = waker {
        waker.wake_by_ref();
        waker.wake();
    }
    task.cancel();
    if let Some(mut output) = output {
        drop(poll(&mut output));
        drop(output);
    }
    drop(task);
}

/// The bad moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Poll,
    DropAfterReturn,
    DropAfterPanic,
    Cancel,
    Abort,
    DropOfRunnable,
    DropOfOutput,
}

/// Runs a task that meddles. It has its own join handle, or not; the woken are queued, or dropped on the spot.
fn check(moment: Moment, owns_output: bool, refuses: bool) {
    let world = World::new();
    let (guard, drops) = guard();
    let plot = Plot::default();
    let waker = Rc::<RefCell<Option<Waker>>>::default();
    let mut meddler = Some(Meddler {
        plot: plot.clone(),
        _guard: guard,
    });
    let inner = waker.clone();
    let (task, output) = world.spawn(poll_fn(move |cx| {
        inner.replace(Some(cx.waker().clone()));
        match moment {
            Moment::Poll => {
                meddler = None;
                Poll::Ready(None)
            }
            Moment::DropAfterReturn => Poll::Ready(None),
            Moment::DropAfterPanic => panic_any("poll"),
            Moment::Cancel | Moment::Abort | Moment::DropOfRunnable => Poll::Pending,
            Moment::DropOfOutput => Poll::Ready(meddler.take()),
        }
    }));
    let mut output = Some(output);
    let own = output.take_if(|_| owns_output);
    plot.replace(Some(Box::new({
        let task = task.clone();
        move || meddle(task, own, waker.take())
    })));
    world.refuses.store(refuses, Ordering::Relaxed);
    let outcome = world.run();
    match moment {
        Moment::Cancel => task.cancel(),
        Moment::Abort => task.abort(),
        Moment::DropOfRunnable => {
            task.abort();
            if world.queued() == 1 {
                drop(world.pop());
            }
        }
        _ => assert_eq!(outcome, Outcome::Closed),
    }
    while world.queued() > 0 {
        world.pop().run();
    }
    drop((task, output));
    while world.queued() > 0 {
        world.pop().run();
    }
    assert_eq!(drops.get(), 1);
    let panicked = moment == Moment::DropAfterPanic;
    world.ends_with(if panicked { &["poll"] } else { &[] });
}

#[test]
fn a_task_may_meddle_with_itself_at_any_moment() {
    for moment in [
        Moment::Poll,
        Moment::DropAfterReturn,
        Moment::DropAfterPanic,
        Moment::Cancel,
        Moment::Abort,
        Moment::DropOfRunnable,
        Moment::DropOfOutput,
    ] {
        for (owns_output, refuses) in [(false, false), (false, true), (true, false), (true, true)] {
            if owns_output && moment == Moment::DropOfOutput {
                // An output that holds its own join handle is a circle, and nobody's to break.
                continue;
            }
            let checked = catch_unwind(AssertUnwindSafe(|| check(moment, owns_output, refuses)));
            assert!(
                checked.is_ok(),
                "at {moment:?}, owns_output: {owns_output}, refuses: {refuses}"
            );
        }
    }
}

thread_local! {
    static PLOT: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

fn carry_out_plot() {
    let plot = PLOT.take();
    if let Some(plot) = plot {
        plot();
    }
}

/// A waker that carries out the thread's plot when it is cloned, woken or dropped, whichever is first.
fn plotting_waker() -> Waker {
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
fn an_awaiter_whose_clone_runs_the_task_finds_the_output() {
    let world = World::new();
    let (_, mut output) = world.spawn(async { 1 });
    let inner = world.clone();
    PLOT.set(Some(Box::new(move || {
        inner.run();
    })));
    let waker = plotting_waker();
    let polled = output.poll(&Context::from_waker(&waker));
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
    assert_eq!(world.run(), Outcome::Closed);
    assert_eq!(returned(&mut output), 1);
    drop(output);
    world.ends_with(&[]);
}

#[test]
fn an_awaiter_may_let_go_of_the_task_when_it_is_woken() {
    let world = World::new();
    for cancelled in [false, true] {
        let (guard, drops) = guard();
        let (task, mut output) = world.spawn(ready(guard));
        let waker = plotting_waker();
        assert!(output.poll(&Context::from_waker(&waker)).is_pending());
        let canceller = cancelled.then(|| task.clone());
        PLOT.set(Some(Box::new(move || {
            task.cancel();
            drop((task, output));
        })));
        if let Some(task) = canceller {
            task.cancel();
        }
        world.run();
        assert_eq!(drops.get(), 1);
    }
    world.ends_with(&[]);
}
