//! `oneshot`, `mpsc` and `watch`.

use std::cell::Cell;
use std::rc::Rc;

use crate::util::trace::paused;
use futures::stream::FusedStream;
use futures::{FutureExt, SinkExt, StreamExt, future::FusedFuture};
use phaseloop::sync::mpsc::{self, TryRecvError, TrySendError};
use phaseloop::sync::{Closed, oneshot, watch};
use phaseloop::{block_on, spawn};
use tokio_test::task::spawn as mock;
use tokio_test::{assert_pending, assert_ready};

/// C33: senders wait in order, and a receipt wakes one.
#[test]
fn c33_a_full_channel_takes_its_senders_in_order() {
    let (sender, mut receiver) = mpsc::channel(1);
    sender.try_send(0).unwrap();
    let (mut one, mut two) = (mock(sender.send(1)), mock(sender.send(2)));
    assert_pending!(one.poll());
    assert_pending!(two.poll());
    assert_eq!(receiver.try_recv(), Ok(0));
    assert!(one.is_woken() && !two.is_woken());
    // The place is reserved for the first, which was not polled.
    assert_eq!(sender.try_send(9), Err(TrySendError::Full(9)));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    assert_ready!(one.poll()).unwrap();
    assert_pending!(two.poll());
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_ready!(two.poll()).unwrap();
    assert_eq!(receiver.try_recv(), Ok(2));
}

/// C34: a `send` that is dropped has sent nothing.
#[test]
fn c34_a_dropped_send_has_sent_nothing() {
    let (sender, mut receiver) = mpsc::channel(1);
    sender.try_send(0).unwrap();
    let (mut one, mut two) = (mock(sender.send(1)), mock(sender.send(2)));
    assert_pending!(one.poll());
    assert_pending!(two.poll());
    assert_eq!(receiver.try_recv(), Ok(0));
    drop(one);
    assert!(two.is_woken());
    assert_ready!(two.poll()).unwrap();
    assert_eq!(receiver.try_recv(), Ok(2));
    assert_eq!((sender.capacity(), sender.max_capacity()), (1, 1));
}

#[test]
fn a_channel_ends_with_its_senders_or_by_its_receiver() {
    let (sender, mut receiver) = mpsc::channel(4);
    let other = sender.clone();
    assert!(sender.same_channel(&other));
    assert_eq!((sender.sender_count(), receiver.sender_count()), (2, 2));
    sender.try_send(1).unwrap();
    drop(sender);
    let mut waits = mock(other.closed());
    assert_pending!(waits.poll());
    assert_eq!(
        mock(receiver.recv()).poll(),
        std::task::Poll::Ready(Some(1))
    );
    {
        let mut next = mock(receiver.recv());
        assert_pending!(next.poll());
        drop(other);
        assert!(next.is_woken());
        assert_eq!(assert_ready!(next.poll()), None);
    }
    assert!(receiver.is_closed() && receiver.is_terminated());
    assert_pending!(waits.poll());
    drop(receiver);
    assert!(waits.is_woken());
    assert_ready!(waits.poll());
}

#[test]
fn a_closed_channel_returns_what_waits_and_keeps_what_is_in_it() {
    let (sender, mut receiver) = mpsc::channel(1);
    sender.try_send(0).unwrap();
    let (mut granted, mut waits) = (mock(sender.send(1)), mock(sender.send(2)));
    assert_pending!(granted.poll());
    assert_pending!(waits.poll());
    receiver.close();
    assert!(waits.is_woken() && granted.is_woken());
    assert_eq!(assert_ready!(granted.poll()).unwrap_err().into_inner(), 1);
    assert_eq!(assert_ready!(waits.poll()).unwrap_err().into_inner(), 2);
    assert_eq!(sender.try_send(3), Err(TrySendError::Closed(3)));
    assert_eq!(receiver.try_recv(), Ok(0));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
}

