//! 030–060, 910: timers.

use std::cell::RefCell;
use std::rc::Rc;

use phaseloop_node::worker_threads::Worker;
use phaseloop_node::{
    Delay, Promise, Timeout, TimeoutId, clear_interval, clear_timeout, clear_timeout_by_id,
    next_tick, process, queue_microtask, set_immediate, set_interval, set_timeout, set_timeout_mut,
    sleep,
};

use crate::support::{block, log, say};

super::ports! {
    Virtual "030-timeout-coercion" => timeout_coercion,
    Virtual "031-timeout-overflow" => timeout_overflow,
    Virtual "032-timers-by-expiry" => timers_by_expiry,
    Virtual "033-timers-list-batching" => timers_list_batching,
    Virtual "034-timers-stale-list-expiry" => timers_stale_list_expiry,
    Virtual "035-timers-list-rebuilt-when-emptied" => timers_list_rebuilt_when_emptied,
    Virtual "036-timer-start-is-live-clock" => timer_start_is_live_clock,
    Virtual "037-now-is-frozen-during-pass" => now_is_frozen_during_pass,
    Virtual "038-timer-added-in-callback" => timer_added_in_callback,
    Virtual "039-timers-phase-reentered" => timers_phase_reentered,
    Virtual "040-timers-phase-not-reentered" => timers_phase_not_reentered,
    Virtual "041-tick-between-two-timers" => tick_between_two_timers,
    Virtual "042-drain-between-lists" => drain_between_lists,
    Virtual "043-interval-counts-from-callback-start" => interval_counts_from_callback_start,
    Virtual "044-interval-does-not-catch-up" => interval_does_not_catch_up,
    Virtual "045-interval-behind-own-timeout" => interval_behind_own_timeout,
    Virtual "046-interval-cleared-inside" => interval_cleared_inside,
    Virtual "047-clear-later-timer-in-pass" => clear_later_timer_in_pass,
    Virtual "048-refresh-moves-to-tail" => refresh_moves_to_tail,
    Virtual "049-refresh-fired-timer" => refresh_fired_timer,
    Virtual "050-refresh-cleared-timer" => refresh_cleared_timer,
    Virtual "051-refresh-too-late" => refresh_too_late,
    Virtual "052-refresh-in-time" => refresh_in_time,
    Virtual "053-unref-timer-exits" => unref_timer_exits,
    Virtual "054-unref-timer-runs-while-alive" => unref_timer_runs_while_alive,
    Virtual "055-unref-due-timer-runs-with-alive-loop" => unref_due_timer_runs_with_alive_loop,
    Virtual "056-ref-after-unref" => ref_after_unref,
    Virtual "057-unref-list-survives-clear" => unref_list_survives_clear,
    Virtual "058-clear-by-number" => clear_by_number,
    Virtual "059-timeout-in-immediate" => timeout_in_immediate,
    Virtual "060-immediate-in-timer" => immediate_in_timer,
    Real "910-timeout-warnings" => timeout_warnings,
}

fn after(ms: u32, token: &'static str) -> Timeout {
    set_timeout(ms, move || log(token))
}

/// A variable that closures share, empty at first.
type Later = Rc<RefCell<Option<Timeout>>>;

/// Does something to the timer in the variable.
fn with(timeout: &Later, f: impl FnOnce(&Timeout)) {
    let timeout = timeout.borrow().clone();
    f(&timeout.expect("it is set by now"));
}

async fn timeout_coercion() {
    after(1, "one");
    after(0, "zero");
    set_timeout(-5, say("negative"));
    set_timeout(f64::NAN, say("nan"));
    // Rust has no missing arguments; JavaScript reads one as NaN.
    set_timeout(f64::NAN, say("missing"));
    set_timeout("soon", say("word"));
    set_timeout(0.5, say("half"));
    set_timeout(1.9, say("one-point-nine"));
    set_timeout("1", say("numeric-string"));
    after(1, "one-again");
    block(20);
}

async fn timeout_overflow() {
    process::on_warning(|_| ());
    after(300, "d300");
    after(1 << 31, "overflow");
    set_timeout(f64::INFINITY, say("infinite"));
    let longest = after((1 << 31) - 1, "never");
    set_timeout(600, move || {
        log("clear-max");
        clear_timeout(&longest);
    });
}

async fn timers_by_expiry() {
    after(300, "d300");
    after(100, "d100");
    after(200, "d200");
    after(1, "d1");
    block(400);
}

