//! The words of the comments in `src`: the terms of the field, names in place of pointers, and
//! lines that fit beside the code.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::layers::{node_sources, sources};

/// Persons that stood for tasks, listeners and handles. Code names those.
const PERSONS: &[&str] = &[
    "nobody",
    "somebody",
    "anybody",
    "everybody",
    "someone",
    "anyone",
    "everyone",
];

/// Words of speech for notify, report, emit and log, and others for which the field has a term.
const DIALECT: &[&str] = &[
    "tell",
    "tells",
    "told",
    "telling",
    "hear",
    "hears",
    "heard",
    "hearing",
    "surroundings",
    "kin",
    "stranger",
    "strangers",
    "voice",
    "quietly",
    "patience",
];

/// Adverbs at the end of a name, which hide what differs: the thread, the cost, the owner.
const ADVERBS: &[&str] = &["_rarely", "_told", "_here", "_quietly", "_apart"];

/// The pages of the documentation that are no Rust files.
const GUIDE: [(&str, &str); 3] = [
    (
        "node/guide/elsewhere.md",
        include_str!("../../crates/node/src/guide/elsewhere.md"),
    ),
    (
        "node/guide/porting.md",
        include_str!("../../crates/node/src/guide/porting.md"),
    ),
    (
        "node/guide/versions.md",
        include_str!("../../crates/node/src/guide/versions.md"),
    ),
];

/// `rustfmt` breaks code at this column. Comments beside it are not wider.
const WIDEST: usize = 100;

