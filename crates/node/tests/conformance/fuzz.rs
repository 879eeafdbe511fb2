//! Fresh random programs, recorded on the Node of `PHASELOOP_NODE`, or of the path.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

/// How many programs each recorder runs on Node at once: they sleep most of the time.
const AT_ONCE: &str = "16";

/// The oldest Node whose order is the one of this crate.
const OLDEST: u32 = 26;

/// The command of Node: that of the variable `PHASELOOP_NODE`, or `node`.
pub(crate) fn node() -> String {
    std::env::var("PHASELOOP_NODE").unwrap_or_else(|_| "node".to_owned())
}

/// Prints the version of Node.
///
/// # Errors
///
/// When there is none, or one that is too old to be compared with.
fn check_version() -> Result<(), String> {
    let node = node();
    let output = Command::new(&node).arg("--version").output();
    let output = output.map_err(|error| format!("{node}: {error}"))?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let major = version.trim_start_matches('v').split('.').next();
    let major: u32 = major.and_then(|major| major.parse().ok()).unwrap_or(0);
    if major < OLDEST {
        return Err(format!(
            "SKIPPED: {node} is {version:?}, and the order is that of Node {OLDEST}: set PHASELOOP_NODE"
        ));
    }
    eprintln!("compared with Node {version}");
    Ok(())
}

/// One process that makes programs and records what Node does with them.
struct Recorder {
    process: Child,
    file: PathBuf,
}

/// Records the traces of `count` programs with new seeds, as lines in the format of `golden.jsonl`.
///
/// # Errors
///
/// When Node is missing, too old, or does not get to the end. A program that it runs otherwise than the model
/// of it, or that takes too long on a busy machine, is reported and left out.
pub(crate) fn record(count: u64) -> Result<String, String> {
    check_version()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let first = now.map_or(1, |now| now.as_secs() % 1_000_000 * 1_000);
    let end = first + count;
    eprintln!("seeds {first} to {}", end - 1);
    // Making programs is what takes time.
    let recorders = thread::available_parallelism().map_or(2, usize::from) as u64;
    let share = count.div_ceil(recorders).max(1);
    let started: Result<Vec<_>, _> = (0..recorders)
        .map(|number| first + number * share)
        .filter(|&from| from < end)
        .map(|from| Recorder::start(from, (from + share).min(end) - 1))
        .collect();
    let started = started.map_err(|error| format!("node: {error}"))?;
    started.into_iter().map(Recorder::finish).collect()
}

impl Recorder {
    fn start(from: u64, to: u64) -> io::Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/fuzz/check.js");
        let name = format!("phaseloop-fuzz-{}-{from}.jsonl", std::process::id());
        let file = std::env::temp_dir().join(name);
        let process = Command::new(node())
            .arg(script)
            .args(["--from", &from.to_string(), "--to", &to.to_string()])
            .args(["--repeat", "1", "--jobs", AT_ONCE, "--record"])
            .arg(&file)
            .stdin(Stdio::null())
            .spawn()?;
        Ok(Self { process, file })
    }

    fn finish(mut self) -> Result<String, String> {
        let status = self.process.wait();
        let recorded = fs::read_to_string(&self.file);
        // The file is not needed any more. It does not exist if Node has failed.
        let _ = fs::remove_file(&self.file);
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("some programs were not recorded, see above; the others are compared");
        }
        recorded.map_err(|error| format!("{}: {error}", self.file.display()))
    }
}
