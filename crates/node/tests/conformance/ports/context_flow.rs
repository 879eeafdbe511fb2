//! 500, 501, 503, 504 and 511–514: contexts through promises, timers, events and errors.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;

use futures::{FutureExt as _, StreamExt as _};
use phaseloop_node::async_hooks::{AsyncLocalStorage, AsyncResource};
use phaseloop_node::events::{
    ERROR, Event, EventEmitter, EventEmitterAsyncResource, NEW_LISTENER, on, once,
};
use phaseloop_node::process;
use phaseloop_node::timers::promises::{self, Options, scheduler};
use phaseloop_node::{
    AbortController, AbortSignal, AsyncGenerator, Deferred, Emitter, Error, Promise, Reason, all,
    all_settled, any, async_generator, call, catch, next_tick, race, set_immediate, set_timeout,
    thenable, throw, try_call,
};

use super::contexts::{als, at, enter, exit, run, sees, store};
use crate::support::{block, log};

super::ports! {
    Virtual "500-context-disable" => disable,
    Virtual "501-context-rejections" => rejections,
    Virtual "503-context-timers-promises" => timers_promises,
    Virtual "504-context-events" => events,
    Virtual "511-context-generators" => generators,
    Virtual "512-context-settled" => settled,
    Virtual "513-context-bound" => bound,
    Virtual "514-context-uncaught" => uncaught,
}

async fn disable() {
    let two = AsyncLocalStorage::<String>::new();
    let seen = two.clone();
    let both = move |place: &str| {
        let (one, two) = (store(&als()), store(&seen));
        log(format!("{place}-{one}-{two}"));
    };
    let sees = |place: &'static str| {
        let both = both.clone();
        move || both(place)
    };
    run("a", || {
        set_immediate(sees("made-before"));
        two.run("b".to_owned(), || {
            als().disable();
            both("inside");
            next_tick(sees("tick"));
            let look = sees("then");
            Promise::resolved(()).then(move |()| look());
        });
        both("around");
        run("c", || both("again"));
        both("after-again");
        next_tick(sees("tick-after"));
    });
    both("outside");
    let later = both.clone();
    set_immediate(|| {
        set_timeout(1, move || {
            enter("e");
            later("entered");
            als().disable();
            later("disabled");
            enter("f");
            later("entered-again");
            exit(|| later("exit"));
            exit(|| set_timeout(1, move || later("next")));
        });
    });
}

async fn rejections() {
    let reject = Rc::new(RefCell::new(None::<Deferred<()>>));
    // The promise of a rejection is not told here; the program keeps those it makes.
    let kept = Rc::new(RefCell::new(Vec::<Promise<()>>::new()));
    let made = run("made", || {
        Promise::new(|deferred| _ = reject.replace(Some(deferred)))
    });
    kept.borrow_mut().push(made);
    let (all, told) = (kept.clone(), Cell::new(0));
    process::on_unhandled_rejection(move |reason| {
        at(format!("unhandled-{reason}"));
        let promise = all.borrow()[told.replace(told.get() + 1)].clone();
        run("handler", || promise.catch(|_| at("late-catch")));
    });
    process::on_rejection_handled(|_| at("handled"));
    process::on_uncaught_exception(|error, _| at(format!("uncaught-{error}")));
    run("rejecter", || {
        reject.take().unwrap().reject(Reason::new("one"));
    });
    let thrown = run("async", || {
        try_call(async {
            at("async");
            Err::<(), _>(Reason::new("two"))
        })
    });
    kept.borrow_mut().push(thrown);
    let chained = run("chain", || {
        Promise::<()>::rejected(Reason::new("three")).then(|()| ())
    });
    kept.borrow_mut().push(chained);
    set_timeout(10, || {
        run("emit", || set_immediate(|| throw("five")));
    });
}

async fn timers_promises() {
    let sleeps = run("s", || {
        call(async {
            promises::sleep(1).await.unwrap();
            at("sleep");
            promises::set_immediate(()).await.unwrap();
            at("turn");
            scheduler::wait(1).await.unwrap();
            at("wait");
            scheduler::yield_now().await.unwrap();
            at("yield");
        })
    });
    let ticks = sleeps.and_then(|()| {
        at("then");
        run("i", || {
            call(async {
                let mut n = 0;
                let mut ticks = promises::set_interval(1, "v");
                while let Some(v) = ticks.next().await {
                    at(format!("tick-{}", v.unwrap()));
                    enter(&format!("i{n}"));
                    n += 1;
                    if n == 3 {
                        break;
                    }
                }
                drop(ticks);
                at("broke");
            })
        })
    });
    let aborted = ticks.and_then(|()| {
        run("aborted", || {
            call(async {
                let c = AbortController::new();
                let signal = c.signal();
                run("listener", || signal.on_abort(|| at("abort")));
                set_immediate(move || run("aborter", || c.abort()));
                let options = Options::new().signal(&signal);
                let slept = promises::set_timeout_with(1000, (), &options).await;
                at(format!("caught-{}", slept.unwrap_err().name()));
            })
        })
    });
    aborted.then(|()| at("end"));
    run("t", || {
        let signal = AbortSignal::timeout(300);
        signal.on_abort(|| at("timed-out"));
        // Kept until the signal was told.
        set_timeout(350, move || drop(signal));
    });
}

