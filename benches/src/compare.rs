//! What does each operation cost, compared with other runtimes in the same run? `options.rs` has
//! the options, `METHOD.md` says what is measured and what is not.

mod against;
mod alone;
mod caution;
mod chart;
mod contract;
mod environment;
mod estimate;
mod figure;
mod goals;
mod growth;
mod list;
mod measure;
mod options;
mod perf;
mod process;
mod progress;
mod record;
mod report;
mod results;
mod size;
mod table;
mod verdict;
mod watchdog;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::catalogue::OURS;
use options::Options;
pub use process::Programs;
use process::Runner;
use record::Record;

type Failure = Box<dyn Error + Send + Sync>;

/// Does what the arguments of the process ask for.
#[must_use]
pub fn main(programs: Programs) -> ExitCode {
    let options = match Options::read(std::env::args_os()) {
        Ok(options) => options,
        Err(error) => {
            // Help goes to standard output and is no failure. A closed terminal is none either.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let runner = Runner::new(programs, options.limit());
    match compare(runner, &options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("compare: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn compare(mut runner: Runner, options: &Options) -> Result<(), Failure> {
    if options.list {
        list::print(options);
        return Ok(());
    }
    if options.smoke {
        return measure::smoke(&runner, options);
    }
    if options.report.is_empty() && options.runtimes().contains(&OURS) {
        runner.build_ours_alone()?;
    }
    if let Some(task) = options.contract() {
        return contract::run(&runner, options, task, &results_folder(options));
    }
    let before = options.against.as_deref().map(Record::read).transpose()?;
    let folder = results_folder(options);
    fs::create_dir_all(&folder)?;
    let data = folder.join("report.json");
    let record = match options.report.as_slice() {
        [] => measure::all(&runner, options, |record| record.write(&data))?,
        results => Record::read_all(results)?,
    };
    table::print(&record);
    growth::print(&record);
    if options.goals {
        goals::print(&record);
    }
    if let Some(before) = &before {
        against::print(before, &record);
    }
    write(&folder, &record, before.as_ref(), options)?;
    if options.report.is_empty() {
        record.write(&data)?;
        println!("{}", data.display());
    }
    if options.growth {
        growth::check(&record)?;
    }
    Ok(())
}

fn results_folder(options: &Options) -> PathBuf {
    match (&options.out, options.report.last()) {
        (Some(folder), _) => folder.clone(),
        (None, Some(results)) => folder_of(results),
        (None, None) => target_folder().join("report"),
    }
}

/// Writes the report, and the results in Markdown with the chart: beside it, or where the repository
/// keeps them.
fn write(
    folder: &Path,
    record: &Record,
    before: Option<&Record>,
    options: &Options,
) -> Result<(), Failure> {
    let page = folder.join("report.html");
    fs::write(&page, report::page(record, before, options.goals))?;
    let results = match options.results {
        true => Path::new(env!("CARGO_MANIFEST_DIR")),
        false => folder,
    };
    let long = results.join("results");
    fs::create_dir_all(&long)?;
    let short = results.join("RESULTS.md");
    fs::write(&short, results::page(record))?;
    for (file, text) in results::long_tables(record) {
        fs::write(long.join(file), text)?;
    }
    chart::write(&long, record)?;
    if options.results {
        println!("{}", results::readme(record));
        let readme = results.join("../README.md");
        if let Some(text) = results::into_readme(&fs::read_to_string(&readme)?, record) {
            fs::write(&readme, text)?;
        }
    }
    println!(
        "\nmeasured in {}\n{}\n{}",
        progress::duration(record.seconds),
        page.display(),
        short.display()
    );
    Ok(())
}

fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Cargo's target folder, where the benches were built.
fn target_folder() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let target = program.ancestors().nth(3).map(PathBuf::from);
    target.unwrap_or_default()
}
