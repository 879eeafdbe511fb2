//! 519–525: contexts through timers, immediates, storages, functions, listeners, streams, requests.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use phaseloop_node::async_hooks::{AsyncLocalStorage, AsyncResource};
use phaseloop_node::events::{ERROR, Event, EventEmitter, once};
use phaseloop_node::http::{self, Agent, RESPONSE, RequestOptions};
use phaseloop_node::stream::{
    CLOSE, DRAIN, END, FINISH, READABLE, Readable, Transform, Writable, finished,
};
use phaseloop_node::{
    Emitter, Error, Promise, Reason, all, call, call_returning, clear_immediate, clear_timeout,
    next_tick, queue_microtask, set_immediate, set_interval, set_timeout, set_timeout_mut,
    try_call,
};

use super::contexts::{als, at, enter, exit, later, run, sees, store};
use crate::support::{block, log, text};

super::ports! {
    Virtual "519-context-timers-again" => timers_again,
    Virtual "520-context-immediates" => immediates,
    Virtual "521-context-storages" => storages,
    Virtual "522-context-async-functions" => async_functions,
    Virtual "523-context-listeners" => listeners,
    Virtual "524-context-stream-events" => stream_events,
    Real "525-context-http-kept" => kept_connection,
}

async fn timers_again() {
    let t = run("t", || set_timeout(10, sees("t")));
    run("r", || _ = t.refresh());
    for s in ["a", "b", "c"] {
        run(s, || {
            set_timeout(10, move || {
                at("list");
                set_timeout(20, sees("inner"));
                enter(&format!("{s}2"));
                set_immediate(sees("after-enter"));
            });
        });
    }
    set_timeout(10, sees("plain"));
    run("late", || {
        let x = set_timeout(10, sees("never"));
        set_timeout(5, move || {
            clear_timeout(&x);
            at("cleared");
        });
    });
    run("args", || _ = set_timeout(10, || at("argument")));
    run("i", || {
        let mut n = 0;
        set_interval(60, move |interval| {
            at(format!("interval-{n}"));
            run(&format!("n{n}"), || set_immediate(sees("of-interval")));
            n += 1;
            if n == 3 {
                interval.close();
            }
        });
    });
    run("un", || {
        let u = set_timeout(95, sees("unref"));
        u.unref();
        u.ref_();
    });
    let f = run("f", || set_timeout_mut(10, |_| at("fired")));
    set_timeout(300, move || run("refresher", || _ = f.refresh()));
    block(5);
}

async fn immediates() {
    run("a", || {
        set_immediate(|| {
            at("one");
            enter("x");
            set_immediate(sees("inner-one"));
            next_tick(sees("tick-one"));
            Promise::resolved(()).then(|()| at("then-one"));
        });
    });
    set_immediate(|| {
        at("two");
        run("y", || {
            set_immediate(|| {
                at("inner-two");
                exit(|| set_immediate(sees("exited")));
            });
        });
    });
    run("b", || {
        let i = set_immediate(sees("never"));
        run("c", || set_immediate(sees("three")));
        clear_immediate(&i);
    });
    enter("main");
    set_immediate(|| {
        at("four");
        queue_microtask(|| {
            at("micro");
            enter("m");
            queue_microtask(sees("micro-micro"));
        });
        next_tick(sees("tick-four"));
    });
    next_tick(|| {
        at("tick");
        enter("t");
        next_tick(sees("tick-tick"));
        queue_microtask(sees("micro-of-tick"));
    });
    next_tick(sees("next-tick"));
    queue_microtask(|| {
        at("micro-main");
        enter("mm");
    });
    queue_microtask(sees("micro-main-2"));
    set_immediate(|| at("args-12"));
}

