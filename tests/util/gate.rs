//! A gate between a test and the [child](super::child) that it has started: the child blocks until
//! the test has read what it waits for, however long that takes.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

/// Where a parent lets its child go on.
fn gate(parent: u32) -> PathBuf {
    std::env::temp_dir().join(format!("phaseloop-test-gate-{parent}-{}", path_of_thread()))
}

/// The name of the running test, as a file name.
fn path_of_thread() -> String {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    name.replace("::", "-")
}

/// Blocks the body of [`in_child`](super::child::in_child) until its parent [has read](read_and_let_go) what it waits for.
pub(crate) fn block_until_let_go() {
    let parent = std::env::var(super::child::PARENT).unwrap();
    let gate = gate(parent.parse().unwrap());
    while !gate.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Reads what a child prints on standard error. When that has `text`, the child goes on.
pub(crate) fn read_and_let_go(mut child: Child, text: &str) -> String {
    let gate = gate(std::process::id());
    let mut lines = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    while stderr.read_line(&mut lines).unwrap() > 0 {
        if lines.contains(text) {
            std::fs::write(&gate, "").unwrap();
        }
    }
    let status = child.wait().unwrap();
    let _ = std::fs::remove_file(gate);
    assert!(status.success(), "{lines}");
    lines
}
