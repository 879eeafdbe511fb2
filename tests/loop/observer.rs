//! What an observer sees: every phase of every turn, every callback in its
//! phase, every poll of a task, and an end for each start, also after a panic.

use crate::util::facts::{Fact, all_facts, facts};
use crate::util::panics::panic_of;
use crate::util::trace::{ZERO, busy, finish, ms, turn};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::{Duration, Instant};

use phaseloop::observe::{Activity, Body, Observer, Waited, Wants};
use phaseloop::phase::{Idle, Phase};
use phaseloop::task::yield_microtask;
use phaseloop::time::{self, Timer, sleep};
use phaseloop::{AsyncHandle, Builder, EventLoop, LoopHandle, next_tick};

type Facts = Rc<RefCell<Vec<Fact>>>;

fn observed() -> (EventLoop, LoopHandle, Facts) {
    let seen = Facts::default();
    let all = seen.clone();
    let event_loop = Builder::new()
        .start_paused(true)
        .observer(facts(move |fact: &Fact| {
            all.borrow_mut().push(fact.clone())
        }))
        .build()
        .unwrap();
    let handle = event_loop.handle();
    (event_loop, handle, seen)
}

/// The facts as brackets: `check(` … `)` a phase, `<` … `>` a callback, `[name` … `]` a poll.
fn line(facts: &Facts) -> String {
    let facts = facts.take();
    let words = facts.iter().map(|fact| match fact {
        Fact::PhaseStart(phase) => format!("{phase}("),
        Fact::PhaseEnd(_) => ")".to_owned(),
        Fact::CallbackStart(_) => "<".to_owned(),
        Fact::CallbackEnd(_) => ">".to_owned(),
        Fact::PollStart(task) => format!("[{}", task.name().unwrap_or("?")),
        Fact::PollEnd(_) => "]".to_owned(),
        _ => "unknown".to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The facts without phases in which nothing happened.
fn busy_phases(facts: &Facts) -> String {
    let mut line = line(facts);
    for phase in [
        "pending", "idle", "prepare", "poll", "check", "closing", "timers",
    ] {
        line = line.replace(&format!("{phase}( )"), "");
    }
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_phase_is_reported_also_when_nothing_happens() {
    let (mut event_loop, handle, facts) = observed();
    drop(handle.set_immediate(|| ()));
    finish(&mut event_loop);
    assert_eq!(
        line(&facts),
        "timers( ) pending( ) idle( ) prepare( ) poll( ) check( < > ) closing( ) timers( )"
    );
    finish(&mut event_loop);
    assert_eq!(line(&facts), "", "no turn, no facts");
}

#[test]
fn callbacks_are_reported_in_their_phase_one_by_one() {
    let (mut event_loop, handle, facts) = observed();
    let (idle, timer) = (Idle::new(&handle), Timer::new(&handle));
    idle.start(Idle::stop).unwrap();
    timer.start(ms(1), ZERO, |_| ()).unwrap();
    drop(handle.set_immediate(|| next_tick(|| ())));
    drop(handle.set_immediate(|| ()));
    let sent = AsyncHandle::new(&handle, |sent| drop(sent.close())).unwrap();
    sent.sender().send().unwrap();
    let closed = Timer::new(&handle);
    closed.close().then(|| ());
    turn(&mut event_loop);
    // The close of `sent` is not awaited and has no callback, so it runs none.
    assert_eq!(
        busy_phases(&facts),
        "idle( < > ) poll( < > ) check( < > < > ) closing( < > )"
    );
    turn(&mut event_loop);
    assert_eq!(busy_phases(&facts), "");
    finish(&mut event_loop);
    assert_eq!(busy_phases(&facts), "timers( < > )");
}

#[test]
fn the_phase_of_a_callback_is_named_at_both_ends() {
    let (mut event_loop, handle, facts) = observed();
    drop(handle.set_immediate(|| ()));
    finish(&mut event_loop);
    let facts = facts.take();
    let is = |wanted: fn(&Fact) -> bool| facts.iter().filter(|fact| wanted(fact)).count();
    assert_eq!(
        is(|fact| matches!(fact, Fact::CallbackStart(Phase::Check))),
        1
    );
    assert_eq!(
        is(|fact| matches!(fact, Fact::CallbackEnd(Phase::Check))),
        1
    );
    assert_eq!(is(|fact| matches!(fact, Fact::PhaseEnd(Phase::Check))), 1);
}

#[test]
fn polls_are_reported_with_their_task_inside_the_callback_that_woke_it() {
    let (mut event_loop, handle, facts) = observed();
    let sleeper = phaseloop::task::Builder::new().name("sleeper");
    let task = sleeper.spawn_on(
        async {
            sleep(ms(1)).await;
            yield_microtask().await;
        },
        &handle,
    );
    finish(&mut event_loop);
    // The first poll is part of the drain at the start of the run, outside any phase.
    let expected = "[sleeper ] timers( < [sleeper ] [sleeper ] > )";
    assert_eq!(busy_phases(&facts), expected);
    drop(task);
    event_loop.block_on(async {});
    assert_eq!(busy_phases(&facts), "", "the main future is no task");
}

#[test]
fn an_aborted_task_is_not_polled() {
    let (mut event_loop, handle, facts) = observed();
    let task = handle.spawn(async {});
    task.abort();
    finish(&mut event_loop);
    assert_eq!(busy_phases(&facts), "");
}

#[test]
fn every_start_has_its_end_after_a_panic() {
    let (mut event_loop, handle, facts) = observed();
    drop(handle.set_immediate(|| panic!("boom")));
    assert_eq!(panic_of(|| turn(&mut event_loop)), "boom");
    assert_eq!(busy_phases(&facts), "check( < > )");
    drop(handle.spawn(async { panic!("in a task") }));
    finish(&mut event_loop);
    assert_eq!(busy_phases(&facts), "[? ]");
}

/// An observer may be a type of its own, and look at the loop it observes.
#[test]
fn an_observer_may_look_at_the_loop() {
    struct Counter(Rc<RefCell<u64>>);
    impl Observer for Counter {
        fn end_phase(&self, phase: Phase) {
            if phase == Phase::Timers {
                *self.0.borrow_mut() = LoopHandle::current().turns();
            }
        }
    }
    let turns = Rc::new(RefCell::new(0));
    let builder = Builder::new()
        .start_paused(true)
        .observer(Counter(turns.clone()));
    let event_loop = builder.build().unwrap();
    event_loop.block_on(async {
        for _ in 0..3 {
            sleep(ms(1)).await;
        }
    });
    assert_eq!(*turns.borrow(), 3);
}

/// What an observer queues at the start of a callback comes before the task that the callback
/// wakes, as it would in any lane.
#[test]
fn what_an_observer_queues_comes_before_the_task_that_is_woken() {
    let log = Rc::new(RefCell::new(Vec::new()));
    let (of_tick, of_task) = (log.clone(), log.clone());
    let event_loop = Builder::new()
        .start_paused(true)
        .observer(facts(move |fact: &Fact| {
            if matches!(fact, Fact::CallbackStart(Phase::Timers)) {
                let log = of_tick.clone();
                next_tick(move || log.borrow_mut().push("tick"));
            }
        }))
        .build()
        .unwrap();
    event_loop.block_on(async move {
        let task = phaseloop::spawn(async move {
            sleep(ms(1)).await;
            of_task.borrow_mut().push("task");
        });
        task.await.unwrap();
    });
    assert_eq!(*log.borrow(), ["tick", "task"]);
}

/// A task that is aborted between its wake and its poll is not polled again.
#[test]
fn a_task_that_an_observer_aborts_is_not_polled() {
    fn aborted_at(is_time: fn(&Fact) -> bool) {
        let task = Rc::new(RefCell::new(None::<phaseloop::task::AbortHandle>));
        let of_observer = task.clone();
        let event_loop = Builder::new()
            .start_paused(true)
            .observer(facts(move |fact: &Fact| {
                if is_time(fact) {
                    if let Some(task) = of_observer.take() {
                        task.abort();
                    }
                }
            }))
            .build()
            .unwrap();
        event_loop.block_on(async move {
            let sleeper = phaseloop::spawn(sleep(ms(1)));
            phaseloop::phase::check().await;
            *task.borrow_mut() = Some(sleeper.abort_handle());
            assert!(sleeper.await.unwrap_err().is_cancelled());
        });
    }
    aborted_at(|fact| matches!(fact, Fact::CallbackStart(Phase::Timers)));
    aborted_at(|fact| matches!(fact, Fact::PollStart(_)));
}

/// Hands the first start of a wait to its closure.
fn at_first_wait(closure: impl Fn() + 'static) -> impl Observer + 'static {
    let is_over = Cell::new(false);
    all_facts(move |fact: &Fact| {
        if matches!(fact, Fact::WaitStart) && !is_over.replace(true) {
            closure();
        }
    })
}

#[test]
fn a_clock_that_an_observer_pauses_as_a_wait_begins_ends_that_wait_by_a_jump() {
    const HOUR: Duration = Duration::from_secs(3600);
    let observer = at_first_wait(time::pause);
    let event_loop = Builder::new().observer(observer).build().unwrap();
    let slept = event_loop.block_on(async {
        let start = time::now();
        sleep(HOUR).await;
        time::now() - start
    });
    assert!(slept >= HOUR && slept < 2 * HOUR, "{slept:?}");
}

#[test]
fn a_clock_that_an_observer_resumes_as_a_wait_begins_ends_that_wait_in_real_time() {
    let resumed = Rc::new(Cell::new(None));
    let note = resumed.clone();
    let observer = at_first_wait(move || {
        note.set(Some(Instant::now()));
        time::resume();
    });
    let builder = Builder::new().start_paused(true).observer(observer);
    let event_loop = builder.build().unwrap();
    event_loop.block_on(async { sleep(ms(10)).await });
    assert!(resumed.get().unwrap().elapsed() >= ms(10));
}

/// A timeline that a library could write, with the public trait only: one line for each activity,
/// indented by its depth, with its length.
#[derive(Clone, Default)]
struct Timeline {
    lines: Rc<RefCell<Vec<String>>>,
    open: Rc<RefCell<Vec<(usize, u64)>>>,
}

impl Observer for Timeline {
    fn wants(&self) -> Wants {
        Wants::ACTIVITIES | Wants::WAITS
    }

    fn begin(&self, activity: &Activity<'_>) {
        let name = match activity.body() {
            Body::Callback(phase) => match activity.kind() {
                Some(kind) => format!("{kind} in {phase}"),
                None => format!("callback in {phase}"),
            },
            Body::Poll(_) => activity.task().unwrap().name().unwrap_or("?").to_owned(),
            Body::MainFuture => "main".to_owned(),
            Body::Tick => "tick".to_owned(),
            _ => "microtask".to_owned(),
        };
        let late = activity.due().map(|due| activity.now() - due);
        let late = late.map_or(String::new(), |late| format!(" late by {late}"));
        let depth = self.open.borrow().len();
        let mut lines = self.lines.borrow_mut();
        self.open.borrow_mut().push((lines.len(), activity.now()));
        lines.push(format!("{}{name}{late}", "> ".repeat(depth)));
    }

    fn end(&self, activity: &Activity<'_>) {
        let (line, start) = self.open.borrow_mut().pop().unwrap();
        let took = (activity.now() - start) / 1_000_000;
        self.lines.borrow_mut()[line] += &format!(": {took} ms");
    }

    fn end_wait(&self, waited: &Waited) {
        let took = (waited.end - waited.start) / 1_000_000;
        self.lines.borrow_mut().push(format!("wait: {took} ms"));
    }
}

#[test]
fn a_library_can_write_a_timeline_of_its_own() {
    let timeline = Timeline::default();
    let builder = Builder::new().start_paused(true).observer(timeline.clone());
    let event_loop = builder.build().unwrap();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        event_loop.block_on(async {
            let worker = phaseloop::task::Builder::new().name("worker");
            let worker = worker.spawn(async {
                sleep(ms(5)).await;
                busy(ms(3));
            });
            worker.await.unwrap();
            next_tick(|| busy(ms(2)));
            sleep(ms(1)).await;
            panic!("boom");
        })
    }));
    assert!(outcome.is_err());
    let lines = timeline.lines.borrow();
    let expected = [
        "main: 0 ms",
        "worker: 0 ms",
        "wait: 5 ms",
        "sleep in timers late by 0: 0 ms",
        "worker: 3 ms",
        "main: 0 ms",
        "tick: 2 ms",
        "sleep in timers late by 1000000: 0 ms",
        "main: 0 ms",
    ];
    assert_eq!(*lines, expected, "{lines:#?}");
    assert!(timeline.open.borrow().is_empty(), "each begin has its end");
}

/// Observers nest: who begins last ends first. One that wants nothing of it is not called.
#[test]
fn the_ends_reach_several_observers_in_reverse_order() {
    struct Named(&'static str, Wants, Rc<RefCell<Vec<String>>>);
    impl Observer for Named {
        fn wants(&self) -> Wants {
            self.1
        }

        fn begin_dispatch(&self, _: Phase) {
            self.2.borrow_mut().push(format!("{}(", self.0));
        }

        fn end_dispatch(&self, _: Phase) {
            self.2.borrow_mut().push(format!("){}", self.0));
        }
    }
    let log = Rc::new(RefCell::new(Vec::new()));
    let named = |name, wants| Named(name, wants, log.clone());
    let builder = Builder::new()
        .start_paused(true)
        .observer(named("a", Wants::ALL))
        .observer(named("b", Wants::NONE))
        .observer(named("c", Wants::DISPATCHES));
    let mut event_loop = builder.build().unwrap();
    drop(event_loop.handle().set_immediate(|| ()));
    finish(&mut event_loop);
    assert_eq!(log.borrow().join(" "), "a( c( )c )a");
}
