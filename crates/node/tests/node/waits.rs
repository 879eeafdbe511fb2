//! What a task of Node's waits for, as the tree of tasks and the report name it.

use std::future::{IntoFuture as _, pending};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use phaseloop::time::sleep;
use phaseloop::{LoopHandle, phase, spawn};
use phaseloop_node as node;
use phaseloop_node::events::{Event, EventEmitter, on, once};
use phaseloop_node::stream::{Readable, Writable, finished, pipeline};
use phaseloop_node::timers::promises::set_interval;
use phaseloop_node::{
    AbortController, Deferred, Promise, all, all_settled, any, call, race, thenable,
};

use crate::util::sites::without_columns;
use tokio_test::assert_pending;

const HOUR: Duration = Duration::from_secs(3600);
const READY: Event<u32> = Event::new("ready");

/// Lets a task await `future`, and returns the tree below it and what the report says of it. A line
/// of this file is `#` and its number.
fn below(future: impl Future<Output = ()> + 'static) -> (Vec<String>, String) {
    phaseloop::block_on(async move {
        let task = spawn(future);
        phase::check().await;
        phase::check().await;
        let handle = LoopHandle::current();
        let tree = without_columns(&handle.task_tree().to_string(), file!());
        let report = without_columns(&handle.report().to_string(), file!());
        task.abort();
        let lines = tree
            .lines()
            .skip_while(|line| !line.starts_with("task 1 ("));
        let lines = lines.skip(1).take_while(|line| !line.starts_with("task"));
        let said = report.lines().find_map(|line| line.split_once("task 1 ("));
        let (_, said) = said.and_then(|(_, rest)| rest.split_once(": ")).unwrap();
        (lines.map(str::to_owned).collect(), said.to_owned())
    })
}

#[track_caller]
fn assert_named(name: &str, line: u32, future: impl Future<Output = ()> + 'static) {
    let (tree, said) = below(future);
    assert_eq!(tree, [format!("└ {name} (#{line})")]);
    assert_eq!(said, format!("waits for {name} (#{line})"));
}

#[test]
fn a_promise_is_named_by_the_line_that_awaits_it() {
    assert_named("promise", line!() + 2, async {
        let never = Deferred::<()>::new();
        let _ = never.promise().await;
    });
    assert_named("promise", line!() + 2, async {
        let never = Promise::<()>::new(|deferred| drop(deferred.clone()));
        let _ = (&never).await;
    });
    assert_named("promise", line!() + 1, async {
        let _ = thenable(|_: Deferred<()>| ()).await;
    });
    assert_named("promise", line!() + 1, async {
        let _ = node::sleep(3_600_000).await;
    });
}

#[test]
fn a_promise_among_other_futures_is_named() {
    assert_named("promise", line!() + 3, async {
        let never = Deferred::<()>::new();
        let mut set = FuturesUnordered::new();
        set.push(never.promise().into_future());
        let _ = set.next().await;
    });
    let line = line!() + 3;
    let (tree, _) = below(async {
        let never = Deferred::<()>::new();
        let promise = never.promise().into_future();
        let _ = futures::future::join(promise, pending::<()>()).await;
    });
    assert_eq!(tree, [format!("└ promise (#{line})")]);
}

#[test]
fn the_promise_of_an_async_function_is_the_task_of_the_function() {
    let line = line!() + 2;
    let (tree, said) = below(async {
        let _ = call(sleep(HOUR)).await;
    });
    assert_eq!(tree[0], format!("└ task 2 (#{line})"));
    assert!(
        tree[1].starts_with(&format!("  └ sleep (#{line}): due in ")),
        "{tree:?}"
    );
    assert_eq!(said, "waits for task 2");

    // What follows from its promise comes from the task, too.
    let (tree, _) = below(async {
        let then = call(sleep(HOUR)).then(|()| 1).catch(|_| 2);
        let _ = then.await;
    });
    assert!(tree[0].starts_with("└ task 2 ("), "{tree:?}");
    let (tree, _) = below(async {
        let outer = Promise::resolved(1).and_then(|_| call(sleep(HOUR)));
        let _ = outer.await;
    });
    assert!(
        tree[0].starts_with("└ promise ("),
        "adopted after the await: {tree:?}"
    );
}

