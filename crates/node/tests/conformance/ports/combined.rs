//! 160–190: what several areas do together.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::StreamExt;
use phaseloop_node as node;
#[cfg(unix)]
use phaseloop_node::child_process::{SPAWN, spawn};
use phaseloop_node::events::{self, ERROR, Event, EventEmitter};
use phaseloop_node::fs::{self, OPEN, READY, ReadStreamOptions};
use phaseloop_node::stream::{
    CLOSE, DRAIN, END, FINISH, PAUSE, PIPE, RESUME, Readable, Transform, UNPIPE, Writable, pipeline,
};
use phaseloop_node::timers::promises;
use phaseloop_node::worker_threads::{CLOSE as PORT_CLOSE, EXIT, MessageChannel, ONLINE, Worker};
use phaseloop_node::{
    AbortController, AbortSignal, Emitter, Error, Promise, Reason, call, clear_interval, net,
    next_tick, process, queue_microtask, set_immediate, set_interval, set_timeout, set_timeout_mut,
    throw,
};

use crate::support::{block, done, fs_op, log, say, says, scratch, text};

super::ports! {
    Virtual "160-refresh-in-own-callback" => refresh_in_own_callback,
    Virtual "161-nested-immediates" => nested_immediates,
    Virtual "162-abort-any" => abort_any,
    Virtual "163-pipeline-error" => pipeline_error,
    Virtual "164-pipeline-source-destroyed" => pipeline_source_destroyed,
    Virtual "165-destroy-while-writing" => destroy_while_writing,
    Virtual "166-iterator-left" => iterator_left,
    Virtual "167-exit-hooks" => exit_hooks,
    Virtual "168-rejections-in-order" => rejections_in_order,
    Virtual "169-transform-flush-error" => transform_flush_error,
    Virtual "170-cork" => cork,
    Virtual "171-emitter-reentrant" => emitter_reentrant,
    Virtual "172-interval-microtasks" => interval_microtasks,
    Real "173-worker-fails" => worker_fails,
    Real "174-file-streams" => file_streams,
    Real "180-socket-half" => both_ends_of_a_socket,
    Virtual "181-readable-modes" => readable_modes,
    Virtual "182-slow-pipe" => slow_pipe,
    Virtual "183-events-on" => events_on,
    Virtual "184-promise-mix" => promise_mix,
    Virtual "185-timers-set-timers" => timers_that_set_each_other,
    Virtual "186-timers-promises-abort" => timers_promises_abort,
    #[cfg(unix)]
    Real "187-child-streams" => child_streams,
    Virtual "188-uncaught-places" => uncaught_places,
    Virtual "189-ports-mix" => ports_mix,
    Real "190-socket-timeout" => socket_timeout,
}

/// What logs how a callback of a stream ended.
fn ended(label: &'static str, text: fn(&Error) -> String) -> impl FnOnce(Result<(), Error>) {
    move |result| {
        let how = result.map_or_else(|error| text(&error), |()| "ok".to_owned());
        log(format!("{label}-{how}"));
    }
}

fn code(error: &Error) -> String {
    error.code().unwrap_or("no code").to_owned()
}

/// Logs the error and the close of a stream.
fn watch(name: &'static str, stream: &impl Emitter, text: fn(&Error) -> String) {
    stream.on(ERROR, move |error| {
        log(format!("{name}-error-{}", text(error)))
    });
    stream.on(CLOSE, move |()| log(format!("{name}-close")));
}

async fn refresh_in_own_callback() {
    let mut rounds = 0;
    set_timeout_mut(20, move |this| {
        rounds += 1;
        log(format!("a{rounds}"));
        if rounds == 3 {
            return;
        }
        set_timeout(20, move || log(format!("after-a{rounds}")));
        this.refresh();
        Promise::resolved(()).then(|()| log("micro"));
        next_tick(say("tick"));
    });
    set_timeout(20, say("b"));
}

async fn nested_immediates() {
    call(async {
        for i in 1..=3 {
            promises::set_immediate(()).await.unwrap();
            log(format!("await{i}"));
            next_tick(move || log(format!("await.tick{i}")));
        }
    });
    set_immediate(|| {
        log("one");
        set_immediate(|| {
            log("one.one");
            Promise::resolved(()).then(|()| drop(set_immediate(say("from-micro"))));
        });
        next_tick(|| drop(set_immediate(say("from-tick"))));
    });
    set_immediate(|| {
        log("two");
        queue_microtask(say("two.micro"));
    });
}

