//! What a wait costs, in ticks: `tests/waiting/main.js` with its module in JavaScript and in Rust,
//! beside what Node prints of the same files.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use phaseloop_js::{Args, Engine, Error, Module, Value};
use phaseloop_node::{Promise, queue_microtask};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/waiting")
}

fn outcome(fails: bool) -> Result<&'static str, Error> {
    match fails {
        true => Err(Error::new("TypeError", "no")),
        false => Ok("yes"),
    }
}

/// The functions of `app.js` in Rust.
fn app(module: &mut Module) {
    module.async_function("waits", async |args: Args| {
        for _ in 0..args.get::<usize>(0)? {
            Promise::resolved(()).await.unwrap();
        }
        outcome(args.get(1)?)
    });
    module.async_function("waitsFor", async |args: Args| {
        let (promise, mut value) = (args.get::<Value>(0)?, None);
        for _ in 0..args.get::<usize>(1)? {
            value = Some(promise.clone().into_promise().await?);
        }
        Ok(value)
    });
    module.function("settled", |args: Args| {
        Ok(match outcome(args.get(0)?) {
            Ok(value) => Promise::resolved(value),
            Err(error) => Promise::rejected(error),
        })
    });
    module.function("later", |args: Args| {
        let fails = args.get(0)?;
        Ok(Promise::new(|deferred| {
            queue_microtask(move || match outcome(fails) {
                Ok(value) => deferred.resolve(value),
                Err(error) => deferred.reject(error),
            });
        }))
    });
}

fn run(fill: Option<fn(&mut Module)>) -> String {
    let lines = Rc::new(RefCell::new(String::new()));
    let output = lines.clone();
    let exit = phaseloop_node::run(async move {
        let engine = Engine::builder()
            .root(folder())
            .console(move |_: bool, text: &str| output.borrow_mut().push_str(text))
            .build()
            .unwrap();
        if let Some(fill) = fill {
            engine.module("./app", fill).unwrap();
        }
        let kept = engine.clone();
        phaseloop_node::process::on_exit(move |_| drop(kept.clone()));
        engine.run_file(folder().join("main.js")).unwrap();
    });
    assert_eq!(exit.code(), 0);
    lines.take()
}

// J8, J9, J10: 0 to 5 waits, fulfilled and rejected, from both sides.
#[test]
fn a_wait_for_rust_and_a_wait_of_rust_take_the_ticks_of_node() {
    let expected = std::fs::read_to_string(folder().join("node.expected")).unwrap();
    assert_eq!(expected.lines().count(), 54);
    assert_eq!(run(None), expected, "in JavaScript");
    assert_eq!(run(Some(app)), expected, "in Rust");
}