async fn storages() {
    let (two, three) = (AsyncLocalStorage::new(), AsyncLocalStorage::new());
    let (seen2, seen3) = (two.clone(), three.clone());
    let all = move |place: &str| {
        let stores = [store(&als()), store(&seen2), store(&seen3)];
        log(format!("{place}-{}", stores.join("-")));
    };
    let look = |place: &'static str| {
        let all = all.clone();
        move || all(place)
    };
    let (two_, three_) = (two.clone(), three.clone());
    let nested = || {
        all("nested");
        set_immediate(look("immediate"));
        let s = AsyncLocalStorage::snapshot();
        let told = all.clone();
        let b = Rc::new(AsyncLocalStorage::bind(move |x: i32| {
            told(&format!("bound-{x}"));
            x * 2
        }));
        two_.exit(|| {
            all("exit-two");
            set_timeout(1, look("timeout-of-exit"));
            s.run(look("snapshot-in-exit"));
        });
        run("10", || {
            all("rerun");
            log(b(4).to_string());
            s.run(look("snap-pq"));
            let b = b.clone();
            next_tick(move || _ = b(5));
        });
        three_.enter_with("30".to_owned());
        all("entered");
        s.run(|| {
            all("snapshot");
            three_.enter_with("300".to_owned());
            all("entered-in-snapshot");
        });
        all("after-snapshot");
        let told = all.clone();
        Promise::resolved(7)
            .then(move |v| b(v))
            .then(move |v| told(&format!("then-{v}")));
    };
    run("1", || {
        two.run("2".to_owned(), || three.run("3".to_owned(), nested))
    });
    all("outside");
    set_timeout(100, move || {
        two.run("t".to_owned(), || {
            let s = AsyncLocalStorage::snapshot();
            two.disable();
            all("disabled");
            s.run(|| all("snap-disabled"));
            two.run("u".to_owned(), || {
                all("run-again");
                s.run(|| all("snap-again"));
            });
        });
    });
    block(5);
}