async fn timers_list_batching() {
    after(400, "a");
    block(150);
    after(400, "c");
    after(325, "d");
    block(500);
}

async fn timers_stale_list_expiry() {
    let a = after(400, "a");
    block(150);
    after(400, "c");
    after(325, "b");
    clear_timeout(&a);
    block(500);
}

async fn timers_list_rebuilt_when_emptied() {
    let a = after(400, "a");
    block(150);
    clear_timeout(&a);
    after(400, "c");
    after(325, "b");
    block(500);
}

async fn timer_start_is_live_clock() {
    set_immediate(|| {
        after(150, "first-150");
        block(100);
        after(100, "second-100");
    });
}

async fn now_is_frozen_during_pass() {
    set_timeout(1, || {
        log("t1");
        set_immediate(say("immediate"));
        block(300);
    });
    after(200, "t200");
    block(20);
}

async fn timer_added_in_callback() {
    set_timeout(1, || {
        log("a");
        after(1, "a.inner");
        set_immediate(say("immediate"));
        block(20);
    });
    after(1, "b");
    block(20);
}

async fn timers_phase_reentered() {
    set_timeout(1, || {
        log("t1");
        set_immediate(say("immediate"));
        next_tick(|| {
            log("tick");
            block(300);
            after(1000, "t1000");
        });
    });
    after(150, "t150");
    block(20);
}

async fn timers_phase_not_reentered() {
    set_timeout(1, || {
        log("t1");
        set_immediate(say("immediate"));
        next_tick(|| {
            log("tick");
            block(300);
        });
    });
    after(150, "t150");
    block(20);
}

async fn tick_between_two_timers() {
    set_timeout(0, || {
        log("timer1");
        next_tick(say("tick1"));
        Promise::resolved(()).then(|()| log("promise1"));
    });
    set_timeout(0, || {
        log("timer2");
        Promise::resolved(()).then(|()| log("promise2"));
        next_tick(say("tick2"));
    });
    block(20);
}

async fn drain_between_lists() {
    for ms in [1, 50, 100] {
        set_timeout(ms, move || {
            log(format!("t{ms}"));
            queue_microtask(move || {
                log(format!("m{ms}"));
                next_tick(move || log(format!("k{ms}")));
            });
        });
    }
    block(200);
}

async fn interval_counts_from_callback_start() {
    let mut n = 0;
    set_interval(400, move |interval| {
        n += 1;
        log(format!("interval{n}"));
        if n == 2 {
            clear_interval(interval);
        } else {
            block(250);
        }
    });
    after(925, "timeout");
}

async fn interval_does_not_catch_up() {
    let mut n = 0;
    set_interval(100, move |interval| {
        n += 1;
        log(format!("i{n}"));
        if n == 2 {
            clear_interval(interval);
        }
    });
    set_immediate(|| {
        block(450);
        log("unblocked");
        set_immediate(say("immediate"));
    });
    after(1200, "end");
}

async fn interval_behind_own_timeout() {
    let mut n = 0;
    set_interval(300, move |interval| {
        n += 1;
        log(format!("interval{n}"));
        if n == 2 {
            return clear_interval(interval);
        }
        block(150);
        after(300, "timeout");
    });
}

async fn interval_cleared_inside() {
    let mut n = 0;
    set_interval(1, move |interval| {
        n += 1;
        log(format!("i{n}"));
        next_tick(move || log(format!("k{n}")));
        if n == 3 {
            clear_interval(interval);
        }
    });
    set_immediate(|| block(5));
}

async fn clear_later_timer_in_pass() {
    let [b, c]: [Later; 2] = Default::default();
    let (kill_b, kill_c) = (b.clone(), c.clone());
    set_timeout(1, move || {
        log("a");
        with(&kill_b, clear_timeout);
        let kill_c = kill_c.clone();
        next_tick(move || with(&kill_c, clear_timeout));
    });
    *b.borrow_mut() = Some(after(1, "b"));
    *c.borrow_mut() = Some(after(1, "c"));
    after(1, "d");
    let e = after(50, "e");
    set_timeout(1, move || {
        log("f");
        clear_timeout(&e);
    });
    block(100);
}

async fn refresh_moves_to_tail() {
    let a = after(300, "a");
    after(300, "b");
    block(100);
    a.refresh();
    after(300, "c");
}

