//! What a recorder keeps of a loop, and whom it blames. On the paused clock every time is exact;
//! `busy` is a block.

use crate::util::child::in_child;
use crate::util::facts::{Fact, Lane, all_facts, facts};
use crate::util::files::Directory;
use crate::util::json::Value;
use crate::util::panics::panic_of;
use crate::util::trace::{ZERO, busy, finish, ms, turn};
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use phaseloop::observe::{Record, Recorder, SlowPeriod, Subject, What};
use phaseloop::phase::Idle;
use phaseloop::task::{self, yield_microtask};
use phaseloop::time::{Timer, sleep};
use phaseloop::{
    AsyncHandle, Builder, EventLoop, Keeper, LoopHandle, next_tick, queue_microtask, set_immediate,
    spawn, spawn_blocking,
};

type Periods = Rc<RefCell<Vec<SlowPeriod>>>;

/// A loop on the paused clock with a recorder, and the slow periods that it has reported.
fn recorded() -> (EventLoop, LoopHandle, Recorder, Periods) {
    let periods = Periods::default();
    let reported = periods.clone();
    let recorder =
        Recorder::new().on_slow(move |period| reported.borrow_mut().push(period.clone()));
    let builder = Builder::new().start_paused(true).record(recorder.clone());
    let event_loop = builder.build().unwrap();
    let handle = event_loop.handle();
    (event_loop, handle, recorder, periods)
}

/// The kind of each record, and its length in milliseconds, without waits, turns and wakes.
fn activities(recorder: &Recorder) -> Vec<(What, u64)> {
    let hidden = [What::Wait, What::Turn, What::Wake, What::Slow, What::Late];
    let records = recorder.records().into_iter();
    let shown = records.filter(|record| !hidden.contains(&record.what));
    shown.map(|record| (record.what, length(&record))).collect()
}

fn length(record: &Record) -> u64 {
    (record.end - record.start) / 1_000_000
}

fn only(periods: &Periods) -> SlowPeriod {
    let periods = periods.take();
    assert_eq!(periods.len(), 1, "{periods:?}");
    periods.into_iter().next().unwrap()
}

// The rules of blame.

#[test]
fn blame_rule_1_own_time_is_without_the_activities_inside() {
    let (event_loop, _, recorder, periods) = recorded();
    event_loop.block_on(async {
        let spawner = spawn(async {
            busy(ms(5));
            // An eager task is polled inside its spawner.
            let current = phaseloop::extension::Loop::current().unwrap();
            let inner = current.spawn_eager(async { busy(ms(30)) }, std::panic::Location::caller());
            busy(ms(5));
            inner.await.unwrap();
        });
        spawner.await.unwrap();
    });
    let period = only(&periods);
    let times: Vec<_> = period.suspects.iter().map(|it| it.took).collect();
    assert_eq!(times, [ms(30), ms(10)], "{period}");
    let depths: Vec<_> = recorder
        .records()
        .iter()
        .filter(|record| record.what == What::Poll && record.end > record.start)
        .map(|record| (record.depth, length(record)))
        .collect();
    assert_eq!(depths, [(1, 30), (0, 40)], "the inner one ends first");
}

#[test]
fn blame_rule_1_a_drain_is_not_its_callbacks_but_has_it_as_cause() {
    let (mut event_loop, handle, _, periods) = recorded();
    drop(handle.set_immediate(|| {
        busy(ms(2));
        next_tick(|| busy(ms(20)));
    }));
    finish(&mut event_loop);
    let period = only(&periods);
    let [tick, immediate] = &period.suspects[..] else {
        panic!("{period}")
    };
    assert!(matches!(tick.who, Subject::Tick(Some(_))), "{period}");
    assert_eq!((tick.took, immediate.took), (ms(20), ms(2)));
    let cause = tick.cause.as_ref().unwrap().to_string();
    assert!(cause.starts_with("queued entry ("), "{cause}");
    assert!(immediate.cause.is_none(), "it is a callback itself");
}

