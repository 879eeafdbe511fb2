//! Limits of time, memory and stack: what they end, and that the engine goes on.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use phaseloop_js::{Args, Engine, Error, Files};
use phaseloop_node::process;

const ENDLESS: &str =
    "try { for (;;); } catch { globalThis.caught = 1; } finally { globalThis.caught = 2; }";

/// Counts the reports of interrupted scripts on the current loop.
fn interruptions() -> Rc<Cell<usize>> {
    let reported = Rc::new(Cell::new(0));
    let count = reported.clone();
    process::on_uncaught_exception(move |reason, _| {
        let error = reason.downcast_ref::<Error>();
        assert!(error.expect("it is one of JavaScript").is_interrupted());
        count.set(count.get() + 1);
    });
    reported
}

/// Runs a short script; a loaded machine may take longer for it than the limit.
fn number(engine: &Engine, source: &str) -> f64 {
    let mut runs = (0..100).map(|_| engine.run("short.js", source));
    let value = runs.find_map(Result::ok).expect("one of the runs is fast");
    value.to().unwrap()
}

// J18: in timers, immediates, ticks, microtasks and jobs.
#[test]
fn a_thousand_endless_callbacks_are_ended_and_the_loop_goes_on() {
    let exit = phaseloop_node::run(async {
        let limit = Duration::from_millis(1);
        let engine = Engine::builder().time_limit(limit).build().unwrap();
        let reported = interruptions();
        for start in [
            "setTimeout(f, 1)",
            "setImmediate(f)",
            "process.nextTick(f)",
            "queueMicrotask(f)",
            "Promise.resolve().then(f)",
        ] {
            let before = reported.get();
            let source = format!("(() => {{ const f = () => {{ {ENDLESS} }}; {start}; }})()");
            for _ in 0..200 {
                while engine.run("endless.js", &source).is_err() {}
            }
            while reported.get() < before + 200 {
                phaseloop_node::sleep(1).await.unwrap();
            }
            assert_eq!(reported.get(), before + 200, "{start}: each once");
        }
        assert_eq!(
            number(&engine, "Number(typeof caught === 'undefined')"),
            1.0
        );
        let direct = engine.run("direct.js", ENDLESS).unwrap_err();
        assert!(direct.is_interrupted());
        assert_eq!(direct.code(), Some("ERR_SCRIPT_EXECUTION_TIMEOUT"));
        // Normal work of each kind.
        let work = "globalThis.done = 0; setTimeout(() => { done += 1; }, 1); setImmediate(() => { done += 2; });\n\
             process.nextTick(() => { done += 4; }); Promise.resolve().then(() => { done += 8; });";
        let mut tries = 0;
        while number(&engine, "globalThis.done ?? 0") != 15.0 {
            tries += 1;
            assert!(tries < 100, "normal work is done");
            let _ = engine.run("work.js", work);
            phaseloop_node::sleep(5).await.unwrap();
        }
    });
    assert_eq!(exit.code(), 0);
}

// J18: a run of jobs has one limit, however many jobs it has.
#[test]
fn an_endless_chain_of_jobs_is_ended() {
    for source in [
        "(async () => { for (;;) await null; })()",
        "(function f() { Promise.resolve().then(f); })()",
    ] {
        let exit = phaseloop_node::run(async move {
            let limit = Duration::from_millis(5);
            let engine = Engine::builder().time_limit(limit).build().unwrap();
            let reported = interruptions();
            while engine.run("chain.js", source).is_err() {}
            while reported.get() == 0 {
                phaseloop_node::sleep(1).await.unwrap();
            }
            assert_eq!(number(&engine, "1 + 1"), 2.0);
        });
        assert_eq!(exit.code(), 0, "{source}");
    }
}

/// Fills the heap and keeps it full, in `globalThis.all`.
const FILL: &str = "globalThis.all = []; try { for (;;) all.push(new Array(100).fill(1)); } catch {}\n\
     try { for (;;) all.push({}); } catch {}\n";

fn limited() -> Engine {
    let engine = Engine::builder()
        .memory_limit(4 << 20)
        .stack_limit(256 << 10);
    engine.build().unwrap()
}

