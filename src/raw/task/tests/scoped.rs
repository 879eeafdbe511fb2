//! Tasks whose future stays on the stack of its caller.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;

use super::super::{Runnable, with_scoped};
use super::{Task, World};

/// Polls a closure while `body` runs, with its first poll in the queue.
fn scoped<R>(
    world: &Arc<World>,
    poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>,
    body: impl FnOnce() -> R,
) -> R {
    with_scoped(Task(world.clone()), 7, poll, |runnable, _| {
        assert_eq!(runnable.slot(), 7);
        world.queue.lock().unwrap().push(runnable);
        body()
    })
}

#[test]
fn a_scoped_future_borrows_from_its_caller_and_is_woken_as_a_task_is() {
    let world = World::new();
    let mut polls = 0;
    let waker = RefCell::new(None::<Waker>);
    let mut poll = |cx: &mut Context<'_>| {
        polls += 1;
        waker.replace(Some(cx.waker().clone()));
        if polls == 3 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    };
    scoped(&world, &mut poll, || {
        world.run();
        let elsewhere = waker.take().unwrap();
        elsewhere.wake_by_ref();
        elsewhere.wake();
        assert_eq!(world.queued(), 1, "it is queued once");
        world.run();
        let waker = waker.take().unwrap();
        thread::spawn(|| waker.wake()).join().unwrap();
        world.run();
    });
    drop(waker.take());
    assert_eq!(polls, 3);
    assert_eq!((world.queued(), world.freed()), (0, 1));
}

#[test]
fn a_scoped_future_is_not_polled_after_its_scope() {
    let world = World::new();
    let waker = RefCell::new(None::<Waker>);
    let mut polls = 0;
    // Woken when the scope ends: the runnable is left.
    let mut poll = |cx: &mut Context<'_>| {
        polls += 1;
        waker.replace(Some(cx.waker().clone()));
        Poll::Pending
    };
    scoped(&world, &mut poll, || {
        world.run();
        waker.take().unwrap().wake();
    });
    assert_eq!((world.queued(), world.freed()), (1, 0));
    world.run();
    assert_eq!(world.freed(), 1);

    // Waiting when the scope ends: nothing is left, and a late wake does nothing.
    scoped(&world, &mut poll, || world.run());
    assert_eq!((world.queued(), world.freed()), (0, 1));
    waker.take().unwrap().wake();
    assert_eq!((world.queued(), world.freed()), (0, 2));

    // Never polled.
    scoped(&world, &mut poll, || drop(world.pop()));
    assert_eq!((world.queued(), world.freed()), (0, 3));
    assert_eq!(polls, 2);
}

#[test]
fn the_panic_of_a_scoped_future_leaves_its_run() {
    let world = World::new();
    let run = |runnable: Runnable<Task>| catch_unwind(AssertUnwindSafe(|| runnable.run()));
    let mut poll = |_: &mut Context<'_>| panic_any("a poll");
    scoped(&world, &mut poll, || {
        let payload = run(world.pop()).unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"a poll"));
    });
    assert_eq!((world.queued(), world.freed()), (0, 1));
    assert!(world.unhandled.lock().unwrap().is_empty());

    // The scope ends by a panic of its body.
    let mut poll = |_: &mut Context<'_>| Poll::Pending;
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        scoped(&world, &mut poll, || {
            world.run();
            panic_any("a body");
        });
    }));
    assert!(unwound.is_err());
    assert_eq!((world.queued(), world.freed()), (0, 2));
}
