//! Context variables: what follows a task, a callback and a future, and what does not.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use phaseloop::context::{Snapshot, Variable};
use phaseloop::phase::{Check, Phase};
use phaseloop::task::{JoinSet, scope, yield_microtask};
use phaseloop::time::{Timer, sleep};
use phaseloop::{
    Builder, EventLoop, Handle, LoopHandle, RunMode, block_on, next_tick, queue_microtask,
    set_immediate, spawn, spawn_blocking,
};
use tokio_test::assert_pending;

static NAME: Variable<&str> = Variable::new();
static OTHER: Variable<u32> = Variable::new();

/// The value of the variable, or `-`.
fn name() -> &'static str {
    NAME.get().map_or("-", |name| *name)
}

type Log = Rc<RefCell<Vec<String>>>;

/// Returns what notes the value of the variable under a word.
fn notes(log: &Log, word: &'static str) -> impl Fn() + Clone + 'static {
    let log = log.clone();
    move || log.borrow_mut().push(format!("{word} {}", name()))
}

// O1.
#[test]
fn run_sets_the_value_for_the_call_and_nests() {
    assert_eq!(name(), "-");
    let returned = NAME.run("a", || {
        assert_eq!(NAME.run("b", name), "b");
        assert_eq!(name(), "a");
        3
    });
    assert_eq!((returned, name()), (3, "-"));
}

// O1.
#[test]
fn a_panic_in_run_restores_the_value_before() {
    NAME.run("a", || {
        let panicked = catch_unwind(|| NAME.run("b", || panic!("inside")));
        assert!(panicked.is_err());
        assert_eq!(name(), "a");
        let panicked = catch_unwind(|| NAME.exit(|| panic!("inside")));
        assert!(panicked.is_err());
        assert_eq!(name(), "a");
    });
    assert_eq!(name(), "-");
}

// O2.
#[test]
fn exit_is_run_with_nothing() {
    NAME.run("a", || {
        OTHER.run(1, || {
            NAME.exit(|| {
                assert_eq!((name(), OTHER.get().as_deref()), ("-", Some(&1)));
                assert_eq!(NAME.run("c", name), "c");
                assert_eq!(name(), "-");
            });
            assert_eq!(name(), "a");
        });
    });
}

#[test]
fn variables_do_not_see_each_other() {
    static THIRD: Variable<&str> = Variable::new();
    NAME.run("a", || {
        assert_eq!(THIRD.get(), None);
        THIRD.run("t", || {
            assert_eq!((name(), *THIRD.get().unwrap()), ("a", "t"))
        });
    });
}

// O3, O4.
#[test]
fn queued_closures_run_with_the_frame_of_the_call_that_queued_them() {
    let log = Log::default();
    block_on(async {
        NAME.run("a", || {
            next_tick(notes(&log, "tick"));
            queue_microtask(notes(&log, "microtask"));
            set_immediate(notes(&log, "immediate"));
            LoopHandle::current().call_in(Phase::Closing, notes(&log, "closing"));
        });
        next_tick(notes(&log, "tick"));
        queue_microtask(notes(&log, "microtask"));
        set_immediate(notes(&log, "immediate"));
        phaseloop::phase::closing().await;
    });
    let expected = [
        // The main future is a microtask, so those come first.
        "microtask a",
        "microtask -",
        "tick a",
        "tick -",
        "immediate a",
        "immediate -",
        "closing a",
    ];
    assert_eq!(*log.borrow(), expected);
}

// O3.
#[test]
fn each_firing_of_a_timer_has_the_frame_of_its_start() {
    let mut event_loop = Builder::new().start_paused(true).build().unwrap();
    let (log, handle) = (Log::default(), event_loop.handle());
    let timer = Timer::new(&handle);
    let millisecond = Duration::from_millis(1);
    let (note, left) = (notes(&log, "timer"), Cell::new(3));
    NAME.run("a", || {
        timer.start(millisecond, millisecond, move |timer| {
            note();
            NAME.enter_with("entered");
            left.set(left.get() - 1);
            if left.get() == 0 {
                timer.stop();
            }
        })
    })
    .unwrap();
    NAME.run("b", || timer.unref());
    timer.ref_();
    event_loop.run(RunMode::Default).unwrap();
    assert_eq!(*log.borrow(), ["timer a"; 3]);
    assert_eq!(name(), "-");
}

// O3.
#[test]
fn hooks_and_closes_have_the_frame_of_their_registration() {
    let mut event_loop = EventLoop::new().unwrap();
    let (log, handle) = (Log::default(), event_loop.handle());
    let check = Check::new(&handle);
    let note = notes(&log, "check");
    NAME.run("start", || {
        check.start(move |check| {
            note();
            check.stop();
        })
    })
    .unwrap();
    handle.set_immediate(|| ());
    event_loop.run(RunMode::Default).unwrap();
    NAME.run("close", || check.close().then(notes(&log, "closed")));
    event_loop.run(RunMode::Default).unwrap();
    assert_eq!(*log.borrow(), ["check start", "closed close"]);
}

// O4.
#[test]
fn a_callback_leaves_no_frame_to_the_next_one() {
    let log = Log::default();
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    // No context is in use when these are queued.
    let (first, second) = (notes(&log, "first"), notes(&log, "second"));
    let (tick, microtask) = (notes(&log, "tick"), notes(&log, "microtask"));
    let queue = handle.clone();
    handle.set_immediate(move || {
        first();
        queue.next_tick(tick.clone());
        let enter = tick.clone();
        queue.next_tick(move || {
            NAME.enter_with("of the tick");
            enter();
        });
        queue.next_tick(tick);
        queue.queue_microtask(microtask);
        NAME.enter_with("entered");
        first();
    });
    handle.set_immediate(second);
    event_loop.run(RunMode::Default).unwrap();
    let expected = [
        "first -",
        "first entered",
        "tick -",
        "tick of the tick",
        "tick -",
        "microtask -",
        "second -",
    ];
    assert_eq!(*log.borrow(), expected);
    assert_eq!(name(), "-", "the run leaves nothing behind");
}

// O5.
#[test]
fn a_task_runs_with_the_frame_it_was_spawned_with() {
    block_on(async {
        let log = Log::default();
        let task = |word| {
            let note = notes(&log, word);
            async move {
                note();
                yield_microtask().await;
                note();
                sleep(Duration::from_millis(1)).await;
                note();
            }
        };
        let one = NAME.run("a", || spawn(task("one")));
        let two = spawn(task("two"));
        one.await.unwrap();
        two.await.unwrap();
        assert_eq!(name(), "-");
        let mut seen = log.borrow().clone();
        seen.sort();
        let expected = ["one a"; 3].into_iter().chain(["two -"; 3]);
        assert!(seen.iter().eq(expected.collect::<Vec<_>>()));
    });
}

// O5.
#[test]
fn who_wakes_a_task_does_not_change_its_frame() {
    block_on(async {
        let waker = Rc::new(RefCell::new(None::<Waker>));
        let slot = waker.clone();
        let task = NAME.run("spawner", || {
            spawn(async move {
                let mut polls = 0;
                poll_fn(|cx| {
                    polls += 1;
                    slot.replace(Some(cx.waker().clone()));
                    if polls == 3 {
                        Poll::Ready(())
                    } else {
                        Poll::Pending
                    }
                })
                .await;
                name()
            })
        });
        yield_microtask().await;
        NAME.run("waker", || waker.borrow().as_ref().unwrap().wake_by_ref());
        yield_microtask().await;
        let elsewhere = waker.take().unwrap();
        thread::spawn(move || elsewhere.wake()).join().unwrap();
        assert_eq!(task.await.unwrap(), "spawner");
    });
}

// O6.
#[test]
fn enter_with_lasts_over_the_awaits_of_a_task() {
    block_on(async {
        let task = spawn(async {
            // The first use of a context on this thread, in a poll that has begun without one.
            NAME.enter_with("own");
            yield_microtask().await;
            let before = name();
            sleep(Duration::from_millis(1)).await;
            (before, name())
        });
        let bystander = spawn(async {
            yield_microtask().await;
            name()
        });
        assert_eq!(task.await.unwrap(), ("own", "own"));
        assert_eq!(bystander.await.unwrap(), "-");
        assert_eq!(name(), "-");
    });
}

// O6.
#[test]
fn enter_with_lasts_over_the_awaits_of_the_main_future() {
    let inside = block_on(async {
        NAME.enter_with("main");
        yield_microtask().await;
        let task = spawn(async { name() });
        (name(), task.await.unwrap())
    });
    assert_eq!((inside, name()), (("main", "main"), "-"));
}

#[test]
fn the_main_future_has_the_frame_of_the_call_that_runs_the_loop() {
    let inside = NAME.run("outside", || {
        let inside = block_on(async {
            let first = name();
            yield_microtask().await;
            let task = spawn(async { name() });
            (first, name(), task.await.unwrap())
        });
        assert_eq!(name(), "outside");
        inside
    });
    assert_eq!(inside, ("outside", "outside", "outside"));
}

// O7.
#[test]
fn a_snapshot_is_the_frame_of_its_making() {
    let snapshot = NAME.run("a", || OTHER.run(1, Snapshot::new));
    NAME.run("b", || {
        snapshot.run(|| assert_eq!((name(), *OTHER.get().unwrap()), ("a", 1)));
        assert_eq!((name(), OTHER.get()), ("b", None));
        let mut bound = snapshot.clone().bind(|n: usize| n + name().len());
        assert_eq!(bound(1), 2);
        let panicked = catch_unwind(AssertUnwindSafe(|| snapshot.run(|| panic!("inside"))));
        assert!(panicked.is_err());
        assert_eq!(name(), "b");
    });
    let empty = Snapshot::new();
    NAME.run("c", || assert_eq!(empty.run(name), "-"));
}

#[test]
fn a_scope_sets_the_value_for_each_poll_of_its_future() {
    block_on(async {
        let inner = async {
            let first = name();
            yield_microtask().await;
            NAME.enter_with("entered");
            yield_microtask().await;
            (first, name())
        };
        let seen = NAME.scope("a", inner).await;
        assert_eq!((seen, name()), (("a", "entered"), "-"));
    });
}

/// Notes the variable when it is dropped.
struct NotesDrop(Rc<Cell<&'static str>>);

impl Drop for NotesDrop {
    fn drop(&mut self) {
        self.0.set(name());
    }
}

#[test]
fn a_scope_that_is_dropped_drops_its_future_with_the_value() {
    let seen = Rc::new(Cell::new(""));
    let guard = NotesDrop(seen.clone());
    {
        let mut scope = tokio_test::task::spawn(NAME.scope("a", async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        }));
        assert_pending!(scope.poll());
        assert_eq!(name(), "-");
    }
    assert_eq!((seen.get(), name()), ("a", "-"));
}

#[test]
fn a_panic_in_a_scope_restores_the_frame() {
    let mut scope = tokio_test::task::spawn(NAME.scope("a", async { panic!("inside") }));
    let polled = catch_unwind(AssertUnwindSafe(|| scope.poll()));
    assert!(polled.is_err());
    assert_eq!(name(), "-");
}

#[test]
fn a_task_that_ends_or_is_aborted_is_dropped_in_its_frame() {
    block_on(async {
        let [ended, aborted] = [(); 2].map(|()| Rc::new(Cell::new("")));
        let (one, two) = (NotesDrop(ended.clone()), NotesDrop(aborted.clone()));
        let first = NAME.run("a", || {
            spawn(async move {
                let _one = one;
                yield_microtask().await;
            })
        });
        let second = NAME.run("b", || {
            spawn(async move {
                let _two = two;
                std::future::pending::<()>().await;
            })
        });
        first.await.unwrap();
        yield_microtask().await;
        second.abort();
        assert!(second.await.is_err());
        assert_eq!((ended.get(), aborted.get()), ("a", "b"));
    });
}

#[test]
fn what_is_dropped_with_the_loop_is_dropped_in_an_empty_frame() {
    let seen = Rc::new(Cell::new(""));
    let guard = NotesDrop(seen.clone());
    let mut event_loop = EventLoop::new().unwrap();
    let task = NAME.run("task", || {
        event_loop.handle().spawn(async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        })
    });
    event_loop.run(RunMode::NoWait).unwrap();
    NAME.run("dropper", || {
        drop(event_loop);
        assert_eq!(name(), "dropper");
    });
    assert!(task.is_finished());
    assert_eq!(seen.get(), "-");
}

