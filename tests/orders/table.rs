//! The rows of `tests/ORDERS.md`.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What the table writes for tests that are not run.
const NOT_RUN: &str = "not run";

pub(crate) struct Table(Vec<Row>);

struct Row {
    binary: String,
    /// The beginning of the names of the tests.
    tests: String,
    without: String,
    is_used: Cell<bool>,
}

/// The names of tests, by the kinds of questions that they leave out.
pub(crate) type Groups = BTreeMap<String, Vec<String>>;

impl Table {
    pub(crate) fn read() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ORDERS.md");
        let text = fs::read_to_string(file).expect("tests/ORDERS.md");
        let rows = text.lines().filter(|line| line.starts_with("| `"));
        Self(rows.map(Row::parse).collect())
    }

    /// Returns the tests that run.
    pub(crate) fn groups(&self, binary: &str, names: &[String]) -> Groups {
        let mut groups = Groups::new();
        for name in names {
            let rows = self.0.iter().filter(|row| row.binary == binary);
            let rows = rows.filter(|row| name.starts_with(&row.tests));
            let row = rows.max_by_key(|row| row.tests.len());
            if let Some(row) = row {
                row.is_used.set(true);
            }
            let without = row.map_or("", |row| row.without.as_str());
            if without != NOT_RUN {
                let group = groups.entry(without.replace(' ', "")).or_default();
                group.push(name.clone());
            }
        }
        groups
    }

    /// Names the rows of tests that do not exist.
    pub(crate) fn unused(&self) -> impl Iterator<Item = String> {
        let unused = self.0.iter().filter(|row| !row.is_used.get());
        unused.map(|row| format!("tests/ORDERS.md: no test is called {}", row.tests))
    }
}

impl Row {
    fn parse(line: &str) -> Self {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [binary, tests, without, why] = cells[..] else {
            panic!("a row has four cells: {line}");
        };
        assert!(!why.is_empty(), "a row has a reason: {line}");
        Self {
            binary: binary.trim_matches('`').to_owned(),
            tests: tests.trim_matches('`').to_owned(),
            without: without.to_owned(),
            is_used: Cell::new(false),
        }
    }
}
