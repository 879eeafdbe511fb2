//! 560–562, 564, 565 and 577–579: contexts through thenables, aborts, recursion, faults of streams,
//! questions, promisified functions and the end of the process.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::StreamExt as _;
use phaseloop_node::async_hooks::AsyncLocalStorage;
use phaseloop_node::events::{ERROR, Event, EventEmitter, on_with_signal, once_with_signal};
use phaseloop_node::readline::{CLOSE as LINES_CLOSE, LINE, create_interface, promises as lines};
use phaseloop_node::stream::{CLOSE, FINISH, Readable, Transform, Writable, finished, pipeline};
use phaseloop_node::timers::promises::{self, Options};
use phaseloop_node::util::promisify;
use phaseloop_node::{
    AbortController, AbortSignal, Deferred, Emitter, Error, Promise, Reason, Thenable, all, call,
    call_returning, next_tick, process, queue_microtask, race, set_immediate, set_timeout,
    thenable, throw, try_call,
};

use super::contexts::{als, at, enter, exit, later, run, sees, store};
use crate::support::log;

super::ports! {
    Virtual "560-context-thenable-chains" => thenable_chains,
    Virtual "561-context-abort-listeners" => abort_listeners,
    Virtual "562-context-recursion" => recursion,
    Virtual "564-context-stream-faults" => stream_faults,
    Virtual "565-context-workers-of-one" => workers_of_one,
    Virtual "577-context-lines-and-events" => lines_and_events,
    Virtual "578-context-promisified" => promisified,
    Virtual "579-context-ends" => ends,
}

async fn thenable_chains() {
    fn chain(tag: &'static str) -> Thenable<&'static str> {
        thenable(move |resolve: Deferred<&'static str>| {
            at(format!("then-{tag}"));
            enter(&format!("in-{tag}"));
            queue_microtask(move || {
                at(format!("micro-{tag}"));
                resolve.resolve(tag);
            });
        })
    }

    run("a", || {
        let first = Promise::resolved(()).and_then(|()| {
            at("first");
            chain("x")
        });
        let second = first.then(|v| {
            at(format!("got-{v}"));
            enter("late");
            v
        });
        second.then(|v| at(format!("last-{v}")));
    });
    run("b", || {
        let promise = chain("y").into_promise();
        promise.then(|v| at(format!("resolved-{v}")));
    });
    run("c", || {
        let p = Promise::new(|deferred| {
            at("executor");
            enter("exec");
            deferred.adopt(chain("z"));
        });
        at("made");
        p.then(|v| at(format!("settled-{v}")));
    });
    run("d", || {
        call(async {
            let v = chain("w").await.unwrap();
            at(format!("awaited-{v}"));
            Promise::resolved(()).await.unwrap();
            at("awaited-null");
        })
    });
    let returned = run("e", || call_returning(async { chain("ret") }));
    returned.then(|v| at(format!("ret-{v}")));
    run("f", || {
        let both = all([chain("p").into_promise(), Promise::resolved("2")]);
        both.then(|v| at(format!("all-{}", v.concat())));
    });
    run("g", || {
        let first = race([chain("q").into_promise(), Promise::new(|_| ())]);
        first.then(|v| at(format!("race-{v}")));
    });
    run("h", || {
        let caught = Promise::rejected(Reason::new("no")).catch(|_| {
            at("caught");
            "c"
        });
        let finally = caught.finally(|| {
            at("finally");
            enter("fin");
        });
        finally.then(|v| at(format!("end-{v}")));
    });
    at("main");
}

async fn abort_listeners() {
    const X: Event<()> = Event::new("x");
    let c = run("made", AbortController::new);
    let signal = c.signal();
    run("l1", || {
        signal.on_abort(|| {
            at("one");
            enter("changed");
        })
    });
    run("l2", || {
        signal.on_abort(|| {
            at("two");
            set_immediate(sees("two-immediate"));
        })
    });
    let any = run("any", || AbortSignal::any([&signal]));
    run("l4", || any.on_abort(sees("any")));
    run("sleeper", || {
        let options = Options::new().signal(&signal);
        let slept = promises::set_timeout_with(1000, (), &options);
        slept.catch(|e| at(format!("rejected-{}", e.name())))
    });
    let waits = signal.clone();
    run("waiter", || {
        call(async move {
            let event = once_with_signal(&EventEmitter::new(), X, &waits).await;
            at(format!("once-{}", event.unwrap_err().name()));
            Promise::resolved(()).await.unwrap();
            at("once-after");
        })
    });
    set_immediate(move || {
        run("abort", || {
            c.abort();
            at("after");
        });
        at("outside");
    });
    set_timeout(50, move || {
        drop((any, signal));
        run("late", || {
            let s = AbortSignal::abort(Error::named("AbortError", "aborted"));
            at(format!("aborted-{}", s.aborted()));
            let options = Options::new().signal(&s);
            promises::set_timeout_with(1, (), &options).catch(|_| at("at-once"));
        });
        let t = run("t", || AbortSignal::timeout(50));
        run("tl", || {
            t.on_abort(|| {
                at("timeout");
                exit(|| _ = set_timeout(20, sees("last")));
            })
        });
        // Kept until it was told.
        set_timeout(120, move || drop(t));
    });
}

