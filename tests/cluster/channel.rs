//! Channels between loops.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::StreamExt;
use phaseloop::cluster::{self, Builder, TryRecvError, TrySendError};
use phaseloop::{LoopHandle, spawn};

/// Counts wakes.
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn counted() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count(AtomicUsize::new(0)));
    (count.clone(), Waker::from(count))
}

// Both ends move to other threads, before and after their use.
#[test]
fn both_ends_are_send() {
    fn is_send<T: Send>(_: &T) {}
    let (sender, receiver) = cluster::channel::<std::cell::Cell<u32>>(1);
    is_send(&sender);
    is_send(&receiver);
}

// C7, C11: FIFO per sender; all senders gone is the rest, then the end.
#[test]
fn messages_of_one_loop_arrive_in_the_order_of_sending() {
    Builder::new()
        .loops(4)
        .block_on(async {
            let (sender, mut receiver) = cluster::channel(16);
            let each = cluster::current().each(move |index| {
                let sender = sender.clone();
                async move {
                    for n in 0..2000 {
                        sender.send((index, n)).await.unwrap();
                    }
                }
            });
            let mut next = [0; 4];
            while let Some((index, n)) = receiver.recv().await {
                assert_eq!(n, next[index]);
                next[index] += 1;
            }
            assert_eq!(next, [2000; 4]);
            assert!(each.await.iter().all(Result::is_ok));
            assert_eq!(receiver.next().await, None, "it stays at its end");
        })
        .unwrap();
}

// C8: a send wakes a receiver that waits, and no wake is under way.
#[test]
fn a_burst_is_one_wake() {
    let (sender, mut receiver) = cluster::channel(64);
    let (count, waker) = counted();
    let mut cx = Context::from_waker(&waker);
    for n in 0..10 {
        sender.try_send(n).unwrap();
    }
    assert_eq!(
        count.0.load(Ordering::SeqCst),
        0,
        "the receiver does not wait"
    );
    for n in 0..10 {
        assert_eq!(receiver.poll_recv(&mut cx), Poll::Ready(Some(n)));
    }
    assert!(receiver.poll_recv(&mut cx).is_pending());
    for n in 0..10 {
        sender.try_send(n).unwrap();
    }
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
}

// C9: the capacity counts what `recv` has not returned, and senders are woken at the half.
#[test]
fn senders_are_woken_when_half_of_the_capacity_is_free() {
    let (sender, mut receiver) = cluster::channel(4);
    for n in 0..4 {
        sender.try_send(n).unwrap();
    }
    assert_eq!(sender.try_send(9), Err(TrySendError::Full(9)));
    let (count, waker) = counted();
    let mut cx = Context::from_waker(&waker);
    let mut waits = pin!(sender.send(4));
    assert!(waits.as_mut().poll(&mut cx).is_pending());
    assert_eq!(receiver.try_recv(), Ok(0));
    assert_eq!(count.0.load(Ordering::SeqCst), 0, "one of four is free");
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(count.0.load(Ordering::SeqCst), 1, "half is free");
    assert_eq!(waits.as_mut().poll(&mut cx), Poll::Ready(Ok(())));
    sender.try_send(5).unwrap();
    assert_eq!(sender.try_send(9), Err(TrySendError::Full(9)), "2, 3, 4, 5");
    let received: Vec<_> = std::iter::from_fn(|| receiver.try_recv().ok()).collect();
    assert_eq!(received, [2, 3, 4, 5]);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
}

// C9: a `send` that is dropped has sent nothing, and leaves no waker behind.
#[test]
fn a_dropped_send_leaves_nothing_behind() {
    let (sender, mut receiver) = cluster::channel(1);
    sender.try_send(1).unwrap();
    let (count, waker) = counted();
    {
        let mut waits = pin!(sender.send(2));
        assert!(
            waits
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
    }
    assert_eq!(Arc::strong_count(&count), 2, "the waker and this one");
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(count.0.load(Ordering::SeqCst), 0);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    drop(sender);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
}

// C10: a task receives 128 messages, and goes on in the next poll phase.
#[test]
fn a_flood_leaves_the_other_phases_their_turn() {
    phaseloop::block_on(async {
        let (sender, mut receiver) = cluster::channel(1000);
        for n in 0..1000 {
            sender.try_send(n).unwrap();
        }
        drop(sender);
        let turns = LoopHandle::current().turns();
        let receives = spawn(async move {
            let mut expected = 0;
            while let Some(n) = receiver.recv().await {
                assert_eq!(n, expected);
                expected += 1;
            }
            expected
        });
        assert_eq!(receives.await.unwrap(), 1000);
        let turns = LoopHandle::current().turns() - turns;
        assert!((7..=9).contains(&turns), "{turns}");
    });
}

// C11: the receiver gone, or its loop: `send` returns the message.
#[test]
fn a_send_to_a_receiver_that_is_gone_returns_the_message() {
    let (sender, receiver) = cluster::channel(1);
    sender.try_send("first").unwrap();
    let (count, waker) = counted();
    let mut cx = Context::from_waker(&waker);
    let mut waits = pin!(sender.send("second"));
    assert!(waits.as_mut().poll(&mut cx).is_pending());
    drop(receiver);
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    let Poll::Ready(Err(error)) = waits.as_mut().poll(&mut cx) else {
        panic!("the message has no receiver");
    };
    assert_eq!(error.0, "second");
    assert!(sender.is_closed());
    assert_eq!(sender.try_send("third"), Err(TrySendError::Closed("third")));
    // Also where there is room.
    let (sender, receiver) = cluster::channel(4);
    drop(receiver);
    let mut sends = pin!(sender.send("fourth"));
    assert!(matches!(sends.as_mut().poll(&mut cx), Poll::Ready(Err(error)) if error.0 == "fourth"));
}
