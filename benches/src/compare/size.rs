//! How large the smallest program on a runtime is.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::compare::Failure;

fn example(runtime: &str) -> String {
    format!("echo_{}", runtime.replace('-', "_"))
}

/// Builds the echo servers of the runtimes.
pub(crate) fn build(runtimes: &[&str]) -> Result<(), Failure> {
    eprintln!("building {} echo servers for their size", runtimes.len());
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "--manifest-path", manifest]);
    if cfg!(feature = "libuv") {
        // The features of the suite, so that cargo builds no crate twice.
        cargo.args(["--features", "libuv"]);
    }
    for runtime in runtimes {
        cargo.args(["--example", &example(runtime)]);
    }
    run(&mut cargo)
}

/// Strips the runtime's echo server. Its size in bytes.
pub(crate) fn of_echo_server(runtime: &str) -> Result<f64, Failure> {
    let program = std::env::current_exe()?;
    let release = program.ancestors().nth(2).map(PathBuf::from);
    let built = release
        .ok_or("no target folder")?
        .join("examples")
        .join(example(runtime));
    let stripped = built.with_extension("stripped");
    run(Command::new("strip").arg("-o").arg(&stripped).arg(&built))?;
    Ok(fs::metadata(&stripped)?.len() as f64)
}

fn run(command: &mut Command) -> Result<(), Failure> {
    let status = command
        .status()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if !status.success() {
        return Err(format!("{command:?}: {status}").into());
    }
    Ok(())
}
