//! Tasks of a loop with a tokio runtime inside are polled as tokio polls its own: a budget for each
//! poll, no call that blocks the thread, and a yield that waits for the driver.
#![cfg(unix)]

use crate::util::panics::text_of;
use crate::util::trace::ms;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use phaseloop::time::sleep;
use phaseloop::{Builder, EventLoop, RunMode, set_immediate, spawn};
use tokio::sync::{mpsc, oneshot};
use tokio::task::coop;

const HOUR: Duration = Duration::from_secs(3600);

fn island() -> EventLoop {
    Builder::new().tokio().build().unwrap()
}

/// Runs `future` as the main future of a loop with tokio, then as a task.
fn in_both<F: Future<Output = ()> + 'static>(future: impl Fn() -> F) {
    let event_loop = island();
    event_loop.block_on(future());
    event_loop.block_on(async { spawn(future()).await.unwrap() });
}

// Yields.

#[test]
fn a_loop_of_tokios_yields_lets_its_tasks_timers_and_jobs_run() {
    in_both(|| async {
        let (sender, mut done) = oneshot::channel();
        tokio::spawn(async move {
            tokio::time::sleep(ms(1)).await;
            let job = tokio::task::spawn_blocking(|| 7).await.unwrap();
            sender.send(job).unwrap();
        });
        let answer = loop {
            match done.try_recv() {
                Ok(answer) => break answer,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        assert_eq!(answer, 7);
    });
}

#[test]
fn a_loop_of_tokios_yields_lets_the_loop_run() {
    in_both(|| async {
        let done = Rc::new(Cell::new(0));
        let (timer, immediate) = (done.clone(), done.clone());
        spawn(async move {
            sleep(ms(1)).await;
            timer.set(timer.get() + 1);
        })
        .detach();
        set_immediate(move || immediate.set(immediate.get() + 1));
        while done.get() < 2 {
            tokio::task::yield_now().await;
        }
    });
}

/// tokio polls its driver before a task that has yielded goes on. So does the loop.
#[test]
fn tokios_advance_returns_after_the_timers_that_are_due() {
    in_both(|| async {
        tokio::time::pause();
        let fired = Rc::new(Cell::new(false));
        let mark = fired.clone();
        let mut own = std::pin::pin!(tokio::time::sleep(ms(10)));
        let polled = poll_fn(|cx| Poll::Ready(own.as_mut().poll(cx))).await;
        assert!(polled.is_pending());
        let task = spawn(async move {
            tokio::time::sleep(ms(10)).await;
            mark.set(true);
        });
        // The task is polled for the first time, and tokio gets its timer.
        phaseloop::task::yield_microtask().await;
        tokio::time::advance(ms(9)).await;
        assert!(!fired.get() && !own.is_elapsed());
        tokio::time::advance(ms(2)).await;
        assert!(fired.get() && own.is_elapsed());
        task.await.unwrap();
        tokio::time::resume();
    });
}

// Calls that block.

#[test]
fn what_would_block_the_loop_panics_with_tokios_reason() {
    let refuses = |call: fn()| {
        let mut event_loop = island();
        let in_main = catch_unwind(AssertUnwindSafe(|| event_loop.block_on(async { call() })));
        let main = text_of(&*in_main.unwrap_err());
        let in_task = event_loop.block_on(async { spawn(async move { call() }).await });
        assert!(in_task.unwrap_err().is_panic());
        event_loop.enter(|| set_immediate(call));
        let in_callback = catch_unwind(AssertUnwindSafe(|| event_loop.run(RunMode::Default)));
        assert_eq!(text_of(&*in_callback.unwrap_err()), main);
        // The loop and the runtime work on.
        event_loop.block_on(async { tokio::spawn(tokio::time::sleep(ms(1))).await.unwrap() });
        main
    };
    let text = "Cannot block the current thread from within a runtime";
    for call in [
        (|| drop(oneshot::channel::<()>().1.blocking_recv())) as fn(),
        || _ = mpsc::channel::<()>(1).1.blocking_recv(),
        || _ = mpsc::channel::<()>(1).0.blocking_send(()),
        || drop(tokio::sync::Mutex::new(()).blocking_lock()),
        || drop(tokio::sync::RwLock::new(()).blocking_read()),
    ] {
        let found = refuses(call);
        assert!(found.contains(text), "{found}");
    }
    let found = refuses(|| tokio::runtime::Handle::current().block_on(async {}));
    assert!(
        found.contains("Cannot start a runtime from within a runtime"),
        "{found}"
    );
}

#[test]
fn what_blocks_is_allowed_on_other_threads_and_outside_of_a_run() {
    let event_loop = island();
    let (sender, receiver) = oneshot::channel();
    event_loop.block_on(async {
        let waits = phaseloop::spawn_blocking(|| receiver.blocking_recv());
        sender.send(7).unwrap();
        assert_eq!(waits.await.unwrap(), Ok(7));
    });
    let (sender, receiver) = oneshot::channel();
    sender.send(8).unwrap();
    assert_eq!(event_loop.enter(|| receiver.blocking_recv()), Ok(8));
    let (sender, receiver) = oneshot::channel();
    sender.send(9).unwrap();
    assert_eq!(receiver.blocking_recv(), Ok(9));
}

#[test]
fn a_loop_with_tokio_is_built_and_dropped_inside_of_another_one() {
    let event_loop = island();
    let inner = event_loop.block_on(async {
        tokio::time::sleep(ms(1)).await;
        drop(island());
        let inner = spawn(async { island() }).await.unwrap();
        tokio::spawn(tokio::time::sleep(ms(1))).await.unwrap();
        inner
    });
    let inner = inner;
    inner.block_on(async { tokio::time::sleep(ms(1)).await });
    event_loop.block_on(async move { drop(inner) });
}

#[test]
fn a_panic_that_leaves_a_run_leaves_tokio_usable() {
    let event_loop = island();
    for _ in 0..3 {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            event_loop.block_on(async { panic!("of the main future") });
        }));
        assert!(panicked.is_err());
        assert!(coop::has_budget_remaining());
        let own = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        own.block_on(async {});
        event_loop.block_on(async { tokio::time::sleep(ms(1)).await });
    }
}

