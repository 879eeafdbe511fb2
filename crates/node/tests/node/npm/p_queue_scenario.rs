//! What `p_queue.mjs` does, with the port.

use std::rc::Rc;

use phaseloop_node::timers::promises::set_timeout as sleep;
use phaseloop_node::{
    AbortController, Emitter, Error, Promise, Reason, call, catch, queue_microtask, race, throw,
    try_call,
};

use super::p_queue::{
    ACTIVE, ADD, AddOptions, COMPLETED, EMPTY, ERROR, IDLE, NEXT, Options, PENDING_ZERO, PQueue,
    RATE_LIMIT, RATE_LIMIT_CLEARED,
};
use super::{Log, prints};

fn watch(queue: &Rc<PQueue>, log: &Log) {
    let names = [
        ("add", ADD),
        ("active", ACTIVE),
        ("next", NEXT),
        ("empty", EMPTY),
        ("idle", IDLE),
        ("pendingZero", PENDING_ZERO),
        ("rateLimit", RATE_LIMIT),
        ("rateLimitCleared", RATE_LIMIT_CLEARED),
    ];
    for (name, event) in names {
        let log = log.clone();
        queue.on_this(event, move |queue, ()| {
            log.log(format_args!(
                "'{name}' {} {}",
                queue.size(),
                queue.pending()
            ));
        });
    }
    let (completed, failed) = (log.clone(), log.clone());
    queue.on(COMPLETED, move |value| {
        let text = value.downcast_ref::<&str>().map(ToString::to_string);
        let number = value.downcast_ref::<i32>().map(ToString::to_string);
        let value = text.or(number).unwrap_or_else(|| "undefined".to_owned());
        completed.log(format_args!("'completed' {value}"));
    });
    queue.on(ERROR, move |error| {
        failed.log(format_args!("'error' {error}"))
    });
}

fn ladder(log: &Log, step: u32, steps: u32) {
    let log = log.clone();
    queue_microtask(move || {
        log.log(format_args!("tick {step}"));
        if step < steps {
            ladder(&log, step + 1, steps);
        }
    });
}

fn report<T: Clone + std::fmt::Display + 'static>(log: &Log, promise: &Promise<T>) {
    let log = log.clone();
    promise.then_result(move |result| match result {
        Ok(value) => log.stamp(format_args!("value {value}")),
        Err(error) => log.stamp(format_args!("{}: {error}", error.name())),
    });
}

fn stamp_when(log: &Log, promise: &Promise<()>, text: &'static str) {
    let log = log.clone();
    promise.then(move |()| log.stamp(text));
}

