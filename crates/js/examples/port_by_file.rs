//! A program of five JavaScript files, two of which are Rust by now: `cargo run -p phaseloop-js
//! --example port_by_file`. The others require them as before, and the output stays the same.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use phaseloop_js::{Engine, Error, Value};
use phaseloop_node::{Exit, Promise, run, sleep};

fn main() -> Exit<Result<(), Error>> {
    run(async {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/port");
        let engine = Engine::builder().root(&folder).build()?;
        // In the place of store.js.
        let items = std::rc::Rc::new(RefCell::new(BTreeMap::<String, Value>::new()));
        engine.module("./store", |store| {
            let put = items.clone();
            store.async_function("put", async move |args| {
                let value = args.get::<Value>(1)?;
                put.borrow_mut().insert(args.get(0)?, value.clone());
                Ok(value)
            });
            store.async_function("take", async move |args| {
                let _ = Promise::resolved(()).await;
                Ok(items.borrow().get(&args.get::<String>(0)?).cloned())
            });
        })?;
        // In the place of clock.js.
        engine.module("./clock", |clock| {
            clock.async_function("later", async |args| {
                let _ = sleep(args.get::<f64>(0)?).await;
                Ok(())
            });
        })?;
        engine.run_file(folder.join("main.js"))?;
        // The engine ends with this future.
        let _ = sleep(100).await;
        Ok(())
    })
}