// The budget.

#[test]
fn a_copy_without_an_end_is_ended_by_a_timeout() {
    in_both(|| async {
        let (mut from, mut to) = (tokio::io::repeat(0), tokio::io::sink());
        let copied = tokio::time::timeout(ms(10), tokio::io::copy(&mut from, &mut to)).await;
        assert!(copied.is_err());
        // A timeout of the loop is polled first, and ends it just so.
        let (mut from, mut to) = (tokio::io::repeat(0), tokio::io::sink());
        let copied = phaseloop::time::timeout(ms(10), tokio::io::copy(&mut from, &mut to)).await;
        assert!(copied.is_err());
    });
}

/// Takes messages until the channel has the task give way, and returns their number.
async fn received_in_one_poll(receiver: &mut mpsc::UnboundedReceiver<()>) -> usize {
    poll_fn(|cx| {
        let mut count = 0;
        while receiver.poll_recv(cx).is_ready() {
            count += 1;
        }
        Poll::Ready(count)
    })
    .await
}

#[test]
fn each_poll_has_a_budget_of_its_own() {
    let event_loop = island();
    let counts = event_loop.block_on(async {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        (0..10_000).for_each(|_| sender.send(()).unwrap());
        let mut counts = vec![received_in_one_poll(&mut receiver).await];
        assert!(!coop::has_budget_remaining());
        for _ in 0..3 {
            let task = spawn(async move {
                assert!(coop::has_budget_remaining());
                let count = received_in_one_poll(&mut receiver).await;
                assert!(!coop::has_budget_remaining());
                (count, receiver)
            });
            let (count, back) = task.await.unwrap();
            (receiver, counts) = (back, [counts, vec![count]].concat());
        }
        set_immediate(|| assert!(coop::has_budget_remaining(), "a callback ends by itself"));
        phaseloop::phase::closing().await;
        drop(sender);
        counts
    });
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
    assert!((100..=128).contains(&counts[0]), "{counts:?}");
}

