//! What user code may do inside: wakers that panic or use the primitive, drops that do.

use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::util::wakers::on_clone;
use phaseloop::sync::{Mutex, Notify, Semaphore, mpsc, oneshot, watch};
use phaseloop::task::CancellationToken;
use tokio_test::task::spawn as mock;
use tokio_test::{assert_pending, assert_ready};

/// A waker that panics when it wakes.
struct Panics(AtomicUsize);

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        resume_unwind(Box::new("a waker"));
    }
}

fn panicking() -> Waker {
    Waker::from(Arc::new(Panics(AtomicUsize::new(0))))
}

fn unwinds(body: impl FnOnce()) {
    let payload = catch_unwind(AssertUnwindSafe(body)).unwrap_err();
    assert_eq!(*payload.downcast::<&str>().unwrap(), "a waker");
}

/// Polls once with a waker that panics later.
fn wait_hostile<F: Future + Unpin>(future: &mut F) {
    let waker = panicking();
    let polled = pin!(future).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
}

#[test]
fn a_waker_that_panics_keeps_no_permit_and_no_other_from_its_wake() {
    let semaphore = Semaphore::new(0);
    let mut hostile = Box::pin(semaphore.acquire(1));
    wait_hostile(&mut hostile);
    let mut other = mock(semaphore.acquire(1));
    assert_pending!(other.poll());
    unwinds(|| semaphore.add_permits(2));
    assert!(other.is_woken());
    drop(assert_ready!(other.poll()));
    drop(hostile);
    assert_eq!(semaphore.available(), 2);

    let held = semaphore.try_acquire(2).unwrap();
    let mut hostile = Box::pin(semaphore.acquire(1));
    wait_hostile(&mut hostile);
    let mut other = mock(semaphore.acquire(1));
    assert_pending!(other.poll());
    unwinds(|| semaphore.close());
    assert!(other.is_woken());
    drop((held, hostile));
}

#[test]
fn all_that_wait_are_woken_behind_a_waker_that_panics() {
    let notify = Notify::new();
    let mut hostile = Box::pin(notify.notified());
    wait_hostile(&mut hostile);
    let mut other = mock(notify.notified());
    assert_pending!(other.poll());
    unwinds(|| notify.notify_all());
    assert!(other.is_woken());

    let (sender, mut receiver) = watch::channel(0);
    let mut clone = receiver.clone();
    let mut hostile = Box::pin(receiver.changed());
    wait_hostile(&mut hostile);
    let mut other = mock(clone.changed());
    assert_pending!(other.poll());
    unwinds(|| _ = sender.send(1));
    assert!(other.is_woken());
    assert_ready!(other.poll()).unwrap();
}

/// The message whose receipt panicked is received by the next one, and no place is lost.
#[test]
fn a_receipt_that_panics_loses_no_message_and_no_place() {
    let (sender, mut receiver) = mpsc::channel(1);
    sender.try_send(1).unwrap();
    let mut hostile = Box::pin(sender.send(2));
    wait_hostile(&mut hostile);
    unwinds(|| _ = receiver.try_recv());
    assert_eq!((receiver.len(), receiver.try_recv()), (1, Ok(1)));
    assert_eq!(assert_ready!(mock(&mut hostile).poll()), Ok(()));
    drop(hostile);
    assert_eq!(receiver.try_recv(), Ok(2));
    assert_eq!(sender.capacity(), 1);

    // The waker of the receiver: the message was sent.
    let mut hostile = Box::pin(receiver.recv());
    wait_hostile(&mut hostile);
    unwinds(|| _ = sender.try_send(3));
    assert_eq!(assert_ready!(mock(hostile).poll()), Some(3));
}

/// The clone of a waker is user code, in the middle of a poll.
#[test]
fn the_clone_of_a_waker_may_end_the_wait_that_begins() {
    // A release.
    let lock = Rc::new(Mutex::new(1));
    let guard = RefCell::new(Some(lock.clone().try_lock_owned().unwrap()));
    let waker = on_clone(move || drop(guard.take()));
    let mut wait = Box::pin(lock.lock());
    let guard = assert_ready!(wait.as_mut().poll(&mut Context::from_waker(&waker)));
    assert_eq!(*guard, 1);
    drop(guard);

    // A message, a value, a notification, a change, an end.
    let (sender, mut receiver) = mpsc::unbounded();
    let waker = on_clone(move || sender.send(2).unwrap());
    let polled = pin!(receiver.recv()).poll(&mut Context::from_waker(&waker));
    assert_eq!(polled, Poll::Ready(Some(2)));

    let (sender, receiver) = oneshot::channel();
    let waker = on_clone(move || sender.send(3).unwrap());
    let polled = pin!(receiver).poll(&mut Context::from_waker(&waker));
    assert_eq!(polled, Poll::Ready(Ok(3)));

    let notify = Rc::new(Notify::new());
    let other = notify.clone();
    let waker = on_clone(move || other.notify_one());
    let polled = pin!(notify.notified()).poll(&mut Context::from_waker(&waker));
    assert_eq!(polled, Poll::Ready(()));

    let (sender, mut receiver) = watch::channel(0);
    let waker = on_clone(move || drop(sender));
    let polled = pin!(receiver.changed()).poll(&mut Context::from_waker(&waker));
    assert!(matches!(polled, Poll::Ready(Err(_))));

    let semaphore = Rc::new(Semaphore::new(0));
    let other = semaphore.clone();
    let waker = on_clone(move || other.close());
    let polled = pin!(semaphore.acquire(1)).poll(&mut Context::from_waker(&waker));
    assert!(matches!(polled, Poll::Ready(Err(_))));
}

