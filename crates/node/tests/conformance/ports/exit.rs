//! 098–100, 102: the end of a program; arguments of callbacks.

use phaseloop_node::{Promise, next_tick, process, set_immediate, set_interval, set_timeout};

use crate::support::{block, log, say};

super::ports! {
    Virtual "098-before-exit" => before_exit,
    Virtual "099-exit-event" => exit_event,
    Virtual "100-process-exit-in-callback" => process_exit_in_callback,
    Virtual "102-callback-arguments" => callback_arguments,
}

async fn before_exit() {
    let mut n = 0;
    process::on_before_exit(move |_| {
        n += 1;
        log(format!("beforeExit{n}"));
        next_tick(move || log(format!("tick{n}")));
        Promise::resolved(()).then(move |()| log(format!("promise{n}")));
        if n == 1 {
            set_immediate(say("immediate"));
        }
        if n == 2 {
            set_timeout(1, say("timeout"));
        }
    });
    process::on_exit(|code| log(format!("exit-{code}")));
    log("main");
}

async fn exit_event() {
    process::on_exit(|_| {
        log("exit1");
        next_tick(say("no-tick"));
        set_immediate(say("no-immediate"));
        set_timeout(0, say("no-timeout"));
    });
    process::on_exit(|_| log("exit2"));
    set_immediate(say("immediate"));
}

async fn process_exit_in_callback() {
    process::on_exit(|code| log(format!("exit-{code}")));
    process::on_before_exit(|_| log("no-beforeExit"));
    set_timeout(1, || {
        log("t1");
        next_tick(say("no-tick"));
        Promise::resolved(()).then(|()| log("no-promise"));
        process::exit(0)
    });
    set_timeout(1, say("no-t2"));
    block(20);
}

/// What a closure captures is its arguments.
async fn callback_arguments() {
    let (x, y, z) = ("x", "y", "z");
    set_timeout(1, move || log(format!("timeout-{x}{y}")));
    set_interval(1, move |interval| {
        log(format!("interval-{z}"));
        interval.close();
    });
    set_immediate(say("immediate-direct"));
    set_timeout(1, say("timeout-direct"));
    block(20);
}
