//! The same seed gives the same run.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::UnixStream;
use phaseloop::shuffle::{Determinism, Explore, Explored, Found, Question, Strategy};
use phaseloop::time::sleep;
use phaseloop::{Builder, spawn, spawn_blocking};

use crate::util::child::in_child;

/// Echoes over socket pairs beside jobs and sleeps.
// No socket is closed before the end: a child that another test starts inherits it until its `exec`,
// and delays the end of the stream.
async fn busy(rounds: u32) {
    let mut tasks = Vec::new();
    for peer in 0..8_u64 {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        tasks.push(spawn(async move {
            let mut byte = [0];
            for round in 0..rounds {
                ours.write_all(&[1]).await.unwrap();
                ours.read_exact(&mut byte).await.unwrap();
                if round % 5 == 0 {
                    spawn_blocking(|| ()).await.unwrap();
                }
                if round % 7 == 0 {
                    sleep(Duration::from_millis(peer)).await;
                }
            }
            ours
        }));
        tasks.push(spawn(async move {
            let mut byte = [0];
            for _ in 0..rounds {
                theirs.read_exact(&mut byte).await.unwrap();
                theirs.write_all(&byte).await.unwrap();
            }
            theirs
        }));
    }
    let mut open = Vec::new();
    for task in tasks {
        open.push(task.await.unwrap());
    }
}

/// Runs `busy` with answers from a small generator and returns the number and a hash of the
/// questions.
fn fingerprint(seed: u64, rounds: u32) -> (u64, u64) {
    let asked = Rc::new(Cell::new((0, 0)));
    let log = asked.clone();
    let mut state = seed;
    let chooser = move |question: &Question<'_>| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let answer = match state >> 61 {
            0 => (state >> 33) as usize % question.count,
            _ => 0,
        };
        let (count, hash) = log.get();
        let mut hasher = DefaultHasher::new();
        (hash, question.kind, question.who, question.count, answer).hash(&mut hasher);
        log.set((count + 1, hasher.finish()));
        answer
    };
    let event_loop = Builder::new().shuffle(chooser).build().unwrap();
    event_loop.block_on(busy(rounds));
    asked.get()
}

#[test]
fn the_same_seed_asks_the_same_questions() {
    for seed in 1..20 {
        let first = fingerprint(seed, 30);
        assert!(first.0 > 500, "{first:?}");
        assert_eq!(first, fingerprint(seed, 30), "seed {seed}");
        assert_ne!(first.1, fingerprint(seed + 100, 30).1);
    }
}

/// The number of questions of a long run.
const LONG: u64 = 1_000_000;

/// Returns the fingerprint of a run of at least so many questions.
fn fingerprint_of_a_long_run() -> String {
    // A round of the eight pairs asks about 99 questions.
    let (questions, hash) = fingerprint(7, 10_500);
    assert!(questions >= LONG, "{questions}");
    format!("{questions} questions, hash {hash:x}")
}

/// The second process has another `RandomState`.
#[test]
fn a_million_questions_are_the_same_again_and_in_another_process() {
    let name = "a_million_questions_are_the_same_again_and_in_another_process";
    let child = in_child(&[], name, || eprintln!("{}", fingerprint_of_a_long_run()));
    let Some(child) = child else {
        return;
    };
    let [first, second] = [(); 2].map(|()| fingerprint_of_a_long_run());
    assert_eq!(first, second);
    let output = child.wait_with_output().unwrap();
    let there = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{there}");
    assert!(there.contains(&first), "here {first}, there {there}");
}

#[test]
fn every_seed_of_a_deterministic_program_can_be_repeated() {
    let explore = Explore::new().seeds(100).check(Determinism::Every(1));
    let explored = explore.try_run(|| busy(10));
    explored.unwrap_or_else(|found| panic!("{found}"));
}

#[test]
fn a_program_that_depends_on_the_order_of_a_map_is_reported() {
    let found = Explore::new()
        .seeds(50)
        .check(Determinism::Every(1))
        .try_run(|| async {
            let names: HashMap<u32, ()> = (0..20).map(|n| (n, ())).collect();
            for name in names.keys().copied() {
                if name % 3 == 0 {
                    spawn_blocking(|| ()).await.unwrap();
                }
                sleep(Duration::from_millis(u64::from(name % 2))).await;
            }
        });
    is_not_repeatable(found);
}

#[test]
fn a_program_that_reads_the_real_clock_is_reported() {
    let found = Explore::new()
        .seeds(50)
        .check(Determinism::Every(1))
        .try_run(|| async {
            for _ in 0..40 {
                let since = Instant::now();
                // How many times the clock is read until it has moved differs from run to run.
                let mut reads = 0_u32;
                while since.elapsed() < Duration::from_micros(20) {
                    reads += 1;
                }
                if reads % 2 == 0 {
                    spawn_blocking(|| ()).await.unwrap();
                }
                sleep(Duration::from_millis(1)).await;
            }
        });
    is_not_repeatable(found);
}

fn is_not_repeatable(found: Result<Explored, Box<Found>>) {
    let found = found.unwrap_err().to_string();
    assert!(found.contains("not repeatable: decision"), "{found}");
    assert!(
        found.contains("the real clock"),
        "the causes are listed: {found}"
    );
}

#[test]
fn the_usual_strategy_leaves_the_usual_way_nowhere() {
    let explore = Explore::new().strategy(Strategy::Usual).seeds(3);
    let explored = explore.try_run(|| busy(5)).unwrap();
    assert_eq!(explored.runs, 4);
    assert!(explored.questions > 100);
}