/// `inner(s)` of 522.
fn inner(s: &'static str) -> Promise<&'static str> {
    call(async move {
        at(format!("inner-begin-{s}"));
        enter(s);
        at("inner-entered");
        later().await.unwrap();
        at("inner-awaited");
        enter(&format!("{s}2"));
        Promise::resolved(()).await.unwrap();
        at("inner-end");
        s
    })
}

async fn async_functions() {
    let outer = || {
        call(async {
            at("outer");
            let p = inner("in");
            at("outer-called");
            p.await.unwrap();
            at("outer-awaited");
            enter("out");
            let v = inner("again").await.unwrap();
            at(format!("outer-{v}"));
            enter("try");
            later().await.unwrap();
            at("catch-x");
            enter("catch");
            Promise::resolved(()).await.unwrap();
            at("catch-awaited");
            at("finally");
            Promise::resolved(()).await.unwrap();
            at("finally-awaited");
            "done"
        })
    };
    run("start", || outer().then(at));
    at("main");
    run("parallel", || {
        call(async {
            let p = run("p", || inner("pp"));
            let q = run("q", || {
                call(async {
                    Promise::resolved(()).await.unwrap();
                    at("q");
                    later().await.unwrap();
                    at("q2");
                    "qq"
                })
            });
            let r = all([p, q]).await.unwrap();
            at(format!("all-{}", r.concat()));
        })
    });
    let thrown = run("thrown", || {
        try_call(async {
            Promise::resolved(()).await.unwrap();
            enter("deep");
            Err::<(), _>(Reason::new("deep"))
        })
    });
    thrown.catch(|e| at(format!("caught-{e}")));
    let returned = run("ret", || {
        call_returning(async {
            later().then(|()| {
                at("ret-then");
                enter("lost");
                5
            })
        })
    });
    returned.then(|v| at(format!("ret-{v}")));
}

async fn listeners() {
    const X: Event<u32> = Event::new("x");
    const Y: Event<u32> = Event::new("y");
    let e = EventEmitter::new();
    run("l", || {
        let again = e.clone();
        e.on(X, move |&v| {
            at(format!("on-{v}"));
            if v == 1 {
                run("re", || again.emit(X, 2));
            }
            at(format!("on-end-{v}"));
        });
        e.once(X, |v| {
            at(format!("once-{v}"));
            enter("entered");
        });
        e.prepend(X, |v| at(format!("first-{v}")));
        e.on(
            X,
            AsyncResource::bind_listener(|v: &u32| at(format!("bound-{v}"))),
        );
        e.on(X, |&v| {
            call(async move {
                at(format!("async-{v}"));
                Promise::resolved(()).await.unwrap();
                at(format!("async-after-{v}"));
            });
        });
    });
    run("emit", || {
        e.emit(X, 1);
        at("after-emit");
    });
    at("main");
    let heard = e.clone();
    run("waiter", || {
        call(async move {
            let v = once(&heard, Y).await.unwrap();
            at(format!("waited-{v}"));
        })
    });
    let emitter = e.clone();
    set_immediate(move || {
        run("y", || {
            emitter.emit(Y, 5);
            at("y-after");
        });
    });
    run("err", || {
        e.on(ERROR, |x| at(format!("error-{}", x.message())))
    });
    set_timeout(100, move || {
        run("failing", || e.emit(ERROR, Error::new("no")));
        e.emit(X, 3);
    });
}

async fn stream_events() {
    fn through() {
        let p = run("through", Transform::<Vec<u8>, Vec<u8>>::pass_through);
        let readable = p.readable();
        run("rd", || {
            readable.on_this(READABLE, |p, ()| {
                while let Some(c) = p.read() {
                    at(format!("chunk-{}", text(&c)));
                }
            });
        });
        run("t1", || p.writable().write("x"));
        let ended = p.clone();
        run("t2", || set_immediate(move || ended.writable().end("y")));
        run("pe", || {
            readable.on_this(END, |p, ()| {
                at("p-end");
                run("gone", || p.destroy(None));
            });
        });
        run("pc", || readable.on(CLOSE, |()| at("p-close")));
    }

    fn read() {
        let r = run("r", || {
            Readable::<String>::bytes().read(|_, _| at("read")).build()
        });
        run("data", || {
            r.on_data(|c| at(format!("data-{c}")));
            r.on(END, |()| at("end"));
            r.on(CLOSE, |()| {
                at("r-close");
                exit(through);
            });
        });
        let first = r.clone();
        run("p1", || {
            set_immediate(move || {
                first.push("1".to_owned());
                run("pause", || {
                    first.pause();
                    let paused = first.clone();
                    set_timeout(5, move || run("resume", || paused.resume()));
                });
                first.push("2".to_owned());
            })
        });
        run("p2", || {
            set_timeout(15, move || {
                r.push("3".to_owned());
                r.push_end();
            })
        });
    }

    let w = run("w", || {
        Writable::<String>::bytes(|c, done| {
            at(format!("write-{c}"));
            set_timeout(5, move || done.ok());
        })
        .high_water_mark(2)
        .end(|done| {
            at("final");
            set_immediate(move || done.ok());
        })
        .build()
    });
    run("on", || {
        w.on(DRAIN, |()| at("drain"));
        w.on(FINISH, |()| at("finish"));
        w.on(CLOSE, |()| {
            at("close");
            exit(read);
        });
    });
    run("w1", || w.write_with("a", |_| at("cb-a")));
    run("w2", || w.write_with("bb", |_| at("cb-bb")));
    run("w3", || w.end_with("c", |_| at("cb-end")));
    run("fin", || finished(&w).then(|_| at("finished")));
}

async fn kept_connection() {
    let agent = Agent::builder().keep_alive(true).max_sockets(1).build();
    let server = run("create", || {
        http::create_server(|q, s| {
            let url = q.url().to_owned();
            at(format!("request-{url}"));
            run(&format!("handler{url}"), || {
                q.on_data(|d| at(format!("body-{}", text(d))));
                let (answer, url) = (s.clone(), url.clone());
                q.on(END, move |()| {
                    at("req-end");
                    let (answer, url) = (answer.clone(), url.clone());
                    set_timeout(5, move || {
                        at("answer");
                        answer.end_with(format!("ok{url}"), |_| at("res-cb"));
                    });
                });
                s.on(FINISH, |()| at("finish"));
            });
        })
    });

    fn ask(s: &'static str, server: &http::Server, agent: &Agent, next: Box<dyn FnOnce()>) {
        run(s, || {
            let options = RequestOptions::new(server.address().unwrap())
                .path(format!("/{s}"))
                .method("POST")
                .agent(agent);
            let next = Cell::new(Some(next));
            let q = http::request(options);
            q.once(RESPONSE, move |response| {
                at("response");
                response.on_data(|d| at(format!("data-{}", text(d))));
                let next = RefCell::new(next.take());
                response.on(END, move |()| {
                    at("end");
                    let next = next.take().unwrap();
                    set_immediate(|| exit(next));
                });
            });
            q.on(FINISH, |()| at("sent"));
            q.end_with(format!("b{s}"), |_| at("end-cb"));
        });
    }

    run("listen", || {
        server.listen_this(("127.0.0.1", 0), move |server| {
            at("listening");
            let server = server.clone();
            exit(|| {
                let (s2, s3, a2, a3) =
                    (server.clone(), server.clone(), agent.clone(), agent.clone());
                let close = move || {
                    a3.destroy();
                    s3.close_with(sees("closed"));
                };
                let second = move || ask("two", &s2, &a2, Box::new(close));
                ask("one", &server, &agent, Box::new(second));
            });
        });
    });
}
