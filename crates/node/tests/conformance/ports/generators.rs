//! 460–465: async generators, and streams that are made of other streams.

use futures::{Stream, StreamExt as _};
use phaseloop_node::stream::{
    CLOSE, DRAIN, Duplex, END, FINISH, READABLE, Readable, Transform, Writable, compose, finished,
    pipeline, pipeline_from,
};
use phaseloop_node::timers::promises::sleep;
use phaseloop_node::{
    AbortController, AbortSignal, AsyncGenerator, Emitter, Error, Promise, async_generator, call,
    events::ERROR, next_tick, set_immediate, set_timeout,
};

use crate::support::{log, say, says};

super::ports! {
    Virtual "460-async-generators" => async_generators,
    Virtual "461-readable-from-generator" => readable_from_generator,
    Virtual "462-pipeline-functions" => pipeline_functions,
    Virtual "463-pipeline-options" => pipeline_options,
    Virtual "464-duplex-from-halves" => duplex_from_halves,
    Virtual "465-compose" => composed,
}

fn chain(name: &'static str, links: u32) {
    let mut p = Promise::resolved(());
    for i in 1..=links {
        p = p.then(move |()| log(format!("{name}{i}")));
    }
}

/// Logs when it is dropped: `finally`.
struct Finally;

impl Drop for Finally {
    fn drop(&mut self) {
        log("finally");
    }
}

async fn one_tick() -> Result<(), Error> {
    Ok(Promise::resolved(()).await?)
}

async fn async_generators() {
    fn two() -> AsyncGenerator<&'static str> {
        async_generator(|out| async move {
            let _finally = Finally;
            log("start");
            out.yield_value("a").await;
            log("mid");
            one_tick().await?;
            out.yield_value("b").await;
            log("end");
            Ok(())
        })
    }
    call(async {
        let mut g = two();
        log("made");
        chain("c", 10);
        while let Some(x) = g.next().await {
            log(x.unwrap());
        }
        log("done");
        chain("d", 6);
        let mut failing = async_generator(|out| async move {
            out.yield_value(1).await;
            Err(Error::new("bad"))
        });
        while let Some(x) = failing.next().await {
            match x {
                Ok(x) => log(format!("f-{x}")),
                Err(e) => log(e.to_string()),
            }
        }
        let mut s = async_generator(|out| async move {
            sleep(5).await?;
            out.yield_value("late").await;
            Ok(())
        });
        set_immediate(say("immediate"));
        log(s.next().await.unwrap().unwrap());
        log(format!("rest-{}", s.next().await.is_none()));
        log(format!("after-{}", s.next().await.is_none()));
    });
}

fn watch(name: &'static str, stream: &impl Emitter) {
    for event in [END, FINISH, CLOSE, DRAIN] {
        stream.on(event, move |()| log(format!("{name}.{}", event.name())));
    }
}

fn watch_source(name: &'static str, r: &Readable<u32>) {
    watch(name, r);
    r.on(ERROR, move |e| log(format!("{name}.{e}")));
}

fn watch_named(name: &'static str, stream: &impl Emitter) {
    watch(name, stream);
    stream.on(ERROR, move |e| log(format!("{name}.{}-{e}", e.name())));
}

async fn readable_from_generator() {
    fn generate(n: u32) -> AsyncGenerator<u32> {
        async_generator(move |out| async move {
            let _finally = Finally;
            for i in 1..=n {
                log(format!("yield-{i}"));
                out.yield_value(i).await;
            }
            Ok(())
        })
    }
    let a = Readable::from_stream(generate(2));
    watch_source("a", &a);
    a.on_data(|x| log(format!("a-{x}")));
    chain("p", 8);
    set_timeout(10, || {
        let b = Readable::from_stream(async_generator(|out| async move {
            out.yield_value(1).await;
            Err(Error::new("bad"))
        }));
        watch_source("b", &b);
        b.on_data(|x| log(format!("b-{x}")));
    });
    set_timeout(20, || {
        let c = Readable::from_stream(generate(9));
        watch_source("c", &c);
        c.on_this(READABLE, |c, ()| {
            log(format!("c-{}", c.read().unwrap()));
            c.destroy(None);
            log("destroyed");
            chain("q", 6);
        });
    });
    set_timeout(30, || {
        let d = Readable::from_stream(generate(9));
        watch_source("d", &d);
        d.once_this(Readable::<u32>::DATA, |d, x| {
            log(format!("d-{x}"));
            d.destroy(Some(Error::new("enough")));
            chain("r", 6);
        });
    });
    set_timeout(40, || {
        let e = Readable::from_iter([1, 2, 3]);
        watch_source("e", &e);
        e.on_data_this(|e, x| {
            log(format!("e-{x}"));
            if *x == 2 {
                e.destroy(None);
                chain("s", 4);
            }
        });
    });
}