async fn abort_any() {
    let [a, b] = [(); 2].map(|()| AbortController::new());
    let any = AbortSignal::any([&a.signal(), &b.signal()]);
    let both = AbortSignal::any([&any, &AbortSignal::timeout(1000)]);
    any.on_abort(|| {
        log("any");
        next_tick(say("any.tick"));
    });
    both.on_abort(|| {
        log("both");
        queue_microtask(say("both.micro"));
    });
    b.signal().on_abort(say("b"));
    a.signal().on_abort(say("a"));
    set_immediate(move || {
        b.abort_with(Error::new("why"));
        let [one, two] = [&any, &both].map(|signal| signal.reason().unwrap().to_string());
        log(format!("aborted-{one}-{two}-{}", a.signal().aborted()));
        a.abort();
        log("again");
        let both = AbortSignal::any([&a.signal(), &b.signal()]);
        log(both.reason().unwrap().name());
    });
}

async fn pipeline_error() {
    let r = Readable::from_iter(["a", "b", "c"]);
    let t = Transform::objects(|c: &str, out| {
        log(format!("t-{c}"));
        if c == "b" {
            out.fail(Error::new("bad"));
        } else {
            out.ok_with(c.to_owned());
        }
    })
    .build();
    let w = Writable::objects(|c: String, done| {
        log(format!("w-{c}"));
        done.ok();
    })
    .build();
    watch("r", &r, Error::to_string);
    watch("t", &t, Error::to_string);
    watch("w", &w, Error::to_string);
    pipeline(&r).through(&t).into(&w).then(|result| {
        log(format!("done-{}", result.unwrap_err()));
        next_tick(say("done.tick"));
    });
    next_tick(say("tick"));
}

async fn pipeline_source_destroyed() {
    let r = Readable::<&str>::objects().read(|_, _| ()).build();
    let w = Writable::objects(|c: &str, done| {
        log(format!("w-{c}"));
        done.ok();
    })
    .build();
    watch("r", &r, code);
    watch("w", &w, code);
    pipeline(&r)
        .into(&w)
        .then(|result| log(format!("done-{}", code(&result.unwrap_err()))));
    r.push("a");
    set_immediate(move || {
        r.destroy(None);
        log("destroyed");
        queue_microtask(say("micro"));
    });
}

async fn destroy_while_writing() {
    let w = Writable::bytes(|c: String, done| {
        log(format!("write-{c}"));
        set_immediate(move || {
            log(format!("done-{c}"));
            done.ok();
        });
    })
    .build();
    w.on(ERROR, |error| log(format!("error-{error}")));
    w.on(CLOSE, says("close"));
    for (c, label) in [("a", "cb-a"), ("b", "cb-b"), ("c", "cb-c")] {
        w.write_with(c.to_owned(), ended(label, code));
    }
    w.end_with((), ended("end-cb", code));
    next_tick(move || {
        log("tick");
        w.destroy(None);
        log("destroyed");
    });
}

async fn iterator_left() {
    let r = Readable::from_iter(["a", "b", "c"]);
    r.on(CLOSE, says("close"));
    r.on(END, says("end"));
    call(async move {
        let mut chunks = r.chunks();
        while let Some(c) = chunks.next().await {
            let c = c.unwrap();
            log(format!("chunk-{c}"));
            if c == "b" {
                break;
            }
        }
        drop(chunks);
        log(format!("after-{}", r.destroyed()));
    });
    let failing = Readable::objects().read(|_, _| ()).build();
    failing.push("x");
    let this = failing.clone();
    set_timeout(50, move || this.destroy(Some(Error::new("gone"))));
    call(async move {
        let mut chunks = failing.chunks();
        while let Some(c) = chunks.next().await {
            match c {
                Ok(c) => log(format!("chunk-{c}")),
                Err(error) => log(format!("caught-{error}")),
            }
        }
    });
}

async fn exit_hooks() {
    let mut count = 0;
    process::on_before_exit(move |code| {
        count += 1;
        log(format!("before-{code}-{count}"));
        match count {
            1 => {
                let revived = || {
                    log("revived");
                    process::set_exit_code(3);
                };
                set_timeout(1, revived);
            }
            2 => {
                Promise::resolved(())
                    .then(|()| log("micro"))
                    .then(|()| next_tick(say("tick")));
            }
            _ => {}
        }
    });
    process::on_before_exit(|_| log("second"));
    process::on_exit(|code| {
        log(format!("exit-{code}"));
        process::set_exit_code(0);
    });
    process::on_exit(|code| {
        log(format!("exit2-{code}-{}", process::exit_code().unwrap()));
        set_immediate(say("no"));
    });
}

