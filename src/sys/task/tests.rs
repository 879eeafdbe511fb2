//! The cell by itself: a queue in place of a loop, one thread unless a test says otherwise.

mod held;
mod panics;
mod reentrancy;
mod reference;

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn, ready};
use std::panic::panic_any;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use super::{Metadata, Outcome, Output, Payload, Runnable, TaskRef, WakerTable, spawn_local};
use crate::sys::thread::{ThreadToken, token};

/// Where the tasks of a test go, and what becomes of them.
#[derive(Default)]
struct World {
    queue: Mutex<Vec<Runnable<Meta>>>,
    /// The texts of the panics that nobody saw.
    unseen: Mutex<Vec<String>>,
    /// Whether a report panics too.
    unseen_panics: AtomicBool,
    /// Whether a woken task is dropped on the spot instead of queued.
    refuses: AtomicBool,
    spawned: AtomicUsize,
    freed: AtomicUsize,
}

struct Meta(Arc<World>);

impl Metadata for Meta {
    fn waker_table() -> &'static WakerTable<Self> {
        static TABLE: WakerTable<Meta> = WakerTable::new();
        &TABLE
    }

    fn schedule(runnable: Runnable<Self>) {
        let world = runnable.metadata().0.clone();
        if world.refuses.load(Ordering::Relaxed) {
            drop(runnable);
        } else {
            world.queue.lock().unwrap().push(runnable);
        }
    }

    fn unseen(&self, payload: Payload) {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.unwrap_or("something").to_owned();
        self.0.unseen.lock().unwrap().push(text);
        if self.0.unseen_panics.load(Ordering::Relaxed) {
            panic_any("a report");
        }
    }
}

impl Drop for Meta {
    fn drop(&mut self) {
        self.0.freed.fetch_add(1, Ordering::Relaxed);
    }
}

type Pair<T> = (TaskRef<Meta>, Output<T, Meta>);

impl World {
    fn new() -> Arc<Self> {
        Arc::default()
    }

    fn spawn<F: Future + 'static>(self: &Arc<Self>, future: F) -> Pair<F::Output> {
        self.spawned.fetch_add(1, Ordering::Relaxed);
        let (runnable, task, output) = spawn_local(Meta(self.clone()), future);
        self.queue.lock().unwrap().push(runnable);
        (task, output)
    }

    fn queued(&self) -> usize {
        self.queue.lock().unwrap().len()
    }

    fn pop(&self) -> Runnable<Meta> {
        self.queue.lock().unwrap().remove(0)
    }

    /// Runs the one task that is queued.
    #[track_caller]
    fn run(&self) -> Outcome {
        assert_eq!(self.queued(), 1);
        self.pop().run()
    }

    fn freed(&self) -> usize {
        self.freed.load(Ordering::Relaxed)
    }

    /// Every task is gone to the last byte, and these panics were reported.
    #[track_caller]
    fn ends_with(&self, unseen: &[&str]) {
        assert_eq!(self.queued(), 0, "a runnable is left");
        let spawned = self.spawned.load(Ordering::Relaxed);
        assert_eq!(self.freed(), spawned, "a task was not freed, or twice");
        assert_eq!(*self.unseen.lock().unwrap(), unseen);
    }
}

/// Counts its drops, all of which have to be at home.
struct Guard {
    home: ThreadToken,
    drops: Rc<Cell<usize>>,
}

fn guard() -> (Guard, Rc<Cell<usize>>) {
    let drops = Rc::<Cell<usize>>::default();
    let guard = Guard {
        home: token(),
        drops: drops.clone(),
    };
    (guard, drops)
}

impl Drop for Guard {
    fn drop(&mut self) {
        assert_eq!(self.home, token(), "dropped away from home");
        self.drops.set(self.drops.get() + 1);
    }
}

struct PanicsWhenDropped(&'static str);

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic_any(self.0);
    }
}

/// Pending for ever, with something to drop.
fn holding<T: 'static>(value: T) -> impl Future<Output = ()> {
    poll_fn(move |_| {
        let _ = &value;
        Poll::Pending
    })
}

