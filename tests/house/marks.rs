//! Marks that overrule the compiler, `inline(always)`, `inline(never)` and `cold`, have a reason: a
//! plain comment above the mark, or the line `// Marks:` of the file, which names the row of the
//! cost contract that pays for them.

use std::fmt::Write as _;

use super::layers::sources;

const MARKS: &[&str] = &["#[inline(always)]", "#[inline(never)]", "#[cold]"];

#[test]
fn a_mark_that_overrules_the_compiler_has_a_reason() {
    let mut bare = String::new();
    for (path, text) in sources() {
        for number in bare_marks(&text) {
            writeln!(bare, "src/{path}:{number}: a mark without a reason").unwrap();
        }
    }
    assert!(bare.is_empty(), "\n{bare}");
}

/// Returns the numbers of the lines with a mark that has no reason.
fn bare_marks(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    if lines.iter().any(|line| line.starts_with("// Marks:")) {
        return Vec::new();
    }
    let has_reason = |mark: usize| {
        let above = lines[..mark].iter().rev();
        let mut above = above.skip_while(|line| line.starts_with("#["));
        above
            .next()
            .is_some_and(|line| line.starts_with("// ") && !line.starts_with("// SAFETY"))
    };
    let marks = lines.iter().enumerate();
    let marks = marks.filter(|(index, line)| MARKS.contains(line) && !has_reason(*index));
    marks.map(|(index, _)| index + 1).collect()
}

#[test]
fn the_check_sees_what_it_should() {
    assert_eq!(bare_marks("/// Doc.\n#[cold]\nfn f() {}\n"), [2]);
    assert_eq!(bare_marks("// Rare.\n#[inline]\n#[cold]\nfn f() {}\n"), []);
    assert_eq!(bare_marks("//! A.\n// Marks: row `a`.\n#[cold]\n"), []);
    assert_eq!(bare_marks("#[inline(never)]\n#[inline(always)]\n"), [1, 2]);
}