fn rejected(text: &str) -> Promise<()> {
    Promise::rejected(Reason::new(text))
}

async fn rejections_in_order() {
    let late: Rc<RefCell<Option<Promise<()>>>> = Rc::default();
    let kept = late.clone();
    process::on_unhandled_rejection(move |reason| {
        let text = reason.to_string();
        log(format!("unhandled-{text}"));
        if text == "one" {
            let late = kept.take().unwrap();
            late.catch(|_| log("caught-late"));
        }
        next_tick(move || log(format!("tick-{text}")));
    });
    process::on_rejection_handled(|_| log("handled-late"));
    drop(rejected("one"));
    late.replace(Some(rejected("two")));
    let in_time = rejected("three");
    next_tick(move || {
        in_time.catch(|reason| log(format!("in-time-{reason}")));
    });
    let first = || {
        log("timer1");
        drop(rejected("four"));
    };
    set_timeout(1, first);
    set_timeout(1, say("timer2"));
    block(10);
}

async fn transform_flush_error() {
    let t = Transform::bytes(|c: String, out| out.ok_with(c.to_uppercase()))
        .flush(|out| {
            log("flush");
            out.fail(Error::new("no"));
        })
        .build();
    for event in [END, FINISH, CLOSE] {
        t.on(event, move |()| log(event.name()));
    }
    t.on(ERROR, |error| log(format!("error-{error}")));
    t.readable().on_data(|d: &String| log(format!("data-{d}")));
    t.writable().write_with("a", done("cb-a"));
    let end = ended("end-cb", Error::to_string);
    t.writable().end_with("b", end);
    next_tick(say("tick"));
    set_immediate(say("immediate"));
}

async fn cork() {
    let w = Writable::bytes(|c: String, done| {
        log(format!("write-{c}"));
        done.ok();
    })
    .write_all(|all, done| {
        log(format!("writev-{}", all.concat()));
        next_tick(move || done.ok());
    })
    .build();
    let write = |w: &Writable<String>, c: &'static str| {
        w.write_with(c.to_owned(), move |_| log(format!("cb-{c}")));
    };
    w.on(FINISH, says("finish"));
    w.cork();
    w.cork();
    write(&w, "a");
    write(&w, "b");
    w.uncork();
    log("one-left");
    next_tick(move || {
        w.uncork();
        log("uncorked");
        write(&w, "c");
        write(&w, "d");
        w.end(());
    });
}

async fn emitter_reentrant() {
    const X: Event<()> = Event::new("x");
    let (e, depth, c) = (EventEmitter::new(), Cell::new(0), Rc::new(Cell::new(None)));
    e.once_this(X, |e, ()| {
        log("once");
        e.emit(X, ());
    });
    let own = c.clone();
    e.on_this(X, move |e, ()| {
        depth.set(depth.get() + 1);
        log(format!("a{}", depth.get()));
        if depth.get() == 1 {
            own.take().map(|c| e.off(c));
            e.on(X, says("late"));
            e.prepend(X, says("early"));
            e.emit(X, ());
            log("back");
        }
        depth.set(depth.get() - 1);
    });
    c.set(Some(e.on(X, says("c"))));
    log(e.emit(X, ()).to_string());
    log(e.listener_count(X).to_string());
    log(e.emit(X, ()).to_string());
}

async fn interval_microtasks() {
    let (mut n, mut m) = (0, 0);
    set_interval(20, move |i| {
        n += 1;
        log(format!("i{n}"));
        if n == 2 {
            let i = i.clone();
            Promise::resolved(()).then(move |()| {
                clear_interval(&i);
                log("cleared-i");
            });
        }
    });
    set_interval(20, move |j| {
        m += 1;
        log(format!("j{m}"));
        if m == 3 {
            let j = j.clone();
            next_tick(move || {
                clear_interval(&j);
                log("cleared-j");
            });
        }
    });
}

