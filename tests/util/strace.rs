//! Tests that run themselves under `strace`.

use std::path::PathBuf;
use std::process::Command;

/// Whether this is the process that runs under `strace`.
fn is_child() -> bool {
    std::env::var_os("PHASELOOP_TEST_CHILD").is_some()
}

/// Whether `strace` is installed and may trace. A test that gets `false` says so through this
/// function, and passes.
pub(crate) fn can_trace() -> bool {
    if is_child() {
        return true;
    }
    let probe = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .status();
    let can_trace = probe.is_ok_and(|status| status.success());
    if !can_trace {
        eprintln!("skipped: no strace here, or it may not trace");
    }
    can_trace
}

/// A file for the output of `strace`, of which each test has its own.
pub(crate) fn log_of(test: &str) -> PathBuf {
    let name = format!("phaseloop-strace-{test}-{}", std::process::id());
    std::env::temp_dir().join(name)
}