#[test]
fn blame_rule_2_many_polls_of_one_task_are_one_suspect() {
    let (event_loop, _, _, periods) = recorded();
    event_loop.block_on(async {
        let task = task::Builder::new().name("hash").spawn(async {
            for _ in 0..20 {
                busy(Duration::from_micros(700));
                yield_microtask().await;
            }
        });
        task.await.unwrap();
    });
    let line = only(&periods).to_string();
    assert!(
        line.starts_with("slow: 14.0ms (cpu 14.0ms): task 1 \"hash\" ("),
        "{line}"
    );
    assert!(line.contains("), 21 polls, 14.0ms"), "{line}");
}

#[test]
fn blame_rule_2_a_flood_of_subjects_ends_with_the_others() {
    let (mut event_loop, handle, _, periods) = recorded();
    for _ in 0..40 {
        handle
            .spawn(async { busy(Duration::from_micros(500)) })
            .detach();
    }
    drop(handle.set_immediate(|| busy(ms(3))));
    finish(&mut event_loop);
    let period = only(&periods);
    let line = period.to_string();
    assert!(line.contains("the loop: 40 others, 20.0ms"), "{line}");
    assert_eq!(
        period.suspects.len(),
        1,
        "the drain and the immediate are two periods: {line}"
    );
}

#[test]
fn blame_rule_2_a_period_below_the_threshold_is_not_slow() {
    let (event_loop, _, recorder, periods) = recorded();
    event_loop.block_on(async { busy(Duration::from_micros(9_999)) });
    assert!(periods.borrow().is_empty());
    event_loop.block_on(async { busy(ms(10)) });
    assert_eq!(only(&periods).took, ms(10));
    let slow = recorder.records();
    assert_eq!(slow.iter().filter(|it| it.what == What::Slow).count(), 1);
}

#[test]
fn blame_rule_3_the_culprit_has_the_largest_overlap_with_the_lateness() {
    let (event_loop, _, recorder, periods) = recorded();
    event_loop.block_on(async {
        let sleeper = spawn(sleep(ms(10)));
        sleep(ms(5)).await;
        // Runs for 9 ms, of which 4 are after the deadline; then another for 6 ms.
        queue_microtask(|| busy(ms(9)));
        queue_microtask(|| busy(ms(6)));
        sleeper.await.unwrap();
    });
    let blame = recorder.blame();
    assert_eq!((blame.late, blame.culprits.len()), (1, 1));
    let culprit = &blame.culprits[0];
    assert!(
        matches!(culprit.who, Subject::Microtask(Some(_))),
        "{blame}"
    );
    assert_eq!((culprit.made_late, culprit.took), (1, ms(6)), "{blame}");
    let late: Vec<_> = recorder
        .records()
        .into_iter()
        .filter(|record| record.what == What::Late)
        .collect();
    assert_eq!(length(&late[0]), 10, "from 10 ms to 20 ms");
    assert_eq!(late[0].kind, Some(Keeper::Sleep));
    let period = only(&periods);
    assert_eq!(
        period.late, 1,
        "its sleep is overdue when the period ends: {period}"
    );
}

#[test]
fn blame_rule_3_the_earlier_of_two_equal_culprits_is_it() {
    let (event_loop, _, recorder, _) = recorded();
    event_loop.block_on(async {
        let sleeper = spawn(sleep(ms(1)));
        yield_microtask().await;
        busy(ms(1));
        // The microtasks of this drain come before its next tick.
        next_tick(|| busy(ms(4)));
        queue_microtask(|| busy(ms(4)));
        sleeper.await.unwrap();
    });
    let blame = recorder.blame();
    let culprit = &blame.culprits[0];
    assert!(matches!(culprit.who, Subject::Microtask(_)), "{blame}");
    assert_eq!((blame.late, culprit.took), (1, ms(4)), "{blame}");
}

#[test]
fn blame_rule_3_a_timer_is_late_after_a_millisecond_and_a_tenth_of_the_threshold() {
    for (threshold, late_by, is_late) in [
        (10, 1, false),
        (10, 2, true),
        (100, 10, false),
        (100, 11, true),
    ] {
        let recorder = Recorder::new().slow(ms(threshold)).on_slow(|_| ());
        let builder = Builder::new().start_paused(true).record(recorder.clone());
        let event_loop = builder.build().unwrap();
        event_loop.block_on(async {
            let sleeper = spawn(sleep(ms(5)));
            yield_microtask().await;
            busy(ms(5 + late_by));
            sleeper.await.unwrap();
        });
        let late = recorder.blame().late;
        assert_eq!(late == 1, is_late, "{threshold} {late_by}");
    }
}