async fn events() {
    const V: Event<u32> = Event::new("v");
    const X: Event<()> = Event::new("x");
    const Y: Event<()> = Event::new("y");
    let e = EventEmitter::new();
    e.on(NEW_LISTENER, |name| at(format!("new-{name}")));
    let own = run("own", || EventEmitterAsyncResource::new("Mine"));
    own.on(Y, |()| at("own"));
    let emits = move || {
        run("caller", || {
            own.emit(Y, ());
            at("caller-after");
        });
    };
    let failing = e.clone();
    let fail = move || {
        run("failer", || {
            failing.emit(ERROR, Error::new("no"));
            at("after-error");
        });
        set_immediate(emits);
    };
    let heard = e.clone();
    run("loop", || {
        call(async move {
            let mut n = 0;
            let mut events = on(&heard, V);
            while let Some(v) = events.next().await {
                at(format!("got-{}", v.unwrap()));
                n += 1;
                if n == 3 {
                    break;
                }
            }
            drop(events);
            at("left");
            set_immediate(move || exit(fail));
        })
    });
    run("emit1", || {
        e.emit(V, 1);
        e.emit(V, 2);
    });
    let late = e.clone();
    set_immediate(move || run("emit2", || _ = late.emit(V, 3)));
    run("monitor", || e.on(ERROR.monitor(), |_| at("monitor")));
    run("error", || {
        call(async move {
            let error = once(&e, X).await.unwrap_err();
            at(format!("caught-{error}"));
        })
    });
}

async fn generators() {
    fn g() -> AsyncGenerator<u32> {
        async_generator(|out| async move {
            at("start");
            out.yield_value(1).await;
            at("second");
            enter("gen");
            out.yield_value(2).await;
            at("third");
            Ok(())
        })
    }

    let mut it = run("made", g);
    call(async move {
        for n in 1..=3 {
            // `als.run` around the call of `next`: the first poll runs the body.
            let mut next = it.next();
            let store = format!("n{n}");
            poll_fn(|cx| run(&store, || next.poll_unpin(cx))).await;
            at(format!("after-{n}"));
        }
        enter("main");
        let mut all = g();
        while let Some(v) = all.next().await {
            at(format!("loop-{}", v.unwrap()));
        }
        at("end");
    });
}

async fn settled() {
    let p = run("p", || Promise::resolved(1));
    run("a", || p.then(|_| at("settled")));
    let (x, y) = run("made", || (Deferred::<()>::new(), Deferred::<()>::new()));
    let [px, py] = [&x, &y].map(Deferred::promise);
    let both = || [px.clone(), py.clone()];
    run("race", || race(both()).then(|()| at("race")));
    run("any", || any(both()).then(|()| at("any")));
    run("settled", || {
        all_settled(both()).then(|_| at("all-settled"))
    });
    run("finally", || {
        px.finally(sees("finally")).then(|()| at("after-finally"));
    });
    let adopted = px.clone();
    run("adopt", || {
        Promise::new(|d| d.adopt(adopted)).then(|()| at("adopted"));
    });
    run("thenable", || {
        call(async {
            let changes = thenable(|resolve: Deferred<()>| {
                at("in-then");
                enter("changed");
                resolve.resolve(());
            });
            changes.await.unwrap();
            at("awaited-thenable");
        })
    });
    run("catch", || {
        let caught = py.catch(|_| {
            at("caught");
            enter("entered");
        });
        caught.then(|()| at("after-catch"));
    });
    set_immediate(move || run("one", || x.resolve(())));
    set_immediate(move || run("two", || y.reject(Reason::new("no"))));

    async fn sub() {
        Promise::resolved(()).await.unwrap();
        enter("sub");
    }
    run("outer", || {
        call(async {
            let q = call(sub());
            at("before-sub");
            q.await.unwrap();
            at("after-sub");
            all([call(sub()), call(sub())]).await.unwrap();
            at("after-all");
        })
    });
}

async fn bound() {
    let r = run("r", || AsyncResource::new("R"));
    let f = r.bind(|(a, b): (u32, u32)| {
        at(format!("bound-{a}{b}"));
        a + b
    });
    run("x", || {
        log(format!("sum-{}", f((1, 2))));
        at("x");
    });
    let thrown = catch(|| {
        run("t", || {
            r.run_in_async_scope(|| {
                at("throws");
                throw("e")
            })
        })
    });
    thrown.unwrap_err();
    at("caught");
    run("again", || r.run_in_async_scope(sees("resource-again")));
    let s = run("one", AsyncLocalStorage::snapshot);
    run("two", || {
        s.run(|| {
            at("snap");
            set_immediate(sees("from-snap"));
            exit(sees("exited"));
            at("back");
        });
    });
    let b = run("b", || {
        AsyncLocalStorage::bind(|()| {
            at("b");
            Promise::resolved(())
        })
    });
    run("c", || {
        call(async move {
            b(()).await.unwrap();
            at("c");
        })
    });
    let late = run("late", || AsyncLocalStorage::bind(|()| at("late")));
    set_immediate(move || _ = set_timeout(1, move || late(())));
}

async fn uncaught() {
    process::on_uncaught_exception(|error, _| {
        at(format!("uncaught-{error}"));
        next_tick(sees("tick-of-handler"));
        enter("handler");
    });
    run("tick", || {
        next_tick(|| {
            next_tick(sees("tick-left"));
            throw("tick")
        });
        next_tick(sees("tick-next"));
    });
    set_immediate(sees("plain-1"));
    run("immediate", || {
        set_immediate(|| run("deep", || throw("deep")));
    });
    set_immediate(sees("plain-2"));

    fn emitter() {
        run("emitter", || {
            let e = EventEmitter::new();
            set_timeout(1, move || {
                run("emit", || _ = e.emit(ERROR, Error::new("emitted")));
            });
            set_immediate(|| exit(|| _ = set_timeout(50, sees("last"))));
        });
    }

    fn timers() {
        run("timer", || {
            set_timeout(20, || {
                enter("timer2");
                throw("timer")
            });
            set_timeout(20, || {
                at("timer-next");
                set_immediate(|| exit(emitter));
            });
            block(30);
        });
    }
    set_immediate(|| _ = set_immediate(timers));
}
