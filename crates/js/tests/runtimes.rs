//! The programs of the conformance corpus on several runtimes: how many print what Node prints.
//!
//! `bash .ci/runtimes` installs Deno and Bun by their names and runs it. Each program has two tries;
//! its file is unchanged. A program that asks a runtime for a module or an option that it does not
//! have counts as one that differs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const TRIES: usize = 2;
const LONGEST_RUN: Duration = Duration::from_secs(20);

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../node/tests/conformance/programs")
}

/// A folder with the programs as CommonJS: Deno asks for it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder =
            std::env::temp_dir().join(format!("phaseloop-runtimes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for file in std::fs::read_dir(programs()).unwrap() {
            let file = file.unwrap().path();
            if file.is_file() {
                std::fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
            }
        }
        std::fs::write(folder.join("package.json"), r#"{"type": "commonjs"}"#).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns what a command prints, if it ends in time.
fn output(command: &mut Command) -> Option<String> {
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).spawn().ok()?;
    let end = Instant::now() + LONGEST_RUN;
    let pipe = child.stdout.take()?;
    let reader = std::thread::spawn(move || std::io::read_to_string(pipe).unwrap_or_default());
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > end {
            let _ = child.kill();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    reader.join().ok()
}

/// A runtime, and how it is started for a program.
type Start = Box<dyn Fn(&Path) -> Command + Sync>;

fn other(path: String, arguments: &'static [&'static str]) -> Start {
    Box::new(move |program| {
        let mut command = Command::new(&path);
        command.args(arguments).arg(program);
        command.current_dir(program.parent().expect("it is in a folder"));
        command
    })
}

fn own() -> Start {
    Box::new(|program| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["the_program_of_the_environment", "--ignored"])
            .args(["--nocapture", "--exact", "-q"])
            .env("PHASELOOP_JS_PROGRAM", program);
        command
    })
}

/// Runs a program in a process of its own.
#[test]
#[ignore = "the test below starts it, with a program"]
fn the_program_of_the_environment() {
    let Ok(program) = std::env::var("PHASELOOP_JS_PROGRAM") else {
        return;
    };
    std::process::exit(phaseloop_js::main(program).code());
}

#[test]
#[ignore = "it needs other runtimes: bash .ci/runtimes"]
fn programs_on_several_runtimes() {
    let mut runtimes = vec![(format!("phaseloop-js {}", env!("CARGO_PKG_VERSION")), own())];
    for (variable, arguments) in [
        ("PHASELOOP_NODE", &[][..]),
        ("PHASELOOP_DENO", &["run", "--allow-all", "--quiet"]),
        ("PHASELOOP_BUN", &["run"]),
    ] {
        let Ok(path) = std::env::var(variable) else {
            continue;
        };
        let version = output(Command::new(&path).arg("--version")).expect("it starts");
        let name = variable.trim_start_matches("PHASELOOP_").to_lowercase();
        let version = version.lines().next().unwrap_or_default();
        let version = version.trim_start_matches(&name).trim();
        runtimes.push((format!("{name} {version}"), other(path, arguments)));
    }
    let folder = Folder::new();
    let mut files: Vec<_> = std::fs::read_dir(&folder.0)
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "js"))
        .filter(|path| path.with_extension("expected").exists())
        .collect();
    files.sort();
    assert!(files.len() > 400, "the programs were found");
    let needs_module = |path: &Path| {
        let source = std::fs::read_to_string(path).unwrap();
        let mut calls = source.split("require(").skip(1);
        calls.any(|rest| !rest[1..].starts_with("./_lib"))
    };
    for (name, start) in &runtimes {
        let (next, same) = (Mutex::new(files.iter()), Mutex::new(Vec::new()));
        let work = || loop {
            let file = next.lock().unwrap().next();
            let Some(file) = file else { break };
            let expected = std::fs::read_to_string(file.with_extension("expected")).unwrap();
            let is_same = (0..TRIES).any(|_| {
                let text = output(&mut start(file)).unwrap_or_default();
                // The harness of tests prints a line of its own first.
                let (_, own) = text.split_once("running 1 test\n").unwrap_or(("", &text));
                own == expected
            });
            if is_same {
                same.lock().unwrap().push(file);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(work);
            }
        });
        let same = same.into_inner().unwrap();
        let plain = |files: &mut dyn Iterator<Item = &PathBuf>| {
            files.filter(|file| !needs_module(file)).count()
        };
        println!(
            "{name:24} {:4} of {} programs; {:4} of {} without a module",
            same.len(),
            files.len(),
            plain(&mut same.iter().copied()),
            plain(&mut files.iter()),
        );
    }
}
