//! `sleep`, `timeout` and `interval`: never early, also in real time; for ever beyond the range of
//! the clock; out of the heap when dropped; and what an interval does about missed ticks. Also the
//! difference between the two clocks.

use crate::util::polls::poll_once;
use crate::util::trace::{Trace, ZERO, busy, finish, ms, paused, turn};
use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn};
use std::io::ErrorKind;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::channel::oneshot;
use phaseloop::time::{
    MissedTicks, Sleep, Timer, advance, interval, interval_at, now, sleep, sleep_until, timeout,
    timeout_at,
};
use phaseloop::{EventLoop, Keeper, LoopHandle, block_on, spawn};
use tokio_test::{assert_pending, assert_ready};

/// Runs `main` on a paused loop, with a trace.
fn run<F: Future<Output = ()>>(main: impl FnOnce(Trace) -> F) -> String {
    let (event_loop, _, trace) = paused();
    event_loop.block_on(main(trace.clone()));
    trace.take()
}

// Sleep.

#[test]
fn a_sleep_ends_at_its_deadline_and_not_a_nanosecond_before() {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    drop(handle.spawn(async move {
        sleep(ms(10)).await;
        log.stamp("slept");
    }));
    turn(&mut event_loop);
    event_loop.enter(|| busy(ms(10) - Duration::from_nanos(1)));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "");
    event_loop.enter(|| busy(Duration::from_nanos(1)));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "slept@10");
}

#[test]
fn a_sleep_is_never_early_in_real_time() {
    block_on(async {
        for microseconds in [1, 100, 900, 1000, 1001, 2500] {
            let duration = Duration::from_micros(microseconds);
            let start = Instant::now();
            sleep(duration).await;
            assert!(start.elapsed() >= duration);
        }
    });
}

/// The two clocks: a timer counts from the loop's cached time, a sleep from the moment of the call.
#[test]
fn after_long_work_a_timer_is_early_and_a_sleep_is_not() {
    let (mut event_loop, handle, trace) = paused();
    let (timer, log) = (Timer::new(&handle), trace.clone());
    drop(handle.set_immediate(move || {
        busy(ms(60));
        timer.start(ms(40), ZERO, log.on_stamped("timer")).unwrap();
        drop(spawn(async move {
            sleep(ms(40)).await;
            log.stamp("sleep");
            drop(timer);
        }));
    }));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "timer@60 sleep@100");
}

/// The wait for a sleep is the time that is left of it, however old the cached time is. The wait
/// for a timer counts from the cached time.
#[test]
fn the_wait_for_a_sleep_counts_from_the_real_clock() {
    let (mut event_loop, handle, _) = paused();
    let _task = handle.spawn(async { sleep(ms(40)).await });
    turn(&mut event_loop);
    event_loop.enter(|| busy(ms(30)));
    assert_eq!(handle.next_timeout(), Some(ms(10)));
    let timer = Timer::new(&handle);
    timer.start(ms(5), ZERO, |_| ()).unwrap();
    assert_eq!(handle.next_timeout(), Some(ms(5)));
}

#[test]
fn a_sleep_of_zero_lets_the_turn_go_on() {
    let (mut event_loop, handle, trace) = paused();
    drop(handle.set_immediate(trace.call("immediate")));
    let log = trace.clone();
    drop(handle.spawn(async move {
        for _ in 0..2 {
            sleep(ZERO).await;
            log.log("slept");
        }
    }));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "immediate slept");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "slept");
}

#[test]
fn beyond_the_range_of_the_clock_is_for_ever() {
    let order = run(|trace| async move {
        busy(ms(1));
        for duration in [Duration::MAX, Duration::from_nanos(u64::MAX)] {
            let slept = timeout(ms(100), sleep(duration)).await;
            assert!(slept.is_err());
        }
        trace.stamp("end");
    });
    assert_eq!(order, "end@201");
    let (mut event_loop, handle, _) = paused();
    let task = handle.spawn(async { sleep(Duration::MAX).await });
    handle.next_tick(|| ());
    turn(&mut event_loop);
    assert_eq!(handle.next_timeout(), None, "there is no such deadline");
    assert_eq!(handle.keepers(), [(Keeper::Sleep, 1)]);
    drop(task);
}

