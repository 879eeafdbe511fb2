//! What the attributes refuse: each error says what to write. The programs are expanded by `rustc`,
//! which stops at the errors of the attribute; `phaseloop` itself is not needed.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::SystemTime;

/// A program, and the parts of its error.
const MISTAKES: &[(&str, &[&str])] = &[
    (
        "#[main] fn main() {}",
        &["write `async` before `fn`: `#[phaseloop::main]` runs an `async fn` on an event loop"],
    ),
    (
        "#[main] async fn main(arguments: Vec<String>) {}",
        &["remove the arguments", "`std::env::args()`"],
    ),
    (
        "#[test] async fn passes(number: u8) {}",
        &["remove the arguments: a test takes none; make the values in its body"],
    ),
    (
        "#[main] async fn main<T>() {}",
        &["remove the generic parameters"],
    ),
    (
        "#[test] struct Passes;",
        &["`#[phaseloop::test]` goes on a function with a body: `async fn name() { … }`"],
    ),
    (
        "#[main(no_such_option = 1)] async fn main() {}",
        &[
            "there is no option `no_such_option`: the options of `#[phaseloop::main]` are `run`, \
             `pin`, `loops`, `crate`, `lane_budget`",
            "`tokio`",
        ],
    ),
    (
        "#[test(lane_buget = 1)] async fn passes() {}",
        &[
            "there is no option `lane_buget`: the options of `#[phaseloop::test]` are `timeout`, `seeds`",
        ],
    ),
    (
        "#[main(flavor = \"current_thread\")] async fn main() {}",
        &[
            "there is no option `flavor`, since a loop runs on one thread",
            "write `loops = 4`",
        ],
    ),
    (
        "#[main(loops = 0)] async fn main() {}",
        &["a program has at least one loop: write `loops = 4` or `loops = \"cores\"`"],
    ),
    (
        "#[main(loops = 0_usize)] async fn main() {}",
        &["a program has at least one loop"],
    ),
    (
        "#[main(loops)] async fn main() {}",
        &["`loops` needs a value: write `loops = 4`"],
    ),
    (
        "#[main(loops = \"all\")] async fn main() {}",
        &["\"all\" is no number of loops: write `loops = 4` or `loops = \"cores\"`"],
    ),
    (
        "#[test(seeds = 0)] async fn passes() {}",
        &["a test under 0 seeds does not run: write `seeds = 200`"],
    ),
    (
        "#[main(start_paused)] async fn main() {}",
        &["`start_paused` needs a value: write `start_paused = true`"],
    ),
    (
        "#[main(lane_budget =)] async fn main() {}",
        &["`lane_budget` needs a value: write `lane_budget = 10_000.try_into().unwrap()`"],
    ),
    (
        "#[main(run = true)] async fn main() {}",
        &["write `run` alone: it takes no value"],
    ),
    (
        "#[main(run, run)] async fn main() {}",
        &["`run` is set twice: remove one of them"],
    ),
    (
        "#[main(run start_paused = true)] async fn main() {}",
        &["write `=` and a value after `run`, or `,` and the next option"],
    ),
    (
        "#[main(\"5s\")] async fn main() {}",
        &["write the name of an option here: the options of `#[phaseloop::main]` are"],
    ),
    (
        "#[main(timeout = \"5s\")] async fn main() {}",
        &[
            "remove `timeout`, an option of `#[phaseloop::test]`: the options of `#[phaseloop::main]` are",
        ],
    ),
    (
        "#[test(run)] async fn passes() {}",
        &["remove `run`, an option of `#[phaseloop::main]`"],
    ),
    (
        "#[test(timeout = 5)] async fn passes() {}",
        &["5 is no duration: write a whole number with ms, s or m, such as \"5s\""],
    ),
    (
        "#[test(timeout = LIMIT + 1)] async fn passes() {}",
        &["write the time limit as text: `timeout = \"5s\"`"],
    ),
    (
        "#[main(crate = \"phaseloop\")] async fn main() {}",
        &["remove the quotation marks: write `crate = ::phaseloop`"],
    ),
    (
        "#[main(pin)] async fn main() {}",
        &["add `loops = \"cores\"`, or remove `pin`"],
    ),
    (
        "#[main(run, loops = 2)] async fn main() {}",
        &["remove `run`, or `loops`: several loops end when their main future does"],
    ),
    (
        "#[test(loops = 2)] async fn passes() {}",
        &[
            "add `seeds = 200`",
            "`phaseloop::cluster::Builder` runs loops on threads",
        ],
    ),
    (
        "#[test(seeds = 2, start_paused = true)] async fn passes() {}",
        &[
            "remove this option",
            "`phaseloop::shuffle::Explore` has more options",
        ],
    ),
];

#[test]
fn errors_say_what_to_write() {
    let Some(attributes) = attributes() else {
        return;
    };
    let folder = std::env::temp_dir().join(format!("phaseloop-mistakes-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("program.rs");
    let mut faults = String::new();
    for (program, parts) in MISTAKES {
        let uses = if program.starts_with("#[main") {
            "main"
        } else {
            "test"
        };
        fs::write(&file, format!("use phaseloop_macros::{uses};\n{program}\n")).unwrap();
        let mut rustc = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into()));
        rustc.args([
            "--edition=2024",
            "--emit=metadata",
            "--crate-type=bin",
            "--out-dir",
        ]);
        rustc.arg(&folder).arg("--extern");
        rustc.arg(format!("phaseloop_macros={}", attributes.display()));
        let output = rustc.arg(&file).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        let first = text.lines().next().unwrap_or_default();
        if !parts.iter().all(|part| first.contains(part)) {
            faults.push_str(&format!("{program}\n{text}\n"));
        }
    }
    fs::remove_dir_all(&folder).unwrap();
    assert!(faults.is_empty(), "\n{faults}");
}

/// The options in errors are the methods of `Builder`, which the listing of the API has.
#[test]
fn the_options_are_the_methods_of_the_builder() {
    let listing = include_str!("../../../tests/api/phaseloop.txt");
    let known = include_str!("../src/known.rs");
    let methods = listing.lines().filter_map(|line| {
        let (name, signature) = line
            .strip_prefix("phaseloop::Builder::")?
            .split_once(": fn ")?;
        signature.ends_with("-> Self").then_some(name)
    });
    let mut count = 0;
    for name in methods.filter(|name| *name != "new") {
        count += 1;
        assert!(
            known.contains(&format!("\"{name}\",")),
            "no option `{name}`"
        );
    }
    assert!(count > 10, "{count} methods");
}

/// Returns the newest build of the attributes, which lies beside this test. For another target than
/// that of the compiler it lies elsewhere, and there may be no compiler.
fn attributes() -> Option<PathBuf> {
    let folder = std::env::current_exe().unwrap().parent()?.to_owned();
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let end = std::env::consts::DLL_SUFFIX;
        name.contains("phaseloop_macros-") && name.ends_with(end)
    };
    let age = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).ok();
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let library = files
        .filter(is_library)
        .max_by_key(|path| age(path).unwrap_or(SystemTime::UNIX_EPOCH));
    if library.is_none() {
        println!("skipped: the attributes were built for another target");
    }
    library
}
