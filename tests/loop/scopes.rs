//! Scopes, whose tasks may borrow and end before the scope does, and cancellation tokens.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use phaseloop::task::{CancellationToken, scope, try_scope, yield_now};
use phaseloop::time::{now, sleep};
use phaseloop::{block_on, spawn};

use crate::util::panics::panic_of;
use crate::util::trace::ms;
use tokio_test::assert_pending;

/// Counts itself while it exists.
struct Alive<'a>(&'a Cell<u32>);

impl<'a> Alive<'a> {
    fn new(count: &'a Cell<u32>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

#[phaseloop::test(start_paused = true)]
async fn tasks_of_a_scope_borrow_run_at_the_same_time_and_are_joined() {
    let start = now();
    let log = RefCell::new(Vec::new());
    let output = scope(async |s| {
        for number in [3, 1, 2] {
            let log = &log;
            s.spawn(async move {
                sleep(ms(number)).await;
                log.borrow_mut().push(number);
            });
        }
        "done"
    })
    .await;
    assert_eq!((output, &*log.borrow()), ("done", &vec![1, 2, 3]));
    assert_eq!(now() - start, ms(3));
}

#[phaseloop::test]
async fn a_task_of_a_scope_spawns_others() {
    let count = Cell::new(0);
    scope(async |s| {
        s.spawn(async {
            yield_now().await;
            for _ in 0..3 {
                s.spawn(async {
                    yield_now().await;
                    count.set(count.get() + 1);
                });
            }
        });
    })
    .await;
    assert_eq!(count.get(), 3);
}

#[phaseloop::test]
async fn a_handle_returns_the_output_and_the_scope_waits_without_it() {
    let text = String::from("text");
    let length = scope(async |s| {
        let task = s.spawn(async {
            yield_now().await;
            text.len()
        });
        assert!(!task.is_finished());
        task.await.unwrap()
    })
    .await;
    assert_eq!(length, 4);
}

#[phaseloop::test(start_paused = true)]
async fn the_first_error_drops_the_other_tasks_and_the_body() {
    let alive = Cell::new(0);
    let result: Result<(), u8> = try_scope(async |s| {
        let _body = Alive::new(&alive);
        for (delay, number) in [(3, 3), (1, 1), (2, 2)] {
            let alive = Alive::new(&alive);
            s.try_spawn(async move {
                let _alive = alive;
                sleep(ms(delay)).await;
                Err::<(), _>(number)
            });
        }
        assert_eq!(alive.get(), 4);
        pending().await
    })
    .await;
    assert_eq!((result, alive.get()), (Err(1), 0));
}

#[phaseloop::test]
async fn an_error_of_the_body_drops_the_tasks() {
    let alive = Cell::new(0);
    let result: Result<(), &str> = try_scope(async |s| {
        let task = Alive::new(&alive);
        s.spawn(async move {
            let _task = task;
            pending::<()>().await;
        });
        yield_now().await;
        Err("no")
    })
    .await;
    assert_eq!((result, alive.get()), (Err("no"), 0));
}

#[phaseloop::test]
async fn a_dropped_scope_drops_its_tasks() {
    let alive = Cell::new(0);
    let mut running = Box::pin(scope(async |s| {
        for _ in 0..2 {
            let task = Alive::new(&alive);
            s.spawn(async move {
                let _task = task;
                pending::<()>().await;
            });
        }
    }));
    assert_pending!(tokio_test::task::spawn(running.as_mut()).poll());
    assert_eq!(alive.get(), 2);
    drop(running);
    assert_eq!(alive.get(), 0);
}

#[phaseloop::test]
async fn the_tasks_of_a_scope_are_dropped_in_the_order_they_were_spawned() {
    struct Noted<'a>(u32, &'a RefCell<Vec<u32>>);
    impl Drop for Noted<'_> {
        fn drop(&mut self) {
            self.1.borrow_mut().push(self.0);
            assert!(self.0 != 2, "the second task panics");
        }
    }
    let log = RefCell::new(Vec::new());
    let mut running = Box::pin(scope(async |s| {
        for number in 1..=4 {
            let noted = Noted(number, &log);
            s.spawn(async move {
                let _noted = noted;
                pending::<()>().await;
            });
        }
    }));
    assert_pending!(tokio_test::task::spawn(running.as_mut()).poll());
    let message = panic_of(|| drop(running));
    assert!(message.contains("the second task panics"), "{message}");
    assert_eq!(*log.borrow(), [1, 2, 3, 4]);
}

#[phaseloop::test]
async fn a_cancelled_scope_drops_its_tasks_and_refuses_others() {
    let alive = Cell::new(0);
    scope(async |s| {
        let task = Alive::new(&alive);
        let waiting = s.spawn(async move {
            let _task = task;
            pending::<()>().await;
        });
        yield_now().await;
        s.cancel();
        assert_eq!(alive.get(), 0);
        assert!(waiting.await.unwrap_err().is_cancelled());
        let refused = s.spawn(async { 1 });
        assert!(refused.await.unwrap_err().is_cancelled());
    })
    .await;
}

