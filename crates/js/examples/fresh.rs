//! New random programs on Node and on the loop: `cargo run -p phaseloop-js --example fresh -- 1000`.
//! Both run the corpus's interpreter in JavaScript, a file that is the same for both; their traces must
//! be equal.
//!
//! Node is that of `PHASELOOP_NODE`, or of the path; the order of the crate is that of Node 26. The
//! seeds are those of today, or begin with the second argument. `fresh PROGRAM.json` runs one
//! program and prints its trace.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{SystemTime, UNIX_EPOCH};

use phaseloop_js::Engine;
use phaseloop_node::{process, run, throw};

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../node/tests/conformance/fuzz")
}

/// Runs a program by its interpreter on the loop.
fn interpret(program: String) -> ExitCode {
    let exit = run(async move {
        let argv = ["phaseloop-js", "interp.js", &program];
        let started = Engine::builder().argv(argv).build().and_then(|engine| {
            // The interpreter names it for pipes, which the program may not have.
            engine.module("net", |_| ())?;
            let kept = engine.clone();
            process::on_exit(move |_| drop(kept.clone()));
            engine.run_file(fuzz().join("interp.js"))
        });
        if let Err(error) = started {
            throw(error);
        }
    });
    ExitCode::from(exit.code() as u8)
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let first = args.next().unwrap_or_else(|| "100".to_owned());
    let Ok(count) = first.parse::<u64>() else {
        return interpret(first);
    };
    // A thousand seeds a day.
    let today = SystemTime::now().duration_since(UNIX_EPOCH);
    let today = today.map_or(1, |time| time.as_secs() / 86400 * 1000);
    let from = args.next().and_then(|it| it.parse().ok()).unwrap_or(today);
    let node = std::env::var("PHASELOOP_NODE").unwrap_or_else(|_| "node".to_owned());
    let own = std::env::current_exe().expect("it runs");
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let checked = Command::new(&node)
        .arg(fuzz().join("check.js"))
        .args(["--from", &from.to_string()])
        .args(["--to", &(from + count - 1).to_string()])
        .args(["--jobs", &jobs.to_string(), "--exclude", "pipe"])
        .arg("--cmd")
        .arg(own)
        .args(args)
        .status();
    match checked {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{node}: {error}");
            ExitCode::FAILURE
        }
    }
}
