//! Giving way: `yield_now` lets a turn pass, `yield_microtask` goes to the back of the lane, and
//! tasks that wake themselves may do so 61 times in one drain, all together.

use crate::util::trace::{ZERO, finish, ms, paused, turn};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::phase::{Check, Idle, Prepare};
use phaseloop::task::{self, JoinSet, yield_microtask, yield_now};
use phaseloop::time::{Timer, sleep};
use phaseloop::{
    Builder, EventLoop, Keeper, LoopHandle, NextWait, RunMode, next_tick, queue_microtask,
    set_immediate, spawn,
};

/// The number of self-wakes of one drain.
const SELF_WAKES: u32 = 61;

/// A future that wakes itself at each poll, as futures of other crates do to give way, and counts
/// its polls; it ends after `polls` of them.
fn wakes_itself(count: &Rc<Cell<u32>>, polls: u32) -> impl Future<Output = ()> + 'static {
    let count = count.clone();
    let mut left = polls;
    poll_fn(move |cx| {
        count.set(count.get() + 1);
        left -= 1;
        if left == 0 {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

/// Two ends of a TCP connection.
async fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (client, server) =
        futures::future::join(TcpStream::connect(address), listener.accept()).await;
    (client.unwrap(), server.unwrap().0)
}

/// Returns the most turns that one of `echoes` echoes took.
async fn most_turns_of_an_echo(echoes: u32) -> u64 {
    let (mut client, mut server) = connection().await;
    let serving = spawn(async move {
        let mut byte = [0];
        while server.read(&mut byte).await.unwrap() > 0 {
            server.write_all(&byte).await.unwrap();
        }
    });
    let handle = LoopHandle::current();
    let mut most = 0;
    for _ in 0..echoes {
        let start = handle.turns();
        client.write_all(b"x").await.unwrap();
        client.read_exact(&mut [0]).await.unwrap();
        most = most.max(handle.turns() - start);
    }
    drop(client);
    serving.await.unwrap();
    most
}

/// Runs echoes beside tasks, which end when the echoes have been answered.
fn echoes_beside<F: Future<Output = ()> + 'static>(
    event_loop: &mut EventLoop,
    tasks: usize,
    task: impl Fn(Rc<Cell<bool>>) -> F,
) -> u64 {
    event_loop.block_on(async {
        let is_over = Rc::new(Cell::new(false));
        let mut set = JoinSet::new();
        for _ in 0..tasks {
            set.spawn(task(is_over.clone()));
        }
        let most = most_turns_of_an_echo(200).await;
        is_over.set(true);
        while let Some(ended) = set.join_next().await {
            ended.unwrap();
        }
        most
    })
}

/// The loopback delivers within the system call, but the kernel may take its time on a busy
/// machine: this many turns are many, and far fewer than a starved echo takes.
const FEW_TURNS: u64 = 2_000;

#[test]
fn tasks_that_compute_and_yield_let_echoes_in() {
    let mut event_loop = EventLoop::new().unwrap();
    let burn = |is_over: Rc<Cell<bool>>| async move {
        while !is_over.get() {
            std::hint::black_box((0..2_000_u64).fold(0, |sum, n| sum ^ n.wrapping_mul(sum | 1)));
            yield_now().await;
        }
    };
    let most = echoes_beside(&mut event_loop, 2, burn);
    assert!(most < FEW_TURNS, "an echo took {most} turns");
}

#[test]
fn tasks_that_wake_themselves_let_echoes_and_timers_in() {
    for tasks in [1, 2, 100] {
        let mut event_loop = EventLoop::new().unwrap();
        let handle = event_loop.handle();
        let timer = Timer::new(&handle);
        let fired = Rc::new(Cell::new(0));
        let count = fired.clone();
        let fire = move |_: &Timer| count.set(count.get() + 1);
        timer.start(ms(1), ms(1), fire).unwrap();
        let seen = fired.clone();
        let spin = move |is_over: Rc<Cell<bool>>| {
            let seen = seen.clone();
            poll_fn(move |cx| {
                if is_over.get() && seen.get() > 0 {
                    return Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            })
        };
        let most = echoes_beside(&mut event_loop, tasks, spin);
        assert!(most < FEW_TURNS, "an echo beside {tasks} took {most} turns");
        assert!(fired.get() > 0);
    }
}

#[test]
fn a_main_future_that_wakes_itself_lets_its_tasks_io_and_timers_in() {
    let mut event_loop = EventLoop::new().unwrap();
    let done = Rc::new(Cell::new(0));
    let ends = done.clone();
    event_loop.block_on(async {
        let mark = ends.clone();
        spawn(async move {
            most_turns_of_an_echo(5).await;
            mark.set(mark.get() + 1);
        })
        .detach();
        spawn(async move {
            sleep(ms(1)).await;
            ends.set(ends.get() + 1);
        })
        .detach();
        poll_fn(|cx| {
            if done.get() == 2 {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    });
    // The same by `yield_now`, which a main future of a run that keeps nothing else alive may call.
    let turns = event_loop.handle().turns();
    event_loop
        .run_until_done(async {
            for _ in 0..10 {
                yield_now().await;
            }
        })
        .unwrap();
    assert_eq!(event_loop.handle().turns(), turns + 10);
}

#[test]
fn a_yield_goes_on_in_the_poll_phase_and_lets_one_turn_pass() {
    let (mut event_loop, handle, trace) = paused();
    let (prepare, check) = (Prepare::new(&handle), Check::new(&handle));
    let (log, other) = (trace.clone(), trace.clone());
    prepare.start(move |_| log.log("prepare")).unwrap();
    check.start(move |_| other.log("check")).unwrap();
    let log = trace.clone();
    drop(handle.spawn(async move {
        log.log("task");
        queue_microtask(log.call("micro"));
        next_tick(log.call("tick"));
        for round in 1..=3 {
            yield_now().await;
            log.log(round);
        }
    }));
    for expected in [
        "task micro tick prepare 1 check",
        "prepare 2 check",
        "prepare 3 check",
        "prepare check",
    ] {
        turn(&mut event_loop);
        assert_eq!(trace.take(), expected);
    }
}

/// A yield lets every other phase run once, whichever phase it is called in.
#[test]
fn a_yield_of_any_phase_waits_for_the_next_poll_phase() {
    let (mut event_loop, handle, trace) = paused();
    let yields = |name: &'static str| {
        let log = trace.clone();
        move || {
            let log = log.clone();
            drop(spawn(async move {
                yield_now().await;
                log.log(name);
            }));
        }
    };
    let (idle, prepare, timer) = (
        Idle::new(&handle),
        Prepare::new(&handle),
        Timer::new(&handle),
    );
    let [a, b, c, d, e] = ["idle", "prepare", "check", "timer", "poll"].map(yields);
    idle.start(move |idle| {
        a();
        idle.stop();
    })
    .unwrap();
    prepare
        .start(move |prepare| {
            b();
            prepare.stop();
        })
        .unwrap();
    drop(handle.set_immediate(c));
    timer.start(ZERO, ZERO, move |_| d()).unwrap();
    drop(handle.call_in(phaseloop::phase::Phase::Poll, e));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "idle prepare");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "poll check timer");
}

#[test]
fn a_yield_keeps_the_loop_alive_and_the_poll_phase_awake() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer
        .start(ms(100), ZERO, trace.on_stamped("timer"))
        .unwrap();
    phaseloop::Handle::unref(&timer);
    let log = trace.clone();
    drop(handle.spawn(async move {
        yield_now().await;
        assert_eq!(LoopHandle::current().keepers(), []);
        yield_now().await;
        log.stamp("yielded");
    }));
    assert!(event_loop.run(RunMode::Once).unwrap(), "a yield is queued");
    assert_eq!(handle.keepers(), [(Keeper::Queued, 1)]);
    finish(&mut event_loop);
    assert_eq!(trace.take(), "yielded@0", "the timer was not waited for");
    assert_eq!(handle.turns(), 2);
}

/// Another wake of the task does not end its yield.
#[test]
fn a_yield_that_is_polled_early_goes_on_waiting() {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    drop(handle.spawn(async move {
        let hops = async {
            for hop in 1..=3 {
                yield_microtask().await;
                log.log(hop);
            }
        };
        let yields = async {
            yield_now().await;
            log.log("turn");
        };
        futures::future::join(yields, hops).await;
    }));
    drop(handle.set_immediate(trace.call("immediate")));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "1 2 3 turn immediate");
}

