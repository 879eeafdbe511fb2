//! 070–076: files.

use std::path::PathBuf;

use phaseloop_node::{Promise, call, next_tick, set_immediate, set_timeout};

use crate::support::{block, fs_op, log, read_file, say};

super::ports! {
    Real "070-readfile-timeout-immediate" => readfile_timeout_immediate,
    Real "071-readfile-full-mix" => readfile_full_mix,
    Real "072-readfile-after-immediate" => readfile_after_immediate,
    Real "073-fs-callbacks-drain-between" => fs_callbacks_drain_between,
    Real "074-poll-before-check" => poll_before_check,
    Real "075-fs-started-in-poll" => fs_started_in_poll,
    Real "076-fs-await-and-callback" => fs_await_and_callback,
}

/// `__filename`.
fn this_file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/ports/io.rs")
}

fn then(token: &'static str) {
    Promise::resolved(()).then(move |()| log(token));
}

async fn readfile_timeout_immediate() {
    read_file(this_file(), |_| {
        log("read");
        set_timeout(0, say("timeout"));
        set_immediate(say("immediate"));
        block(20);
    });
}

async fn readfile_full_mix() {
    read_file(this_file(), |_| {
        call(async {
            log("read");
            set_timeout(0, say("timeout"));
            set_immediate(|| {
                log("immediate");
                next_tick(say("tick2"));
            });
            then("promise");
            next_tick(say("tick1"));
            block(20);
            Promise::resolved(()).await.expect("it is fulfilled");
            log("awaited");
        });
    });
}

async fn readfile_after_immediate() {
    read_file(this_file(), |_| log("read"));
    set_immediate(say("immediate"));
}

async fn fs_callbacks_drain_between() {
    fs_op(|| {
        log("fs1");
        next_tick(say("tick1"));
        then("micro1");
        set_immediate(say("imm1"));
    });
    fs_op(|| {
        log("fs2");
        next_tick(say("tick2"));
    });
    fs_op(|| {
        log("fs3");
        set_immediate(say("imm3"));
    });
    set_immediate(say("imm0"));
}

async fn poll_before_check() {
    set_immediate(say("immediate"));
    fs_op(say("fs"));
    set_timeout(1, say("timeout"));
    block(5);
}

async fn fs_started_in_poll() {
    fs_op(|| {
        log("fs1");
        fs_op(say("fs2"));
        set_immediate(say("immediate"));
    });
}

async fn fs_await_and_callback() {
    fn operation() -> Promise<()> {
        Promise::new(|deferred| fs_op(move || deferred.resolve(())))
    }
    call(async {
        operation().await.expect("it ends");
        log("a1");
        next_tick(say("tick"));
        set_immediate(say("immediate"));
        operation().await.expect("it ends");
        log("a2");
    });
    fs_op(say("cb"));
}
