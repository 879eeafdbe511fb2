//! One order for the jobs of the engine and the microtasks of Rust, and what a wait costs.

use std::cell::RefCell;
use std::rc::Rc;

use phaseloop_js::{Engine, Error, Value};

type Lines = Rc<RefCell<Vec<String>>>;

/// An engine with `log`, `rust(name)`, which queues a microtask of Rust that logs, and the async
/// functions `waits0` to `waits5`.
fn engine(lines: &Lines) -> Engine {
    let engine = Engine::new().unwrap();
    let log = lines.clone();
    let push = move |args: phaseloop_js::Args| {
        log.borrow_mut().push(args.get::<String>(0)?);
        Ok(())
    };
    engine.function("log", push).unwrap();
    let log = lines.clone();
    let queue = move |args: phaseloop_js::Args| {
        let (name, log) = (args.get::<String>(0)?, log.clone());
        phaseloop_node::queue_microtask(move || log.borrow_mut().push(name));
        Ok(())
    };
    engine.function("rust", queue).unwrap();
    for count in 0..6 {
        let waits = async move |args: phaseloop_js::Args| {
            for _ in 0..count {
                phaseloop_node::Promise::resolved(()).await.unwrap();
            }
            match args.get::<bool>(0)? {
                true => Err(Error::new("TypeError", "no")),
                false => Ok("yes"),
            }
        };
        engine
            .async_function(&format!("waits{count}"), waits)
            .unwrap();
    }
    engine
}

fn run(source: &str) -> Vec<String> {
    let lines = Lines::default();
    let inner = lines.clone();
    let source = source.to_owned();
    let exit = phaseloop_node::run(async move {
        let engine = engine(&inner);
        let head = "const { log, rust, ...app } = require('rust:app');\n";
        engine.run("order.js", &format!("{head}{source}")).unwrap();
        phaseloop_node::sleep(5).await.unwrap();
    });
    assert_eq!(exit.code(), 0);
    Rc::try_unwrap(lines).unwrap().into_inner()
}

// J2.
#[test]
fn microtasks_of_both_languages_are_one_queue() {
    let lines = run("for (let i = 0; i < 8; i += 2) {\n\
         Promise.resolve().then(() => log(`${i}`));\n\
         rust(`${i + 1}`);\n}");
    assert_eq!(lines, ["0", "1", "2", "3", "4", "5", "6", "7"]);
}

/// A random program: microtasks of both kinds that queue others. The model is one FIFO.
fn random(seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    // Each entry: whether it is one of Rust, and the entry that queues it, if any.
    let count = 2 + next(49) as usize;
    let entries: Vec<(bool, Option<usize>)> = (0..count)
        .map(|at| {
            let by_other = at > 0 && next(3) == 0;
            (next(2) == 0, by_other.then(|| next(at as u64) as usize))
        })
        .collect();
    let queued_by = |by: Option<usize>| {
        let all = entries.iter().enumerate();
        all.filter(move |(_, entry)| entry.1 == by)
            .map(|(at, _)| at)
    };
    let mut source = String::from("const queue = (at) => {\n");
    source.push_str(
        "const run = () => { log(`${at}`); for (const it of program[at][1]) queue(it); };\n",
    );
    source.push_str("if (program[at][0]) call(run); else Promise.resolve().then(run); };\n");
    let list: Vec<_> = (0..count)
        .map(|at| {
            let queued: Vec<_> = queued_by(Some(at)).map(|it| it.to_string()).collect();
            format!("[{}, [{}]]", entries[at].0, queued.join(", "))
        })
        .collect();
    source.push_str(&format!("const program = [{}];\n", list.join(", ")));
    for at in queued_by(None) {
        source.push_str(&format!("queue({at});\n"));
    }
    let mut model: std::collections::VecDeque<_> = queued_by(None).collect();
    let mut expected = Vec::new();
    while let Some(at) = model.pop_front() {
        expected.push(at.to_string());
        model.extend(queued_by(Some(at)));
    }
    let lines = Lines::default();
    let (inner, program) = (lines.clone(), source.clone());
    let exit = phaseloop_node::run(async move {
        let engine = engine(&inner);
        let call = |args: phaseloop_js::Args| {
            let f = args.get::<Value>(0)?;
            phaseloop_node::queue_microtask(move || drop(f.call(()).unwrap()));
            Ok(())
        };
        engine.function("call", call).unwrap();
        let head = "const { log, call } = require('rust:app');\n";
        engine
            .run("random.js", &format!("{head}{program}"))
            .unwrap();
        phaseloop_node::sleep(1).await.unwrap();
    });
    assert_eq!(exit.code(), 0);
    assert_eq!(*lines.borrow(), expected, "seed {seed}\n{source}");
}