/// A task that logs its start and takes a while.
fn task(log: &Log, name: &'static str, ms: i32) -> impl FnOnce() -> Promise<&'static str> + use<> {
    let log = log.clone();
    move || {
        log.stamp(name);
        sleep(ms, name)
    }
}

fn thrown(log: &Log, f: impl FnOnce()) {
    let error = catch(f).expect_err("it throws");
    log.log(format_args!("{}: {error}", error.name()));
}

#[test]
fn the_port_of_p_queue_prints_what_the_package_prints() {
    prints(include_str!("p_queue.expected"), |log| async move {
        concurrency(&log).await;
        priority(&log).await;
        events(&log).await;
        pause(&log).await;
        timeout(&log).await;
        concurrency_at_run_time(&log).await;
        interval(&log).await;
        carry_over(&log).await;
        strict(&log).await;
        signal(&log).await;
        first_error(&log).await;
    });
}

fn limited(concurrency: usize) -> Rc<PQueue> {
    PQueue::new(Options {
        concurrency,
        ..Options::default()
    })
}

async fn concurrency(log: &Log) {
    log.part("concurrency");
    let queue = limited(2);
    let tasks = [
        ("start a", "end a", 100),
        ("start b", "end b", 50),
        ("start c", "end c", 150),
        ("start d", "end d", 50),
    ];
    for (start, end, ms) in tasks {
        let started = log.clone();
        let added = queue.add(move || {
            started.stamp(start);
            sleep(ms, end)
        });
        let ended = log.clone();
        added.then(move |value| ended.stamp(value));
    }
    let counts = (queue.size(), queue.pending(), queue.concurrency());
    log.log(format_args!(
        "{} {} {} {}",
        counts.0,
        counts.1,
        counts.2,
        queue.is_saturated()
    ));
    stamp_when(log, &queue.on_empty(), "empty");
    stamp_when(log, &queue.on_size_less_than(2), "less than 2");
    stamp_when(log, &queue.on_pending_zero(), "pending zero");
    queue.on_idle().await.unwrap();
    log.stamp("idle");
    queue.on_idle().await.unwrap();
    log.log(format_args!(
        "{} {} {}",
        queue.size(),
        queue.pending(),
        queue.is_saturated()
    ));
}

async fn priority(log: &Log) {
    log.part("priority");
    let queue = PQueue::new(Options {
        concurrency: 1,
        auto_start: false,
        ..Options::default()
    });
    let tasks = [
        ("a0", 0, None),
        ("b2", 2, None),
        ("c1", 1, Some("c")),
        ("d2", 2, None),
        ("e-1", -1, Some("e")),
        ("f0", 0, Some("f")),
    ];
    for (name, priority, id) in tasks {
        let log = log.clone();
        let options = AddOptions {
            priority,
            id: id.map(str::to_owned),
            ..AddOptions::default()
        };
        queue.add_with(move || call(async move { log.log(name) }), options);
    }
    log.log(format_args!("{} {}", queue.size_by(2), queue.size_by(5)));
    queue.set_priority("e", 3);
    queue.set_priority("c", -2);
    let error = catch(|| queue.set_priority("x", 1)).unwrap_err();
    log.log(format_args!("{} {error}", error.name()));
    queue.start();
    queue.on_idle().await.unwrap();
}

async fn events(log: &Log) {
    log.part("events");
    let queue = limited(1);
    watch(&queue, log);
    let log_when = |promise: &Promise<()>, text: &'static str| {
        let log = log.clone();
        promise.then(move |()| log.log(text));
    };
    let log_result = |promise: &Promise<i32>| {
        let log = log.clone();
        promise.then_result(move |result| match result {
            Ok(value) => log.log(format_args!("value {value}")),
            Err(error) => log.log(format_args!("reason {error}")),
        });
    };
    log_when(&queue.on_idle(), "idle at once");
    log_result(&queue.add(|| call(async { 1 })));
    log_result(&queue.add(|| try_call(async { Err::<i32, _>("no") })));
    log_result(&queue.add(|| -> Promise<i32> { throw("thrown") }));
    log_when(&queue.on_idle(), "idle");
    log_when(&queue.on_size_less_than(2), "less than 2");
    ladder(log, 1, 16);
    sleep(20, ()).await.unwrap();
}

async fn pause(log: &Log) {
    log.part("pause");
    let queue = limited(1);
    watch(&queue, log);
    queue.add(|| sleep(50, "a"));
    queue.add(|| sleep(50, "b"));
    queue.pause();
    sleep(100, ()).await.unwrap();
    log.log(format_args!(
        "{} {} {}",
        queue.is_paused(),
        queue.size(),
        queue.pending()
    ));
    queue.add(|| sleep(50, "c"));
    queue.start();
    queue.on_empty().await.unwrap();
    log.stamp("empty");
    queue.add(|| sleep(50, "d"));
    queue.clear();
    log.log(format_args!("{} {}", queue.size(), queue.pending()));
    queue.on_idle().await.unwrap();
    log.stamp("idle");
}

async fn timeout(log: &Log) {
    log.part("timeout");
    let queue = PQueue::new(Options {
        concurrency: 1,
        timeout: Some(100),
        ..Options::default()
    });
    let within = |ms| AddOptions {
        timeout: Some(ms),
        ..AddOptions::default()
    };
    report(log, &queue.add(|| sleep(50, "quick")));
    report(log, &queue.add(|| sleep(1000, "slow")));
    report(log, &queue.add_with(|| sleep(200, "allowed"), within(300)));
    sleep(100, ()).await.unwrap();
    let task = queue.running_tasks().swap_remove(0);
    let (timeout, left) = (task.timeout.unwrap(), task.timeout_remaining().unwrap());
    let text = format!("{} {} {timeout}", task.id, task.priority);
    log.log(format_args!("{text} {}", left.div_ceil(50) * 50));
    queue.on_idle().await.unwrap();
    log.stamp("idle");
    report(log, &queue.add_with(|| call(async { 1 }), within(0)));
    sleep(10, ()).await.unwrap();
}

