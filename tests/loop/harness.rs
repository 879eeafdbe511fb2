//! A loop that others drive: harnesses that run one future after another by `&self`, and libraries
//! that take a spawner of the crate `futures`.

use crate::util::panics::panic_of;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use futures::task::{LocalSpawn, LocalSpawnExt, Spawn, SpawnExt};
use phaseloop::time::sleep;
use phaseloop::{EventLoop, LoopHandle, RunMode, block_on, phase, spawn};

/// The shape of criterion's `AsyncExecutor`.
trait AsyncExecutor {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T;
}

struct OnLoop(EventLoop);

impl AsyncExecutor for OnLoop {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.0.block_on(future)
    }
}

/// The shape of a bencher: it owns the executor, and calls a routine many times.
struct Bencher<A> {
    runner: A,
}

impl<A: AsyncExecutor> Bencher<A> {
    fn iter<O, F: Future<Output = O>>(&self, mut routine: impl FnMut() -> F) -> Vec<O> {
        let outputs = (0..100).map(|_| self.runner.block_on(routine()));
        outputs.collect()
    }
}

#[test]
fn a_harness_runs_futures_one_after_another_on_one_loop() {
    let bencher = Bencher {
        runner: OnLoop(EventLoop::new().unwrap()),
    };
    let count = Rc::new(Cell::new(0));
    let outputs = bencher.iter(|| async {
        // A task that a routine leaves behind goes on in the next one.
        let count = count.clone();
        let add = move || count.set(count.get() + 1);
        spawn(async move {
            phase::check().await;
            add();
        })
        .detach();
        sleep(Duration::ZERO).await;
        7
    });
    assert_eq!(outputs, [7; 100]);
    bencher.runner.block_on(phase::check());
    assert_eq!(count.get(), 100);
}

#[test]
fn a_loop_that_runs_is_not_run_again_through_a_shared_reference() {
    let event_loop = EventLoop::new().unwrap();
    let text = panic_of(|| event_loop.block_on(async { event_loop.block_on(async {}) }));
    assert!(
        text.starts_with("cannot run an event loop from inside one"),
        "{text}"
    );
    // In a callback, too.
    let shared = Rc::new(event_loop);
    let inner = shared.clone();
    shared
        .handle()
        .set_immediate(move || inner.block_on(async {}));
    let text = panic_of(|| shared.block_on(phase::check()));
    assert!(
        text.starts_with("cannot run an event loop from inside one"),
        "{text}"
    );
    shared.block_on(phase::check());
}

#[test]
fn a_library_spawns_through_a_remote_from_another_thread() {
    block_on(async {
        let remote = LoopHandle::current().remote();
        let thread = thread::spawn(move || {
            assert!(remote.status().is_ok());
            // A library that takes any spawner.
            let spawner: &dyn Spawn = &remote;
            spawner
                .spawn_with_handle(async { thread::current().id() })
                .unwrap()
        });
        let handle = thread.join().unwrap();
        assert_eq!(handle.await, thread::current().id(), "it ran here");
    });
}

#[test]
fn a_library_spawns_on_the_owner_thread_what_need_not_be_send() {
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let log = Rc::new(RefCell::new(Vec::new()));
    let (first, second) = (log.clone(), log.clone());
    let spawner: &dyn LocalSpawn = &handle;
    spawner
        .spawn_local(async move { first.borrow_mut().push("local") })
        .unwrap();
    // The method of the type comes before that of the trait.
    handle.spawn(async {}).detach();
    Spawn::spawn_obj(&handle, Box::pin(async {}).into()).unwrap();
    spawner
        .spawn_local(async move { second.borrow_mut().push("second") })
        .unwrap();
    assert_eq!(handle.tasks().len(), 4);
    event_loop.run(RunMode::Default).unwrap();
    assert_eq!(*log.borrow(), ["local", "second"]);
    assert!(handle.tasks().is_empty());
}

#[test]
fn a_spawner_of_a_loop_that_is_gone_returns_an_error_and_drops_the_future() {
    let event_loop = EventLoop::new().unwrap();
    let (handle, remote) = (event_loop.handle(), event_loop.remote());
    let held = std::sync::Arc::new(());
    // This one is in the inbox when the loop is dropped.
    let kept = held.clone();
    SpawnExt::spawn(&remote, async move { drop(kept) }).unwrap();
    drop(event_loop);
    let kept = held.clone();
    let error = SpawnExt::spawn(&remote, async move { drop(kept) }).unwrap_err();
    assert!(error.is_shutdown());
    let kept = held.clone();
    let error = handle.spawn_local(async move { drop(kept) }).unwrap_err();
    assert!(error.is_shutdown());
    assert!(remote.status().unwrap_err().is_shutdown());
    assert!(handle.status().unwrap_err().is_shutdown());
    assert!(handle.status_local().unwrap_err().is_shutdown());
    assert_eq!(std::sync::Arc::strong_count(&held), 1);
}