/// Stores a waker of its own at every poll, for ever.
fn giving(waker: &Rc<RefCell<Option<Waker>>>) -> impl Future<Output = ()> + use<> {
    let place = waker.clone();
    poll_fn(move |cx| {
        place.replace(Some(cx.waker().clone()));
        Poll::Pending
    })
}

/// A waker that counts its wakes.
#[derive(Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn counter() -> (Arc<Counter>, Waker) {
    let counter = Arc::<Counter>::default();
    (counter.clone(), counter.into())
}

/// The output, if it is there.
fn poll<T>(output: &mut Output<T, Meta>) -> Poll<Option<Result<T, Payload>>> {
    output.poll(&Context::from_waker(Waker::noop()))
}

#[track_caller]
fn returned<T>(output: &mut Output<T, Meta>) -> T {
    match poll(output) {
        Poll::Ready(Some(Ok(value))) => value,
        Poll::Ready(Some(Err(_))) => panic!("the task panicked"),
        Poll::Ready(None) => panic!("the task was cancelled"),
        Poll::Pending => panic!("the task is not over"),
    }
}

#[track_caller]
fn panicked<T>(output: &mut Output<T, Meta>) -> &'static str {
    match poll(output) {
        Poll::Ready(Some(Err(payload))) => payload.downcast_ref::<&str>().copied().unwrap(),
        _ => panic!("the task did not panic"),
    }
}

#[track_caller]
fn assert_cancelled<T>(output: &mut Output<T, Meta>) {
    assert!(matches!(poll(output), Poll::Ready(None)));
}

#[test]
fn the_output_is_there_once_the_task_has_run() {
    let world = World::new();
    let (task, mut output) = world.spawn(async { 7 });
    assert!(poll(&mut output).is_pending());
    assert!(!output.is_finished());
    assert_eq!(world.run(), Outcome::Closed);
    assert!(output.is_finished());
    assert_eq!(returned(&mut output), 7);
    assert_cancelled(&mut output);
    drop((task, output));
    world.ends_with(&[]);
}

#[test]
fn only_a_runnable_leaves_the_thread() {
    trait NotIf<Marker> {
        fn holds() {}
    }
    impl<T: ?Sized> NotIf<()> for T {}
    struct IsSend;
    impl<T: ?Sized + Send> NotIf<IsSend> for T {}
    struct IsSync;
    impl<T: ?Sized + Sync> NotIf<IsSync> for T {}
    fn is_send<T: Send>() {}

    // Ambiguous, and so no program, for a type that is `Send` or `Sync`.
    <TaskRef<Meta> as NotIf<_>>::holds();
    <Output<(), Meta> as NotIf<_>>::holds();
    is_send::<Runnable<Meta>>();
}

#[test]
fn a_wake_during_the_poll_queues_the_task_once_more() {
    let world = World::new();
    let mut polls = 0;
    let (_, mut output) = world.spawn(poll_fn(move |cx| {
        polls += 1;
        cx.waker().wake_by_ref();
        let copy = cx.waker().clone();
        copy.wake();
        if polls == 3 {
            Poll::Ready(polls)
        } else {
            Poll::Pending
        }
    }));
    assert_eq!(world.run(), Outcome::Pending);
    assert_eq!(world.run(), Outcome::Pending);
    assert_eq!(world.run(), Outcome::Closed);
    assert_eq!(world.run(), Outcome::Pending, "the last wake came too late");
    assert_eq!(returned(&mut output), 3);
    drop(output);
    world.ends_with(&[]);
}

#[test]
fn wakes_coalesce_and_one_after_the_end_is_lost() {
    let world = World::new();
    let place = Rc::default();
    let (task, output) = world.spawn(giving(&place));
    let polled = || place.take().unwrap();
    world.run();
    let waker = polled();
    assert_eq!(world.queued(), 0);
    waker.wake_by_ref();
    let copy = waker.clone();
    copy.wake();
    let other = waker.clone();
    thread::spawn(move || other.wake()).join().unwrap();
    assert_eq!(world.run(), Outcome::Pending);
    waker.wake_by_ref();
    assert_eq!(world.run(), Outcome::Pending);
    drop(polled());
    task.cancel();
    waker.wake_by_ref();
    assert_eq!(world.queued(), 0);
    drop((task, output));
    waker.wake();
    world.ends_with(&[]);
}

