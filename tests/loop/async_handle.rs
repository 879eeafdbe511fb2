//! Async handles, R117–R126: coalescing, no lost send, the order of one walk, and what a close does
//! to a send.
//!
//! Most sends here come from the loop's own thread: the code is the same, and the order is exact.
//! Ours differs in R125: a send after the close says so. R121 is proven with calls of a `Remote`,
//! which stand where finished pool work will.

use crate::util::trace::{ZERO, finish, paused, turn};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use phaseloop::phase::{Check, Prepare};
use phaseloop::time::Timer;
use phaseloop::{AsyncHandle, AsyncSender, EventLoop, Handle, Keeper, LoopHandle, RunMode};

#[test]
fn r117_active_from_the_start_until_closed() {
    let (mut event_loop, handle, trace) = paused();
    let sent = AsyncHandle::new(&handle, trace.on("called")).unwrap();
    assert!(sent.is_active() && sent.has_ref());
    assert_eq!(handle.keepers(), [(Keeper::Async, 1)]);
    sent.sender().send().unwrap();
    assert!(turn(&mut event_loop), "still active");
    drop(sent.close());
    assert!(!sent.is_active());
    finish(&mut event_loop);
    assert_eq!(trace.take(), "called");
}

#[test]
fn r118_any_number_of_sends_is_one_callback() {
    let (mut event_loop, handle, trace) = paused();
    let sent = AsyncHandle::new(&handle, trace.on("called")).unwrap();
    let senders = [sent.sender(), sent.sender()];
    for _ in 0..3 {
        senders.iter().for_each(|sender| sender.send().unwrap());
        turn(&mut event_loop);
        assert_eq!(trace.take(), "called");
        turn(&mut event_loop);
        assert_eq!(trace.take(), "");
    }
}

#[test]
fn r119_a_send_in_the_callback_makes_another_one() {
    let (mut event_loop, handle, trace) = paused();
    let own_sender: Rc<RefCell<Option<AsyncSender>>> = Rc::default();
    let (log, own) = (trace.clone(), own_sender.clone());
    let send_again = move |_: &AsyncHandle| {
        log.log("called");
        if let Some(sender) = own.take() {
            sender.send().unwrap();
        }
    };
    let sent = AsyncHandle::new(&handle, send_again).unwrap();
    own_sender.replace(Some(sent.sender()));
    sent.sender().send().unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "called");
    assert_eq!(handle.next_timeout(), Some(ZERO));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "called");
    assert_eq!(handle.next_timeout(), None);
}

#[test]
fn r119_a_handle_sends_itself_without_a_sender() {
    let (mut event_loop, handle, trace) = paused();
    let (log, mut left) = (trace.clone(), 2);
    let sent = AsyncHandle::new(&handle, move |sent| {
        log.log("called");
        left -= 1;
        if left > 0 {
            sent.send().unwrap();
        }
    });
    let sent = sent.unwrap();
    for _ in 0..3 {
        sent.send().unwrap();
    }
    turn(&mut event_loop);
    assert_eq!(trace.take(), "called", "sends until then are one");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "called", "the one of the callback itself");
    sent.send().unwrap();
    drop(sent.close());
    assert!(sent.send().unwrap_err().is_handle_closed());
    finish(&mut event_loop);
    assert_eq!(trace.take(), "");
}

#[test]
fn r120_the_walk_is_in_order_of_creation_in_the_poll_phase() {
    let (mut event_loop, handle, trace) = paused();
    let (prepare, check) = (Prepare::new(&handle), Check::new(&handle));
    prepare.start(trace.on("prepare")).unwrap();
    check.start(trace.on("check")).unwrap();
    let [a, b, c] = ["a", "b", "c"].map(|name| AsyncHandle::new(&handle, trace.on(name)).unwrap());
    for sent in [&c, &a, &b] {
        sent.sender().send().unwrap();
    }
    turn(&mut event_loop);
    assert_eq!(trace.take(), "prepare a b c check");
}

#[test]
fn r121_calls_of_a_remote_come_before_async_handles() {
    let (mut event_loop, handle, trace) = paused();
    let order = Arc::new(AtomicUsize::new(0));
    let (log, seen) = (trace.clone(), order.clone());
    let look = move |_: &AsyncHandle| log.log(seen.load(Ordering::Relaxed));
    let sent = AsyncHandle::new(&handle, look).unwrap();
    sent.sender().send().unwrap();
    let call = move || order.store(1, Ordering::Relaxed);
    event_loop.remote().call(call).unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "1");
}

