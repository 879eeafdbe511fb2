//! The numbers of README.md and the tests that SECURITY.md names: both are counted or looked up
//! here, so that a page cannot promise more than the repository shows.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const README: &str = include_str!("../../README.md");
const SECURITY: &str = include_str!("../../.github/SECURITY.md");

/// Prints the counts: `cargo test --test house promises -- --nocapture`.
#[test]
fn the_readme_states_the_counts_of_the_tables() {
    let is_rule = |line: &&str| {
        let digits = line.strip_prefix("| R").unwrap_or_default();
        digits.starts_with(|first: char| first.is_ascii_digit())
    };
    let rules = include_str!("../LIBUV.md").lines().filter(is_rule).count();
    let crates = include_str!("../../src/guide/crates.md").lines();
    let has_test = |line: &&str| line.starts_with("| ") && line.contains(".rs` |");
    let crates = crates.filter(has_test).count();
    println!("rules of libuv: {rules}; rows of crates: {crates}");
    for promise in [
        format!("{rules} of its rules"),
        format!("{crates} rows of crates"),
    ] {
        assert!(README.contains(&promise), "README.md lacks {promise:?}");
    }
}

#[test]
fn the_readme_has_the_commands_of_a_fresh_machine() {
    let checks = include_str!("../../.ci/run");
    for command in ["cargo run --example tour", "cargo test --workspace"] {
        let has_line = |text: &str| text.lines().any(|line| line.starts_with(command));
        assert!(has_line(README), "README.md lacks `{command}`");
    }
    assert!(checks.lines().any(|line| line == "cargo test --workspace"));
}

#[test]
fn the_readme_is_one_page_and_its_files_are_there() {
    let (lines, words) = (README.lines().count(), README.split_whitespace().count());
    println!("README.md: {words} words, {lines} lines");
    assert!(
        lines <= 130 && words <= 1_100,
        "{words} words, {lines} lines"
    );
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let links = README
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', '#']).next());
    let pictures = README
        .split(['"'])
        .filter(|text| text.ends_with(".svg") || text.ends_with(".png"));
    let files: Vec<_> = links
        .chain(pictures)
        .filter(|file| !file.is_empty())
        .collect();
    assert!(files.len() > 15, "{files:?}");
    for file in files {
        assert!(root.join(file).exists(), "README.md links to {file}");
    }
    let examples = fs::read_dir(root.join("examples")).expect("the folder is there");
    for example in examples.map(|entry| entry.expect("the folder can be listed").path()) {
        let name = example
            .file_stem()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let is_picture = example
            .extension()
            .is_some_and(|extension| extension == "png");
        let is_named = README.contains(&format!("`{name}`"));
        assert!(is_named || is_picture, "README.md lacks the example {name}");
    }
}

/// The driver of the benches writes both from one run.
#[test]
fn the_chart_of_the_readme_shows_the_numbers_of_its_table() {
    let (_, cost) = README.split_once("## Cost\n").expect("the costs");
    let (table, _) = cost.split_once("\n[Results]").expect("their end");
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    let cells = rows.flat_map(|row| row.trim_matches('|').split(" | ").skip(1));
    let mut numbers: Vec<&str> = cells.map(str::trim).collect();
    assert!(numbers.len() > 20, "{numbers:?}");
    // With times behind them, once `bench --results` has written the table.
    for number in &mut numbers {
        *number = number.split(", ").next().unwrap_or_default();
    }
    numbers.sort_unstable();
    for chart in [
        include_str!("../../benches/results/cost-light.svg"),
        include_str!("../../benches/results/cost-dark.svg"),
    ] {
        let texts = chart
            .split("</text>")
            .filter_map(|text| text.rsplit('>').next());
        let is_value = |text: &&str| text.replace(',', "").parse::<u32>().is_ok() || *text == "–";
        let mut bars: Vec<&str> = texts.filter(is_value).collect();
        bars.sort_unstable();
        assert_eq!(bars, numbers);
    }
}

#[test]
fn each_limit_against_a_peer_has_its_test() {
    let (_, table) = SECURITY
        .split_once("| what | limit | how to change it | test |")
        .expect("the table of limits");
    let functions = functions();
    let mut named = 0;
    for row in table.lines().filter(|row| row.starts_with("| ")) {
        let tests = row.trim_end_matches(" |").rsplit(" | ").next();
        let tests = tests.unwrap_or_default().split('`').skip(1).step_by(2);
        let tests: Vec<&str> = tests.collect();
        assert!(!tests.is_empty(), "no test: {row}");
        for test in tests {
            assert!(functions.contains(test), "no such test: {test}");
            named += 1;
        }
    }
    assert!(named > 15, "the table has lost its rows");
}

/// The names of all functions in the tests and the sources.
fn functions() -> BTreeSet<String> {
    fn visit(directory: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(directory).expect("the folder is there") {
            let path = entry.expect("the folder can be listed").path();
            if path.is_dir() {
                visit(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("the file can be read");
                let names = text.split("fn ").skip(1);
                let names = names.filter_map(|rest| rest.split(['(', '<']).next());
                found.extend(names.map(str::to_owned));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeSet::new();
    for folder in [
        "tests/loop",
        "tests/net",
        "tests/process",
        "tests/bridges/tests",
        "crates/node/tests",
        "crates/js/tests",
        "src/net",
    ] {
        visit(&root.join(folder), &mut found);
    }
    found
}
