//! What a loop reports to the crate `tracing`, with the names and fields that tokio-console reads.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use phaseloop::task::yield_microtask;
use phaseloop::time::{advance, sleep};
use phaseloop::{Builder, EventLoop, phase, spawn, task};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// What a subscriber has seen of one span.
#[derive(Clone, Debug, Default)]
struct Seen {
    fields: BTreeMap<String, String>,
    parent: Option<u64>,
    entered: usize,
    exited: usize,
    references: usize,
    is_closed: bool,
}

#[derive(Default)]
struct Log {
    spans: HashMap<u64, Seen>,
    /// The span of each task, by the order of creation.
    tasks: Vec<u64>,
    events: Vec<(String, Level, BTreeMap<String, String>)>,
    stack: Vec<u64>,
}

#[derive(Clone, Default)]
struct Watcher {
    log: Arc<Mutex<Log>>,
    next: Arc<AtomicU64>,
}

#[derive(Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl Subscriber for Watcher {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1000;
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let mut log = self.log.lock().unwrap();
        let parent = match attributes.is_contextual() {
            true => log.stack.last().copied(),
            false => attributes.parent().map(Id::into_u64),
        };
        let metadata = attributes.metadata();
        if metadata.name() == "runtime.spawn" {
            assert_eq!(metadata.target(), "phaseloop::task");
            log.tasks.push(number);
        }
        let seen = Seen {
            fields: fields.0,
            parent,
            references: 1,
            ..Seen::default()
        };
        log.spans.insert(number, seen);
        Id::from_u64(number)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let (target, level) = (event.metadata().target(), *event.metadata().level());
        let mut log = self.log.lock().unwrap();
        log.events.push((target.to_owned(), level, fields.0));
    }

    fn enter(&self, span: &Id) {
        let mut log = self.log.lock().unwrap();
        log.stack.push(span.into_u64());
        log.spans.get_mut(&span.into_u64()).unwrap().entered += 1;
    }

    fn exit(&self, span: &Id) {
        let mut log = self.log.lock().unwrap();
        assert_eq!(log.stack.pop(), Some(span.into_u64()), "spans nest");
        log.spans.get_mut(&span.into_u64()).unwrap().exited += 1;
    }

    fn clone_span(&self, span: &Id) -> Id {
        let mut log = self.log.lock().unwrap();
        log.spans.get_mut(&span.into_u64()).unwrap().references += 1;
        span.clone()
    }

    fn try_close(&self, span: Id) -> bool {
        let mut log = self.log.lock().unwrap();
        let seen = log.spans.get_mut(&span.into_u64()).unwrap();
        seen.references -= 1;
        seen.is_closed = seen.references == 0;
        seen.is_closed
    }
}

impl Watcher {
    /// The span of the task with this number.
    fn task(&self, number: usize) -> Seen {
        let log = self.log.lock().unwrap();
        log.spans[&log.tasks[number - 1]].clone()
    }

    fn events(&self, target: &str) -> Vec<(Level, BTreeMap<String, String>)> {
        let log = self.log.lock().unwrap();
        let events = log.events.iter().filter(|(known, ..)| known == target);
        events
            .map(|(_, level, fields)| (*level, fields.clone()))
            .collect()
    }
}

/// Runs `body` on a loop whose tasks are reported to a subscriber.
fn traced(body: impl FnOnce(&mut EventLoop, &Watcher)) -> Watcher {
    let watcher = Watcher::default();
    let subscriber = watcher.clone();
    tracing::subscriber::with_default(subscriber, || {
        let builder = Builder::new().tracing().start_paused(true);
        let mut event_loop = builder.build().unwrap();
        body(&mut event_loop, &watcher);
    });
    watcher
}

