//! `Mutex`, `Semaphore` and `Notify`.

use std::rc::Rc;
use std::task::Poll;

use super::Log;
use crate::util::trace::{ms, paused};
use phaseloop::sync::{Closed, Mutex, Notify, Semaphore, TryAcquireError, TryLockError};
use phaseloop::task::yield_now;
use phaseloop::time::sleep;
use phaseloop::{EventLoop, block_on, next_tick, phase, spawn};
use tokio_test::task::spawn as mock;
use tokio_test::{assert_pending, assert_ready};

/// C30: a wake puts the task into the lane of the current drain, in the order of waiting.
#[test]
fn c30_waiters_are_served_in_order_and_in_the_drain_of_the_release() {
    let (event_loop, _, _) = paused();
    let log = Log::default();
    let noted = log.clone();
    event_loop.block_on(async move {
        let lock = Rc::new(Mutex::new(()));
        let guard = lock.clone().lock_owned().await;
        for name in ["a", "b", "c"] {
            let (lock, log) = (lock.clone(), log.clone());
            spawn(async move {
                let _guard = lock.lock().await;
                log.note(name);
            })
            .detach();
        }
        phase::check().await;
        let after = log.clone();
        phaseloop::set_immediate(move || after.note("next callback"));
        drop(guard);
        next_tick({
            let log = log.clone();
            move || log.note("tick")
        });
        phase::check().await;
        phase::check().await;
    });
    assert_eq!(noted.take(), "a b c tick next callback");
}

/// C31: the first that waits has the lock before it runs.
#[test]
fn c31_a_released_lock_belongs_to_the_first_that_waits() {
    let lock = Mutex::new(0);
    let mut guard = lock.try_lock().unwrap();
    *guard += 1;
    let (mut first, mut second) = (mock(lock.lock()), mock(lock.lock()));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    drop(guard);
    assert!(first.is_woken() && !second.is_woken());
    assert_eq!(lock.try_lock().unwrap_err(), TryLockError);
    let mut third = mock(lock.lock());
    assert_pending!(third.poll());
    assert_pending!(second.poll());
    let mut guard = assert_ready!(first.poll());
    *guard += 1;
    drop(guard);
    assert!(second.is_woken() && !third.is_woken());
    drop(assert_ready!(second.poll()));
    assert_eq!(*assert_ready!(third.poll()), 2);
}

/// C31: one that asks for many is not overtaken by those that ask for few.
#[test]
fn c31_few_permits_do_not_overtake_many() {
    let semaphore = Semaphore::new(3);
    let held = semaphore.try_acquire(2).unwrap();
    let (mut many, mut few) = (mock(semaphore.acquire(2)), mock(semaphore.acquire(1)));
    assert_pending!(many.poll());
    assert_pending!(few.poll());
    assert_eq!(semaphore.available(), 1);
    assert_eq!(
        semaphore.try_acquire(1).unwrap_err(),
        TryAcquireError::NoPermits
    );
    // C34: one that gives up lets those behind it in.
    drop(many);
    assert!(few.is_woken());
    let one = assert_ready!(few.poll()).unwrap();
    drop((held, one));
    assert_eq!(semaphore.available(), 3);
}

/// C34: what was granted and not polled goes to the next.
#[test]
fn c34_a_dropped_future_passes_the_permit_on() {
    let lock = Rc::new(Mutex::new(()));
    let guard = lock.clone().try_lock_owned().unwrap();
    let (mut first, mut second) = (mock(lock.lock()), mock(lock.clone().lock_owned()));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    drop(guard);
    assert!(first.is_woken());
    drop(first);
    assert!(second.is_woken());
    drop(second);
    assert!(lock.try_lock().is_ok());
}