#[test]
fn a_yield_that_is_dropped_is_taken_out() {
    let (mut event_loop, handle, _) = paused();
    let polls = Rc::new(Cell::new(0));
    let count = polls.clone();
    drop(handle.spawn(async move {
        let mut given_up = yield_now();
        poll_fn(|cx| {
            assert!(Pin::new(&mut given_up).poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        assert_eq!(LoopHandle::current().keepers(), [(Keeper::Queued, 1)]);
        drop(given_up);
        assert_eq!(LoopHandle::current().keepers(), []);
        poll_fn(|_| {
            count.set(count.get() + 1);
            Poll::<()>::Pending
        })
        .await;
    }));
    finish(&mut event_loop);
    assert_eq!((polls.get(), handle.turns()), (1, 0));
}

/// No loop makes a turn for it: neither on a thread without one, nor where one is only entered.
#[test]
fn a_yield_outside_of_a_run_wakes_at_once() {
    fn needs_send(_: &impl Send) {}

    needs_send(&yield_now());
    tokio_test::block_on(yield_now());
    let event_loop = EventLoop::new().unwrap();
    event_loop.enter(|| tokio_test::block_on(yield_now()));
    assert!(!event_loop.handle().is_alive());
}

/// A yield that began on one loop ends on another, and leaves the entries of that one alone.
#[test]
fn a_yield_that_is_moved_to_another_loop_yields_there() {
    let (mut first, one, _) = paused();
    let (mut second, two, trace) = paused();
    let moved = Rc::new(RefCell::new(None));
    let slot = moved.clone();
    drop(one.spawn(async move {
        let mut yielded = yield_now();
        poll_fn(|cx| {
            assert!(Pin::new(&mut yielded).poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        slot.replace(Some(yielded));
    }));
    turn(&mut first);
    let yielded = moved.take().unwrap();
    for name in ["before", "after"] {
        let log = trace.clone();
        drop(two.spawn(async move {
            yield_now().await;
            log.log(name);
        }));
    }
    let log = trace.clone();
    drop(two.spawn(async move {
        yielded.await;
        log.log("moved");
    }));
    finish(&mut second);
    assert_eq!(trace.take(), "before after moved");
    finish(&mut first);
}

#[test]
fn a_loop_that_is_embedded_asks_for_a_turn_after_a_yield() {
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let _backend = handle.backend().unwrap();
    let count = Rc::new(Cell::new(0));
    let seen = count.clone();
    drop(handle.spawn(async move {
        for _ in 0..3 {
            yield_now().await;
            seen.set(seen.get() + 1);
        }
        wakes_itself(&seen, 3 * SELF_WAKES).await;
    }));
    let mut turns = 0;
    while handle.is_alive() {
        assert_eq!(handle.next_wait(), NextWait::Now);
        event_loop.turn(Some(ZERO)).unwrap();
        turns += 1;
        assert!(turns < 20, "every turn ends one part of the work");
    }
    assert_eq!(count.get(), 3 + 3 * SELF_WAKES);
    // Three turns for the yields; the third one begins the self-wakes, which take two more.
    assert_eq!(turns, 5);
}

// Self-wakes.

#[test]
fn the_self_wakes_of_a_drain_are_counted_together() {
    for tasks in [1_u32, 2, 3, 61, 62, 100] {
        let (mut event_loop, handle, _) = paused();
        let polls = Rc::new(Cell::new(0));
        for _ in 0..tasks {
            handle.spawn(wakes_itself(&polls, u32::MAX)).detach();
        }
        // Each task is polled once in any case, and 61 times they may wake themselves.
        turn(&mut event_loop);
        assert_eq!(polls.get(), 2 * (tasks + SELF_WAKES), "{tasks} tasks");
        turn(&mut event_loop);
        assert_eq!(polls.get(), 3 * (tasks + SELF_WAKES), "{tasks} tasks");
        assert!(handle.is_alive());
        assert_eq!(handle.keepers(), [(Keeper::Queued, 1)]);
        assert_eq!(handle.next_timeout(), Some(ZERO));
    }
}

#[test]
fn every_drain_has_its_own_self_wakes() {
    let (mut event_loop, handle, trace) = paused();
    for name in ["a", "b"] {
        let log = trace.clone();
        drop(handle.set_immediate(move || {
            let polls = Rc::new(Cell::new(0));
            let task = wakes_itself(&polls, SELF_WAKES + 1);
            drop(spawn(async move {
                task.await;
                log.log(name);
            }));
        }));
    }
    drop(handle.set_immediate(trace.call("next")));
    turn(&mut event_loop);
    assert_eq!(
        trace.take(),
        "a b next",
        "the last one of 61 is in the drain"
    );
    // A single one more waits for a turn.
    let log = trace.clone();
    drop(handle.set_immediate(move || {
        let polls = Rc::new(Cell::new(0));
        let task = wakes_itself(&polls, SELF_WAKES + 2);
        drop(set_immediate(log.call("immediate")));
        drop(spawn(async move {
            task.await;
            log.log("late");
        }));
    }));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "late immediate", "the poll phase comes first");
}

/// What is late keeps its order, the microtasks that are not do not wait for it.
#[test]
fn late_tasks_go_on_in_their_order() {
    let (mut event_loop, handle, trace) = paused();
    drop(handle.set_immediate({
        let log = trace.clone();
        move || {
            let polls = Rc::new(Cell::new(0));
            spawn(wakes_itself(&polls, SELF_WAKES + 1)).detach();
            for name in ["a", "b", "c"] {
                let (log, mut left) = (log.clone(), SELF_WAKES);
                drop(spawn(poll_fn(move |cx| {
                    left -= 1;
                    if left == 0 {
                        log.log(name);
                        return Poll::Ready(());
                    }
                    cx.waker().wake_by_ref();
                    Poll::Pending
                })));
            }
            queue_microtask(log.call("micro"));
        }
    }));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "micro a b c");
}

/// Wakes between tasks, closures and hops have no limit, as in Node.
#[test]
fn other_wakes_stay_in_the_drain() {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    drop(handle.set_immediate(move || {
        let (ping, pong) = (async_pair(&log, "ping"), async_pair(&log, "pong"));
        let (to_pong, to_ping) = (pong.waker.clone(), ping.waker.clone());
        drop(spawn(ping.plays(to_pong, true)));
        drop(spawn(pong.plays(to_ping, false)));
        let hops = log.clone();
        drop(spawn(async move {
            for _ in 0..1_000 {
                yield_microtask().await;
            }
            hops.log("hops");
        }));
        drop(set_immediate(log.call("immediate")));
    }));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "ping pong hops immediate");
}

/// One of two tasks that wake each other.
struct Player {
    waker: Rc<RefCell<Option<std::task::Waker>>>,
    name: &'static str,
    log: crate::util::trace::Trace,
}

fn async_pair(log: &crate::util::trace::Trace, name: &'static str) -> Player {
    Player {
        waker: Rc::default(),
        name,
        log: log.clone(),
    }
}

impl Player {
    fn plays(
        self,
        other: Rc<RefCell<Option<std::task::Waker>>>,
        begins: bool,
    ) -> impl Future<Output = ()> {
        let mut rounds = 0;
        poll_fn(move |cx: &mut Context<'_>| {
            self.waker.replace(Some(cx.waker().clone()));
            if rounds == 400 {
                self.log.log(self.name);
                if let Some(other) = other.take() {
                    other.wake();
                }
                return Poll::Ready(());
            }
            rounds += 1;
            match other.take() {
                Some(other) => other.wake(),
                None => assert!(begins, "the second one finds the waker of the first"),
            }
            Poll::Pending
        })
    }
}

/// A task inside of another one that wakes itself through a waker of its own counts as the outer.
#[test]
fn self_wakes_through_other_wakers_count() {
    let (mut event_loop, handle, _) = paused();
    let polls = Rc::new(Cell::new(0));
    let inner = [(); 3].map(|()| wakes_itself(&polls, u32::MAX));
    let outer: futures::stream::FuturesUnordered<_> = inner.into_iter().map(Box::pin).collect();
    drop(handle.spawn(async move {
        futures::StreamExt::collect::<Vec<_>>(outer).await;
    }));
    for _ in 0..3 {
        turn(&mut event_loop);
    }
    assert!(handle.is_alive() && handle.turns() == 3);
}

#[test]
fn a_late_task_can_be_aborted_and_is_dropped_with_the_loop() {
    struct OnDrop(Rc<Cell<u32>>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    let (mut event_loop, handle, _) = paused();
    let drops = Rc::new(Cell::new(0));
    let polls = Rc::new(Cell::new(0));
    let mut tasks = Vec::new();
    for _ in 0..2 {
        let (guard, spin) = (OnDrop(drops.clone()), wakes_itself(&polls, u32::MAX));
        tasks.push(handle.spawn(async move {
            let _guard = guard;
            spin.await;
        }));
    }
    turn(&mut event_loop);
    assert!(handle.report().to_string().contains("yields.rs"));
    let aborted = tasks.remove(0);
    aborted.abort();
    assert!(event_loop.block_on(aborted).unwrap_err().is_cancelled());
    assert_eq!(drops.get(), 1);
    drop(event_loop);
    assert_eq!(drops.get(), 2);
}

/// The last run ends between the self-wakes of the main future; the next one has its own.
#[test]
fn a_stopped_run_leaves_late_tasks_for_the_next_one() {
    let (mut event_loop, handle, _) = paused();
    let polls = Rc::new(Cell::new(0));
    let task = handle.spawn(wakes_itself(&polls, 5 * SELF_WAKES));
    handle.set_immediate({
        let handle = handle.clone();
        move || handle.stop()
    });
    assert!(event_loop.run(RunMode::Default).unwrap(), "it was stopped");
    assert!(!task.is_finished());
    finish(&mut event_loop);
    assert!(task.is_finished());
    assert_eq!(polls.get(), 5 * SELF_WAKES);
}

#[test]
fn a_lane_budget_below_the_limit_ends_the_drain_first() {
    let builder = Builder::new().start_paused(true);
    let mut event_loop = builder.lane_budget(10.try_into().unwrap()).build().unwrap();
    let handle = event_loop.handle();
    let polls = Rc::new(Cell::new(0));
    handle.spawn(wakes_itself(&polls, u32::MAX)).detach();
    turn(&mut event_loop);
    assert_eq!((polls.get(), handle.budget_hits()), (20, 2));
    assert_eq!(handle.keepers(), []);
}

/// A task that is polled while a recorder watches is counted, too.
#[test]
fn a_recorded_loop_has_the_same_limit() {
    let recorder = phaseloop::observe::Recorder::new();
    let builder = Builder::new().start_paused(true).record(recorder);
    let mut event_loop = builder.build().unwrap();
    let polls = Rc::new(Cell::new(0));
    let handle = event_loop.handle();
    handle.spawn(wakes_itself(&polls, u32::MAX)).detach();
    turn(&mut event_loop);
    turn(&mut event_loop);
    assert_eq!(polls.get(), 3 * (1 + SELF_WAKES));
    assert!(task::current().is_none());
}

#[test]
fn a_budget_that_is_used_up_lets_a_turn_pass() {
    use phaseloop::task::consume_budget;

    let turns = phaseloop::block_on(async {
        let handle = LoopHandle::current();
        spawn(async move {
            let before = handle.turns();
            for _ in 0..128 {
                consume_budget().await;
            }
            assert_eq!(handle.turns(), before, "128 units are one poll");
            for _ in 0..256 {
                consume_budget().await;
            }
            handle.turns() - before
        })
        .await
    });
    assert_eq!(turns.unwrap(), 2);
}
