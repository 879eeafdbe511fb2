//! Packages, names of CommonJS files, and ES modules by `require`: each `.expected` of `packages` is what
//! Node 26 prints for the file of that name.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use phaseloop_js::Engine;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/packages")
}

/// Runs a file, and returns what it prints.
fn output(file: &str) -> String {
    let output = Rc::new(RefCell::new(String::new()));
    let (text, file) = (output.clone(), folder().join(file));
    let exit = phaseloop_node::run(async move {
        let console = move |_: bool, part: &str| text.borrow_mut().push_str(part);
        let engine = Engine::builder().console(console).build().unwrap();
        let kept = engine.clone();
        phaseloop_node::process::on_exit(move |_| drop(kept.clone()));
        engine.run_file(file).unwrap();
    });
    assert_eq!(exit.code(), 0, "{}", output.borrow());
    output.take()
}

fn check(file: &str) {
    let expected = folder().join(file).with_extension("expected");
    let expected = std::fs::read_to_string(expected).unwrap();
    let printed = output(file);
    for (line, expected) in printed.lines().zip(expected.lines()) {
        assert_eq!(line, expected, "{file}");
    }
    assert_eq!(printed.lines().count(), expected.lines().count(), "{file}");
    // The record is that of Node, where it is installed.
    if let Some(node) = std::env::var_os("PHASELOOP_NODE") {
        let run = Command::new(node).arg(folder().join(file)).output();
        assert_eq!(String::from_utf8_lossy(&run.unwrap().stdout), expected);
    }
}

#[test]
fn a_request_finds_packages_and_es_modules() {
    check("require.cjs");
}

#[test]
fn an_import_finds_packages_names_and_json() {
    check("import.mjs");
}

#[test]
fn an_import_finds_the_names_of_commonjs_files() {
    check("names.mjs");
}

#[test]
fn a_module_that_is_evaluated_is_not_required() {
    check("cycles.mjs");
}