async fn worker_fails() {
    let w = Worker::<(), &str>::new(|parent_port| async move {
        parent_port.post_message("a");
        set_timeout(20, move || {
            parent_port.post_message("b");
            throw("in the worker")
        });
    })
    .unwrap();
    w.on(ONLINE, says("online"));
    w.on_message(|m| log(format!("message-{m}")));
    w.on(ERROR, |error| log(format!("error-{error}")));
    w.on(EXIT, |code| log(format!("exit-{code}")));
}

async fn file_streams() {
    fn tell(stream: &impl Emitter, prefix: &'static str, events: [Event<()>; 4]) {
        for event in events {
            stream.on(event, move |()| {
                log(format!("{prefix}-{}", event.name()));
                next_tick(move || log(format!("{prefix}-{}.tick", event.name())));
            });
        }
    }
    let w = fs::create_write_stream(scratch("f"));
    tell(&w, "w", [OPEN, READY, FINISH, CLOSE]);
    w.write_with(b"hello ", done("cb"));
    w.end_with(b"world", done("end-cb"));
    w.on(CLOSE, |()| {
        let options = ReadStreamOptions {
            high_water_mark: 8,
            ..ReadStreamOptions::default()
        };
        let r = fs::create_read_stream_with(scratch("f"), options);
        tell(&r, "r", [OPEN, READY, END, CLOSE]);
        r.on_data(|d| {
            log(format!("data-{}", text(d)));
            next_tick(say("data.tick"));
            queue_microtask(say("data.micro"));
        });
    });
    next_tick(say("tick"));
}

async fn both_ends_of_a_socket() {
    let server = net::Server::new();
    server.on_this(net::CONNECTION, |server, s| {
        s.on_data_this(|s, d| {
            log(format!("s-data-{}", text(d)));
            s.end_with("bye", done("s-end-cb"));
        });
        s.on(END, says("s-end"));
        s.on(FINISH, says("s-finish"));
        let server = server.clone();
        s.on(CLOSE, move |()| {
            log("s-close");
            server.close_with(say("server-close"));
        });
    });
    server.listen_this(("127.0.0.1", 0), |server| {
        let c = net::connect_with(server.address().unwrap(), |c| {
            log("c-connect");
            c.write_with("hi", done("c-written"));
            log("c-sync");
        });
        c.on_data(|d| {
            log(format!("c-data-{}", text(d)));
            next_tick(say("c-data.tick"));
        });
        c.on(END, says("c-end"));
        c.on(FINISH, says("c-finish"));
        c.on_this(CLOSE, |c, ()| log(format!("c-close-{}", c.had_error())));
    });
}

async fn readable_modes() {
    let mut n = 0;
    let r = Readable::objects()
        .high_water_mark(2)
        .read(move |this, _| {
            n += 1;
            log(format!("read{n}"));
            if n <= 6 {
                this.push(format!("v{n}"));
            } else {
                this.push_end();
            }
        })
        .build();
    for event in [END, CLOSE, PAUSE, RESUME] {
        r.on(event, move |()| log(event.name()));
    }
    log(format!("first-{}", r.read().unwrap()));
    let this = r.clone();
    r.on_data(move |d| {
        log(format!("data-{d}"));
        if d == "v3" {
            this.pause();
            let this = this.clone();
            set_immediate(move || {
                log("immediate");
                this.resume();
            });
        }
    });
    next_tick(say("tick"));
}

async fn slow_pipe() {
    let mut values = ["a", "b", "c", "d"].into_iter();
    let r = Readable::objects()
        .high_water_mark(1)
        .read(move |this, _| match values.next() {
            Some(value) => drop(this.push(value)),
            None => this.push_end(),
        })
        .build();
    let w = Writable::objects(|c: &str, done| {
        log(format!("w-{c}"));
        let c = c.to_owned();
        set_immediate(move || {
            log(format!("done-{c}"));
            done.ok();
        });
    })
    .high_water_mark(1)
    .build();
    w.on(DRAIN, says("drain"));
    w.on(FINISH, says("finish"));
    w.on(PIPE, says("pipe"));
    w.on(UNPIPE, says("unpipe"));
    r.on(END, says("end"));
    r.pipe(&w);
    set_timeout(100, say("later"));
}