#[test]
fn blame_rule_3_what_earlier_callbacks_of_the_pass_add_is_lateness() {
    let (mut event_loop, handle, recorder, _) = recorded();
    let (first, second) = (Timer::new(&handle), Timer::new(&handle));
    first.start(ms(5), ZERO, |_| busy(ms(20))).unwrap();
    second.start(ms(5), ZERO, |_| ()).unwrap();
    finish(&mut event_loop);
    let blame = recorder.blame();
    assert_eq!(blame.late, 1, "{blame}");
    let line = blame.culprits[0].to_string();
    assert!(line.starts_with("timer ("), "{line}");
    assert!(line.contains("delayed 1 timer by 20.0ms"), "{line}");
}

/// A blocking call uses no processor, and the line says so.
#[cfg(target_os = "linux")]
#[test]
fn blame_rule_4_a_blocking_call_is_told_by_the_processor_time() {
    let periods = Periods::default();
    let reported = periods.clone();
    let recorder =
        Recorder::new().on_slow(move |period| reported.borrow_mut().push(period.clone()));
    let event_loop = Builder::new().record(recorder).build().unwrap();
    event_loop.block_on(async { thread::sleep(ms(40)) });
    let periods = periods.take();
    let period = periods.last().unwrap();
    // However long it takes: the processor was not used while the thread slept. The clocks differ
    // by a tick of the scheduler at most.
    let waited = period.took.saturating_sub(period.cpu);
    assert!(waited >= ms(30), "{period}");
    assert!(period.switches.0 >= 1, "{period}");
    let line = period.to_string();
    assert!(
        line.contains("mostly waiting (a blocking call?)") || line.contains("preempted"),
        "{line}"
    );
}

#[test]
fn blame_rule_5_a_panic_ends_each_kind_of_activity_like_a_return() {
    fn boom() {
        busy(ms(12));
        panic!("boom");
    }
    type Start = fn(&LoopHandle);
    let kinds: [(What, Start); 5] = [
        (What::Callback, |handle| drop(handle.set_immediate(boom))),
        (What::Tick, |handle| handle.next_tick(boom)),
        (What::Microtask, |handle| handle.queue_microtask(boom)),
        (What::Callback, |handle| {
            let timer = Timer::new(handle);
            timer.start(ms(1), ZERO, |_| boom()).unwrap();
            std::mem::forget(timer);
        }),
        (What::Poll, |handle| handle.spawn(async { boom() }).detach()),
    ];
    for (what, start) in kinds {
        let (mut event_loop, handle, recorder, periods) = recorded();
        start(&handle);
        if what == What::Poll {
            finish(&mut event_loop);
        } else {
            assert_eq!(panic_of(|| finish(&mut event_loop)), "boom");
        }
        assert_eq!(activities(&recorder), [(what, 12)]);
        assert_eq!(only(&periods).suspects[0].took, ms(12));
        // The next activity is not inside the one that panicked.
        drop(handle.set_immediate(|| busy(ms(1))));
        turn(&mut event_loop);
        let records = recorder.records();
        let last = records
            .iter()
            .rfind(|it| it.what == What::Callback)
            .unwrap();
        assert_eq!((last.depth, length(last)), (0, 1));
    }
    let (event_loop, _, recorder, _) = recorded();
    assert_eq!(panic_of(|| event_loop.block_on(async { boom() })), "boom");
    assert_eq!(activities(&recorder), [(What::Main, 12)]);
}

/// The observer of this test takes 30 ms for each start of a poll.
#[test]
fn blame_rule_6_the_time_of_an_observer_is_not_the_tasks() {
    let recorder = Recorder::new().on_slow(|_| ());
    let event_loop = Builder::new()
        .start_paused(true)
        .record(recorder.clone())
        .observer(facts(|fact: &Fact| {
            if matches!(fact, Fact::PollStart(_)) {
                busy(ms(30));
            }
        }))
        .build()
        .unwrap();
    event_loop.block_on(async { spawn(async { busy(ms(2)) }).await.unwrap() });
    let polls: Vec<_> = activities(&recorder)
        .into_iter()
        .filter(|(what, _)| *what == What::Poll)
        .collect();
    assert_eq!(polls, [(What::Poll, 2)]);
}

// What is recorded.

