//! CPU-bound jobs run on the thread pool, while the timers of the loop stay on time.
//!
//! ```text
//! cargo run --release --example worker_pool
//! ```

use std::cell::Cell;
use std::io::{self, IsTerminal};
use std::rc::Rc;
use std::time::{Duration, Instant};

use phaseloop::pool::PoolBuilder;
use phaseloop::{Builder, spawn, spawn_blocking, time};

const JOBS: u32 = 24;
const NUMBERS_PER_JOB: u32 = 100_000;
const PERIOD: Duration = Duration::from_millis(2);

fn main() -> io::Result<()> {
    // A thread for each core but the loop's own. By default a loop uses the pool of the process.
    let cores = std::thread::available_parallelism()?.get();
    let pool = PoolBuilder::new().threads((cores - 1).max(1)).build();
    let event_loop = Builder::new().pool(pool.clone()).build()?;

    event_loop.block_on(async {
        let start = Instant::now();
        let lateness = Rc::new(Lateness::default());
        let watch = spawn(lateness.clone().watch());

        let job = |job| spawn_blocking(move || primes(job * NUMBERS_PER_JOB));
        let jobs: Vec<_> = (0..JOBS).map(job).collect();
        let mut found = 0;
        for (done, job) in jobs.into_iter().enumerate() {
            found += job.await.expect("counting does not panic");
            show_progress(done + 1);
        }
        println!(
            "{found} primes below {} after {} ms",
            JOBS * NUMBERS_PER_JOB,
            start.elapsed().as_millis()
        );

        watch.abort();
        println!(
            "{} ticks of {} ms meanwhile, the worst {:.2} ms late",
            lateness.ticks.get(),
            PERIOD.as_millis(),
            lateness.worst.get().as_secs_f64() * 1e3
        );
    });
    println!("{:#?}", pool.stats());
    Ok(())
}

/// The delay of a timer.
#[derive(Default)]
struct Lateness {
    ticks: Cell<u32>,
    worst: Cell<Duration>,
}

impl Lateness {
    async fn watch(self: Rc<Self>) {
        let mut interval = time::interval(PERIOD);
        loop {
            let due = interval.tick().await;
            self.ticks.set(self.ticks.get() + 1);
            self.worst.set(self.worst.get().max(due.elapsed()));
        }
    }
}

/// Shows how many jobs are done, if standard error is a terminal.
fn show_progress(done: usize) {
    if io::stderr().is_terminal() {
        let end = if done == JOBS as usize {
            "\r\x1b[K"
        } else {
            ""
        };
        eprint!("\r{} %{end}", 100 * done / JOBS as usize);
    }
}

/// Counts the primes in a job's part of the numbers, the slow way.
fn primes(from: u32) -> usize {
    let is_prime = |n: &u32| {
        let divisors = (2..).take_while(|d| d * d <= *n);
        *n > 1 && divisors.clone().all(|d| n % d != 0)
    };
    (from..from + NUMBERS_PER_JOB).filter(is_prime).count()
}
