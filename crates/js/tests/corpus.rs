//! The programs of the conformance corpus, files unchanged, against what Node prints.
//!
//! A program counts if all modules that it names are bound. `docs/differences.md` names those that
//! differ, with the cause; a difference that is gone must leave the list.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const BOUND: &[&str] = &[
    "diagnostics_channel",
    "worker_threads",
    "child_process",
    "readline",
    "readline/promises",
    "async_hooks",
    "buffer",
    "dgram",
    "dns",
    "dns/promises",
    "events",
    "fs",
    "fs/promises",
    "http",
    "net",
    "os",
    "path",
    "perf_hooks",
    "stream",
    "stream/promises",
    "stream/consumers",
    "string_decoder",
    "timers",
    "timers/promises",
    "util",
];

/// How often a program may differ before it counts: the kernel may deliver late, as on Node.
const RUNS: usize = 3;

/// How many programs run beside each other.
const WORKERS: usize = 4;

const LONGEST_RUN: Duration = Duration::from_secs(30);

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../node/tests/conformance/programs")
}

/// What is neither a module nor a global of the engine: a program that names it does not count.
const UNBOUND_GLOBALS: [&str; 4] = ["createHook", "lookup:", "lookup, local", "node:test"];

/// Returns the modules that a program names.
fn modules(source: &str) -> BTreeSet<&str> {
    let calls = source.split("require(").skip(1);
    let names = calls.filter_map(|rest| rest[1..].split(['\'', '"']).next());
    names.filter(|name| !name.starts_with("./_")).collect()
}

/// The programs that `docs/differences.md` names, in its table.
fn stated() -> BTreeSet<&'static str> {
    let lines = include_str!("../docs/differences.md").lines();
    let rows = lines.filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split('`').next()).collect()
}

fn output(program: &Path) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "the_program_of_the_environment",
            "--ignored",
            "--nocapture",
            "--exact",
            "-q",
        ])
        .env("PHASELOOP_JS_PROGRAM", program)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + LONGEST_RUN;
    let pipe = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || std::io::read_to_string(pipe).unwrap_or_default());
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let text = reader.join().unwrap();
    // The harness prints a line before the test.
    let (_, own) = text.split_once("running 1 test\n").unwrap_or(("", &text));
    own.to_owned()
}

/// Runs a program in a process of its own: it may end the process.
#[test]
#[ignore = "the corpus starts it, with a program"]
fn the_program_of_the_environment() {
    let program = std::env::var("PHASELOOP_JS_PROGRAM").expect("the corpus sets it");
    let exit = phaseloop_js::main(program);
    std::process::exit(exit.code());
}

fn expected(program: &Path) -> String {
    std::fs::read_to_string(program.with_extension("expected")).unwrap()
}

/// Runs all programs, some beside each other since most of them wait, and returns which of them
/// print what Node prints.
fn all_at_once(files: &[PathBuf]) -> Vec<bool> {
    let next = AtomicUsize::new(0);
    let same = Mutex::new(vec![false; files.len()]);
    let work = || {
        while let Some((place, path)) = {
            let place = next.fetch_add(1, Ordering::Relaxed);
            files.get(place).map(|path| (place, path))
        } {
            let is_same = output(path) == expected(path);
            same.lock().unwrap()[place] = is_same;
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(work);
        }
    });
    same.into_inner().unwrap()
}

#[test]
fn programs_print_what_node_prints() {
    let mut files: Vec<_> = std::fs::read_dir(programs())
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|it| it == "js"));
    files.retain(|path| path.with_extension("expected").exists());
    files.sort();
    let all = files.len();
    let mut groups = BTreeMap::<String, (usize, usize)>::new();
    let (mut faults, mut differing) = (Vec::new(), BTreeSet::new());
    files.retain(|path| {
        let source = std::fs::read_to_string(path).unwrap();
        let asks = |word: &&str| source.contains(*word);
        let needs_more = UNBOUND_GLOBALS.iter().any(asks)
            || !cfg!(feature = "fetch") && ["new URL(", "fetch("].iter().any(asks);
        let is_bound = |it: &&str| BOUND.contains(it) || cfg!(feature = "zlib") && *it == "zlib";
        !needs_more && modules(&source).iter().all(is_bound)
    });
    let run = files.len();
    let at_once = all_at_once(&files);
    for (path, is_same) in files.iter().zip(at_once) {
        let source = std::fs::read_to_string(path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let modules = modules(&source);
        let group = match modules.is_empty() {
            true => "no module".to_owned(),
            false => modules.iter().copied().collect::<Vec<_>>().join(", "),
        };
        let count = groups.entry(group).or_default();
        count.1 += 1;
        let expected = expected(path);
        // What differs beside others runs again, alone.
        if is_same || (1..RUNS).any(|_| output(path) == expected) {
            count.0 += 1;
        } else {
            faults.push(format!(
                "{name}:\n--- node\n{expected}--- here\n{}",
                output(path)
            ));
            differing.insert(name);
        }
    }
    for (group, (same, of)) in &groups {
        println!("{same:4} of {of:4}  {group}");
    }
    let same = run - differing.len();
    println!(
        "{same:4} of {run:4}  in all; {} programs need what is not bound",
        all - run
    );
    let stated: BTreeSet<_> = stated().into_iter().map(str::to_owned).collect();
    if std::env::var_os("PHASELOOP_JS_SHOW").is_some() {
        println!("{}", faults.join("\n"));
    }
    assert!(run > 100, "the programs were found");
    assert_eq!(differing, stated, "docs/differences.md names the others");
}
