//! The end of a program: exit codes, its events, and uncaught errors.

use crate::util::child::in_child;
use crate::util::panics::panic_of;
use crate::util::trace::{Trace, finish, ms, paused};
use std::cell::{Cell, RefCell};
use std::process::{ExitCode, Termination};
use std::rc::Rc;

use phaseloop::{block_on, spawn, time};
use phaseloop_node as node;
use phaseloop_node::events::{ERROR, EventEmitter};
use phaseloop_node::worker_threads::Worker;
use phaseloop_node::{
    Emitter as _, Error, Promise, Reason, call, next_tick, process, queue_microtask, set_immediate,
    set_timeout, throw, try_call,
};

/// Runs a program on the paused clock; returns its trace and its exit code. The end is traced.
fn run<F: Future<Output = ()>>(main: impl FnOnce(Trace) -> F) -> (String, i32) {
    let (mut event_loop, _, trace) = paused();
    let (outside, inside) = (trace.clone(), trace.clone());
    let main = main(trace);
    let exit = node::run_on(&mut event_loop, async move {
        process::on_exit(move |code| inside.log(format_args!("exit-{code}")));
        main.await;
    });
    (outside.take(), exit.code())
}

#[test]
fn a_main_future_that_waits_for_nothing_ends_with_13() {
    let (trace, code) = run(|trace| async move {
        process::on_before_exit(move |code| trace.log(format_args!("before-{code}")));
        std::future::pending().await
    });
    assert_eq!((&*trace, code), ("before-0 exit-13", 13));
    let (trace, code) = run(|_| async {
        process::set_exit_code(4);
        std::future::pending().await
    });
    assert_eq!((&*trace, code), ("exit-4", 4));
}

#[test]
fn exit_codes_are_reported() {
    let (trace, code) = run(|_| async {
        assert_eq!(process::exit_code(), None);
        process::set_exit_code(3);
        assert_eq!(process::exit_code(), Some(3));
    });
    assert_eq!((&*trace, code), ("exit-3", 3));
    let exit = node::run(async { "output" });
    assert_eq!((exit.code(), exit.into_output()), (0, Some("output")));
}

/// N83: wherever it is called, nothing runs afterwards.
#[test]
fn n083_exit_stops_everything_wherever_it_is_called() {
    fn leave(trace: &Trace) -> ! {
        trace.log("leave");
        let late = trace.clone();
        next_tick(move || late.log("tick"));
        let late = trace.clone();
        queue_microtask(move || late.log("microtask"));
        let late = trace.clone();
        drop(spawn(async move { late.log("task") }));
        process::exit(7)
    }
    type Program = fn(Trace);
    let places: [(&str, Program); 9] = [
        ("main", |trace| leave(&trace)),
        ("tick", |trace| next_tick(move || leave(&trace))),
        ("microtask", |trace| queue_microtask(move || leave(&trace))),
        ("immediate", |trace| {
            drop(set_immediate(move || leave(&trace)))
        }),
        ("timer", |trace| drop(set_timeout(1, move || leave(&trace)))),
        ("task", |trace| drop(spawn(async move { leave(&trace) }))),
        ("joined task", |trace| {
            let after = trace.clone();
            let task = spawn(async move { leave(&trace) });
            drop(spawn(async move {
                let _: Result<(), _> = task.await;
                after.log("after");
            }));
        }),
        ("async function", |trace| {
            let after = trace.clone();
            let promise = call(async move {
                time::sleep(ms(1)).await;
                leave(&trace)
            });
            promise.then_result(move |_: Result<(), _>| after.log("after"));
        }),
        ("async function, first segment", |trace| {
            let after = trace.clone();
            call(async move { leave(&trace) })
                .then_result(move |_: Result<(), _>| after.log("after"));
        }),
    ];
    for (name, program) in places {
        let (trace, code) = run(|trace| async move {
            let caught = trace.clone();
            process::on_uncaught_exception(move |_, _| caught.log("caught"));
            let before = trace.clone();
            process::on_before_exit(move |_| before.log("before-exit"));
            program(trace.clone());
            // Due in the phases that follow, and in the same.
            for _ in 0..2 {
                let late = trace.clone();
                set_immediate(move || {
                    if late.contains("leave") {
                        late.log("immediate");
                    }
                });
                let late = trace.clone();
                set_timeout(1, move || {
                    if late.contains("leave") {
                        late.log("timer");
                    }
                });
            }
        });
        assert_eq!((&*trace, code), ("leave exit-7", 7), "{name}");
    }
}