async fn refresh_fired_timer() {
    let mut n = 0;
    set_timeout_mut(20, move |a| {
        n += 1;
        log(format!("a{n}"));
        if n == 1 {
            a.refresh();
        }
    });
    let b = set_timeout_mut(20, |_| log("b"));
    set_timeout(300, move || {
        log("again");
        b.refresh();
    });
}

async fn refresh_cleared_timer() {
    let a = after(20, "a");
    clear_timeout(&a);
    a.refresh();
    after(100, "end");
}

async fn refresh_too_late() {
    let b = Later::default();
    let refreshed = b.clone();
    set_timeout(100, move || {
        log("a");
        let refreshed = refreshed.clone();
        next_tick(move || {
            log("refresh");
            with(&refreshed, |b| _ = b.refresh());
        });
    });
    *b.borrow_mut() = Some(after(100, "b"));
    after(500, "end");
    block(150);
}

async fn refresh_in_time() {
    let c = Later::default();
    let refreshed = c.clone();
    set_timeout(100, move || {
        log("a");
        with(&refreshed, |c| _ = c.refresh());
    });
    after(100, "b");
    *c.borrow_mut() = Some(after(100, "c"));
    after(150, "d");
    block(160);
}

async fn unref_timer_exits() {
    after(400, "never").unref();
    after(50, "kept");
    process::on_exit(|_| log("exit"));
}

async fn unref_timer_runs_while_alive() {
    after(1, "first");
    after(1, "unrefd").unref();
    after(1, "last");
    block(20);
}

async fn unref_due_timer_runs_with_alive_loop() {
    after(1, "unrefd").unref();
    set_immediate(say("immediate"));
    block(20);
    let mut is_first = true;
    process::on_before_exit(move |_| {
        if std::mem::take(&mut is_first) {
            log("beforeExit");
            after(1, "never").unref();
            block(20);
        }
    });
}

async fn ref_after_unref() {
    let t = after(50, "t");
    t.unref().unref();
    log(t.has_ref().to_string());
    t.ref_().ref_();
    log(t.has_ref().to_string());
}

async fn unref_list_survives_clear() {
    let u = after(400, "u");
    u.unref();
    block(150);
    clear_timeout(&u);
    after(400, "c");
    after(325, "b");
    block(500);
}

async fn clear_by_number() {
    let a = after(20, "a");
    let b = set_interval(20, |_| log("b"));
    clear_timeout_by_id(a.id());
    let number: TimeoutId = b.id().to_string().parse().expect("it is a number");
    clear_timeout_by_id(number);
    if let Ok(unknown) = "987654321".parse() {
        clear_timeout_by_id(unknown);
    }
    after(80, "end");
}

async fn timeout_in_immediate() {
    set_immediate(|| {
        log("i1");
        set_immediate(say("i2"));
        after(1, "t");
        block(20);
    });
}

async fn immediate_in_timer() {
    set_timeout(1, || {
        log("t1");
        after(1, "t2");
        set_immediate(say("i"));
        block(20);
    });
}

async fn timeout_warnings() {
    process::on_warning(|warning| log(warning.to_string().replace('\n', " / ")));
    let fine: [Delay; 7] = [
        0.into(),
        (-0.0).into(),
        0.5.into(),
        1.into(),
        "".into(),
        " 7 ".into(),
        i32::MAX.into(),
    ];
    for delay in fine {
        clear_timeout(&set_timeout(delay, || ()));
    }
    for delay in [-7.5, -1.0, f64::NEG_INFINITY] {
        set_timeout(delay, || ());
    }
    set_timeout("soon", || ());
    set_timeout(f64::NAN, || ());
    for delay in [
        2_147_483_648.0,
        2_147_483_648.5,
        1e21,
        1.5e300,
        f64::INFINITY,
    ] {
        set_timeout(delay, || ());
    }
    clear_interval(&set_interval(-3, |_| ()));
    clear_interval(&set_interval(1_u64 << 40, |_| ()));
    sleep(1_u64 << 41).await.unwrap();
    sleep(-4).await.unwrap();
    let worker = Worker::<(), String>::new(|parent_port| async move {
        process::on_warning(move |warning| {
            let text = warning.text().replace('\n', " / ");
            parent_port.post_message(text);
        });
        set_timeout(-1e-7, || ());
        set_timeout(-2, || ());
        set_timeout("late", || ());
    });
    worker
        .unwrap()
        .on_message(|text| log(format!("worker: {text}")));
}
