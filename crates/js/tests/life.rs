//! What an engine leaves behind: nothing. Under valgrind and AddressSanitizer the same tests look for
//! leaks; see `.ci/run`.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use phaseloop_js::{Args, Engine, Error, Value};
use phaseloop_node::{process, queue_microtask, set_timeout, sleep};

#[allow(dead_code, reason = "only bytes are counted here")]
#[path = "../../../tests/util/memory.rs"]
mod memory;

/// One test at a time: the bytes are those of the process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many engines; valgrind is slow, and the whole count is for a machine with time.
fn engines() -> usize {
    let count = std::env::var("PHASELOOP_JS_ENGINES").ok();
    count.map_or(120, |it| it.parse().unwrap())
}

/// Work of every kind that is pending.
const PENDING: &str = "setInterval(() => {}, 1e6); setTimeout(() => {}, 1e6); setImmediate(() => {}); process.on('exit', () => {});\n\
     process.on('uncaughtException', () => {}); process.nextTick(() => {}); queueMicrotask(() => {});\n\
     new Promise(() => {}).then(() => {}); Promise.resolve().then(() => {}); Promise.reject(1);\n\
     const e = new (require('events'))(); e.on('x', () => e); e.emit('x'); globalThis.self = { e, self: globalThis };\n\
     const { later, held } = require('rust:app'); later().then(() => e); held(() => e); AbortSignal.timeout(1e6).onabort = () => e;\n";

/// An engine with work pending. Its heap is of the allocator that counts.
fn engine() -> Engine {
    let engine = Engine::builder().memory_limit(64 << 20).build().unwrap();
    // A promise of Rust that is never settled, and a value that Rust keeps in a cycle.
    let later = async |_: Args| {
        std::future::pending::<()>().await;
        Ok(())
    };
    engine.async_function("later", later).unwrap();
    let kept = Rc::new(RefCell::new(Vec::<Value>::new()));
    let held = move |args: Args| {
        kept.borrow_mut().push(args.get::<Value>(0)?);
        Ok(())
    };
    engine.function("held", held).unwrap();
    engine.run("pending.js", PENDING).unwrap();
    engine
}

/// When the last handle of an engine is dropped.
#[derive(Clone, Copy, Debug)]
enum Dropped {
    Early,
    InsideOfItself,
    WithTheLoop,
    AfterTheLoop,
}

const ALL: [Dropped; 4] = [
    Dropped::Early,
    Dropped::InsideOfItself,
    Dropped::WithTheLoop,
    Dropped::AfterTheLoop,
];

fn life(dropped: Dropped) {
    let exit = phaseloop_node::run(async move {
        process::on_unhandled_rejection(|_| ());
        let engine = engine();
        match dropped {
            Dropped::Early => return None,
            Dropped::InsideOfItself => {
                let slot = Rc::new(RefCell::new(None));
                let taken = slot.clone();
                let drop_it = move |_: Args| -> Result<(), Error> {
                    drop(taken.borrow_mut().take());
                    Ok(())
                };
                engine.function("drop", drop_it).unwrap();
                let source = "setTimeout(() => { require('rust:app').drop(); globalThis.x = [1].map(() => e); }, 1)";
                engine.run("drop.js", source).unwrap();
                *slot.borrow_mut() = Some(engine);
                sleep(3).await.unwrap();
                assert!(slot.borrow().is_none(), "it was dropped by its own timer");
            }
            Dropped::WithTheLoop => {
                process::on_exit(move |_| drop(engine.clone()));
                set_timeout(1, || process::exit(0));
            }
            Dropped::AfterTheLoop => {
                set_timeout(1, || ());
                queue_microtask(|| ());
                engine.close();
                return Some(engine);
            }
        }
        None
    });
    assert_eq!(exit.code(), 0, "{dropped:?}");
    // The last handle, if the future has returned it, goes after its loop.
    drop(exit);
}

// J22, J25: engines end before, inside and after the run of their loop, with work pending.
#[test]
fn many_engines_leave_what_ten_leave() {
    let _alone = alone();
    let all = |count: usize| (0..count).for_each(|at| life(ALL[at % ALL.len()]));
    all(12);
    let before = memory::live();
    all(engines());
    let after = memory::live();
    let more = after.saturating_sub(before);
    assert!(more * 20 <= before, "{before} bytes, then {after}");
}

// J22: an engine on a loop with others leaves nothing to the loop.
#[test]
fn a_dropped_engine_leaves_nothing_to_its_loop() {
    let _alone = alone();
    let exit = phaseloop_node::run(async {
        process::on_unhandled_rejection(|_| ());
        for _ in 0..20 {
            drop(engine());
        }
        sleep(1).await.unwrap();
    });
    assert_eq!(exit.code(), 0, "no interval keeps the loop");
}

