//! Tests of the task wrapper alone: a queue in place of a loop, and one thread unless a test needs
//! another.

mod chains;
mod ends;
mod panics;
mod scoped;

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn, ready};
use std::panic::panic_any;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, ThreadId};

use super::{Entry, Local, Meta, Output, Payload, Runnable, WakerKinds, spawn_local};

/// The queue of a test's tasks, and the record of their fate.
#[derive(Default)]
struct World {
    queue: Mutex<Vec<Runnable<Task>>>,
    /// The texts of the panics that no handle returned.
    unhandled: Mutex<Vec<String>>,
    /// The panics that are kept for handles, by the address of their task.
    kept: Mutex<Vec<(usize, Payload)>>,
    /// Whether a report panics, too.
    unhandled_panics: AtomicBool,
    spawned: AtomicUsize,
    /// The number of dropped futures.
    ended: AtomicUsize,
    /// The number of tasks whose memory was freed.
    freed: AtomicUsize,
}

/// The data of a task of a test.
struct Task(Arc<World>);

thread_local! {
    static KINDS: WakerKinds<Task> = WakerKinds::new();
    /// The work that is deferred until the current poll has returned.
    static LATER: RefCell<Vec<Box<dyn FnOnce()>>> = const { RefCell::new(Vec::new()) };
}

impl Local for Task {
    fn schedule(runnable: Runnable<Self>) {
        let world = runnable.local().0.clone();
        world.queue.lock().unwrap().push(runnable);
    }

    fn schedule_again(runnable: Runnable<Self>) {
        Self::schedule(runnable);
    }

    fn unhandled(&self, _: u32, payload: Payload) {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.unwrap_or("something").to_owned();
        self.0.unhandled.lock().unwrap().push(text);
        if self.0.unhandled_panics.load(Ordering::Relaxed) {
            panic_any("a report");
        }
    }

    fn keep(&self, payload: Payload) {
        let address = std::ptr::from_ref(self).addr();
        self.0.kept.lock().unwrap().push((address, payload));
    }

    fn take_kept(&self) -> Option<Payload> {
        let address = std::ptr::from_ref(self).addr();
        let mut kept = self.0.kept.lock().unwrap();
        let at = kept.iter().position(|(task, _)| *task == address)?;
        Some(kept.swap_remove(at).1)
    }

    fn ended(&self, _: u32) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }

    fn later(work: Box<dyn FnOnce()>) {
        LATER.with_borrow_mut(|later| later.push(work));
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.freed.fetch_add(1, Ordering::Relaxed);
    }
}

type Pair<T> = (Entry<Task>, Output<T, Task>);

impl World {
    fn new() -> Arc<Self> {
        Arc::default()
    }

    fn spawn<F: Future + 'static>(self: &Arc<Self>, future: F) -> Pair<F::Output> {
        let slot = self.spawned.fetch_add(1, Ordering::Relaxed);
        let local = Task(self.clone());
        let slot = u32::try_from(slot).unwrap();
        let (runnable, entry, output) = KINDS.with(|kinds| spawn_local(local, slot, future, kinds));
        self.queue.lock().unwrap().push(runnable);
        (entry, output)
    }

    fn queued(&self) -> usize {
        self.queue.lock().unwrap().len()
    }

    fn pop(&self) -> Runnable<Task> {
        self.queue.lock().unwrap().remove(0)
    }

    /// Runs the one queued task as a loop does, then the work that was deferred to the end of the
    /// poll.
    #[track_caller]
    fn run(&self) {
        assert_eq!(self.queued(), 1);
        let runnable = self.pop();
        if runnable.is_aborted() {
            drop(runnable);
        } else {
            runnable.run();
        }
        for work in LATER.take() {
            work();
        }
    }

    fn ended(&self) -> usize {
        self.ended.load(Ordering::Relaxed)
    }

    fn freed(&self) -> usize {
        self.freed.load(Ordering::Relaxed)
    }

    /// Checks that the memory of every task was freed, and that these panics were reported.
    #[track_caller]
    fn ends_with(&self, unhandled: &[&str]) {
        assert_eq!(self.queued(), 0, "a runnable is left");
        let spawned = self.spawned.load(Ordering::Relaxed);
        assert_eq!(self.ended(), spawned, "a future is left, or ended twice");
        assert_eq!(self.freed(), spawned, "a task was not freed, or twice");
        assert_eq!(*self.unhandled.lock().unwrap(), unhandled);
    }
}

