//! Memory that a burst needs is given back.

use crate::util::child::in_child;
use crate::util::memory::{allocations, live};
use std::cell::Cell;
use std::rc::Rc;

use phaseloop::observe::{Observer, Wants};
use phaseloop::{Builder, EventLoop, RunMode, queue_microtask};

const BURST: usize = 600_000;

/// What the lanes may keep of a burst that takes at least two pointers an entry: 4.8 MB on 32 bits.
const KEPT: usize = 2 << 20;

/// In a process of its own: the count is that of the process.
#[test]
fn lanes_give_the_memory_of_a_burst_back() {
    let test = "lanes_give_the_memory_of_a_burst_back";
    if let Some(child) = in_child(&[], test, give_back) {
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
    }
}

fn give_back() {
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let count = Rc::new(Cell::new(0));
    event_loop.run(RunMode::NoWait).unwrap();
    let before = live();

    // Ticks.
    for _ in 0..BURST {
        let count = count.clone();
        handle.next_tick(move || count.set(count.get() + 1));
    }
    assert!(
        live() - before > 4 << 20,
        "the burst is large enough to measure"
    );
    event_loop.run(RunMode::NoWait).unwrap();
    assert_eq!(count.replace(0), BURST);
    assert!(live() < before + KEPT, "{} bytes are kept", live() - before);

    // Microtasks.
    for _ in 0..BURST {
        let count = count.clone();
        event_loop.enter(|| queue_microtask(move || count.set(count.get() + 1)));
    }
    assert!(
        live() - before > 4 << 20,
        "the burst is large enough to measure"
    );
    event_loop.run(RunMode::NoWait).unwrap();
    assert_eq!(count.replace(0), BURST);
    assert!(live() < before + KEPT, "{} bytes are kept", live() - before);

    // Small ones afterwards are served as ever.
    for _ in 0..100 {
        let count = count.clone();
        handle.next_tick(move || count.set(count.get() + 1));
        event_loop.run(RunMode::NoWait).unwrap();
    }
    assert_eq!(count.get(), 100);
}

struct Watches;

impl Observer for Watches {
    fn wants(&self) -> Wants {
        Wants::ACTIVITIES
    }
}

/// What is queued on a watched loop has its line beside it, in memory that is used again.
#[test]
fn a_tick_on_a_watched_loop_allocates_nothing() {
    let mut event_loop = Builder::new().observer(Watches).build().unwrap();
    let handle = event_loop.handle();
    let count = Rc::new(Cell::new(0));
    let mut allocated = || {
        let before = allocations();
        event_loop.run(RunMode::NoWait).unwrap();
        for _ in 0..100 {
            let [tick, microtask] = [count.clone(), count.clone()];
            handle.next_tick(move || tick.set(tick.get() + 1));
            handle.queue_microtask(move || microtask.set(microtask.get() + 1));
        }
        event_loop.run(RunMode::NoWait).unwrap();
        allocations() - before
    };
    let first = allocated();
    assert!(first >= 200, "the first ones allocate: {first}");
    // The loop itself may allocate something in a run.
    let next = allocated();
    assert!(next < 20, "not one for each closure: {next}");
    assert_eq!(count.get(), 400);
}