// J22: what Rust still has of an engine that is gone is an error, not a fault.
#[test]
fn a_value_of_an_engine_that_is_gone_is_an_error() {
    let _alone = alone();
    let exit = phaseloop_node::run(async {
        let engine = Engine::new().unwrap();
        let function = engine.run("a.js", "() => 1").unwrap();
        let promise = engine.run("b.js", "new Promise(() => {})").unwrap();
        let error = engine.run("c.js", "throw { a: 1 }").unwrap_err();
        drop(engine);
        assert_eq!(function.call(()).unwrap_err().name(), "Error");
        assert!(function.get("length").is_err());
        assert!(promise.into_promise().await.is_err());
        assert!(error.value().unwrap().get("a").is_err());
    });
    assert_eq!(exit.code(), 0);
}

// J23: what has fired, was cleared or settled releases its value.
#[test]
fn what_is_over_is_released() {
    let _alone = alone();
    let exit = phaseloop_node::run(async {
        let engine = Engine::new().unwrap();
        let source = "for (let i = 0; i < 1000; i++) { clearTimeout(setTimeout(() => {}, 1e6)); setTimeout(() => {}, 1);\n\
             clearImmediate(setImmediate(() => {})); new Promise((f) => setTimeout(f, 1));\n\
             const f = () => {}; process.on('warning', f); process.off('warning', f); require('rust:app').now().then(() => {}); setImmediate(() => {}); process.nextTick(() => {}); queueMicrotask(() => {}); }";
        engine.async_function("now", async |_| Ok(1.0)).unwrap();
        engine.run("warm.js", "setTimeout(() => {}, 1)").unwrap();
        sleep(5).await.unwrap();
        let mut before = (0, 0);
        for round in 0..4 {
            engine.run("many.js", source).unwrap();
            sleep(20).await.unwrap();
            let now = (engine.held(), engine.heap_used());
            if round > 0 {
                assert_eq!(now.0, before.0, "values that Rust keeps");
                assert!(
                    now.1 < before.1 + 20_000,
                    "{before:?} {now:?}: bytes of the heap"
                );
            }
            before = now;
        }
    });
    assert_eq!(exit.code(), 0);
}

/// Runs `source` a few times, then many times, and returns the values that Rust keeps after both.
fn held_after(source: &str) -> (usize, usize) {
    let source = source.to_owned();
    let exit = phaseloop_node::run(async move {
        let engine = Engine::new().unwrap();
        let script = format!("(async () => {{ for (let i = 0; i < n; i++) {{ {source} }} }})()");
        let mut held = Vec::new();
        for count in [5, 60] {
            engine
                .run("n.js", &format!("globalThis.n = {count}"))
                .unwrap();
            let promise = engine.run("many.js", &script).unwrap().into_promise();
            promise.await.unwrap();
            sleep(30).await.unwrap();
            held.push(engine.held());
        }
        (held[0], held[1])
    });
    exit.into_output().unwrap()
}

// J23: streams that are closed, sockets, servers and messages release their values.
#[test]
fn closed_streams_release_their_values() {
    let _alone = alone();
    let streams = "const { Readable, Transform, Writable } = require('stream');
        const sink = new Writable({ objectMode: true, write(x, e, f) { f(); } });
        const twice = new Transform({ objectMode: true, transform(x, e, f) { f(null, x); } });
        await require('stream/promises').pipeline(Readable.from([1, 2, 3]), twice, sink);
        for await (const x of Readable.from(['a', 'b'])) ;";
    let sockets = "await new Promise((done) => {
            const server = require('net').createServer((s) => { s.on('data', (d) => s.end(d)); });
            server.listen(0, '127.0.0.1', () => {
                const c = require('net').connect(server.address().port, '127.0.0.1');
                c.on('data', () => {});
                c.on('close', () => server.close(done));
                c.write('x');
            });
        });";
    let messages = "await new Promise((done) => {
            const http = require('http');
            const server = http.createServer((q, s) => { q.resume(); s.end('y'); });
            server.listen(0, '127.0.0.1', () => {
                http.get({ port: server.address().port, host: '127.0.0.1', agent: false }, (s) => {
                    s.resume();
                    s.on('close', () => server.close(done));
                });
            });
        });";
    for source in [streams, sockets, messages] {
        let (few, many) = held_after(source);
        assert_eq!(few, many, "{source}");
    }
}

// J23, J26: the frames of handlers go with them.
#[test]
fn frames_release_their_stores() {
    let _alone = alone();
    let (few, many) = held_after(
        "const { AsyncLocalStorage } = require('async_hooks');
         const storage = globalThis.storage ??= new AsyncLocalStorage();
         await storage.run({ i }, async () => { await null; await new Promise((f) => setImmediate(f)); });",
    );
    assert_eq!(few, many);
}