#[test]
fn exit_in_an_exit_listener_changes_the_code_and_tells_nobody_twice() {
    let (trace, code) = run(|trace| async move {
        process::on_exit(move |_| {
            trace.log("listener");
            process::exit(9)
        });
    });
    assert_eq!((&*trace, code), ("exit-0 listener", 9));
}

#[test]
fn a_loop_can_run_another_program_after_an_exit() {
    let (mut event_loop, _, trace) = paused();
    let first = node::run_on(&mut event_loop, async { process::exit(1) });
    let _: Option<()> = first.into_output();
    let logger = trace.clone();
    let second = node::run_on(&mut event_loop, async move {
        set_immediate(move || logger.log("immediate"));
    });
    assert_eq!(second.code(), 0);
    assert_eq!(trace.take(), "immediate");
    assert_eq!(event_loop.block_on(async { 5 }), 5);
}

/// N82: as in Node, the code is 1 whatever was set before, and what the listeners of the end make
/// of it.
#[test]
fn n082_what_nobody_catches_ends_the_program_with_1() {
    let boom = |trace: &Trace| {
        let late = trace.clone();
        set_immediate(move || {
            next_tick(move || late.log("tick"));
            panic!("boom")
        });
    };
    let (trace, code) = run(|trace| async move {
        process::set_exit_code(5);
        boom(&trace);
    });
    assert_eq!((&*trace, code), ("exit-1", 1));
    let (trace, code) = run(|trace| async move {
        process::on_exit(|_| process::set_exit_code(9));
        boom(&trace);
    });
    assert_eq!((&*trace, code), ("exit-1", 9));
    let (trace, code) = run(|trace| async move {
        process::on_exit(|_| process::exit(4));
        boom(&trace);
    });
    assert_eq!((&*trace, code), ("exit-1", 4));
    let (trace, code) = run(|trace| async move {
        process::on_exit(|_| throw("a second one"));
        boom(&trace);
    });
    assert_eq!((&*trace, code), ("exit-1", 1));
    let (trace, code) =
        run(|_| async { drop(try_call(async { Err::<(), _>(Reason::new("no")) })) });
    assert_eq!((&*trace, code), ("exit-1", 1));
}

/// N82: nor does a listener of the end go unnoticed that panics itself.
#[test]
fn n082_a_panic_at_the_end_is_uncaught_as_any_other() {
    let (trace, code) = run(|_| async {
        process::on_exit(|_| throw("at the end"));
    });
    assert_eq!((&*trace, code), ("exit-0", 1));
    let (trace, code) = run(|trace| async move {
        process::on_uncaught_exception(move |uncaught, _| trace.log(uncaught));
        process::on_exit(|_| throw("caught"));
    });
    assert_eq!((&*trace, code), ("exit-0 caught", 0));
    let (_, code) = run(|_| async {
        process::on_exit(|_| process::set_exit_code(6));
    });
    assert_eq!(code, 6);
}

#[test]
fn a_panic_that_nobody_looks_at_goes_on() {
    let fails = || {
        node::run(async {
            set_immediate(|| panic!("boom"));
            1
        })
    };
    assert_eq!(panic_of(|| drop(fails())), "boom");
    assert_eq!(panic_of(|| fails().into_output()), "boom");
    let exit = fails();
    assert_eq!((exit.code(), exit.into_output()), (1, Some(1)));
    let fails = node::run(async { drop(set_immediate(|| panic!("boom"))) });
    assert_eq!(fails.report(), ExitCode::from(1));
}