#[test]
fn a_cancellation_that_comes_while_a_wait_begins_ends_it() {
    let token = CancellationToken::new();
    let parent = token.clone();
    let waker = on_clone(move || parent.cancel());
    let child = token.child_token();
    let mut wait = pin!(child.cancelled());
    let polled = wait.as_mut().poll(&mut Context::from_waker(&waker));
    assert_eq!(polled, Poll::Ready(()), "in the first poll");

    let token = CancellationToken::new();
    let mut wait = mock(token.cancelled());
    assert_pending!(wait.poll());
    let mut wait = wait.into_inner();
    let other = token.clone();
    let waker = on_clone(move || other.cancel());
    let polled = Pin::new(&mut wait).poll(&mut Context::from_waker(&waker));
    assert_eq!(polled, Poll::Ready(()), "in a later poll");
}

/// A message whose drop sends to the channel it was in. What it sends has no channel.
struct Talks(Option<mpsc::UnboundedSender<Self>>, Rc<RefCell<u32>>);

impl Drop for Talks {
    fn drop(&mut self) {
        let Some(sender) = self.0.take() else {
            return;
        };
        *self.1.borrow_mut() += 1;
        assert!(sender.is_closed() && sender.is_empty());
        assert!(sender.send(Self(None, self.1.clone())).is_err());
    }
}

#[test]
fn messages_may_use_their_channel_in_their_drops() {
    let (sender, receiver) = mpsc::unbounded();
    let dropped = Rc::new(RefCell::new(0));
    for _ in 0..5 {
        let message = Talks(Some(sender.clone()), dropped.clone());
        assert!(sender.send(message).is_ok());
    }
    drop(receiver);
    assert_eq!(*dropped.borrow(), 5);
}

struct PanicsOnDrop(Rc<RefCell<u32>>);

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        *self.0.borrow_mut() += 1;
        resume_unwind(Box::new("a waker"));
    }
}

#[test]
fn messages_whose_drops_panic_are_all_dropped() {
    let (sender, receiver) = mpsc::channel(4);
    let dropped = Rc::new(RefCell::new(0));
    for _ in 0..3 {
        assert!(sender.try_send(PanicsOnDrop(dropped.clone())).is_ok());
    }
    unwinds(|| drop(receiver));
    assert_eq!(*dropped.borrow(), 3);
    assert!(sender.is_closed());
}

#[test]
fn a_change_that_panics_leaves_the_value_in_its_place() {
    let (sender, receiver) = watch::channel(1);
    unwinds(|| {
        sender.modify(|value| {
            *value = 2;
            resume_unwind(Box::new("a waker"));
        });
    });
    assert_eq!((*receiver.borrow(), receiver.has_changed()), (2, Ok(false)));
    let inside = catch_unwind(AssertUnwindSafe(|| {
        sender.modify(|_| drop(receiver.borrow()))
    }));
    assert!(inside.is_err());
    sender.modify(|value| *value = 3);
    assert_eq!(*receiver.borrow(), 3);
}

/// A value whose drop reads the watch finds the new one.
#[test]
fn the_drop_of_a_watched_value_finds_the_next_one() {
    struct Reads(u32, Option<watch::Receiver<Self>>, Rc<RefCell<u32>>);
    impl Drop for Reads {
        fn drop(&mut self) {
            if let Some(receiver) = &self.1 {
                *self.2.borrow_mut() = receiver.borrow().0;
            }
        }
    }
    let seen = Rc::new(RefCell::new(0));
    let (sender, receiver) = watch::channel(Reads(1, None, seen.clone()));
    assert!(sender.send(Reads(2, Some(receiver), seen.clone())).is_ok());
    assert!(sender.send(Reads(3, None, seen.clone())).is_ok());
    assert_eq!(*seen.borrow(), 3);
}

#[test]
fn a_guard_that_is_forgotten_stays_locked_and_nothing_else() {
    let mut lock = Mutex::new(1);
    std::mem::forget(lock.try_lock().unwrap());
    assert!(lock.try_lock().is_err());
    *lock.get_mut() = 2;
    assert_eq!(lock.into_inner(), 2);
}