#[test]
fn tasks_of_sets_and_scopes_have_the_frame_of_their_spawn() {
    block_on(async {
        let mut set = JoinSet::new();
        NAME.run("a", || set.spawn(async { (1, name()) }));
        NAME.run("b", || set.spawn(async { (2, name()) }));
        let mut seen = Vec::new();
        while let Some(joined) = set.join_next().await {
            seen.push(joined.unwrap());
        }
        seen.sort_unstable();
        assert_eq!(seen, [(1, "a"), (2, "b")]);
        let log = RefCell::new(Vec::new());
        NAME.scope(
            "outer",
            scope(async |s| {
                for word in ["a", "b"] {
                    let log = &log;
                    NAME.run(word, || {
                        s.spawn(async move {
                            yield_microtask().await;
                            log.borrow_mut().push(name());
                        })
                    });
                }
                yield_microtask().await;
                log.borrow_mut().push(name());
            }),
        )
        .await;
        let mut seen = log.into_inner();
        seen.sort_unstable();
        assert_eq!(seen, ["a", "b", "outer"]);
    });
}

#[test]
fn the_result_of_blocking_work_arrives_in_the_frame_of_its_awaiter() {
    block_on(async {
        let task = NAME.run("a", || {
            spawn(async {
                let inside = spawn_blocking(name).await.unwrap();
                (inside, name())
            })
        });
        assert_eq!(task.await.unwrap(), ("-", "a"));
    });
}

