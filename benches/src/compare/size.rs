//! How large the smallest program on a runtime is.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::catalogue::OURS;
use crate::compare::progress::is_shown;
use crate::compare::{Failure, alone, target_folder};

/// Of this crate.
pub(crate) const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");

fn example(runtime: &str) -> String {
    format!("echo_{}", runtime.replace('-', "_"))
}

/// Builds the echo servers of the runtimes.
pub(crate) fn build(runtimes: &[&str]) -> Result<(), Failure> {
    let names = format!("building {} echo servers for their size", runtimes.len());
    announce(&names);
    let is_alone = |runtime: &&str| alone::IS_NEEDED && **runtime == *OURS;
    let (ours, others): (Vec<_>, Vec<_>) = runtimes.iter().partition(|name| is_alone(name));
    for (runtimes, is_alone) in [(ours, true), (others, false)] {
        if runtimes.is_empty() {
            continue;
        }
        let mut cargo = if is_alone { alone::cargo() } else { together() };
        for runtime in runtimes {
            cargo.args(["--example", &example(runtime)]);
        }
        run(&mut cargo)?;
    }
    Ok(())
}

/// On a terminal cargo shows a line of its own: how many crates of how many, and which.
pub(crate) fn cargo_build() -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--manifest-path", MANIFEST]);
    if !is_shown() {
        cargo.arg("--quiet");
    }
    cargo
}

/// What takes a while, on a terminal.
pub(crate) fn announce(what: &str) {
    if is_shown() {
        eprintln!("{what}");
    }
}

/// With the features of the suite, so that cargo builds no crate twice.
fn together() -> Command {
    let mut cargo = cargo_build();
    if cfg!(not(feature = "smol")) {
        cargo.arg("--no-default-features");
    }
    if cfg!(feature = "libuv") {
        cargo.args(["--features", "libuv"]);
    }
    cargo
}

/// Strips the runtime's echo server. Its size in bytes.
pub(crate) fn of_echo_server(runtime: &str) -> Result<f64, Failure> {
    let target: PathBuf = if alone::IS_NEEDED && runtime == OURS {
        alone::folder()
    } else {
        target_folder()
    };
    let built = target.join("release/examples").join(example(runtime));
    let stripped = built.with_extension("stripped");
    run(Command::new("strip").arg("-o").arg(&stripped).arg(&built))?;
    Ok(fs::metadata(&stripped)?.len() as f64)
}

pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let status = command
        .status()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if !status.success() {
        return Err(format!("{command:?}: {status}").into());
    }
    Ok(())
}
