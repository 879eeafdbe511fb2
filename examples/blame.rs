//! Why is it slow? A hundred tasks that sleep, and one, `hash`, that keeps the loop from waking
//! them in time: it blocks once for 51 ms, and later computes 20 times for 0.7 ms without a pause.
//!
//! The recorder names it: a line for each slow period, and at the end who made timers late.
//!
//! ```sh
//! cargo run --release --example blame
//! PHASELOOP_TRACE=blame.html cargo run --release --example blame   # then open blame.html
//! ```

use std::thread;
use std::time::{Duration, Instant};

use phaseloop::observe::Recorder;
use phaseloop::task::{self, JoinSet, yield_microtask};
use phaseloop::time::sleep;
use phaseloop::{Builder, LoopHandle};

const MS: Duration = Duration::from_millis(1);

/// A task that blocks the loop. Tasks share one thread, so all others wait.
async fn hash() {
    sleep(40 * MS).await;
    thread::sleep(51 * MS); // a blocking call
    sleep(20 * MS).await;
    for _ in 0..20 {
        compute(MS * 7 / 10);
        yield_microtask().await; // lets other tasks run, but not timers
    }
}

/// Keeps the processor busy.
fn compute(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {}
}

fn main() -> std::io::Result<()> {
    let recorder = Recorder::new().on_slow(|period| println!("phaseloop: {period}"));
    let event_loop = Builder::new().record(recorder.clone()).build()?;
    let metrics = event_loop.block_on(async {
        let mut tasks = JoinSet::new();
        for _ in 0..100 {
            tasks.spawn(async {
                for _ in 0..10 {
                    sleep(10 * MS).await;
                }
            });
        }
        let hash = task::Builder::new().name("hash").spawn(hash());
        while let Some(joined) = tasks.join_next().await {
            joined.expect("no task panics");
        }
        hash.await.expect("it does not panic");
        LoopHandle::current().metrics()
    });
    print!("{}", recorder.blame());
    println!(
        "utilization {:.0} %, event delay p50 {:.1?}, p99 {:.1?}",
        metrics.utilization() * 100.0,
        metrics.delay().quantile(0.5),
        metrics.delay().quantile(0.99),
    );
    Ok(())
}
