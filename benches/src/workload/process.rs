//! What it takes to be there at all: to start, and to wait.

use std::time::Duration;

use crate::meter::{Meter, Reading};
use crate::runtime::Runtime;

/// What does it cost to start the runtime, to run one task and to end it?
pub(crate) fn start_stop<R: Runtime>(new: impl Fn() -> R, n: u64) -> Reading {
    let meter = Meter::start();
    for _ in 0..n {
        let rt = new();
        rt.run(async move {
            rt.spawn(async {}).await;
        });
    }
    meter.stop()
}

/// Tasks that are asleep while nothing happens.
pub(crate) const IDLE_TASKS: u64 = 100;

/// What does a millisecond cost in which nothing happens, with some tasks asleep?
pub(crate) fn idle<R: Runtime>(rt: R, milliseconds: u64) -> Reading {
    rt.run(async move {
        for _ in 0..IDLE_TASKS {
            rt.detach(async move {
                rt.sleep(Duration::from_secs(3600)).await;
            });
        }
        rt.sleep(Duration::from_millis(10)).await;
        let meter = Meter::start();
        rt.sleep(Duration::from_millis(milliseconds)).await;
        meter.stop()
    })
}