#[test]
fn r122_a_send_to_a_later_handle_is_served_in_the_same_walk() {
    let (mut event_loop, handle, trace) = paused();
    let senders: Rc<RefCell<Vec<AsyncSender>>> = Rc::default();
    let (log, to_both, once) = (trace.clone(), senders.clone(), Cell::new(true));
    let first = AsyncHandle::new(&handle, trace.on("first")).unwrap();
    let middle = AsyncHandle::new(&handle, move |_| {
        log.log("middle");
        if once.take() {
            to_both
                .borrow()
                .iter()
                .for_each(|sender| sender.send().unwrap());
        }
    })
    .unwrap();
    let last = AsyncHandle::new(&handle, trace.on("last")).unwrap();
    senders.replace(vec![last.sender(), middle.sender(), first.sender()]);
    middle.sender().send().unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "middle last");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "first middle");
}

#[test]
fn r123_a_handle_made_during_the_walk_is_not_in_it() {
    let (mut event_loop, handle, trace) = paused();
    let (log, made) = (trace.clone(), RefCell::new(None));
    let make = move |sent: &AsyncHandle| {
        let new = AsyncHandle::new(&sent.event_loop(), log.on("new")).unwrap();
        new.sender().send().unwrap();
        made.replace(Some(new));
        log.log("made");
    };
    let sent = AsyncHandle::new(&handle, make).unwrap();
    sent.sender().send().unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "made");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "new");
}

/// Ours: it stays behind all that were made before it. libuv puts it before those that the walk has
/// not reached.
#[test]
fn r120_a_handle_made_during_the_walk_is_the_last_of_the_next() {
    let (mut event_loop, handle, trace) = paused();
    let (log, made) = (trace.clone(), RefCell::new(None));
    let first = AsyncHandle::new(&handle, move |first| {
        let mut made = made.borrow_mut();
        made.get_or_insert_with(|| {
            let new = AsyncHandle::new(&first.event_loop(), log.on("new")).unwrap();
            new.sender().send().unwrap();
            new
        });
    })
    .unwrap();
    let second = AsyncHandle::new(&handle, trace.on("second")).unwrap();
    first.sender().send().unwrap();
    turn(&mut event_loop);
    second.sender().send().unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "second new");
}

/// The walk is taken before the messages and the ends of jobs, which come first in it.
#[test]
fn r123_nor_is_one_that_a_message_makes() {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    let job = event_loop.enter(|| phaseloop::spawn_blocking(|| ()));
    let made: Rc<RefCell<Option<AsyncHandle>>> = Rc::default();
    let keep = made.clone();
    drop(handle.spawn(async move {
        job.await.unwrap();
        log.log("ended");
        let new = AsyncHandle::new(&LoopHandle::current(), log.on("new")).unwrap();
        new.sender().send().unwrap();
        keep.replace(Some(new));
    }));
    let check = Check::new(&handle);
    check.start(trace.on("check")).unwrap();
    // Waits for the end of the job; the clock stands still.
    event_loop.run(RunMode::Once).unwrap();
    assert_eq!(trace.take(), "ended check");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "new check");
}

/// A handle counts for itself; what was sent to it does not.
#[test]
fn r001_a_send_does_not_make_a_loop_alive() {
    let (mut event_loop, handle, trace) = paused();
    let sent = AsyncHandle::new(&handle, trace.on("called")).unwrap();
    sent.unref();
    sent.sender().send().unwrap();
    assert!(!handle.is_alive());
    assert!(
        handle.report().to_string().contains("Nothing keeps"),
        "{}",
        handle.report()
    );
    assert!(!turn(&mut event_loop));
    assert_eq!(trace.take(), "", "no phase has run");

    // Once something else makes turns, it is called.
    let timer = Timer::new(&handle);
    timer.start(ZERO, ZERO, trace.on("timer")).unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "timer called");

    // Closed or dropped after the send.
    sent.sender().send().unwrap();
    drop(sent.close());
    finish(&mut event_loop);
    assert!(!handle.is_alive());
    let dropped = AsyncHandle::new(&handle, trace.on("called")).unwrap();
    dropped.sender().send().unwrap();
    drop(dropped);
    assert!(!handle.is_alive());
    assert_eq!(trace.take(), "");
}