#[test]
fn sleeps_and_timers_share_one_order() {
    let (mut event_loop, handle, trace) = paused();
    let (first, last) = (Timer::new(&handle), Timer::new(&handle));
    first.start(ms(10), ZERO, trace.on("timer1")).unwrap();
    let log = trace.clone();
    drop(handle.spawn(async move {
        sleep(ms(10)).await;
        log.log("sleep");
    }));
    turn(&mut event_loop);
    last.start(ms(10), ZERO, trace.on("timer2")).unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "timer1 sleep timer2");
}

/// Those that waited were woken by the drop; those that come later do not wait for it.
#[test]
fn a_sleep_ends_at_once_when_its_loop_was_dropped() {
    let (other, handle, _) = paused();
    let [mut waits, new, mut reset, unreferenced] =
        other.block_on(async { [1, 2, 3, 4].map(|number| sleep(ms(1000 * number))) });
    let (event_loop, _, trace) = paused();
    event_loop.block_on(async {
        assert_pending!(poll_once(&mut waits).await);
        drop(other);
        waits.await;
        trace.stamp("waited");
        new.await;
        reset.reset(now() + ms(500));
        reset.await;
        unreferenced.unref().await;
        trace.stamp("all");
    });
    assert_eq!(trace.take(), "waited@0 all@0");
    assert_eq!(handle.keepers(), []);
}

#[test]
fn the_interval_of_a_dropped_loop_ticks_no_more() {
    let (other, _, _) = paused();
    let mut ticks = other.block_on(async { interval(ms(10)) });
    let (event_loop, _, _) = paused();
    event_loop.block_on(async {
        ticks.tick().await;
        assert_pending!(poll_once(ticks.tick()).await);
        drop(other);
        for _ in 0..3 {
            assert_pending!(poll_once(ticks.tick()).await);
        }
    });
}

#[test]
fn a_dropped_sleep_is_out_of_the_heap() {
    let (event_loop, handle, _) = paused();
    event_loop.block_on(async {
        let handle = LoopHandle::current();
        let mut one = sleep(ms(10));
        assert!(
            !handle.keepers().contains(&(Keeper::Sleep, 1)),
            "not before its first poll"
        );
        assert_pending!(poll_once(&mut one).await);
        assert!(handle.keepers().contains(&(Keeper::Sleep, 1)));
        drop(one);
        assert_eq!(handle.keepers(), [(Keeper::MainFuture, 1)]);
    });
    assert!(!handle.is_alive());
}

/// Both are due in the same pass; the first one drops the second.
#[test]
fn a_sleep_dropped_while_it_is_ready_wakes_nobody() {
    let (mut event_loop, handle, trace) = paused();
    let victim = Rc::new(Cell::new(None::<phaseloop::JoinHandle<()>>));
    let (log, other) = (trace.clone(), victim.clone());
    drop(handle.spawn(async move {
        sleep(ms(10)).await;
        log.log("first");
        other.take().unwrap().abort();
    }));
    let log = trace.clone();
    victim.set(Some(handle.spawn(async move {
        sleep(ms(10)).await;
        log.log("second");
    })));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "first");
    assert_eq!(handle.keepers(), []);
    assert_eq!(handle.tasks().len(), 0);
}

#[test]
fn a_sleep_says_when_it_ends_and_whether_it_has() {
    let order = run(|trace| async move {
        let start = now();
        let mut one = sleep(ms(10));
        assert_eq!(one.deadline(), start + ms(10));
        assert!(!one.is_elapsed());
        (&mut one).await;
        assert!(one.is_elapsed());
        (&mut one).await;
        one.reset(start + ms(30));
        assert!(!one.is_elapsed());
        assert_pending!(poll_once(&mut one).await);
        one.reset(start + ms(20));
        (&mut one).await;
        trace.stamp("reset");
        sleep_until(start).await;
        trace.stamp("past");
        sleep_until(start + ms(50)).await;
        trace.stamp("until");
    });
    assert_eq!(order, "reset@20 past@20 until@50");
}

/// Waits for a sleep that other code holds, too.
async fn slept(shared: &RefCell<Sleep>) {
    poll_fn(|cx| Pin::new(&mut *shared.borrow_mut()).poll(cx)).await;
}