/// N23: a value that is no error is wrapped, and so is a panic with a payload that is no text.
#[test]
fn n023_a_rejection_with_no_error_ends_the_program_with_one() {
    fn code_of(main: impl FnOnce() + 'static) -> (i32, Vec<String>) {
        let seen: Rc<RefCell<Vec<String>>> = Rc::default();
        let log = seen.clone();
        let exit = node::run(async move {
            process::on_uncaught_exception_monitor(move |reason, _| {
                let code = reason.code().unwrap_or("none");
                log.borrow_mut().push(format!("{} {code}", reason.name()));
            });
            main();
        });
        (exit.code(), seen.take())
    }
    let wrapped = "UnhandledPromiseRejection ERR_UNHANDLED_REJECTION".to_owned();
    let value = code_of(|| drop(Promise::<()>::rejected(Reason::value("text"))));
    assert_eq!(value, (1, vec![wrapped.clone()]));
    let payload = code_of(|| drop(call(async { std::panic::panic_any(7_u8) })));
    assert_eq!(payload, (1, vec![wrapped]));
    let text = code_of(|| drop(Promise::<()>::rejected(Reason::new("text"))));
    assert_eq!(text, (1, vec!["Error none".to_owned()]));
}

/// The exit code, and the text on standard error with its origin.
#[test]
fn what_no_listener_catches_is_reported() {
    let errors = errors_of("what_no_listener_catches_is_reported", || {
        let thrown = node::run(async { drop(set_immediate(|| throw("thrown text"))) });
        assert_eq!(thrown.code(), 1);
        let rejected = node::run(async {
            drop(try_call(async {
                Err::<(), _>(Reason::new("rejected text"))
            }));
        });
        assert_eq!(rejected.code(), 1);
    });
    if let Some(errors) = errors {
        assert!(errors.contains("uncaught: Error: thrown text"), "{errors}");
        let text = "unhandled rejection: Error: rejected text";
        assert!(errors.contains(text), "{errors}");
    }
}

/// Without `run`, a listener contains panics of any loop.
#[test]
fn n076_a_listener_contains_the_panics_of_a_plain_loop() {
    let (mut event_loop, handle, trace) = paused();
    event_loop.enter(|| {
        let logger = trace.clone();
        process::on_uncaught_exception(move |uncaught, _| logger.log(uncaught));
    });
    let remote = handle.remote();
    remote.call(|| throw("first")).unwrap();
    let timer = time::Timer::new(&handle);
    timer.start(ms(1), ms(0), |_| throw("second")).unwrap();
    handle.next_tick(|| throw("third"));
    handle.set_immediate(trace.call("immediate"));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "third first immediate second");
}

/// Node's code for it, and no event of the end.
#[test]
fn a_listener_that_panics_ends_the_program_with_7() {
    let (trace, code) = run(|_| async {
        process::on_uncaught_exception(|_, _| panic!("in the listener"));
        set_immediate(|| throw("x"));
    });
    assert_eq!((&*trace, code), ("", 7));
    let (trace, code) = run(|_| async {
        process::on_uncaught_exception(|_, _| process::exit(3));
        set_immediate(|| throw("x"));
    });
    assert_eq!((&*trace, code), ("exit-3", 3));
}

#[test]
fn panics_of_main_after_an_await_are_those_of_a_microtask() {
    let (trace, code) = run(|trace| async move {
        let logger = trace.clone();
        process::on_uncaught_exception(move |uncaught, _| logger.log(uncaught));
        set_timeout(5, move || trace.log("later"));
        time::sleep(ms(1)).await;
        throw("main")
    });
    assert_eq!((&*trace, code), ("main later exit-0", 0));
}

