//! Tasks that are polled where they are woken.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::thread;

use super::super::{Held, Outcome, clone_waker, hold};
use super::{Meta, Pair, World};

/// The waker that a task has, by a poll that keeps it.
fn spawn_with_waker(world: &Arc<World>) -> (Pair<()>, Waker) {
    let place = Rc::new(RefCell::new(None));
    let keep = place.clone();
    let pair = world.spawn(poll_fn(move |cx| {
        let is_first = keep.borrow_mut().replace(cx.waker().clone()).is_none();
        if is_first {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }));
    assert_eq!(world.run(), Outcome::Pending);
    let waker = place.borrow().clone().unwrap();
    (pair, waker)
}

#[test]
fn a_held_task_is_polled_without_being_scheduled() {
    let world = World::new();
    let ((task, output), waker) = spawn_with_waker(&world);
    let held = hold::<Meta>(&waker, |_| true).unwrap();
    assert!(
        hold::<Meta>(&waker, |_| true).is_none(),
        "only one can hold it"
    );
    task.cancel();
    assert!(!output.is_finished(), "nobody else ends it meanwhile");
    assert_eq!(held.run(), Outcome::Closed);
    assert!(output.is_finished());
    assert!(hold::<Meta>(&waker, |_| true).is_none(), "it is over");
    drop((task, output, waker));
    world.ends_with(&[]);
}

#[test]
fn a_task_that_is_aborted_while_it_is_held_is_dropped() {
    let world = World::new();
    let ((task, mut output), waker) = spawn_with_waker(&world);
    let held = hold::<Meta>(&waker, |_| true).unwrap();
    task.abort();
    assert!(held.is_aborted());
    assert_eq!(held.run(), Outcome::Closed);
    assert_eq!(world.run(), Outcome::Pending, "the wake of the abort");
    let cx = std::task::Context::from_waker(Waker::noop());
    assert!(matches!(output.poll(&cx), Poll::Ready(None)));
    drop((task, output, waker));
    world.ends_with(&[]);
}

#[test]
fn a_wake_while_a_task_is_held_is_one_more() {
    let world = World::new();
    let ((task, output), waker) = spawn_with_waker(&world);
    let held = hold::<Meta>(&waker, |_| true).unwrap();
    waker.wake_by_ref();
    assert_eq!(world.queued(), 1);
    assert_eq!(held.run(), Outcome::Closed);
    assert_eq!(world.run(), Outcome::Pending, "it came too late");
    drop((task, output, waker));
    world.ends_with(&[]);
}

#[test]
fn a_task_that_is_let_go_of_waits_as_before() {
    let world = World::new();
    let ((task, output), waker) = spawn_with_waker(&world);
    drop(hold::<Meta>(&waker, |_| true).unwrap());
    waker.wake();
    assert!(hold_of_woken(&world).is_none(), "it is woken already");
    assert_eq!(world.run(), Outcome::Closed);
    drop((task, output));
    world.ends_with(&[]);

    /// Tries to hold the task that is queued.
    fn hold_of_woken(world: &Arc<World>) -> Option<Held<Meta>> {
        let queue = world.queue.lock().unwrap();
        let pointer = queue[0].0;
        drop(queue);
        // SAFETY: the task is live by its runnable; the waker counts for itself.
        let waker = unsafe { Waker::from_raw(clone_waker::<Meta>(pointer.as_ptr().cast())) };
        hold::<Meta>(&waker, |_| true)
    }
}

#[test]
fn a_task_that_is_not_accepted_or_not_at_home_is_not_held() {
    let world = World::new();
    let ((task, output), waker) = spawn_with_waker(&world);
    assert!(hold::<Meta>(&waker, |_| false).is_none());
    let elsewhere = waker.clone();
    let held = thread::spawn(move || hold::<Meta>(&elsewhere, |_| true).is_some());
    assert!(!held.join().unwrap());
    waker.wake();
    assert_eq!(world.run(), Outcome::Closed, "nothing has changed");
    drop((task, output));
    world.ends_with(&[]);
}

/// Held from inside its own poll, a task would be polled in itself.
#[test]
fn a_task_that_is_polled_is_not_held() {
    let world = World::new();
    let (task, output) = world.spawn(poll_fn(|cx| {
        assert!(hold::<Meta>(cx.waker(), |_| true).is_none());
        Poll::Ready(())
    }));
    assert_eq!(world.run(), Outcome::Closed);
    drop((task, output));
    world.ends_with(&[]);
}

#[test]
fn the_waker_of_something_else_is_no_task() {
    struct Other;
    impl Wake for Other {
        fn wake(self: Arc<Self>) {
            panic!("woken");
        }
    }
    for waker in [Waker::from(Arc::new(Other)), Waker::noop().clone()] {
        assert!(hold::<Meta>(&waker, |_| true).is_none());
    }
}
