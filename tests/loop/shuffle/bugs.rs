//! Planted bugs: each is found by seeds and never by ordinary runs, and its mended twin passes.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use futures::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use phaseloop::net::UnixStream;
use phaseloop::shuffle::{Explore, Strategy};
use phaseloop::time::{sleep, timeout};
use phaseloop::{spawn, spawn_blocking};

/// The most seeds until a bug is found, and the median over the starts.
const MOST_SEEDS: u64 = 1_000;
const MEDIAN: u64 = 50;
/// The ordinary runs that do not find a bug.
const ORDINARY_RUNS: u64 = 10_000;
/// The most deviations of a shrunk failure.
const MOST_ANSWERS: usize = 3;

/// Checks that seeds find the bug from 20 starts, and that it shrinks to few answers.
fn is_found<F: Future<Output = ()>>(program: impl Fn() -> F) {
    let mut seeds: Vec<u64> = (0..20)
        .map(|start| {
            let first = start * 10_000;
            let found = Explore::new()
                .first(first)
                .seeds(MOST_SEEDS)
                .try_run(&program);
            let found = found.expect_err("no seed has found the bug");
            let answers = found.shrunk.len();
            assert!((1..=MOST_ANSWERS).contains(&answers), "{found}");
            found.seed.expect("the usual run passes") - first + 1
        })
        .collect();
    seeds.sort_unstable();
    assert!(seeds[10] <= MEDIAN, "seeds until found: {seeds:?}");
}

/// Checks that ordinary runs do not find the bug.
fn is_not_found_without<F: Future<Output = ()>>(program: impl Fn() -> F) {
    let usual = Explore::new()
        .strategy(Strategy::Usual)
        .seeds(ORDINARY_RUNS);
    let explored = usual
        .try_run(program)
        .unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(explored.runs, ORDINARY_RUNS + 1);
}

fn survives<F: Future<Output = ()>>(program: impl Fn() -> F) {
    let explored = Explore::new().seeds(2_000).try_run(program);
    explored.unwrap_or_else(|found| panic!("{found}"));
}

