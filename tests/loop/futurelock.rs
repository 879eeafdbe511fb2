//! C32: a task does not wait for what was granted to another of its futures. The program is that of
//! Oxide's RFD 609: a future that waits for a lock is left unpolled, and the same task asks again.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;

use crate::util::polls::poll_once;
use crate::util::trace::{ms, paused};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use phaseloop::sync::{Mutex, Semaphore, mpsc};
use phaseloop::time::sleep;
use phaseloop::{select, spawn};

/// A task holds what `hold` takes for 5 ms. Meanwhile a future of `use_it` waits, is left by a
/// `select!` after 1 ms, and another future of `use_it` is awaited. Then the first goes on.
async fn program<H, U>(hold: impl FnOnce() -> H, use_it: impl Fn(&'static str) -> U)
where
    H: Future<Output = ()> + 'static,
    U: Future<Output = ()>,
{
    let holder = spawn(hold());
    phaseloop::task::yield_microtask().await;
    let mut first = pin!(use_it("first"));
    select! {
        () = &mut first => panic!("it is held"),
        () = sleep(ms(1)) => use_it("second").await,
    }
    first.await;
    holder.await.unwrap();
}

/// The same with the first future inside a set, which is not polled meanwhile.
async fn program_in_a_set<H, U>(hold: impl FnOnce() -> H, use_it: impl Fn(&'static str) -> U)
where
    H: Future<Output = ()> + 'static,
    U: Future<Output = ()>,
{
    let holder = spawn(hold());
    phaseloop::task::yield_microtask().await;
    let mut set: FuturesUnordered<_> = [use_it("first")].into_iter().collect();
    select! {
        _ = set.next() => panic!("it is held"),
        () = sleep(ms(1)) => use_it("second").await,
    }
    use_it("third").await;
    assert!(set.next().await.is_some());
    holder.await.unwrap();
}

/// Runs both programs from the main future and from a task.
macro_rules! ends {
    ($($name:ident, $make:ident;)*) => {
        $(
            #[test]
            fn $name() {
                paused().0.block_on(async {
                    let (hold, use_it) = $make();
                    program(hold, use_it).await;
                });
                paused().0.block_on(async {
                    let (hold, use_it) = $make();
                    spawn(async { program(hold, use_it).await }).await.unwrap();
                });
                paused().0.block_on(async {
                    let (hold, use_it) = $make();
                    program_in_a_set(hold, use_it).await;
                });
                paused().0.block_on(async {
                    let (hold, use_it) = $make();
                    spawn(async { program_in_a_set(hold, use_it).await }).await.unwrap();
                });
                paused().0.block_on(async {
                    let (hold, use_it) = $make();
                    let mut set: FuturesUnordered<_> = [program(hold, use_it)].into_iter().collect();
                    assert!(set.next().await.is_some());
                });
            }
        )*
    };
}

ends! {
    c32_a_mutex_is_taken_by_the_future_that_is_polled, mutex;
    c32_permits_are_taken_by_the_future_that_is_polled, semaphore;
    c32_the_room_of_a_channel_is_taken_by_the_future_that_is_polled, channel;
}

fn mutex() -> (
    impl FnOnce() -> futures::future::LocalBoxFuture<'static, ()>,
    impl Fn(&'static str) -> futures::future::LocalBoxFuture<'static, ()>,
) {
    let lock = Rc::new(Mutex::new(Vec::new()));
    let held = lock.clone();
    let hold = move || -> futures::future::LocalBoxFuture<'static, ()> {
        Box::pin(async move {
            let _guard = held.lock().await;
            sleep(ms(5)).await;
        })
    };
    let use_it = move |name| -> futures::future::LocalBoxFuture<'static, ()> {
        let lock = lock.clone();
        Box::pin(async move {
            let mut list = lock.lock().await;
            list.push(name);
            let order = list.join(" ");
            assert!("second third first".starts_with(&order) || "second first".starts_with(&order));
        })
    };
    (hold, use_it)
}

fn semaphore() -> (
    impl FnOnce() -> futures::future::LocalBoxFuture<'static, ()>,
    impl Fn(&'static str) -> futures::future::LocalBoxFuture<'static, ()>,
) {
    let semaphore = Rc::new(Semaphore::new(3));
    let held = semaphore.clone();
    let hold = move || -> futures::future::LocalBoxFuture<'static, ()> {
        Box::pin(async move {
            let _permits = held.acquire(2).await;
            sleep(ms(5)).await;
        })
    };
    let use_it = move |name| -> futures::future::LocalBoxFuture<'static, ()> {
        let semaphore = semaphore.clone();
        Box::pin(async move {
            // The second asks for more than the first was granted.
            let wants = if name == "second" { 3 } else { 2 };
            let permit = semaphore.acquire(wants).await.unwrap();
            assert_eq!(permit.count() + semaphore.available(), 3);
        })
    };
    (hold, use_it)
}

fn channel() -> (
    impl FnOnce() -> futures::future::LocalBoxFuture<'static, ()>,
    impl Fn(&'static str) -> futures::future::LocalBoxFuture<'static, ()>,
) {
    let (sender, mut receiver) = mpsc::channel(1);
    sender.try_send("queued").unwrap();
    let hold = move || -> futures::future::LocalBoxFuture<'static, ()> {
        Box::pin(async move {
            let mut order = Vec::new();
            while let Some(name) = receiver.recv().await {
                order.push(name);
                sleep(ms(5)).await;
                if name == "first" {
                    break;
                }
            }
            order.retain(|name| *name != "third");
            order.dedup();
            assert_eq!(order, ["queued", "second", "first"]);
        })
    };
    let use_it = move |name| -> futures::future::LocalBoxFuture<'static, ()> {
        let sender = sender.clone();
        Box::pin(async move {
            if name == "first" {
                // Full again, so that it waits.
                let _ = sender.try_send("queued");
            }
            sender.send(name).await.unwrap();
        })
    };
    (hold, use_it)
}

/// Among tasks the order stays: another task does not overtake a granted one.
#[test]
fn c32_another_task_does_not_take_what_was_granted() {
    paused().0.block_on(async {
        let lock = Rc::new(Mutex::new(()));
        let guard = lock.clone().lock_owned().await;
        let mut unpolled = Box::pin(lock.lock());
        assert!(poll_once(&mut unpolled).await.is_pending());
        let other = spawn({
            let lock = lock.clone();
            async move { drop(lock.lock().await) }
        });
        sleep(ms(1)).await;
        drop(guard);
        sleep(ms(1)).await;
        assert!(
            !other.is_finished(),
            "the lock is granted to the main future"
        );
        // It is passed on when the main future has done with it.
        drop(lock.lock().await);
        sleep(ms(1)).await;
        assert!(!other.is_finished(), "the first future has its old place");
        drop(unpolled);
        other.await.unwrap();
    });
}

/// One that waits already takes what another future of its task is granted later.
#[test]
fn c32_a_grant_to_an_unpolled_future_ends_the_wait_of_the_polled_one() {
    paused().0.block_on(async {
        let semaphore = Rc::new(Semaphore::new(2));
        let (one, two) = (
            semaphore.clone().acquire_owned(1).await,
            semaphore.clone().acquire_owned(1).await,
        );
        let mut unpolled = Box::pin(semaphore.acquire(1));
        assert!(poll_once(&mut unpolled).await.is_pending());
        spawn(async move {
            sleep(ms(1)).await;
            drop(one);
            sleep(ms(1)).await;
            drop(two);
        })
        .detach();
        // Asks for both: the one that `unpolled` is granted first, and the other.
        drop(semaphore.acquire(2).await.unwrap());
        drop(unpolled.await.unwrap());
        assert_eq!(semaphore.available(), 2);
    });
}