#[test]
fn a_sleep_that_is_reset_wakes_the_task_that_waits_for_it() {
    let order = run(|trace| async move {
        let start = now();
        let shared = Rc::new(RefCell::new(sleep(ms(10))));
        let (log, waited) = (trace.clone(), shared.clone());
        let waiter = spawn(async move {
            slept(&waited).await;
            log.stamp("slept");
        });
        sleep(ms(5)).await;
        shared.borrow_mut().reset(start + ms(30));
        sleep(ms(15)).await;
        trace.stamp("later");
        shared.borrow_mut().reset(start + ms(25));
        timeout(ms(100), waiter).await.unwrap().unwrap();
        assert!(shared.borrow().is_elapsed());
    });
    assert_eq!(order, "later@20 slept@25");
}

/// The sleep is due, and its task is about to be woken.
#[test]
fn a_sleep_that_is_reset_in_the_last_moment_does_not_fire() {
    let order = run(|trace| async move {
        let start = now();
        let shared = Rc::new(RefCell::new(sleep(ms(10))));
        let (log, first, waited) = (trace.clone(), shared.clone(), shared.clone());
        let resets = spawn(async move {
            sleep(ms(10)).await;
            first.borrow_mut().reset(start + ms(20));
            log.stamp("reset");
        });
        let log = trace.clone();
        let waiter = spawn(async move {
            slept(&waited).await;
            log.stamp("slept");
        });
        resets.await.unwrap();
        assert!(!shared.borrow().is_elapsed());
        let sleeps = |keepers: Vec<(Keeper, usize)>| {
            let sleep = keepers.into_iter().find(|(kind, _)| *kind == Keeper::Sleep);
            sleep.map(|(_, count)| count)
        };
        assert_eq!(sleeps(LoopHandle::current().keepers()), Some(1));
        timeout(ms(100), waiter).await.unwrap().unwrap();
        assert_eq!(sleeps(LoopHandle::current().keepers()), None);
    });
    assert_eq!(order, "reset@10 slept@20");
}

#[test]
fn a_sleep_polled_by_another_task_wakes_the_last_one() {
    let order = run(|trace| async move {
        let mut one = Box::pin(sleep(ms(10)));
        assert_pending!(poll_once(&mut one).await);
        let log = trace.clone();
        spawn(async move {
            one.await;
            log.stamp("moved");
        })
        .await
        .unwrap();
    });
    assert_eq!(order, "moved@10");
}

/// The place of a sleep in the heap belongs to it until it has seen that it fired.
#[test]
fn a_sleep_that_fired_unseen_does_not_disturb_another() {
    let order = run(|trace| async move {
        let mut unseen = sleep(ms(10));
        assert_pending!(poll_once(&mut unseen).await);
        advance(ms(20)).await;
        assert!(unseen.is_elapsed());
        let mut other = sleep(ms(10));
        assert_pending!(poll_once(&mut other).await);
        assert!(unseen.is_elapsed() && !other.is_elapsed());
        drop(unseen);
        let mut third = sleep(ms(5));
        assert_pending!(poll_once(&mut third).await);
        other.await;
        trace.stamp("other");
        assert!(third.is_elapsed());
    });
    assert_eq!(order, "other@30");
}

/// The deadlines are in disorder, and many are equal. Passes take few, many, and all of them.
#[test]
fn a_burst_of_sleeps_ends_by_deadline_then_by_start() {
    const SLEEPS: u64 = 3_000;
    let (mut event_loop, handle, _) = paused();
    let ended = Rc::new(RefCell::new(Vec::new()));
    let deadline = |number: u64| number * 7_919 % 1_009 % 60;
    for number in 0..SLEEPS {
        let ended = ended.clone();
        drop(handle.spawn(async move {
            sleep(ms(deadline(number))).await;
            ended.borrow_mut().push(number);
        }));
    }
    let mut expected: Vec<_> = (0..SLEEPS).collect();
    expected.sort_by_key(|&number| deadline(number));
    let mut time = 0;
    turn(&mut event_loop);
    for step in [0, 1, 19, 20, 40] {
        time += step;
        event_loop.enter(|| busy(ms(step)));
        turn(&mut event_loop);
        let due = expected.iter().filter(|&&number| deadline(number) <= time);
        assert_eq!(*ended.borrow(), due.copied().collect::<Vec<_>>(), "{time}");
    }
    assert_eq!(*ended.borrow(), expected);
    assert!(!handle.is_alive());
}

// Timeout.