/// Counts its drops, which must be on its own thread.
struct Guard {
    owner: ThreadId,
    drops: Rc<Cell<usize>>,
}

fn guard() -> (Guard, Rc<Cell<usize>>) {
    let drops = Rc::<Cell<usize>>::default();
    let guard = Guard {
        owner: thread::current().id(),
        drops: drops.clone(),
    };
    (guard, drops)
}

impl Drop for Guard {
    fn drop(&mut self) {
        assert_eq!(self.owner, thread::current().id(), "dropped elsewhere");
        self.drops.set(self.drops.get() + 1);
    }
}

struct PanicsWhenDropped(&'static str);

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic_any(self.0);
    }
}

/// A future that is pending for ever and owns a value.
fn holding<T: 'static>(value: T) -> impl Future<Output = ()> {
    poll_fn(move |_| {
        let _ = &value;
        Poll::Pending
    })
}

/// A future that is pending for ever and stores its waker at each poll.
fn giving(waker: &Rc<RefCell<Option<Waker>>>) -> impl Future<Output = ()> + use<> {
    let place = waker.clone();
    poll_fn(move |cx| {
        place.replace(Some(cx.waker().clone()));
        Poll::Pending
    })
}

/// A waker that counts its wakes. Its references are counted, too: each clone of the waker is one.
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

/// Polls for the output.
fn poll<T>(output: &mut Output<T, Task>) -> Poll<Option<Result<T, Payload>>> {
    output.poll(&Context::from_waker(Waker::noop()))
}

#[track_caller]
fn returned<T>(output: &mut Output<T, Task>) -> T {
    match poll(output) {
        Poll::Ready(Some(Ok(value))) => value,
        Poll::Ready(Some(Err(_))) => panic!("the task panicked"),
        Poll::Ready(None) => panic!("the task was cancelled"),
        Poll::Pending => panic!("the task is not over"),
    }
}

#[track_caller]
fn panicked<T>(output: &mut Output<T, Task>) -> &'static str {
    match poll(output) {
        Poll::Ready(Some(Err(payload))) => payload.downcast_ref::<&str>().copied().unwrap(),
        _ => panic!("the task did not panic"),
    }
}

#[track_caller]
fn assert_cancelled<T>(output: &mut Output<T, Task>) {
    assert!(matches!(poll(output), Poll::Ready(None)));
}

#[test]
fn the_output_is_there_once_the_task_has_run() {
    let world = World::new();
    let (_, mut output) = world.spawn(async { 7 });
    assert!(poll(&mut output).is_pending());
    assert!(!output.is_finished());
    world.run();
    assert!(output.is_finished());
    assert_eq!(returned(&mut output), 7);
    assert_cancelled(&mut output);
    drop(output);
    world.ends_with(&[]);
}

#[test]
fn a_handle_is_one_word_and_a_task_needs_little_more_than_its_future() {
    assert_eq!(size_of::<Option<Output<(), Task>>>(), size_of::<usize>());
    assert_eq!(size_of::<Option<Runnable<Task>>>(), size_of::<usize>());
    if cfg!(not(debug_assertions)) {
        assert_eq!(size_of::<Meta<[usize; 3]>>(), 56);
    }
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

    // The call is ambiguous, and does not compile, for a type that is `Send` or `Sync`.
    <Entry<Task> as NotIf<_>>::holds();
    <Output<(), Task> as NotIf<_>>::holds();
    is_send::<Runnable<Task>>();
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
    for _ in 0..3 {
        assert!(!output.is_finished());
        world.run();
    }
    assert_eq!(returned(&mut output), 3);
    drop(output);
    world.ends_with(&[]);
}