#[test]
fn recorder_knows_where_every_callback_comes_from() {
    let (mut event_loop, handle, recorder, _) = recorded();
    let mut lines = Vec::new();
    let mut here = |kind: Keeper, line: u32| lines.push((kind, line));
    let idle = Idle::new(&handle);
    here(Keeper::Idle, line!() - 1);
    idle.start(Idle::stop).unwrap();
    drop(handle.set_immediate(|| ()));
    here(Keeper::Queued, line!() - 1);
    let timer = Timer::new(&handle);
    here(Keeper::Timer, line!() - 1);
    timer.start(ms(1), ZERO, |_| ()).unwrap();
    let sent = AsyncHandle::new(&handle, |sent| drop(sent.close())).unwrap();
    here(Keeper::Async, line!() - 1);
    sent.sender().send().unwrap();
    let closed = Timer::new(&handle);
    here(Keeper::Closing, line!() - 1);
    closed.close().then(|| ());
    handle
        .spawn(async {
            sleep(ms(1)).await;
        })
        .detach();
    here(Keeper::Sleep, line!() - 3);
    finish(&mut event_loop);
    let records = recorder.records();
    for (kind, line) in lines {
        let found = records
            .iter()
            .find(|record| record.what == What::Callback && record.kind == Some(kind));
        let site = found.unwrap_or_else(|| panic!("no {kind}")).site;
        let site = site.unwrap_or_else(|| panic!("no site of a {kind}"));
        assert_eq!((site.file(), site.line()), (file!(), line), "{kind}");
    }
}

#[test]
fn recorder_knows_who_queued_ticks_microtasks_immediates_and_jobs() {
    let (event_loop, _, recorder, _) = recorded();
    let start = line!();
    event_loop.block_on(async {
        next_tick(|| ());
        queue_microtask(|| ());
        drop(set_immediate(|| ()));
        spawn_blocking(|| ()).await.unwrap();
        phaseloop::phase::closing().await;
    });
    let records = recorder.records();
    let is_known = |what: What, kind: Option<Keeper>, line: u32| {
        records.iter().any(|record| {
            let site = record.site.map(|site| (site.file(), site.line()));
            record.what == what && record.kind == kind && site == Some((file!(), line))
        })
    };
    assert!(is_known(What::Main, None, start + 1), "the main future");
    assert!(is_known(What::Tick, None, start + 2), "tick");
    assert!(is_known(What::Microtask, None, start + 3), "microtask");
    assert!(
        is_known(What::Callback, Some(Keeper::Queued), start + 4),
        "immediate"
    );
    assert!(
        is_known(What::Callback, Some(Keeper::Work), start + 5),
        "job"
    );
    assert!(
        is_known(What::Callback, Some(Keeper::Queued), start + 6),
        "awaited phase"
    );
}

#[test]
fn recorder_knows_the_source_of_an_event() {
    let recorder = Recorder::new().on_slow(|_| ());
    let event_loop = Builder::new().record(recorder.clone()).build().unwrap();
    let mut line = 0;
    event_loop.block_on(async {
        line = line!() + 1;
        let listener = phaseloop::net::TcpListener::bind("127.0.0.1:0")
            .await
            .unwrap();
        let address = listener.local_addr().unwrap();
        let peer = thread::spawn(move || std::net::TcpStream::connect(address).unwrap());
        listener.accept().await.unwrap();
        peer.join().unwrap();
    });
    let records = recorder.records();
    let found = records.iter().any(|record| {
        let is_line =
            |site: &std::panic::Location<'_>| site.line() == line && site.file() == file!();
        record.kind == Some(Keeper::Io) && record.site.is_some_and(is_line)
    });
    assert!(found, "{records:?}");
}

#[test]
fn recorder_notes_wakes_waits_turns_and_who_is_polled() {
    let (event_loop, _, recorder, _) = recorded();
    event_loop.block_on(async {
        let named = task::Builder::new().name("sleeper").spawn(sleep(ms(7)));
        named.await.unwrap();
    });
    let records = recorder.records();
    let of = |what: What| records.iter().filter(move |record| record.what == what);
    assert_eq!(of(What::Poll).map(|it| it.id).collect::<Vec<_>>(), [1, 1]);
    assert!(of(What::Wake).any(|it| it.id == 1), "{records:?}");
    let waits: Vec<_> = of(What::Wait).map(length).collect();
    assert_eq!(waits, [7]);
    assert_eq!(of(What::Turn).count() as u64, event_loop.handle().turns());
    // The records are in the order of their ends.
    assert!(records.is_sorted_by_key(|record| record.end), "{records:?}");
}

