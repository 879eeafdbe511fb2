//! Stores that follow what a program starts, hooks, and the figures of the loop, by rule. What Node
//! itself prints is compared by `tests/conformance`, programs 200–213, 500–531, 560–583 and 600–617.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use phaseloop::{Builder, time};
use phaseloop_node::async_hooks::{
    AsyncLocalStorage, AsyncResource, Callbacks, create_hook, execution_async_id, trigger_async_id,
};
use phaseloop_node::events::{Event, EventEmitter, EventEmitterAsyncResource};
use phaseloop_node::net::{self, CONNECTION, Server};
use phaseloop_node::perf_hooks::{monitor_event_loop_delay, performance};
use phaseloop_node::stream::{CLOSE, END};
use phaseloop_node::worker_threads::Worker;
use phaseloop_node::{
    Deferred, Emitter, Promise, Reason, call, catch, fs, http, in_callbacks, next_tick, process,
    run_on, set_immediate, set_interval, set_timeout, set_timeout_mut, throw,
};

type Storage = AsyncLocalStorage<&'static str>;

/// The store, or `-`.
fn store(storage: &Storage) -> &'static str {
    storage.get_store().map_or("-", |store| *store)
}

/// Tokens, with the store of each.
#[derive(Clone, Default)]
struct Trace(Rc<RefCell<Vec<String>>>);

impl Trace {
    fn at(&self, storage: &Storage, place: &str) {
        let line = format!("{place} {}", store(storage));
        self.0.borrow_mut().push(line);
    }

