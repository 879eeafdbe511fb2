//! 600–606: what `enterWith` leaves behind, and stores at odd places.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

#[cfg(unix)]
use phaseloop::signal::SignalKind;
use phaseloop_node::async_hooks::{AsyncLocalStorage, AsyncResource};
#[cfg(unix)]
use phaseloop_node::child_process::{SPAWN, spawn};
use phaseloop_node::events::{Event, EventEmitterAsyncResource};
use phaseloop_node::http::{self, Agent, RESPONSE, RequestOptions, SOCKET};
use phaseloop_node::net::{self, CONNECT, CONNECTION, READY, Server};
use phaseloop_node::stream::{CLOSE, END, FINISH};
#[cfg(unix)]
use phaseloop_node::worker_threads::{CLOSE as PORT_CLOSE, MessageChannel};
use phaseloop_node::{
    Deferred, Emitter, Error, Promise, Thenable, all, all_settled, any, call, call_returning,
    catch, next_tick, process, queue_microtask, race, set_immediate, set_interval, set_timeout,
    set_timeout_mut, thenable, throw, try_call,
};
#[cfg(unix)]
use phaseloop_node::{clear_interval, dgram};

use super::contexts::{als, at, enter, exit, run, sees, store};
use crate::support::{block, log, text};

super::ports! {
    Virtual "600-context-kept" => kept,
    Real "601-context-kept-by-requests" => requests,
    Real "602-context-kept-by-sockets" => sockets,
    #[cfg(unix)]
    Real "603-context-kept-by-handles" => handles,
    Virtual "604-context-handlers" => handlers,
    Virtual "605-context-exits" => exits,
    Virtual "606-context-thenables" => thenables,
}

async fn kept() {
    fn refreshed() {
        let k = Cell::new(0);
        run("t", || {
            set_timeout_mut(10, move |t| {
                at("timer");
                enter(&format!("t{}", k.get()));
                k.set(k.get() + 1);
                if k.get() < 3 {
                    t.refresh();
                } else {
                    set_timeout(1, || exit(resources));
                }
            })
        });
    }

    fn resources() {
        let r = run("r", || AsyncResource::new("R"));
        r.run_in_async_scope(|| {
            at("scope-1");
            enter("r1");
            at("entered");
        });
        at("between");
        r.run_in_async_scope(|| {
            at("scope-2");
            run("inner", sees("run"));
            r.run_in_async_scope(|| {
                at("nested");
                enter("r2");
            });
            at("after-nested");
        });
        r.run_in_async_scope(sees("scope-3"));
        let b = r.bind(|()| {
            at("bound");
            enter("b");
        });
        b(());
        b(());
        let s = run("s", AsyncLocalStorage::snapshot);
        s.run(|| {
            at("snap-1");
            enter("s1");
        });
        s.run(sees("snap-2"));
        let f = run("f", || {
            AsyncLocalStorage::bind(|x: u32| {
                at(format!("f-{x}"));
                enter(&format!("f{x}"));
            })
        });
        f(1);
        f(2);
        at("out");
        set_immediate(|| exit(emitters));
    }

    fn emitters() {
        const X: Event<u32> = Event::new("x");
        let e = run("e", || EventEmitterAsyncResource::new("Mine"));
        e.on(X, |v| {
            at(format!("x-{v}"));
            enter(&format!("x{v}"));
        });
        e.on_this(X, |e, v| {
            at(format!("y-{v}"));
            if *v == 1 {
                e.emit(X, 5);
            }
        });
        e.emit(X, 1);
        e.emit(X, 2);
        at("end");
        let m = run("l", || {
            AsyncResource::bind_listener(|v: &u32| {
                at(format!("l-{v}"));
                enter(&format!("l{v}"));
            })
        });
        m(&1);
        m(&2);
    }

    let mut n = 0;
    run("i", || {
        set_interval(10, move |i| {
            at("interval");
            enter(&format!("i{n}"));
            set_immediate(sees("of-interval"));
            n += 1;
            if n == 3 {
                i.close();
                set_timeout(1, || exit(refreshed));
            }
        })
    });
}

