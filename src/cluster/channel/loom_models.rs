//! Checks every interleaving of senders and receiver, up to a bound on preemptions.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use loom::sync::{Condvar, Mutex};
use loom::thread;

use super::{Receiver, Sender, Sending, channel};

/// A thread that waits for its wake. A lost one shows as a deadlock.
struct Parked {
    is_woken: Mutex<bool>,
    changed: Condvar,
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        *self.is_woken.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

fn wait_for<R>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<R>) -> R {
    let parked = Arc::new(Parked {
        is_woken: Mutex::new(false),
        changed: Condvar::new(),
    });
    let waker = Waker::from(parked.clone());
    loop {
        if let Poll::Ready(output) = poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let mut is_woken = parked.is_woken.lock().unwrap();
        while !*is_woken {
            is_woken = parked.changed.wait(is_woken).unwrap();
        }
        *is_woken = false;
    }
}

fn send(sender: &Sender<u32>, message: u32) -> bool {
    let mut sending = Sending {
        shared: &sender.shared,
        message: Some(message),
        wait: None,
    };
    wait_for(|cx| sending.poll(cx)).is_ok()
}

/// Receives without the budget of a task, of which a model has none.
fn receive(receiver: &mut Receiver<u32>) -> Option<u32> {
    if receiver.batch.is_empty() && !wait_for(|cx| receiver.poll_batch(cx)) {
        return None;
    }
    receiver.next_of_batch()
}

#[test]
fn loom_two_senders_lose_no_message_and_no_wake() {
    loom::model(|| {
        let (sender, mut receiver) = channel(4);
        let other = sender.clone();
        let threads = [
            thread::spawn(move || assert!(send(&sender, 1))),
            thread::spawn(move || assert!(send(&other, 2))),
        ];
        let mut seen = Vec::new();
        while let Some(message) = receive(&mut receiver) {
            seen.push(message);
        }
        seen.sort_unstable();
        assert_eq!(seen, [1, 2]);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn loom_a_sender_to_a_full_channel_is_woken() {
    loom::model(|| {
        let (sender, mut receiver) = channel(1);
        let thread = thread::spawn(move || {
            for message in 0..3 {
                assert!(send(&sender, message));
            }
        });
        for message in 0..3 {
            assert_eq!(
                receive(&mut receiver),
                Some(message),
                "in the order of sending"
            );
        }
        assert_eq!(receive(&mut receiver), None);
        thread.join().unwrap();
    });
}

#[test]
fn loom_a_close_races_with_a_sender_that_waits() {
    loom::model(|| {
        let (sender, mut receiver) = channel(1);
        let thread = thread::spawn(move || {
            assert!(
                send(&sender, 1),
                "there is room, and the receiver takes one"
            );
            send(&sender, 2)
        });
        assert_eq!(receive(&mut receiver), Some(1));
        drop(receiver);
        // Sent before the close, or returned; it does not hang.
        thread.join().unwrap();
    });
}