#[test]
fn wakes_coalesce_and_one_after_the_end_is_lost() {
    let world = World::new();
    let place = Rc::default();
    let (_, output) = world.spawn(giving(&place));
    world.run();
    let waker = place.take().unwrap();
    assert_eq!(world.queued(), 0);
    waker.wake_by_ref();
    let copy = waker.clone();
    copy.wake();
    let other = waker.clone();
    thread::spawn(move || other.wake()).join().unwrap();
    world.run();
    waker.wake_by_ref();
    drop(place.take());
    drop(world.pop());
    waker.wake_by_ref();
    assert_eq!(world.queued(), 0);
    drop(output);
    waker.wake();
    world.ends_with(&[]);
}

#[test]
fn an_aborted_task_is_dropped_in_its_turn() {
    let world = World::new();
    let (guard, drops) = guard();
    let (entry, mut output) = world.spawn(holding(guard));
    world.run();
    entry.abort();
    entry.abort();
    assert_eq!(drops.get(), 0);
    assert!(poll(&mut output).is_pending());
    world.run();
    assert_eq!(drops.get(), 1);
    assert_cancelled(&mut output);
    assert!(output.is_finished());
    drop(output);
    world.ends_with(&[]);
}

#[test]
fn a_task_that_aborts_itself_may_still_return() {
    let world = World::new();
    for ends in [true, false] {
        let own = Rc::<RefCell<Option<Entry<Task>>>>::default();
        let inner = own.clone();
        let (entry, mut output) = world.spawn(poll_fn(move |_| {
            inner.take().unwrap().abort();
            if ends { Poll::Ready(3) } else { Poll::Pending }
        }));
        own.replace(Some(entry));
        world.run();
        if ends {
            assert_eq!(returned(&mut output), 3);
        } else {
            assert!(poll(&mut output).is_pending());
            world.run();
            assert_cancelled(&mut output);
        }
    }
    world.ends_with(&[]);
}

#[test]
fn a_runnable_that_is_dropped_cancels_its_task_and_wakes_the_awaiter() {
    let world = World::new();
    let (guard, drops) = guard();
    let (_, mut output) = world.spawn(holding(guard));
    let (wakes, waker) = counter();
    assert!(output.poll(&Context::from_waker(&waker)).is_pending());
    drop(world.pop());
    assert_eq!((drops.get(), wakes.0.load(Ordering::Relaxed)), (1, 1));
    assert_cancelled(&mut output);
    drop(output);
    world.ends_with(&[]);
}