// J2.
#[test]
fn random_programs_of_both_languages_run_as_one_queue() {
    for seed in 1..=1000 {
        random(seed);
    }
}

// J6.
#[test]
fn two_engines_share_the_queue() {
    let lines = Lines::default();
    let inner = lines.clone();
    let exit = phaseloop_node::run(async move {
        let (first, second) = (engine(&inner), engine(&inner));
        for turn in 0..3 {
            for (name, engine) in [("a", &first), ("b", &second)] {
                let source = format!(
                    "Promise.resolve().then(() => require('rust:app').log('{name}{turn}'))"
                );
                engine.run("two.js", &source).unwrap();
            }
        }
        let value = first.run("value.js", "({})").unwrap();
        let f = second.run("f.js", "(x) => x").unwrap();
        assert_eq!(f.call((value,)).unwrap_err().name(), "TypeError");
        phaseloop_node::sleep(1).await.unwrap();
    });
    assert_eq!(exit.code(), 0);
    assert_eq!(*lines.borrow(), ["a0", "b0", "a1", "b1", "a2", "b2"]);
}

// J8: the same function in Rust and in JavaScript.
#[test]
fn a_wait_for_a_function_of_rust_costs_what_it_costs_in_javascript() {
    for count in 0..6 {
        for fails in [false, true] {
            let of = |function: &str| {
                run(&format!(
                    "const js = async (fails) => {{ for (let i = 0; i < {count}; i++) await null;\n\
                     if (fails) throw new TypeError('no'); return 'yes'; }};\n\
                     const rust_ = (fails) => app.waits{count}(fails);\n\
                     (async () => {{ try {{ log(await {function}({fails})); }} catch (e) {{ log(e.name); }} }})();\n\
                     let p = Promise.resolve();\n\
                     for (let i = 1; i < 12; i++) p = p.then(() => log(`${{i}}`));"
                ))
            };
            assert_eq!(of("rust_"), of("js"), "{count} {fails}");
        }
    }
}

// J9: a promise of JavaScript takes one tick in Rust.
#[test]
fn a_wait_of_rust_for_a_promise_costs_one_tick() {
    for (source, shown) in [
        ("Promise.resolve('v')", "v"),
        ("Promise.reject(new RangeError('v'))", "RangeError"),
    ] {
        let lines = Lines::default();
        let inner = lines.clone();
        let exit = phaseloop_node::run(async move {
            let engine = engine(&inner);
            let promise = engine.run("p.js", source).unwrap().into_promise();
            let log = inner.clone();
            phaseloop_node::call(async move {
                let text = match promise.await {
                    Ok(value) => value.to::<String>().unwrap(),
                    Err(error) => error.name().to_owned(),
                };
                log.borrow_mut().push(text);
            });
            let ticks = "let p = Promise.resolve(); const { log } = require('rust:app');\n\
                 for (let i = 1; i < 4; i++) p = p.then(() => log(`${i}`));";
            engine.run("ticks.js", ticks).unwrap();
            phaseloop_node::sleep(1).await.unwrap();
        });
        assert_eq!(exit.code(), 0);
        assert_eq!(*lines.borrow(), [shown, "1", "2", "3"]);
    }
}
