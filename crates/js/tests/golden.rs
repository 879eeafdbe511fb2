//! The recorded random programs, run by the interpreter in JavaScript that recorded them on Node.
//!
//! They go by the real clock, and a loaded machine runs timers late, as Node does then. So this is
//! no part of a plain `cargo test`: `cargo test -p phaseloop-js --test golden -- --ignored`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::Value;

/// How often a program may differ before it counts.
const RUNS: usize = 4;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../node/tests/conformance/fuzz")
}

fn trace(program: &Path) -> Vec<String> {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["the_program_of_the_environment", "--ignored", "--nocapture"])
        .args(["--exact", "-q"])
        .env("PHASELOOP_JS_PROGRAM", program)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (_, own) = text.split_once("running 1 test\n").unwrap_or(("", &text));
    own.lines().map(str::to_owned).collect()
}

#[test]
#[ignore = "the test below starts it, with a program"]
fn the_program_of_the_environment() {
    // Without one, all ignored tests were asked for.
    let Ok(program) = std::env::var("PHASELOOP_JS_PROGRAM") else {
        return;
    };
    let exit = phaseloop_node::run(async move {
        let argv = ["phaseloop-js", "interp.js", &program];
        let engine = phaseloop_js::Engine::builder().argv(argv).build().unwrap();
        // The interpreter names it for pipes, which these programs do not have.
        engine.module("net", |_| ()).unwrap();
        let kept = engine.clone();
        phaseloop_node::process::on_exit(move |_| drop(kept.clone()));
        if let Err(error) = engine.run_file(fuzz().join("interp.js")) {
            phaseloop_node::throw(error);
        }
    });
    std::process::exit(exit.code());
}

#[test]
#[ignore = "it goes by the real clock"]
fn recorded_programs_without_pipes_run_as_on_node() {
    let recorded = std::fs::read_to_string(fuzz().join("golden.jsonl")).unwrap();
    let lines: Vec<_> = recorded
        .lines()
        .filter(|line| !line.contains("\"pipe\""))
        .collect();
    let folder = std::env::temp_dir().join(format!("phaseloop-golden-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (next, faults) = (Mutex::new(0), Mutex::new(Vec::new()));
    let work = || loop {
        let mut place = next.lock().unwrap();
        let Some(line) = lines.get(*place) else { break };
        let file = folder.join(format!("{place}.json"));
        *place += 1;
        drop(place);
        let recorded: Value = serde_json::from_str(line).unwrap();
        std::fs::write(&file, recorded["program"].to_string()).unwrap();
        let tokens = recorded["trace"].as_str().unwrap().split(' ');
        let expected: Vec<_> = tokens.map(str::to_owned).collect();
        if !(0..RUNS).any(|_| trace(&file) == expected) {
            faults
                .lock()
                .unwrap()
                .push(format!("seed {}", recorded["seed"]));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(work);
        }
    });
    std::fs::remove_dir_all(folder).unwrap();
    let faults = faults.into_inner().unwrap();
    println!(
        "{} of {} as on Node",
        lines.len() - faults.len(),
        lines.len()
    );
    assert!(faults.is_empty(), "{faults:?}");
}
