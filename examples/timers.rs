//! Sleeps, deadlines, intervals and timer handles, and their two clocks.
//!
//! ```text
//! cargo run --release --example timers
//! ```

use std::time::{Duration, Instant};

use phaseloop::time::{self, MissedTicks, Timer};
use phaseloop::{LoopHandle, spawn};

const MS: Duration = Duration::from_millis(1);

fn main() {
    phaseloop::block_on(async {
        let start = Instant::now();
        let at = move || format!("{:>3} ms", start.elapsed().as_millis());

        // Sleeps fire by deadline; equal deadlines fire in the order of their start.
        let naps = [30, 10, 20].map(|ms| {
            spawn(async move {
                time::sleep(ms * MS).await;
                println!("{}  slept {ms} ms", at());
            })
        });
        for nap in naps {
            nap.await.expect("a nap does not panic");
        }

        // A deadline for any future.
        let late = time::timeout(5 * MS, std::future::pending::<()>()).await;
        println!("{}  timeout: {late:?}", at());

        // This interval skips missed ticks and keeps its schedule.
        let mut interval = time::interval(10 * MS);
        interval.set_missed_ticks(MissedTicks::Skip);
        for _ in 0..3 {
            interval.tick().await;
            println!("{}  tick", at());
            std::thread::sleep(25 * MS); // A blocked loop misses ticks.
        }

        // A timer handle counts from the loop's cached time, as in libuv: the time that a callback
        // takes before it starts the timer is part of the timeout.
        let handle = LoopHandle::current();
        phaseloop::phase::check().await;
        std::thread::sleep(20 * MS);
        let timer = Timer::new(&handle);
        let started = timer.start(10 * MS, Duration::ZERO, move |_| {
            println!("{}  the timer of 10 ms was due when it was started", at());
        });
        started.expect("the timer is open");
        time::sleep(10 * MS).await;
        println!("{}  the sleep of 10 ms took 10 ms", at());

        // A deadline beyond the range of the clock is never reached; it does not panic.
        let forever = time::timeout(MS, time::sleep(Duration::MAX)).await;
        println!("{}  sleeping for ever: {forever:?}", at());
    });
}