#[test]
fn comments_use_the_terms_of_the_field() {
    let mut faults = String::new();
    let guide = GUIDE.map(|(path, text)| (path.to_owned(), text.to_owned()));
    let node = node_sources().into_iter();
    let node = node.map(|(path, text)| (format!("node/{path}"), text));
    let files = sources().into_iter().chain(node);
    for (path, text) in files.chain(guide) {
        for (index, line) in text.lines().enumerate() {
            let dialect = is_dialect(line).then_some(WORD);
            for fault in faults_of(line).chain(dialect) {
                let _ = writeln!(faults, "src/{path}:{}: {fault}: {}", index + 1, line.trim());
            }
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

/// Folders whose files are read like the sources: what they print and name is documentation, too.
const FOLDERS: [&str; 5] = [
    "tests",
    "examples",
    "benches/src",
    "crates/node/tests/node",
    "crates/node/examples",
];

#[test]
fn tests_benches_and_examples_use_the_terms_of_the_field() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut faults = String::new();
    let mut count = 0;
    let mut left: Vec<PathBuf> = FOLDERS.iter().map(|folder| root.join(folder)).collect();
    while let Some(path) = left.pop() {
        // This folder names the words. `ecosystem` and `target` hold the code of others.
        let is_left_out = ["house", "ecosystem", "target"]
            .iter()
            .any(|name| path.ends_with(name));
        if is_left_out {
            continue;
        }
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("the folder can be listed");
            left.extend(entries.map(|entry| entry.expect("the folder can be listed").path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            count += 1;
            let text = fs::read_to_string(&path).expect("the file can be read");
            let lines = text.lines().enumerate();
            for (index, line) in lines.filter(|(_, line)| is_speech(line) || has_phrase(line)) {
                let _ = writeln!(faults, "{}:{}: {}", path.display(), index + 1, line.trim());
            }
        }
    }
    assert!(count > 200, "{count} files");
    assert!(faults.is_empty(), "\n{faults}");
}

/// Turns of phrase for which there is a plain one.
const PHRASES: [&str; 4] = ["by hand", "ran dry", "runs dry", "in good order"];

/// Whether one of [`DIALECT`] is a word of the line or the end of a name; a test may be a sentence that
/// ends in `here`.
fn is_speech(line: &str) -> bool {
    let is_told = |word: &str| word.ends_with("_told") || word.ends_with("_quietly");
    words(line).any(|word| DIALECT.contains(&word.as_str()) || is_told(&word))
}

fn has_phrase(line: &str) -> bool {
    PHRASES.iter().any(|phrase| line.contains(phrase))
}

/// The check above looks at text; here is what it must and must not see.
#[test]
fn the_check_sees_what_it_should() {
    let faults = |line| faults_of(line).collect::<Vec<_>>();
    for line in [
        "// Nobody waits for it.",
        "/// Called when somebody reads.",
        "    let text = \"anybody's code\";",
    ] {
        assert_eq!(faults(line), [PERSON], "{line}");
    }
    for line in ["/// The same for UDP.", "    //! The same, but `n` times."] {
        assert_eq!(faults(line), [POINTER], "{line}");
    }
    assert_eq!(faults("/// The system's."), [ERROR]);
    for line in [
        "/// Runs last (R12).",
        "//! See (N123, N124).",
        "    /// (H7)",
    ] {
        assert_eq!(faults(line), [RULE], "{line}");
    }
    let (wide, fits) = ("x".repeat(98), "ü".repeat(97));
    assert_eq!(faults_of(&format!("// {wide}")).collect::<Vec<_>>(), [WIDE]);
    for line in [
        "// The order of Node (N12).",
        "/// Returns the same value.",
        "/// Clones are the same promise (`Rc`).",
        "fn nobody_is_told() {}",
        "/// Any OS error of `epoll_ctl`.",
        "/// Returns `(N, M)`, see (Rust).",
        &format!("// {fits}"),
        &format!("let text = \"{wide}\"; // a string cannot be broken"),
    ] {
        assert_eq!(faults(line), Vec::<&str>::new(), "{line}");
    }
}

/// The check of the dialect looks at names, too.
#[test]
fn the_check_sees_words_and_the_ends_of_names() {
    for line in [
        "// Nothing is told.",
        "self.tell(id);",
        "/// It hears of all.",
        "fn submit_here() {}",
    ] {
        assert!(is_dialect(line), "{line}");
    }
    for line in [
        "fn untold() {}",
        "// A skin.",
        "here: Here",
        "/// Tellurium.",
    ] {
        assert!(!is_dialect(line), "{line}");
    }
}

const WORD: &str = "a word for which the field has a term: notify, report, emit, log, receive";
const PERSON: &str = "a person for a thing; name the task, listener or handle";
const POINTER: &str = "\"The same\" points elsewhere; say what this does";
const ERROR: &str = "\"The system's.\"; name the system call and its error";
const RULE: &str = "a rule's number in rustdoc; put it into a `//` comment or the test's name";
const WIDE: &str = "a comment wider than 100 columns";

/// What is wrong with a line.
fn faults_of(line: &str) -> impl Iterator<Item = &'static str> {
    let code = line.trim_start();
    let comment = code.starts_with("//");
    let rustdoc = code.strip_prefix("///").or(code.strip_prefix("//!"));
    [
        (names_a_person(line), PERSON),
        (
            rustdoc.is_some_and(|text| text.starts_with(" The same")),
            POINTER,
        ),
        (comment && line.contains("The system's."), ERROR),
        (rustdoc.is_some_and(numbers_a_rule), RULE),
        (comment && line.chars().count() > WIDEST, WIDE),
    ]
    .into_iter()
    .filter_map(|(is_wrong, fault)| is_wrong.then_some(fault))
}

/// Whether one of [`PERSONS`] is among the words of a line.
fn names_a_person(line: &str) -> bool {
    words(line).any(|word| PERSONS.contains(&word.as_str()))
}

/// Whether one of [`DIALECT`] is among the words of a line, or a name ends in one of [`ADVERBS`].
fn is_dialect(line: &str) -> bool {
    let has_adverb = |word: &str| ADVERBS.iter().any(|adverb| word.ends_with(adverb));
    words(line).any(|word| DIALECT.contains(&word.as_str()) || has_adverb(&word))
}

/// Returns the words of a line, in lower case. A name is one word.
fn words(line: &str) -> impl Iterator<Item = String> {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    line.split(move |character| !is_part(character))
        .map(str::to_lowercase)
}

/// Whether a parenthesis begins with the number of a rule: `(R12)`, `(N12, N13)`, `(H1)`.
fn numbers_a_rule(text: &str) -> bool {
    text.split('(').skip(1).any(|rest| {
        let mut letters = rest.chars();
        matches!(letters.next(), Some('R' | 'N' | 'H'))
            && letters.next().is_some_and(|digit| digit.is_ascii_digit())
    })
}
