//! How late sleeps of 100 µs are.

use std::future::Future;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::{ROUNDS, Rounds};

const SLEEPS: usize = 2000;
const TENTH: Duration = Duration::from_micros(100);

/// The median, and the 99th of a hundred, in microseconds.
fn late(mut late: Vec<Duration>) -> [f64; 2] {
    late.sort();
    [50, 99].map(|share| late[late.len() * share / 100].as_secs_f64() * 1e6)
}

async fn sleep_often<F: Future<Output = ()>>(sleep: impl Fn(Duration) -> F) -> Vec<Duration> {
    let mut late = Vec::with_capacity(SLEEPS);
    for _ in 0..SLEEPS {
        let start = Instant::now();
        sleep(TENTH).await;
        late.push(
            start
                .elapsed()
                .checked_sub(TENTH)
                .expect("no sleep is early"),
        );
    }
    late
}

pub(crate) fn run(_: &Path) {
    let mut rounds = Rounds::new(["median", "99 %"]);
    for _ in 0..ROUNDS {
        let std = sleep_often(|duration| async move { thread::sleep(duration) });
        rounds.push("`std::thread::sleep`", late(phaseloop::block_on(std)));
        let phaseloop = async { sleep_often(phaseloop::time::sleep).await };
        rounds.push("phaseloop", late(phaseloop::block_on(phaseloop)));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let tokio = async { sleep_often(tokio::time::sleep).await };
        rounds.push("tokio", late(runtime.unwrap().block_on(tokio)));
    }
    let title = format!("{SLEEPS} sleeps of 100 µs: µs late");
    rounds.print(&title, None);
}