#[test]
fn a_task_has_one_span_that_is_entered_once_a_poll_and_closed_at_its_end() {
    let mut line = 0;
    let watcher = traced(|event_loop, watcher| {
        event_loop.block_on(async {
            line = line!() + 1;
            let task = task::Builder::new().name("three").spawn(async {
                yield_microtask().await;
                yield_microtask().await;
            });
            task.await.unwrap();
            let seen = watcher.task(1);
            assert!(seen.is_closed, "the task has ended: {seen:?}");
        });
    });
    let log = watcher.log.lock().unwrap();
    assert_eq!(log.tasks.len(), 1);
    drop(log);
    let seen = watcher.task(1);
    assert_eq!((seen.entered, seen.exited), (3, 3));
    let field = |name: &str| seen.fields[name].as_str();
    assert_eq!(field("kind"), "local");
    assert_eq!(field("task.id"), "1");
    assert_eq!(field("task.name"), "three");
    assert_eq!(field("loc.file"), file!());
    assert_eq!(field("loc.line"), line.to_string());
    assert!(field("loc.col").parse::<u32>().is_ok());
}

#[test]
fn the_parent_of_a_span_is_the_one_that_is_current_at_the_spawn() {
    let watcher = traced(|event_loop, _| {
        event_loop.block_on(async {
            let outer = spawn(async { spawn(async {}).await.unwrap() });
            outer.await.unwrap();
        });
    });
    let log = watcher.log.lock().unwrap();
    let [outer, inner] = [log.tasks[0], log.tasks[1]];
    assert_eq!(log.spans[&outer].parent, None);
    assert_eq!(log.spans[&inner].parent, Some(outer));
}

#[test]
fn wakes_are_events_with_the_number_of_the_span() {
    let watcher = traced(|event_loop, _| {
        event_loop.block_on(async { spawn(yield_microtask()).await.unwrap() });
    });
    let span = watcher.log.lock().unwrap().tasks[0].to_string();
    let wakes = watcher.events("runtime::waker");
    assert!(wakes.iter().all(|(_, fields)| fields["task.id"] == span));
    let ops: Vec<_> = wakes.iter().map(|(_, fields)| &*fields["op"]).collect();
    // The console warns of a task whose wakers are all gone, so there is one from the spawn on.
    let (first, rest) = ops.split_first().unwrap();
    assert_eq!(*first, "waker.clone");
    assert!(!rest.is_empty());
    assert!(rest.iter().all(|op| *op == "waker.wake_by_ref"), "{ops:?}");
}

#[test]
fn the_span_of_an_aborted_task_is_closed() {
    let watcher = traced(|event_loop, watcher| {
        event_loop.block_on(async {
            let never_polled = spawn(pending::<()>());
            never_polled.abort();
            let polled = spawn(pending::<()>());
            phase::check().await;
            assert!(watcher.task(1).is_closed);
            assert!(!watcher.task(2).is_closed, "it waits");
            polled.abort();
            phase::check().await;
        });
        assert!(watcher.task(2).is_closed);
        let handle = event_loop.handle();
        handle.spawn(pending::<()>()).detach();
    });
    assert!(watcher.task(3).is_closed, "with the loop");
}

#[test]
fn late_timers_and_slow_periods_are_warnings() {
    let watcher = traced(|event_loop, _| {
        event_loop.block_on(async {
            let late = spawn(sleep(Duration::from_millis(5)));
            phase::check().await;
            // The time of a paused clock passes as if this had blocked.
            advance(Duration::from_millis(50)).await;
            late.await.unwrap();
        });
    });
    let late = watcher.events("phaseloop::late");
    assert_eq!(late.len(), 1, "{late:?}");
    assert_eq!(late[0].0, Level::WARN);
    assert!(late[0].1["site"].contains(file!()), "{late:?}");
    assert_eq!(late[0].1["late"], "45ms");
    let slow = watcher.events("phaseloop::slow");
    assert!(slow.iter().all(|(level, _)| *level == Level::WARN));
    assert_eq!(slow.len(), 1, "{slow:?}");
}

#[test]
fn a_loop_that_is_not_asked_to_tells_nothing() {
    let watcher = Watcher::default();
    let subscriber = watcher.clone();
    tracing::subscriber::with_default(subscriber, || {
        phaseloop::block_on(async { spawn(async {}).await.unwrap() });
    });
    let log = watcher.log.lock().unwrap();
    assert!(log.spans.is_empty() && log.events.is_empty());
}
