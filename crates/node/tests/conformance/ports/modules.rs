//! 466, 467, 473–478: streams, events and promises in use.

use std::cell::Cell;
use std::rc::Rc;

use futures::StreamExt as _;
use phaseloop_node::events::{self, ERROR, Event, EventEmitter, once};
use phaseloop_node::stream::{
    CLOSE, Duplex, END, FINISH, Finished, FinishedOptions, READABLE, Readable, Transform, Writable,
    add_abort_signal, consumers, duplex_pair, finished, finished_with,
};
use phaseloop_node::timers::promises::{self as timers, Options, scheduler};
use phaseloop_node::util::promisify;
use phaseloop_node::{
    AbortController, AbortSignal, Emitter, Error, Promise, all, call, fs, next_tick, set_immediate,
    set_timeout, throw,
};

use crate::support::{log, say, says};

super::ports! {
    Virtual "466-add-abort-signal" => abort_signals,
    Virtual "467-events-on-options" => events_on,
    Virtual "473-consumers" => consume,
    Virtual "474-scheduler-and-timers" => schedule,
    Real "475-promisify" => promisified,
    Virtual "476-from-iterators" => from_iterators,
    Virtual "477-finished-promises" => ends,
    Virtual "478-duplex-pair" => pair,
}

type Bytes = Transform<Vec<u8>, Vec<u8>>;

fn pass_through() -> Bytes {
    Transform::bytes(|chunk: Vec<u8>, out| out.ok_with(chunk)).build()
}

fn chain(name: &'static str, links: u32) {
    let mut p = Promise::resolved(());
    for i in 1..=links {
        p = p.then(move |()| log(format!("{name}{i}")));
    }
}

fn watch(name: &'static str, stream: &impl Emitter) {
    for event in [END, FINISH, CLOSE] {
        stream.on(event, move |()| log(format!("{name}.{}", event.name())));
    }
}

async fn abort_signals() {
    let c = AbortController::new();
    let r = Readable::<u32>::objects().build();
    let held = Rc::new(Cell::new(None));
    let writing = held.clone();
    let w = Writable::objects(move |x: u32, done| {
        log(format!("w-{x}"));
        writing.set(Some(done));
    })
    .build();
    add_abort_signal(&c.signal(), &r);
    add_abort_signal(&c.signal(), &w);
    watch("r", &r);
    r.on(ERROR, |e| {
        log(format!("r.{}-{}", e.name(), e.code().unwrap()))
    });
    watch("w", &w);
    w.on(ERROR, |e| {
        log(format!("w.{}-{}", e.name(), e.code().unwrap()))
    });
    r.on_data(|x| log(format!("r-{x}")));
    r.push(1);
    for x in [1_u32, 2] {
        w.write_with(x, |result| log(format!("cb-{result:?}")));
    }
    set_timeout(5, move || {
        log("abort");
        c.abort();
        log(format!("aborted-{}-{}", r.destroyed(), w.destroyed()));
        next_tick(say("tick"));
        Promise::resolved(()).then(|()| log("promise"));
        drop(held);
    });
    set_timeout(20, || drop(call(aborted_loops())));
}

async fn aborted_loops() {
    let gone = Readable::<Vec<u8>>::bytes().build();
    add_abort_signal(&AbortSignal::abort(Error::new("gone")), &gone);
    log(format!("gone-{}", gone.destroyed()));
    gone.on(ERROR, |e| log(format!("gone.{}", e.name())));
    let d = AbortController::new();
    let s = Readable::from_iter([1, 2, 3]);
    add_abort_signal(&d.signal(), &s);
    s.on(CLOSE, says("s.close"));
    let mut chunks = s.chunks();
    while let Some(x) = chunks.next().await {
        match x {
            Ok(x) => {
                log(format!("s-{x}"));
                if x == 2 {
                    d.abort();
                }
            }
            Err(e) => log(e.name()),
        }
    }
    let f = AbortController::new();
    let t = Readable::from_iter([1]);
    add_abort_signal(&f.signal(), &t);
    let mut chunks = t.chunks();
    while let Some(x) = chunks.next().await {
        log(format!("t-{}", x.unwrap()));
    }
    f.abort();
    log(format!("t-{}", t.errored().map_or("null", |_| "error")));
}