fn sink(name: &'static str) -> Writable<u32> {
    Writable::objects(move |x: u32, done| {
        log(format!("{name}-{x}"));
        set_immediate(move || done.ok());
    })
    .high_water_mark(2)
    .end(move |done| {
        log(format!("{name}.final"));
        done.ok();
    })
    .build()
}

fn numbers() -> AsyncGenerator<u32> {
    async_generator(|out| async move {
        for i in 1..=4 {
            log(format!("source-{i}"));
            out.yield_value(i).await;
        }
        Ok(())
    })
}

fn double(source: impl Stream<Item = Result<u32, Error>> + 'static) -> AsyncGenerator<u32> {
    async_generator(|out| async move {
        let mut source = std::pin::pin!(source);
        while let Some(x) = source.next().await {
            out.yield_value(x? * 2).await;
        }
        log("double.end");
        Ok(())
    })
}

async fn pipeline_functions() {
    call(async {
        pipeline_from(numbers())
            .generator(double)
            .into(&sink("a"))
            .await
            .unwrap();
        log("one");
        let plus = Transform::objects(|x: u32, out| out.ok_with(x + 1)).build();
        pipeline(&Readable::from_iter([1, 2, 3]))
            .generator(double)
            .through(&plus)
            .generator(double)
            .into(&sink("b"))
            .await
            .unwrap();
        log("two");
        let sum = pipeline(&Readable::from_iter([1, 2, 3]))
            .generator(double)
            .run(|mut source| async move {
                let mut sum = 0;
                while let Some(x) = source.next().await {
                    sum += x?;
                }
                Ok(sum)
            });
        log(format!("sum-{}", sum.await.unwrap()));
        let direct = pipeline(&Readable::from_iter(["x", "y"])).run(|mut source| async move {
            let mut all = String::new();
            while let Some(x) = source.next().await {
                all.push_str(x?);
            }
            Ok(all)
        });
        log(format!("direct-{}", direct.await.unwrap()));
        failing_functions().await;
    });
}

async fn failing_functions() {
    let r = Readable::from_iter([1, 2, 3]);
    r.on(CLOSE, says("r.close"));
    let w = sink("c");
    w.on(CLOSE, says("w.close"));
    w.on(ERROR, |e| log(format!("w.{e}")));
    let failed = pipeline(&r)
        .generator(|mut source| {
            async_generator(|out| async move {
                while let Some(x) = source.next().await {
                    let x = x?;
                    if x == 2 {
                        return Err(Error::new("two"));
                    }
                    out.yield_value(x).await;
                }
                Ok(())
            })
        })
        .into(&w);
    log(format!("caught-{}", failed.await.unwrap_err()));
    log(format!("destroyed-{}", w.destroyed()));
    let q = Readable::from_iter([1, 2, 3]);
    q.on(CLOSE, says("q.close"));
    let failed = pipeline(&q).run(|mut source| async move {
        if let Some(x) = source.next().await {
            log(format!("q-{}", x?));
            return Err(Error::new("enough"));
        }
        Ok(())
    });
    log(format!("caught-{}", failed.await.unwrap_err()));
    let bad = Writable::objects(|x: u32, done| match x {
        ..=1 => done.ok(),
        _ => done.fail(Error::new("refused")),
    });
    let failed = pipeline_from(numbers()).into(&bad.build());
    log(format!("caught-{}", failed.await.unwrap_err()));
}

