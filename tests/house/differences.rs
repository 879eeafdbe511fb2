//! The guide's table of differences from libuv has every rule that `LIBUV.md` says is kept
//! differently, and no other.

use std::collections::BTreeSet;

const GUIDE: &str = include_str!("../../src/guide/from_libuv.md");
const RULES: &str = include_str!("../LIBUV.md");

/// The numbers of the rules that a cell names: `R8, R120`.
fn rules(cell: &str) -> impl Iterator<Item = u32> {
    cell.split(',')
        .filter_map(|name| name.trim().strip_prefix('R')?.parse().ok())
}

/// The cells of a table's row.
fn cells(row: &str) -> Vec<&str> {
    let row = row.trim_start_matches('|').trim_end_matches('|');
    row.split('|').map(str::trim).collect()
}

fn rows(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| line.starts_with('|'))
}

fn differences() -> impl Iterator<Item = Vec<&'static str>> {
    let (_, table) = GUIDE.split_once("# Differences").unwrap();
    rows(table).skip(2).map(cells)
}

#[test]
fn the_guide_lists_the_differences_that_the_tests_know() {
    let listed: BTreeSet<u32> = differences().flat_map(|row| rules(row[3])).collect();
    let known: BTreeSet<u32> = rows(RULES)
        .filter(|row| row.contains("ours differs"))
        .flat_map(|row| rules(cells(row)[0]))
        .collect();
    assert!(
        known.len() > 50,
        "the table of the tests is read: {known:?}"
    );
    let only_listed: Vec<_> = listed.difference(&known).collect();
    let only_known: Vec<_> = known.difference(&listed).collect();
    assert_eq!(only_listed, [&0; 0], "not in tests/LIBUV.md");
    assert_eq!(only_known, [&0; 0], "not in the guide");
}

#[test]
fn each_difference_has_its_reason() {
    for row in differences().filter(|row| !row[0].starts_with("**")) {
        assert_eq!(row.len(), 4, "{row:?}");
        assert!(row.iter().all(|cell| !cell.is_empty()), "{row:?}");
    }
}