#[test]
fn a_timeout_gives_the_output_or_says_that_time_has_passed() {
    let order = run(|trace| async move {
        let output = timeout(ms(10), async { 1 }).await;
        assert_eq!(output, Ok(1));
        trace.stamp("ready");
        let late = timeout(ms(10), sleep(ms(20))).await.unwrap_err();
        assert_eq!(
            late.to_string(),
            "the deadline has passed before the future was ready"
        );
        assert_eq!(std::io::Error::from(late).kind(), ErrorKind::TimedOut);
        trace.stamp("late");
        assert!(timeout_at(now() + ms(5), pending::<()>()).await.is_err());
        trace.stamp("at");
        assert_eq!(
            timeout(ms(10), sleep(ms(10))).await,
            Ok(()),
            "the future comes first"
        );
        trace.stamp("both");
    });
    assert_eq!(order, "ready@0 late@10 at@15 both@25");
}

#[test]
fn a_ready_future_wins_against_a_deadline_that_has_passed() {
    run(|_| async {
        let (sender, receiver) = oneshot::channel();
        let mut both = pin!(timeout(ms(1), receiver));
        assert_pending!(poll_once(&mut both).await);
        sender.send("ready").unwrap();
        advance(ms(5)).await;
        assert_eq!(both.await, Ok(Ok("ready")));
        assert_eq!(timeout_at(now() - ms(5), async {}).await, Ok(()));
    });
}

#[test]
fn a_timeout_drops_nothing_by_itself() {
    run(|_| async {
        let inner = timeout(ZERO, sleep(ms(10))).into_inner();
        inner.await;
        let mut future = sleep(ms(20));
        assert!(timeout(ms(10), &mut future).await.is_err());
        future.await;
        assert_eq!(LoopHandle::current().keepers(), [(Keeper::MainFuture, 1)]);
    });
}

// Interval.

/// Ticks of an interval of 10 ms whose second tick is seen 25 ms late.
fn ticks(missed_ticks: MissedTicks) -> String {
    run(|trace| async move {
        let start = now();
        let mut ticks = interval(ms(10));
        ticks.set_missed_ticks(missed_ticks);
        for n in 0..6 {
            let due = ticks.tick().await - start;
            let seen = now() - start;
            trace.log(format_args!("{}/{}", due.as_millis(), seen.as_millis()));
            if n == 0 {
                busy(ms(35));
            }
        }
    })
}

#[test]
fn missed_ticks_are_delayed_skipped_or_made_up_for() {
    assert_eq!(
        ticks(MissedTicks::Delay),
        "0/0 10/35 45/45 55/55 65/65 75/75"
    );
    assert_eq!(
        ticks(MissedTicks::Skip),
        "0/0 10/35 40/40 50/50 60/60 70/70"
    );
    assert_eq!(
        ticks(MissedTicks::Burst),
        "0/0 10/35 20/35 30/35 40/40 50/50"
    );
    assert_eq!(
        MissedTicks::default(),
        MissedTicks::Delay,
        "as libuv's timers do"
    );
}

#[test]
fn an_interval_ticks_at_once_or_at_its_start() {
    let order = run(|trace| async move {
        let mut at_once = interval(ms(10));
        at_once.tick().await;
        trace.stamp("at-once");
        at_once.tick().await;
        trace.stamp("later");
        let mut later = interval_at(now() + ms(5), ms(10));
        assert_eq!(later.period(), ms(10));
        for _ in 0..2 {
            later.tick().await;
            trace.stamp("at");
        }
        later.reset();
        busy(ms(4));
        later.reset();
        later.tick().await;
        trace.stamp("reset");
    });
    assert_eq!(order, "at-once@0 later@10 at@15 at@25 reset@39");
}

#[test]
fn an_interval_is_reset_to_now_to_a_time_from_now_and_to_a_deadline() {
    let order = run(|trace| async move {
        let start = now();
        let mut ticks = interval(ms(10));
        ticks.tick().await;
        busy(ms(3));
        ticks.reset_immediately();
        assert_eq!(ticks.tick().await - start, ms(3), "due when it was reset");
        trace.stamp("immediately");
        ticks.tick().await;
        trace.stamp("period");
        ticks.reset_after(ms(2));
        ticks.tick().await;
        trace.stamp("after");
        ticks.tick().await;
        trace.stamp("period");
        ticks.reset_at(start + ms(100));
        ticks.tick().await;
        trace.stamp("at");
        ticks.tick().await;
        trace.stamp("period");
        // The last reset before the tick counts.
        ticks.reset_after(ms(1));
        ticks.reset_after(ms(50));
        ticks.tick().await;
        trace.stamp("last");
        ticks.reset_after(ZERO);
        ticks.tick().await;
        trace.stamp("zero");
    });
    let expected = "immediately@3 period@13 after@15 period@25 at@100 period@110 last@160 zero@160";
    assert_eq!(order, expected);
}