/// Releases what fills the heap; the engine works after it.
fn assert_goes_on(engine: &Engine, place: &str) {
    let source = "globalThis.all = null; JSON.stringify([...Array(1000).keys()]).length";
    let length = engine.run("after.js", source);
    assert_eq!(length.unwrap().to::<f64>().unwrap(), 3891.0, "{place}");
}

// J19: inside a native, a job, the tracker of rejections and what Rust asks for.
#[test]
fn a_full_heap_ends_nothing_but_the_script() {
    for (place, source, expected) in [
        (
            "a text of a native",
            "let text; try { require('rust:app').text(); } catch (e) { text = e.message; } text",
            Some("out of memory"),
        ),
        (
            "bytes of a native",
            "let text; try { require('rust:app').bytes(); } catch (e) { text = e.message; } text",
            Some("out of memory"),
        ),
        (
            "a native with a full heap",
            "FILL for (let i = 0; i < 1000; i++) try { all.push(setTimeout(() => {}, 1)); } catch {} 'over'",
            Some("over"),
        ),
        (
            "a tick with a full heap",
            "FILL for (let i = 0; i < 1000; i++) try { process.nextTick(() => { all.push({}); }); } catch {} 'over'",
            Some("over"),
        ),
        (
            "a job",
            "Promise.resolve().then(() => { const all = []; for (;;) all.push(new Array(1000).fill(1)); }); 'over'",
            Some("over"),
        ),
        (
            "a job with a full heap",
            "FILL for (let i = 0; i < 1000; i++) try { Promise.resolve().then(() => { all.push({}); }); } catch {} 'over'",
            Some("over"),
        ),
        (
            "the tracker",
            "FILL for (let i = 0; i < 1000; i++) try { Promise.reject(new Error(i)); } catch {} 'over'",
            Some("over"),
        ),
        (
            "the tracker, a rejection that is handled later",
            "FILL const mine = []; for (let i = 0; i < 100; i++) try { mine.push(Promise.reject(i)); } catch {}\n\
             for (const it of mine) try { it.catch(() => {}); } catch {} 'over'",
            Some("over"),
        ),
        (
            "an error on its way to Rust",
            "FILL throw new Error('x'.repeat(1000))",
            None,
        ),
    ] {
        let source = source.replace("FILL ", FILL);
        let exit = phaseloop_node::run(async move {
            let engine = limited();
            engine
                .function("text", |_| Ok("x".repeat(64 << 20)))
                .unwrap();
            engine
                .function("bytes", |_| Ok::<&[u8], Error>(&[0; 64 << 20]))
                .unwrap();
            process::on_uncaught_exception(|_, _| ());
            process::on_unhandled_rejection(|_| ());
            let result = engine.run(
                "full.js",
                &format!("(() => {{ {} }})()", returning(&source)),
            );
            match (result, expected) {
                (Ok(value), Some(expected)) => {
                    assert_eq!(value.to::<String>().unwrap(), expected, "{place}");
                }
                (Err(_), None) => (),
                (result, _) => panic!("{place}: {result:?}"),
            }
            phaseloop_node::sleep(10).await.unwrap();
            assert_goes_on(&engine, place);
        });
        assert_eq!(exit.code(), 0, "{place}");
    }
}