#[test]
fn an_aborted_task_is_dropped_in_its_turn() {
    let world = World::new();
    let (guard, drops) = guard();
    let (task, mut output) = world.spawn(holding(guard));
    world.run();
    task.abort();
    task.clone().abort();
    assert_eq!(drops.get(), 0);
    assert!(poll(&mut output).is_pending());
    assert_eq!(world.run(), Outcome::Closed);
    assert_eq!(drops.get(), 1);
    assert_cancelled(&mut output);
    task.abort();
    drop((task, output));
    world.ends_with(&[]);
}

#[test]
fn a_task_that_aborts_itself_may_still_return() {
    let world = World::new();
    for (ends, outcome) in [(true, Outcome::Closed), (false, Outcome::Pending)] {
        let own = Rc::<RefCell<Option<TaskRef<Meta>>>>::default();
        let inner = own.clone();
        let (task, mut output) = world.spawn(poll_fn(move |_| {
            let task = inner.take().unwrap();
            task.abort();
            task.cancel();
            if ends { Poll::Ready(3) } else { Poll::Pending }
        }));
        own.replace(Some(task));
        assert_eq!(world.run(), outcome);
        assert_ne!(world.run(), outcome);
        if ends {
            assert_eq!(returned(&mut output), 3);
        } else {
            assert_cancelled(&mut output);
        }
    }
    world.ends_with(&[]);
}

#[test]
fn a_cancelled_task_is_dropped_at_once() {
    let world = World::new();
    let (guard, drops) = guard();
    let (task, mut output) = world.spawn(holding(guard));
    let (wakes, waker) = counter();
    assert!(output.poll(&Context::from_waker(&waker)).is_pending());
    task.cancel();
    assert_eq!((drops.get(), wakes.0.load(Ordering::Relaxed)), (1, 1));
    task.cancel();
    assert_cancelled(&mut output);
    assert_eq!(world.run(), Outcome::Pending, "nothing is left to run");
    drop((task, output));
    world.ends_with(&[]);
}

#[test]
fn a_runnable_dropped_at_home_cancels() {
    let world = World::new();
    let (guard, drops) = guard();
    let (task, mut output) = world.spawn(holding(guard));
    drop(world.pop());
    assert_eq!(drops.get(), 1);
    assert_cancelled(&mut output);
    drop((task, output));
    world.ends_with(&[]);
}

#[test]
fn away_from_home_a_runnable_is_a_lost_wake() {
    let world = World::new();
    let ways: [fn(Runnable<Meta>); 2] = [drop, |runnable| {
        assert_eq!(runnable.run(), Outcome::Pending);
    }];
    for way in ways {
        let place = Rc::default();
        let (kept, drops) = guard();
        let inner = giving(&place);
        let (task, output) = world.spawn(async move {
            let _kept = kept;
            inner.await;
        });
        world.run();
        for _ in 0..2 {
            place.take().unwrap().wake();
            let runnable = world.pop();
            thread::spawn(move || way(runnable)).join().unwrap();
            assert!(!output.is_finished());
            task.abort();
            place.replace(Some(Waker::noop().clone()));
        }
        assert_eq!((drops.get(), world.queued()), (0, 0));
        task.cancel();
        assert_eq!(drops.get(), 1);
    }
    world.ends_with(&[]);
}

#[test]
fn a_runnable_of_a_closed_task_lets_go_of_it_anywhere() {
    let world = World::new();
    let (guard, drops) = guard();
    let (task, output) = world.spawn(holding(guard));
    task.cancel();
    drop((task, output));
    assert_eq!((drops.get(), world.freed()), (1, 0));
    let runnable = world.pop();
    thread::spawn(move || drop(runnable)).join().unwrap();
    world.ends_with(&[]);
}

