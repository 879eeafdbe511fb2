//! 804, 806: broadcast channels and what threads know of themselves, `util`.

use std::cell::Cell;
use std::rc::Rc;

use phaseloop_node::util::{aborted, callbackify, deprecate};
use phaseloop_node::worker_threads::{
    BroadcastChannel, EXIT, Worker, get_environment_data, remove_environment_data,
    set_environment_data, thread_id,
};
use phaseloop_node::{
    AbortController, Emitter, Error, Promise, next_tick, process, set_immediate, set_timeout,
    throw, try_call,
};

use crate::support::log;

super::ports! {
    Real "804-broadcast-channel" => broadcast_channel,
    Virtual "806-util-more" => util_more,
}

type Channel = BroadcastChannel<String>;

async fn broadcast_channel() {
    let [one, two] = ["news"; 2].map(Channel::new);
    let other = Channel::new("other");
    log(format!("{} {} {}", one.name(), other.name(), thread_id()));
    one.on_message(|data| log(format!("one {data}")));
    other.on_message(|data| log(format!("other {data}")));
    let (posting, receiving, has_started) = (one.clone(), two.clone(), Cell::new(false));
    two.on_message(move |data| {
        log(format!("two {data}"));
        if has_started.get() {
            return answer(&receiving, data);
        }
        next_tick(|| log("tick"));
        if data == "second" {
            has_started.set(true);
            start(&one, &other);
        }
    });
    posting.post_message("first".to_owned());
    posting.post_message("second".to_owned());
    log("posted");
}

fn answer(two: &Channel, data: &str) {
    if data.starts_with("ready") {
        return two.post_message("go".to_owned());
    }
    two.close();
    log(get_environment_data::<&str>("a").unwrap().to_string());
}

fn start(one: &Channel, other: &Channel) {
    set_environment_data("a", "hello");
    set_environment_data("b", 7);
    set_environment_data("c", 1);
    remove_environment_data("c");
    one.close();
    other.close();
    let w = Worker::<(), ()>::new(|_| async {
        let news = Channel::new("news");
        let this = news.clone();
        news.on_message(move |data| {
            this.post_message(format!("echo {data}"));
            this.close();
        });
        let a = get_environment_data::<&str>("a").unwrap();
        let b = get_environment_data::<i32>("b").unwrap();
        set_environment_data("a", "changed");
        news.post_message(format!("ready {a} {b} {}", thread_id() > 0));
    });
    let w = w.unwrap();
    log(format!("thread {}", w.thread_id() > Some(0)));
    w.on_this(EXIT, |w, _| {
        let w = w.clone();
        set_timeout(100, move || {
            let id = w.thread_id().map_or("-1".to_owned(), |id| id.to_string());
            let c = get_environment_data::<i32>("c");
            log(format!("exit {id} {}", c.map_or("undefined", |_| "1")));
        });
    });
}

async fn util_more() {
    process::on_uncaught_exception(|e, _| log(format!("uncaught {e}")));
    process::on_warning(|w| {
        log(format!(
            "{} {} {}",
            w.name(),
            w.code().unwrap_or("undefined"),
            w.text()
        ));
    });
    let double = |n: i32| {
        try_call(async move {
            match n {
                0.. => Ok(n * 2),
                _ => Err(Error::new("negative")),
            }
        })
    };
    callbackify(&double(21), |n| {
        log(format!("called {}", n.unwrap()));
        next_tick(|| log("tick"));
    });
    callbackify(&double(-1), |e| log(format!("failed {}", e.unwrap_err())));
    set_timeout(50, move || {
        callbackify(&double(1), |_| throw("in the callback"))
    });
    let first = Promise::resolved(()).then(|()| log("microtask"));
    let second = first.then(|()| log("microtask 2"));
    second.then(|()| log("microtask 3"));
    next_tick(|| log("own tick"));

    let old = deprecate(|n: i32| n + 1, "old() is old", "DEP1");
    let older = deprecate(|n: i32| n + 2, "older() is old", "DEP1");
    log(format!("old {} {} {}", old(1), old(2), older(3)));
    deprecate(|()| (), "without a code", None)(());

    let (controller, resource) = (AbortController::new(), Rc::new(()));
    aborted(&controller.signal(), &resource).then(|()| log("aborted"));
    set_immediate(move || {
        controller.abort();
        log("after the abort");
        aborted(&controller.signal(), &resource).then(|()| log("aborted before"));
    });
}
