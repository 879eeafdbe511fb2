//! Every interleaving of a task's thread and its wakers, up to a bound on preemptions.
//!
//! `RUSTFLAGS="--cfg phaseloop_loom" LOOM_MAX_PREEMPTIONS=3 cargo test --release --lib loom`

use std::future::{Future, poll_fn, ready};
use std::sync::atomic::AtomicUsize as Count;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use super::{Metadata, Outcome, Output, Payload, Runnable, TaskRef, WakerTable, hold, spawn_local};
use crate::sys::thread::{ThreadToken, token};

/// What the threads of a model share. The lock is not loom's: no order between the threads comes from it, so all there is
/// comes from the state of the task. Nothing of loom's is touched under it, so it is never contended.
struct World {
    queue: Mutex<Queue>,
    /// Touched before each use of the queue: tells loom that it matters who comes first.
    turn: AtomicUsize,
    freed: Count,
    dropped: Count,
}

#[derive(Default)]
struct Queue {
    items: Vec<Runnable<Meta>>,
    /// Whether a woken task is refused, and dropped where it was woken.
    closed: bool,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            queue: Mutex::default(),
            turn: AtomicUsize::new(0),
            freed: Count::new(0),
            dropped: Count::new(0),
        })
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.turn.fetch_add(1, Ordering::Relaxed);
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pop(&self) -> Option<Runnable<Meta>> {
        self.queue().items.pop()
    }

    /// Everything happened once: the future is gone, and so is the task.
    fn assert_over(&self) {
        assert!(self.pop().is_none(), "a runnable is left");
        assert_eq!(self.dropped.load(Ordering::Relaxed), 1, "drops");
        assert_eq!(self.freed.load(Ordering::Relaxed), 1, "frees");
    }
}

struct Meta {
    world: Arc<World>,
    /// Read by who uses the task, written when it is freed: loom objects unless the one happens before the other.
    used: UnsafeCell<()>,
}

// SAFETY: loom checks every access to the cell.
unsafe impl Sync for Meta {}

impl Meta {
    fn touch(&self) {
        self.used.with(|_| ());
    }
}

impl Metadata for Meta {
    fn waker_table() -> &'static WakerTable<Self> {
        static TABLE: WakerTable<Meta> = WakerTable::new();
        &TABLE
    }

    fn schedule(runnable: Runnable<Self>) {
        runnable.metadata().touch();
        let world = runnable.metadata().world.clone();
        let mut queue = world.queue();
        if queue.closed {
            drop(queue);
            drop(runnable);
        } else {
            assert!(queue.items.is_empty(), "two runnables of one task");
            queue.items.push(runnable);
        }
    }

    fn unseen(&self, payload: Payload) {
        std::panic::resume_unwind(payload);
    }
}

impl Drop for Meta {
    fn drop(&mut self) {
        self.used.with_mut(|_| ());
        self.world.freed.fetch_add(1, Ordering::Relaxed);
    }
}

/// Says that the future was dropped, at home.
struct Guard {
    world: Arc<World>,
    home: ThreadToken,
}