const X: Event<u32> = Event::new("x");

fn names(e: &EventEmitter) {
    log(format!("names-{}", e.event_names().join(",")));
}

async fn events_on() {
    const OVER: Event<()> = Event::new("end");
    call(async {
        let a = EventEmitter::new();
        let emits = a.clone();
        set_immediate(move || {
            emits.emit(X, 1);
            emits.emit(X, 2);
            emits.emit(OVER, ());
            names(&emits);
            emits.emit(X, 3);
            chain("c", 5);
        });
        let mut all = events::on(&a, X).until(OVER).until(CLOSE);
        while let Some(v) = all.next().await {
            log(format!("a-{}", v.unwrap()));
        }
        log("ended");
        let b = EventEmitter::new();
        let emits = b.clone();
        set_immediate(move || {
            emits.emit(X, 1);
            emits.emit(X, 2);
            emits.emit(ERROR, Error::new("bad"));
            names(&emits);
            chain("d", 5);
        });
        let mut all = events::on(&b, X);
        loop {
            match all.next().await.unwrap() {
                Ok(v) => log(format!("b-{v}")),
                Err(e) => break log(e.to_string()),
            }
        }
        aborted_events().await;
    });
}

async fn aborted_events() {
    let (c, ac) = (EventEmitter::new(), AbortController::new());
    let mut all = events::on_with_signal(&c, X, &ac.signal());
    c.emit(X, 1);
    c.emit(X, 2);
    ac.abort();
    names(&c);
    loop {
        match all.next().await.unwrap() {
            Ok(v) => log(format!("c-{v}")),
            Err(e) => break log(format!("{}-{}", e.name(), e.code().unwrap())),
        }
    }
    let before = events::on_with_signal(&c, X, &ac.signal()).next().await;
    log(format!("before-{}", before.unwrap().unwrap_err().name()));
    let d = EventEmitter::new();
    let emits = d.clone();
    set_immediate(move || (1..=3).for_each(|n| assert!(emits.emit(X, n))));
    let mut all = events::on(&d, X);
    while let Some(v) = all.next().await {
        let v = v.unwrap();
        log(format!("d-{v}"));
        if v == 2 {
            break;
        }
    }
    drop(all);
    names(&d);
    let e = EventEmitter::new();
    let mut both = events::on(&e, X);
    e.emit(X, 1);
    log(format!("next-{}", both.next().await.unwrap().unwrap()));
    set_timeout(1, move || assert!(e.emit(X, 2)));
    log(format!("next-{}", both.next().await.unwrap().unwrap()));
    let f = EventEmitter::new();
    let emits = f.clone();
    set_immediate(move || assert!(emits.emit(ERROR, Error::new("wanted"))));
    let wanted = events::on(&f, ERROR).next().await;
    log(wanted.unwrap().unwrap().to_string());
}

fn bytes<const N: usize>(chunks: [&[u8]; N]) -> Readable<Vec<u8>> {
    Readable::from_iter(chunks.map(<[u8]>::to_vec))
}

async fn consume() {
    call(async {
        let euro = "x€y".as_bytes();
        let text = consumers::text(&bytes([&euro[..2], &euro[2..]]));
        log((text.await.unwrap() == "x€y").to_string());
        let marked = bytes(["\u{feff}a".as_bytes(), &[0xe2, 0x82]]);
        let text = consumers::text(&marked).await.unwrap();
        log((text == "a\u{fffd}").to_string());
        let all = consumers::buffer(&bytes([b"ab", b"c"])).await.unwrap();
        log(all
            .iter()
            .map(|byte| format!("{byte:x}"))
            .collect::<String>());
        let p = pass_through();
        let text = consumers::text(p.readable());
        let whole = text.then(|t| log(format!("text-{t}")));
        p.on(END, says("end"));
        p.on(CLOSE, says("close"));
        p.writable().write("one ");
        set_immediate(move || {
            p.writable().end("two");
            log("ended");
        });
        whole.await.unwrap();
        let q = pass_through();
        let torn = q.readable().clone();
        set_immediate(move || torn.destroy(Some(Error::new("torn"))));
        let failed = consumers::text(q.readable()).await;
        log(failed.unwrap_err().to_string());
        let r = pass_through();
        let early = r.readable().clone();
        set_immediate(move || early.destroy(None));
        let failed = consumers::buffer(r.readable()).await;
        log(failed.unwrap_err().code().unwrap());
    });
}

