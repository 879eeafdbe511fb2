//! Messages between loops.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use phaseloop::cluster::{self, Sharded};
use phaseloop::phase;
use phaseloop::shuffle::{Determinism, Explore, Kind, Strategy};
use phaseloop::time::sleep;

/// Two loops send to the third through a channel that is full most of the time. Returns what
/// arrives, as pairs of loop and number.
async fn exchange(messages: u32) -> Vec<(usize, u32)> {
    let (sender, mut receiver) = cluster::channel(4);
    let senders = cluster::current().each(move |index| {
        let sender = sender.clone();
        async move {
            for number in 0..messages {
                if index > 0 {
                    sender.send((index, number)).await.unwrap();
                    phase::check().await;
                }
            }
        }
    });
    let mut arrived = Vec::new();
    while let Some(message) = receiver.recv().await {
        arrived.push(message);
    }
    for sender in senders.await {
        sender.unwrap();
    }
    arrived
}

// C23: a thousand seeds on three loops, each twice with equal logs. The messages of a pair of loops
// arrive in their order, and none is lost: a lost wake would be a dead end.
#[test]
fn a_thousand_seeds_keep_the_order_of_each_pair_of_loops() {
    let runs = RefCell::new(Vec::new());
    let explore = Explore::new().seeds(1_000).check(Determinism::Every(1));
    explore.loops(3).run(|| async {
        let arrived = exchange(6).await;
        for sender in [1, 2] {
            let of_sender = arrived.iter().filter(|(index, _)| *index == sender);
            let numbers: Vec<_> = of_sender.map(|(_, number)| *number).collect();
            assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
        }
        runs.borrow_mut().push(arrived);
    });
    let runs = runs.into_inner();
    // The usual run, and that of each seed, twice.
    assert_eq!(runs.len(), 2 * 1_001);
    for twice in runs.chunks(2) {
        assert_eq!(twice[0], twice[1], "a seed has two orders");
    }
    let orders: BTreeSet<_> = runs.iter().collect();
    assert!(orders.len() > 20, "{} orders", orders.len());
}

// C23: an order that is assumed between two senders is found, and shrunk to the loop that was
// passed over.
#[test]
fn an_order_between_two_senders_is_refuted() {
    let explore = Explore::new().seeds(50).loops(3);
    let found = explore.try_run(|| async {
        let arrived = exchange(1).await;
        assert_eq!(arrived, [(1, 0), (2, 0)], "loop 1 is first");
    });
    let found = found.unwrap_err();
    assert!(found.message.contains("loop 1 is first"), "{found}");
    assert!((1..=2).contains(&found.shrunk.len()), "{found}");
    assert!(
        found
            .shrunk
            .iter()
            .any(|decision| decision.kind == Kind::Loop),
        "{found}"
    );
    assert!(found.report.contains("loop 0: "), "{found}");
}

// C23: the usual order takes the loops by index, in turn.
#[test]
fn the_usual_order_takes_turns() {
    let explore = Explore::new().strategy(Strategy::Usual).seeds(1).loops(3);
    explore.run(|| async {
        let order = Rc::new(RefCell::new(Vec::new()));
        let (sender, mut receiver) = cluster::channel(16);
        let turns = cluster::current().each(move |index| {
            let sender = sender.clone();
            async move {
                for _ in 0..3 {
                    sender.try_send(index).unwrap();
                    phaseloop::task::yield_now().await;
                }
            }
        });
        turns.await;
        while let Ok(index) = receiver.try_recv() {
            order.borrow_mut().push(index);
        }
        let order = order.take();
        for window in order.chunks(3) {
            assert_eq!(BTreeSet::from_iter(window).len(), 3, "{order:?}");
        }
    });
}

// C23: one clock for all. A sleep of one loop ends at the same time as that of another one, and the
// instants of a loop mean the same on the others.
#[test]
fn the_loops_have_one_clock() {
    Explore::new()
        .seeds(100)
        .without(Kind::Late)
        .loops(3)
        .run(|| async {
            let begun = phaseloop::time::now();
            let ends = cluster::current().each(move |index| async move {
                sleep(Duration::from_millis(10 * (index as u64 + 1))).await;
                phaseloop::time::now()
            });
            for (index, end) in ends.await.into_iter().enumerate() {
                let passed = end.unwrap() - begun;
                assert_eq!(passed, Duration::from_millis(10 * (index as u64 + 1)));
            }
        });
}

// C23: a program that moves the clock of one loop moves that of all.
#[test]
fn a_loop_that_advances_the_clock_advances_all() {
    Explore::new()
        .seeds(50)
        .without(Kind::Late)
        .loops(2)
        .run(|| async {
            let begun = phaseloop::time::now();
            let other = cluster::current().remote(1).spawn(async || {
                phaseloop::time::advance(Duration::from_secs(5)).await;
            });
            other.unwrap().await.unwrap();
            phaseloop::task::yield_now().await;
            assert_eq!(phaseloop::time::now() - begun, Duration::from_secs(5));
        });
}

// C23: what waits on each other over two loops is a dead end, under every seed.
#[test]
fn a_lost_wake_is_a_dead_end() {
    let found = Explore::new().seeds(5).loops(2).try_run(|| async {
        let (sender, mut receiver) = cluster::channel::<u8>(1);
        let keeps = cluster::current().remote(1).spawn(move || async move {
            std::future::pending::<()>().await;
            drop(sender);
        });
        assert_eq!(receiver.recv().await, None);
        drop(keeps);
    });
    let found = found.unwrap_err();
    assert!(
        found
            .message
            .starts_with("nothing is left that could wake the program"),
        "{found}"
    );
}

// C23: a loop that does not rest leaves the others their turns.
#[test]
fn a_busy_loop_starves_no_other() {
    // Loops with priorities: the higher one goes on as long as it can.
    let strategy = Strategy::Pct { depth: 1 };
    Explore::new()
        .seeds(20)
        .strategy(strategy)
        .loops(2)
        .run(|| async {
            let (sender, mut receiver) = cluster::channel(1);
            let other = cluster::current().remote(1).spawn(move || async move {
                sender.send(7).await.unwrap();
            });
            let message = loop {
                match receiver.try_recv() {
                    Ok(message) => break message,
                    Err(_) => phaseloop::task::yield_now().await,
                }
            };
            assert_eq!(message, 7);
            other.unwrap().await.unwrap();
        });
}

// C23: values of each loop, which calls of other loops change.
#[phaseloop::test(loops = 3, seeds = 200)]
async fn sharded_values_take_calls_of_all_loops() {
    let log = Sharded::new(async |_| RefCell::new(Vec::new()))
        .await
        .unwrap();
    let writers = {
        let log = log.clone();
        cluster::current().each(move |from| {
            let log = log.clone();
            async move {
                for to in 0..3 {
                    let write =
                        async move |list: &RefCell<Vec<usize>>| list.borrow_mut().push(from);
                    log.on(to, write).unwrap().await.unwrap();
                }
            }
        })
    };
    writers.await;
    for index in 0..3 {
        let list = log.on(index, async |list| list.borrow().clone());
        let mut list = list.unwrap().await.unwrap();
        list.sort_unstable();
        assert_eq!(list, [0, 1, 2]);
    }
}