/// Ticks after a reset to a deadline that was 25 ms ago, with a period of 10 ms.
fn ticks_from_the_past(missed_ticks: MissedTicks) -> String {
    run(|trace| async move {
        let start = now();
        let mut ticks = interval(ms(10));
        ticks.set_missed_ticks(missed_ticks);
        ticks.tick().await;
        busy(ms(30));
        ticks.reset_at(start + ms(5));
        for _ in 0..5 {
            let due = ticks.tick().await - start;
            let seen = now() - start;
            trace.log(format_args!("{}/{}", due.as_millis(), seen.as_millis()));
        }
    })
}

#[test]
fn ticks_between_a_deadline_in_the_past_and_now_are_missed_ticks() {
    assert_eq!(
        ticks_from_the_past(MissedTicks::Delay),
        "5/30 40/40 50/50 60/60 70/70"
    );
    assert_eq!(
        ticks_from_the_past(MissedTicks::Skip),
        "5/30 35/35 45/45 55/55 65/65"
    );
    assert_eq!(
        ticks_from_the_past(MissedTicks::Burst),
        "5/30 15/30 25/30 35/35 45/45"
    );
}

#[test]
fn an_interval_without_a_next_tick_is_reset_and_back() {
    run(|_| async {
        let mut ticks = interval(ms(10));
        ticks.tick().await;
        // Beyond the range of the clock.
        ticks.reset_after(Duration::MAX);
        assert!(timeout(ms(100), ticks.tick()).await.is_err());
        ticks.reset_after(ms(5));
        let before = now();
        assert_eq!(ticks.tick().await, before + ms(5));
        // A tick that waits is not due any more.
        assert!(timeout(ms(4), ticks.tick()).await.is_err());
        ticks.reset_after(ms(20));
        assert!(timeout(ms(19), ticks.tick()).await.is_err());
        ticks.tick().await;
        assert_eq!(now(), before + ms(29));
    });
}

#[test]
fn a_tick_that_is_given_up_is_not_lost() {
    let order = run(|trace| async move {
        let mut ticks = interval(ms(10));
        ticks.tick().await;
        assert!(timeout(ms(4), ticks.tick()).await.is_err());
        ticks.tick().await;
        trace.stamp("tick");
    });
    assert_eq!(order, "tick@10");
}

#[test]
fn an_interval_of_zero_ticks_once_a_turn() {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    drop(handle.spawn(async move {
        let mut ticks = interval(ZERO);
        loop {
            ticks.tick().await;
            log.log("tick");
        }
    }));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "tick tick", "the first one waits for nothing");
    for _ in 0..3 {
        turn(&mut event_loop);
        assert_eq!(trace.take(), "tick");
    }
}

#[test]
fn the_first_tick_of_an_interval_takes_no_turn() {
    run(|_| async {
        let mut ticks = interval(ms(5));
        assert_ready!(tokio_test::task::spawn(ticks.tick()).poll());
        assert_pending!(tokio_test::task::spawn(ticks.tick()).poll());
        let mut later = interval(ms(5));
        later.reset();
        assert_pending!(tokio_test::task::spawn(later.tick()).poll());
    });
}

#[test]
fn an_interval_without_end_ticks_once() {
    run(|_| async {
        for period in [Duration::MAX, Duration::from_secs(u64::MAX / 4)] {
            let mut ticks = interval(period);
            ticks.tick().await;
            assert!(timeout(ms(10), ticks.tick()).await.is_err());
        }
    });
}

#[test]
fn an_interval_is_a_stream() {
    let order = run(|trace| async move {
        let mut ticks = interval(ms(5)).take(3);
        while ticks.next().await.is_some() {
            trace.stamp("tick");
        }
    });
    assert_eq!(order, "tick@0 tick@5 tick@10");
}

/// What was left in the heap when the loop goes does not hurt later.
#[test]
fn a_sleep_may_outlive_its_loop() {
    let event_loop = EventLoop::new().unwrap();
    let mut one = event_loop.enter(|| sleep(ms(10)));
    assert_pending!(tokio_test::task::spawn(&mut one).poll(), "armed");
    drop(event_loop);
    one.reset(Instant::now());
    drop(one);
}