async fn requests() {
    fn ask(s: &'static str, server: &http::Server, agent: &Agent, next: Box<dyn FnOnce()>) {
        run(s, || {
            let options = RequestOptions::new(server.address().unwrap())
                .method("POST")
                .agent(agent);
            let next = Cell::new(Some(next));
            let req = http::request(options);
            req.once(RESPONSE, move |res| {
                at("response");
                enter(&format!("res-{s}"));
                res.on_data(|_| at("c-data"));
                res.on(END, |()| at("c-end"));
                res.on(CLOSE, move |()| {
                    at("c-close");
                    let next = next.take().unwrap();
                    set_timeout(20, || exit(next));
                });
            });
            req.on(SOCKET, move |_| {
                at("socket");
                enter(&format!("sock-{s}"));
            });
            req.on(FINISH, |()| at("sent-req"));
            req.write("a");
            set_timeout(30, move || {
                at("ender");
                req.end("b");
            });
        });
    }

    let agent = Agent::builder().keep_alive(true).max_sockets(1).build();
    let n = Rc::new(Cell::new(0));
    let server = http::create_server(move |req, res| {
        at("request");
        n.set(n.get() + 1);
        enter(&format!("req{}", n.get()));
        let count = n.clone();
        req.on_data(move |d| {
            at(format!("data-{}", text(d)));
            enter(&format!("data{}", count.get()));
        });
        let answer = res.clone();
        req.on(END, move |()| {
            at("end");
            let answer = answer.clone();
            set_timeout(5, move || {
                at("timer");
                answer.end_with("x", |_| at("sent"));
            });
        });
        res.on(FINISH, |()| at("finish"));
        res.on(CLOSE, |()| at("close"));
        req.on(CLOSE, |()| at("req-close"));
        next_tick(sees("tick"));
        Promise::resolved(()).then(|()| at("then"));
    });
    server.on(CONNECTION, |_| {
        at("connection");
        enter("conn");
    });
    server.listen_this(("127.0.0.1", 0), move |server| {
        let (s2, s3, a2, a3) = (server.clone(), server.clone(), agent.clone(), agent.clone());
        let close = move || {
            a3.destroy();
            s3.close_with(sees("closed"));
        };
        let second = move || ask("two", &s2, &a2, Box::new(close));
        ask("one", server, &agent, Box::new(second));
    });
}

async fn sockets() {
    fn client(k: u32, server: &Server) {
        let c = run(&format!("c{k}"), || net::connect(server.address().unwrap()));
        c.on_this(CONNECT, |c, ()| {
            at("connect");
            enter("connected");
            c.write_with("1", |_| at("c-written"));
        });
        c.on(READY, |()| at("ready"));
        let (m, socket) = (Cell::new(0), c.clone());
        c.on_data(move |d| {
            at(format!("c-data-{}", text(d)));
            enter(&format!("c{}", text(d)));
            m.set(m.get() + 1);
            if m.get() < 3 {
                socket.write((m.get() + 1).to_string());
            } else {
                run("ender", || socket.end(()));
            }
        });
        c.on(END, |()| at("c-end"));
        let server = server.clone();
        c.on(CLOSE, move |()| {
            at("c-close");
            let server = server.clone();
            if k == 1 {
                set_timeout(20, move || exit(|| client(2, &server)));
            } else {
                server.close_with(sees("closed"));
            }
        });
    }

    run("listen", || {
        let n = Cell::new(0);
        let server = net::create_server(move |s| {
            at("connection");
            n.set(n.get() + 1);
            enter(&format!("conn{}", n.get()));
            let socket = s.clone();
            s.on_data(move |d| {
                let d = text(d);
                at(format!("srv-data-{d}"));
                enter(&format!("d{d}"));
                let socket = socket.clone();
                set_timeout(10, move || {
                    at("timer");
                    socket.write_with(format!("r{d}"), |_| at("written"));
                });
            });
            s.on_this(END, |s, ()| {
                at("srv-end");
                enter("srv-end");
                s.end(());
            });
            s.on(CLOSE, |()| at("srv-close"));
        });
        server.listen_this(("127.0.0.1", 0), |server| {
            at("listening");
            enter("listening");
            exit(|| client(1, server));
        });
    });
}

