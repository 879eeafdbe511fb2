//! 567–569 and 581–583: the promises of combinators, uncaught errors, resources of the program,
//! awaited timers, async functions, and closures of the lanes.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use phaseloop_node::async_hooks::{
    AsyncResource, Callbacks, create_hook, execution_async_id, trigger_async_id,
};
use phaseloop_node::timers::promises;
use phaseloop_node::{
    Deferred, Promise, Reason, all, all_settled, any, call, call_returning, catch, clear_immediate,
    clear_timeout, next_tick, process, queue_microtask, race, set_immediate, set_interval,
    set_timeout, thenable, throw, try_call,
};

use super::hooks::Names;
use crate::support::log;

super::ports! {
    Virtual "567-hooks-combinators" => combinators,
    Virtual "568-hooks-errors" => errors,
    Virtual "569-hooks-resources" => resources,
    Virtual "581-hooks-timers-promises" => timers_promises,
    Virtual "582-hooks-async-functions" => async_functions,
    Virtual "583-hooks-microtasks" => microtasks,
}

/// The hook of these programs: the end of ticks, closures and promises is not told.
pub(super) fn told(names: &Names) -> Callbacks {
    let (init, gone) = (names.clone(), names.clone());
    Callbacks::new()
        .init(move |id, kind, trigger| init.init(id, kind, trigger))
        .before(names.tells("before"))
        .after(names.tells("after"))
        .destroy(move |id| {
            let name = gone.name(id);
            let kinds = ["Timeout", "Immediate", "Mine", "Other"];
            if kinds.iter().any(|kind| name.contains(kind)) {
                log(format!("destroy-{name}"));
            }
        })
}

async fn combinators() {
    type Step = fn(&Names);
    const STEPS: [Step; 6] = [
        |n| {
            n.at("race");
            let raced = n.sees("raced");
            race([Promise::resolved("a"), Promise::resolved("b")]).then(move |_| raced());
        },
        |n| {
            n.at("settled");
            let settled = n.sees("all-settled");
            all_settled([Promise::resolved(1), Promise::rejected(Reason::new("2"))])
                .then(move |_| settled());
        },
        |n| {
            n.at("thenable");
            let n = n.clone();
            call(async move {
                let inside = n.sees("in-then");
                let taken = thenable(move |resolve: Deferred<()>| {
                    inside();
                    resolve.resolve(());
                });
                taken.await.unwrap();
                n.at("awaited");
            });
        },
        |n| {
            n.at("any");
            let anyed = n.sees("anyed");
            any([Promise::rejected(Reason::new("1")), Promise::resolved(2)]).then(move |_| anyed());
        },
        |n| {
            n.at("adopt");
            let p = Promise::resolved(5);
            let adopted = n.sees("adopted");
            Promise::new(|deferred| deferred.adopt(p)).then(move |_| adopted());
        },
        |n| {
            n.at("returns");
            let (inner, returned) = (n.sees("inner-then"), n.sees("returned"));
            let taken = Promise::resolved(()).and_then(move |()| {
                thenable(move |resolve: Deferred<()>| {
                    inner();
                    resolve.resolve(());
                })
            });
            taken.then(move |()| returned());
        },
    ];
    fn step(names: &Names, number: usize) {
        let names = names.clone();
        set_timeout(20, move || {
            STEPS[number](&names);
            if number + 1 < STEPS.len() {
                step(&names, number + 1);
            }
        });
    }

    let names = Names::new();
    create_hook(told(&names).promise_resolve(names.tells("resolve"))).enable();
    let (finally, after) = (names.sees("finally"), names.sees("after-finally"));
    let settled = Promise::resolved(1).finally(finally);
    settled.then(move |_| after());
    step(&names, 0);
}