#[test]
fn the_last_waker_frees_the_task_on_any_thread() {
    let world = World::new();
    let (guard, drops) = guard();
    let place = Rc::<RefCell<Option<Waker>>>::default();
    let inner = place.clone();
    let mut guard = Some(guard);
    let (_, output) = world.spawn(poll_fn(move |cx| {
        inner.replace(Some(cx.waker().clone()));
        Poll::Ready(guard.take())
    }));
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
fn a_detached_task_that_no_waker_is_left_of_stays() {
    let world = World::new();
    let (guard, drops) = guard();
    let (entry, output) = world.spawn(holding(guard));
    world.run();
    drop(output);
    assert_eq!((drops.get(), world.queued()), (0, 0));
    entry.abort();
    world.run();
    assert_eq!(drops.get(), 1);
    world.ends_with(&[]);
}

#[test]
fn the_output_of_a_detached_task_is_dropped_when_it_ends() {
    let world = World::new();
    let (guard, drops) = guard();
    let (_, output) = world.spawn(ready(guard));
    drop(output);
    world.run();
    assert_eq!(drops.get(), 1);
    world.ends_with(&[]);
}

#[test]
fn the_registry_sees_who_awaits_a_task() {
    let world = World::new();
    let (entry, mut output) = world.spawn(async {});
    assert_eq!(entry.awaiter_data(), None);
    let (_, waker) = counter();
    assert!(output.poll(&Context::from_waker(&waker)).is_pending());
    assert_eq!(entry.awaiter_data(), Some(waker.data()));
    assert_eq!(entry.awaiter_data(), Some(waker.data()), "it was put back");
    drop(output);
    assert_eq!(entry.awaiter_data(), None, "a detached task is not awaited");
    world.run();
    world.ends_with(&[]);
}

/// Checks its address, which must not change, and its alignment.
#[repr(align(64))]
struct Wide {
    bytes: [u8; 4096],
    address: Cell<Option<usize>>,
    _guard: Guard,
    _pinned: std::marker::PhantomPinned,
}

impl Future for Wide {
    type Output = usize;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        let address = (&raw const *self).addr();
        assert_eq!(address % 64, 0);
        assert!(self.bytes.iter().all(|&byte| byte == 7));
        if let Some(before) = self.address.get() {
            assert_eq!(before, address, "moved");
            return Poll::Ready(address);
        }
        self.address.set(Some(address));
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Wide {
    fn drop(&mut self) {
        let address = (&raw const *self).addr();
        assert!(
            self.address.get().is_none_or(|before| before == address),
            "moved"
        );
    }
}

#[test]
fn a_wide_future_is_aligned_and_stays_where_it_is() {
    let world = World::new();
    for cancelled in [false, true] {
        let (guard, drops) = guard();
        let (entry, mut output) = world.spawn(Wide {
            bytes: [7; 4096],
            address: Cell::new(None),
            _guard: guard,
            _pinned: std::marker::PhantomPinned,
        });
        world.run();
        if cancelled {
            entry.abort();
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
    let (entry, output) = world.spawn(pending::<()>());
    world.run();
    entry.abort();
    world.run();
    drop(output);
    let (_, mut output) = world.spawn(async {});
    world.run();
    returned(&mut output);
    drop(output);
    world.ends_with(&[]);
}

#[test]
fn the_wakers_of_a_task_know_each_other() {
    let world = World::new();
    let place = Rc::default();
    let (entry, output) = world.spawn(giving(&place));
    let (other, _) = world.spawn(pending::<()>());
    world.pop().run();
    let waker = place.take().unwrap();
    assert!(waker.will_wake(&waker.clone()));
    assert_eq!(waker.data(), entry.waker_data());
    assert_ne!(waker.data(), other.waker_data());
    drop((output, world.pop()));
    entry.abort();
    world.run();
}

/// Each number makes another type of future.
fn noting<const N: usize>(data: &Rc<Cell<*const ()>>) -> impl Future<Output = usize> + use<N> {
    let data = data.clone();
    poll_fn(move |cx| {
        data.set(cx.waker().data());
        if Rc::strong_count(&data) == 1 {
            Poll::Ready(N)
        } else {
            Poll::Pending
        }
    })
}

#[test]
fn an_entry_wakes_its_own_task_whatever_types_were_spawned_before() {
    fn spawn_and_wake<const N: usize>(world: &Arc<World>) {
        let data: Rc<Cell<*const ()>> = Rc::new(Cell::new(std::ptr::null()));
        let (entry, mut output) = world.spawn(noting::<N>(&data));
        world.run();
        assert_eq!(entry.waker_data(), data.get(), "type {N}");
        drop(data);
        entry.wake();
        assert_eq!(world.queued(), 1, "type {N}");
        world.run();
        assert_eq!(returned(&mut output), N);
    }
    macro_rules! each {
        ($world:expr, $($n:literal)*) => { $(spawn_and_wake::<$n>($world);)* };
    }

    let world = World::new();
    // More types than are known at a time, and each of them again.
    for _ in 0..2 {
        each!(&world, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25);
    }
    world.ends_with(&[]);
}
