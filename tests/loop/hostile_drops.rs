//! Values of the user whose drop panics, drops the loop, or uses what drops them. Each test runs in
//! a process of its own, since an abort, a deadlock or an endless loop would be that of all tests.

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use phaseloop::context::Variable;
use phaseloop::observe::Recorder;
use phaseloop::observe::{self, Observer};
use phaseloop::phase::check;
use phaseloop::task::scope;
use phaseloop::time::{Timer, sleep};
use phaseloop::{
    Builder, EventLoop, JoinHandle, LoopHandle, RunMode, UnhandledPanic, next_tick,
    queue_microtask, set_immediate, spawn,
};

use crate::util::child::in_child;

/// Panics when it is dropped, and counts it.
struct Bomb(Rc<Cell<u32>>);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
        // Without the hook, whose backtraces take long.
        resume_unwind(Box::new("a bomb"));
    }
}

static ONE: Variable<Bomb> = Variable::new();
static TWO: Variable<Bomb> = Variable::new();

/// Runs `body` in a process of its own, which has to succeed. Returns what it printed.
#[track_caller]
fn survives(test: &str, body: impl FnOnce()) -> Option<String> {
    let child = in_child(&[], test, body)?;
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {text}", output.status);
    Some(text)
}

fn policy(policy: UnhandledPanic) -> EventLoop {
    Builder::new().unhandled_panic(policy).build().unwrap()
}

fn panics<R>(f: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

#[test]
fn a_context_value_may_panic_when_the_loop_drops_its_task() {
    let test = "a_context_value_may_panic_when_the_loop_drops_its_task";
    let text = survives(test, || {
        let bombs = Rc::new(Cell::new(0));
        let event_loop = EventLoop::new().unwrap();
        let others = Rc::new(());
        event_loop.enter(|| {
            for _ in 0..2 {
                let other = others.clone();
                let both = || {
                    spawn(async move {
                        let _other = other;
                        pending::<()>().await;
                    })
                    .detach();
                };
                ONE.run(Bomb(bombs.clone()), || TWO.run(Bomb(bombs.clone()), both));
            }
        });
        drop(event_loop);
        assert_eq!(bombs.get(), 4);
        assert_eq!(Rc::strong_count(&others), 1);
    });
    if let Some(text) = text {
        assert_eq!(
            text.matches("a context variable's value").count(),
            2,
            "{text}"
        );
    }
}

#[test]
fn a_context_value_may_panic_when_its_task_ends_or_is_aborted() {
    survives(
        "a_context_value_may_panic_when_its_task_ends_or_is_aborted",
        || {
            let bombs = Rc::new(Cell::new(0));
            policy(UnhandledPanic::Ignore).block_on(async {
                let ends = ONE.run(Bomb(bombs.clone()), || spawn(async { 7 }));
                assert_eq!(ends.await.unwrap(), 7);
                assert_eq!(bombs.get(), 1);
                let waits = ONE.run(Bomb(bombs.clone()), || spawn(pending::<()>()));
                check().await;
                waits.abort();
                assert!(waits.await.unwrap_err().is_cancelled());
                assert_eq!(bombs.get(), 2);
            });
        },
    );
}

#[test]
fn a_value_that_a_callback_left_hurts_nothing_that_comes_next() {
    let test = "a_value_that_a_callback_left_hurts_nothing_that_comes_next";
    survives(test, || {
        let bombs = Rc::new(Cell::new(0));
        let enter = |bombs: &Rc<Cell<u32>>| {
            let bomb = Bomb(bombs.clone());
            move || ONE.enter_with(bomb)
        };
        policy(UnhandledPanic::Ignore).block_on(async {
            // A tick before a task: the first with which contexts are in use, then another one.
            for _ in 0..2 {
                let (enters, task) = (enter(&bombs), Rc::new(Cell::new(None)));
                let spawned = task.clone();
                set_immediate(move || {
                    next_tick(enters);
                    spawned.set(Some(spawn(async { 1 })));
                });
                check().await;
                check().await;
                assert_eq!(task.take().unwrap().await.unwrap(), 1);
                assert_eq!(bombs.replace(0), 1);
            }
            // A microtask before a task, and before another microtask.
            let called = Rc::new(Cell::new(0));
            let note = || {
                let called = called.clone();
                move || called.set(called.get() + 1)
            };
            queue_microtask(enter(&bombs));
            queue_microtask(note());
            queue_microtask(enter(&bombs));
            let task = spawn(async { 2 });
            assert_eq!(task.await.unwrap(), 2);
            // An immediate before another one, and before a sleep.
            set_immediate(enter(&bombs));
            set_immediate(note());
            set_immediate(enter(&bombs));
            sleep(Duration::from_millis(1)).await;
            check().await;
            assert_eq!((called.get(), bombs.get()), (2, 4));
            // The main future itself.
            ONE.enter_with(Bomb(bombs.clone()));
        });
        assert_eq!(bombs.get(), 5);
    });
}

#[test]
fn the_policy_decides_on_the_panic_of_a_context_value() {
    survives("the_policy_decides_on_the_panic_of_a_context_value", || {
        let bombs = Rc::new(Cell::new(0));
        let mut event_loop = policy(UnhandledPanic::Unwind);
        let inner = bombs.clone();
        event_loop.enter(|| {
            set_immediate(move || ONE.enter_with(Bomb(inner)));
            set_immediate(|| ());
        });
        assert!(panics(|| event_loop.run(RunMode::Default)));
        assert_eq!(bombs.get(), 1);
        assert_eq!(event_loop.block_on(async { 1 }), 1);
    });
}

#[test]
fn values_may_panic_while_a_panic_unwinds() {
    survives("values_may_panic_while_a_panic_unwinds", || {
        let bombs = Rc::new(Cell::new(0));
        let bomb = || Bomb(bombs.clone());
        let run = || ONE.run(bomb(), || TWO.run(bomb(), || panic_any("first")));
        let payload = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"first"));
        assert_eq!(bombs.get(), 2);
        // A scope whose future panics in its drop.
        let scope = ONE.scope(bomb(), {
            let inner = bomb();
            async move {
                let _inner = inner;
                pending::<()>().await;
            }
        });
        assert!(panics(|| drop(scope)));
        assert_eq!(bombs.get(), 4);
        // A value that stays until its thread ends.
        let thread = std::thread::spawn(|| ONE.enter_with(Bomb(Rc::default())));
        thread.join().unwrap();
    });
}