#[cfg(unix)]
async fn handles() {
    fn udp() {
        let u = run("u", dgram::Socket::new);
        u.on_message_this(|u, m| {
            let m = text(&m.bytes);
            at(format!("d-{m}"));
            enter(&format!("d{m}"));
            if m == "2" {
                u.close();
            } else {
                u.send(b"2", u.address().unwrap());
            }
        });
        u.on(CLOSE, |()| {
            at("u-close");
            set_timeout(20, || exit(child));
        });
        u.bind_this(([127, 0, 0, 1], 0).into(), |u| {
            at("bound");
            enter("bound");
            u.send(b"1", u.address().unwrap());
        });
    }

    fn child() {
        let c = run("c", || spawn("cat", []));
        c.on(SPAWN, |()| {
            at("spawn");
            enter("spawned");
        });
        let (k, stdout, stdin) = (
            Cell::new(0),
            c.stdout().unwrap().clone(),
            c.stdin().unwrap().clone(),
        );
        let first = stdin.clone();
        stdout.on_data(move |d| {
            at(format!("out-{}", text(d)));
            enter(&format!("out{}", text(d)));
            k.set(k.get() + 1);
            if k.get() == 1 {
                stdin.write("b");
            } else {
                stdin.end(());
            }
        });
        stdout.on(END, |()| at("out-end"));
        c.on(CLOSE, |()| exit(signals));
        set_timeout(20, move || _ = first.write("a"));
    }

    fn signals() {
        fn raise() {
            signal_hook::low_level::raise(SignalKind::WINCH.as_raw()).unwrap();
        }

        let (mut k, t) = (0, set_interval(1000, |_| ()));
        let own = Rc::new(RefCell::new(None::<process::Listener>));
        let known = own.clone();
        let listener = run("s", || {
            process::on_signal(SignalKind::WINCH, move |_| {
                at("sig");
                enter(&format!("sig{k}"));
                k += 1;
                if k < 3 {
                    set_timeout(10, raise);
                } else {
                    known.take().unwrap().remove();
                    clear_interval(&t);
                }
            })
        });
        own.replace(Some(listener.unwrap()));
        raise();
    }

    let MessageChannel { port1, port2, .. } = run("ch", MessageChannel::<u32>::new);
    port2.on_message_this(|port2, m| {
        at(format!("m-{m}"));
        enter(&format!("m{m}"));
        if *m == 3 {
            port2.close();
        }
    });
    port2.on(PORT_CLOSE, |()| {
        at("p-close");
        set_timeout(20, || exit(udp));
    });
    port1.post_message(1);
    port1.post_message(2);
    set_timeout(20, move || port1.post_message(3));
}

async fn handlers() {
    fn rejected(message: &'static str) -> Promise<()> {
        Promise::rejected(Error::new(message))
    }

    process::on_unhandled_rejection(|r| {
        at(format!("unhandled-{r}"));
        enter(&format!("h-{r}"));
        set_immediate(sees("from-handler"));
    });
    process::on_uncaught_exception(|e, _| {
        at(format!("uncaught-{e}"));
        enter(&format!("u-{e}"));
        queue_microtask(sees("micro-of-handler"));
    });
    run("a", || rejected("1"));
    run("b", || rejected("2").finally(sees("finally")));
    run("c", || {
        Promise::<()>::new(|deferred| {
            set_timeout(5, move || {
                run("rejecter", || deferred.reject(Error::new("3")))
            });
        })
    });
    run("d", || {
        set_timeout(10, || {
            at("t");
            enter("d2");
            next_tick(sees("tick"));
            throw("4")
        })
    });
    run("e", || set_timeout(10, sees("t-next")));
    set_timeout(40, || {
        run("f", || {
            try_call(async {
                Promise::resolved(()).await.unwrap();
                enter("f2");
                Promise::resolved(()).await.unwrap();
                Err::<(), _>(Error::new("5"))
            })
        });
    });
    set_timeout(60, || {
        run("g", || queue_microtask(|| _ = run("g2", || rejected("6"))));
    });
    set_timeout(80, || {
        run("h", || {
            let p = rejected("7");
            run("late", || {
                set_immediate(move || _ = p.catch(|_| at("late-catch")));
            });
        });
    });
    set_timeout(100, || {
        run("k", || all([rejected("8"), rejected("9")]).then(|_| ()));
    });
    set_timeout(120, || {
        run("l", || {
            Promise::resolved(()).then(|()| {
                enter("l2");
                throw("10")
            });
        });
    });
    set_timeout(160, sees("last"));
    process::on_rejection_handled(|_| at("handled"));
    block(20);
}

