//! 872: channels of diagnostics.

use std::cell::Cell;
use std::rc::Rc;

use phaseloop_node::async_hooks::AsyncLocalStorage;
use phaseloop_node::diagnostics_channel::{Channel, Stage, Subscription, channel, tracing_channel};
use phaseloop_node::{Error, Promise, call, catch, next_tick, process, set_timeout, throw};

use crate::support::{log, say};

super::ports! {
    Real "872-diagnostics-channel" => diagnostics_channel,
}

fn or_undefined(value: Option<impl ToString>) -> String {
    value.map_or("undefined".to_owned(), |value| value.to_string())
}

async fn diagnostics_channel() {
    process::on_uncaught_exception(|e, _| log(format!("uncaught {e}")));
    let news = channel::<&str>("news");
    log(format!(
        "{} {}",
        news.has_subscribers(),
        channel::<&str>("news").name() == news.name()
    ));
    news.publish(&"nobody");
    let a = |text: &&str, name: &str| log(format!("a {text} {name}"));
    let first = news.subscribe(a);
    let [b, late] = [(); 2].map(|()| Rc::new(Cell::new(None::<Subscription>)));
    let (own, other, same) = (b.clone(), late.clone(), news.clone());
    b.set(Some(news.subscribe(move |text, _| {
        log(format!("b {text}"));
        same.unsubscribe(own.get().unwrap());
        other.set(Some(same.subscribe(|text, _| log(format!("late {text}")))));
    })));
    let bad = news.subscribe(|text, _| throw(Error::new(format!("of {text}"))));
    let second = news.subscribe(a);
    next_tick(say("tick"));
    news.publish(&"one");
    next_tick(say("tick 2"));
    news.publish(&"two");
    let off = [first, b.get().unwrap(), bad, late.get().unwrap()].map(|id| news.unsubscribe(id));
    log(format!(
        "unsubscribed {} {} {} {}",
        off[0], off[1], off[2], off[3]
    ));
    news.unsubscribe(second);
    log(format!("subscribers {}", news.has_subscribers()));
    let one = AsyncLocalStorage::<String>::new();
    stores(&news, &one);
    tracing(one);
}

fn stores(news: &Channel<&'static str>, one: &AsyncLocalStorage<String>) {
    let two = AsyncLocalStorage::<String>::new();
    news.bind_store(one, |text| format!("<{text}>"));
    log(format!("bound {}", news.has_subscribers()));
    news.bind_store(&two, |_| throw(Error::new("no store")));
    let (first, second) = (one.clone(), two.clone());
    news.subscribe(move |text, _| {
        let [one, two] = [&first, &second].map(|storage| or_undefined(storage.get_store()));
        log(format!("in {text} {one} {two}"));
    });
    let returned = news.run_stores(&"run", || {
        log(format!("store {}", or_undefined(one.get_store())));
        let later = one.clone();
        set_timeout(100, move || {
            log(format!("later {}", or_undefined(later.get_store())))
        });
        42
    });
    log(format!("returned {returned}"));
    log(format!("after {}", or_undefined(one.get_store())));
    let thrown = catch(|| news.run_stores(&"throws", || throw(Error::new("thrown"))));
    let thrown: Result<(), _> = thrown;
    log(format!(
        "{} {}",
        thrown.unwrap_err(),
        or_undefined(one.get_store())
    ));
    let off = [
        news.unbind_store(one),
        news.unbind_store(one),
        news.unbind_store(&two),
    ];
    log(format!("unbound {} {} {}", off[0], off[1], off[2]));
}

fn tracing(one: AsyncLocalStorage<String>) {
    let trace = tracing_channel::<&'static str>("work");
    let [start, end] = [Stage::Start, Stage::AsyncEnd].map(|stage| trace.channel(stage).name());
    log(format!("traced {} {start} {end}", trace.has_subscribers()));
    log(format!("plain {}", trace.trace_sync(|| 1, "plain")));
    let handlers = trace.subscribe(|stage, traced| {
        let name = match stage {
            Stage::Start => "start",
            Stage::End => "end",
            Stage::AsyncStart => "asyncStart",
            Stage::AsyncEnd => "asyncEnd",
            Stage::Error => "error",
        };
        let (result, error) = (traced.result::<i32>(), traced.error());
        let (result, error) = (or_undefined(result), or_undefined(error));
        log(format!("{name} {} {result} {error}", traced.context()));
    });
    trace
        .channel(Stage::Start)
        .bind_store(&one, |traced| (*traced.context()).to_owned());
    let called = || {
        log(format!("called {}", or_undefined(one.get_store())));
        1
    };
    log(format!("sync {}", trace.trace_sync(called, "sync")));
    let failed: Result<(), _> = catch(|| trace.trace_sync(|| throw(Error::new("no")), "fails"));
    log(format!("caught {}", failed.unwrap_err()));
    let promise = trace.trace_promise(
        || {
            call(async {
                Promise::resolved(()).await.unwrap();
                2
            })
        },
        "promise",
    );
    promise.then(|n| log(format!("then {n}")));
    let rejected = trace.trace_promise(
        || Promise::<i32>::rejected(Error::new("late no")),
        "rejects",
    );
    rejected.then_result(|result| log(format!("caught {}", result.unwrap_err())));
    let m = Promise::resolved(())
        .then(|()| log("m1"))
        .then(|()| log("m2"));
    m.then(|()| log("m3"));
    fn set_after(value: i32, callback: Box<dyn FnOnce(Result<i32, Error>)>) {
        set_timeout(50, move || {
            callback(match value {
                ..0 => Err(Error::new("negative")),
                _ => Ok(value),
            });
        });
    }
    set_timeout(150, move || {
        log("--");
        let store = one.clone();
        trace.trace_callback(
            |done| set_after(3, done),
            "callback",
            move |n| {
                log(format!(
                    "back {} {}",
                    n.unwrap(),
                    or_undefined(store.get_store())
                ));
            },
        );
        set_timeout(150, move || {
            trace.trace_callback(
                |done| set_after(-1, done),
                "callback fails",
                |n| {
                    log(format!("back {}", n.unwrap_err()));
                    throw(Error::new("in the callback"));
                },
            );
            set_timeout(150, move || {
                let off = [trace.unsubscribe(handlers), trace.unsubscribe(handlers)];
                let before = trace.has_subscribers();
                let unbound = trace.channel(Stage::Start).unbind_store(&one);
                let after = trace.has_subscribers();
                log(format!(
                    "off {} {} {before} {unbound} {after}",
                    off[0], off[1]
                ));
            });
        });
    });
}
