//! What the documentation of `src` must say of futures. Clippy checks what it says of errors and
//! panics.

use std::fmt::Write as _;

use super::layers::{node_sources, sources};

#[test]
fn every_public_future_says_what_its_drop_does() {
    let mut faults = String::new();
    for (path, text) in sources().into_iter().chain(node_sources()) {
        for line in futures_without_cancel_safety(&text) {
            let _ = writeln!(faults, "src/{path}:{line}: no `# Cancel safety`");
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

/// The check above looks at text; here is what it must and must not see.
#[test]
fn the_check_sees_public_futures_only() {
    let safe = "/// Waits.\n///\n/// # Cancel safety\n///\n/// Nothing is lost.\n";
    for function in [
        "pub async fn wait() {}",
        "#[track_caller]\npub fn wait() -> impl Future<Output = ()> {}",
        "pub fn wait(\n    a: u8,\n    b: u8,\n) -> impl Future<Output = ()> {}",
    ] {
        let bare = format!("/// Waits.\n{function}\n");
        assert_eq!(futures_without_cancel_safety(&bare).len(), 1, "{bare}");
        let said = format!("{safe}{function}\n");
        assert!(futures_without_cancel_safety(&said).is_empty(), "{said}");
    }
    for function in [
        "async fn wait() {}",
        "pub(crate) async fn wait() {}",
        "pub fn call(f: impl Future<Output = ()>) {}",
    ] {
        assert!(futures_without_cancel_safety(function).is_empty());
    }
}

/// Returns the lines of the public functions that return a future and do not say what happens when
/// it is dropped.
fn futures_without_cancel_safety(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let functions = lines.iter().enumerate().filter(|(index, line)| {
        line.starts_with("pub async fn ")
            || line.starts_with("pub fn ") && returns_a_future(&lines[*index..])
    });
    functions
        .filter(|(index, _)| !is_hidden(&lines[..*index]))
        .filter(|(index, _)| !docs_before(&lines[..*index]).any(|line| line == CANCEL_SAFETY))
        .map(|(index, _)| index + 1)
        .collect()
}

/// Returns whether the function below is part of the seam for the crate above.
fn is_hidden(lines: &[&str]) -> bool {
    let mut above = lines.iter().rev().take_while(|line| line.starts_with("#["));
    above.any(|line| *line == "#[doc(hidden)]")
}

const CANCEL_SAFETY: &str = "/// # Cancel safety";

/// Returns whether the function that begins with these lines returns `impl Future`.
fn returns_a_future(lines: &[&str]) -> bool {
    let end = lines
        .iter()
        .position(|line| line.ends_with(['{', ';', '}']));
    let signature = lines[..=end.unwrap_or(0)].join(" ");
    let (_, returned) = signature.rsplit_once("->").unwrap_or_default();
    returned.trim_start().starts_with("impl Future")
}

/// Returns the lines of the comment above, without the attributes between it and the function.
fn docs_before<'a>(lines: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let above = lines.iter().rev().take_while(|line| !line.is_empty());
    above.copied().filter(|line| line.starts_with("///"))
}