#[test]
fn a_combined_promise_is_named_with_the_tasks_behind_it() {
    type Combine = fn([Promise<()>; 2]) -> Promise<()>;
    let functions: [(&str, Combine); 5] = [
        ("all", |two| all(two).then(|_| ())),
        ("all", |[one, other]| all((one, other)).then(|_| ())),
        ("all_settled", |two| all_settled(two).then(|_| ())),
        ("any", |two| any(two)),
        ("race", |two| race(two)),
    ];
    for (name, combine) in functions {
        let line = line!() + 3;
        let (tree, said) = below(async move {
            let two = [call(sleep(HOUR)), call(pending::<()>())];
            let _ = combine(two).await;
        });
        assert_eq!(
            tree[0],
            format!("├ promise of {name} (#{line})"),
            "{tree:?}"
        );
        assert!(tree[1].starts_with("├ task 2 ("), "{tree:?}");
        assert!(tree[2].starts_with("│ └ sleep ("), "{tree:?}");
        assert!(tree[3].starts_with("└ task 3 ("), "{tree:?}");
        let expected = format!("waits for promise of {name} (#{line}), task 2, task 3");
        assert_eq!(said, expected);
    }
}

#[test]
fn events_and_aborts_are_named() {
    assert_named("event ready", line!() + 2, async {
        let emitter = EventEmitter::new();
        let _ = once(&emitter, READY).await;
    });
    assert_named("event ready", line!() + 2, async {
        let emitter = EventEmitter::new();
        let mut events = on(&emitter, READY);
        events.next().await;
    });
    assert_named("abort signal", line!() + 2, async {
        let controller = AbortController::new();
        controller.signal().cancelled().await;
    });
    assert_named("interval", line!() + 1, async {
        let mut beats = set_interval(3_600_000, 1);
        beats.next().await;
    });
}

#[test]
fn what_is_awaited_of_a_stream_is_named() {
    let source = || Readable::<u32>::objects().build();
    assert_named("end of a stream", line!() + 2, async move {
        let source = source();
        let _ = finished(&source).await;
    });
    assert_named("chunk of a stream", line!() + 1, async move {
        let mut chunks = source().chunks();
        chunks.next().await;
    });
    assert_named("pipeline", line!() + 3, async move {
        let sink = Writable::objects(|_: u32, done| done.ok()).build();
        let source = source();
        let _ = pipeline(&source).into(&sink).await;
    });
    // The function that reads the stream is a task.
    let line = line!() + 2;
    let (tree, _) = below(async move {
        let _ = source().to_array().await;
    });
    let expected = [
        format!("└ task 2 (#{line})"),
        format!("  └ chunk of a stream (#{line})"),
    ];
    assert_eq!(tree, expected);
}

#[test]
fn a_wait_that_is_over_is_not_named() {
    let unknown = ["└ something else (another crate's channel or lock, another thread)"];
    let (tree, _) = below(async {
        Promise::resolved(()).await.unwrap();
        let (deferred, emitter) = (Deferred::new(), EventEmitter::new());
        let (later, emits) = (deferred.clone(), emitter.clone());
        phaseloop::next_tick(move || later.resolve(()));
        let settled = deferred.promise().into_future();
        let mut settled = Box::pin(settled);
        settled.as_mut().await.unwrap();
        phaseloop::next_tick(move || assert!(emits.emit(READY, 1)));
        let mut events = on(&emitter, READY);
        events.next().await;
        // Futures that are given up.
        let never = Deferred::<()>::new();
        assert_pending!(tokio_test::task::spawn(never.promise().into_future()).poll());
        assert_pending!(tokio_test::task::spawn(once(&emitter, READY)).poll());
        pending::<()>().await;
    });
    assert_eq!(tree, unknown);
}

#[test]
fn a_future_in_callbacks_is_no_wait_of_the_task_that_began_it() {
    let line = line!() + 6;
    let (tree, _) = below(async {
        node::in_callbacks(async {
            let never = Deferred::<()>::new();
            let _ = never.promise().await;
        });
        let _ = Deferred::<()>::new().promise().await;
    });
    assert_eq!(tree, [format!("└ promise (#{line})")]);
}