async fn recursion() {
    fn step(n: u32) {
        at(format!("step-{n}"));
        if n == 0 {
            return;
        }
        run(&format!("r{n}"), || {
            next_tick(move || {
                at(format!("tick-{n}"));
                enter(&format!("t{n}"));
                queue_microtask(move || {
                    at(format!("micro-{n}"));
                    enter(&format!("m{n}"));
                    set_immediate(move || {
                        at(format!("immediate-{n}"));
                        exit(|| {
                            set_timeout(1, move || {
                                at(format!("timeout-{n}"));
                                step(n - 1);
                            });
                        });
                        at(format!("immediate-end-{n}"));
                    });
                });
                next_tick(move || at(format!("tick2-{n}")));
            });
        });
        at(format!("after-{n}"));
    }

    fn down(n: u32) -> Promise<()> {
        call(async move {
            at(format!("down-{n}"));
            if n == 0 {
                enter("bottom");
                return;
            }
            run(&format!("d{n}"), || down(n - 1)).await.unwrap();
            at(format!("up-{n}"));
        })
    }

    run("top", || step(3));
    run("down", || down(3)).then(|()| at("done"));
}

async fn stream_faults() {
    fn fail() {
        let s = run("src", || {
            Readable::<String>::bytes().read(|_, _| ()).build()
        });
        let t = run("tr", || {
            Transform::<String, String>::bytes(|_, out| {
                at("transform");
                set_immediate(move || out.fail(Error::new("bad")));
            })
            .build()
        });
        let k = run("sink", || {
            Writable::<String>::bytes(|_, done| done.ok()).build()
        });
        run("line", || {
            let end = pipeline(&s).through(&t).into(&k);
            end.then(|e| at(format!("pipeline-{}", e.unwrap_err().message())));
        });
        run("f", || {
            finished(&t).then(|e| at(format!("finished-{}", e.unwrap_err().message())));
        });
        run("kc", || k.on(CLOSE, |()| at("sink-close")));
        run("pusher", || {
            set_timeout(1, move || _ = s.push("z".to_owned()))
        });
    }

    fn write() {
        let w = run("w", || {
            Writable::<String>::bytes(|_, done| done.ok())
                .write_all(|chunks, done| {
                    at(format!("writev-{}", chunks.len()));
                    next_tick(move || done.ok());
                })
                .destroy(|error, done| {
                    at("destroy");
                    done.pass(error);
                })
                .build()
        });
        run("on", || {
            w.on(FINISH, |()| at("finish"));
            w.on(CLOSE, |()| {
                at("w-close");
                exit(fail);
            });
        });
        run("cork", || {
            w.cork();
            w.write_with("a", |_| at("a"));
            run("b", || w.write_with("b", |_| at("b")));
            let corked = w.clone();
            next_tick(move || {
                at("uncork");
                corked.uncork();
            });
        });
        run("c", || w.write_with("c", |_| at("c")));
        set_immediate(move || run("end", || w.end_with((), |_| at("ended"))));
    }

    let r = run("r", || {
        Readable::<String>::bytes().read(|_, _| at("read")).build()
    });
    run("err", || {
        r.on(ERROR, |e| at(format!("error-{}", e.message())))
    });
    run("close", || {
        r.on(CLOSE, |()| {
            at("close");
            exit(write);
        })
    });
    let destroyed = r.clone();
    run("destroyer", || {
        set_immediate(move || destroyed.destroy(Some(Error::new("x"))))
    });
    run("data", || r.on_data(|d| at(format!("data-{d}"))));
    run("push", || r.push("1".to_owned()));
}

async fn workers_of_one() {
    let b = AsyncLocalStorage::<String>::new();
    let seen = b.clone();
    let both = move |place: &str| {
        let (one, two) = (store(&als()), store(&seen));
        log(format!("{place}-{one}-{two}"));
    };
    type Bound = Rc<dyn Fn()>;
    let (told, other) = (both.clone(), b.clone());
    let worker = move |n: u32| -> Promise<Bound> {
        let (both, b) = (told.clone(), other.clone());
        call(async move {
            let told = |place: &str| both(&format!("{place}{n}"));
            enter(&format!("a{n}"));
            Promise::resolved(()).await.unwrap();
            b.enter_with(format!("b{n}"));
            told("w");
            later().await.unwrap();
            told("w2");
            let s = AsyncLocalStorage::snapshot();
            exit(|| {
                b.enter_with(format!("x{n}"));
                s.run(|| told("snap"));
                told("exited");
                run(&format!("again{n}"), || s.run(|| told("rerun")));
                told("still");
            });
            told("w3");
            let both = both.clone();
            let bound = AsyncLocalStorage::bind(move |()| both(&format!("bound{n}")));
            Rc::new(move || bound(())) as Bound
        })
    };
    let told = both.clone();
    run("outer", || {
        call(async move {
            let fs = all([worker(1), worker(2)]).await.unwrap();
            told("outer");
            fs.iter().for_each(|f| f());
            b.run("deep".to_owned(), || {
                fs[0]();
                told("deep");
            });
            b.exit(|| {
                told("b-exit");
                let (timer, then) = (told.clone(), told.clone());
                set_timeout(1, move || timer("timer"));
                Promise::resolved(()).then(move |()| then("then"));
            });
            told("end");
        })
    });
    both("main");
}