async fn pipeline_options() {
    call(async {
        let w = Writable::objects(|x: u32, done| {
            log(format!("w-{x}"));
            done.ok();
        });
        let w = w
            .end(|done| {
                log("final");
                done.ok();
            })
            .build();
        w.on(CLOSE, says("w.close"));
        pipeline(&Readable::from_iter([1, 2]))
            .into_open(&w)
            .await
            .unwrap();
        log(format!("open-{}", w.is_writable()));
        pipeline(&Readable::from_iter([3])).into(&w).await.unwrap();
        log(format!("closed-{}", w.is_writable()));
        let c = AbortController::new();
        let signal = c.signal();
        let r = Readable::<u32>::objects().build();
        let s = Transform::pass_through();
        r.on(CLOSE, says("r.close"));
        s.on(CLOSE, says("s.close"));
        set_timeout(5, move || {
            log("abort");
            c.abort();
            log("aborted");
            next_tick(say("tick"));
        });
        let failed = pipeline(&r).into(s.writable()).signal(&signal);
        let e = failed.await.unwrap_err();
        log(format!("{}-{}", e.name(), e.code().unwrap()));
        log(format!(
            "destroyed-{}-{}",
            r.destroyed(),
            s.readable().destroyed()
        ));
        let gone = AbortSignal::abort(Error::new("gone"));
        let failed = pipeline(&Readable::from_iter([1]))
            .into(Transform::pass_through().writable())
            .signal(&gone);
        log(format!("before-{}", failed.await.unwrap_err().name()));
        let f = AbortController::new();
        let signal = f.signal();
        let t = Transform::<u32, u32>::pass_through();
        let p = finished(&t).signal(&signal);
        set_immediate(move || {
            f.abort();
            log("stop");
        });
        log(format!("finished-{}", p.await.unwrap_err().name()));
        log(format!(
            "alive-{}-{}",
            !t.readable().destroyed(),
            t.listener_count(END)
        ));
        let again = finished(&t).signal(&signal).await;
        log(format!("again-{}", again.unwrap_err().name()));
    });
}

async fn duplex_from_halves() {
    let (r, w) = (Readable::from_iter(["a", "b"]), sink("w"));
    let d = Duplex::from_halves(&r, &w);
    watch_named("r", &r);
    watch_named("w", &w);
    watch_named("d", &d);
    d.readable().on_data(|x| log(format!("data-{x}")));
    log(format!("write-{}", d.writable().write(1_u32)));
    log(format!("write-{}", d.writable().write(2_u32)));
    d.writable().write(3_u32);
    d.writable().end_with((), |_| log("end.cb"));
    next_tick(say("tick"));
    fn halves(
        names: [&'static str; 3],
    ) -> (
        Readable<&'static str>,
        Writable<u32>,
        Duplex<u32, &'static str>,
    ) {
        let (r, w) = (Readable::objects().build(), sink(names[1]));
        let d = Duplex::from_halves(&r, &w);
        watch_named(names[0], &r);
        watch_named(names[1], &w);
        watch_named(names[2], &d);
        (r, w, d)
    }
    set_timeout(20, || {
        let (r2, _, d2) = halves(["r2", "w2", "d2"]);
        r2.push("x");
        d2.readable().on_data(move |x| {
            log(format!("d2-{x}"));
            r2.destroy(Some(Error::new("torn")));
        });
    });
    set_timeout(40, || {
        let (r3, w3, d3) = halves(["r3", "w3", "d3"]);
        d3.destroy(None);
        log(format!("destroyed-{}-{}", r3.destroyed(), w3.destroyed()));
    });
    set_timeout(60, || {
        let (_, w4, d4) = halves(["r4", "w4", "d4"]);
        d4.writable().write(1_u32);
        w4.destroy(Some(Error::new("full")));
    });
}

async fn composed() {
    fn plus() -> Transform<u32, u32> {
        Transform::objects(|x: u32, out| out.ok_with(x + 1)).build()
    }
    fn strict() -> Transform<u32, u32> {
        Transform::objects(|x: u32, out| match x {
            11.. => out.fail(Error::new("big")),
            _ => out.ok_with(x * 2),
        })
        .flush(|out| {
            log("flush");
            out.ok();
        })
        .build()
    }
    let (a, b) = (plus(), strict());
    let d = compose(&a).through(&b).build();
    watch_named("a", &a);
    watch_named("b", &b);
    watch_named("d", &d);
    d.readable().on_data(|x| log(format!("data-{x}")));
    d.writable().write(1_u32);
    d.writable().end(2_u32);
    log("written");
    set_timeout(20, || {
        let e = compose(&plus()).through(&strict()).build();
        watch_named("e", &e);
        e.readable().on_data(|x| log(format!("e-{x}")));
        for x in [3_u32, 50, 4] {
            e.writable().write(x);
        }
    });
    set_timeout(40, || {
        let f = compose(&plus()).through(&plus()).through(&plus()).build();
        watch_named("f", &f);
        let this = f.clone();
        f.readable().on_data(move |x| {
            log(format!("f-{x}"));
            this.destroy(None);
        });
        f.writable().write(1_u32);
    });
}