async fn errors() {
    type Steps = Rc<RefCell<VecDeque<fn(&Program)>>>;
    #[derive(Clone)]
    struct Program {
        names: Names,
        steps: Steps,
    }

    impl Program {
        fn next(&self) -> impl FnOnce() + 'static {
            let program = self.clone();
            move || {
                let step = program.steps.borrow_mut().pop_front();
                step.unwrap()(&program);
            }
        }

        fn sees(&self, place: &'static str) -> impl Fn() + Clone + 'static {
            self.names.sees(place)
        }
    }

    let names = Names::new();
    create_hook(told(&names)).enable();
    let (uncaught, unhandled) = (names.clone(), names.clone());
    process::on_uncaught_exception(move |e, _| uncaught.at(&format!("uncaught-{e}")));
    process::on_unhandled_rejection(move |e| unhandled.at(&format!("unhandled-{e}")));
    let (before, revived) = (names.sees("before-exit"), names.sees("revived"));
    process::once_before_exit(move |_| {
        before();
        set_timeout(1, revived);
    });
    let exit = names.sees("exit");
    process::on_exit(move |_| exit());
    let program = Program {
        names,
        steps: Rc::new(RefCell::new(VecDeque::new())),
    };
    let steps: [fn(&Program); 6] = [
        |p| {
            let (i1, next) = (p.sees("i1"), p.next());
            set_immediate(move || {
                i1();
                set_immediate(next);
                throw("immediate")
            });
            set_immediate(p.sees("i2"));
        },
        |p| {
            let (t1, t3) = (p.sees("t1"), p.sees("t3"));
            next_tick(move || {
                t1();
                next_tick(t3);
                throw("tick")
            });
            next_tick(p.sees("t2"));
            set_immediate(p.next());
        },
        |p| {
            let (interval, mut next, mut n) = (p.sees("interval"), Some(p.next()), 0);
            set_interval(10, move |i| {
                interval();
                n += 1;
                if n == 2 {
                    i.close();
                    set_timeout(50, next.take().unwrap());
                }
                throw("interval")
            });
        },
        |p| {
            let r = AsyncResource::new("Mine");
            let (before, scope, inside) = (p.sees("before-scope"), p.sees("scope"), r.clone());
            set_timeout(1, move || {
                before();
                inside.run_in_async_scope(|| {
                    scope();
                    throw("scope")
                })
            });
            let next = p.next();
            set_timeout(60, move || {
                r.emit_destroy();
                set_timeout(10, next);
                // Not collected in so short a program.
                std::mem::forget(r);
            });
        },
        |p| {
            let rejected = Promise::<()>::rejected(Reason::new("rejected"));
            drop(rejected);
            set_immediate(p.next());
        },
        |p| p.names.at("end"),
    ];
    program.steps.borrow_mut().extend(steps);
    program.next()();
}

async fn resources() {
    let names = Names::new();
    create_hook(told(&names)).enable();
    let a = AsyncResource::new("Mine");
    let b = AsyncResource::with_trigger("Other", a.async_id());
    log(format!(
        "{},{},{}",
        a.async_id() < b.async_id(),
        names.name(a.trigger_async_id()),
        names.name(b.trigger_async_id())
    ));
    let (n, inside) = (names.clone(), b.clone());
    let f = Rc::new(a.bind(move |x: u32| {
        n.at(&format!("bound-{x}"));
        inside.run_in_async_scope(|| {
            n.at("inner");
            x + 10
        })
    }));
    log(format!("sum-{}", f(1)));
    let n = names.clone();
    let named = AsyncResource::new("Named");
    let g = named.bind(move |x: u32| {
        n.at(&format!("static-{x}"));
        next_tick(n.sees("tick"));
        x * 2
    });
    let n = names.clone();
    let (one, two) = (a.clone(), b.clone());
    b.run_in_async_scope(|| {
        n.at("b");
        log(format!("twice-{}", g(4)));
        let (told, then) = (n.clone(), n.sees("then"));
        set_timeout(10, move || {
            told.at("timer");
            log(format!("sum-{}", f(5)));
            let scope = one.clone();
            scope.run_in_async_scope(|| {
                set_immediate(move || {
                    told.at("immediate");
                    two.emit_destroy();
                    one.emit_destroy();
                    set_timeout(10, told.sees("last"));
                });
            });
        });
        Promise::resolved(()).then(move |()| then());
    });
    let thrown = catch(|| {
        a.run_in_async_scope(|| {
            names.at("throws");
            throw("e")
        })
    });
    let Err(e) = thrown;
    names.at(&format!("caught-{e}"));
    log(format!(
        "ids-{}-{}",
        execution_async_id() == 1,
        trigger_async_id() == 0
    ));
    // JavaScript's garbage collector does not run in so short a program.
    std::mem::forget((a, b, g, named));
}

