//! 607–614: errors of microtasks, hooks that are switched in mid-flight, emitters and resources,
//! timers that are switched, settling, hooks that switch hooks; observers and figures.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use phaseloop_node::async_hooks::{
    AsyncHook, AsyncLocalStorage, AsyncResource, Callbacks, create_hook,
};
use phaseloop_node::events::{Event, EventEmitterAsyncResource};
use phaseloop_node::perf_hooks::performance::{self, event_loop_utilization};
use phaseloop_node::perf_hooks::{EntryType, PerformanceObserver, monitor_event_loop_delay};
use phaseloop_node::{
    Deferred, Emitter, Promise, Reason, Timeout, all, call, clear_immediate, clear_interval,
    clear_timeout, next_tick, process, queue_microtask, set_immediate, set_interval, set_timeout,
    set_timeout_mut, thenable, throw, try_call,
};

use super::contexts::{als, enter, run, store};
use super::hooks::{Names, joined};
use super::hooks_again::told;
use crate::support::{block, log, say};

super::ports! {
    Virtual "607-hooks-microtask-errors" => microtask_errors,
    Virtual "608-hooks-in-mid-flight" => mid_flight,
    Virtual "609-hooks-emitters" => emitters,
    Virtual "610-hooks-references" => references,
    Virtual "611-hooks-settling" => settling,
    Virtual "612-hooks-of-hooks" => of_hooks,
    Virtual "613-performance-context" => observers,
    Real "614-performance-utilization" => utilization,
}

async fn microtask_errors() {
    let names = Names::new();
    create_hook(told(&names).promise_resolve(names.tells("resolve"))).enable();
    let n = names.clone();
    process::on_uncaught_exception(move |e, _| {
        n.at(&format!("uncaught-{e}-{}", store(&als())));
        queue_microtask(n.sees("of-handler"));
    });
    let n = names.clone();
    run("m", || {
        queue_microtask(move || {
            n.at("m");
            enter("m2");
            next_tick(n.sees("tick"));
            throw("micro")
        });
    });
    let n = names.clone();
    run("n", || {
        queue_microtask(move || n.at(&format!("n-{}", store(&als()))));
    });
    let n = names.clone();
    set_immediate(move || {
        run("i", || {
            n.at("i");
            queue_microtask(|| throw("second"));
            let then = n.sees("then");
            Promise::resolved(()).then(move |()| then());
        });
    });
}

async fn mid_flight() {
    let names = Names::new();
    let h = Rc::new(create_hook(
        told(&names).promise_resolve(names.tells("resolve")),
    ));
    let (n, hook) = (names.clone(), h.clone());
    set_timeout(20, move || {
        n.at("t");
        hook.disable();
        set_immediate(move || {
            n.at("silent");
            hook.enable();
            let then = n.sees("then");
            Promise::resolved(()).then(move |()| then());
        });
    });
    let n = names.clone();
    let p = Promise::new(|deferred| {
        set_timeout(40, move || {
            n.at("resolver");
            deferred.resolve(());
        });
    });
    h.enable();
    let (n, hook) = (names.clone(), h.clone());
    p.then(move |()| {
        n.at("made-after");
        hook.disable();
    });
    let (n, hook) = (names.clone(), h.clone());
    let work = call(async move {
        n.at("async");
        p.await.unwrap();
        n.at("awaited");
        hook.enable();
        Promise::resolved(()).await.unwrap();
        n.at("again");
    });
    work.finally(names.sees("fin"));
    block(5);
}

async fn emitters() {
    const X: Event<u32> = Event::new("x");
    const Y: Event<()> = Event::new("y");
    let names = Names::new();
    create_hook(told(&names)).enable();
    let e = Rc::new(EventEmitterAsyncResource::new("MineE"));
    let resource = e.async_resource();
    log(format!("true,{}", names.name(resource.trigger_async_id())));
    let (n, own) = (names.clone(), e.clone());
    e.on(X, move |&v| {
        n.at(&format!("x-{v}"));
        if v < 2 {
            own.emit(X, v + 1);
        }
        let n = n.clone();
        next_tick(move || n.at(&format!("tick-{v}")));
    });
    e.emit(X, 0);
    let (n, own) = (names.clone(), e.clone());
    set_timeout(10, move || {
        n.at("timer");
        own.emit(X, 5);
        let m = n.clone();
        own.once(Y, move |()| {
            let m = m.clone();
            call(async move {
                m.at("y");
                Promise::resolved(()).await.unwrap();
                m.at("y2");
            });
        });
        own.emit(Y, ());
        set_immediate(move || {
            own.emit_destroy();
            n.at("end");
        });
    });
    let bound = names.sees("bound");
    let f = Rc::new(resource.bind(move |()| bound()));
    f(());
    let then = f.clone();
    Promise::resolved(()).then(move |()| then(()));
    let r = AsyncResource::with_trigger("MineR", resource.async_id());
    let (n, outer) = (names.clone(), r.clone());
    r.run_in_async_scope(|| {
        n.at("r");
        let q = AsyncResource::new("MineQ");
        let inner = q.clone();
        q.run_in_async_scope(|| {
            n.at("q");
            let n = n.clone();
            set_timeout(50, move || {
                n.at("inner");
                inner.emit_destroy();
                outer.emit_destroy();
            });
        });
    });
    let s = AsyncLocalStorage::snapshot();
    s.run(names.sees("snap"));
    let b = names.sees("b");
    let b = AsyncLocalStorage::bind(move |()| b());
    b(());
    set_immediate(move || b(()));
    // JavaScript's garbage collector does not run in so short a program.
    std::mem::forget((e, r, f));
}