#[test]
fn what_a_remote_sends_begins_with_an_empty_frame() {
    block_on(async {
        let remote = LoopHandle::current().remote();
        let seen = NAME.run("a", || remote.spawn(|| async { name() }));
        assert_eq!(seen.unwrap().await.unwrap(), "-");
    });
}

#[test]
fn two_loops_of_a_thread_share_the_current_frame() {
    let mut one = EventLoop::new().unwrap();
    let mut two = EventLoop::new().unwrap();
    let log = Log::default();
    NAME.run("a", || {
        one.handle().next_tick(notes(&log, "one"));
        _ = two.handle().set_immediate(notes(&log, "two"));
    });
    one.handle().next_tick(notes(&log, "one"));
    one.run(RunMode::Default).unwrap();
    two.run(RunMode::Default).unwrap();
    assert_eq!(*log.borrow(), ["one a", "one -", "two a"]);
}

#[test]
fn values_are_dropped_when_nothing_carries_them() {
    static KEPT: Variable<Rc<()>> = Variable::new();
    let value = Rc::new(());
    block_on(async {
        KEPT.run(value.clone(), || {
            next_tick(|| ());
            set_immediate(|| ());
            spawn(yield_microtask()).detach();
        });
        assert!(Rc::strong_count(&value) > 1);
        phaseloop::phase::check().await;
        yield_microtask().await;
        phaseloop::phase::check().await;
        assert_eq!(Rc::strong_count(&value), 1);
    });
}

#[test]
fn a_panic_that_leaves_the_run_leaves_no_frame() {
    let mut event_loop = EventLoop::new().unwrap();
    NAME.run("a", || {
        _ = event_loop.handle().set_immediate(|| panic!("inside"));
    });
    let ran = catch_unwind(AssertUnwindSafe(|| event_loop.run(RunMode::Default)));
    assert!(ran.is_err());
    assert_eq!(name(), "-");
    let seen = Rc::new(Cell::new(""));
    let inner = seen.clone();
    event_loop.handle().set_immediate(move || inner.set(name()));
    event_loop.run(RunMode::Default).unwrap();
    assert_eq!(seen.get(), "-");
}