async fn schedule() {
    call(async {
        set_timeout(20, say("timer-20"));
        scheduler::wait(20).then(|()| log("wait-20"));
        timers::set_timeout(20, "v").then(|v| log(format!("sleep-{v}")));
        set_timeout(20, || {
            log("timer-20b");
            next_tick(say("tick"));
        });
        scheduler::wait(40).await.unwrap();
        set_immediate(|| {
            log("immediate-1");
            next_tick(say("tick-1"));
        });
        let y = scheduler::yield_now().then(|()| log("yielded"));
        timers::set_immediate("t").then(|v| log(format!("turn-{v}")));
        set_immediate(say("immediate-2"));
        y.await.unwrap();
        let ac = AbortController::new();
        let options = Options::new().signal(&ac.signal());
        let w = scheduler::wait_with(1_000, &options).then_result(|result| {
            let e = result.unwrap_err();
            log(format!("{}-{}", e.name(), e.code().unwrap()));
        });
        set_immediate(move || {
            ac.abort();
            log("aborted");
            Promise::resolved(())
                .then(|()| log("p1"))
                .then(|()| log("p2"));
        });
        w.await.unwrap();
        let before = scheduler::wait_with(1_000, &options);
        log(format!("before-{}", before.await.unwrap_err().name()));
        let mut every = timers::set_interval(5, "i");
        for n in 1..=3 {
            log(format!("{}{n}", every.next().await.unwrap().unwrap()));
        }
        drop(every);
        log("left");
    });
}

async fn promisified() {
    type Callback = Box<dyn FnOnce(Result<u32, Error>)>;
    let now = |x: u32| {
        promisify(move |cb: Callback| {
            log("in");
            cb(Ok(x));
            log("out");
        })
    };
    let later = |ms: u32| {
        promisify(move |cb: Box<dyn FnOnce(Result<&'static str, Error>)>| {
            set_timeout(ms, move || cb(Ok("late")))
        })
    };
    call(async move {
        let p = now(7);
        chain("c", 4);
        p.then(|v| log(format!("then-{v}")));
        log(format!("got-{}", p.await.unwrap()));
        // A callback cannot be called twice here: it is a `FnOnce`.
        let twice = promisify(|cb: Callback| cb(Ok(1)));
        log(format!("twice-{}", twice.await.unwrap()));
        let throwing: Promise<u32> = promisify(|_: Callback| throw(Error::new("thrown")));
        log(throwing.await.unwrap_err().to_string());
        set_timeout(5, say("timer"));
        log(later(5).await.unwrap());
        let stat = promisify(|cb| fs::stat("/no/such/file", cb));
        let e = Error::from(stat.then(drop).await.unwrap_err());
        log(format!("{}-{}", e.code().unwrap(), e.syscall().unwrap()));
        let w = Writable::bytes(|x: Vec<u8>, done| {
            log(format!("write-{}", String::from_utf8_lossy(&x)));
            done.ok();
        })
        .build();
        promisify(|cb| w.write_with("a", cb)).await.unwrap();
        log("written");
        let (one, late, two) = all((now(1), later(1), now(2))).await.unwrap();
        log(format!("all-{one},{late},{two}"));
    });
}

fn range() -> Readable<u32> {
    Readable::from_iter((1..=4).inspect(|i| log(format!("next-{i}"))))
}

