//! What only a phase loop has: immediates, ticks, microtasks that are closures, and Node's timers.

use std::cell::Cell;
use std::rc::Rc;

use super::tasks::Slot;
use crate::meter::{Meter, Reading};
use crate::runtime::Runtime;
use crate::runtime::phaseloop::Phaseloop;

/// Where a closure waits for its turn.
pub(crate) trait Lane: 'static {
    fn queue(closure: impl FnOnce() + 'static);
}

pub(crate) struct Immediates;
pub(crate) struct Ticks;
pub(crate) struct Microtasks;

impl Lane for Immediates {
    fn queue(closure: impl FnOnce() + 'static) {
        phaseloop::set_immediate(closure);
    }
}

impl Lane for Ticks {
    fn queue(closure: impl FnOnce() + 'static) {
        phaseloop::next_tick(closure);
    }
}

impl Lane for Microtasks {
    fn queue(closure: impl FnOnce() + 'static) {
        phaseloop_node::queue_microtask(closure);
    }
}

/// What does a closure cost that is queued and runs? Each batch of `at_once` is queued by the last
/// of the batch before; a batch of immediates is a turn of the loop.
pub(crate) fn closures<L: Lane>(rt: Phaseloop, at_once: u64, n: u64) -> Reading {
    rt.run(async move {
        let meter = Meter::start();
        let batches = Rc::new(Batches {
            at_once,
            left: Cell::new(n / at_once),
            ran: Cell::new(0),
            done: Slot::default(),
        });
        batches.clone().queue::<L>();
        batches.done.receive().await;
        assert_eq!(batches.ran.get(), n - n / at_once);
        meter.stop()
    })
}

struct Batches {
    at_once: u64,
    left: Cell<u64>,
    /// Closures that ran and queued nothing.
    ran: Cell<u64>,
    done: Slot,
}

impl Batches {
    fn queue<L: Lane>(self: Rc<Self>) {
        if self.left.get() == 0 {
            return self.done.send();
        }
        self.left.set(self.left.get() - 1);
        for _ in 1..self.at_once {
            let batches = self.clone();
            L::queue(move || batches.ran.set(batches.ran.get() + 1));
        }
        L::queue(move || self.queue::<L>());
    }
}

/// What does it cost to let a whole turn pass, as a task?
pub(crate) fn yield_immediate(rt: Phaseloop, n: u64) -> Reading {
    rt.run(async move {
        let meter = Meter::start();
        for _ in 0..n {
            phaseloop::task::yield_now_immediate().await;
        }
        meter.stop()
    })
}

/// What does it cost to set one of Node's timers and to clear it?
pub(crate) fn set_timeout(n: u64) -> Reading {
    Phaseloop::default().run(async move {
        let meter = Meter::start();
        for _ in 0..n {
            phaseloop_node::clear_timeout(&phaseloop_node::set_timeout(100, || ()));
        }
        meter.stop()
    })
}