#[phaseloop::test]
async fn a_task_that_cancels_its_own_scope_runs_to_its_next_await() {
    let log = RefCell::new(Vec::new());
    scope(async |s| {
        s.spawn(async {
            s.cancel();
            log.borrow_mut().push("after cancel");
            yield_now().await;
            log.borrow_mut().push("not reached");
        });
        s.spawn(async { log.borrow_mut().push("dropped before its first poll") });
    })
    .await;
    assert_eq!(*log.borrow(), ["after cancel"]);
}

#[test]
fn a_panic_of_a_task_drops_the_others_and_leaves_the_scope() {
    let alive = Cell::new(0);
    let text = panic_of(|| {
        block_on(scope(async |s| {
            let task = Alive::new(&alive);
            s.spawn(async move {
                let _task = task;
                pending::<()>().await;
            });
            s.spawn(async {
                yield_now().await;
                panic!("a task of a scope");
            });
        }));
    });
    assert_eq!((text.as_str(), alive.get()), ("a task of a scope", 0));
}

/// The drop of a task may use its scope.
#[phaseloop::test]
async fn a_task_that_is_dropped_may_spawn_and_is_refused() {
    struct SpawnsOnDrop<F: FnMut()>(F);
    impl<F: FnMut()> Drop for SpawnsOnDrop<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }

    let refused = Cell::new(0);
    scope(async |s| {
        let refused = &refused;
        let spawns = SpawnsOnDrop(move || {
            let task = s.spawn(async {});
            refused.set(refused.get() + u32::from(task.is_finished()));
        });
        s.spawn(async move {
            let _spawns = spawns;
            pending::<()>().await;
        });
        yield_now().await;
        s.cancel();
    })
    .await;
    assert_eq!(refused.get(), 1);
}

#[phaseloop::test]
async fn a_cancellation_reaches_children_and_not_parents() {
    let grandparent = CancellationToken::new();
    let parent = grandparent.child_token();
    let (first, second) = (parent.child_token(), parent.child_token());
    first.cancel();
    assert!(first.is_cancelled() && !parent.is_cancelled() && !second.is_cancelled());
    drop(parent);
    grandparent.cancel();
    assert!(
        second.is_cancelled(),
        "also through a parent that was dropped"
    );
    assert!(grandparent.child_token().is_cancelled());
}

#[phaseloop::test]
async fn waiters_are_woken_in_order_parents_first() {
    let log = Rc::new(RefCell::new(Vec::new()));
    let parent = CancellationToken::new();
    let child = parent.child_token();
    for (token, name) in [(&child, "child"), (&parent, "first"), (&parent, "second")] {
        let (token, log) = (token.clone(), log.clone());
        spawn(async move {
            token.cancelled().await;
            log.borrow_mut().push(name);
        })
        .detach();
    }
    phaseloop::phase::check().await;
    parent.cancel();
    assert!(log.borrow().is_empty(), "they run in the microtask lane");
    phaseloop::phase::check().await;
    assert_eq!(*log.borrow(), ["first", "second", "child"]);
}

#[phaseloop::test(start_paused = true)]
async fn a_future_runs_until_it_completes_or_is_cancelled() {
    let token = CancellationToken::new();
    assert_eq!(token.run_until_cancelled(async { 1 }).await, Some(1));
    let guard = token.clone().drop_guard();
    spawn(async move {
        sleep(ms(5)).await;
        drop(guard);
    })
    .detach();
    let start = now();
    let hour = sleep(Duration::from_secs(3600));
    assert_eq!(token.run_until_cancelled(hour).await, None);
    assert_eq!(now() - start, ms(5));
    assert_eq!(
        token.run_until_cancelled(async { 1 }).await,
        None,
        "cancelled before"
    );
    let disarmed = CancellationToken::new().drop_guard().disarm();
    assert!(!disarmed.is_cancelled());
}

#[test]
fn a_long_chain_of_tokens_is_cancelled_and_dropped_without_recursion() {
    let root = CancellationToken::new();
    let mut last = root.clone();
    for _ in 0..200_000 {
        last = last.child_token();
    }
    root.cancel();
    assert!(last.is_cancelled());
    drop((root, last));
}

#[test]
fn a_waker_that_panics_keeps_no_waiter_of_a_token_from_its_wake() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            resume_unwind(Box::new("a waker"));
        }
    }
    block_on(async {
        let token = CancellationToken::new();
        let panics = Waker::from(Arc::new(Panics));
        let mut first = Box::pin(token.cancelled());
        assert_pending!(first.as_mut().poll(&mut Context::from_waker(&panics)));
        let child = token.child_token();
        let waiters =
            [token.clone(), child].map(|token| spawn(async move { token.cancelled().await }));
        yield_now().await;
        let payload = catch_unwind(AssertUnwindSafe(|| token.cancel())).unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"a waker"));
        yield_now().await;
        assert!(waiters.iter().all(|waiter| waiter.is_finished()));
    });
}