/// Enables the hook of 581 to 583, which is told of no end.
fn watch() -> Names {
    let names = Names::new();
    let init = names.clone();
    let callbacks = Callbacks::new()
        .init(move |id, kind, trigger| init.init(id, kind, trigger))
        .before(names.tells("before"))
        .after(names.tells("after"))
        .promise_resolve(names.tells("resolve"));
    create_hook(callbacks).enable();
    names
}

async fn timers_promises() {
    let names = watch();
    let n = names.clone();
    let work = call(async move {
        n.at("begin");
        promises::sleep(10).await.unwrap();
        n.at("slept");
        promises::set_immediate(()).await.unwrap();
        n.at("turned");
        let rejected = Promise::<()>::rejected(Reason::new("no")).await;
        rejected.unwrap_err();
        n.at("caught");
        n.at("finally");
    });
    let end = names.sees("end");
    work.then(move |()| end());
}

async fn async_functions() {
    fn leaf(names: &Names, n: u32) -> Promise<u32> {
        let names = names.clone();
        try_call(async move {
            names.at(&format!("leaf{n}"));
            if n == 2 {
                return Err(Reason::new("two"));
            }
            Ok(n)
        })
    }

    fn both(names: &Names) {
        let n = names.clone();
        call(async move {
            n.at("both");
            let r = all([leaf(&n, 4), leaf(&n, 5)]).await.unwrap();
            n.at(&format!("all{}{}", r[0], r[1]));
            let ticked = Promise::new(|deferred| next_tick(move || deferred.resolve(())));
            ticked.await.unwrap();
            n.at("ticked");
            Promise::resolved(()).await.unwrap();
            n.at("null");
        });
    }

    let names = watch();
    let n = names.clone();
    let p = call_returning(async move {
        n.at("middle");
        let a = leaf(&n, 1).await.unwrap();
        n.at(&format!("a{a}"));
        leaf(&n, 2).await.unwrap_err();
        n.at("caught");
        leaf(&n, 3)
    });
    names.at("called");
    p.then(move |v| {
        names.at(&format!("then{v}"));
        set_immediate(move || {
            names.at("immediate");
            both(&names);
        });
    });
}

async fn microtasks() {
    let names = watch();
    let n = names.clone();
    set_timeout(10, move || {
        n.at("timer");
        let m = n.clone();
        queue_microtask(move || {
            m.at("m1");
            let (t, p) = (m.clone(), m.sees("p1"));
            next_tick(move || {
                t.at("t1");
                queue_microtask(t.sees("m2"));
            });
            Promise::resolved(()).then(move |()| p());
        });
        let t = n.clone();
        next_tick(move || {
            t.at("t2");
            Promise::resolved(()).then(move |()| {
                t.at("p2");
                queue_microtask(t.sees("m3"));
            });
        });
        let never = Rc::new(RefCell::new(None));
        let (i, cleared) = (n.clone(), never.clone());
        set_immediate(move || {
            i.at("i1");
            clear_immediate(cleared.borrow().as_ref().unwrap());
            next_tick(i.sees("t3"));
        });
        never.replace(Some(set_immediate(n.sees("never"))));
    });
    let n = names.clone();
    set_immediate(move || {
        n.at("i0");
        let t = set_timeout(1000, || ());
        set_immediate(move || {
            clear_timeout(&t);
            n.at("cleared");
        });
    });
    let n = names.clone();
    let p = Promise::new(move |deferred| {
        n.at("executor");
        deferred.resolve(1);
        deferred.resolve(2);
    });
    let (n, f) = (names.clone(), names.sees("f"));
    p.then(move |v| n.at(&format!("v{v}"))).finally(f);
}