async fn exits() {
    let two = AsyncLocalStorage::<String>::new();
    let seen = two.clone();
    let both = move |place: &str| {
        let (one, two) = (store(&als()), store(&seen));
        log(format!("{place}-{one}-{two}"));
    };
    let told = |place: &'static str| {
        let both = both.clone();
        move || both(place)
    };
    let run_two = |store: &str, f: &dyn Fn()| two.run(store.to_owned(), f);
    run("a", || {
        run_two("b", &|| {
            exit(|| {
                both("exit");
                two.exit(|| {
                    both("both-exit");
                    set_immediate(told("imm-none"));
                });
                enter("in-exit");
                both("entered-in-exit");
                let then = told("then-in-exit");
                Promise::resolved(()).then(move |()| then());
            });
            both("after-exit");
            exit(|| {
                run_two("c", &|| {
                    set_timeout(1, told("timer-c"));
                    run("again", || both("again"));
                    both("after-again");
                });
            });
            both("end");
            let thrown = catch(|| {
                exit(|| {
                    enter("thrown");
                    throw("x")
                })
            });
            let Err(_) = thrown;
            both("caught");
            let thrown = catch(|| {
                run("x", || {
                    two.enter_with("y".to_owned());
                    throw("x")
                })
            });
            let Err(_) = thrown;
            both("caught-run");
            let (b, t) = (both.clone(), two.clone());
            call(async move {
                let failing = run("z", || {
                    try_call(async move {
                        Promise::resolved(()).await.unwrap();
                        t.enter_with("q".to_owned());
                        Err::<(), _>(Error::new("x"))
                    })
                });
                failing.await.unwrap_err();
                b("caught-async");
                enter("after");
                b("fin");
                Promise::resolved(()).await.unwrap();
                b("fin2");
            });
            let (b, t, after) = (both.clone(), two.clone(), told("th-after"));
            let next = Promise::resolved(()).and_then(move |()| {
                enter("th");
                t.exit(|| b("th-exit"));
                Promise::new(|deferred| {
                    b("executor");
                    enter("ex");
                    let b = b.clone();
                    set_immediate(move || {
                        b("resolver");
                        deferred.resolve(());
                    });
                })
            });
            next.then(move |()| after());
        });
    });
    both("main");
    enter("M");
    both("main-entered");
    let b = both.clone();
    set_immediate(move || {
        b("im");
        als().disable();
        b("im-disabled");
        enter("E");
        b("im-again");
        next_tick(move || {
            b("tk");
            als().disable();
            queue_microtask(move || {
                b("mt");
                run("R", || b("R"));
                b("mt2");
            });
        });
    });
    set_timeout(20, told("t-end"));
    block(5);
}

async fn thenables() {
    fn th(tag: u32, v: Result<u32, &'static str>) -> Thenable<u32> {
        thenable(move |deferred: Deferred<u32>| {
            at(format!("then-{tag}"));
            enter(&format!("in-{tag}"));
            match v {
                Ok(v) => deferred.resolve(v),
                Err(message) => deferred.reject(Error::new(message)),
            }
            at(format!("after-ok-{tag}"));
        })
    }

    fn promised(tag: u32, v: Result<u32, &'static str>) -> Promise<u32> {
        th(tag, v).into_promise()
    }

    run("a", || {
        call(async {
            let v = th(1, Ok(7)).await.unwrap();
            at(format!("v{v}"));
            let e = th(2, Err("no")).await.unwrap_err();
            at(format!("c-{e}"));
            enter("a2");
            let timed = thenable(|deferred: Deferred<()>| {
                set_timeout(5, move || {
                    at("t");
                    enter("t2");
                    deferred.resolve(());
                });
            });
            timed.await.unwrap();
            at("end");
        })
    });
    run("b", || {
        let next = promised(3, Ok(1)).and_then(|v| {
            at(format!("p{v}"));
            th(4, Ok(2))
        });
        next.then(|v| at(format!("q{v}")));
    });
    run("c", || {
        let members = [promised(5, Ok(1)), promised(6, Ok(2)), Promise::resolved(3)];
        all(members).then(|v| at(format!("all{}{}{}", v[0], v[1], v[2])));
    });
    run("d", || {
        let first = race([promised(7, Err("r")), Promise::new(|_| ())]);
        let caught = first.then_result(|result| result.unwrap_err());
        let next = caught.and_then(|e| {
            at(format!("r-{e}"));
            enter("d2");
            th(8, Ok(1))
        });
        next.finally(sees("f")).then(|v| at(format!("last{v}")));
    });
    run("e", || {
        let p = Promise::new(|deferred| {
            deferred.adopt(th(10, Ok(1)));
            enter("e2");
        });
        p.then(|_| at("e-end"));
    });
    run("g", || call_returning(async { th(11, Ok(5)) })).then(|v| at(format!("g{v}")));
    run("i", || {
        any([promised(13, Err("n")), promised(14, Ok(2))]).then(|v| at(format!("any{v}")));
    });
    run("j", || {
        let members = [promised(15, Err("n")), promised(16, Ok(2))];
        all_settled(members).then(|v| at(format!("set{}", v.len())));
    });
}
