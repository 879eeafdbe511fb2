//! 120–125: timers and immediates that are awaited, signals that time out.

use futures::StreamExt;
use phaseloop_node::timers::promises::{self, Options, scheduler, set_timeout_with};
use phaseloop_node::{
    AbortController, AbortSignal, Error, Promise, all, call, next_tick, race, set_immediate,
    set_timeout,
};

use std::cell::Cell;
use std::rc::Rc;

use crate::support::{block, log, say};

super::ports! {
    Virtual "120-sleep-and-timeout" => sleep_and_timeout,
    Virtual "121-sleep-sequence" => sleep_sequence,
    Virtual "122-sleep-aborted" => sleep_aborted,
    Virtual "123-abort-signal-timeout" => abort_signal_timeout,
    Virtual "124-promise-interval" => promise_interval,
    Virtual "125-scheduler-yield" => scheduler_yield,
}

fn sleep(delay: u32) -> Promise<()> {
    promises::set_timeout(delay, ())
}

async fn sleep_and_timeout() {
    set_timeout(1, say("t1"));
    call(async {
        sleep(1).await.unwrap();
        log("slept");
        next_tick(say("tick"));
        Promise::resolved(()).await.unwrap();
        log("slept2");
    });
    set_timeout(1, say("t2"));
    block(20);
}

async fn sleep_sequence() {
    call(async {
        for i in 1..=3 {
            sleep(200).await.unwrap();
            log(format!("seq{i}"));
        }
    });
    call(async {
        all([sleep(100), sleep(300), sleep(10)]).await.unwrap();
        log("par");
    });
    call(async {
        let both = [(500, "slow"), (50, "fast")];
        let first = race(both.map(|(delay, value)| promises::set_timeout(delay, value)));
        log(format!("race-{}", first.await.unwrap()));
    });
}

async fn sleep_aborted() {
    let ac = AbortController::new();
    let options = Options::new().signal(&ac.signal());
    call(async move {
        match set_timeout_with(60_000, (), &options).await {
            Ok(()) => log("no"),
            Err(reason) => {
                let error = reason.error().and_then(|error| error.downcast_ref());
                log(error.map_or("?", Error::name));
            }
        }
    });
    set_immediate(move || {
        log("abort");
        ac.abort();
        next_tick(say("tick"));
        set_immediate(say("immediate"));
    });
}

async fn abort_signal_timeout() {
    set_timeout(50, say("t1"));
    let s = AbortSignal::timeout(50);
    let this = s.clone();
    s.on_abort(move || {
        log(format!("abort-{}", this.reason().unwrap().name()));
        next_tick(say("tick"));
    });
    set_timeout(50, say("t2"));
    set_immediate(say("immediate"));
    let never = AbortSignal::timeout(60_000);
    never.on_abort(say("no"));
    block(100);
}

async fn promise_interval() {
    call(async {
        let n = Rc::new(Cell::new(0));
        let mut every = promises::set_interval(20, "x");
        while let Some(Ok(v)) = every.next().await {
            n.set(n.get() + 1);
            log(format!("{v}{}", n.get()));
            let n_then = n.clone();
            next_tick(move || log(format!("tick{}", n_then.get())));
            if n.get() == 3 {
                break;
            }
        }
        log("end");
    });
}

async fn scheduler_yield() {
    set_immediate(say("i1"));
    call(async {
        scheduler::yield_now().await.unwrap();
        log("y1");
        scheduler::yield_now().await.unwrap();
        log("y2");
    });
    set_immediate(|| {
        log("i2");
        set_immediate(say("i3"));
    });
}