/// Two tasks that always have something to receive let the others run, and are both served.
#[test]
fn channels_that_are_always_ready_starve_nothing() {
    let event_loop = island();
    let received = [(); 2].map(|()| Rc::new(Cell::new(0_u64)));
    event_loop.block_on(async {
        for count in &received {
            let (sender, mut receiver) = mpsc::unbounded_channel();
            let count = count.clone();
            spawn(async move {
                sender.send(()).unwrap();
                while receiver.recv().await.is_some() {
                    count.set(count.get() + 1);
                    sender.send(()).unwrap();
                }
            })
            .detach();
        }
        sleep(ms(1)).await;
        tokio::time::sleep(ms(1)).await;
        assert_eq!(tokio::spawn(async { 7 }).await.unwrap(), 7);
    });
    assert!(received.iter().all(|count| count.get() > 0));
}

/// A budget that the loop left behind would hang the next executor of the thread.
#[test]
fn a_loop_leaves_no_budget_behind() {
    let event_loop = island();
    event_loop.block_on(async {
        spawn(coop::consume_budget()).await.unwrap();
    });
    let use_up = || {
        futures::executor::block_on(async {
            let (sender, mut receiver) = mpsc::unbounded_channel();
            (0..1_000).for_each(|_| sender.send(()).unwrap());
            assert_eq!(received_in_one_poll(&mut receiver).await, 1_000);
        });
    };
    use_up();
    drop(event_loop);
    use_up();
}

#[test]
fn tokios_select_join_set_and_local_set_work_with_budgets() {
    in_both(|| async {
        let mut set = tokio::task::JoinSet::new();
        for n in 0..300_u32 {
            set.spawn(async move {
                for _ in 0..n % 5 {
                    tokio::task::yield_now().await;
                }
                n
            });
        }
        let mut sum = 0;
        while let Some(n) = set.join_next().await {
            sum += n.unwrap();
        }
        assert_eq!(sum, 299 * 300 / 2);
        let local = tokio::task::LocalSet::new();
        let count = Rc::new(Cell::new(0));
        let inner = count.clone();
        local
            .run_until(async move {
                let task = tokio::task::spawn_local(async move {
                    for _ in 0..200 {
                        tokio::task::yield_now().await;
                        inner.set(inner.get() + 1);
                    }
                });
                task.await.unwrap();
            })
            .await;
        assert_eq!(count.get(), 200);
        let late = tokio::time::timeout(ms(1), std::future::pending::<()>());
        assert!(late.await.is_err());
        let never = std::pin::pin!(tokio::time::sleep(HOUR));
        let (sender, receiver) = oneshot::channel();
        tokio::spawn(async move { sender.send(1) });
        let first = futures::future::select(never, receiver).await;
        assert!(matches!(first, futures::future::Either::Right((Ok(1), _))));
    });
}

/// A hop of the lane is no yield of tokio's.
#[test]
fn yield_microtask_stays_in_the_drain() {
    let event_loop = island();
    let handle = event_loop.handle();
    event_loop.block_on(async {
        let turns = handle.turns();
        for _ in 0..100 {
            phaseloop::task::yield_microtask().await;
        }
        assert_eq!(handle.turns(), turns);
        phaseloop::task::yield_now().await;
        assert_eq!(handle.turns(), turns + 1);
    });
}

#[test]
fn a_task_of_tokio_may_call_the_yields_of_the_loop() {
    let event_loop = island();
    event_loop.block_on(async {
        let task = tokio::spawn(async {
            for _ in 0..100 {
                phaseloop::task::yield_now().await;
                phaseloop::task::yield_microtask().await;
            }
            7
        });
        assert_eq!(task.await.unwrap(), 7);
    });
}
