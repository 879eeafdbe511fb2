//! What does one operation cost on one runtime?
//!
//! `cargo run --release --manifest-path benches/Cargo.toml --bin costs -- spawn_join phaseloop
//! 1000000`
//!
//! Prints what `n` operations took. The last argument, if given, says how much slower than usual
//! the process runs (under a debugger or an emulator), for the workloads that wait for the clock.

use std::process::ExitCode;

fn main() -> ExitCode {
    phaseloop_benches::cell::main()
}