async fn events_on() {
    const X: Event<u32> = Event::new("x");
    const Y: Event<str> = Event::new("y");
    let e = EventEmitter::new();
    let mut all = events::on(&e, X);
    call(async move {
        while let Some(v) = all.next().await {
            match v {
                Ok(v) => {
                    log(format!("x{v}"));
                    next_tick(move || log(format!("tick{v}")));
                }
                Err(error) => log(format!("caught-{error}")),
            }
        }
    });
    e.emit(X, 1);
    e.emit(X, 2);
    log("sync");
    let y = events::once(&e, Y);
    call(async move { log(format!("once-{}", y.await.unwrap())) });
    let this = e.clone();
    set_immediate(move || {
        this.emit(X, 3);
        this.emit(Y, "v");
        queue_microtask(say("micro"));
    });
    let last = move || {
        e.emit(X, 4);
        e.emit(ERROR, Error::new("no"));
        log("emitted");
    };
    set_timeout(30, last);
}

/// Logs when a promise is settled, in rounds of microtasks from now.
fn count<T: Clone + 'static>(p: &Promise<T>, label: &'static str, text: fn(T) -> String) {
    let rounds = Rc::new(Cell::new(0));
    let n = rounds.clone();
    call(async move {
        while n.get() <= 12 {
            Promise::resolved(()).await.unwrap();
            n.set(n.get() + 1);
        }
    });
    p.then_result(move |result| {
        let n = rounds.get();
        match result {
            Ok(value) => log(format!("{label}-{}@{n}", text(value))),
            Err(reason) => log(format!("{label}!{reason}@{n}")),
        }
    });
}

async fn promise_mix() {
    let text = |value: &str| value.to_owned();
    let three = [
        Promise::resolved(1),
        Promise::resolved(2),
        call(async { 3 }),
    ];
    count(&node::all(three), "all", |all| {
        let all: Vec<_> = all.iter().map(u32::to_string).collect();
        all.join(",")
    });
    let slow = call(async {
        Promise::resolved(()).await.unwrap();
        "r"
    });
    count(&node::race([Promise::new(|_| ()), slow]), "race", text);
    let one_of_two = [Promise::rejected(Reason::new("1")), Promise::resolved(2)];
    count(&node::any(one_of_two), "any", |value: u32| {
        value.to_string()
    });
    let settled = [Promise::rejected(Reason::new("1")), Promise::resolved(2)];
    let settled = node::all_settled(settled).then(|all| {
        let first = |result: &Result<u32, Reason>| if result.is_ok() { "f" } else { "r" };
        all.iter().map(first).collect::<String>()
    });
    count(&settled, "settled", |text| text);
    let tried = call(async {
        let caught = rejected("x").await.unwrap_err();
        Promise::resolved(()).await.unwrap();
        format!("{caught}c")
    });
    count(&tried, "try", |text| text);
    let finally = Promise::resolved(()).finally(|| ()).then(|()| "f");
    count(&finally, "finally", text);
    let nested =
        node::call_returning(async { node::call_returning(async { call(async { "deep" }) }) });
    count(&nested, "nested", text);
    let chain = rejected("e")
        .then(|()| 1)
        .catch(|reason| throw(format!("{reason}2")))
        .finally(|| ());
    count(&chain, "chain", |value| value.to_string());
}

async fn timers_that_set_each_other() {
    let first = || {
        log("t1");
        set_timeout(0, say("t1.1"));
        set_immediate(say("i1"));
        block(5);
        Promise::resolved(()).then(|()| {
            set_timeout(1, say("t1.m"));
            log("m1");
        });
    };
    set_timeout(1, first);
    let second = || {
        log("t2");
        set_immediate(|| {
            log("i2");
            set_timeout(1, say("i2.t"));
            block(5);
            set_immediate(say("i2.i"));
        });
    };
    set_timeout(1, second);
    let third = || {
        log("t3");
        next_tick(say("t3.tick"));
    };
    set_timeout(2, third);
    block(10);
}

async fn timers_promises_abort() {
    let ac = AbortController::new();
    let options = promises::Options::new().signal(&ac.signal());
    let sleep = promises::set_timeout_with(60_000, (), &options);
    call(async move {
        if let Err(reason) = sleep.await {
            log(format!("sleep-{}", reason.name()));
        }
        log("finally");
    });
    let turn = promises::set_immediate_with((), &options);
    call(async move {
        match turn.await {
            Ok(()) => log("turn"),
            Err(reason) => log(format!("turn-{}", reason.name())),
        }
    });
    let mut every = promises::set_interval_with(100, "v", &options);
    call(async move {
        let mut n = 0;
        while let Some(v) = every.next().await {
            match v {
                Ok(v) => {
                    n += 1;
                    log(format!("{v}{n}"));
                }
                Err(error) => return log(format!("every-{}", error.name())),
            }
            if n == 2 {
                let ac = ac.clone();
                let abort = move || {
                    log("abort");
                    ac.abort();
                    log("aborted");
                    next_tick(say("tick"));
                    queue_microtask(say("micro"));
                };
                set_timeout(10, abort);
            }
        }
    });
}