#[test]
fn the_ends_are_streams_and_sinks() {
    block_on(async {
        let (mut sender, receiver) = mpsc::channel(2);
        let sends = async move {
            sender
                .send_all(&mut futures::stream::iter((0..5).map(Ok)))
                .await
                .unwrap();
            SinkExt::close(&mut sender).await.unwrap();
            assert_eq!(sender.capacity() + sender.len(), 2);
        };
        let (received, ()) = phaseloop::join!(receiver.collect::<Vec<_>>(), sends);
        assert_eq!(received, [0, 1, 2, 3, 4]);

        let (sender, receiver) = mpsc::unbounded();
        futures::stream::iter(0..3)
            .map(Ok)
            .forward(sender)
            .await
            .unwrap();
        assert_eq!(receiver.collect::<Vec<_>>().await, [0, 1, 2]);
    });
}

/// A sink that is ready has a place of its own, and its drop gives the place back.
#[test]
fn a_ready_sink_keeps_its_place() {
    let (sender, mut receiver) = mpsc::channel::<u32>(1);
    let mut sink = sender.clone();
    mock(futures::future::poll_fn(|cx| sink.poll_ready_unpin(cx)))
        .poll()
        .is_ready();
    assert_eq!(sender.try_send(1), Err(TrySendError::Full(1)));
    drop(sink);
    sender.try_send(1).unwrap();
    let mut sink = sender.clone();
    let mut ready = mock(futures::future::poll_fn(|cx| sink.poll_ready_unpin(cx)));
    assert_pending!(ready.poll());
    assert_eq!(receiver.try_recv(), Ok(1));
    assert!(ready.is_woken());
    drop(ready);
    drop(sink);
    assert_eq!(sender.capacity(), 1);
    receiver.close();
    let mut sink = sender.clone();
    let ready = futures::future::poll_fn(|cx| sink.poll_ready_unpin(cx));
    assert_eq!(assert_ready!(mock(ready).poll()), Err(Closed));
}

#[test]
fn a_receiver_that_changes_its_waker_is_woken_by_the_last() {
    let (sender, mut receiver) = mpsc::unbounded();
    let mut first = mock(futures::future::poll_fn(|cx| receiver.poll_recv(cx)));
    assert_pending!(first.poll());
    drop(first);
    let mut second = mock(futures::future::poll_fn(|cx| receiver.poll_recv(cx)));
    assert_pending!(second.poll());
    sender.send(5).unwrap();
    assert!(second.is_woken());
    assert_eq!(assert_ready!(second.poll()), Some(5));
}

#[test]
fn messages_are_dropped_with_the_receiver() {
    let alive = Rc::new(());
    let (sender, receiver) = mpsc::unbounded();
    for _ in 0..10 {
        sender.send(alive.clone()).unwrap();
    }
    drop(receiver);
    assert_eq!(Rc::strong_count(&alive), 1);
    assert!(sender.send(alive).is_err());
}

#[test]
#[should_panic(expected = "one message at least")]
fn a_channel_without_room_is_refused() {
    let _ = mpsc::channel::<()>(0);
}

#[test]
fn a_oneshot_carries_one_value_or_ends() {
    let (sender, mut receiver) = oneshot::channel();
    assert_pending!(mock(&mut receiver).poll());
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    sender.send(1).unwrap();
    assert!(receiver.has_value() && !receiver.is_terminated());
    assert_eq!(assert_ready!(mock(&mut receiver).poll()), Ok(1));
    assert!(receiver.is_terminated());
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
    assert_eq!(assert_ready!(mock(&mut receiver).poll()), Err(Closed));

    let (sender, receiver) = oneshot::channel::<u32>();
    let mut waits = mock(receiver);
    assert_pending!(waits.poll());
    drop(sender);
    assert!(waits.is_woken());
    assert_eq!(assert_ready!(waits.poll()), Err(Closed));
}

#[test]
fn a_sender_notices_that_nobody_waits() {
    let (mut sender, mut receiver) = oneshot::channel();
    {
        let mut closed = mock(sender.closed());
        assert_pending!(closed.poll());
        receiver.close();
        assert!(closed.is_woken());
        assert_ready!(closed.poll());
    }
    assert_eq!(sender.send(1), Err(1));
    assert_eq!(receiver.now_or_never(), Some(Err(Closed)));

    // What was sent before the close is received.
    let (sender, mut receiver) = oneshot::channel();
    sender.send(2).unwrap();
    receiver.close();
    assert_eq!(receiver.try_recv(), Ok(2));
}