#[test]
fn before_exit_may_be_asked_again_and_again() {
    let count = Rc::new(Cell::new(0));
    let seen = count.clone();
    let (_, code) = run(|_| async move {
        let listener = Rc::new(Cell::new(None::<process::Listener>));
        let own = listener.clone();
        listener.set(Some(process::on_before_exit(move |_| {
            seen.set(seen.get() + 1);
            set_immediate(|| ());
            if seen.get() == 3 {
                assert!(own.take().unwrap().remove());
            }
        })));
    });
    assert_eq!((count.get(), code), (3, 0));
}

#[test]
fn warnings_go_to_listeners_by_a_tick() {
    let (trace, _) = run(|trace| async move {
        let logger = trace.clone();
        process::on_warning(move |warning| {
            assert_eq!(warning.name(), "Odd");
            logger.log(warning.text());
        });
        process::emit_warning("Odd", "text");
        trace.log("first");
    });
    assert_eq!(trace, "first text exit-0");
}

#[test]
fn a_stopped_program_ends_without_before_exit() {
    let (trace, code) = run(|trace| async move {
        process::on_before_exit(move |_| trace.log("before"));
        set_immediate(|| phaseloop::LoopHandle::current().stop());
        set_timeout(1000, || ());
    });
    assert_eq!((&*trace, code), ("exit-0", 0));
}

#[test]
fn outside_of_run_exit_unwinds_out_of_the_loop() {
    let unwound = std::panic::catch_unwind(|| block_on(async { process::exit(1) }));
    assert!(unwound.is_err());
}