#[test]
fn permits_are_split_merged_forgotten_and_added() {
    let semaphore = Rc::new(Semaphore::new(4).named("four"));
    let mut three = semaphore.clone().try_acquire_owned(3).unwrap();
    let one = three.split(1).unwrap();
    assert!(three.split(3).is_none());
    assert_eq!((three.count(), one.count()), (2, 1));
    one.forget();
    three.merge(semaphore.clone().try_acquire_owned(1).unwrap());
    assert_eq!((three.count(), semaphore.available()), (3, 0));
    drop(three);
    assert_eq!(semaphore.available(), 3);
    assert_eq!(semaphore.forget_permits(9), 3);
    let mut waits = mock(semaphore.acquire(2));
    assert_pending!(waits.poll());
    semaphore.add_permits(1);
    assert_pending!(waits.poll());
    semaphore.add_permits(1);
    assert_eq!(assert_ready!(waits.poll()).unwrap().count(), 2);
    assert!(semaphore.try_acquire(0).is_ok());
}

#[test]
#[should_panic(expected = "two semaphores")]
fn permits_of_two_semaphores_are_not_merged() {
    let (one, two) = (Semaphore::new(1), Semaphore::new(1));
    let mut permit = one.try_acquire(1).unwrap();
    permit.merge(two.try_acquire(1).unwrap());
}

#[test]
fn a_closed_semaphore_gives_no_permits() {
    let semaphore = Semaphore::new(1);
    let held = semaphore.try_acquire(1).unwrap();
    let (mut granted, mut waits) = (mock(semaphore.acquire(1)), mock(semaphore.acquire(1)));
    assert_pending!(granted.poll());
    assert_pending!(waits.poll());
    drop(held);
    assert!(granted.is_woken() && !waits.is_woken());
    semaphore.close();
    assert!(waits.is_woken() && semaphore.is_closed());
    assert_eq!(assert_ready!(granted.poll()).unwrap_err(), Closed);
    assert_eq!(assert_ready!(waits.poll()).unwrap_err(), Closed);
    drop((granted, waits));
    assert_eq!(semaphore.available(), 1);
    assert_eq!(
        semaphore.try_acquire(1).unwrap_err(),
        TryAcquireError::Closed
    );
}

#[test]
fn a_mutex_is_free_after_a_panic_of_its_holder() {
    block_on(async {
        let lock = Rc::new(Mutex::new(1));
        let panics = spawn({
            let lock = lock.clone();
            async move {
                let _guard = lock.lock().await;
                panic!("while it holds the lock");
            }
        });
        assert!(panics.await.unwrap_err().is_panic());
        assert_eq!(*lock.lock().await, 1);
        assert_eq!(format!("{lock:?}"), "Mutex(1)");
        let _guard = lock.lock().await;
        assert_eq!(format!("{lock:?}"), "Mutex(<locked>)");
    });
}

#[test]
fn a_guard_outlives_its_loop_and_a_waiter_of_a_dropped_loop_is_skipped() {
    let lock = Rc::new(Mutex::new(0));
    let guard = {
        let event_loop = EventLoop::new().unwrap();
        let lock = lock.clone();
        event_loop.block_on(async move {
            let guard = lock.clone().lock_owned().await;
            spawn(async move { *lock.lock().await += 1 }).detach();
            phase::check().await;
            guard
        })
    };
    let mut waits = mock(lock.lock());
    assert_pending!(waits.poll());
    drop(guard);
    assert_eq!(*assert_ready!(waits.poll()), 0);
}

#[test]
fn two_loops_of_a_thread_share_a_lock() {
    let (one, two) = (EventLoop::new().unwrap(), EventLoop::new().unwrap());
    let lock = Rc::new(Mutex::new(Vec::new()));
    let run = |event_loop: &EventLoop, name| {
        let lock = lock.clone();
        event_loop.block_on(async move {
            let mut list = lock.lock().await;
            yield_now().await;
            list.push(name);
        });
    };
    for _ in 0..100 {
        run(&one, 1);
        run(&two, 2);
    }
    let first = lock.try_lock().unwrap();
    // The wait of one loop ends by a release on the other.
    let waits = one.enter(|| {
        spawn({
            let lock = lock.clone();
            async move { lock.lock().await.push(3) }
        })
    });
    one.block_on(phase::check());
    two.block_on(async move { drop(first) });
    one.block_on(async { waits.await.unwrap() });
    assert_eq!(lock.try_lock().unwrap().len(), 201);
}