#[test]
fn recorder_of_eight_keeps_the_newest() {
    let recorder = Recorder::new().capacity(8).on_slow(|_| ());
    let builder = Builder::new().start_paused(true).record(recorder.clone());
    let event_loop = builder.build().unwrap();
    event_loop.block_on(async {
        for _ in 0..100 {
            sleep(ms(1)).await;
        }
    });
    let records = recorder.records();
    assert_eq!(records.len(), 8);
    assert!(records.is_sorted_by_key(|record| record.end));
    assert!(records[7].end >= 99_000_000, "{records:?}");
}

#[test]
fn recorder_that_starts_and_stops_inside_a_callback_records_what_lies_between() {
    let builder = Builder::new().start_paused(true);
    let mut event_loop = builder.build().unwrap();
    let handle = event_loop.handle();
    let recorder = Recorder::new().on_slow(|_| ());
    let attached = recorder.clone();
    drop(handle.set_immediate(move || {
        busy(ms(50));
        let handle = LoopHandle::current();
        assert!(handle.recorder().is_none());
        handle.record(attached);
        assert!(handle.recorder().is_some());
        busy(ms(50));
        next_tick(|| busy(ms(2)));
    }));
    drop(handle.set_immediate(|| busy(ms(3))));
    drop(handle.set_immediate(|| {
        busy(ms(4));
        next_tick(|| busy(ms(5)));
        LoopHandle::current().stop_recording();
        assert!(LoopHandle::current().recorder().is_none());
    }));
    drop(handle.set_immediate(|| busy(ms(6))));
    finish(&mut event_loop);
    let found = activities(&recorder);
    // The first callback began before the recorder did; the third one's end came after it.
    assert_eq!(found[0].0, What::Tick);
    let found: Vec<_> = found
        .into_iter()
        .filter(|(what, _)| *what == What::Callback)
        .collect();
    assert_eq!(found, [(What::Callback, 3)]);
}

#[test]
fn recorders_of_two_loops_are_separate() {
    let (first, _, of_first, _) = recorded();
    let (second, _, of_second, _) = recorded();
    first.block_on(async { busy(ms(1)) });
    second.block_on(async { busy(ms(2)) });
    assert_eq!(activities(&of_first), [(What::Main, 1)]);
    assert_eq!(activities(&of_second), [(What::Main, 2)]);
}

/// Names stay known after the end of their tasks, while the ring has their records.
#[test]
fn recorder_names_tasks_that_have_ended() {
    let (event_loop, _, recorder, _) = recorded();
    event_loop.block_on(async {
        let sleeper = spawn(sleep(ms(10)));
        yield_microtask().await;
        let hash = task::Builder::new()
            .name("hash")
            .spawn(async { busy(ms(40)) });
        hash.await.unwrap();
        sleeper.await.unwrap();
    });
    let blame = recorder.blame().to_string();
    assert!(blame.starts_with("task 2 \"hash\" ("), "{blame}");
    assert!(blame.contains("): delayed 1 timer by 30.0ms"), "{blame}");
}

/// A poll that wakes many tasks may begin in one round of the ring and end in a later one.
#[test]
fn recorder_knows_the_name_of_each_poll_in_the_ring() {
    let mut seen = 0;
    for (woken, ticks) in (0..20).flat_map(|woken| (0..10).map(move |ticks| (woken, ticks))) {
        let recorder = Recorder::new().capacity(8).on_slow(|_| ());
        let builder = Builder::new().record(recorder.clone());
        let event_loop = builder.build().unwrap();
        let others: Vec<_> = (0..woken).map(|_| Parked::default()).collect();
        event_loop.block_on(async {
            for other in &others {
                spawn(other.clone()).detach();
            }
            yield_microtask().await;
            let long = task::Builder::new().name("long");
            let wakes = others.clone();
            let long = long.spawn(async move { wakes.iter().for_each(Parked::wake) });
            let id: u32 = long.id().to_string().parse().unwrap();
            // Each tick is one more record after the poll.
            spawn(async move { (0..ticks).for_each(|_| next_tick(|| ())) }).detach();
            yield_microtask().await;
            let records = recorder.records();
            let is_long = |record: &Record| record.what == What::Poll && record.id == id;
            if records.iter().any(is_long) {
                let mut text = Vec::new();
                recorder.write_chrome(&mut text).unwrap();
                let text = String::from_utf8(text).unwrap();
                assert!(text.contains("long"), "{woken} {ticks} {records:?}");
                seen += 1;
            }
            drop(long);
        });
    }
    assert!(seen > 20, "{seen}");
}

