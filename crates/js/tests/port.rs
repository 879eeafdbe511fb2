//! A program of five files: each of four modules in JavaScript or in Rust, and the main file as a
//! file or as a script that Rust runs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use phaseloop_js::{Args, Engine, Error, Module, Value};
use phaseloop_node::Promise;

type Lines = Rc<RefCell<String>>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/port")
}

fn log(module: &mut Module, lines: &Lines) {
    let lines = lines.clone();
    module.function("line", move |args: Args| {
        let line = args.get::<String>(0)?;
        lines.borrow_mut().push_str(&format!("{line}\n"));
        Ok(())
    });
}

fn store(module: &mut Module) {
    let items = Rc::new(RefCell::new(BTreeMap::<String, Value>::new()));
    let put = items.clone();
    module.async_function("put", async move |args: Args| {
        let value = args.get::<Value>(1)?;
        put.borrow_mut().insert(args.get(0)?, value.clone());
        Ok(value)
    });
    module.async_function("take", async move |args: Args| {
        Promise::resolved(()).await.expect("it is resolved");
        Ok(items.borrow().get(&args.get::<String>(0)?).cloned())
    });
}

fn clock(module: &mut Module) {
    module.async_function("later", async |args: Args| {
        phaseloop_node::sleep(args.get::<f64>(0)?).await.unwrap();
        Ok(())
    });
}

fn work(module: &mut Module) {
    module.async_function("run", async |args: Args| {
        for _ in 0..2 {
            Promise::resolved(()).await.expect("it is resolved");
        }
        Ok(format!("ran-{}", args.get::<String>(0)?))
    });
    module.async_function("fail", async |_: Args| {
        Promise::resolved(()).await.expect("it is resolved");
        Err::<(), _>(Error::new("TypeError", "failed"))
    });
}

/// Runs the program; bit `n` of `mixture` is set if file `n` is Rust.
fn run(mixture: usize) -> String {
    let lines = Lines::default();
    let output = lines.clone();
    // On the paused clock: a loaded machine would let the timer pass the immediate, as on Node.
    let paused = phaseloop::Builder::new().start_paused(true).build();
    let exit = phaseloop_node::run_on(&mut paused.unwrap(), async move {
        let console = output.clone();
        let engine = Engine::builder()
            .root(folder())
            .console(move |_: bool, text: &str| console.borrow_mut().push_str(text))
            .build()
            .unwrap();
        let is_rust = |bit: usize| mixture >> bit & 1 == 1;
        if is_rust(0) {
            engine
                .module("./log", |module| log(module, &output))
                .unwrap();
        }
        for (bit, name, fill) in [
            (1, "./store", store as fn(&mut Module)),
            (2, "./clock", clock),
            (3, "./work", work),
        ] {
            if is_rust(bit) {
                engine.module(name, fill).unwrap();
            }
        }
        let main = folder().join("main.js");
        if is_rust(4) {
            let source = std::fs::read_to_string(main).unwrap();
            engine.run("main.js", &source).unwrap();
        } else {
            engine.run_file(main).unwrap();
        }
        while !output.borrow().contains("later-5") {
            phaseloop_node::sleep(1).await.unwrap();
        }
    });
    assert_eq!(exit.code(), 0);
    lines.take()
}

#[test]
fn all_mixtures_of_five_files_print_the_same() {
    let expected = std::fs::read_to_string(folder().join("node.expected")).unwrap();
    for mixture in 0..32 {
        assert_eq!(run(mixture), expected, "mixture {mixture:05b}");
    }
}