/// The drop of the second payload leads to a third panic, which no handle returns.
#[test]
fn a_second_panic_is_dropped_when_nothing_is_locked() {
    thread_local! {
        static LEFT: RefCell<Option<JoinHandle<()>>> = const { RefCell::new(None) };
    }
    struct Payload;
    impl Drop for Payload {
        fn drop(&mut self) {
            let left = LEFT.take();
            drop(left);
        }
    }
    survives("a_second_panic_is_dropped_when_nothing_is_locked", || {
        let event_loop = policy(UnhandledPanic::Unwind);
        let run = || {
            event_loop.block_on(async {
                let panicked = spawn(async { panic_any("third") });
                check().await;
                LEFT.set(Some(panicked));
                spawn(async { panic_any("first") }).detach();
                spawn(async { panic_any(Payload) }).detach();
                check().await;
                pending::<()>().await;
            });
        };
        let payload = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"first"));
        assert!(LEFT.take().is_none());
    });
}

/// An observer that drops its loop at the first wake.
struct DropsAtWake(Rc<RefCell<Option<EventLoop>>>);

impl Observer for DropsAtWake {
    fn woken(&self, _: &observe::Wake<'_>) {
        let event_loop = self.0.take();
        drop(event_loop);
    }
}

#[test]
fn an_observer_may_drop_the_loop_at_a_wake() {
    survives("an_observer_may_drop_the_loop_at_a_wake", || {
        let place = Rc::new(RefCell::new(None));
        let observer = DropsAtWake(place.clone());
        let mut event_loop = Builder::new().observer(observer).build().unwrap();
        let handle = event_loop.handle();
        let (waker, held) = (Rc::new(Cell::new(None::<Waker>)), Rc::new(()));
        let (slot, inner) = (waker.clone(), held.clone());
        let task = handle.spawn(poll_fn(move |cx| {
            let _held = &inner;
            slot.set(Some(cx.waker().clone()));
            Poll::<()>::Pending
        }));
        event_loop.run(RunMode::NoWait).unwrap();
        *place.borrow_mut() = Some(event_loop);
        handle.enter(|| waker.take().unwrap().wake());
        assert!(place.borrow().is_none() && task.is_finished());
        assert_eq!(Rc::strong_count(&held), 1, "the task was dropped");
    });
}

#[test]
fn a_listener_of_slow_periods_may_use_its_recorder_when_it_is_dropped() {
    struct UsesRecorder(Recorder, Rc<Cell<u32>>);
    impl Drop for UsesRecorder {
        fn drop(&mut self) {
            self.1.set(self.1.get() + 1);
            let _ = self.0.clone().on_slow(|_| ());
        }
    }
    let recorder = Recorder::new();
    let dropped = Rc::new(Cell::new(0));
    let uses = UsesRecorder(recorder.clone(), dropped.clone());
    let recorder = recorder.on_slow(move |_| {
        let _ = &uses;
    });
    let recorder = recorder.on_slow(|_| ());
    assert_eq!(dropped.get(), 1);

    // One that is replaced while it is called.
    let uses = UsesRecorder(recorder.clone(), dropped.clone());
    let slow = recorder.clone().slow(Duration::ZERO).on_slow(move |_| {
        let _ = uses.0.clone().on_slow(|_| ());
    });
    let event_loop = Builder::new().record(slow).build().unwrap();
    event_loop.block_on(async { check().await });
    assert_eq!(dropped.get(), 2);
}

/// A waker that notes its wake.
struct Noted(std::sync::atomic::AtomicBool);

