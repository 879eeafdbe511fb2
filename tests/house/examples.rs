//! The examples of the documentation: each is a whole program, so that what the copy button gives
//! compiles.

use std::fmt::Write as _;

use super::layers::sources_of_all;

#[test]
fn examples_are_whole_programs() {
    let mut faults = String::new();
    for (path, text) in sources_of_all() {
        for (line, fault) in faults_of(&text) {
            let _ = writeln!(faults, "{path}:{line}: {fault}");
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

/// The pages of the cookbook: that of the default features, and those that further crates compile.
const COOKBOOK: [&str; 4] = [
    include_str!("../../src/guide/cookbook.md"),
    include_str!("../../src/guide/cookbook_features.md"),
    include_str!("../../src/guide/cookbook_node.md"),
    include_str!("../../src/guide/cookbook_js.md"),
];

/// Prints the count: `cargo test --test house recipes -- --nocapture`.
#[test]
fn recipes_are_whole_programs_of_at_most_20_lines() {
    let mut faults = String::new();
    let mut count = 0;
    for (page, text) in COOKBOOK.iter().enumerate() {
        for recipe in text.split("\n## ").skip(1) {
            count += 1;
            let name = recipe.lines().next().unwrap_or_default();
            let code = recipe.split("\n```").nth(1).unwrap_or_default();
            let code: Vec<&str> = code.lines().skip(1).collect();
            let fault = fault_of(&code).or((code.len() > 20).then_some("more than 20 lines"));
            let lacks_command = page > 0 && !recipe.contains("`cargo add ");
            let fault = fault.or(lacks_command.then_some("no `cargo add`"));
            if let Some(fault) = fault {
                let _ = writeln!(faults, "{name}: {fault}");
            }
        }
    }
    println!("{count} recipes");
    assert!(faults.is_empty(), "\n{faults}");
    assert!(count >= 25, "{count} recipes");
}

/// The check above looks at text; here is what it must and must not see.
#[test]
fn the_check_sees_hidden_and_missing_mains() {
    let faults = |text| faults_of(text).map(|(_, fault)| fault).collect::<Vec<_>>();
    let hidden = "/// ```\n/// # fn main() {\n/// f();\n/// # }\n/// ```\n";
    assert_eq!(faults(hidden), [HIDDEN]);
    let hidden = "//! ```no_run\n//! # async fn main() {\n//! f();\n//! # }\n//! ```\n";
    assert_eq!(faults(hidden), [HIDDEN]);
    let missing = "    /// ```\n    /// phaseloop::block_on(async {});\n    /// ```\n";
    assert_eq!(faults(missing), [MISSING]);
    for whole in [
        "/// ```\n/// fn main() {\n///     f();\n/// }\n/// ```\n",
        "/// ```ignore-windows\n/// #[phaseloop::main]\n/// async fn main() {}\n/// ```\n",
        "/// ```\n/// #[phaseloop::test]\n/// async fn passes() {}\n/// ```\n",
        "/// ```compile_fail\n/// nothing();\n/// ```\n",
        "/// ```text\n/// a ─> b\n/// ```\n",
        "let text = \"\n```\n\";\n",
    ] {
        assert_eq!(faults(whole), Vec::<&str>::new(), "{whole}");
    }
}

const HIDDEN: &str = "a hidden `main`; show it, with `#[phaseloop::main]` where it awaits";
const MISSING: &str = "no `main`; an example is a whole program";

/// The examples of a file that are no whole programs: the line where each begins, and why.
fn faults_of(text: &str) -> impl Iterator<Item = (usize, &'static str)> {
    let mut faults = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(info) = comment(line).and_then(|text| text.strip_prefix("```")) else {
            continue;
        };
        let code: Vec<&str> = lines
            .by_ref()
            .map_while(|(_, line)| comment(line).filter(|text| *text != "```"))
            .collect();
        if is_run(info) {
            faults.extend(fault_of(&code).map(|fault| (number + 1, fault)));
        }
    }
    faults.into_iter()
}

/// The text of a line of documentation.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line.strip_prefix("///").or(line.strip_prefix("//!"))?;
    Some(text.strip_prefix(' ').unwrap_or(text))
}

/// Whether a block is a program that must compile.
fn is_run(info: &str) -> bool {
    info.split(',').all(|word| {
        matches!(word.trim(), "" | "rust" | "no_run" | "should_panic")
            || word.starts_with("ignore-")
    })
}

fn fault_of(code: &[&str]) -> Option<&'static str> {
    let has = |what: &str| code.iter().any(|line| line.contains(what));
    let is_hidden = |line: &&str| line.starts_with("# ") && line.contains("fn main(");
    if code.iter().any(is_hidden) {
        Some(HIDDEN)
    } else if !has("fn main(") && !has("#[phaseloop::test") {
        Some(MISSING)
    } else {
        None
    }
}
