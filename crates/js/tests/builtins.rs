//! Modules that have no order: each `.expected` of `builtins` is what Node 26 prints for the file of that
//! name.

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use phaseloop_js::Engine;

/// Runs a file, and returns what it prints.
fn output(file: &Path) -> String {
    let output = Rc::new(RefCell::new(String::new()));
    let (text, path) = (output.clone(), file.to_owned());
    let exit = phaseloop_node::run(async move {
        let console = move |_: bool, part: &str| text.borrow_mut().push_str(part);
        let engine = Engine::builder().console(console).build().unwrap();
        let kept = engine.clone();
        phaseloop_node::process::on_exit(move |_| drop(kept.clone()));
        engine.run_file(path).unwrap();
    });
    assert_eq!(exit.code(), 0, "{}", output.borrow());
    output.take()
}

fn check(file: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/builtins");
    let file = folder.join(file);
    let expected = std::fs::read_to_string(file.with_extension("expected")).unwrap();
    let printed = output(&file);
    for (line, expected) in printed.lines().zip(expected.lines()) {
        assert_eq!(line, expected, "{}", file.display());
    }
    assert_eq!(printed.lines().count(), expected.lines().count());
    // The record is that of Node, where it is installed.
    if let Some(node) = std::env::var_os("PHASELOOP_NODE") {
        let run = Command::new(node).arg(&file).output();
        assert_eq!(String::from_utf8_lossy(&run.unwrap().stdout), expected);
    }
}

#[test]
fn assertions_have_the_errors_of_node() {
    check("assert.cjs");
}

#[test]
fn modules_find_others_and_types_are_known() {
    check("modules.cjs");
}

#[test]
fn channels_have_the_stages_of_node() {
    check("channels.cjs");
}

#[cfg(feature = "zlib")]
#[test]
fn zlib_refuses_what_node_refuses() {
    check("zlib.cjs");
}

// What it prints is the machine's, so the record is made by Node when the test runs.
#[cfg(unix)]
#[test]
fn the_system_is_that_of_node() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/builtins/system.cjs");
    let printed = output(&file);
    assert!(
        printed.contains("mine true number true object\n"),
        "{printed}"
    );
    if let Some(node) = std::env::var_os("PHASELOOP_NODE") {
        let run = Command::new(node).arg(&file).output().unwrap();
        assert_eq!(printed, String::from_utf8_lossy(&run.stdout));
    }
}

#[cfg(unix)]
#[test]
fn files_are_copied_and_found_inside_of_a_call() {
    check("files.cjs");
}
