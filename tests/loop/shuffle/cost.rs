//! What a seed costs beside a plain run.

use std::time::Duration;

use futures::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::UnixStream;
use phaseloop::shuffle::{Determinism, Explore, Strategy};
use phaseloop::time::sleep;
use phaseloop::{Builder, spawn, spawn_blocking};
use rustix::time::{ClockId, clock_gettime};

use crate::util::child::in_child;

/// How often each program runs.
const RUNS: u32 = 100;

/// The most that a seed may cost, in plain runs.
const LIMIT: f64 = 3.0;

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

/// Returns the CPU time of all threads of the process that `body` takes.
fn cpu_time(body: impl FnOnce()) -> Duration {
    let now = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap();
    let start = now();
    body();
    now() - start
}

fn plain_runs() {
    for _ in 0..RUNS {
        let event_loop = Builder::new().start_paused(true).build().unwrap();
        event_loop.block_on(program());
    }
}

fn seeds() {
    let explore = Explore::new()
        .strategy(Strategy::Walk)
        .seeds(u64::from(RUNS))
        .check(Determinism::Off);
    explore.try_run(program).unwrap();
}

/// CPU time in a process of its own: the ratio does not depend on what else the machine does.
#[test]
#[cfg_attr(
    any(target_env = "musl", target_pointer_width = "32"),
    ignore = "the standard library of this target is built without optimisation"
)]
fn a_seed_costs_three_plain_runs_at_most() {
    let name = "a_seed_costs_three_plain_runs_at_most";
    let child = in_child(&[], name, || {
        plain_runs();
        let ratios = [(); 5].map(|()| {
            let (plain, shuffled) = (cpu_time(plain_runs), cpu_time(seeds));
            shuffled.as_secs_f64() / plain.as_secs_f64()
        });
        let best = ratios.into_iter().fold(f64::INFINITY, f64::min);
        eprintln!("a seed costs {best:.2} plain runs ({ratios:.2?})");
        assert!(best <= LIMIT, "{ratios:?}");
    });
    if let Some(child) = child {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        eprintln!("{text}");
        assert!(output.status.success(), "{text}");
    }
}
