//! 013–028: how many microtasks promises and async functions take.

use phaseloop_node::{
    Deferred, Promise, Reason, all, all_settled, any, call, call_returning, next_tick,
    queue_microtask, race, set_immediate, thenable,
};

use crate::support::{log, say};

super::ports! {
    Virtual "013-then-chains-interleave" => then_chains_interleave,
    Virtual "014-await-costs-one-tick" => await_costs_one_tick,
    Virtual "015-await-pending-promise" => await_pending_promise,
    Virtual "016-await-thenable" => await_thenable,
    Virtual "017-async-return-promise" => async_return_promise,
    Virtual "018-then-returns-promise" => then_returns_promise,
    Virtual "019-await-nested-async" => await_nested_async,
    Virtual "020-promise-all-ticks" => promise_all_ticks,
    Virtual "021-promise-race-any-settled" => promise_race_any_settled,
    Virtual "022-reactions-in-registration-order" => reactions_in_registration_order,
    Virtual "023-finally-ticks" => finally_ticks,
    Virtual "024-rejection-ticks" => rejection_ticks,
    Virtual "025-for-await" => for_await,
    Virtual "026-async-generator" => async_generator,
    Virtual "027-async-runs-synchronously-first" => async_runs_synchronously_first,
    Virtual "028-resolve-with-promise" => resolve_with_promise,
}

fn resolved() -> Promise<()> {
    Promise::resolved(())
}

fn rejected(message: &'static str) -> Promise<()> {
    Promise::rejected(Reason::new(message))
}

/// `await null`.
async fn one_tick() {
    resolved().await.expect("it is fulfilled");
}

/// A chain of plain links to measure by: `c1`, `c2`, …
fn measure(links: u32) {
    let mut chain = resolved();
    for link in 1..=links {
        chain = chain.then(move |()| log(format!("c{link}")));
    }
}

async fn then_chains_interleave() {
    let (mut a, mut b) = (resolved(), resolved());
    for link in 1..=4 {
        a = a.then(move |()| log(format!("a{link}")));
        b = b.then(move |()| log(format!("b{link}")));
    }
}

async fn await_costs_one_tick() {
    for (count, tag) in [(3, "v"), (2, "p")] {
        call(async move {
            for n in 1..=count {
                one_tick().await;
                log(format!("{tag}{n}"));
            }
        });
    }
    measure(4);
}

async fn await_pending_promise() {
    let gate = Deferred::new();
    let (first, second) = (gate.promise(), gate.promise());
    call(async move {
        first.await.expect("it opens");
        log("w1");
    });
    call(async move {
        second.await.expect("it opens");
        log("w2");
        one_tick().await;
        log("w2b");
    });
    set_immediate(move || {
        log("open");
        queue_microtask(say("before"));
        gate.resolve(());
        queue_microtask(say("after"));
        next_tick(say("tick"));
    });
}

async fn await_thenable() {
    call(async {
        let thenable = thenable(|deferred| {
            log("then-called");
            deferred.resolve(());
        });
        thenable.await.expect("it is fulfilled");
        log("thenable");
    });
    measure(3);
}

async fn async_return_promise() {
    let plain = || call(async { 1 });
    let wrapped = || call_returning(async { Promise::resolved(1) });
    plain().then(|_| log("plain"));
    wrapped().then(|_| log("wrapped"));
    call(async move {
        wrapped().await.expect("it is fulfilled");
        log("awaited-wrapped");
    });
    measure(5);
}

async fn then_returns_promise() {
    let first = resolved().and_then(|()| {
        log("x1");
        resolved()
    });
    first.then(|()| log("x2"));
    measure(6);
}

async fn await_nested_async() {
    fn level(name: &'static str, inner: fn() -> Promise<()>) -> Promise<()> {
        call(async move {
            log(name);
            inner().await.expect("it is fulfilled");
            log(format!("{name}.1"));
        })
    }
    fn leaf() -> Promise<()> {
        level("leaf", resolved)
    }
    fn middle() -> Promise<()> {
        level("mid", leaf)
    }
    level("top", middle);
    log("sync");
    measure(4);
}

async fn promise_all_ticks() {
    all(Vec::<Promise<()>>::new()).then(|_| log("all0"));
    all([resolved(), resolved()]).then(|_| log("all2"));
    call(async {
        let all = all([call(one_tick()), resolved()]);
        all.await.expect("all are fulfilled");
        log("all-async");
    });
    measure(5);
}

async fn promise_race_any_settled() {
    let never = Deferred::<()>::new();
    race([never.promise(), resolved()]).then(|()| log("race"));
    any([rejected("no"), resolved()]).then(|()| log("any"));
    all_settled([rejected("no"), resolved()]).then(|_| log("settled"));
    measure(4);
}

async fn reactions_in_registration_order() {
    let deferred = Deferred::new();
    let promise = deferred.promise();
    promise.then(|()| log("r1"));
    let awaited = promise.clone();
    call(async move {
        awaited.await.expect("it is fulfilled");
        log("r2");
    });
    let again = promise.clone();
    promise.then(move |()| {
        log("r3");
        next_tick(say("tick"));
        again.then(|()| log("late"));
    });
    promise.finally(say("r4"));
    deferred.resolve(());
    log("sync");
}

async fn finally_ticks() {
    resolved().finally(say("f")).then(|()| log("after-f"));
    resolved().then(|()| log("t")).then(|()| log("after-t"));
    measure(6);
}

async fn rejection_ticks() {
    let passed = rejected("x").then(|()| ()).then(|()| ());
    passed.catch(|_| log("caught-at-3"));
    call(async {
        if rejected("y").await.is_err() {
            log("try-catch-at-1");
        }
    });
    measure(4);
}

/// Rust has no `for await`; what it costs is a reaction that unwraps the value, then an `await`,
/// for each element and for the end.
async fn for_await() {
    fn next(value: Option<u32>) -> Promise<Option<u32>> {
        Promise::resolved(value).then(|value| value)
    }
    for tag in ["v", "p"] {
        call(async move {
            let mut elements = [1, 2].into_iter();
            while let Some(n) = next(elements.next()).await.expect("it is fulfilled") {
                log(format!("{tag}{n}"));
            }
            log(format!("{tag}-end"));
        });
    }
    measure(10);
}

/// Rust has no async generators. Asked for the next value, one runs at once up to its `yield`,
/// which awaits the value before it hands it out; at its end it waits for nothing.
async fn async_generator() {
    fn next(step: u32) -> Promise<Option<u32>> {
        let yields = |value| Promise::resolved(Some(value)).then(|value| value);
        match step {
            0 => {
                log("g-start");
                yields(1)
            }
            1 => {
                log("g-mid");
                yields(2)
            }
            _ => {
                log("g-end");
                Promise::resolved(None)
            }
        }
    }
    call(async {
        let mut step = 0;
        while let Some(x) = next(step).await.expect("it is fulfilled") {
            log(format!("x{x}"));
            step += 1;
        }
        log("done");
    });
    measure(10);
}

async fn async_runs_synchronously_first() {
    log("1");
    let promise = call(async {
        log("2");
        one_tick().await;
        log("6");
    });
    promise.then(|()| log("7"));
    Promise::new(|deferred| {
        log("3");
        deferred.resolve(());
        log("4");
    });
    log("5");
}

async fn resolve_with_promise() {
    Promise::new(|deferred: Deferred<()>| deferred.adopt(&resolved())).then(|()| log("adopted"));
    Promise::new(|deferred: Deferred<()>| deferred.resolve(())).then(|()| log("direct"));
    measure(4);
}