impl Drop for Guard {
    fn drop(&mut self) {
        assert_eq!(self.home, token());
        self.world.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// A task, polled once so that a waker of it is there.
fn spawn<F>(world: &Arc<World>, future: F) -> (TaskRef<Meta>, Output<F::Output, Meta>, Waker)
where
    F: Future + 'static,
{
    let guard = Guard {
        world: world.clone(),
        home: token(),
    };
    let mut future = Box::pin(future);
    let given = Arc::new(Mutex::new(None));
    let place = given.clone();
    let meta = Meta {
        world: world.clone(),
        used: UnsafeCell::new(()),
    };
    let (runnable, task, output) = spawn_local(
        meta,
        poll_fn(move |cx| {
            let _ = &guard;
            let mut place = place.lock().unwrap();
            if place.is_none() {
                *place = Some(cx.waker().clone());
                return Poll::Pending;
            }
            drop(place);
            future.as_mut().poll(cx)
        }),
    );
    assert_eq!(runnable.run(), Outcome::Pending);
    // Something has to stay, so that the future knows that it was polled.
    let waker = given.lock().unwrap().replace(Waker::noop().clone());
    (task, output, waker.unwrap())
}

/// What a task waits for.
type Events = loom::sync::Arc<[AtomicUsize; 2]>;

/// A task that ends when it has seen both events.
fn spawn_for_both(world: &Arc<World>) -> (Events, TaskRef<Meta>, Output<(), Meta>, Waker) {
    let events = Events::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let seen = events.clone();
    let (task, output, waker) = spawn(
        world,
        poll_fn(move |_| {
            let all = seen.iter().all(|event| event.load(Ordering::Relaxed) == 1);
            if all { Poll::Ready(()) } else { Poll::Pending }
        }),
    );
    (events, task, output, waker)
}

/// Runs what the wakes have queued in the end; the task has seen both events then.
fn assert_both_seen(world: &World, task: TaskRef<Meta>, mut output: Output<(), Meta>) {
    if let Some(runnable) = world.pop() {
        runnable.run();
    }
    assert!(output.is_finished(), "a wake was lost");
    let cx = std::task::Context::from_waker(Waker::noop());
    assert!(matches!(output.poll(&cx), Poll::Ready(Some(Ok(())))));
    drop((task, output));
    world.assert_over();
}

/// What was done before a wake is seen by a poll after it, whichever wake has queued the task.
#[test]
fn loom_no_wake_is_lost_and_one_runnable_is_enough() {
    loom::model(|| {
        let world = World::new();
        let (events, task, output, waker) = spawn_for_both(&world);
        let wakers: Vec<_> = [waker.clone(), waker]
            .into_iter()
            .enumerate()
            .map(|(index, waker)| {
                let events = events.clone();
                thread::spawn(move || {
                    events[index].store(1, Ordering::Relaxed);
                    waker.wake();
                })
            })
            .collect();
        for _ in 0..2 {
            if let Some(runnable) = world.pop() {
                runnable.run();
            }
        }
        for waker in wakers {
            waker.join().unwrap();
        }
        assert_both_seen(&world, task, output);
    });
}

/// The home thread polls a task that it holds while another one wakes it: nothing is lost, and whoever comes last ends it.
#[test]
fn loom_a_held_task_is_woken_elsewhere() {
    loom::model(|| {
        let world = World::new();
        let (events, task, output, waker) = spawn_for_both(&world);
        let remote = {
            let (events, waker) = (events.clone(), waker.clone());
            thread::spawn(move || {
                events[0].store(1, Ordering::Relaxed);
                waker.wake();
            })
        };
        events[1].store(1, Ordering::Relaxed);
        if let Some(held) = hold::<Meta>(&waker, |_| true) {
            held.run();
        }
        drop(waker);
        remote.join().unwrap();
        assert_both_seen(&world, task, output);
    });
}

/// A task that ends while it is woken: either the wake comes too late, or its runnable lets go of the task.
#[test]
fn loom_a_wake_races_with_the_end() {
    for is_cancelled in [false, true] {
        loom::model(move || {
            let world = World::new();
            let (task, output, waker) = spawn(&world, ready(()));
            if !is_cancelled {
                waker.wake_by_ref();
            }
            let waking = thread::spawn(move || waker.wake());
            if is_cancelled {
                task.cancel();
            } else {
                assert_eq!(world.pop().unwrap().run(), Outcome::Closed);
            }
            task.metadata().touch();
            drop((task, output));
            // As the end of a loop does.
            let left = {
                let mut queue = world.queue();
                queue.closed = true;
                std::mem::take(&mut queue.items)
            };
            drop(left);
            waking.join().unwrap();
            world.assert_over();
        });
    }
}

/// A runnable that is dropped away from home while home closes the task.
#[test]
fn loom_a_refused_wake_races_with_the_end() {
    loom::model(|| {
        let world = World::new();
        let (task, output, waker) = spawn(&world, ready(()));
        world.queue().closed = true;
        let threads: Vec<_> = [waker.clone(), waker]
            .into_iter()
            .map(|waker| thread::spawn(move || waker.wake()))
            .collect();
        task.cancel();
        drop((task, output));
        for waking in threads {
            waking.join().unwrap();
        }
        world.assert_over();
    });
}

/// All references go at the same time; whoever is last frees.
#[test]
fn loom_the_last_reference_frees_after_all_others() {
    loom::model(|| {
        let world = World::new();
        let (task, output, waker) = spawn(&world, ready(()));
        task.cancel();
        let clone = waker.clone();
        let threads = [
            thread::spawn(move || drop(clone)),
            thread::spawn(move || {
                let clone = waker.clone();
                waker.wake();
                drop(clone);
            }),
        ];
        task.metadata().touch();
        drop(task);
        drop(output);
        for thread in threads {
            thread.join().unwrap();
        }
        world.assert_over();
    });
}