async fn lines_and_events() {
    fn events() {
        const V: Event<u32> = Event::new("v");
        let e = run("e", EventEmitter::new);
        let c = AbortController::new();
        let (heard, signal) = (e.clone(), c.signal());
        run("loop", || {
            call(async move {
                let mut events = run("iter", || on_with_signal(&heard, V, &signal));
                while let Some(event) = events.next().await {
                    match event {
                        Ok(v) => {
                            at(format!("v-{v}"));
                            enter(&format!("v{v}"));
                        }
                        Err(error) => {
                            at(format!("caught-{}", error.name()));
                            break;
                        }
                    }
                }
                at("left");
            })
        });
        set_immediate(move || {
            run("emit", || {
                e.emit(V, 1);
                e.emit(V, 2);
                at("emitted");
            });
            set_immediate(move || {
                run("stopper", || {
                    c.abort();
                    at("stopped");
                });
            });
        });
    }

    let input = run("in", Transform::<Vec<u8>, Vec<u8>>::pass_through);
    let rl = run("rl", || create_interface(input.readable()));
    let asked = rl.clone();
    run("q", || {
        call(async move {
            let a = lines::question(&asked, "?").await.unwrap();
            at(format!("answer-{a}"));
            let b = run("q2", || lines::question(&asked, "?")).await.unwrap();
            at(format!("answer-{b}"));
            asked.close();
            at("closed");
            exit(events);
        })
    });
    run("w", || input.writable().write("one\n"));
    set_immediate(move || {
        run("w2", || {
            at("writes");
            input.writable().write("two\nthree\n");
        });
    });
    run("lines", || rl.on(LINE, |l| at(format!("line-{l}"))));
    run("cl", || rl.on(LINES_CLOSE, |()| at("close")));
}

async fn promisified() {
    fn p(x: u32) -> Promise<u32> {
        promisify(|done| {
            at(format!("f-{x}"));
            set_timeout(1, move || {
                at("f-timer");
                enter(&format!("cb{x}"));
                let result = if x > 2 {
                    Err(Error::new("big"))
                } else {
                    Ok(x * 2)
                };
                done(result);
            });
        })
    }

    fn more() {
        run("s", || {
            call(async {
                let v = promisify(|done| {
                    enter("sync");
                    done(Ok::<_, Error>(7));
                    at("after-cb");
                });
                at(format!("sync-{}", v.await.unwrap()));
            })
        });
        at("out");
        run("nested", || {
            let q = p(2);
            q.then(|_| at("q1"));
            run("deeper", || {
                let next = q.and_then(|_| {
                    at("q2");
                    p(1)
                });
                next.then(|_| at("q3"));
            });
        });
    }

    let work = run("a", || {
        call(async {
            let v = p(1).await.unwrap();
            at(format!("v-{v}"));
            enter("b");
            let e = p(3).await.unwrap_err();
            at(format!("e-{e}"));
            at("end");
        })
    });
    work.then(|()| {
        at("then");
        exit(more);
    });
}

async fn ends() {
    let n = Cell::new(0);
    run("be", || {
        process::on_before_exit(move |_| {
            at("before-exit");
            if n.replace(n.get() + 1) == 0 {
                enter("be2");
                set_immediate(|| {
                    at("revived");
                    Promise::resolved(()).then(|()| at("revived-then"));
                });
            }
        })
    });
    run("ex", || {
        process::on_exit(|code| {
            at(format!("exit-{code}"));
            queue_microtask(sees("exit-micro"));
        })
    });
    run("un", || {
        process::on_unhandled_rejection(|r| at(format!("unhandled-{r}")))
    });
    run("uc", || {
        process::on_uncaught_exception(|e, origin| {
            at(format!("uncaught-{e}-{origin}"));
        })
    });
    // What the program does not use it keeps, as JavaScript does until it collects.
    let kept = Rc::new(RefCell::new(Vec::new()));
    run("rej", || {
        let p = Promise::resolved(());
        run("then", || {
            p.then(|()| {
                at("throws");
                throw("x")
            });
        });
    });
    let asy = run("asy", || {
        try_call(async {
            Promise::resolved(()).await.unwrap();
            enter("asy2");
            Err::<(), _>(Reason::new("y"))
        })
    });
    kept.borrow_mut().push(asy);
    run("imm", || {
        set_immediate(|| {
            run("in", || next_tick(|| throw("tick")));
            Promise::resolved(()).then(|()| at("survives"));
        })
    });
    run("mt", || set_timeout(200, || run("mt2", || throw("timer"))));
}
