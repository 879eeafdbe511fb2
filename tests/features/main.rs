//! Programs that are built without features: what their compiler and their environment report.
//!
//! The features of the tests are those of the whole suite, so the programs are a package of their
//! own, built below cargo's target folder.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::{env, fs};

/// The programs, by name.
const PROGRAMS: &[(&str, &str)] = &[
    ("plain", "fn main() { phaseloop::block_on(async {}) }"),
    ("tokio", "#[phaseloop::main(tokio)]\nasync fn main() {}"),
    (
        "paused",
        "#[phaseloop::main(start_paused = true, lane_budget = 7.try_into().unwrap())]\nasync fn main() {}",
    ),
    (
        "seeds",
        "fn main() {}\n#[phaseloop::test(seeds = 7)]\nasync fn a_test() {}",
    ),
];

/// What belongs to the thread of its loop.
const STAY: &[&str] = &[
    "phaseloop::EventLoop",
    "phaseloop::LoopHandle",
    "phaseloop::AnyHandle",
    "phaseloop::AsyncHandle",
    "phaseloop::Immediate",
    "phaseloop::JoinHandle<()>",
    "phaseloop::task::JoinSet<()>",
    "phaseloop::time::Timer",
    "phaseloop::time::Sleep",
    "phaseloop::time::Interval",
    "phaseloop::phase::Check",
    "phaseloop::io::PollHandle<std::net::UdpSocket>",
    "phaseloop::io::Source<std::net::UdpSocket>",
    "phaseloop::io::PipeReader",
    "phaseloop::io::PipeWriter",
    "phaseloop::io::Stdin",
    "phaseloop::io::Stdout",
    "phaseloop::net::TcpListener",
    "phaseloop::net::TcpStream",
    "phaseloop::net::UdpSocket",
    "phaseloop::net::UnixDatagram",
    "phaseloop::net::UnixListener",
    "phaseloop::net::UnixStream",
    "phaseloop::process::Channel",
    "phaseloop::process::Child",
    "phaseloop::signal::Signal",
    "phaseloop::signal::Signals",
    "phaseloop::fs::Watcher",
    "phaseloop::fs::File",
];

/// A program that asks whether each of these types may go to another thread.
fn asks_for_send() -> String {
    let lines = STAY
        .iter()
        .map(|name| format!("    is_send::<{name}>();\n"));
    let lines: String = lines.collect();
    format!("fn is_send<T: Send>() {{}}\nfn main() {{\n{lines}}}\n")
}

/// Creates the package, builds what its programs use, and returns its folder.
///
/// The tests run at the same time, and the first build rewrites the lock file: it runs alone. If the
/// crate itself does not compile without features, its errors are those of no program.
fn package() -> &'static Path {
    static PACKAGE: OnceLock<PathBuf> = OnceLock::new();
    PACKAGE.get_or_init(|| {
        let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("without-features");
        let programs = folder.join("src/bin");
        fs::create_dir_all(&programs).unwrap();
        let manifest = format!(
            "[package]\nname = \"without-features\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
             [dependencies]\nphaseloop = {{ path = {crate_folder:?} }}\n"
        );
        write(&folder.join("Cargo.toml"), &manifest);
        // The versions that are there, so that nothing is downloaded.
        let lock = fs::read_to_string(crate_folder.join("Cargo.lock")).unwrap();
        write(&folder.join("Cargo.lock"), &lock);
        for (name, text) in PROGRAMS {
            write(&programs.join(name).with_extension("rs"), text);
        }
        write(&programs.join("threads.rs"), &asks_for_send());
        let output = cargo_in(&folder, "build", "plain");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "the crate without features: {text}");
        folder
    })
}

/// Writes a file that is not yet so: cargo builds nothing twice.
fn write(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|before| before == text) {
        return;
    }
    fs::write(path, text).unwrap();
}

/// Calls cargo for one of the programs.
fn cargo_in(package: &Path, command: &str, program: &str) -> Output {
    // Only a build for tests expands tests.
    let profile = if program == "seeds" { "test" } else { "dev" };
    Command::new(env!("CARGO"))
        .args([command, "--offline", "--quiet", "--bin", program])
        .args(["--target-dir".as_ref(), package.join("target").as_os_str()])
        .args(["--profile", profile])
        .current_dir(package)
        .env("CARGO_TERM_COLOR", "never")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env_remove("CARGO_BUILD_TARGET")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .unwrap()
}

/// Returns the errors of a program that does not compile.
#[track_caller]
fn errors_of(program: &str) -> Vec<String> {
    let output = cargo_in(package(), "check", program);
    assert!(!output.status.success(), "{program} compiles");
    let text = String::from_utf8(output.stderr).unwrap();
    let errors = text.split("\n\n").filter(|part| part.starts_with("error"));
    let errors = errors.filter(|part| !part.starts_with("error: could not compile"));
    errors.map(str::to_owned).collect()
}

#[test]
fn an_option_without_its_feature_is_an_error_that_names_the_feature() {
    for (program, feature) in [
        ("tokio", "`tokio-rt`"),
        ("paused", "`test-util`"),
        ("seeds", "`test-util`"),
    ] {
        let errors = errors_of(program);
        let [error] = &errors[..] else {
            panic!("{program}: {} errors: {errors:#?}", errors.len());
        };
        assert!(error.contains(feature), "{program}: {error}");
    }
}

#[test]
fn variables_that_have_no_effect_are_one_line() {
    let variables = [
        ("PHASELOOP_TRACE", "out.html"),
        ("PHASELOOP_SLOW", ""),
        ("PHASELOOP_DEBUG", "*"),
    ];
    let run = |variables: &[(&str, &str)]| {
        let mut program = Command::new(package().join("target/debug/plain"));
        for name in ["PHASELOOP_TRACE", "PHASELOOP_SLOW", "PHASELOOP_DEBUG"] {
            program.env_remove(name);
        }
        let output = program.envs(variables.iter().copied()).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{text}");
        text
    };
    assert_eq!(run(&[]), "");
    let text = run(&variables);
    let line = "phaseloop: no effect of PHASELOOP_TRACE, PHASELOOP_DEBUG: the program is built without the feature `probe` \
                of phaseloop\n";
    assert_eq!(text, line);
}

#[test]
fn what_stays_on_its_thread_has_one_reason() {
    let errors = errors_of("threads");
    for (index, name) in STAY.iter().enumerate() {
        let place = format!("--> src/bin/threads.rs:{}:", index + 3);
        let of_type: Vec<_> = errors
            .iter()
            .filter(|error| error.contains(&place))
            .collect();
        let is_known =
            |error: &&String| error.contains("`(dyn StaysOnLoopThread + 'static)` cannot be");
        let is_one = matches!(&of_type[..], [error] if is_known(error));
        assert!(is_one, "{name}: {of_type:#?}");
    }
}
