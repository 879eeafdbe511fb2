//! 200–211: values that follow a request.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

#[cfg(unix)]
use phaseloop::signal::SignalKind;
use phaseloop_node::async_hooks::{AsyncLocalStorage, AsyncResource};
#[cfg(unix)]
use phaseloop_node::child_process;
use phaseloop_node::events::{Event, EventEmitter, EventEmitterAsyncResource, once};
use phaseloop_node::net::{self, CONNECTION, Server};
use phaseloop_node::process;
use phaseloop_node::stream::{CLOSE, END, Readable, Writable, finished, pipeline};
use phaseloop_node::worker_threads::{EXIT, MessageChannel, Worker};
use phaseloop_node::{
    Deferred, Emitter, Promise, Reason, all, call, catch, clear_timeout, dns, fs, next_tick,
    queue_microtask, set_immediate, set_interval, set_timeout, set_timeout_mut, thenable, throw,
};

use crate::support::{block, log, scratch, text};

super::ports! {
    Virtual "200-context-run-and-exit" => run_and_exit,
    Virtual "201-context-lanes" => lanes,
    Virtual "202-context-timers" => timers,
    Virtual "203-context-await" => awaits,
    Virtual "204-context-enter-with" => enter_with,
    Virtual "205-context-bind-snapshot" => bind_snapshot,
    Virtual "206-context-emitter" => emitter,
    Virtual "207-context-promises" => promises,
    Virtual "208-context-streams" => streams,
    Real "209-context-sockets" => sockets,
    #[cfg(unix)]
    Real "210-context-jobs" => jobs,
    Virtual "211-context-errors-and-disable" => errors_and_disable,
}

thread_local! {
    /// The storage of the programs, `als` in JavaScript.
    static ALS: AsyncLocalStorage<String> = AsyncLocalStorage::new();
}

/// `als`.
pub(super) fn als() -> AsyncLocalStorage<String> {
    ALS.with(Clone::clone)
}

/// `als.run(store, f)`.
pub(super) fn run<R>(store: &str, f: impl FnOnce() -> R) -> R {
    als().run(store.to_owned(), f)
}

/// `als.exit(f)`.
pub(super) fn exit<R>(f: impl FnOnce() -> R) -> R {
    als().exit(f)
}

/// `als.enterWith(store)`.
pub(super) fn enter(store: &str) {
    als().enter_with(store.to_owned());
}

/// Logs a token with the store.
pub(super) fn at(place: impl AsRef<str>) {
    log(format!("{}-{}", place.as_ref(), store(&als())));
}