#[cfg(unix)]
async fn child_streams() {
    let c = spawn("cat", []);
    c.on(SPAWN, says("spawn"));
    let (stdin, stdout) = (c.stdin().unwrap().clone(), c.stdout().unwrap());
    stdin.on(FINISH, says("in-finish"));
    stdin.write_with("hello\n", done("written"));
    stdout.on_data(move |d| {
        log(format!("data-{}", text(d)));
        stdin.end(());
    });
    stdout.on(END, says("out-end"));
    c.on_this(CLOSE, |c, ()| {
        let exit = c.exit().unwrap();
        let signal = exit
            .signal
            .map_or("null".to_owned(), |signal| signal.to_string());
        log(format!("close-{}-{signal}", exit.code.unwrap()));
    });
}

async fn uncaught_places() {
    process::on_uncaught_exception(|uncaught, _| {
        let text = uncaught.to_string();
        log(format!("caught-{text}"));
        next_tick(move || log(format!("tick-{text}")));
    });
    set_immediate(|| {
        next_tick(say("i1.tick"));
        throw("i1")
    });
    set_immediate(|| {
        log("i2");
        Promise::resolved(()).then(|()| log("i2.m"));
    });
    let timer = || {
        queue_microtask(|| throw("m"));
        queue_microtask(say("m2"));
        next_tick(|| throw("t"));
        next_tick(say("t2"));
    };
    set_timeout(20, timer);
    set_timeout(20, say("timer2"));
    fs_op(|| {
        next_tick(say("fs.tick"));
        throw("fs")
    });
}

async fn ports_mix() {
    let [a, b] = [(); 2].map(|()| MessageChannel::<String>::new());
    let (answers, others) = (a.port1.clone(), b.port1.clone());
    a.port2.on_message_this(move |port, m| {
        log(format!("a-{m}"));
        match m.parse::<u32>().unwrap() {
            n @ ..3 => {
                answers.post_message((n + 1).to_string());
                others.post_message(format!("from-a{n}"));
            }
            _ => port.close(),
        }
        let m = m.clone();
        queue_microtask(move || log(format!("a.micro-{m}")));
    });
    b.port2.on_message_this(|port, m| {
        log(format!("b-{m}"));
        let text = format!("b.tick-{m}");
        next_tick(move || log(text));
        if m == "from-a2" {
            port.close();
        }
    });
    a.port1.on(PORT_CLOSE, says("a1-close"));
    a.port2.on(PORT_CLOSE, says("a2-close"));
    b.port1.on(PORT_CLOSE, says("b1-close"));
    b.port2.on(PORT_CLOSE, says("b2-close"));
    a.port1.post_message("1".to_owned());
    set_immediate(say("immediate"));
}

async fn socket_timeout() {
    let server = net::Server::new();
    server.on_this(net::CONNECTION, |server, s| {
        s.on_data(|d| log(format!("s-data-{}", text(d))));
        s.on(END, says("s-end"));
        let server = server.clone();
        s.on(CLOSE, move |()| {
            log("s-close");
            server.close();
        });
    });
    server.listen_this(("127.0.0.1", 0), |server| {
        let (c, count) = (net::connect(server.address().unwrap()), Cell::new(0));
        c.set_timeout(60);
        c.on_this(net::TIMEOUT, move |c, ()| {
            count.set(count.get() + 1);
            log(format!("timeout{}", count.get()));
            next_tick(say("tick"));
            match count.get() {
                n @ ..3 => _ = c.write(format!("w{n}")),
                _ => c.end(()),
            }
        });
        c.on(CLOSE, says("c-close"));
    });
    let [idle, gone] = [(); 2].map(|()| net::Socket::new());
    idle.set_timeout(10);
    idle.on(net::TIMEOUT, says("unconnected"));
    gone.set_timeout(10);
    gone.on(net::TIMEOUT, says("no"));
    gone.destroy(None);
    // The timer of a socket does not hold it.
    set_timeout(30, move || drop(idle));
}