/// The second is served by the walk that its send came from; the wake-up that is left is for
/// nothing.
#[test]
fn r001_r122_a_send_that_was_served_does_not_make_a_loop_alive() {
    let (mut event_loop, handle, trace) = paused();
    let later: Rc<RefCell<Option<AsyncHandle>>> = Rc::default();
    let (log, last) = (trace.clone(), later.clone());
    let first = AsyncHandle::new(&handle, move |first| {
        log.log("first");
        first.unref();
        if let Some(later) = &*last.borrow() {
            later.sender().send().unwrap();
            later.unref();
        }
    })
    .unwrap();
    later.replace(Some(AsyncHandle::new(&handle, trace.on("later")).unwrap()));
    first.sender().send().unwrap();
    assert!(!event_loop.run(RunMode::Once).unwrap(), "nothing is left");
    assert_eq!(trace.take(), "first later");
}

/// libuv's `async`: a thread sends until the callback has run often enough, and that closes its
/// handle.
#[test]
fn r124_libuv_async() {
    let mut event_loop = EventLoop::new().unwrap();
    let number = Arc::new(Mutex::new(0));
    let (seen, mut calls) = (number.clone(), 0);
    let sent = AsyncHandle::new(&event_loop.handle(), move |sent| {
        calls += 1;
        // What was done before the send is visible here.
        assert!(*seen.lock().unwrap() >= calls);
        if calls == 3 {
            drop(sent.close());
        }
    })
    .unwrap();
    let sender = sent.sender();
    let other = thread::spawn(move || {
        loop {
            *number.lock().unwrap() += 1;
            if sender.send().is_err() {
                break;
            }
            thread::yield_now();
        }
    });
    finish(&mut event_loop);
    other.join().unwrap();
}

/// Each round the loop may be asleep, about to sleep or awake; a lost send would hang it.
#[test]
fn r119_r124_no_send_is_lost() {
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let seen = Arc::new(AtomicUsize::new(0));
    let sent_so_far = Arc::new(AtomicUsize::new(0));
    let (count, total) = (seen.clone(), sent_so_far.clone());
    let sent = AsyncHandle::new(&handle, move |sent| {
        count.store(total.load(Ordering::SeqCst), Ordering::SeqCst);
        if count.load(Ordering::SeqCst) == 1000 {
            sent.unref();
        }
    })
    .unwrap();
    let sender = sent.sender();
    let other = thread::spawn(move || {
        for n in 1..=1000 {
            sent_so_far.store(n, Ordering::SeqCst);
            sender.send().unwrap();
            while seen.load(Ordering::SeqCst) < n {
                thread::yield_now();
            }
        }
    });
    assert!(!event_loop.run(RunMode::Default).unwrap());
    other.join().unwrap();
}

/// Ours: the sender learns of it.
#[test]
fn r125_a_close_takes_back_what_was_sent() {
    let (mut event_loop, handle, trace) = paused();
    let sent = AsyncHandle::new(&handle, trace.on("called")).unwrap();
    let sender = sent.sender();
    sender.send().unwrap();
    sent.close().then(trace.call("closed"));
    assert!(sender.send().unwrap_err().is_handle_closed());
    finish(&mut event_loop);
    assert_eq!(trace.take(), "closed");
    assert!(sender.send().unwrap_err().is_handle_closed());

    let dropped = AsyncHandle::new(&handle, trace.on("called")).unwrap();
    let sender = dropped.sender();
    sender.send().unwrap();
    drop(dropped);
    assert!(sender.send().unwrap_err().is_handle_closed());
    finish(&mut event_loop);
    assert_eq!(trace.take(), "");
}

/// A later handle closed by an earlier one of the same walk.
#[test]
fn r125_a_handle_closed_during_the_walk_is_not_called() {
    let (mut event_loop, handle, trace) = paused();
    let victim: Rc<RefCell<Option<AsyncHandle>>> = Rc::default();
    let (log, other) = (trace.clone(), victim.clone());
    let close = move |_: &AsyncHandle| {
        log.log("first");
        drop(other.take());
    };
    let first = AsyncHandle::new(&handle, close).unwrap();
    let second = AsyncHandle::new(&handle, trace.on("second")).unwrap();
    first.sender().send().unwrap();
    second.sender().send().unwrap();
    victim.replace(Some(second));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "first");
}

/// The descriptor that a sender writes to lives as long as the sender.
#[test]
fn r126_a_close_races_with_senders() {
    for _ in 0..200 {
        let mut event_loop = EventLoop::new().unwrap();
        let sent = AsyncHandle::new(&event_loop.handle(), |_| ()).unwrap();
        let threads = [(); 2].map(|()| {
            let sender = sent.sender();
            thread::spawn(move || while sender.send().is_ok() {})
        });
        turn(&mut event_loop);
        drop(sent);
        drop(event_loop);
        for thread in threads {
            thread.join().unwrap();
        }
    }
}