/// A flag that wakes whoever has registered.
#[derive(Default)]
struct Flag {
    is_set: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Flag {
    fn set(&self) {
        self.is_set.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Waits for the next `set` after the registration, whatever the flag says.
    async fn next_set(&self) {
        let mut is_registered = false;
        poll_fn(|cx| {
            if is_registered && self.waker.borrow().is_none() {
                return Poll::Ready(());
            }
            is_registered = true;
            self.waker.replace(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}

/// A setter that works for 10 ms, and a waiter that checks, does a job, and then registers.
async fn check_then_wait(checks_again: bool) {
    let flag = Rc::new(Flag::default());
    let setter = flag.clone();
    spawn(async move {
        sleep(Duration::from_millis(10)).await;
        setter.set();
    })
    .detach();
    if !flag.is_set.get() {
        spawn_blocking(|| ()).await.unwrap();
        if !(checks_again && flag.is_set.get()) {
            flag.next_set().await;
        }
    }
}

#[test]
fn a_lost_wake_is_found() {
    is_not_found_without(|| check_then_wait(false));
    is_found(|| check_then_wait(false));
    survives(|| check_then_wait(true));
}

// No socket is closed before the end of a program: a child that another test starts inherits it
// until its `exec`, and delays the end of the stream.

/// Two peers answer; the first answer is taken for that of the first peer.
async fn two_answers(by_name: bool) {
    let answers = Rc::new(RefCell::new(Vec::new()));
    let tasks = ["a", "b"].map(|name| {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let writer = spawn(async move {
            theirs.write_all(name.as_bytes()).await.unwrap();
            theirs
        });
        let answers = answers.clone();
        let reader = spawn(async move {
            let mut text = [0];
            ours.read_exact(&mut text).await.unwrap();
            answers.borrow_mut().push((name, text));
            ours
        });
        [writer, reader]
    });
    let mut open = Vec::new();
    for task in tasks.into_iter().flatten() {
        open.push(task.await.unwrap());
    }
    let mut answers = answers.take();
    if by_name {
        answers.sort_unstable();
    }
    assert_eq!(&answers[0].1, b"a");
}

#[test]
fn an_order_between_two_peers_is_found() {
    is_not_found_without(|| two_answers(false));
    is_found(|| two_answers(false));
    survives(|| two_answers(true));
}

/// A connection is closed by its end, which a job finds, and by its idle timer.
async fn two_closers(checks: bool) {
    let closed = Rc::new(Cell::new(0));
    let close = {
        let closed = closed.clone();
        move || {
            if !(checks && closed.get() > 0) {
                closed.set(closed.get() + 1);
            }
        }
    };
    let by_end = close.clone();
    let end = spawn(async move {
        spawn_blocking(|| ()).await.unwrap();
        by_end();
    });
    let end_of_idle = timeout(Duration::from_millis(5), end).await;
    if end_of_idle.is_err() {
        close();
        sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(closed.get(), 1, "closed twice");
}

#[test]
fn a_double_close_is_found() {
    is_not_found_without(|| two_closers(false));
    is_found(|| two_closers(false));
    survives(|| two_closers(true));
}

/// Two jobs; the second is expected to find the first's result.
async fn two_jobs(in_turn: bool) {
    let log = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let job = |number: u32| {
        let log = log.clone();
        spawn_blocking(move || log.lock().unwrap().push(number))
    };
    if in_turn {
        job(1).await.unwrap();
        job(2).await.unwrap();
    } else {
        let jobs = [job(1), job(2)];
        for job in jobs {
            job.await.unwrap();
        }
    }
    assert_eq!(*log.lock().unwrap(), [1, 2]);
}

#[test]
fn an_order_between_two_jobs_is_found() {
    is_not_found_without(|| two_jobs(false));
    is_found(|| two_jobs(false));
    survives(|| two_jobs(true));
}

/// A read and a modification of a balance, with an await in between.
async fn two_withdrawals(checks_again: bool) {
    let balance = Rc::new(Cell::new(100));
    let tasks = [0, 1].map(|n| {
        let balance = balance.clone();
        spawn(async move {
            if n == 1 {
                sleep(Duration::from_millis(1)).await;
            }
            if balance.get() < 100 {
                return;
            }
            // The limit of the account is looked up.
            spawn_blocking(|| ()).await.unwrap();
            if !(checks_again && balance.get() < 100) {
                balance.set(balance.get() - 100);
            }
        })
    });
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(balance.get(), 0, "overdrawn");
}

#[test]
fn a_check_that_is_stale_after_an_await_is_found() {
    is_not_found_without(|| two_withdrawals(false));
    is_found(|| two_withdrawals(false));
    survives(|| two_withdrawals(true));
}

/// A future that takes its second poll for the wake that it waits for.
async fn second_poll(checks: bool) {
    let flag = Rc::new(Flag::default());
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let setter = flag.clone();
    let reader = spawn(async move {
        sleep(Duration::from_millis(5)).await;
        let mut byte = [0];
        ours.read_exact(&mut byte).await.unwrap();
        sleep(Duration::from_millis(5)).await;
        setter.set();
        ours
    });
    let waiter = spawn(async move {
        let mut polls = 0;
        poll_fn(|cx| {
            polls += 1;
            flag.waker.replace(Some(cx.waker().clone()));
            let is_ready = if checks {
                flag.is_set.get()
            } else {
                polls == 2
            };
            if is_ready {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        assert!(flag.is_set.get(), "it was not woken for the flag");
    });
    let mut theirs = theirs;
    theirs.write_all(b"x").await.unwrap();
    let _ours = reader.await.unwrap();
    waiter.await.unwrap();
}

#[test]
fn a_future_that_trusts_its_second_poll_is_found() {
    is_not_found_without(|| second_poll(false));
    is_found(|| second_poll(false));
    survives(|| second_poll(true));
}

/// Two messages of four bytes; one read is taken for one message.
async fn one_read_is_one_message(reads_all: bool) {
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    let _writer = spawn(async move {
        theirs.write_all(b"ping").await.unwrap();
        theirs
    });
    let mut message = [0; 4];
    if reads_all {
        ours.read_exact(&mut message).await.unwrap();
    } else {
        assert_eq!(ours.read(&mut message).await.unwrap(), 4);
    }
    assert_eq!(&message, b"ping");
}

#[test]
fn an_assumption_that_a_read_returns_a_whole_message_is_found() {
    is_not_found_without(|| one_read_is_one_message(false));
    is_found(|| one_read_is_one_message(false));
    survives(|| one_read_is_one_message(true));
}

/// A decoder that returns `Pending` after a read that was too short, although no waker is kept.
async fn decode(reads_again: bool) {
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    let _writer = spawn(async move {
        theirs.write_all(b"ping").await.unwrap();
        theirs
    });
    let mut message: Vec<u8> = Vec::new();
    poll_fn(|cx| {
        loop {
            let mut part = [0; 4];
            let read = Pin::new(&mut ours).poll_read(cx, &mut part);
            let count = std::task::ready!(read).unwrap();
            message.extend(&part[..count]);
            if message.len() >= 4 {
                return Poll::Ready(());
            }
            if !reads_again {
                return Poll::Pending;
            }
        }
    })
    .await;
}

#[test]
fn a_missing_registration_after_a_short_read_is_found() {
    is_not_found_without(|| decode(false));
    is_found(|| decode(false));
    survives(|| decode(true));
}

/// A read of four bytes with a time limit, repeated until it succeeds.
async fn read_with_a_limit(keeps_bytes: bool) {
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    spawn(async move {
        theirs.write_all(b"ping").await.unwrap();
        sleep(Duration::from_secs(1)).await;
        theirs.write_all(b"pong").await.unwrap();
        sleep(Duration::from_secs(60)).await;
    })
    .detach();
    let mut message = [0; 4];
    let mut length = 0;
    while length < 4 {
        let limit = Duration::from_millis(20);
        if keeps_bytes {
            let part = timeout(limit, ours.read(&mut message[length..])).await;
            length += part.map_or(0, |count| count.unwrap());
        } else if timeout(limit, ours.read_exact(&mut message)).await.is_ok() {
            length = 4;
        }
    }
    assert_eq!(&message, b"ping");
}

#[test]
fn bytes_that_a_time_limit_drops_are_found() {
    is_not_found_without(|| read_with_a_limit(false));
    is_found(|| read_with_a_limit(false));
    survives(|| read_with_a_limit(true));
}