/// A future that is pending until it is woken.
#[derive(Clone, Default)]
struct Parked {
    waker: Rc<Cell<Option<Waker>>>,
    is_woken: Rc<Cell<bool>>,
}

impl Parked {
    fn wake(&self) {
        self.is_woken.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Future for Parked {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_woken.get() {
            return Poll::Ready(());
        }
        self.waker.set(Some(cx.waker().clone()));
        Poll::Pending
    }
}

#[test]
fn recorder_does_not_charge_a_task_with_the_time_between_two_runs() {
    let (mut event_loop, handle, recorder, _) = recorded();
    for _ in 0..2 {
        event_loop.enter(|| busy(ms(50)));
        handle.spawn(async { busy(ms(3)) }).detach();
        finish(&mut event_loop);
    }
    assert_eq!(activities(&recorder), [(What::Poll, 3), (What::Poll, 3)]);
    let turns = recorder.records();
    let turns = turns.iter().filter(|record| record.what == What::Turn);
    assert!(turns.map(length).all(|took| took <= 3));
}

#[test]
fn recorder_does_not_change_the_order() {
    fn trace(record: bool) -> Vec<&'static str> {
        let log = Rc::new(RefCell::new(Vec::new()));
        let mut builder = Builder::new().start_paused(true);
        if record {
            builder = builder.record(Recorder::new().on_slow(|_| ()));
        }
        let event_loop = builder.build().unwrap();
        let push = |what| {
            let log = log.clone();
            move || log.borrow_mut().push(what)
        };
        let (a, b, c, d, e, f) = (
            push("a"),
            push("b"),
            push("c"),
            push("d"),
            push("e"),
            push("f"),
        );
        let inner = log.clone();
        event_loop.block_on(async move {
            drop(set_immediate(a));
            queue_microtask(b);
            next_tick(c);
            spawn(async move {
                queue_microtask(d);
                next_tick(e);
                yield_microtask().await;
                inner.borrow_mut().push("task");
            })
            .detach();
            next_tick(f);
            sleep(ms(1)).await;
        });
        log.take()
    }
    assert_eq!(trace(true), trace(false));
}

/// Closures that are queued when the loop is dropped are dropped with it, recorded or not.
#[test]
fn recorder_keeps_no_closure_of_a_dropped_loop() {
    let (event_loop, handle, _, _) = recorded();
    let alive = Rc::new(());
    for _ in 0..2 {
        let (tick, microtask, immediate) = (alive.clone(), alive.clone(), alive.clone());
        handle.next_tick(move || drop(tick));
        handle.queue_microtask(move || drop(microtask));
        drop(handle.set_immediate(move || drop(immediate)));
    }
    assert_eq!(Rc::strong_count(&alive), 7);
    drop(event_loop);
    assert_eq!(Rc::strong_count(&alive), 1);
}

#[test]
fn recorder_lets_its_listener_use_the_loop() {
    let recorder = Recorder::new();
    let inner = recorder.clone();
    let calls = Rc::new(Cell::new(0));
    let counter = calls.clone();
    let recorder = recorder.on_slow(move |_| {
        counter.set(counter.get() + 1);
        assert!(!inner.records().is_empty());
        LoopHandle::current().stop_recording();
    });
    let builder = Builder::new().start_paused(true).record(recorder);
    let event_loop = builder.build().unwrap();
    event_loop.block_on(async {
        busy(ms(20));
        sleep(ms(1)).await;
        busy(ms(20));
        sleep(ms(1)).await;
    });
    assert_eq!(calls.get(), 1, "the first call has stopped the recorder");
}

