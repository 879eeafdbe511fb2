//! Runs ports of Node programs and compares their output with Node's.
//!
//! ```text
//! cargo run --release --package phaseloop-node --example conformance -- ARGUMENTS
//!
//! (none)         the comparison of `cargo test`, in short
//! golden FILE    recorded random programs, on the virtual clock
//! run FILE       one random program, on the real clock; prints its trace
//! port NAME      the port of a hand-written program, on the real clock
//! ports          the names of all ports
//! http FILE      raw requests with Node's answers, in the form of
//!                `crates/node/tests/conformance/http/bytes.jsonl`
//! clients FILE   answers of a peer to a client, with what it emits on Node, in the form of
//!                `crates/node/tests/conformance/http/clients.jsonl`
//! servers FILE   handlers of a server, with what its messages emit on Node, in the form of
//!                `crates/node/tests/conformance/http/servers.jsonl`
//! fuzz COUNT     new random programs, on Node and here (needs Node 26)
//! throughput     operations per second, on Node and here
//! versions       how many cases of the corpus are equal on Node 22, 24 and 26
//! ```
//!
//! Node is the command of the variable `PHASELOOP_NODE`, or `node`. What `versions` counts was recorded by
//! `crates/node/tests/conformance/versions.js`, which can be run again.
//!
//! The format of random programs is in `crates/node/tests/conformance/fuzz/FORMAT.md`.

#[cfg(unix)]
#[path = "../tests/conformance/fuzz.rs"]
mod fuzz;
#[cfg(unix)]
#[path = "../tests/conformance/golden.rs"]
mod golden;
#[cfg(unix)]
#[path = "../tests/conformance/http.rs"]
mod http;
#[cfg(unix)]
#[path = "../tests/conformance/http_clients.rs"]
mod http_clients;
#[cfg(unix)]
#[path = "../tests/conformance/http_peers.rs"]
mod http_peers;
#[cfg(unix)]
#[path = "../tests/conformance/http_servers.rs"]
mod http_servers;
#[cfg(unix)]
#[path = "../tests/conformance/interpreter.rs"]
mod interpreter;
#[cfg(unix)]
#[path = "../tests/conformance/ports/mod.rs"]
mod ports;
#[cfg(unix)]
#[path = "../tests/conformance/program.rs"]
mod program;
#[cfg(unix)]
#[path = "../tests/conformance/support.rs"]
mod support;

#[cfg(unix)]
#[path = "../tests/conformance/throughput.rs"]
mod throughput;

#[cfg(unix)]
fn main() -> std::process::ExitCode {
    commands::main()
}

#[cfg(not(unix))]
fn main() {
    println!("the programs use pipes and Unix sockets");
}

#[cfg(unix)]
mod commands {
    use std::fs;
    use std::io::{self, IsTerminal};
    use std::process::ExitCode;
    use std::time::Instant;

    use serde_json::Value;

    use crate::support::{self, Clock};
    use crate::{fuzz, golden, http, http_clients, http_servers, ports, throughput};

