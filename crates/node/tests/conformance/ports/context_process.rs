//! 617: stores of the process's events, of aborts, and of what a microtask queues.

use phaseloop_node::{
    AbortController, Promise, next_tick, process, queue_microtask, set_immediate, set_timeout,
    throw,
};

use super::contexts::{at, enter, exit, run, sees};

super::ports! {
    Virtual "617-context-process" => events,
}

async fn events() {
    run("w", || {
        process::on_warning(|w| at(format!("warning-{}", w.text())))
    });
    run("x", || process::emit_warning("Warning", "one"));
    run("b", || process::on_before_exit(|_| at("before")));
    run("e", || process::on_exit(|code| at(format!("exit-{code}"))));
    run("mon", || {
        process::on_uncaught_exception_monitor(|e, _| at(format!("monitor-{e}")))
    });
    run("u", || {
        process::once_uncaught_exception(|e, _| {
            at(format!("uncaught-{e}"));
            enter("after-uncaught");
            set_immediate(sees("im"));
            next_tick(sees("tk"));
        })
    });
    run("t", || {
        set_timeout(10, || {
            run("deep", || {
                enter("deeper");
                throw("t")
            })
        })
    });
    run("s", || {
        set_timeout(200, || {
            at("s");
            let c = AbortController::new();
            run("l", || {
                c.signal().on_abort(|| {
                    at("abort");
                    enter("in-abort");
                })
            });
            run("a", || {
                c.abort();
                at("aborted");
            });
            at("s-end");
        })
    });
    run("q", || {
        set_timeout(300, || {
            queue_microtask(|| {
                at("micro");
                enter("micro2");
                next_tick(sees("tick-of-micro"));
                Promise::resolved(()).then(|()| at("then-of-micro"));
            });
            exit(|| queue_microtask(sees("micro-exit")));
        })
    });
    run("k", || set_timeout(400, || process::set_exit_code(3)));
}