#[test]
fn the_last_waker_frees_the_task_on_any_thread() {
    let world = World::new();
    let (guard, drops) = guard();
    let place = Rc::<RefCell<Option<Waker>>>::default();
    let inner = place.clone();
    let mut guard = Some(guard);
    let (task, output) = world.spawn(poll_fn(move |cx| {
        inner.replace(Some(cx.waker().clone()));
        Poll::Ready(guard.take())
    }));
    drop(task);
    world.run();
    assert_eq!(drops.get(), 0);
    drop(output);
    assert_eq!((drops.get(), world.freed()), (1, 0));
    let waker = place.take().unwrap();
    let (one, two) = (waker.clone(), waker);
    thread::spawn(move || one.wake()).join().unwrap();
    assert_eq!(world.freed(), 0);
    thread::spawn(move || drop(two)).join().unwrap();
    world.ends_with(&[]);
}

#[test]
fn the_output_of_a_detached_task_is_dropped_when_it_ends() {
    let world = World::new();
    let (guard, drops) = guard();
    let (task, output) = world.spawn(ready(guard));
    drop(output);
    assert_eq!(world.run(), Outcome::Closed);
    assert_eq!((drops.get(), world.freed()), (1, 0));
    drop(task);
    world.ends_with(&[]);
}

/// Looks at its own address, which must not change, and at its alignment.
#[repr(align(64))]
struct Wide {
    bytes: [u8; 4096],
    address: Option<usize>,
    _guard: Guard,
    _pinned: std::marker::PhantomPinned,
}

impl Future for Wide {
    type Output = usize;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        let address = (&raw const *self).addr();
        assert_eq!(address % 64, 0);
        assert!(self.bytes.iter().all(|&byte| byte == 7));
        if let Some(before) = self.address {
            assert_eq!(before, address, "moved");
            return Poll::Ready(address);
        }
        // SAFETY: nothing is moved out.
        unsafe { self.get_unchecked_mut() }.address = Some(address);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Wide {
    fn drop(&mut self) {
        let address = (&raw const *self).addr();
        assert!(self.address.is_none_or(|before| before == address), "moved");
    }
}

#[test]
fn a_wide_future_is_aligned_and_stays_where_it_is() {
    let world = World::new();
    for cancelled in [false, true] {
        let (guard, drops) = guard();
        let (task, mut output) = world.spawn(Wide {
            bytes: [7; 4096],
            address: None,
            _guard: guard,
            _pinned: std::marker::PhantomPinned,
        });
        assert_eq!(world.run(), Outcome::Pending);
        if cancelled {
            task.cancel();
        }
        world.run();
        assert_eq!(drops.get(), 1);
        if !cancelled {
            returned(&mut output);
        }
    }
    world.ends_with(&[]);
}

#[test]
fn a_future_and_an_output_may_be_nothing_at_all() {
    let world = World::new();
    let (task, output) = world.spawn(pending::<()>());
    assert_eq!(world.run(), Outcome::Pending);
    task.cancel();
    drop((task, output));
    let (_, mut output) = world.spawn(async {});
    assert_eq!(world.run(), Outcome::Closed);
    returned(&mut output);
    drop(output);
    world.ends_with(&[]);
}

#[test]
fn the_wakers_of_a_task_know_each_other() {
    let world = World::new();
    let wakers = Rc::<RefCell<Vec<Waker>>>::default();
    for _ in 0..2 {
        let inner = wakers.clone();
        let (_, _) = world.spawn(poll_fn(move |cx| {
            let waker = cx.waker().clone();
            assert!(waker.will_wake(cx.waker()));
            assert!(waker.clone().will_wake(&waker));
            inner.borrow_mut().push(waker);
            Poll::Ready(())
        }));
        world.run();
    }
    let wakers = wakers.take();
    assert!(!wakers[0].will_wake(&wakers[1]));
    drop(wakers);
    world.ends_with(&[]);
}