/// Makes the last word of a script its value.
fn returning(source: &str) -> String {
    match source.rsplit_once(' ') {
        Some((rest, last)) if last == "text" || last == "'over'" => {
            format!("{rest} return {last};")
        }
        _ => source.to_owned(),
    }
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

// J20: also where JavaScript and Rust call each other.
#[test]
fn a_deep_stack_is_an_error_that_can_be_caught() {
    let exit = phaseloop_node::run(async {
        let engine = limited();
        let again = |args: Args| args.get::<phaseloop_js::Value>(0)?.call(());
        engine.function("again", again).unwrap();
        for source in [
            "(function f() { return f() + 1; })()",
            "(function f() { return require('rust:app').again(f); })()",
            "const e = new (require('events'))(); e.on('x', () => e.emit('x')); e.emit('x')",
        ] {
            for _ in 0..20 {
                let error = engine
                    .run("deep.js", &format!("{{ {source} }}"))
                    .unwrap_err();
                assert_eq!(error.name(), "RangeError", "{source}");
            }
            let caught =
                format!("(() => {{ try {{ {source} }} catch (e) {{ return e.name; }} }})()");
            let caught = engine.run("caught.js", &caught).unwrap();
            assert_eq!(caught.to::<String>().unwrap(), "RangeError", "{source}");
        }
    });
    assert_eq!(exit.code(), 0);
}

// J21.
#[test]
fn a_long_native_is_not_interrupted() {
    let exit = phaseloop_node::run(async {
        let limit = Duration::from_millis(5);
        let engine = Engine::builder().time_limit(limit).build().unwrap();
        let ended = Rc::new(RefCell::new(0));
        let count = ended.clone();
        let slow = move |_: Args| {
            std::thread::sleep(Duration::from_millis(30));
            *count.borrow_mut() += 1;
            Ok(7.0)
        };
        engine.function("slow", slow).unwrap();
        assert_eq!(number(&engine, "require('rust:app').slow()"), 7.0);
        assert!(*ended.borrow() > 0);
    });
    assert_eq!(exit.code(), 0);
}

// J21: an engine without files refuses what would block.
#[test]
fn files_that_are_not_allowed_are_refused() {
    let exit = phaseloop_node::run(async {
        let engine = Engine::builder().files(Files::None).build().unwrap();
        for call in [
            "readFileSync('/etc/passwd')",
            "rmSync('/tmp/x')",
            "mkdtempSync('/tmp/x')",
            "writeFileSync('/tmp/x', '')",
            "statSync('/etc/passwd')",
            "renameSync('/tmp/x', '/tmp/y')",
            "stat('/etc/passwd', () => {})",
            "readFile('/etc/passwd', () => {})",
            "open('/etc/passwd', () => {})",
            "opendir('/etc', () => {})",
            "createReadStream('/etc/passwd')",
            "createWriteStream('/tmp/x')",
            "watch('/etc')",
            "watchFile('/etc/passwd', () => {})",
        ] {
            let error = engine.run("a.js", &format!("require('fs').{call}"));
            assert_eq!(
                error.unwrap_err().code(),
                Some("ERR_ACCESS_DENIED"),
                "{call}"
            );
        }
        assert!(engine.run("a.js", "require('./file')").is_err());
    });
    assert_eq!(exit.code(), 0);
}

// J21: a script can neither name a path outside of its folder nor make a link to one.
#[cfg(unix)]
#[test]
fn a_folder_of_files_cannot_be_left() {
    let folder = std::env::temp_dir().join(format!("phaseloop-js-under-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let under = folder.clone();
    let exit = phaseloop_node::run(async move {
        let builder = Engine::builder().files(Files::Under(under.clone()));
        let engine = builder.build().unwrap();
        let at = |name: &str| under.join(name).to_string_lossy().into_owned();
        let (inner, link, up) = (at("file"), at("link"), at("../other"));
        let run = |call: String| engine.run("a.js", &format!("require('fs').{call}; 0"));
        run(format!("writeFileSync('{inner}', 'text')")).unwrap();
        run(format!("symlinkSync('file', '{link}')")).unwrap();
        for call in [
            format!("symlinkSync('/etc/passwd', '{link}2')"),
            format!("symlinkSync('../other', '{link}2')"),
            format!("symlink('/etc/passwd', '{link}2', () => {{}})"),
            format!("linkSync('/etc/passwd', '{link}2')"),
            format!("link('/etc/passwd', '{link}2', () => {{}})"),
            format!("copyFileSync('/etc/passwd', '{link}2')"),
            format!("copyFile('{inner}', '{up}', () => {{}})"),
            format!("renameSync('{inner}', '{up}')"),
            format!("rename('{up}', '{inner}', () => {{}})"),
        ] {
            let error = run(call.clone()).unwrap_err();
            assert_eq!(error.code(), Some("ERR_ACCESS_DENIED"), "{call}");
        }
        assert!(!under.join("link2").exists());
    });
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(exit.code(), 0);
}