    /// Returns what notes a token with the store.
    fn sees(&self, storage: &Storage, place: &'static str) -> impl Fn() + Clone + 'static {
        let (trace, storage) = (self.clone(), storage.clone());
        move || trace.at(&storage, place)
    }
}

/// Runs a program on the paused clock and returns its trace.
fn traced(main: impl FnOnce(Storage, Trace)) -> Vec<String> {
    run_traced(true, main)
}

fn run_traced(is_paused: bool, main: impl FnOnce(Storage, Trace)) -> Vec<String> {
    let mut event_loop = Builder::new().start_paused(is_paused).build().unwrap();
    let trace = Trace::default();
    let seen = trace.clone();
    let exit = run_on(&mut event_loop, async move { main(Storage::new(), seen) });
    assert_eq!(exit.code(), 0);
    drop(event_loop);
    trace.0.take()
}

#[test]
fn o01_run_returns_what_the_function_returns_and_nests() {
    traced(|als, _| {
        let returned = als.run("a", || {
            assert_eq!(als.run("b", || store(&als)), "b");
            catch(|| als.run("c", || throw("inside"))).unwrap_err();
            store(&als)
        });
        assert_eq!((returned, store(&als)), ("a", "-"));
    });
}

#[test]
fn o02_exit_hides_the_store_for_the_call_and_what_is_queued_in_it() {
    let trace = traced(|als, trace| {
        als.run("a", || {
            als.exit(|| {
                trace.at(&als, "inside");
                set_immediate(trace.sees(&als, "immediate"));
            });
            trace.at(&als, "after");
        });
    });
    assert_eq!(trace, ["inside -", "after a", "immediate -"]);
}

#[test]
fn o03_a_timer_keeps_the_store_of_its_call_over_refresh_and_each_firing() {
    let trace = traced(|als, trace| {
        let fired = trace.sees(&als, "timeout");
        let timer = als.run("a", || set_timeout_mut(5, move |_| fired()));
        als.run("b", || {
            timer.refresh();
            timer.unref();
            timer.ref_();
        });
        let (fired, left) = (trace.sees(&als, "interval"), Cell::new(2));
        als.run("i", || {
            set_interval(10, move |interval| {
                fired();
                left.set(left.get() - 1);
                if left.get() == 0 {
                    interval.close();
                }
            })
        });
    });
    assert_eq!(trace, ["timeout a", "interval i", "interval i"]);
}

#[test]
fn o04_timers_of_one_pass_and_immediates_of_one_phase_leave_each_other_nothing() {
    let trace = traced(|als, trace| {
        for place in ["one", "two"] {
            let (storage, look) = (als.clone(), trace.sees(&als, place));
            set_timeout(1, move || {
                look();
                storage.enter_with("left");
            });
        }
        for place in ["three", "four"] {
            let (storage, look) = (als.clone(), trace.sees(&als, place));
            set_timeout(5, move || {
                set_immediate(move || {
                    look();
                    storage.enter_with("left");
                });
            });
        }
    });
    assert_eq!(trace, ["one -", "two -", "three -", "four -"]);
}

#[test]
fn o05_a_reaction_has_the_store_of_then_whoever_settles_the_promise() {
    let trace = traced(|als, trace| {
        let deferred = als.run("made", Deferred::<()>::new);
        let look = trace.sees(&als, "then");
        als.run("then", || deferred.promise().then(move |()| look()));
        let (promise, look) = (deferred.promise(), trace.sees(&als, "await"));
        als.run("await", || {
            call(async move {
                promise.await.unwrap();
                look();
            })
        });
        als.run("settler", || deferred.resolve(()));
    });
    assert_eq!(trace, ["then then", "await await"]);
}

#[test]
fn o05_a_task_runs_with_the_frame_it_was_spawned_with() {
    let trace = traced(|als, trace| {
        let look = trace.sees(&als, "task");
        let task = als.run("a", || {
            phaseloop::spawn(async move {
                look();
                time::sleep(Duration::from_millis(1)).await;
                look();
            })
        });
        task.detach();
    });
    assert_eq!(trace, ["task a", "task a"]);
}

#[test]
fn o06_what_an_eager_function_enters_before_its_first_await_is_the_callers() {
    let trace = traced(|als, trace| {
        let (storage, look) = (als.clone(), trace.sees(&als, "function"));
        call(async move {
            // The first use of a context on this thread.
            storage.enter_with("early");
            Promise::resolved(()).await.unwrap();
            look();
            storage.enter_with("late");
        });
        trace.at(&als, "caller");
        let look = trace.sees(&als, "then");
        Promise::resolved(()).then(|()| ()).then(move |()| look());
    });
    assert_eq!(trace, ["caller early", "function early", "then early"]);
}

#[test]
fn o06_what_the_caller_enters_later_is_not_the_functions() {
    let trace = traced(|als, trace| {
        // In a callback, which is no poll; the first use of a context on this thread.
        set_immediate(move || {
            let (storage, look) = (als.clone(), trace.sees(&als, "function"));
            call(async move {
                storage.enter_with("early");
                Promise::resolved(()).await.unwrap();
                look();
            });
            als.enter_with("later");
        });
    });
    assert_eq!(trace, ["function early"]);
}

#[test]
fn o06_an_interval_does_not_keep_what_its_callback_enters() {
    let trace = traced(|als, trace| {
        let mut firings = 0;
        set_interval(10, move |interval| {
            trace.at(&als, "interval");
            als.enter_with(["first", "second", "third"][firings]);
            firings += 1;
            if firings == 3 {
                interval.close();
            }
        });
    });
    assert_eq!(trace, ["interval -", "interval -", "interval -"]);
}

#[test]
fn o06_a_future_in_callbacks_keeps_what_it_enters_over_its_awaits() {
    let trace = traced(|als, trace| {
        in_callbacks(async move {
            als.enter_with("begun");
            phaseloop::phase::check().await;
            trace.at(&als, "first");
            als.enter_with("changed");
            phaseloop::phase::check().await;
            trace.at(&als, "second");
        });
    });
    assert_eq!(trace, ["first begun", "second changed"]);
}

#[test]
fn o06_what_a_request_handler_enters_is_not_there_for_the_body() {
    let trace = run_traced(false, |als, trace| {
        let client = Rc::new(RefCell::new(None::<net::Socket>));
        let sender = client.clone();
        let server = http::create_server(move |request, response| {
            // The first use of a context on this thread.
            als.enter_with("request");
            let (data, end) = (trace.sees(&als, "data"), trace.sees(&als, "end"));
            let answer = response.clone();
            request.on_data(move |_| data());
            request.on(END, move |()| {
                end();
                answer.end(());
            });
            let sender = sender.take().unwrap();
            set_immediate(move || _ = sender.write("body"));
        });
        server.listen_this(("127.0.0.1", 0), move |server| {
            let socket = net::connect(server.address().unwrap());
            let head =
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nConnection: close\r\n\r\n";
            socket.write(head);
            socket.resume();
            client.replace(Some(socket));
            server.unref();
        });
    });
    assert_eq!(trace, ["data -", "end -"]);
}

#[test]
fn o01_run_gives_back_its_own_store_and_leaves_that_of_others() {
    let trace = traced(|als, trace| {
        let other = Storage::new();
        als.run("outer", || {
            als.run("inner", || other.enter_with("entered"));
            trace.at(&als, "own");
            trace.at(&other, "other");
            als.run("inner", || als.enter_with("changed"));
            trace.at(&als, "own");
        });
        trace.at(&als, "own");
    });
    assert_eq!(trace, ["own outer", "other entered", "own outer", "own -"]);
}

#[test]
fn o07_a_resource_gives_back_the_store_around_it_also_after_a_throw() {
    let trace = traced(|als, trace| {
        let resource = als.run("made", || AsyncResource::new("Mine"));
        als.run("around", || {
            resource.run_in_async_scope(|| trace.at(&als, "inside"));
            trace.at(&als, "after");
            catch(|| resource.run_in_async_scope(|| throw("inside"))).unwrap_err();
            trace.at(&als, "after a throw");
            let snapshot = AsyncLocalStorage::snapshot();
            als.run("other", || snapshot.run(|| trace.at(&als, "snapshot")));
        });
    });
    let expected = [
        "inside made",
        "after around",
        "after a throw around",
        "snapshot around",
    ];
    assert_eq!(trace, expected);
}

#[test]
fn o08_a_listener_has_the_store_of_emit_unless_it_is_bound() {
    const X: Event<()> = Event::new("x");
    let trace = traced(|als, trace| {
        let (plain, bound) = (trace.sees(&als, "plain"), trace.sees(&als, "bound"));
        let emitter = EventEmitter::new();
        als.run("on", || {
            emitter.on(X, move |()| plain());
            emitter.on(X, AsyncResource::bind_listener(move |(): &()| bound()));
        });
        als.run("emit", || emitter.emit(X, ()));
        let own = als.run("made", || EventEmitterAsyncResource::new("Own"));
        let look = trace.sees(&als, "own");
        own.on(X, move |()| look());
        als.run("emit", || own.emit(X, ()));
    });
    assert_eq!(trace, ["plain emit", "bound on", "own made"]);
}

#[test]
fn o09_a_file_operation_calls_back_with_the_store_of_the_call() {
    let trace = run_traced(false, |als, trace| {
        let look = trace.sees(&als, "stat");
        als.run("call", || fs::stat(".", move |_| look()));
        let look = trace.sees(&als, "callbacks");
        als.run("future", || {
            in_callbacks(async move {
                phaseloop::phase::check().await;
                look();
            });
        });
    });
    let mut trace = trace;
    trace.sort();
    assert_eq!(trace, ["callbacks future", "stat call"]);
}

#[test]
fn o09_sockets_have_the_store_of_connect_or_none() {
    let trace = run_traced(false, |als, trace| {
        let server = als.run("made", Server::new);
        let (storage, seen) = (als.clone(), trace.clone());
        server.on_this(CONNECTION, move |server, socket| {
            seen.at(&storage, "connection");
            let (look, server) = (seen.sees(&storage, "data"), Server::clone(server));
            storage.run("on", || {
                socket.on_data_this(move |socket, _| {
                    look();
                    socket.end(());
                    server.close();
                });
            });
        });
        let (storage, seen) = (als.clone(), trace.clone());
        als.run("listen", || {
            server.listen_this(("127.0.0.1", 0), move |server| {
                let address = server.address().unwrap();
                let client = storage.run("connect", || net::connect(address));
                let (look, closed) = (seen.sees(&storage, "end"), seen.sees(&storage, "close"));
                storage.run("write", || client.write("x"));
                client.on(END, move |()| look());
                client.on(CLOSE, move |()| closed());
                client.resume();
            });
        });
    });
    let expected = [
        "connection listen",
        "data -",
        "end connect",
        "close connect",
    ];
    assert_eq!(trace, expected);
}

#[test]
fn o09_a_panic_of_a_socket_listener_reaches_its_handler_in_the_sockets_frame() {
    let trace = run_traced(false, |als, trace| {
        let reported = trace.sees(&als, "uncaught");
        process::on_uncaught_exception(move |_, _| reported());
        let server = net::create_server(|socket| socket.end("x"));
        let (storage, seen) = (als.clone(), trace);
        server.listen_this(("127.0.0.1", 0), move |server| {
            let client = storage.run("connect", || net::connect(server.address().unwrap()));
            let (storage, server) = (storage.clone(), server.clone());
            client.on_data(move |_| {
                server.close();
                storage.enter_with("entered");
                throw("from a listener")
            });
            client.on(CLOSE, seen.sees_listener("close"));
        });
    });
    assert_eq!(trace, ["uncaught entered", "close"]);
}

impl Trace {
    /// Returns a listener that notes a token.
    fn sees_listener(&self, place: &'static str) -> impl Fn(&()) + 'static {
        let trace = self.clone();
        move |()| trace.0.borrow_mut().push(place.to_owned())
    }
}

#[test]
fn o09_a_request_that_waits_for_a_socket_keeps_its_store() {
    let trace = run_traced(false, |als, trace| {
        let server = http::create_server(|_, response| response.end("x"));
        server.listen_this(("127.0.0.1", 0), move |server| {
            let agent = http::Agent::builder()
                .keep_alive(true)
                .max_sockets(1)
                .build();
            let left = Rc::new(Cell::new(2));
            for name in ["one", "two"] {
                let options = http::RequestOptions::new(server.address().unwrap()).agent(&agent);
                let request = als.run(name, || http::get(options));
                let (look, left) = (trace.sees(&als, "response"), left.clone());
                let (server, agent) = (server.clone(), agent.clone());
                request.once(http::RESPONSE, move |response| {
                    look();
                    response.resume();
                    left.set(left.get() - 1);
                    if left.get() == 0 {
                        agent.destroy();
                        server.close();
                    }
                });
            }
        });
    });
    assert_eq!(trace, ["response one", "response two"]);
}

#[test]
fn o09_a_worker_begins_without_a_store() {
    let trace = run_traced(false, |als, trace| {
        let worker: Worker<(), bool> = als
            .run("parent", || {
                Worker::new(|port| async move {
                    port.post_message(Storage::new().get_store().is_none());
                })
            })
            .unwrap();
        let look = trace.sees(&als, "message");
        worker.on_message(move |is_none| {
            assert!(is_none);
            look();
        });
    });
    assert_eq!(trace, ["message parent"]);
}

#[test]
fn o10_the_handler_of_an_error_has_the_store_of_what_threw() {
    let trace = traced(|als, trace| {
        let reported = trace.sees(&als, "uncaught");
        process::on_uncaught_exception(move |_, _| reported());
        let storage = als.clone();
        als.run("timer", || {
            set_timeout(1, move || {
                storage.run("inner", || throw("restored by run"));
            })
        });
        let storage = als.clone();
        als.run("tick", || {
            next_tick(move || {
                storage.enter_with("entered");
                throw("after enter_with")
            });
        });
    });
    assert_eq!(trace, ["uncaught entered", "uncaught timer"]);
}

#[test]
fn o10_the_handler_of_a_rejection_has_the_store_of_the_call_that_rejects() {
    let trace = traced(|als, trace| {
        let reported = trace.sees(&als, "unhandled");
        process::on_unhandled_rejection(move |_| reported());
        let deferred = als.run("made", Deferred::<()>::new);
        als.run("rejecter", || deferred.reject(Reason::new("no")));
    });
    assert_eq!(trace, ["unhandled rejecter"]);
}

#[test]
fn o10_disable_removes_a_store_and_leaves_the_others() {
    traced(|als, _| {
        let other = Storage::new();
        als.run("a", || {
            other.run("b", || {
                als.disable();
                assert_eq!((store(&als), store(&other)), ("-", "b"));
            });
            als.run("c", || assert_eq!(store(&als), "c"));
            assert_eq!(
                store(&als),
                "-",
                "the frame behind is made of the one without it"
            );
        });
    });
}

#[test]
fn o11_a_function_that_waits_for_a_plain_future_continues_as_its_promise() {
    let log = Rc::new(RefCell::new(Vec::new()));
    let seen = log.clone();
    traced(move |_, _| {
        let promises = Rc::new(RefCell::new(Vec::new()));
        let (made, begun) = (promises.clone(), seen.clone());
        let callbacks = Callbacks::new()
            .init(move |id, kind, _| made.borrow_mut().push((id, kind)))
            .before(move |_| begun.borrow_mut().push("before".to_owned()));
        create_hook(callbacks).enable();
        call(async move {
            let function = promises.borrow()[0];
            time::sleep(Duration::from_millis(1)).await;
            let is_function = (execution_async_id(), "PROMISE") == function;
            seen.borrow_mut().push(format!("continues {is_function}"));
        });
    });
    assert_eq!(log.take(), ["before", "continues true"]);
}

#[test]
fn o11_hooks_are_told_of_a_life_in_order() {
    let log = Rc::new(RefCell::new(Vec::new()));
    let note = |what: &'static str| {
        let log = log.clone();
        move |_: u64| log.borrow_mut().push(what)
    };
    let callbacks = Callbacks::new()
        .init({
            let log = log.clone();
            move |_, kind, _| log.borrow_mut().push(kind)
        })
        .before(note("before"))
        .after(note("after"))
        .destroy(note("destroy"));
    let called = log.clone();
    traced(move |_, _| {
        let main = execution_async_id();
        let hook = create_hook(callbacks);
        hook.enable();
        set_immediate(move || {
            called.borrow_mut().push("call");
            assert_ne!(execution_async_id(), main);
            assert_eq!(trigger_async_id(), main);
            hook.disable();
            next_tick(|| ());
            hook.enable();
        });
    });
    // The tick was made unseen, but is called and ends seen.
    let expected = [
        "Immediate",
        "before",
        "call",
        "after",
        "before",
        "after",
        "destroy",
        "destroy",
    ];
    assert_eq!(*log.borrow(), expected);
}

#[test]
fn o12_waiting_is_idle_and_blocking_active() {
    traced(|_, _| {
        let before = performance::event_loop_utilization();
        assert_eq!(before, performance::event_loop_utilization());
        assert_eq!(
            (before.idle, before.active, before.utilization),
            (0.0, 0.0, 0.0)
        );
        set_timeout(100, || {
            let waited = performance::event_loop_utilization();
            assert!((waited.idle - 100.0).abs() < 1e-6, "{waited:?}");
            let _ = futures::FutureExt::now_or_never(time::advance(Duration::from_millis(300)));
            let all = performance::event_loop_utilization();
            let blocked = all.since(&waited);
            assert_eq!((blocked.idle, blocked.utilization), (0.0, 1.0));
            assert!((blocked.active - 300.0).abs() < 1e-6, "{blocked:?}");
            assert!((all.utilization - 0.75).abs() < 1e-6, "{all:?}");
        });
    });
}

#[test]
fn o13_the_monitor_samples_by_a_timer_and_includes_its_resolution() {
    traced(|_, _| {
        let delay = monitor_event_loop_delay(10);
        assert!(delay.enable());
        set_timeout(105, move || {
            // Ten firings are nine samples.
            let histogram = delay.histogram();
            assert_eq!(histogram.count(), 9);
            let is_resolution = |nanoseconds: u64| nanoseconds.abs_diff(10_000_000) < 10_000;
            assert!(is_resolution(histogram.min()) && is_resolution(histogram.max()));
            assert!(delay.disable());
        });
    });
}

#[test]
fn a_program_that_ends_leaves_no_tracker_to_the_next_loop() -> io::Result<()> {
    traced(|_, _| {
        create_hook(Callbacks::new().init(|_, _, _| ())).enable();
    });
    let mut event_loop = Builder::new().build()?;
    let exit = run_on(&mut event_loop, async {
        let seen = Rc::new(Cell::new(0));
        let count = seen.clone();
        let callbacks = Callbacks::new().init(move |_, _, _| count.set(count.get() + 1));
        create_hook(callbacks).enable();
        next_tick(|| ());
        seen.get()
    });
    assert_eq!(exit.into_output(), Some(1));
    Ok(())
}
