//! What does each operation cost, compared with other runtimes in the same run?
//!
//! `cargo bench --manifest-path benches/Cargo.toml` measures everything in all ways, prints tables
//! with ratios, and writes a page with plots and the results as JSON; with `--features libuv` libuv
//! is there, too. After `--`:
//!
//! | option | |
//! |---|---|
//! | `--time` | only what takes time: CPU, wall, latencies; and resident memory |
//! | `--count` | only instructions in user space, counted by callgrind |
//! | `--syscalls` | only system calls, counted by strace |
//! | `--allocs` | only allocations |
//! | `--quick` | the main workloads, fewer operations; counts some runtimes only; two minutes |
//! | `--goals` | only the workloads with a goal (`goals.rs`), with what became of each at the end |
//! | `--smoke` | no comparison: runs each cell once, briefly; fails if one does not end |
//! | `--rounds <n>` | how often each cell is timed |
//! | `--only <text>` | only workloads with this in their name; may be repeated |
//! | `--on <runtime>` | only on this runtime; may be repeated |
//! | `--against <file>` | also what changed since these results |
//! | `--out <folder>` | where `report.html`, `report.json` and `summary.md` go |
//! | `--show <file>` | measures nothing: tables and page of these results |
//! | `--contract` | no comparison: fails if an operation costs more than `contract.json` allows |
//! | `--renew-contract` | writes that file |
//!
//! `METHOD.md` says what is measured, and what is not.

mod against;
mod contract;
mod environment;
mod estimate;
mod figure;
mod goals;
mod measure;
mod options;
mod process;
mod progress;
mod record;
mod report;
mod size;
mod summary;
mod table;
mod verdict;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use options::Options;
use process::Programs;
use record::Record;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let programs = Programs {
        costs: env!("CARGO_BIN_EXE_costs").into(),
        allocs: env!("CARGO_BIN_EXE_allocs").into(),
        node: Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/node.mjs"),
    };
    match compare(&programs) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("compare: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn compare(programs: &Programs) -> Result<(), Failure> {
    let options = Options::parse(std::env::args().skip(1))?;
    if let Some(task) = options.contract {
        return contract::run(programs, task);
    }
    if options.smoke {
        return measure::smoke(programs, &options);
    }
    let before = options.against.as_deref().map(Record::read).transpose()?;
    let record = match &options.show {
        Some(results) => Record::read(results)?,
        None => measure::all(programs, &options)?,
    };
    table::print(&record);
    goals::print(&record);
    if let Some(before) = &before {
        against::print(before, &record);
    }
    let folder = options.out.unwrap_or_else(default_folder);
    fs::create_dir_all(&folder)?;
    let [page, data, short] =
        ["report.html", "report.json", "summary.md"].map(|file| folder.join(file));
    fs::write(&page, report::page(&record, before.as_ref()))?;
    record.write(&data)?;
    fs::write(&short, summary::markdown(&record))?;
    println!(
        "\nmeasured in {}\n{}\n{}\n{}",
        progress::duration(record.seconds),
        page.display(),
        data.display(),
        short.display()
    );
    Ok(())
}

/// `report` in cargo's target folder, where the benches were built.
fn default_folder() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let target = program.ancestors().nth(3).map(PathBuf::from);
    target.unwrap_or_default().join("report")
}
