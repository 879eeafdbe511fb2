//! 526–531: the lives of timers, resources, closures of the lanes and promises.

use std::cell::RefCell;
use std::rc::Rc;

use phaseloop_node::async_hooks::{
    AsyncHook, AsyncResource, Callbacks, create_hook, execution_async_id,
};
use phaseloop_node::{
    Promise, Reason, call, call_returning, catch, clear_immediate, clear_timeout, next_tick,
    queue_microtask, set_immediate, set_interval, set_timeout, set_timeout_mut, throw,
};

use super::hooks::Names;
use crate::support::{block, log};

super::ports! {
    Virtual "526-hooks-clearing" => clearing,
    Virtual "527-hooks-refresh" => refresh,
    Virtual "528-hooks-nested" => nested,
    Virtual "529-hooks-lanes" => lanes,
    Virtual "530-hooks-switched" => switched,
    Virtual "531-hooks-awaits" => awaits,
}

async fn clearing() {
    fn again(names: &Names) {
        let once = names.clone();
        set_interval(20, move |i| {
            once.at("once");
            i.close();
            i.close();
        });
        let j = set_interval(1000, |_| ());
        j.unref();
        let last = names.clone();
        set_timeout(200, move || {
            j.close();
            last.at("last");
        });
    }

    fn next(names: &Names) {
        let slot = || Rc::new(RefCell::new(None));
        let (t, u) = (slot(), slot());
        let (own, other, told) = (t.clone(), u.clone(), names.clone());
        t.replace(Some(set_timeout(10, move || {
            told.at("self");
            clear_timeout(own.borrow().as_ref().unwrap());
            clear_timeout(other.borrow().as_ref().unwrap());
            set_timeout(100, told.sees("inner"));
        })));
        u.replace(Some(set_timeout(10, names.sees("never"))));
        let told = names.clone();
        set_timeout(10, move || {
            told.at("third");
            let (x, y) = (Rc::new(RefCell::new(None)), Rc::new(RefCell::new(None)));
            let (own, other, inner) = (x.clone(), y.clone(), told.clone());
            x.replace(Some(set_immediate(move || {
                inner.at("x");
                clear_immediate(own.borrow().as_ref().unwrap());
                clear_immediate(other.borrow().as_ref().unwrap());
                set_timeout(1, move || again(&inner));
            })));
            y.replace(Some(set_immediate(told.sees("y"))));
        });
        block(15);
    }

    let names = Names::new();
    create_hook(names.all()).enable();
    let (r, s) = (AsyncResource::new("Mine"), AsyncResource::new("Mine"));
    let never = set_timeout(1000, || ());
    let mut n = 0;
    set_interval(10, move |i| {
        names.at("interval");
        n += 1;
        if n == 2 {
            s.emit_destroy();
            i.close();
            r.emit_destroy();
            clear_timeout(&never);
            let names = names.clone();
            set_immediate(move || next(&names));
        }
    });
}

async fn refresh() {
    let names = Names::new();
    create_hook(names.all()).enable();
    let mut n = 0;
    let told = names.clone();
    let t = set_timeout_mut(10, move |t| {
        told.at("t");
        n += 1;
        if n == 1 {
            t.refresh();
        }
    });
    t.refresh();
    set_timeout(50, move || {
        names.at("later");
        t.refresh();
        set_timeout(30, move || {
            names.at("end");
            clear_timeout(&t);
        });
    });
}

async fn nested() {
    let names = Names::new();
    create_hook(names.all()).enable();
    let a = AsyncResource::new("A");
    let b = AsyncResource::with_trigger("B", a.async_id());
    let c = a.run_in_async_scope(|| AsyncResource::new("C"));
    a.run_in_async_scope(|| {
        names.at("a");
        b.run_in_async_scope(|| {
            names.at("b");
            c.run_in_async_scope(|| names.at("c"));
            names.at("b2");
            set_immediate(names.sees("immediate"));
        });
        names.at("a2");
    });
    let thrown = catch(|| {
        c.run_in_async_scope(|| {
            names.at("throws");
            throw("x")
        })
    });
    if thrown.is_err() {
        names.at("caught");
    }
    log(format!("returned-{}", b.run_in_async_scope(|| 1 + 2)));
    let told = names.clone();
    let f = c.bind(move |()| {
        told.at("bound");
        next_tick(told.sees("tick"));
        7
    });
    let (told, one, two) = (names.clone(), a.clone(), b.clone());
    set_timeout(50, move || {
        told.at("timeout");
        log(format!("gives-{}", f(())));
        let scope = one.clone();
        scope.run_in_async_scope(move || {
            set_timeout(50, move || {
                told.at("inner");
                one.emit_destroy();
                two.emit_destroy();
            })
        });
    });
    let (told, scope) = (names.clone(), b.clone());
    queue_microtask(move || {
        told.at("micro");
        scope.run_in_async_scope(|| queue_microtask(told.sees("micro-b")));
    });
    let main = execution_async_id();
    let same = [
        b.trigger_async_id() == a.async_id(),
        c.trigger_async_id() == a.async_id(),
        a.trigger_async_id() == main,
    ];
    log(format!("ids-{},{},{}", same[0], same[1], same[2]));
    // JavaScript's garbage collector does not run in so short a program.
    std::mem::forget((a, b, c));
}

