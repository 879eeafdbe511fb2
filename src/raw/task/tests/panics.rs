//! Panics at every point where a task runs user code, and where they are reported.

use std::future::{Future, ready};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use waker_fn::waker_fn;

use super::super::Output;
use super::{
    Guard, PanicsWhenDropped, Task, World, assert_cancelled, counter, guard, panicked, poll,
    returned,
};

/// Returns the text of the panic that propagates from `f`.
fn panic_of(f: impl FnOnce()) -> &'static str {
    let payload = catch_unwind(AssertUnwindSafe(f)).unwrap_err();
    payload.downcast_ref::<&str>().copied().unwrap()
}

#[test]
fn a_panic_of_the_poll_is_the_output_or_unhandled() {
    let world = World::new();
    let boom = || async { panic_any("poll") };
    let (_, mut output) = world.spawn(boom());
    world.run();
    assert_eq!(panicked(&mut output), "poll");
    drop(output);
    drop(world.spawn(boom()));
    world.run();
    assert_eq!(world.unhandled.lock().unwrap().len(), 1, "at once");
    let (_, output) = world.spawn(boom());
    world.run();
    assert_eq!(
        world.unhandled.lock().unwrap().len(),
        1,
        "the handle has it"
    );
    drop(output);
    world.ends_with(&["poll", "poll"]);
}

/// A future that returns or panics, and panics again when it is dropped.
struct Fragile<T> {
    value: Option<T>,
    _dropped: PanicsWhenDropped,
}

impl<T: Unpin> Future for Fragile<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        match self.value.take() {
            Some(value) => Poll::Ready(value),
            None => panic_any("poll"),
        }
    }
}

fn fragile<T>(value: Option<T>) -> Fragile<T> {
    Fragile {
        value,
        _dropped: PanicsWhenDropped("future"),
    }
}

#[test]
fn a_panic_of_the_futures_drop_takes_the_place_of_the_output() {
    let world = World::new();
    let (guard, drops) = guard();
    let (_, mut output) = world.spawn(fragile(Some(guard)));
    world.run();
    assert_eq!(drops.get(), 1);
    assert_eq!(panicked(&mut output), "future");
    drop(output);
    world.ends_with(&[]);
}

#[test]
fn of_several_panics_the_first_counts_and_all_are_survived() {
    let world = World::new();
    let (_, mut output) = world.spawn(fragile(Some(PanicsWhenDropped("output"))));
    world.run();
    assert_eq!(panicked(&mut output), "future");
    drop(output);
    let (_, mut output) = world.spawn(fragile(None::<()>));
    world.run();
    assert_eq!(panicked(&mut output), "poll");
    drop(output);
    world.ends_with(&[]);
}

#[test]
fn a_panic_of_a_cancelled_futures_drop_is_the_output_or_unhandled() {
    let world = World::new();
    let (entry, mut output) = world.spawn(fragile(Some(1)));
    entry.abort();
    world.run();
    assert_eq!(panicked(&mut output), "future");
    assert_cancelled(&mut output);
    drop(output);
    world.ends_with(&[]);
    let (entry, output) = world.spawn(fragile(Some(1)));
    entry.abort();
    world.run();
    assert!(output.is_finished());
    drop(output);
    drop(world.spawn(fragile(Some(1))));
    drop(world.pop());
    world.ends_with(&["future"; 2]);
}

#[test]
fn a_panic_of_the_outputs_drop_is_unhandled() {
    let world = World::new();
    drop(world.spawn(ready(PanicsWhenDropped("output"))));
    world.run();
    let (_, output) = world.spawn(ready(PanicsWhenDropped("output")));
    world.run();
    drop(output);
    world.ends_with(&["output"; 2]);
}

#[test]
fn a_report_that_panics_changes_nothing() {
    let world = World::new();
    world.unhandled_panics.store(true, Ordering::Relaxed);
    drop(world.spawn(ready(PanicsWhenDropped("output"))));
    world.run();
    let (_, mut output) = world.spawn(fragile(Some(1)));
    let (wakes, waker) = counter();
    assert!(output.poll(&Context::from_waker(&waker)).is_pending());
    drop(world.pop());
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    drop(output);
    // Now the report panics, and drops its payload while it does.
    world.unhandled_panics.store(false, Ordering::Relaxed);
    drop(world.spawn(async { panic_any(PanicsWhenDropped("payload")) }));
    world.run();
    world.ends_with(&["output", "future", "something"]);
}

#[test]
fn an_awaiter_that_panics_when_woken_is_unhandled() {
    let world = World::new();
    for cancelled in [false, true] {
        let (entry, mut output) = world.spawn(async { 1 });
        let waker = waker_fn(|| panic_any("wake"));
        assert!(output.poll(&Context::from_waker(&waker)).is_pending());
        if cancelled {
            entry.abort();
        }
        world.run();
        if cancelled {
            assert_cancelled(&mut output);
        } else {
            assert_eq!(returned(&mut output), 1);
        }
    }
    world.ends_with(&["wake"; 2]);
}

#[test]
fn an_awaiter_that_panics_when_dropped_does_no_harm() {
    let world = World::new();
    let awaited = |output: &mut Output<Guard, Task>| {
        let captured = PanicsWhenDropped("drop");
        let waker = waker_fn(move || {
            let _held = &captured;
        });
        assert!(output.poll(&Context::from_waker(&waker)).is_pending());
    };
    let (guard, drops) = guard();
    let (_, mut output) = world.spawn(ready(guard));
    awaited(&mut output);
    assert_eq!(panic_of(|| drop(poll(&mut output))), "drop");
    awaited(&mut output);
    assert_eq!(panic_of(|| drop(output)), "drop");
    world.run();
    assert_eq!(drops.get(), 1);
    world.ends_with(&[]);
}