#[test]
fn a_watch_shows_the_last_value() {
    let (sender, mut receiver) = watch::channel(0);
    assert_eq!(receiver.has_changed(), Ok(false));
    let mut other = receiver.clone();
    {
        let (mut one, mut two) = (mock(receiver.changed()), mock(other.changed()));
        assert_pending!(one.poll());
        assert_pending!(two.poll());
        sender.send(1).unwrap();
        assert!(one.is_woken() && two.is_woken());
        sender.send(2).unwrap();
        assert_ready!(one.poll()).unwrap();
        assert_ready!(two.poll()).unwrap();
    }
    assert_eq!(
        (*receiver.borrow(), receiver.borrow().has_changed()),
        (2, false)
    );
    receiver.mark_changed();
    assert!(receiver.borrow_and_update().has_changed());
    assert!(!sender.send_if_modified(|_| false));
    assert_eq!(receiver.has_changed(), Ok(false));
    sender.modify(|value| *value += 1);
    drop(sender.clone());
    assert_eq!(sender.send_replace(9), Some(3));
    drop(sender);
    assert_eq!(receiver.has_changed(), Ok(true));
    assert_eq!(assert_ready!(mock(receiver.changed()).poll()), Ok(()));
    assert_eq!(assert_ready!(mock(receiver.changed()).poll()), Err(Closed));
    assert_eq!(*receiver.borrow(), 9);
}

#[test]
fn a_watch_without_receivers_refuses_values() {
    let (sender, receiver) = watch::channel(0);
    let mut closed = mock(sender.closed());
    assert_pending!(closed.poll());
    drop(receiver);
    assert!(closed.is_woken());
    assert_ready!(closed.poll());
    assert_eq!(sender.send(1).unwrap_err().into_inner(), 1);
    assert_eq!(sender.send_replace(2), Some(0));
    let receiver = sender.subscribe();
    assert_eq!(*receiver.borrow(), 2);
    assert_eq!((sender.receiver_count(), sender.sender_count()), (1, 1));
}

/// A `Ref` is a value of its own, which a later one does not change.
#[test]
fn a_ref_does_not_keep_senders_from_sending() {
    let (sender, receiver) = watch::channel(String::from("old"));
    let old = receiver.borrow();
    sender.send("new".into()).unwrap();
    assert_eq!((&**old, &**receiver.borrow()), ("old", "new"));
    drop(old);
    sender.modify(|value| value.push('!'));
    assert_eq!(&**receiver.borrow(), "new!");
}

/// The condition of `wait_for` may send, and sees what it has sent.
#[test]
fn the_condition_of_a_wait_is_free_to_send() {
    block_on(async {
        let (sender, mut receiver) = watch::channel(0);
        let asked = Cell::new(0);
        let met = receiver.wait_for(|value| {
            asked.set(asked.get() + 1);
            if *value < 3 {
                sender.send(*value + 1).unwrap();
            }
            *value == 3
        });
        assert_eq!(*met.await.unwrap(), 3);
        assert_eq!(asked.get(), 4);
    });
}

#[test]
fn many_senders_and_a_slow_receiver_under_any_order() {
    let (event_loop, _, _) = paused();
    event_loop.block_on(async {
        let (sender, mut receiver) = mpsc::channel(3);
        for number in 0..6_u32 {
            let sender = sender.clone();
            spawn(async move {
                for message in 0..20_u32 {
                    sender.send((number, message)).await.unwrap();
                }
            })
            .detach();
        }
        drop(sender);
        let mut next = [0; 6];
        while let Some((number, message)) = receiver.recv().await {
            assert_eq!(next[number as usize], message);
            next[number as usize] += 1;
        }
        assert_eq!(next, [20; 6]);
        assert_eq!(receiver.capacity(), Some(3));
    });
}
