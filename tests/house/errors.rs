//! How the errors of the three crates print.

use std::fmt::Write as _;

use super::layers::sources_of_all;

#[test]
fn debug_of_an_error_prints_the_text_of_display() {
    let mut faults = String::new();
    for (path, text) in sources_of_all() {
        for name in errors_with_derived_debug(&text) {
            let _ = writeln!(
                faults,
                "{path}: `{name}` derives `Debug`, which `unwrap` prints; print the text of `Display`"
            );
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

/// The check above looks at text; here is what it must and must not see.
#[test]
fn the_check_sees_errors_only() {
    let error = "impl std::error::Error for Bad {}";
    let derived = "#[derive(Clone, Debug)]\n#[non_exhaustive]\npub struct Bad;\n";
    assert_eq!(
        errors_with_derived_debug(&format!("{derived}{error}")),
        ["Bad"]
    );
    assert!(errors_with_derived_debug(derived).is_empty());
    let by_hand = format!("#[derive(Clone)]\npub struct Bad;\n{error}");
    assert!(errors_with_derived_debug(&by_hand).is_empty());
}

/// Returns the types that implement `Error` and derive `Debug`.
fn errors_with_derived_debug(text: &str) -> Vec<&str> {
    let implementors = text.lines().filter_map(|line| {
        line.split_once("Error for ")
            .filter(|_| line.starts_with("impl"))
    });
    implementors
        .map(|(_, rest)| {
            rest.split(|c: char| !c.is_alphanumeric())
                .next()
                .unwrap_or("")
        })
        .filter(|name| derives_debug(text, name))
        .collect()
}

fn derives_debug(text: &str, name: &str) -> bool {
    let is_definition = |line: &&str| {
        let item = line
            .strip_prefix("pub struct ")
            .or(line.strip_prefix("pub enum "));
        item.is_some_and(|item| {
            item.strip_prefix(name)
                .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        })
    };
    let lines: Vec<&str> = text.lines().collect();
    let Some(at) = lines.iter().position(is_definition) else {
        return false;
    };
    let mut attributes = lines[..at]
        .iter()
        .rev()
        .take_while(|line| line.starts_with("#["));
    attributes.any(|line| line.starts_with("#[derive(") && line.contains("Debug"))
}
