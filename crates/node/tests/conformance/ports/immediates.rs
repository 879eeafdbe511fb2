//! 061–069: immediates.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use phaseloop_node::{
    Immediate, Promise, call, clear_immediate, clear_timeout, next_tick, process, set_immediate,
    set_timeout,
};

use crate::support::{block, log, say};

super::ports! {
    Virtual "061-immediate-queued-in-immediate" => immediate_queued_in_immediate,
    Virtual "062-tick-between-two-immediates" => tick_between_two_immediates,
    Virtual "063-clear-immediate-in-batch" => clear_immediate_in_batch,
    Virtual "064-clear-immediate-next-batch" => clear_immediate_next_batch,
    Virtual "065-unref-immediate-alone" => unref_immediate_alone,
    Virtual "066-unref-immediate-in-company" => unref_immediate_in_company,
    Virtual "067-immediate-await-loop" => immediate_await_loop,
    Virtual "068-immediates-and-timers-rounds" => immediates_and_timers_rounds,
    Virtual "069-empty-loop-order" => empty_loop_order,
}

/// A variable that closures share, empty at first.
type Later = Rc<RefCell<Option<Immediate>>>;

fn clear(immediate: &Later) {
    if let Some(immediate) = &*immediate.borrow() {
        clear_immediate(immediate);
    }
}

async fn immediate_queued_in_immediate() {
    set_immediate(|| {
        log("a");
        set_immediate(|| {
            log("a.a");
            set_immediate(say("a.a.a"));
        });
    });
    set_immediate(|| {
        log("b");
        set_immediate(say("b.a"));
    });
    set_immediate(say("c"));
}

async fn tick_between_two_immediates() {
    set_immediate(|| {
        log("immediate1");
        Promise::resolved(()).then(|()| log("promise1"));
        next_tick(say("tick1"));
    });
    set_immediate(|| {
        log("immediate2");
        next_tick(|| {
            log("tick2");
            set_immediate(say("next"));
        });
    });
    set_immediate(say("immediate3"));
}

async fn clear_immediate_in_batch() {
    let [b, c, d]: [Later; 3] = Default::default();
    let (kill_b, kill_c, kill_d) = (b.clone(), c.clone(), d.clone());
    set_immediate(move || {
        log("a");
        clear(&kill_b);
        next_tick(move || clear(&kill_c));
    });
    *b.borrow_mut() = Some(set_immediate(say("b")));
    *c.borrow_mut() = Some(set_immediate(say("c")));
    *d.borrow_mut() = Some(set_immediate(move || {
        log("d");
        clear(&kill_d);
    }));
    set_immediate(say("e"));
}

async fn clear_immediate_next_batch() {
    let later = Later::default();
    let kill = later.clone();
    set_immediate(move || {
        log("a");
        *later.borrow_mut() = Some(set_immediate(say("never")));
    });
    set_immediate(move || {
        log("b");
        clear(&kill);
        set_immediate(say("c"));
    });
}

async fn unref_immediate_alone() {
    set_immediate(say("never")).unref();
    process::on_exit(|_| log("exit"));
}

async fn unref_immediate_in_company() {
    set_immediate(say("unrefd")).unref();
    set_immediate(say("refd"));
}

async fn immediate_await_loop() {
    /// `setImmediate` of `timers/promises`.
    fn turn() -> Promise<()> {
        Promise::new(|deferred| {
            set_immediate(move || deferred.resolve(()));
        })
    }
    for tag in ["a", "b"] {
        call(async move {
            for n in 1..=3 {
                turn().await.expect("it is fulfilled");
                log(format!("{tag}{n}"));
            }
        });
    }
    set_immediate(|| {
        log("c1");
        set_immediate(|| {
            log("c2");
            set_immediate(say("c3"));
        });
    });
}

async fn immediates_and_timers_rounds() {
    fn turn(n: u32) {
        set_immediate(move || {
            log(format!("i{n}"));
            if n < 3 {
                turn(n + 1);
            }
            set_timeout(1, move || {
                log(format!("t{n}"));
                next_tick(move || log(format!("k{n}")));
            });
            block(10);
        });
    }
    turn(1);
}

async fn empty_loop_order() {
    let long = Cell::new(Some(set_timeout(60_000, say("no"))));
    set_immediate(move || {
        log("i1");
        set_immediate(move || {
            log("i2");
            if let Some(long) = long.take() {
                clear_timeout(&long);
            }
            set_timeout(50, say("t50"));
        });
    });
}
