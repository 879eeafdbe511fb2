//! Runs a random program of the conformance corpus by its interpreter in JavaScript, for
//! `fuzz/check.sh`: `interpreter PROGRAM.json` prints the trace.

use std::path::Path;

use phaseloop_js::Engine;
use phaseloop_node::{Exit, process, run, throw};

fn main() -> Exit<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node/tests/conformance/fuzz");
    run(async move {
        let program = std::env::args().nth(1).unwrap_or_default();
        let argv = ["phaseloop-js", "interp.js", &program];
        let started = Engine::builder().argv(argv).build().and_then(|engine| {
            // The interpreter names it for pipes, which the program may not have.
            engine.module("net", |_| ())?;
            let kept = engine.clone();
            process::on_exit(move |_| drop(kept.clone()));
            engine.run_file(folder.join("interp.js"))
        });
        if let Err(error) = started {
            throw(error);
        }
    })
}
