//! 001–012, 029: ticks and microtasks.

#[cfg(unix)]
use phaseloop::net::{UnixListener, UnixStream};
use phaseloop_node::events::{Event, EventEmitter};
use phaseloop_node::{
    Promise, call, in_callbacks, next_tick, queue_microtask, set_immediate, set_timeout,
};

use crate::support::{block, fs_op, log, say, scratch};

super::ports! {
    Virtual "001-main-order" => main_order,
    Virtual "002-tick-before-promise" => tick_before_promise,
    Virtual "003-tick-queued-by-microtask" => tick_queued_by_microtask,
    Virtual "004-microtask-queued-by-tick" => microtask_queued_by_tick,
    Virtual "005-tick-microtask-pingpong" => tick_microtask_pingpong,
    Virtual "006-nested-ticks" => nested_ticks,
    Virtual "007-one-microtask-queue" => one_microtask_queue,
    Real "008-tick-recursion-starves-loop" => tick_recursion_starves_loop,
    Virtual "009-microtask-recursion-starves-loop" => microtask_recursion_starves_loop,
    Virtual "010-lanes-after-await" => lanes_after_await,
    Virtual "011-tick-arguments" => tick_arguments,
    Virtual "012-no-drain-on-nested-calls" => no_drain_on_nested_calls,
    #[cfg(unix)]
    Real "029-microtask-in-every-callback-kind" => microtask_in_every_callback_kind,
}

/// `Promise.resolve().then(f)`.
fn then(f: impl FnOnce() + 'static) {
    Promise::resolved(()).then(|()| f());
}

async fn main_order() {
    set_timeout(0, say("timeout"));
    set_immediate(say("immediate"));
    then(say("promise"));
    next_tick(say("tick"));
    queue_microtask(say("microtask"));
    log("sync");
    block(20);
}

async fn tick_before_promise() {
    then(say("p1"));
    next_tick(say("t1"));
    then(say("p2"));
    next_tick(say("t2"));
}

async fn tick_queued_by_microtask() {
    queue_microtask(|| {
        log("m1");
        next_tick(say("t-from-m1"));
        queue_microtask(say("m-from-m1"));
    });
    queue_microtask(say("m2"));
}

async fn microtask_queued_by_tick() {
    next_tick(|| {
        log("t1");
        queue_microtask(say("m-from-t1"));
        next_tick(say("t-from-t1"));
    });
    next_tick(say("t2"));
}

async fn tick_microtask_pingpong() {
    fn round(n: u32) {
        next_tick(move || {
            log(format!("tick{n}"));
            then(move || {
                log(format!("micro{n}"));
                if n < 4 {
                    round(n + 1);
                }
            });
        });
    }
    set_immediate(say("immediate"));
    round(1);
}

async fn nested_ticks() {
    queue_microtask(say("micro"));
    next_tick(|| {
        log("a");
        next_tick(|| {
            log("a.a");
            next_tick(say("a.a.a"));
        });
        next_tick(say("a.b"));
    });
    next_tick(say("b"));
}

async fn one_microtask_queue() {
    queue_microtask(say("q1"));
    then(say("p1"));
    call(async {
        let _ = Promise::resolved(()).await;
        log("a1");
    });
    queue_microtask(say("q2"));
    then(say("p2"));
}

async fn tick_recursion_starves_loop() {
    fn again(n: u32) {
        let n = n + 1;
        if n <= 1000 {
            return next_tick(move || again(n));
        }
        log(format!("ticks-done-{n}"));
    }
    set_timeout(1, say("timer"));
    set_immediate(say("immediate"));
    fs_op(say("fs"));
    again(0);
    block(5);
}

async fn microtask_recursion_starves_loop() {
    fn again(n: u32) {
        if n == 0 {
            next_tick(say("tick"));
        }
        let n = n + 1;
        if n < 1000 {
            return queue_microtask(move || again(n));
        }
        log(format!("microtasks-done-{n}"));
    }
    set_immediate(say("immediate"));
    queue_microtask(|| again(0));
}

async fn lanes_after_await() {
    call(async {
        log("before");
        next_tick(say("tick-early"));
        let _ = Promise::resolved(()).await;
        log("after");
        next_tick(say("tick"));
        then(say("micro"));
    });
}

/// What a closure captures is its arguments.
async fn tick_arguments() {
    let one = 1;
    next_tick(move || log(format!("one-{one}")));
    let five = [1, 2, 3, 4, 5].map(|n| n.to_string()).concat();
    next_tick(move || log(format!("five-{five}")));
    let argument = "direct";
    next_tick(move || log(argument));
}

async fn no_drain_on_nested_calls() {
    const X: Event<()> = Event::new("x");
    let emitter = EventEmitter::new();
    emitter.on(X, |()| {
        log("l1");
        next_tick(say("l1.tick"));
        then(say("l1.micro"));
    });
    emitter.on(X, |()| {
        log("l2");
        next_tick(say("l2.tick"));
    });
    set_immediate(move || {
        emitter.emit(X, ());
        log("emitted");
    });
}

#[cfg(unix)]
async fn microtask_in_every_callback_kind() {
    fn lanes(tag: &'static str) {
        log(tag);
        then(move || log(format!("{tag}.promise")));
        next_tick(move || log(format!("{tag}.tick")));
    }
    let name = scratch("s");
    let server = UnixListener::bind(&*name).expect("the name is free");
    in_callbacks(async move {
        let (connection, _) = server.accept().await.expect("there is a client");
        server.close().then(|| ());
        connection.close_now().then(|| lanes("close"));
        set_immediate(|| lanes("immediate"));
        set_timeout(1, || lanes("timer"));
        block(10);
        fs_op(|| lanes("io"));
    });
    in_callbacks(async move {
        let client = UnixStream::connect(&*name).await;
        drop(client.expect("there is a server"));
    });
}