/// Returns what logs a token with the store.
pub(super) fn sees(place: &'static str) -> impl Fn() + Clone + 'static {
    move || at(place)
}

/// The store as JavaScript prints it.
pub(super) fn store(storage: &AsyncLocalStorage<String>) -> String {
    storage
        .get_store()
        .map_or("undefined".to_owned(), |store| store.to_string())
}

/// `new Promise((r) => setImmediate(r))`.
pub(super) fn later() -> Promise<()> {
    Promise::new(|deferred| _ = set_immediate(move || deferred.resolve(())))
}

async fn run_and_exit() {
    at("outside");
    let sum = run("a", || {
        at("in");
        1 + 2
    });
    log(format!("returned-{sum}"));
    run("a", || {
        run("b", sees("nested"));
        at("after-nested");
        exit(|| {
            at("exit");
            run("c", sees("run-in-exit"));
        });
        at("after-exit");
        let thrown = catch(|| {
            run("d", || {
                at("throws");
                throw("x")
            })
        });
        thrown.unwrap_err();
        at("caught");
        catch(|| exit(|| throw("x"))).unwrap_err();
        at("caught-exit");
        exit(sees("run-undefined"));
    });
    at("outside");
}

async fn lanes() {
    run("a", || {
        next_tick(|| {
            at("tick");
            queue_microtask(sees("microtask-of-tick"));
            run("t", || next_tick(sees("tick-of-tick")));
        });
        queue_microtask(|| {
            at("microtask");
            next_tick(sees("tick-of-microtask"));
        });
        let first = Promise::resolved(()).then(|()| at("then"));
        first.then(|()| at("then-then"));
    });
    next_tick(sees("outer-tick"));
    queue_microtask(sees("outer-microtask"));
    run("b", || {
        let rejected = Promise::<()>::rejected(Reason::new("x")).catch(|_| at("catch"));
        rejected.finally(sees("finally"));
    });
    set_immediate(sees("immediate"));
    at("sync");
}

async fn timers() {
    fn repeat() {
        let mut n = 0;
        run("i", || {
            set_interval(5, move |interval| {
                at("interval");
                n += 1;
                if n == 3 {
                    interval.close();
                }
            });
        });
    }

    fn more() {
        let kept = run("r", || {
            set_timeout_mut(20, |_| {
                at("refreshed");
                exit(repeat);
            })
        });
        run("other", || _ = kept.refresh());
    }

    run("a", || {
        set_timeout(1, || {
            at("timeout");
            set_timeout(0, || {
                at("timeout-of-timeout");
                exit(more);
            });
            set_immediate(sees("immediate-of-timeout"));
        });
        set_immediate(sees("immediate"));
    });
    set_timeout(1, sees("plain"));
    set_immediate(sees("plain-immediate"));
    block(10);
}

async fn awaits() {
    async fn inner() {
        at("inner");
        Promise::resolved(()).await.unwrap();
        at("inner-awaited");
        enter("inner");
        at("inner-entered");
        later().await.unwrap();
        at("inner-later");
    }

    async fn early() {
        enter("early");
        Promise::resolved(()).await.unwrap();
        at("early-awaited");
    }

    let program = call(async {
        let body = async {
            at("run");
            later().await.unwrap();
            at("run-later");
            call(inner()).await.unwrap();
            at("run-after-inner");
        };
        run("a", || call(body)).await.unwrap();
        at("after-run");
        run("b", || call(inner())).await.unwrap();
        at("after-b");
        let p = call(early());
        at("caller-of-early");
        p.await.unwrap();
        at("caller-awaited");
    });
    program.then(|()| at("then"));
    at("main");
}

async fn enter_with() {
    set_immediate(|| {
        at("first");
        set_timeout(0, sees("before"));
        next_tick(sees("tick-before"));
        enter("x");
        at("entered");
        next_tick(|| {
            at("tick-after");
            enter("tick");
        });
        next_tick(sees("next-tick-after"));
        Promise::resolved(()).then(|()| at("then-after"));
        set_timeout(0, sees("after"));
        run("y", || {
            enter("z");
            at("entered-in-run");
        });
        at("after-run");
    });
    set_immediate(sees("second"));
}

async fn bind_snapshot() {
    let other = AsyncLocalStorage::<String>::new();
    let seen = other.clone();
    let at = move |place: &str| {
        let (one, two) = (store(&als()), store(&seen));
        log(format!("{place}-{one}-{two}"));
    };
    let look = at.clone();
    let bound = run("a", || {
        Rc::new(AsyncLocalStorage::bind(move |x: u32| {
            look(&format!("bound-{x}"));
            x
        }))
    });
    let snapshot = run("s", || {
        other.run("o".to_owned(), AsyncLocalStorage::snapshot)
    });
    let resource = run("r", || AsyncResource::new("Mine"));
    run("b", || {
        log(format!("gives-{}", bound(1)));
        at("after-bound");
        let two = snapshot.run(|| {
            at("snapshot-1");
            1 + 1
        });
        log(format!("gives-{two}"));
        at("after-snapshot");
        resource.run_in_async_scope(|| at("resource"));
        let look = at.clone();
        set_immediate(move || snapshot.run(|| look("immediate-snapshot")));
        let late = bound.clone();
        set_timeout(1, move || _ = late(2));
    });
    bound(3);
    block(10);
}

async fn emitter() {
    const X: Event<()> = Event::new("x");
    const Y: Event<()> = Event::new("y");
    let e = EventEmitter::new();
    run("on", || {
        e.on(X, |()| at("listener"));
        e.on(
            X,
            AsyncResource::bind_listener(|(): &()| at("bound-listener")),
        );
    });
    e.on(X, |()| enter("entered"));
    e.on(X, |()| at("listener-behind"));
    run("emit", || {
        e.emit(X, ());
        at("after-emit");
    });
    at("outside");
    let own = run("made", || EventEmitterAsyncResource::new("Own"));
    run("on", || own.on(X, |()| at("own-listener")));
    run("emit", || own.emit(X, ()));
    let waits = e.clone();
    run("once", || {
        call(async move {
            once(&waits, Y).await.unwrap();
            at("awaited-once");
        })
    });
    run("emit-y", || e.emit(Y, ()));
}

async fn promises() {
    let resolve = Rc::new(RefCell::new(None::<Deferred<()>>));
    let p = run("made", || {
        Promise::new(|deferred| {
            at("executor");
            resolve.replace(Some(deferred));
        })
    });
    run("a", || p.then(|()| at("then-a")));
    let awaited = p.clone();
    run("b", || {
        call(async move {
            awaited.await.unwrap();
            at("await-b");
        })
    });
    p.then(|()| at("then-none"));
    run("t", || {
        let thenable = thenable(|resolve: Deferred<()>| {
            at("thenable");
            resolve.resolve(());
        });
        thenable.into_promise().then(|()| at("then-thenable"));
    });
    run("all", || all([p, later()]).then(|_| at("all")));
    set_immediate(move || {
        run("settler", || {
            resolve.take().unwrap().resolve(());
            at("settled");
        });
    });
    process::on_unhandled_rejection(|reason| at(format!("unhandled-{reason}")));
    run("rejecter", || {
        _ = Promise::<()>::rejected(Reason::new("no"))
    });
}

async fn streams() {
    let r = run("made", || {
        Readable::<String>::bytes().read(|_, _| at("read")).build()
    });
    run("data", || r.on_data(|c| at(format!("data-{c}"))));
    run("end", || r.on(END, |()| at("end")));
    let (r1, r2, r3) = (r.clone(), r.clone(), r);
    set_immediate(move || run("push1", || _ = r1.push("1".to_owned())));
    set_immediate(move || run("push2", || _ = r2.push("2".to_owned())));
    set_immediate(move || {
        set_immediate(move || run("push-end", || r3.push_end()));
    });
    let w = run("sink", || {
        let sink = |c: String, done: phaseloop_node::stream::Done| {
            at(format!("write-{c}"));
            set_immediate(move || run("cb", || done.ok()));
        };
        Writable::bytes(sink).build()
    });
    run("w1", || w.write_with("x", |_| at("written-x")));
    run("w2", || w.write_with("y", |_| at("written-y")));
    run("fin", || finished(&w).then(|_| at("finished")));
    set_immediate(move || run("ender", || w.end(())));
    run("pipe", || {
        let sink = Writable::objects(|_: &'static str, done| done.ok()).build();
        pipeline(&Readable::from_iter(["p"]))
            .into(&sink)
            .then(|_| at("pipeline"));
    });
}

async fn sockets() {
    let server = run("made", Server::new);
    run("on", || {
        server.on_this(CONNECTION, |server, s| {
            at("connection");
            let server = Server::clone(server);
            run("request", || {
                s.on_data_this(|s, d| {
                    at(format!("server-data-{}", text(d)));
                    run("reply", || {
                        s.end_with("world", |_| at("server-ended"));
                    });
                });
                s.on(CLOSE, move |()| {
                    at("server-close");
                    server.close_with(sees("server-closed"));
                });
            });
        });
    });
    run("listen", || {
        server.listen_this(("127.0.0.1", 0), |server| {
            at("listening");
            run("connect", || {
                let c = net::connect_with(server.address().unwrap(), |c| {
                    at("connected");
                    run("write", || c.write_with("hello", |_| at("written")));
                });
                run("client", || {
                    c.on_data(|d| at(format!("client-data-{}", text(d))));
                    c.on(END, |()| at("client-end"));
                });
            });
        });
    });
}

/// A step of [`jobs`], which calls what it is given when it is over.
type Step = fn(Box<dyn FnOnce()>);

#[cfg(unix)]
async fn jobs() {
    const STEPS: [Step; 7] = [
        |next| {
            run("stat", || {
                fs::stat(".", |_| {
                    at("stat");
                    next();
                });
            });
        },
        |next| {
            let written = run("promises", || fs::promises::write_file(scratch("x"), "x"));
            // `then` is called inside of the run, too.
            run("promises", || {
                written.then(|_| {
                    at("promises");
                    next();
                })
            });
        },
        |next| {
            run("lookup", || {
                dns::lookup("localhost", |_| {
                    at("lookup");
                    next();
                });
            });
        },
        |next| {
            run("exec", || {
                child_process::exec_file("true", [""; 0], |_, _, _| {
                    at("exec");
                    next();
                });
            });
        },
        |next| {
            let w: Worker<(), u32> = run("worker", || {
                Worker::new(|port| async move { port.post_message(1) })
            })
            .unwrap();
            run("on", || {
                w.on_message(|_| at("message"));
                let next = Cell::new(Some(next));
                w.on(EXIT, move |_| {
                    at("exit");
                    next.take().unwrap()();
                });
            });
        },
        |next| {
            let MessageChannel { port1, port2, .. } = run("channel", MessageChannel::<u32>::new);
            run("port-on", || {
                let next = Cell::new(Some(next));
                port2.on_message_this(move |port2, _| {
                    at("port");
                    port2.close();
                    next.take().unwrap()();
                });
            });
            run("post", || port1.post_message(1));
        },
        |next| {
            let t = set_timeout(10_000, || ());
            run("signal", || {
                process::once_signal(SignalKind::USR2, move |_| {
                    at("signal");
                    clear_timeout(&t);
                    next();
                })
            })
            .unwrap();
            signal_hook::low_level::raise(SignalKind::USR2.as_raw()).unwrap();
        },
    ];

    fn go(step: usize) {
        if let Some(run_step) = STEPS.get(step) {
            let next = move || _ = set_immediate(move || go(step + 1));
            exit(|| run_step(Box::new(next)));
        }
    }
    go(0);
}

async fn errors_and_disable() {
    let two = AsyncLocalStorage::<String>::new();
    let seen = two.clone();
    let at = move |place: &str| {
        let (one, two) = (store(&als()), store(&seen));
        log(format!("{place}-{one}-{two}"));
    };
    let told = at.clone();
    process::on_uncaught_exception(move |error, _| told(&format!("uncaught-{error}")));
    run("timer", || set_timeout(1, || throw("timer")));
    run("tick", || next_tick(|| throw("tick")));
    run("enter", || {
        set_timeout(1, || {
            enter("entered");
            throw("enter")
        })
    });
    set_timeout(50, move || {
        at("after");
        run("a", || {
            two.run("b".to_owned(), || {
                let look = at.clone();
                set_immediate(move || look("immediate"));
                at("both");
                als().disable();
                at("disabled");
                let look = at.clone();
                set_immediate(move || {
                    look("immediate-disabled");
                    run("again", || look("again"));
                    set_immediate(move || look("late"));
                });
            });
        });
    });
}
