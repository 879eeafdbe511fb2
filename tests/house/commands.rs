//! The examples that use a further crate: the text around each names the command that adds it, so
//! that what the copy button gives compiles.

use std::fmt::Write as _;

use super::layers::sources_of_all;

/// The crates that examples use, as code names them.
const CRATES: &[&str] = &[
    "async_tungstenite",
    "axum",
    "flate2",
    "futures",
    "http_body_util",
    "hyper",
    "hyper_util",
    "libc",
    "pin_project_lite",
    "polling",
    "reqwest",
    "rustix",
    "rustls",
    "serde",
    "serde_json",
    "slab",
    "socket2",
    "tokio",
    "tokio_test",
    "tonic",
    "tower",
    "tower_layer",
    "tower_service",
    "tracing",
    "tracing_subscriber",
    "tungstenite",
    "url",
    "waker_fn",
];

/// The pages of Markdown with examples. A section is one text.
const PAGES: [(&str, &str); 8] = [
    ("cookbook.md", include_str!("../../src/guide/cookbook.md")),
    (
        "cookbook_features.md",
        include_str!("../../src/guide/cookbook_features.md"),
    ),
    (
        "cookbook_node.md",
        include_str!("../../src/guide/cookbook_node.md"),
    ),
    (
        "cookbook_js.md",
        include_str!("../../src/guide/cookbook_js.md"),
    ),
    (
        "diagnosing.md",
        include_str!("../../src/guide/diagnosing.md"),
    ),
    (
        "from_tokio.md",
        include_str!("../../src/guide/from_tokio.md"),
    ),
    ("libraries.md", include_str!("../../src/guide/libraries.md")),
    ("orders.md", include_str!("../../src/guide/orders.md")),
];

#[test]
fn examples_name_the_commands_that_add_their_crates() {
    let mut faults = String::new();
    for (path, text) in sources_of_all() {
        for (line, comment) in comments(&text) {
            for name in missing(&comment) {
                let _ = writeln!(faults, "{path}:{line}: no `cargo add {name}`");
            }
        }
    }
    for (page, text) in PAGES {
        for section in text.split("\n# ").flat_map(|part| part.split("\n## ")) {
            for name in missing(section) {
                let title = section.lines().next().unwrap_or_default();
                let _ = writeln!(faults, "{page}: {title}: no `cargo add {name}`");
            }
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

/// The check above looks at text; here is what it must and must not see.
#[test]
fn the_check_sees_crates_and_commands() {
    let example = |code: &str| format!("Text.\n```\n{code}\n```\n");
    for code in [
        "use axum::Router;",
        "    tokio::spawn(f);",
        "let a = serde_json::json!(1);",
    ] {
        assert_eq!(missing(&example(code)).len(), 1, "{code}");
    }
    for code in [
        "use phaseloop::{hyper::serve, net::TcpListener};",
        "phaseloop::tokio::block_on(f);",
        "use std::io;",
        "my_tokio::f();",
    ] {
        assert_eq!(missing(&example(code)), Vec::<String>::new(), "{code}");
    }
    let named = format!(
        "`cargo add serde serde_json --features derive`\n{}",
        example("serde_json::f()")
    );
    assert!(missing(&named).is_empty());
    let text = "```text\naxum::Router\n```\n`cargo add phaseloop` for axum::Router";
    assert!(missing(text).is_empty(), "no program");
    assert_eq!(comments("/// A.\n/// B.\nfn f() {}\n//! C.\n").len(), 2);
}

/// The crates that the programs of a text use, and that no command of the text adds.
fn missing(text: &str) -> Vec<String> {
    let commands: String = text
        .split("cargo add ")
        .skip(1)
        .collect::<Vec<_>>()
        .join("\n");
    let is_added = |name: &str| {
        let words = commands.split(|letter: char| letter.is_whitespace() || letter == '`');
        words.into_iter().any(|word| word == name)
    };
    let blocks = text.split("```").skip(1).step_by(2);
    let programs = blocks.filter(|block| !block.starts_with("text") && !block.starts_with("toml"));
    let code: Vec<&str> = programs.flat_map(str::lines).collect();
    let is_used = |name: &&&str| code.iter().any(|line| names(line, name));
    let used = CRATES
        .iter()
        .filter(is_used)
        .map(|name| name.replace('_', "-"));
    used.filter(|name| !is_added(name) && !is_added(&name.replace('-', "_")))
        .collect()
}

/// Whether a line of code has a path that begins with a crate.
fn names(line: &str, name: &str) -> bool {
    let line = line.trim_start().trim_start_matches("# ");
    let path = format!("{name}::");
    if let Some(used) = line.strip_prefix("use ") {
        return used.starts_with(&path);
    }
    if line.starts_with("//") {
        return false;
    }
    line.match_indices(&path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|letter| !letter.is_alphanumeric() && !"_:".contains(letter))
    })
}

/// The comments of documentation in a file, each with the number of its first line.
fn comments(text: &str) -> Vec<(usize, String)> {
    let mut comments: Vec<(usize, String)> = Vec::new();
    let mut is_inside = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let Some(comment) = line.strip_prefix("///").or(line.strip_prefix("//!")) else {
            is_inside = false;
            continue;
        };
        if !is_inside {
            comments.push((index + 1, String::new()));
        }
        is_inside = true;
        let (_, text) = comments.last_mut().expect("there is one");
        text.push_str(comment);
        text.push('\n');
    }
    comments
}
