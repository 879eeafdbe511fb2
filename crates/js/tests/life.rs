//! Limits, the end of programs, and what an engine leaves behind.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use phaseloop_js::{Args, Engine, Error};
use phaseloop_node::process;

fn exit_code(source: &'static str) -> (i32, String) {
    let lines = Rc::new(RefCell::new(String::new()));
    let output = lines.clone();
    let exit = phaseloop_node::run(async move {
        let console = move |is_error: bool, text: &str| {
            if !is_error {
                output.borrow_mut().push_str(text);
            }
        };
        let engine = Engine::builder().console(console).build().unwrap();
        let kept = engine.clone();
        process::on_exit(move |_| drop(kept.clone()));
        if let Err(error) = engine.run("exit.js", source) {
            phaseloop_node::throw(error);
        }
    });
    let code = exit.code();
    (code, lines.take())
}

// J17: neither `catch` nor `finally` runs after `process.exit`.
#[test]
fn an_exit_ends_javascript_from_everywhere() {
    let last = "process.on('exit', (c) => console.log('exit', c));\n";
    for (place, source) in [
        ("main", "process.exit(3)"),
        (
            "finally",
            "try { process.exit(3); } finally { console.log('no'); }",
        ),
        (
            "catch",
            "try { process.exit(3); } catch { console.log('no'); }",
        ),
        (
            "timer",
            "setTimeout(() => { try { process.exit(3); } finally { console.log('no'); } }, 1)",
        ),
        ("tick", "process.nextTick(() => process.exit(3))"),
        (
            "job",
            "Promise.resolve().then(() => { process.exit(3); }).finally(() => console.log('no'))",
        ),
        ("microtask", "queueMicrotask(() => process.exit(3))"),
        (
            "listener",
            "const e = new (require('events'))(); e.on('x', () => process.exit(3)); e.emit('x'); console.log('no')",
        ),
        ("code", "process.exitCode = 3"),
    ] {
        let source = format!("{last}{source}");
        let (code, lines) = exit_code(Box::leak(source.into_boxed_str()));
        assert_eq!((code, lines.as_str()), (3, "exit 3\n"), "{place}");
    }
}

// J11, J12.
#[test]
fn uncaught_errors_have_the_codes_of_node() {
    for (source, expected) in [
        ("setTimeout(() => { throw new Error('a'); }, 1)", 1),
        ("throw new Error('a')", 1),
        ("Promise.reject(new Error('a'))", 1),
        (
            "process.on('uncaughtException', () => {}); setTimeout(() => { throw 5; }, 1)",
            0,
        ),
        (
            "process.on('uncaughtException', () => { throw 6; }); setTimeout(() => { throw 5; }, 1)",
            7,
        ),
        (
            "process.on('unhandledRejection', () => {}); Promise.reject(5)",
            0,
        ),
    ] {
        assert_eq!(exit_code(source).0, expected, "{source}");
    }
}

// J18.
#[test]
fn an_endless_script_is_ended_and_the_loop_goes_on() {
    let exit = phaseloop_node::run(async {
        let engine = Engine::builder()
            .time_limit(Duration::from_millis(10))
            .build()
            .unwrap();
        let reported = Rc::new(Cell::new(0));
        let count = reported.clone();
        process::on_uncaught_exception(move |reason, _| {
            let error = reason
                .downcast_ref::<Error>()
                .expect("it is one of JavaScript");
            assert!(error.is_interrupted());
            count.set(count.get() + 1);
        });
        let endless =
            "try { for (;;); } catch { globalThis.caught = 1; } finally { globalThis.caught = 2; }";
        for _ in 0..20 {
            engine
                .run("timer.js", &format!("setTimeout(() => {{ {endless} }}, 1)"))
                .unwrap();
        }
        engine
            .run(
                "job.js",
                &format!("Promise.resolve().then(() => {{ {endless} }})"),
            )
            .unwrap();
        while reported.get() < 21 {
            phaseloop_node::sleep(5).await.unwrap();
        }
        let seen = engine.run("after.js", "typeof caught").unwrap();
        assert_eq!(seen.to::<String>().unwrap(), "undefined");
        assert!(
            engine
                .run("direct.js", endless)
                .unwrap_err()
                .is_interrupted()
        );
    });
    assert_eq!(exit.code(), 0);
}