/// What the test named `test` writes to standard error when `body` runs in a process of its own.
fn errors_of(test: &str, body: impl FnOnce()) -> Option<String> {
    let child = in_child(&[], test, body)?;
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn an_exit_in_a_task_is_no_panic() {
    let errors = errors_of("an_exit_in_a_task_is_no_panic", || {
        let exit = node::run(async {
            drop(spawn(async { process::exit(3) }));
            std::future::pending::<()>().await;
        });
        assert_eq!(exit.code(), 3);
    });
    if let Some(errors) = errors {
        assert!(!errors.contains("panicked"), "{errors}");
    }
}

#[test]
fn an_error_that_main_returns_is_printed_and_the_code_is_1() {
    let errors = errors_of(
        "an_error_that_main_returns_is_printed_and_the_code_is_1",
        || {
            let fails = node::run(async { Err::<(), _>(std::io::Error::other("no such note")) });
            assert_eq!(fails.report(), ExitCode::from(1));
            let passes = node::run(async { Ok::<_, Reason>(()) });
            assert_eq!(passes.report(), ExitCode::SUCCESS);
            let exits = node::run(async {
                process::set_exit_code(3);
                Ok::<_, Reason>(())
            });
            assert_eq!(exits.report(), ExitCode::from(3));
        },
    );
    if let Some(errors) = errors {
        assert!(errors.contains("no such note"), "{errors}");
    }
}

#[test]
fn an_exit_outside_of_run_is_reported() {
    let errors = errors_of("an_exit_outside_of_run_is_reported", || {
        let unwound = std::panic::catch_unwind(|| block_on(async { process::exit(7) }));
        assert!(unwound.is_err());
        assert_eq!(node::run(async { process::exit(8) }).code(), 8);
    });
    if let Some(errors) = errors {
        assert!(errors.contains("process::exit(7)"), "{errors}");
        assert!(!errors.contains("process::exit(8)"), "{errors}");
    }
}

#[test]
fn a_program_inside_a_loop_is_refused_once() {
    let errors = errors_of("a_program_inside_a_loop_is_refused_once", || {
        let text = panic_of(|| block_on(async { drop(node::run(async {})) }));
        assert!(text.contains("inside one that runs"), "{text}");
    });
    if let Some(errors) = errors {
        assert_eq!(
            errors.matches("inside one that runs").count(),
            1,
            "{errors}"
        );
    }
}

/// What Node would hand to `uncaughtException` is for the listener to report, not for the panic hook.
#[test]
fn a_panic_that_a_listener_hears_is_not_reported() {
    let test = "a_panic_that_a_listener_hears_is_not_reported";
    let errors = errors_of(test, || {
        let exit = node::run(async {
            process::on_uncaught_exception(|_, _| ());
            set_immediate(|| panic!("in an immediate"));
            next_tick(|| panic!("in a tick"));
            queue_microtask(|| panic!("in a microtask"));
            drop(call(async { panic!("in an async function") }));
            drop(Promise::<()>::new(|_| panic!("in an executor")));
            EventEmitter::new().emit(ERROR, Error::new("in the main program"));
        });
        assert_eq!(exit.code(), 0);
    });
    if let Some(errors) = errors {
        assert!(!errors.contains("in a"), "{errors}");
        assert!(!errors.contains("in the main program"), "{errors}");
    }
}

/// The others are still reported: a task's handle may never be looked at.
#[test]
fn a_panic_that_no_listener_hears_is_reported() {
    let errors = errors_of("a_panic_that_no_listener_hears_is_reported", || {
        let exit = node::run(async {
            process::on_uncaught_exception(|_, _| panic!("in the listener"));
            drop(spawn(async { panic!("in a task") }));
            set_immediate(|| panic!("what the listener receives"));
        });
        assert_eq!(exit.code(), 7);
        let exit = node::run(async { panic!("in a program without listeners") });
        assert_eq!(exit.code(), 1);
        let exit = node::run(async {
            EventEmitter::new().emit(ERROR, Error::new("an unheard error"));
        });
        assert_eq!(exit.code(), 1);
    });
    if let Some(errors) = errors {
        for text in [
            "in the listener",
            "in a task",
            "in a program without listeners",
            "uncaught: Error: an unheard error",
        ] {
            assert!(errors.contains(text), "{text}: {errors}");
        }
        assert!(!errors.contains("what the listener receives"), "{errors}");
    }
}

#[test]
fn what_ends_a_worker_is_told_by_its_parent_alone() {
    let errors = errors_of("what_ends_a_worker_is_told_by_its_parent_alone", || {
        let exit = node::run(async {
            let worker = |main: fn()| {
                let worker = Worker::<(), ()>::new(move |_| async move { main() }).unwrap();
                worker.on(ERROR, |error| assert!(!error.message().is_empty()));
            };
            worker(|| panic!("a worker's panic"));
            worker(|| throw("a worker's error"));
            worker(|| drop(Promise::<()>::rejected(Error::new("a worker's rejection"))));
        });
        assert_eq!(exit.code(), 0);
    });
    if let Some(errors) = errors {
        assert!(!errors.contains("a worker's"), "{errors}");
    }
}

/// What a task that was woken by I/O queues is contained like the rest, and the next event of the
/// same poll phase is delivered.
#[cfg(unix)]
#[test]
fn n076_a_panic_in_the_drain_of_a_task_woken_by_io_leaves_the_other_events() {
    use futures::AsyncReadExt;
    use phaseloop::net::UnixStream;
    use std::io::Write;

    let (trace, code) = run(|trace| {
        let trace = trace.clone();
        async move {
            let logger = trace.clone();
            process::on_uncaught_exception(move |uncaught, _| logger.log(uncaught));
            let mut writers = Vec::new();
            for name in ["first", "second"] {
                let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
                let mut reader = UnixStream::from_std(reader).unwrap();
                writers.push(writer);
                let trace = trace.clone();
                spawn(async move {
                    reader.read_exact(&mut [0]).await.unwrap();
                    trace.log(name);
                    next_tick(move || throw(format!("tick-{name}")));
                    let after = trace.clone();
                    call(async move { after.log(format_args!("micro-{name}")) });
                    set_immediate(trace.call("immediate"));
                })
                .detach();
            }
            // Both wait by then, and become readable in one poll phase.
            set_immediate(move || {
                for writer in &mut writers {
                    writer.write_all(b"x").unwrap();
                }
                std::mem::forget(writers);
            });
        }
    });
    let expected =
        "first micro-first tick-first second micro-second tick-second immediate immediate";
    assert_eq!((&*trace, code), (&*format!("{expected} exit-0"), 0));
}
