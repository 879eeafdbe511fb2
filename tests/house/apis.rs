//! The table of newer APIs of Node: each row names an API that exists, and recorded programs that
//! contain what stands for it in JavaScript.

use std::fs;
use std::path::Path;

const TABLE: &str = include_str!("../../crates/node/tests/APIS.md");
const LISTING: &str = include_str!("../api/phaseloop-node.txt");

#[test]
fn each_newer_api_has_a_recorded_program() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/node/tests/conformance/programs");
    let files = fs::read_dir(folder).expect("the folder is there");
    let files: Vec<_> = files
        .map(|file| file.expect("it is listed").path())
        .collect();
    let mut rows = 0;
    for row in TABLE.lines().filter(|row| row.starts_with("| `")) {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [api, javascript, programs] = cells[..] else {
            panic!("three cells: {row}");
        };
        let item = format!("\nphaseloop_node::{}:", api.trim_matches('`'));
        assert!(LISTING.contains(&item), "no such API: {row}");
        for number in programs.split_whitespace() {
            let is_it = |ending: &str| {
                files.iter().find(|file| {
                    let name = file.file_name().unwrap_or_default().to_string_lossy();
                    name.starts_with(&format!("{number}-")) && name.ends_with(ending)
                })
            };
            let program = is_it(".js").unwrap_or_else(|| panic!("no program {number}: {row}"));
            let text = fs::read_to_string(program).expect("it can be read");
            assert!(
                text.contains(javascript.trim_matches('`')),
                "{number} lacks it: {row}"
            );
            assert!(is_it(".expected").is_some(), "{number} is not recorded");
        }
        assert!(!programs.is_empty(), "no program: {row}");
        rows += 1;
    }
    assert!(rows > 100, "the table has lost its rows: {rows}");
}