    /// The recorded programs that come with the repository.
    const RECORDED: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/conformance/fuzz/golden.jsonl"
    );

    /// The folder of the corpus.
    const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance");

    /// The recorded cases whose traces are compared between versions of Node.
    const CASES: [(&str, &[&str]); 4] = [
        ("random", &["fuzz/golden.jsonl"]),
        (
            "bytes",
            &[
                "http/bytes.jsonl",
                "http/more_bytes.jsonl",
                "http/today_bytes.jsonl",
            ],
        ),
        ("clients", &["http/clients.jsonl"]),
        ("servers", &["http/servers.jsonl"]),
    ];

    /// Thousands of operations of each kind that `throughput` measures at once.
    const BATCHES: u32 = 100;

    /// How many lines of a file are compared before the progress is shown again.
    const PIECE: usize = 64;

    /// The exit status of a command that fails.
    const USAGE: u8 = 64;

    pub(crate) fn main() -> ExitCode {
        let arguments: Vec<_> = std::env::args().skip(1).collect();
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let done = match arguments[..] {
            [] => golden(RECORDED),
            ["golden", file] => golden(file),
            ["run", file] => run(file),
            ["port", name] => port(name),
            ["ports"] => {
                let all = ports::ALL.iter().copied().flatten();
                all.for_each(|port| {
                    println!("{} ({:?} clock in the tests)", port.name, port.clock)
                });
                Ok(ExitCode::SUCCESS)
            }
            ["http", file] => read(file).map(|text| report(&in_pieces(&text, http::compare))),
            ["clients", file] => {
                read(file).map(|text| report(&in_pieces(&text, http_clients::compare)))
            }
            ["servers", file] => {
                read(file).map(|text| report(&in_pieces(&text, http_servers::compare)))
            }
            ["fuzz", count] => fuzz(count),
            ["versions"] => versions(),
            ["throughput"] => throughput::compare(BATCHES).map(|()| ExitCode::SUCCESS),
            _ => Err(
                "usage: conformance [golden FILE | run FILE | port NAME | ports | http FILE | clients FILE | servers FILE | fuzz COUNT | throughput | versions]"
                    .into(),
            ),
        };
        done.unwrap_or_else(|fault| {
            eprintln!("{fault}");
            ExitCode::from(USAGE)
        })
    }

    fn read(file: &str) -> Result<String, String> {
        fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))
    }

    fn golden(file: &str) -> Result<ExitCode, String> {
        let compare = |text: &str| golden::compare(text, Clock::Virtual);
        Ok(report(&in_pieces(&read(file)?, compare)))
    }

    /// Compares a file. On a terminal this is done in pieces, with a line that shows how much is
    /// done and the time that is left.
    fn in_pieces(text: &str, compare: impl Fn(&str) -> golden::Comparison) -> golden::Comparison {
        if !io::stderr().is_terminal() {
            return compare(text);
        }
        let lines: Vec<_> = text.lines().collect();
        let (start, mut all) = (Instant::now(), golden::Comparison::default());
        for (number, piece) in lines.chunks(PIECE).enumerate() {
            let done = number * PIECE;
            let left = start.elapsed().as_secs() * (lines.len() - done) as u64 / done.max(1) as u64;
            eprint!("\r\x1b[K{:3} %, {left} s left", 100 * done / lines.len());
            // The empty lines keep the numbers of those that follow.
            let one = compare(&("\n".repeat(done) + &piece.join("\n")));
            all.passed += one.passed;
            all.left_out += one.left_out;
            all.faults.extend(one.faults);
        }
        eprint!("\r\x1b[K");
        all
    }

    /// Prints every difference and the totals.
    fn report(comparison: &golden::Comparison) -> ExitCode {
        for fault in &comparison.faults {
            println!("{fault}");
        }
        let failed = comparison.faults.len();
        println!("{} passed, {failed} failed", comparison.passed);
        ExitCode::from(u8::from(failed > 0))
    }

    fn run(file: &str) -> Result<ExitCode, String> {
        let value: Value =
            serde_json::from_str(&read(file)?).map_err(|error| format!("{file}: {error}"))?;
        let program = value.get("program").cloned().unwrap_or(value);
        for token in golden::run(program, Clock::Real, None)? {
            println!("{token}");
        }
        Ok(ExitCode::SUCCESS)
    }

    fn port(name: &str) -> Result<ExitCode, String> {
        let mut all = ports::ALL.iter().copied().flatten();
        let port = all
            .find(|port| port.name == name)
            .ok_or_else(|| format!("there is no port `{name}`; `ports` lists them"))?;
        support::print_tokens();
        let (_, code) = support::run((port.main)(), Clock::Real);
        // The OS keeps the low eight bits of an exit code.
        Ok(ExitCode::from(code as u8))
    }

    /// Prints how many cases of each corpus have the recorded trace on other versions of Node.
    fn versions() -> Result<ExitCode, String> {
        let count_of =
            |file: &&str| read(&format!("{CORPUS}/{file}")).map(|text| text.lines().count());
        let programs =
            fs::read_dir(format!("{CORPUS}/programs")).map_err(|error| error.to_string())?;
        let is_trace = |name: &std::ffi::OsStr| name.to_string_lossy().ends_with(".expected");
        let names = programs.filter_map(|entry| Some(entry.ok()?.file_name()));
        let mut totals = vec![("programs", names.filter(|name| is_trace(name)).count())];
        for (corpus, files) in CASES {
            totals.push((
                corpus,
                files.iter().map(count_of).sum::<Result<usize, _>>()?,
            ));
        }
        for version in [22, 24, 26] {
            let Ok(text) = read(&format!("{CORPUS}/versions/{version}.jsonl")) else {
                println!("Node {version}: not recorded");
                continue;
            };
            let of =
                |line: &str| serde_json::from_str::<Value>(line).map(|case| case["corpus"].clone());
            let differing: Result<Vec<_>, _> = text.lines().map(of).collect();
            let differing = differing.map_err(|error| error.to_string())?;
            for (corpus, total) in &totals {
                let different = differing.iter().filter(|found| *found == corpus).count();
                let equal = total - different;
                println!("Node {version}: {corpus}: {equal} equal, {different} different");
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn fuzz(count: &str) -> Result<ExitCode, String> {
        let count = count.parse().map_err(|error| format!("{count}: {error}"))?;
        let compare = |text: &str| golden::compare(text, Clock::Virtual);
        Ok(report(&in_pieces(&fuzz::record(count)?, compare)))
    }
}
