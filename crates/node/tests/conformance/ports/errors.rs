//! 085–097, 101: uncaught exceptions and unhandled rejections.

use phaseloop_node::{
    Promise, Reason, call, next_tick, process, queue_microtask, set_immediate, set_interval,
    set_timeout, throw,
};

use crate::support::{block, fs_op, log, say};

super::ports! {
    Virtual "085-timer-throws" => timer_throws,
    Virtual "086-last-timer-of-list-throws" => last_timer_of_list_throws,
    Virtual "087-tick-throws" => tick_throws,
    Virtual "088-tick-throws-before-check" => tick_throws_before_check,
    Virtual "089-microtask-throws" => microtask_throws,
    Virtual "090-immediate-throws" => immediate_throws,
    Virtual "091-last-immediate-throws" => last_immediate_throws,
    Real "092-fs-callback-throws" => fs_callback_throws,
    Virtual "093-main-throws" => main_throws,
    Virtual "094-interval-throws" => interval_throws,
    Virtual "095-unhandled-rejection" => unhandled_rejection,
    Virtual "096-rejection-handled-late" => rejection_handled_late,
    Virtual "097-unhandled-rejection-becomes-uncaught" => unhandled_rejection_becomes_uncaught,
    Virtual "101-uncaught-adds-a-turn" => uncaught_adds_a_turn,
}

/// Logs what is uncaught.
fn catch_all() {
    process::on_uncaught_exception(|error, _| log(format!("caught-{error}")));
}

fn after(ms: u32, token: &'static str) {
    set_timeout(ms, move || log(token));
}

async fn timer_throws() {
    catch_all();
    set_timeout(1, || {
        log("a");
        next_tick(say("a.tick"));
        Promise::resolved(()).then(|()| log("a.promise"));
        throw("a")
    });
    set_timeout(1, || {
        log("b");
        next_tick(say("b.tick"));
    });
    after(1, "c");
    block(20);
}

async fn last_timer_of_list_throws() {
    catch_all();
    set_timeout(1, || {
        log("a");
        next_tick(say("a.tick"));
        throw("a")
    });
    after(50, "b");
    after(50, "c");
    block(100);
}

async fn tick_throws() {
    catch_all();
    next_tick(|| {
        log("k1");
        throw("k1")
    });
    next_tick(say("k2"));
    queue_microtask(say("m"));
    after(1, "t1");
    after(1, "t2");
    set_immediate(say("i"));
    block(20);
}

async fn tick_throws_before_check() {
    catch_all();
    next_tick(|| {
        log("k1");
        throw("k1")
    });
    next_tick(say("k2"));
    queue_microtask(say("m"));
    set_immediate(say("i"));
}

async fn microtask_throws() {
    catch_all();
    queue_microtask(|| {
        log("m1");
        queue_microtask(say("m1.m"));
        throw("m1")
    });
    queue_microtask(|| {
        log("m2");
        next_tick(say("m2.tick"));
    });
    queue_microtask(say("m3"));
}

async fn immediate_throws() {
    catch_all();
    set_immediate(|| {
        log("a");
        next_tick(say("a.tick"));
        set_immediate(say("next"));
        throw("a")
    });
    set_immediate(|| {
        log("b");
        next_tick(say("b.tick"));
    });
    set_immediate(say("c"));
}

async fn last_immediate_throws() {
    catch_all();
    set_immediate(|| {
        log("a");
        set_immediate(say("next1"));
    });
    set_immediate(|| {
        log("b");
        set_immediate(|| {
            log("next2");
            set_immediate(say("later"));
        });
        after(1, "timer");
        block(20);
        throw("b")
    });
}

async fn fs_callback_throws() {
    catch_all();
    fs_op(|| {
        log("f1");
        next_tick(say("f1.tick"));
        throw("f1")
    });
    fs_op(|| {
        log("f2");
        next_tick(say("f2.tick"));
    });
    set_immediate(say("immediate"));
}

async fn main_throws() {
    catch_all();
    next_tick(say("tick"));
    Promise::resolved(()).then(|()| log("promise"));
    after(1, "timer");
    set_immediate(say("immediate"));
    block(20);
    throw("main")
}

async fn interval_throws() {
    catch_all();
    let mut n = 0;
    set_interval(5, move |interval| {
        n += 1;
        log(format!("i{n}"));
        if n == 3 {
            interval.close();
        }
        throw(n.to_string())
    });
}

async fn unhandled_rejection() {
    process::on_unhandled_rejection(|reason| {
        log(format!("unhandled-{reason}"));
        let token = format!("tick-after-{reason}");
        next_tick(move || log(token));
    });
    set_immediate(|| {
        Promise::<()>::rejected(Reason::new("1"));
        let late = Promise::<()>::rejected(Reason::new("handled-in-time"));
        next_tick(move || {
            log("tick");
            late.catch(|_| log("late"));
        });
        call(async {
            if true {
                throw("2");
            }
        });
        queue_microtask(say("micro"));
    });
    set_immediate(say("next-immediate"));
}

async fn rejection_handled_late() {
    process::on_unhandled_rejection(|_| log("unhandled"));
    process::on_rejection_handled(|_| log("handled"));
    let promise = Promise::<()>::rejected(Reason::new("x"));
    set_immediate(move || {
        promise.catch(|_| log("catch"));
        next_tick(say("tick"));
        set_immediate(say("end"));
    });
}

async fn unhandled_rejection_becomes_uncaught() {
    process::on_uncaught_exception(|error, origin| log(format!("{error}-{origin}")));
    Promise::<()>::rejected(Reason::new("a"));
    next_tick(say("tick"));
    queue_microtask(say("micro"));
    set_immediate(say("immediate"));
}

async fn uncaught_adds_a_turn() {
    process::on_uncaught_exception(|_, _| log("caught"));
    set_timeout(1, say("unrefd")).unref();
    next_tick(|| {
        block(20);
        throw("x")
    });
}
