//! The table of `WINDOWS.md`, from which `.ci/windows` takes what it leaves out, names tests that
//! are there.

use std::fs;
use std::path::Path;

const PAGE: &str = include_str!("../WINDOWS.md");

#[test]
fn every_test_that_is_left_out_under_wine_exists_and_has_its_reason() {
    let (_, table) = PAGE.split_once("## Faults of Wine").expect("it is there");
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let mut count = 0;
    for row in rows {
        let (name, why) = row[3..].split_once("` | ").expect("a name and a reason");
        let (binary, test) = name.split_once(' ').expect("`BINARY MODULE::TEST`");
        let (module, function) = test.split_once("::").expect("`MODULE::TEST`");
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests")
            .join(binary)
            .join(format!("{module}.rs"));
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(text.contains(&format!("\nfn {function}()")), "no {name}");
        assert!(why.trim_end_matches(['|', ' ']).len() > 10, "{name}: why?");
        count += 1;
    }
    assert!(count > 0, "the table is read");
}
