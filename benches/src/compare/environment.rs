//! Where and with what the figures were taken.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::catalogue::RUNTIMES;
use crate::client;
use crate::compare::perf;

/// Name and value, in the order of the report.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Environment(pub(crate) Vec<(String, String)>);

const LOCK_FILE: &str = include_str!("../../Cargo.lock");

impl Environment {
    pub(crate) fn look() -> Self {
        let mut facts = Vec::new();
        let mut fact = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                facts.push((name.to_owned(), value));
            }
        };
        fact("date", output("date", &["-u", "+%Y-%m-%d %H:%M UTC"]));
        fact("command", Some(command()));
        fact("processor", processor());
        fact(
            "cores",
            std::thread::available_parallelism()
                .ok()
                .map(|n| n.to_string()),
        );
        fact(
            "kernel",
            output("uname", &["-sr"]).map(|text| kernel(&text)),
        );
        fact("load at the start", load());
        fact("system calls counted by", Some(calls_counter().to_owned()));
        fact("rustc", output("rustc", &["-V"]));
        fact("profile", Some(profile()));
        fact("allocator", Some("the C library".to_owned()));
        fact("phaseloop", version("phaseloop"));
        fact("tokio", version("tokio"));
        if cfg!(feature = "smol") {
            let versions = version("async-executor").zip(version("async-io"));
            let text =
                versions.map(|(executor, io)| format!("async-executor {executor}, async-io {io}"));
            fact("smol", text);
        }
        if cfg!(feature = "monoio") {
            fact("monoio", version("monoio"));
        }
        if cfg!(feature = "compio") {
            fact("compio", version("compio"));
        }
        if cfg!(feature = "libuv") {
            fact("libuv", version("libuv-sys2"));
        }
        fact("hyper", version("hyper"));
        fact("node", node_version());
        let absent = RUNTIMES.iter().filter_map(|runtime| absence(runtime));
        let mut absent: Vec<_> = absent.collect();
        if !client::is_wrk_installed() {
            absent.push("wrk is not installed".to_owned());
        }
        fact(
            "not measured",
            (!absent.is_empty()).then(|| absent.join("; ")),
        );
        Self(facts)
    }

    /// After the last process: what ran beside the suite is in it, and the suite itself.
    pub(crate) fn note_end(&mut self) {
        if let Some(load) = load() {
            self.0.push(("load at the end".to_owned(), load));
        }
    }

    /// Facts of a later run: what differs stands behind what was there.
    pub(crate) fn add(&mut self, later: Self) {
        for (name, value) in later.0 {
            match self.0.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) if *known == value => {}
                Some((_, known)) => *known = format!("{known}; {value}"),
                None => self.0.push((name, value)),
            }
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

fn load() -> Option<String> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    Some(averages(&text))
}

/// Cargo names the folder of a build after its profile.
fn profile() -> String {
    let program = std::env::current_exe().unwrap_or_default();
    let folder = program.ancestors().nth(2).and_then(Path::file_name);
    match folder.and_then(|name| name.to_str()) {
        _ if cfg!(debug_assertions) => "debug".to_owned(),
        Some("release") | None => "release, fat LTO, one codegen unit".to_owned(),
        Some(name) => name.to_owned(),
    }
}

/// `None` where Node is not installed.
fn node_version() -> Option<String> {
    output("node", &["--version"])
}

/// Why a runtime cannot be measured; `None` if it can.
pub(crate) fn absence(runtime: &str) -> Option<String> {
    let feature = match runtime {
        "smol" if cfg!(not(feature = "smol")) => "smol",
        "monoio" if cfg!(not(feature = "monoio")) => "monoio",
        "compio" if cfg!(not(feature = "compio")) => "compio",
        "libuv" if cfg!(not(feature = "libuv")) => "libuv",
        "node" if node_version().is_none() => return Some("node is not installed".to_owned()),
        _ => return None,
    };
    Some(format!(
        "{runtime} is not built in: add --features {feature} before the --"
    ))
}

fn calls_counter() -> &'static str {
    if perf::is_usable() { "perf" } else { "strace" }
}

fn command() -> String {
    let mut command = "cargo bench --manifest-path benches/Cargo.toml".to_owned();
    if cfg!(not(feature = "smol")) {
        command.push_str(" --no-default-features");
    }
    if cfg!(feature = "libuv") {
        command.push_str(" --features libuv");
    }
    let arguments = public_arguments(std::env::args().skip(1));
    if !arguments.is_empty() {
        command.push_str(" -- ");
        command.push_str(&arguments.join(" "));
    }
    command
}

/// Without what cargo adds, and without where the results go.
fn public_arguments(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut arguments = arguments.filter(|argument| argument != "--bench");
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--out" | "--against" => drop(arguments.next()),
            out if out.starts_with("--out=") || out.starts_with("--against=") => {}
            _ => kept.push(argument),
        }
    }
    kept
}

/// System and version, without what the distributor has added.
fn kernel(text: &str) -> String {
    text.split('-').next().unwrap_or(text).to_owned()
}

/// The load of one, five and fifteen minutes.
fn averages(load: &str) -> String {
    let averages: Vec<_> = load.split_whitespace().take(3).collect();
    averages.join(", ")
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The version that was compiled in.
fn version(package: &str) -> Option<String> {
    let (_, rest) = LOCK_FILE.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    Some(rest.split_once('"')?.0.to_owned())
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_is_shown_has_no_folders() {
        let arguments = ["--quick", "--out", "/a", "--against=b", "--time", "--bench"];
        let shown = public_arguments(arguments.into_iter().map(str::to_owned));
        assert_eq!(shown, ["--quick", "--time"]);
    }

    #[test]
    fn facts_are_shortened_to_what_matters() {
        assert_eq!(kernel("Linux 6.1.0-31-amd64"), "Linux 6.1.0");
        assert_eq!(averages("0.50 0.40 0.30 1/100 12345"), "0.50, 0.40, 0.30");
    }

    #[test]
    fn a_runtime_that_needs_nothing_is_there() {
        assert_eq!(absence("phaseloop"), None);
        assert_eq!(absence("tokio"), None);
    }
}