/// An observer that wants everything is notified of lanes, waits and wakes.
#[test]
fn observer_of_everything_is_notified_of_lanes_waits_and_wakes() {
    let words = Rc::new(RefCell::new(Vec::new()));
    let seen = words.clone();
    let observer = all_facts(move |fact: &Fact| {
        let word = match fact {
            Fact::CallStart(lane, Some(_)) => format!("{lane:?}("),
            Fact::CallEnd(Lane::Ticks | Lane::Microtasks, Some(_)) => ")".to_owned(),
            Fact::WaitStart => "wait".to_owned(),
            Fact::WaitEnd { events } => format!("{events} events"),
            Fact::Wake { task, by } => format!("{} wakes {}", by.is_some(), task.id()),
            _ => return,
        };
        seen.borrow_mut().push(word);
    });
    let builder = Builder::new().start_paused(true).observer(observer);
    let event_loop = builder.build().unwrap();
    event_loop.block_on(async {
        next_tick(|| queue_microtask(|| ()));
        let task = spawn(sleep(ms(1)));
        task.await.unwrap();
    });
    let words = words.borrow().join(" ");
    assert_eq!(words, "Ticks( ) Microtasks( ) wait 0 events false wakes 1");
}

// The environment.

/// Runs `body` in a process with these variables, and returns what it printed on standard error.
#[track_caller]
fn with_environment(variables: &[(&str, &str)], test: &str, body: fn()) -> Option<String> {
    let mut wrapper = vec!["env".to_owned()];
    wrapper.extend(
        variables
            .iter()
            .map(|(name, value)| format!("{name}={value}")),
    );
    let wrapper: Vec<_> = wrapper.iter().map(String::as_str).collect();
    let child = in_child(&wrapper, test, body)?;
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{printed}");
    Some(printed)
}

fn block_for_a_while() {
    phaseloop::block_on(block_beside(ms(5)));
}

