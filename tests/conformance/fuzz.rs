//! Fresh random programs, recorded on the Node that is installed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// How many programs run on Node at once: they sleep most of the time.
const AT_ONCE: &str = "24";

/// Records the traces of `count` programs whose seeds nobody has tried; the lines are those of `golden.jsonl`.
///
/// # Errors
///
/// When Node is missing, or when it and the model do not agree on a program.
pub(crate) fn record(count: u64) -> Result<String, String> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/fuzz");
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let first = now.map_or(1, |now| now.as_secs() % 1_000_000 * 1_000);
    let file = std::env::temp_dir().join(format!("phaseloop-fuzz-{}.jsonl", std::process::id()));
    eprintln!("seeds {first} to {}", first + count - 1);
    let status = Command::new("node")
        .arg(fuzz.join("check.js"))
        .args(["--from", &first.to_string()])
        .args(["--to", &(first + count - 1).to_string()])
        .args(["--repeat", "1", "--jobs", AT_ONCE, "--record"])
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::inherit())
        .status()
        .map_err(|error| format!("node: {error}"))?;
    let recorded = fs::read_to_string(&file);
    // Nobody else needs it.
    let _ = fs::remove_file(&file);
    let recorded = recorded.map_err(|error| format!("{}: {error}", file.display()))?;
    if !status.success() {
        eprintln!("some programs were not recorded");
    }
    Ok(recorded)
}