#[test]
fn an_unsized_value_is_locked() {
    let lock: Rc<Mutex<dyn Fn() -> u32>> = Rc::new(Mutex::new(|| 7));
    assert_eq!(lock.try_lock().unwrap()(), 7);
    let guard = lock.clone().try_lock_owned().unwrap();
    assert_eq!(guard(), 7);
    assert!(Rc::ptr_eq(
        phaseloop::sync::OwnedMutexGuard::mutex(&guard),
        &lock
    ));
}

#[test]
fn a_notification_is_stored_once() {
    let notify = Notify::new();
    notify.notify_one();
    notify.notify_one();
    assert_ready!(mock(notify.notified()).poll());
    let mut waits = mock(notify.notified());
    assert_pending!(waits.poll());
    notify.notify_one();
    assert!(waits.is_woken());
    assert_ready!(waits.poll());
    assert_pending!(mock(notify.notified()).poll());
}

#[test]
fn a_notification_that_is_dropped_goes_to_the_next() {
    let notify = Notify::new().named("n");
    let (mut first, mut second) = (mock(notify.notified()), mock(notify.notified()));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    notify.notify_one();
    assert!(first.is_woken() && !second.is_woken());
    drop(first);
    assert!(second.is_woken());
    drop(second);
    assert_ready!(mock(notify.notified()).poll());
}

#[test]
fn notify_all_reaches_those_made_before_it_and_stores_nothing() {
    let notify = Notify::new();
    let (mut polled, mut unpolled) = (mock(notify.notified()), mock(notify.notified()));
    assert_pending!(polled.poll());
    notify.notify_all();
    assert!(polled.is_woken());
    let mut later = mock(notify.notified());
    assert_pending!(later.poll());
    assert_ready!(polled.poll());
    assert_ready!(unpolled.poll());
    assert_pending!(later.poll());
    // One that is done does not take a later notification with it.
    notify.notify_one();
    drop((polled, unpolled));
    assert_ready!(later.poll());
}

#[test]
fn an_enabled_wait_has_its_place_in_the_line() {
    let notify = Notify::new();
    let mut enabled = Box::pin(notify.notified());
    assert!(!enabled.as_mut().enable());
    let mut later = mock(notify.notified());
    assert_pending!(later.poll());
    notify.notify_one();
    assert!(!later.is_woken());
    assert_eq!(mock(&mut enabled).poll(), Poll::Ready(()));
}

/// `Kind::Wake` of a shuffled loop polls tasks that nothing has woken.
#[test]
fn permits_survive_any_order_and_spurious_polls() {
    let (event_loop, _, _) = paused();
    event_loop.block_on(async {
        let semaphore = Rc::new(Semaphore::new(3));
        let counted = Rc::new(Mutex::new(0));
        let tasks: Vec<_> = (0..12)
            .map(|number| {
                let (semaphore, counted) = (semaphore.clone(), counted.clone());
                spawn(async move {
                    for round in 0..4 {
                        let wants = 1 + (number + round) % 3;
                        let permit = semaphore.acquire(wants);
                        let limit = ms(1 + (number as u64 * 7) % 5);
                        // Some give up.
                        let permit = match number % 3 {
                            0 => match phaseloop::time::timeout(limit, permit).await {
                                Ok(permit) => permit,
                                Err(_) => continue,
                            },
                            _ => permit.await,
                        };
                        let permit = permit.unwrap();
                        let mut counted = counted.lock().await;
                        yield_now().await;
                        *counted += 1;
                        drop(counted);
                        sleep(ms(1)).await;
                        drop(permit);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(semaphore.available(), 3);
        assert!(*counted.lock().await >= 32);
    });
}