async fn from_iterators() {
    call(async {
        let a = range();
        log("made");
        a.on_this(READABLE, |a, ()| {
            while let Some(x) = a.read() {
                log(format!("a-{x}"));
            }
        });
        a.on(END, says("a.end"));
        once(&a, CLOSE).await.unwrap();
        let b = range();
        b.on_data_this(|b, x| {
            log(format!("b-{x}"));
            if *x == 2 {
                b.pause();
                let b = b.clone();
                set_immediate(move || {
                    log("resume");
                    b.resume();
                });
            }
        });
        once(&b, END).await.unwrap();
        let w = Writable::objects(|x: u32, done| {
            log(format!("w-{x}"));
            set_immediate(move || done.ok());
        });
        let w = w.high_water_mark(1).build();
        range().pipe(&w);
        once(&w, FINISH).await.unwrap();
        let taken = range().take(2).to_array().await.unwrap();
        log(format!("taken-{},{}", taken[0], taken[1]));
        let s = Readable::from_chunk("text");
        s.on_data(|x| log(format!("s-{x}")));
        s.on(END, says("s.end"));
        s.on(CLOSE, says("s.close"));
        once(&s, CLOSE).await.unwrap();
        let c = range();
        let mut chunks = c.chunks();
        while let Some(x) = chunks.next().await {
            let x = x.unwrap();
            log(format!("c-{x}"));
            if x == 2 {
                break;
            }
        }
        drop(chunks);
        log(format!("destroyed-{}", c.destroyed()));
        let mut doubled = Readable::from_iter([1, 2]).map(|x| x * 2).chunks();
        while let Some(x) = doubled.next().await {
            log(format!("m-{}", x.unwrap()));
        }
    });
}

fn said(name: &'static str, end: Finished) -> Promise<()> {
    call(async move {
        match end.await {
            Ok(()) => log(format!("{name}-ok")),
            Err(e) => log(format!(
                "{name}-{}",
                e.code().map_or(e.to_string(), str::to_owned)
            )),
        }
    })
}

async fn ends() {
    call(async {
        let r = Readable::from_iter([1]);
        let p = said("r", finished(&r));
        r.on(CLOSE, says("r.close"));
        r.on(END, says("r.end"));
        r.resume();
        p.await.unwrap();
        said("again", finished(&r)).await.unwrap();
        let w = Writable::bytes(|_: Vec<u8>, done| drop(set_immediate(move || done.ok()))).build();
        w.on(FINISH, says("w.finish"));
        w.on(CLOSE, says("w.close"));
        w.end("x");
        said("w", finished(&w)).await.unwrap();
        let e = Writable::bytes(|_: Vec<u8>, done| done.fail(Error::new("bad"))).build();
        e.write("x");
        said("e", finished(&e)).await.unwrap();
        said("e2", finished(&e)).await.unwrap();
        let t = pass_through();
        let early = said("t", finished(&t));
        t.readable().destroy(None);
        early.await.unwrap();
        let half = pass_through();
        half.writable().end(());
        let options = FinishedOptions {
            readable: false,
            ..FinishedOptions::default()
        };
        said("written", finished_with(&half, options))
            .await
            .unwrap();
        log(format!("open-{}", half.readable().is_readable()));
        half.readable().resume();
        said("both", finished(&half)).await.unwrap();
        let sink = Writable::bytes(|_: Vec<u8>, done| done.ok());
        let d = Duplex::new(Readable::<Vec<u8>>::bytes().read(|_, _| ()), sink);
        let options = FinishedOptions {
            writable: false,
            ..FinishedOptions::default()
        };
        let read = said("read", finished_with(&d, options));
        d.readable().resume();
        d.readable().push_end();
        read.await.unwrap();
        d.writable().end(());
        said("d", finished(&d)).await.unwrap();
    });
}

async fn pair() {
    let (a, b) = duplex_pair::<Vec<u8>>();
    watch("a", &a);
    watch("b", &b);
    a.writable().write_with("one", |_| log("one.cb"));
    a.writable().write_with("two", |_| log("two.cb"));
    log("written");
    set_timeout(10, move || {
        log("reading");
        let answers = b.clone();
        b.readable().on_text(move |d| {
            log(format!("b-{d}"));
            answers.writable().write(format!("got {d}"));
        });
        set_timeout(10, move || {
            a.readable().on_text(|d| log(format!("a-{d}")));
            a.writable().end_with("last", |_| log("end.cb"));
            set_timeout(10, move || {
                log("b.end()");
                b.writable().end(());
            });
        });
    });
}
