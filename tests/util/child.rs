//! Tests that run themselves once more, in a process of their own.

use std::panic::Location;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The name by which a test binary knows `test`, which is in the file of the caller: `tcp::name` in
/// `tests/net/tcp.rs`.
#[track_caller]
pub(crate) fn path_of(test: &str) -> String {
    // Below the last folder `tests`, and that of the binary.
    let file = Path::new(Location::caller().file()).with_extension("");
    let parts: Vec<_> = file.iter().collect();
    let tests = parts.iter().rposition(|part| *part == "tests");
    let module: PathBuf = parts[tests.unwrap() + 2..].iter().collect();
    let module = module.to_str().unwrap().replace(MAIN_SEPARATOR, "::");
    let path = format!("{module}::{test}");
    // A child that finds no test of that name would succeed.
    let list = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &path, "--list"])
        .output();
    let list = String::from_utf8(list.unwrap().stdout).unwrap();
    assert!(list.contains(&format!("{path}: test\n")), "no test {path}");
    path
}

/// The variable by which a process that [`in_child`] starts knows the one that started it.
pub(crate) const PARENT: &str = "PHASELOOP_TEST_PARENT";

/// Starts the test named `test`, which is in the file of the caller, once more in a process of its
/// own. There, it runs `body`, and this function returns `None`.
///
/// `wrapper` is a command that gets the command line of that process as its last arguments; empty
/// for none. `env` with nothing but variables is not needed as a program, which not all systems
/// have.
#[track_caller]
pub(crate) fn in_child(wrapper: &[&str], test: &str, body: impl FnOnce()) -> Option<Child> {
    in_child_with(Stdio::piped(), wrapper, test, body)
}

/// Does what [`in_child`] does, with this standard error.
#[track_caller]
pub(crate) fn in_child_with(
    stderr: Stdio,
    wrapper: &[&str],
    test: &str,
    body: impl FnOnce(),
) -> Option<Child> {
    const MARK: &str = "PHASELOOP_TEST_CHILD";
    if std::env::var_os(MARK).is_some() {
        body();
        return None;
    }
    let this_test = std::env::current_exe().unwrap();
    let mut command = match wrapper {
        [] => Command::new(this_test),
        ["env", variables @ ..] if variables.iter().all(|one| !one.starts_with("--")) => {
            let mut command = Command::new(this_test);
            change_environment(&mut command, variables);
            command
        }
        [program, args @ ..] => {
            let mut command = Command::new(program);
            command.args(args).arg(this_test);
            command
        }
    };
    let child = command
        .args(["--exact", &path_of(test), "--nocapture"])
        .env(MARK, "1")
        .env(PARENT, std::process::id().to_string())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn();
    Some(child.unwrap())
}

/// Does what `env` does with these arguments: `-u NAME` and `NAME=value`.
fn change_environment(command: &mut Command, variables: &[&str]) {
    let mut variables = variables.iter();
    while let Some(&variable) = variables.next() {
        match variable.split_once('=') {
            Some((name, value)) => command.env(name, value),
            None => command.env_remove(variables.next().unwrap()),
        };
    }
}