async fn references() {
    let names = Names::new();
    create_hook(told(&names)).enable();
    let u: Rc<RefCell<Option<Timeout>>> = Rc::default();
    let (n, mut count, other) = (names.clone(), 0, u.clone());
    set_interval(100, move |i| {
        n.at(&format!("i{count}"));
        if count == 0 {
            i.unref();
        }
        if count == 1 {
            i.ref_();
            let (n, i, other) = (n.clone(), i.clone(), other.clone());
            set_immediate(move || {
                n.at("im");
                clear_interval(&i);
                other.borrow().as_ref().unwrap().ref_();
            });
        }
        count += 1;
    });
    let late = set_timeout(600, names.sees("u"));
    late.unref();
    u.replace(Some(late));
    let n = names.clone();
    set_timeout_mut(150, move |a| {
        n.at("a");
        a.refresh();
        let (n, a) = (n.clone(), a.clone());
        set_timeout(5, move || {
            clear_timeout(&a);
            n.at("cleared");
        });
    });
    let c = set_immediate(names.sees("never"));
    let n = names.clone();
    next_tick(move || {
        n.at("tick");
        clear_immediate(&c);
        let k = set_timeout(5, || ());
        clear_timeout(&k);
    });
    set_timeout(400, names.sees("last"));
}

async fn settling() {
    let names = Names::new();
    let init = names.clone();
    let callbacks = Callbacks::new()
        .init(move |id, kind, trigger| init.init(id, kind, trigger))
        .before(names.tells("before"))
        .after(names.tells("after"))
        .promise_resolve(names.tells("resolve"));
    create_hook(callbacks).enable();
    let (x, y) = (Deferred::new(), Deferred::new());
    let settles = y.clone();
    x.promise().then(move |v| settles.resolve(v));
    let look = names.sees("y");
    y.promise().catch(|_| 0).then(move |_| look());
    let n = names.clone();
    set_immediate(move || {
        n.at("im");
        x.resolve(5);
        x.resolve(6);
        y.reject(Reason::new("1"));
    });
    let n = names.clone();
    set_timeout(20, move || {
        call(async move {
            n.at("t");
            let m = n.clone();
            let th = thenable(move |deferred: Deferred<u32>| {
                m.at("th");
                set_immediate(move || {
                    m.at("th-im");
                    deferred.resolve(7);
                });
            });
            let v = th.await.unwrap();
            n.at(&format!("v{v}"));
        });
    });
    let n = names.clone();
    set_timeout(60, move || {
        n.at("t2");
        let look = n.sees("all");
        all([Promise::resolved(1), Promise::resolved(2)]).then(move |_| look());
    });
    let n = names.clone();
    set_timeout(100, move || {
        n.at("t3");
        let caught = n.sees("caught");
        let failing = try_call(async { Err::<(), _>(Reason::new("1")) });
        failing.catch(move |_| caught()).finally(n.sees("fin"));
    });
}