async fn concurrency_at_run_time(log: &Log) {
    log.part("concurrency at run time");
    let queue = limited(1);
    for name in ["a", "b", "c", "d"] {
        queue.add(task(log, name, 100));
    }
    sleep(50, ()).await.unwrap();
    queue.set_concurrency(3);
    queue.on_idle().await.unwrap();
    log.stamp("idle");
    thrown(log, || queue.set_concurrency(0));
    let tasks = [(50, "x"), (1, "y")].map(|(ms, name)| move || sleep(ms, name));
    let values = queue.add_all(tasks).await.unwrap();
    log.log(values.join(","));
}

async fn interval(log: &Log) {
    log.part("interval");
    let queue = PQueue::new(Options {
        interval_cap: 2,
        interval: 200,
        ..Options::default()
    });
    watch(&queue, log);
    for name in ["a", "b", "c", "d", "e"] {
        queue.add(task(log, name, 1));
    }
    log.log(queue.is_rate_limited());
    stamp_when(log, &queue.on_rate_limit(), "limited");
    queue.on_rate_limit().await.unwrap();
    log.log(format_args!(
        "{} {}",
        queue.is_rate_limited(),
        queue.is_saturated()
    ));
    stamp_when(log, &queue.on_rate_limit_cleared(), "cleared");
    queue.on_idle().await.unwrap();
    log.stamp("idle");
    queue.remove_all(EMPTY);
    queue.add(task(log, "f", 1));
    queue.add(task(log, "g", 1));
    queue.on_idle().await.unwrap();
    sleep(300, ()).await.unwrap();
    log.stamp("later");
    queue.add(task(log, "h", 1));
    queue.on_idle().await.unwrap();
}

async fn carry_over(log: &Log) {
    log.part("carry over");
    let queue = PQueue::new(Options {
        interval_cap: 1,
        interval: 100,
        carryover_interval_count: true,
        ..Options::default()
    });
    for name in ["a", "b", "c"] {
        queue.add(task(log, name, 250));
    }
    queue.on_idle().await.unwrap();
    log.stamp("idle");
}

async fn strict(log: &Log) {
    log.part("strict");
    let queue = PQueue::new(Options {
        interval_cap: 2,
        interval: 200,
        strict: true,
        ..Options::default()
    });
    let add = |name: &'static str| {
        let log = log.clone();
        queue.add(move || call(async move { log.stamp(name) }));
    };
    add("a");
    sleep(150, ()).await.unwrap();
    ["b", "c", "d", "e"].into_iter().for_each(add);
    queue.on_idle().await.unwrap();
    log.stamp("idle");
}

async fn signal(log: &Log) {
    log.part("signal");
    let queue = limited(1);
    watch(&queue, log);
    let (running, queued) = (AbortController::new(), AbortController::new());
    let by = |controller: &AbortController| AddOptions {
        signal: Some(controller.signal()),
        ..AddOptions::default()
    };
    report(log, &queue.add_with(|| sleep(500, "a"), by(&running)));
    report(log, &queue.add_with(|| sleep(50, "b"), by(&queued)));
    report(log, &queue.add(|| sleep(50, "c")));
    sleep(50, ()).await.unwrap();
    queued.abort();
    sleep(50, ()).await.unwrap();
    running.abort();
    report(log, &queue.add_with(|| sleep(50, "d"), by(&running)));
    queue.on_idle().await.unwrap();
    log.stamp("idle");
}

async fn first_error(log: &Log) {
    log.part("first error");
    let queue = limited(2);
    queue.add(|| sleep(50, "a"));
    let failing = queue.add(|| {
        try_call(async {
            sleep(100, ()).await?;
            Err::<(), Reason>(Error::new("failed").into())
        })
    });
    failing.catch(|_| ());
    queue.add(|| sleep(200, "c"));
    let first = race([queue.on_error(), queue.on_idle()]).await;
    log.stamp(first.unwrap_err());
    queue.on_idle().await.unwrap();
    log.stamp("idle");
    let all = Options::default;
    let wrong = [
        Options {
            concurrency: 0,
            ..all()
        },
        Options {
            interval_cap: 0,
            ..all()
        },
        Options {
            timeout: Some(0),
            ..all()
        },
        Options {
            strict: true,
            ..all()
        },
        Options {
            strict: true,
            interval: 1,
            ..all()
        },
    ];
    for options in wrong {
        thrown(log, || _ = PQueue::new(options));
    }
}
