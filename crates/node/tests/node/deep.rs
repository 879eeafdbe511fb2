//! Long chains of values that own each other, and of streams that write to each other, take a
//! bounded part of the stack.

use crate::run_to_end;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use phaseloop::task::{yield_microtask, yield_now_immediate};
use phaseloop::{
    EventLoop, JoinHandle, LoopHandle, RemoteJoinHandle, RunMode, block_on, spawn, time::Timer,
};
use phaseloop_node::events::{Event, EventEmitter};
use phaseloop_node::stream::{Readable, Transform, finished};
use phaseloop_node::{AbortController, AbortSignal, Deferred, Promise, call};

/// More than the stack of a test's thread has room for, if each takes 100 bytes of it.
const LINKS: usize = 50_000;

/// More than the stack has room for, if a chunk passes them all in one call.
const STREAMS: usize = 3_000;

type Link = fn(&Promise<()>) -> Promise<()>;

const LINKED_BY: [(&str, Link); 5] = [
    ("then", |queue| queue.then(|()| ())),
    ("and_then", |queue| queue.and_then(Promise::resolved)),
    ("catch", |queue| queue.catch(|_| ())),
    ("finally", |queue| queue.finally(|| ())),
    ("call", |queue| {
        let queue = queue.clone();
        call(async move { queue.await.unwrap() })
    }),
];

fn queue_of(first: &Deferred<()>, link: Link) -> Promise<()> {
    (0..LINKS).fold(first.promise(), |queue, _| link(&queue))
}

#[test]
fn a_long_queue_of_pending_promises_is_dropped() {
    for (name, link) in LINKED_BY {
        println!("{name}");
        run_to_end(async move {
            let first = Deferred::<()>::new();
            let last = queue_of(&first, link);
            assert!(!last.is_settled());
            drop(last);
            drop(first);
        });
    }
}

#[test]
fn a_long_queue_of_promises_is_settled() {
    for (name, link) in LINKED_BY {
        println!("{name}");
        run_to_end(async move {
            let first = Deferred::<()>::new();
            let last = queue_of(&first, link);
            first.resolve(());
            last.await.unwrap();
        });
    }
}

#[test]
fn promises_that_are_values_of_promises_are_dropped() {
    #[derive(Clone)]
    struct Nested(
        #[expect(dead_code, reason = "it is dropped with the rest")] Option<Promise<Self>>,
    );

    run_to_end(async {
        let first = Promise::resolved(Nested(None));
        let last = (0..LINKS).fold(first, |inner, _| Promise::resolved(Nested(Some(inner))));
        drop(last);
    });
}

/// A chain of `STREAMS` streams behind a source, and its last one.
fn piped(source: Readable<u32>) -> Readable<u32> {
    (0..STREAMS).fold(source, |last, _| {
        let next = Transform::pass_through();
        last.pipe(next.writable());
        next.readable().clone()
    })
}

#[test]
fn chunks_flow_through_a_long_chain_of_pipes_in_their_order() {
    let seen = Rc::new(Cell::new(0));
    let (count, ended) = (seen.clone(), Rc::new(Cell::new(false)));
    let end = ended.clone();
    run_to_end(async move {
        let last = piped(Readable::from_iter(0..100));
        last.on_data(move |chunk| {
            assert_eq!(*chunk, count.get());
            count.set(count.get() + 1);
        });
        finished(&last).await.unwrap();
        end.set(true);
    });
    assert_eq!((seen.get(), ended.get()), (100, true));
}

#[test]
fn a_long_chain_of_pipes_is_dropped_while_it_is_open() {
    run_to_end(async {
        let source = Readable::objects().build();
        let last = piped(source.clone());
        last.on_data(|_| ());
        source.push(1);
    });
}

#[test]
fn a_signal_made_of_a_signal_made_of_a_signal_is_dropped_and_aborted() {
    for is_aborted in [false, true] {
        let root = AbortController::new();
        let mut kept = Vec::new();
        let mut last = root.signal();
        for _ in 0..LINKS {
            last = AbortSignal::any([&last]);
            kept.push(last.clone());
        }
        let received = Rc::new(Cell::new(false));
        let receives = received.clone();
        last.on_abort(move || receives.set(true));
        if is_aborted {
            root.abort();
        }
        assert_eq!((last.aborted(), received.get()), (is_aborted, is_aborted));
        drop(kept);
        drop(last);
    }
    // The signals in between are not kept.
    let root = AbortController::new();
    let last = (0..LINKS).fold(root.signal(), |signal, _| AbortSignal::any([&signal]));
    root.abort();
    assert!(last.aborted());
}

#[test]
fn emitters_whose_listeners_hold_emitters_are_dropped() {
    const NEWS: Event<()> = Event::new("news");
    let last = (0..LINKS).fold(EventEmitter::new(), |inner, _| {
        let outer = EventEmitter::new();
        outer.on(NEWS, move |()| assert!(!inner.emit(NEWS, ())));
        outer
    });
    drop(last);
}

#[test]
fn timers_whose_callbacks_hold_timers_are_dropped() {
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let last = (0..LINKS).fold(Timer::new(&handle), |inner, _| {
        let outer = Timer::new(&handle);
        let start = move |_: &Timer| inner.stop();
        outer
            .start(Duration::from_secs(60), Duration::ZERO, start)
            .unwrap();
        outer
    });
    drop(last);
    event_loop.run(RunMode::Default).unwrap();
}

/// So many tasks that each hold the handle of another one.
const TASKS: usize = 100_000;

/// Enough for the loop, and for a bounded number of nested drops.
const SMALL_STACK: usize = 512 << 10;

fn on_a_small_stack(f: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(SMALL_STACK);
    thread.spawn(f).unwrap().join().unwrap();
}

#[test]
fn outputs_that_hold_the_handle_of_the_next_task_are_dropped() {
    struct Output(
        #[expect(dead_code, reason = "dropped")] Option<JoinHandle<Self>>,
        Rc<Cell<usize>>,
    );
    impl Drop for Output {
        fn drop(&mut self) {
            self.1.set(self.1.get() + 1);
        }
    }

    on_a_small_stack(|| {
        block_on(async {
            let dropped = Rc::<Cell<usize>>::default();
            let mut first = None;
            for _ in 0..TASKS {
                let output = Output(first, dropped.clone());
                first = Some(spawn(async { output }));
                yield_microtask().await;
            }
            assert!(first.as_ref().unwrap().is_finished());
            drop(first);
            assert_eq!(dropped.get(), TASKS);
        });
    });
}

#[test]
fn outputs_that_hold_the_remote_handle_of_the_next_task_are_dropped() {
    struct Output(#[expect(dead_code, reason = "dropped")] Option<RemoteJoinHandle<Self>>);

    on_a_small_stack(|| {
        block_on(async {
            let remote = LoopHandle::current().remote();
            let mut first = None;
            for _ in 0..10_000 {
                let output = Output(first);
                let task = remote.spawn(move || async { output }).unwrap();
                while !task.is_finished() {
                    yield_now_immediate().await;
                }
                first = Some(task);
            }
            drop(first);
        });
    });
}

#[test]
fn tasks_that_await_each_other_are_dropped_with_their_loop() {
    on_a_small_stack(|| {
        block_on(async {
            let mut last = spawn(std::future::pending::<()>());
            for _ in 0..TASKS {
                last = spawn(async { last.await.unwrap() });
            }
            yield_microtask().await;
            assert!(!last.is_finished());
        });
    });
}