async fn lanes() {
    let names = Names::new();
    let told = names.clone();
    let init = names.clone();
    let callbacks = Callbacks::new()
        .init(move |id, kind, trigger| init.init(id, kind, trigger))
        .before(names.tells("before"))
        .after(names.tells("after"))
        .destroy(move |id| {
            let name = told.name(id);
            if !["Tick", "Micro", "PROMISE"]
                .iter()
                .any(|kind| name.contains(kind))
            {
                log(format!("destroy-{name}"));
            }
        });
    create_hook(callbacks).enable();
    let n = names.clone();
    next_tick(move || {
        n.at("t1");
        let (tick, micro) = (n.clone(), n.clone());
        next_tick(move || {
            tick.at("t2");
            queue_microtask(tick.sees("m2"));
        });
        queue_microtask(move || {
            micro.at("m1");
            set_immediate(micro.sees("i2"));
        });
    });
    let n = names.clone();
    queue_microtask(move || {
        n.at("m0");
        next_tick(n.sees("t0"));
        queue_microtask(n.sees("m00"));
    });
    let n = names.clone();
    set_immediate(move || {
        n.at("i1");
        let tick = n.clone();
        next_tick(move || {
            tick.at("t3");
            set_immediate(tick.sees("i3"));
        });
        queue_microtask(n.sees("m3"));
    });
    set_immediate(names.sees("i4"));
}

async fn switched() {
    let names = Names::new();
    set_timeout(80, names.sees("early"));
    let init = names.clone();
    let one: Rc<AsyncHook> = Rc::new(create_hook(
        Callbacks::new()
            .init(move |id, kind, trigger| init.init(id, kind, trigger))
            .before(names.tells("1-before"))
            .after(names.tells("1-after")),
    ));
    let two: Rc<AsyncHook> = Rc::new(create_hook(
        Callbacks::new()
            .before(names.tells("2-before"))
            .after(names.tells("2-after"))
            .destroy(names.tells("2-destroy")),
    ));
    set_immediate(move || {
        names.at("plain");
        one.enable();
        set_immediate(move || {
            names.at("first");
            two.enable();
            next_tick(move || {
                names.at("both");
                one.disable();
                set_immediate(move || {
                    names.at("second-only");
                    two.disable();
                    one.enable();
                    set_timeout(150, move || {
                        names.at("last");
                        one.disable();
                    });
                });
            });
        });
    });
}

async fn awaits() {
    fn leaf(names: &Names, x: u32) -> Promise<u32> {
        let names = names.clone();
        call(async move {
            names.at("leaf");
            Promise::resolved(()).await.unwrap();
            names.at("leaf2");
            x
        })
    }

    let names = Names::new();
    let init = names.clone();
    let callbacks = Callbacks::new()
        .init(move |id, kind, trigger| init.init(id, kind, trigger))
        .before(names.tells("before"))
        .after(names.tells("after"))
        .promise_resolve(names.tells("resolve"));
    create_hook(callbacks).enable();
    let n = names.clone();
    let node = call_returning(async move {
        n.at("node");
        let v = leaf(&n, 1).await.unwrap();
        n.at(&format!("node-{v}"));
        leaf(&n, 2)
    });
    let n = names.clone();
    node.then(move |v| n.at(&format!("end-{v}")));
    let n = names.clone();
    set_immediate(move || {
        call(async move {
            n.at("immediate");
            let thrown = Promise::<()>::rejected(Reason::new("x")).await;
            if thrown.is_err() {
                n.at("caught");
            }
            n.at("finally");
        });
    });
    set_timeout(20, move || {
        let n = names.clone();
        let p = Promise::new(|deferred| {
            n.at("executor");
            set_timeout(5, move || deferred.resolve(()));
        });
        let (settled, fin) = (names.sees("settled"), names.sees("fin"));
        p.then(move |()| settled()).finally(fin);
    });
}
