//! What a seed costs, in counts.

use std::cell::Cell;
use std::time::Duration;

use futures::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::UnixStream;
use phaseloop::shuffle::{Determinism, Explore, Strategy};
use phaseloop::time::sleep;
use phaseloop::{LoopHandle, spawn, spawn_blocking};

use crate::util::memory::allocations;

const SEEDS: u64 = 100;

/// The most that a seed may cost. A plain run of the program makes about 190 allocations, 60 turns
/// and 450 polls.
const LIMITS: [(&str, u64); 3] = [("allocations", 2_000), ("turns", 200), ("polls", 700)];

/// Eight connections with twenty echoes each, 32 jobs and 24 sleeps.
async fn program() {
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        tasks.push(spawn(async move {
            let mut bytes = [0; 64];
            for _ in 0..20 {
                ours.write_all(&[1; 64]).await.unwrap();
                ours.read_exact(&mut bytes).await.unwrap();
            }
        }));
        tasks.push(spawn(async move {
            let mut bytes = [0; 64];
            for _ in 0..20 {
                theirs.read_exact(&mut bytes).await.unwrap();
                theirs.write_all(&bytes).await.unwrap();
            }
        }));
    }
    for _ in 0..32 {
        let job = spawn_blocking(|| ());
        tasks.push(spawn(async move { job.await.unwrap() }));
    }
    for n in 0..24 {
        tasks.push(spawn(sleep(Duration::from_millis(n))));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

/// What a seed repeats exactly, however fast the machine is.
#[test]
fn the_allocations_turns_and_polls_of_a_seed_are_bounded() {
    let (before, counts) = (allocations(), Cell::new([0; 2]));
    let explore = Explore::new()
        .strategy(Strategy::Walk)
        .seeds(SEEDS)
        .check(Determinism::Off);
    let run = explore.try_run(|| async {
        program().await;
        let metrics = LoopHandle::current().metrics();
        let [turns, polls] = counts.get();
        counts.set([turns + metrics.turns, polls + metrics.polls]);
    });
    run.unwrap();
    let [turns, polls] = counts.get();
    let counted = [allocations() - before, turns, polls].map(|count| count / SEEDS);
    for ((what, limit), count) in LIMITS.into_iter().zip(counted) {
        assert!(count <= limit, "{count} {what} a seed: {counted:?}");
    }
}