/// Blocks the loop, for long enough to make a sleep of `delay` late.
async fn block_beside(delay: Duration) {
    let sleeper = spawn(sleep(delay));
    let blocker = task::Builder::new().name("blocker");
    let blocker = blocker.spawn(async { thread::sleep(ms(30)) });
    blocker.await.unwrap();
    sleeper.await.unwrap();
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn recorder_of_the_environment_writes_a_trace_for_each_loop() {
    let directory = Directory::new("trace");
    let path = directory.path("out-%p.json");
    let variables = [("PHASELOOP_TRACE", path.to_str().unwrap())];
    let name = "recorder_of_the_environment_writes_a_trace_for_each_loop";
    let printed = with_environment(&variables, name, || {
        block_for_a_while();
        block_for_a_while();
        let ignoring = Builder::new().ignore_environment().build().unwrap();
        assert!(ignoring.handle().recorder().is_none());
    });
    let Some(printed) = printed else { return };
    assert!(
        !printed.contains("phaseloop:"),
        "a trace is silent: {printed}"
    );
    let mut files: Vec<_> = std::fs::read_dir(&directory.0)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort_by_key(|path| path.as_os_str().len());
    assert_eq!(files.len(), 2, "{files:?}");
    assert!(files[1].to_str().unwrap().ends_with("-2.json"), "{files:?}");
    for file in files {
        assert!(!file.to_str().unwrap().contains('%'));
        check_trace(&read(&file));
    }
}

/// Complete events nest, each beginning has its end, and the blocked sleep is there.
fn check_trace(text: &str) {
    let trace = Value::read(text);
    let events = trace["traceEvents"].as_array().unwrap();
    let number = |event: &Value, key: &str| event[key].as_f64().unwrap();
    let mut spans: Vec<_> = events
        .iter()
        .filter(|event| event["ph"] == "X")
        .map(|event| {
            (
                number(event, "ts"),
                number(event, "ts") + number(event, "dur"),
            )
        })
        .collect();
    spans.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
    let mut open: Vec<f64> = Vec::new();
    for (start, end) in spans {
        while open.last().is_some_and(|&outer| outer <= start + 5e-4) {
            open.pop();
        }
        assert!(
            open.last().is_none_or(|&outer| end <= outer + 5e-4),
            "overlap at {start}"
        );
        open.push(end);
    }
    let count = |kind: &str| events.iter().filter(|event| event["ph"] == kind).count();
    assert_eq!(count("b"), count("e"));
    assert_eq!(count("s"), count("f"));
    let is_blocker = |event: &Value| {
        event["cat"] == "poll" && event["name"].as_str().unwrap().contains("blocker")
    };
    let blocker = events.iter().find(|event| is_blocker(event)).unwrap();
    assert!(number(blocker, "dur") >= 30_000.0, "{blocker:?}");
    assert!(events.iter().any(|event| event["cat"] == "late"));
}

#[test]
fn recorder_of_the_environment_writes_a_page_also_after_a_panic() {
    let directory = Directory::new("page");
    let path = directory.path("out.html");
    let variables = [("PHASELOOP_TRACE", path.to_str().unwrap())];
    let name = "recorder_of_the_environment_writes_a_page_also_after_a_panic";
    let printed = with_environment(&variables, name, || {
        let panicked = panic_of(|| {
            phaseloop::block_on(async {
                block_beside(ms(2)).await;
                panic!("boom");
            })
        });
        assert_eq!(panicked, "boom");
    });
    if printed.is_some() {
        let page = read(&path);
        assert!(page.contains("\"blocker\""));
        assert!(page.contains("default-src 'none'"));
        assert!(
            !page.contains("http:") && !page.contains("https:"),
            "no network"
        );
    }
}

#[cfg(unix)]
#[test]
fn recorder_of_the_environment_writes_a_trace_also_if_the_program_exits() {
    let directory = Directory::new("exit");
    let path = directory.path("out.json");
    let variables = [("PHASELOOP_TRACE", path.to_str().unwrap())];
    let name = "recorder_of_the_environment_writes_a_trace_also_if_the_program_exits";
    let printed = with_environment(&variables, name, || {
        phaseloop::block_on(async {
            block_beside(ms(2)).await;
            std::process::exit(0)
        });
    });
    if printed.is_some() {
        check_trace(&read(&path));
    }
}

#[test]
fn recorder_of_the_environment_prints_each_slow_period() {
    let name = "recorder_of_the_environment_prints_each_slow_period";
    let printed = with_environment(&[("PHASELOOP_SLOW", "20ms")], name, || {
        block_for_a_while();
        block_for_a_while();
    });
    let Some(printed) = printed else { return };
    let lines: Vec<_> = printed
        .lines()
        .filter(|it| it.starts_with("phaseloop: slow: "))
        .collect();
    assert_eq!(lines.len(), 2, "{printed}");
    assert!(lines[0].contains("\"blocker\""), "{printed}");
}

#[test]
fn environment_with_a_wrong_value_prints_one_line_each() {
    let name = "environment_with_a_wrong_value_prints_one_line_each";
    let variables = [
        ("PHASELOOP_SLOW", "soon"),
        ("PHASELOOP_TRACE", "/no/such/directory/out.json"),
    ];
    let printed = with_environment(&variables, name, block_for_a_while);
    let Some(printed) = printed else { return };
    let printed = printed.replace(std::path::MAIN_SEPARATOR, "/");
    let lines: Vec<_> = printed
        .lines()
        .filter(|it| it.starts_with("phaseloop: "))
        .collect();
    assert_eq!(lines.len(), 2, "{printed}");
    assert!(
        lines[0].starts_with("phaseloop: PHASELOOP_SLOW=soon: not a duration"),
        "{printed}"
    );
    assert!(
        lines[1].starts_with("phaseloop: cannot write /no/such/directory/out.json: "),
        "{printed}"
    );
}

/// Rule 6: the time of a listener is the loop's own. A wait does not become longer by it, so that
/// no timer is late because it is watched.
#[test]
fn blame_rule_6_the_time_of_a_listener_is_no_part_of_the_wait() {
    let recorder = Recorder::new().on_slow(|_| busy(ms(5)));
    let builder = Builder::new().start_paused(true).record(recorder.clone());
    let event_loop = builder.build().unwrap();
    event_loop.block_on(async {
        busy(ms(50));
        sleep(ms(20)).await;
    });
    let waits = recorder.records().into_iter();
    let waits: Vec<_> = waits.filter(|record| record.what == What::Wait).collect();
    assert_eq!(waits.iter().map(length).collect::<Vec<_>>(), [15]);
    assert_eq!(recorder.blame().culprits.len(), 0, "{}", recorder.blame());
    assert_eq!(event_loop.handle().metrics().idle, ms(15));
}
