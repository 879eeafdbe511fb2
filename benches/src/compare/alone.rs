//! Our programs without smol.
//!
//! phaseloop uses `async-task` without its feature `std`, and the parts of smol turn that on. Cargo
//! builds a crate once a program, so a program with both in it has a phaseloop whose polls are 25
//! instructions longer than those that a user of phaseloop gets. So the driver builds what runs
//! phaseloop once more, with phaseloop and tokio only.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compare::process::Programs;
use crate::compare::{Failure, size, target_folder};

/// Whether the programs that were built with the driver have smol in them.
pub(crate) const IS_NEEDED: bool = cfg!(feature = "smol");

/// The target folder of these builds.
pub(crate) fn folder() -> PathBuf {
    target_folder().join("alone")
}

/// A build without smol; what is built is still to be named.
pub(crate) fn cargo() -> Command {
    let mut cargo = size::cargo_build();
    cargo.arg("--no-default-features");
    cargo.arg("--target-dir").arg(folder());
    cargo
}

/// Builds the programs, unless they are there and current.
pub(crate) fn build(node: &Path) -> Result<Programs, Failure> {
    size::announce("building phaseloop without smol");
    size::run(cargo().args(["--bin", "costs", "--bin", "allocs"]))?;
    let release = folder().join("release");
    Ok(Programs {
        costs: release.join("costs"),
        allocs: release.join("allocs"),
        node: node.to_owned(),
    })
}