async fn of_hooks() {
    let names = Names::new();
    let prefixed = |prefix: &'static str| {
        let n = names.clone();
        move |id| log(format!("{prefix}-{}", n.name(id)))
    };
    let callbacks = Callbacks::new()
        .before(prefixed("1b"))
        .after(prefixed("1a"));
    let one = Rc::new(create_hook(callbacks));
    let (n, enabled, disabled, after) = (names.clone(), one.clone(), one, prefixed("2a"));
    let callbacks = Callbacks::new()
        .init(move |id, kind, trigger| {
            n.init(id, kind, trigger);
            if kind == "Immediate" {
                enabled.enable();
            }
        })
        .before(prefixed("2b"))
        .after(move |id| {
            after(id);
            disabled.disable();
        });
    let two = Rc::new(create_hook(callbacks));
    let callbacks = Callbacks::new().init(|_, kind, _| log(format!("3i-{kind}")));
    let three: Rc<AsyncHook> = Rc::new(create_hook(callbacks));
    two.enable();
    let (n, second) = (names.clone(), two.clone());
    set_timeout(5, move || {
        n.at("t");
        set_immediate(move || {
            n.at("im");
            three.enable();
            next_tick(move || {
                n.at("tick");
                second.disable();
                set_immediate(move || {
                    n.at("last");
                    three.disable();
                    set_timeout(1, n.sees("quiet"));
                });
            });
        });
    });
    next_tick(move || {
        names.at("first");
        two.enable();
        two.enable();
        set_timeout(50, names.sees("twice"));
    });
    block(10);
}

async fn observers() {
    fn told(place: &str) {
        log(format!("{place}-{}", store(&als())));
    }

    fn names() -> String {
        joined(&performance::get_entries())
    }

    let o = run("made", || {
        PerformanceObserver::new(|l| {
            told(&format!("o-{}", joined(l.get_entries())));
            enter("entered");
            next_tick(|| told("tick"));
        })
    });
    run("observe", || {
        o.observe(&[EntryType::Mark, EntryType::Measure])
    });
    run("first", || performance::mark_at("a", 1.0).unwrap());
    run("second", || performance::mark_at("b", 2.0).unwrap());
    set_immediate(|| told("immediate"));
    set_timeout(20, move || {
        run("third", || performance::measure("m", (1.0, 3.0)).unwrap());
        Promise::resolved(()).then(|()| log("then"));
        next_tick(say("tick"));
        set_immediate(move || {
            log("im2");
            o.disconnect();
            performance::mark_at("c", 3.0).unwrap();
        });
    });
    let f = performance::timerify("f", |a: u32| a + 1);
    let own: Rc<RefCell<Option<PerformanceObserver>>> = Rc::default();
    let this = own.clone();
    let g = PerformanceObserver::new(move |l| {
        log(format!("g-{}", joined(l.get_entries())));
        this.borrow().as_ref().unwrap().disconnect();
    });
    own.replace(Some(g.clone()));
    set_timeout(60, move || {
        g.observe(&[EntryType::Function]);
        log(f(1).to_string());
        f(3);
        log("after");
    });
    set_timeout(120, || {
        log(names());
        performance::clear_marks(Some("a"));
        performance::clear_measures(None);
        log(names());
    });
}

async fn utilization() {
    let e0 = event_loop_utilization();
    log(format!("{},{},{}", e0.idle, e0.active, e0.utilization));
    set_timeout(10, || {
        let a = event_loop_utilization();
        block(50);
        let b = event_loop_utilization();
        let d = b.since(&a);
        let is_busy = d.active >= 49.0 && d.idle == 0.0 && d.utilization == 1.0;
        log(format!("diff-{is_busy}"));
        let c = event_loop_utilization().since(&a);
        log(format!("since-{}", c.active >= 49.0 && c.utilization > 0.9));
        let same = b.since(&b);
        log(format!(
            "same-{},{},{}",
            same.idle, same.active, same.utilization
        ));
        log(format!("back-{}", a.since(&b).active < 0.0));
        set_timeout(100, move || {
            let w = event_loop_utilization().since(&b);
            log(format!("idle-{}", w.idle >= 80.0 && w.utilization < 0.6));
            set_immediate(|| {
                let x = event_loop_utilization();
                set_immediate(move || {
                    let y = event_loop_utilization().since(&x);
                    log(format!("busy-{}", y.idle < 5.0));
                });
            });
        });
    });
    let h = monitor_event_loop_delay(10);
    let switches = [h.enable(), h.enable(), h.disable(), h.disable()];
    let switches = switches.map(|is_changed| is_changed.to_string()).join(",");
    log(format!("{switches},{}", h.histogram().count()));
    h.enable();
    let asked = Cell::new(Some(h));
    set_timeout(350, move || {
        let h = asked.take().unwrap();
        h.disable();
        let taken = h.histogram();
        log(format!(
            "{},{},{},{},{},{}",
            taken.count() > 3,
            taken.min() > 0,
            taken.max() >= taken.min(),
            taken.mean() >= taken.min() as f64,
            taken.percentile(50.0) > 0,
            taken.exceeds()
        ));
        h.reset();
        let taken = h.histogram();
        log(format!(
            "{},{},{}",
            taken.count(),
            taken.max(),
            taken.exceeds()
        ));
    });
}
