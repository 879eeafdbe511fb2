//! What only a phase loop has: immediates and ticks.

use std::rc::Rc;

use super::tasks::Slot;
use crate::meter::{Meter, Reading};
use crate::runtime::Runtime;
use crate::runtime::phaseloop::Phaseloop;

/// What does a whole turn of the loop cost that runs one immediate?
pub(crate) fn immediates(n: u64) -> Reading {
    fn again(left: u64, done: Rc<Slot>) {
        if left == 0 {
            done.send();
        } else {
            phaseloop::set_immediate(move || again(left - 1, done));
        }
    }
    chain(n, again)
}

/// What does one tick cost?
pub(crate) fn next_tick(n: u64) -> Reading {
    fn again(left: u64, done: Rc<Slot>) {
        if left == 0 {
            done.send();
        } else {
            phaseloop::next_tick(move || again(left - 1, done));
        }
    }
    chain(n, again)
}

fn chain(n: u64, again: fn(u64, Rc<Slot>)) -> Reading {
    Phaseloop::default().run(async move {
        let meter = Meter::start();
        let done = Rc::new(Slot::default());
        again(n, done.clone());
        done.receive().await;
        meter.stop()
    })
}

/// What does it cost to let a whole turn pass, as a task?
pub(crate) fn yield_immediate(n: u64) -> Reading {
    Phaseloop::default().run(async move {
        let meter = Meter::start();
        for _ in 0..n {
            phaseloop::task::yield_now_immediate().await;
        }
        meter.stop()
    })
}