// J19, J20.
#[test]
fn memory_and_stack_are_limited_and_the_engine_goes_on() {
    let exit = phaseloop_node::run(async {
        let engine = Engine::builder()
            .memory_limit(16 << 20)
            .stack_limit(256 << 10)
            .build()
            .unwrap();
        for _ in 0..20 {
            let full = engine.run(
                "full.js",
                "(() => { const all = []; for (;;) all.push(new Array(1000).fill(1)); })()",
            );
            let full = full.unwrap_err();
            assert!(full.is_out_of_memory(), "{full}");
            let caught = "let text; try { const all = []; for (;;) all.push('x'.repeat(1e6) + all.length); } catch (e) { text = e.message; } text";
            let caught = engine.run(
                "caught.js",
                &format!(
                    "(() => {{ {} return text; }})()",
                    caught.trim_end_matches(" text")
                ),
            );
            assert_eq!(caught.unwrap().to::<String>().unwrap(), "out of memory");
            let deep = engine.run("deep.js", "(function f() { return f() + 1; })()");
            assert_eq!(deep.unwrap_err().name(), "RangeError");
        }
        assert_eq!(
            engine
                .run("after.js", "1 + 1")
                .unwrap()
                .to::<f64>()
                .unwrap(),
            2.0
        );
    });
    assert_eq!(exit.code(), 0);
}

// J19: whatever was refused last, there is room for the error.
#[test]
fn a_full_heap_always_has_room_for_its_error() {
    let exit = phaseloop_node::run(async {
        for size in 0..8 {
            let limit = (2 << 20) + 56 * size;
            let engine = Engine::builder().memory_limit(limit).build().unwrap();
            let source =
                format!("(() => {{ let all = null; for (;;) all = [all, {{ n: {size} }}]; }})()");
            let error = engine.run("full.js", &source).unwrap_err();
            assert!(error.is_out_of_memory(), "{limit}: {error}");
            assert!(engine.run("after.js", "1").is_ok());
        }
    });
    assert_eq!(exit.code(), 0);
}

// J16: a panic of a function is uncaught, and JavaScript does not see it.
#[test]
fn a_panic_of_a_function_leaves_the_engine_usable() {
    let exit = phaseloop_node::run(async {
        let engine = Engine::new().unwrap();
        let panic = |_: Args| -> Result<(), Error> { panic!("at fault") };
        engine.function("panic", panic).unwrap();
        let reported = Rc::new(RefCell::new(String::new()));
        let text = reported.clone();
        process::on_uncaught_exception(move |reason, _| *text.borrow_mut() = reason.to_string());
        let source = "setTimeout(() => { try { require('rust:app').panic(); } catch { globalThis.seen = 1; } }, 1)";
        engine.run("panic.js", source).unwrap();
        phaseloop_node::sleep(10).await.unwrap();
        assert_eq!(*reported.borrow(), "at fault");
        let seen = engine.run("after.js", "typeof seen").unwrap();
        assert_eq!(seen.to::<String>().unwrap(), "undefined");
    });
    assert_eq!(exit.code(), 0);
}

// J14, J15.
#[test]
fn errors_have_their_lines_and_their_classes() {
    let exit = phaseloop_node::run(async {
        let engine = Engine::new().unwrap();
        let fail = |_: Args| Err::<(), _>(Error::new("RangeError", "too far"));
        engine.function("fail", fail).unwrap();
        let source = "let is; try { require('rust:app').fail(); } catch (e) { is = e instanceof RangeError; } is";
        assert!(engine.run("a.js", source).unwrap().to::<bool>().unwrap());
        let folder = std::env::temp_dir().join(format!("phaseloop-js-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("line.js");
        std::fs::write(&file, "null.x;\n").unwrap();
        let error = engine.run_file(&file).unwrap_err();
        assert!(error.stack().contains("line.js:1:"), "{}", error.stack());
        assert!(!error.stack().contains("phaseloop:"), "{}", error.stack());
        std::fs::remove_dir_all(folder).unwrap();
    });
    assert_eq!(exit.code(), 0);
}

// J22, J25: engines are dropped with work pending, and leave nothing to the loop.
#[test]
fn a_dropped_engine_leaves_nothing() {
    let exit = phaseloop_node::run(async {
        for _ in 0..200 {
            let engine = Engine::new().unwrap();
            let source = "setInterval(() => {}, 1e6); setImmediate(() => {}); process.on('exit', () => {});\n\
                 process.nextTick(() => {}); new Promise(() => {}).then(() => {}); Promise.resolve().then(() => {});";
            engine.run("pending.js", source).unwrap();
        }
        phaseloop_node::sleep(1).await.unwrap();
    });
    assert_eq!(exit.code(), 0, "no interval keeps the loop");
}

// J23: what has fired, was cleared or settled releases its value.
#[test]
fn what_is_over_is_released() {
    let exit = phaseloop_node::run(async {
        let engine = Engine::new().unwrap();
        let source = "for (let i = 0; i < 1000; i++) { clearTimeout(setTimeout(() => {}, 1e6)); setTimeout(() => {}, 1);\n\
             clearImmediate(setImmediate(() => {})); setImmediate(() => {}); process.nextTick(() => {}); queueMicrotask(() => {}); }";
        engine.run("warm.js", "setTimeout(() => {}, 1)").unwrap();
        phaseloop_node::sleep(5).await.unwrap();
        let before = engine.held();
        engine.run("many.js", source).unwrap();
        phaseloop_node::sleep(20).await.unwrap();
        assert_eq!(engine.held(), before);
    });
    assert_eq!(exit.code(), 0);
}
