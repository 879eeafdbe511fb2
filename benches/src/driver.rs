//! The driver of the comparison: `cargo bench --manifest-path benches/Cargo.toml -- --help`.

use std::path::Path;
use std::process::ExitCode;

use phaseloop_benches::compare::{self, Programs};

fn main() -> ExitCode {
    compare::main(Programs {
        costs: env!("CARGO_BIN_EXE_costs").into(),
        allocs: env!("CARGO_BIN_EXE_allocs").into(),
        node: Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/node.mjs"),
    })
}
