//! The pages of the documentation: each opens with what its module is for and a program, none is
//! empty, and none leads to the hidden seams.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::layers::{js_sources, node_sources, sources};

/// The program stands among the first lines of a page.
const FIRST_LINES: usize = 20;

#[test]
fn module_pages_open_with_a_program() {
    let mut faults = String::new();
    let mut count = 0;
    let crates = [
        ("src", sources()),
        ("crates/node/src", node_sources()),
        ("crates/js/src", js_sources()),
    ];
    for (root, files) in crates {
        for (module, docs) in pages_of(&files) {
            count += 1;
            if let Some(fault) = fault_of(&docs) {
                let _ = writeln!(faults, "{root}: {module}: {fault}");
            }
        }
    }
    assert!(count > 50, "{count} pages");
    assert!(faults.is_empty(), "\n{faults}");
}

/// A module that the crates above need and users do not is hidden, or its page is empty.
#[test]
fn no_page_is_empty() {
    let mut faults = String::new();
    for listing in [
        include_str!("../api/phaseloop.txt"),
        include_str!("../api/phaseloop-node.txt"),
    ] {
        let modules = listing
            .lines()
            .filter_map(|line| line.strip_suffix(": mod"));
        for module in modules.filter(|module| !module.contains("::guide::")) {
            let inside = format!("{module}::");
            if !listing.lines().any(|line| line.starts_with(&inside)) {
                let _ = writeln!(faults, "{module}: an empty page; make it `pub(crate)`");
            }
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

/// The modules with `#[doc(hidden)]`.
const SEAMS: [&str; 4] = ["extension::", "attributes::", "macros::rt", "host::"];

#[test]
fn no_page_leads_to_a_hidden_seam() {
    let mut faults = String::new();
    for (path, text) in sources().into_iter().chain(node_sources()) {
        for (index, line) in text.lines().enumerate() {
            let comment = line.trim_start();
            let is_page = comment.starts_with("///") || comment.starts_with("//!");
            let has_link = |seam: &&str| comment.contains(&format!("crate::{seam}"));
            if is_page && SEAMS.iter().any(has_link) {
                let _ = writeln!(faults, "src/{path}:{}: {comment}", index + 1);
            }
        }
    }
    assert!(faults.is_empty(), "a link to a hidden module\n{faults}");
}

/// A page shows the text of a re-export and of what it exports, one after the other.
#[test]
fn the_attributes_are_documented_once() {
    let text = include_str!("../../crates/macros/src/lib.rs");
    let lines: Vec<&str> = text.lines().collect();
    let attributes = lines.iter().enumerate();
    let mut attributes = attributes.filter(|(_, line)| **line == "#[proc_macro_attribute]");
    let is_documented = |(index, _): (usize, _)| lines[index - 1].starts_with("///");
    assert!(!attributes.any(is_documented), "`src/lib.rs` documents it");
}

/// The check above looks at text; here is what it must and must not see.
#[test]
fn the_check_sees_public_modules_and_their_docs() {
    let files = BTreeMap::from([
        (
            "lib.rs",
            "//! A.\npub mod one;\nmod two;\n#[doc(hidden)]\npub mod three;\n",
        ),
        (
            "one.rs",
            "//! B.\n\n/// C.\n///\n/// More.\npub mod inside {\n    //! D.\n}\n",
        ),
        ("two.rs", "pub mod four;\n"),
    ]);
    let files = files
        .into_iter()
        .map(|(path, text)| (path.to_owned(), text.to_owned()));
    let pages = pages_of(&files.collect());
    let names: Vec<_> = pages.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["lib", "one", "one/inside"]);
    assert_eq!(pages[1].1, ["B."]);
    assert_eq!(pages[2].1, ["C.", "", "More."]);

    let fault = |lines: &[&str]| {
        fault_of(
            &lines
                .iter()
                .map(|line| (*line).to_owned())
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(fault(&["Text.", "", "```", "fn main() {}", "```"]), None);
    assert_eq!(fault(&["Text.", "", "# Examples", "", "```no_run"]), None);
    assert_eq!(fault(&["```"]), Some(NO_TEXT));
    assert_eq!(fault(&["Text.", "```text", "a", "```"]), Some(NO_PROGRAM));
    assert_eq!(fault(&["Text.", "# Order", "```", "```"]), Some(NO_PROGRAM));
    let mut late = vec!["Text."; FIRST_LINES];
    late.push("```");
    assert_eq!(fault(&late), Some(NO_PROGRAM));
}

const NO_TEXT: &str = "the page does not say first what the module is for";
const NO_PROGRAM: &str = "no program among the first lines of the page, before its sections";

/// What is wrong with the text of a page.
fn fault_of(docs: &[String]) -> Option<&'static str> {
    if docs
        .first()
        .is_none_or(|line| line.is_empty() || line.starts_with(['`', '#', '|']))
    {
        return Some(NO_TEXT);
    }
    let mut is_code = false;
    for line in docs.iter().take(FIRST_LINES) {
        if let Some(info) = line.strip_prefix("```") {
            if !is_code && info != "text" {
                return None;
            }
            is_code = !is_code;
        } else if !is_code && line.starts_with("# ") && line != "# Examples" {
            break;
        }
    }
    Some(NO_PROGRAM)
}

/// The public modules that are reached from `lib.rs` by public modules, and the lines of their
/// documentation. Guides are pages of text.
fn pages_of(files: &BTreeMap<String, String>) -> Vec<(String, Vec<String>)> {
    let mut pages = Vec::new();
    add_pages("lib", &[], files, &mut pages);
    pages
}

fn add_pages(
    module: &str,
    outer: &[&str],
    files: &BTreeMap<String, String>,
    pages: &mut Vec<(String, Vec<String>)>,
) {
    let nested = [format!("{module}.rs"), format!("{module}/mod.rs")];
    let text = nested.iter().find_map(|path| files.get(path));
    let lines: Vec<&str> = text.map_or(Vec::new(), |text| text.lines().collect());
    let inner = lines.iter().filter_map(|line| line.strip_prefix("//!"));
    let docs = outer.iter().copied().chain(inner);
    let docs = docs.map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned());
    pages.push((module.to_owned(), docs.collect()));
    for (index, line) in lines.iter().enumerate() {
        let Some(rest) = line.strip_prefix("pub mod ") else {
            continue;
        };
        let above = lines[..index].iter().rev();
        let above = above.take_while(|line| line.starts_with("#[") || line.starts_with("///"));
        let mut above: Vec<&str> = above.copied().collect();
        above.reverse();
        let name = rest.trim_end_matches([';', '{', '}', ' ']);
        if name == "guide" || above.contains(&"#[doc(hidden)]") {
            continue;
        }
        let docs: Vec<&str> = above
            .iter()
            .filter_map(|line| line.strip_prefix("///"))
            .collect();
        let child = if module == "lib" {
            name.to_owned()
        } else {
            format!("{module}/{name}")
        };
        add_pages(&child, &docs, files, pages);
    }
}