impl Wake for Noted {
    fn wake(self: Arc<Self>) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn a_loop_is_dropped_to_the_end_although_everything_on_it_panics() {
    let test = "a_loop_is_dropped_to_the_end_although_everything_on_it_panics";
    survives(test, || {
        let bombs = Rc::new(Cell::new(0));
        let woken = Arc::new(Noted(false.into()));
        let fill = || {
            let event_loop = EventLoop::new().unwrap();
            let handle = event_loop.handle();
            let bomb = || {
                let bomb = Bomb(bombs.clone());
                move || {
                    let _bomb = &bomb;
                }
            };
            let timers = [(); 2].map(|()| {
                let (timer, call) = (Timer::new(&handle), bomb());
                let day = Duration::from_secs(86_400);
                timer.start(day, day, move |_| call()).unwrap();
                timer
            });
            event_loop.enter(|| {
                for _ in 0..2 {
                    next_tick(bomb());
                    queue_microtask(bomb());
                    set_immediate(bomb());
                    let call = bomb();
                    spawn(async move {
                        call();
                        pending::<()>().await;
                    })
                    .detach();
                }
            });
            // What waits for the loop from outside is woken at the end.
            let mut waiting = Box::pin(event_loop.enter(|| sleep(Duration::from_secs(86_400))));
            let waker = Waker::from(woken.clone());
            let mut cx = std::task::Context::from_waker(&waker);
            assert!(
                event_loop
                    .enter(|| waiting.as_mut().poll(&mut cx))
                    .is_pending()
            );
            (event_loop, timers, waiting)
        };
        let (event_loop, timers, waiting) = fill();
        assert!(panics(|| drop(event_loop)), "the first comes out");
        assert_eq!(bombs.replace(0), 10);
        assert!(woken.0.swap(false, std::sync::atomic::Ordering::Relaxed));
        drop((timers, waiting));

        // The panics of the drops while another panic unwinds.
        let (event_loop, timers, waiting) = fill();
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let _event_loop = event_loop;
            panic_any("first");
        }));
        assert_eq!(unwound.unwrap_err().downcast_ref(), Some(&"first"));
        assert_eq!(bombs.get(), 10);
        drop((timers, waiting));
    });
}

/// Queues a closure when it is dropped, which owns the next one of these and a handle to the loop.
struct QueuesAtDrop {
    handle: LoopHandle,
    left: u32,
    _held: Rc<()>,
}

impl Drop for QueuesAtDrop {
    fn drop(&mut self) {
        if self.left == 0 {
            return;
        }
        let next = Self {
            handle: self.handle.clone(),
            left: self.left - 1,
            _held: self._held.clone(),
        };
        let call = move || {
            let _next = &next;
            unreachable!("the loop is gone");
        };
        match self.left % 5 {
            0 => next_tick(call),
            1 => queue_microtask(call),
            2 => self.handle.next_tick(call),
            3 => self.handle.queue_microtask(call),
            _ => drop(set_immediate(call)),
        }
    }
}

#[test]
fn what_is_queued_while_the_loop_is_dropped_is_dropped_at_once() {
    let test = "what_is_queued_while_the_loop_is_dropped_is_dropped_at_once";
    survives(test, || {
        for left in 1..=12 {
            let mut event_loop = EventLoop::new().unwrap();
            let held = Rc::new(());
            let value = QueuesAtDrop {
                handle: event_loop.handle(),
                left,
                _held: held.clone(),
            };
            let task = event_loop.handle().spawn(async move {
                let _value = value;
                pending::<()>().await;
            });
            event_loop.run(RunMode::NoWait).unwrap();
            drop(event_loop);
            assert!(task.is_finished());
            assert_eq!(Rc::strong_count(&held), 1, "{left}: a closure is left");
        }
    });
}

/// What the lanes hold when the loop is dropped may queue in turn.
#[test]
fn what_a_queued_closure_queues_in_its_drop_is_dropped_at_once() {
    let test = "what_a_queued_closure_queues_in_its_drop_is_dropped_at_once";
    survives(test, || {
        for left in 1..=12 {
            let event_loop = EventLoop::new().unwrap();
            let handle = event_loop.handle();
            let held = Rc::new(());
            let value = || QueuesAtDrop {
                handle: handle.clone(),
                left,
                _held: held.clone(),
            };
            let (one, two, three) = (value(), value(), value());
            handle.next_tick(move || drop(one));
            handle.queue_microtask(move || drop(two));
            drop(handle.set_immediate(move || drop(three)));
            drop(event_loop);
            assert_eq!(Rc::strong_count(&held), 1, "{left}: a closure is left");
        }
    });
}

#[test]
fn the_tasks_of_a_scope_are_dropped_although_each_panics() {
    let test = "the_tasks_of_a_scope_are_dropped_although_each_panics";
    survives(test, || {
        for is_panicking in [false, true] {
            let bombs = Rc::new(Cell::new(0));
            let run = || {
                phaseloop::block_on(scope(async |s| {
                    for _ in 0..3 {
                        let bomb = Bomb(bombs.clone());
                        s.spawn(async move {
                            let _bomb = bomb;
                            pending::<()>().await;
                        });
                    }
                    check().await;
                    assert!(!is_panicking, "the body");
                    s.cancel();
                }));
            };
            assert!(panics(run));
            assert_eq!(bombs.get(), 3);
        }
    });
}
