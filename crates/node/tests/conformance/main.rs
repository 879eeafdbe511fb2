//! Programs and their traces on Node 26, against the same programs here.
//!
//! `conformance/programs` holds hand-written programs with Node's output, `conformance/ports` their
//! ports; `conformance/fuzz/golden.jsonl` random programs with their traces.
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, reason = "what tests of other systems use")
)]

mod golden;
mod http;
mod http_clients;
mod http_peers;
mod http_servers;
mod interpreter;
mod ports;
mod program;
mod support;

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use ports::Port;
use support::Clock;

fn corpus(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/conformance")
        .join(file)
}

/// How often a port may differ before it counts as a fault. The kernel may deliver a segment, or on
/// the real clock a timer, a turn late, and then Node's own order differs, too. What does not depend
/// on that differs in every run.
const RUNS: usize = 3;

/// How many ports run at the same time. Each has a loop and two threads, which are expensive on
/// Windows.
const AT_ONCE: usize = if cfg!(windows) { 12 } else { usize::MAX };

/// Runs the ports that go by `clock`, each on its own thread, and compares their traces with
/// Node's. Those that differ run again, alone.
fn compare_ports(clock: Clock) {
    compare_ports_by(clock, |port| port.clock == clock);
}

fn compare_ports_by(clock: Clock, is_meant: impl Fn(&Port) -> bool) {
    let start = |port| start(port, clock);
    let ports = ports::ALL.iter().copied().flatten().copied();
    let ports: Vec<_> = ports.filter(is_meant).collect();
    assert!(!ports.is_empty(), "the ports are there");
    let differing: Vec<_> = ports
        .chunks(AT_ONCE)
        .flat_map(|ports| {
            let runs: Vec<_> = ports.iter().map(|&port| (port, start(port))).collect();
            let faults = runs.into_iter();
            faults.filter_map(|(port, run)| Some((port, fault(port, run)?)))
        })
        .collect();
    let faults: Vec<_> = differing
        .into_iter()
        .filter(|&(port, _)| (1..RUNS).all(|_| fault(port, start(port)).is_some()))
        .map(|(_, fault)| fault)
        .collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// A port that takes longer waits for something that does not come.
const LONGEST_RUN: Duration = Duration::from_secs(120);

/// Receives the trace of a port.
type Run = mpsc::Receiver<Vec<String>>;

fn start(port: Port, clock: Clock) -> Run {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let (trace, _) = support::run((port.main)(), clock);
        // The receiver was dropped if the port took too long.
        let _ = sender.send(trace);
    });
    receiver
}

fn fault(port: Port, run: Run) -> Option<String> {
    match run.recv_timeout(LONGEST_RUN) {
        Ok(trace) => difference(port, &trace),
        Err(RecvTimeoutError::Timeout) => Some(format!("{}: it does not end", port.name)),
        Err(RecvTimeoutError::Disconnected) => Some(format!("{}: panicked", port.name)),
    }
}

fn difference(port: Port, trace: &[String]) -> Option<String> {
    let file = corpus(&format!("programs/{}.expected", port.name));
    let expected = fs::read_to_string(file).expect("every port has a program");
    let expected: Vec<_> = expected.lines().collect();
    (expected != trace).then(|| {
        format!(
            "{}\n  node: {}\n  here: {}",
            port.name,
            expected.join(" "),
            trace.join(" ")
        )
    })
}

#[test]
fn ports_on_the_virtual_clock_print_what_node_prints() {
    compare_ports(Clock::Virtual);
}

#[test]
fn ports_on_the_real_clock_print_what_node_prints() {
    compare_ports(Clock::Real);
}

#[test]
fn ports_on_a_shuffled_loop_with_the_usual_answers_print_what_node_prints() {
    compare_ports_by(Clock::Usual, |port| port.clock == Clock::Virtual);
}

fn compare_random_programs(clock: Clock) {
    let file = corpus("fuzz/golden.jsonl");
    let recorded = fs::read_to_string(file).expect("the recordings are there");
    let result = golden::compare(&recorded, clock);
    assert_eq!(result.recorded(), 300);
    assert!(result.faults.is_empty(), "\n{}", result.faults.join("\n"));
}

#[test]
fn recorded_random_programs_run_as_on_node() {
    compare_random_programs(Clock::Virtual);
}

#[test]
fn recorded_random_programs_on_a_shuffled_loop_with_the_usual_answers_run_as_on_node() {
    compare_random_programs(Clock::Usual);
}

// H10 to H56: bytes in, answer out.
#[test]
fn raw_requests_are_answered_as_by_node() {
    for (file, count) in [
        ("http/bytes.jsonl", 312),
        ("http/more_bytes.jsonl", 297),
        ("http/today_bytes.jsonl", 209),
        ("http/refused_bytes.jsonl", 19),
    ] {
        let recorded = fs::read_to_string(corpus(file)).expect("the recordings are there");
        let result = http::compare(&recorded);
        assert_eq!(result.recorded(), count);
        assert!(result.faults.is_empty(), "\n{}", result.faults.join("\n"));
    }
}

// H1 to H57: handlers of a server, and what its messages emit.
#[test]
fn random_handlers_emit_what_they_emit_on_node() {
    let file = corpus("http/servers.jsonl");
    let recorded = fs::read_to_string(file).expect("the recordings are there");
    let result = http_servers::compare(&recorded);
    assert_eq!(result.passed + result.faults.len(), 247);
    assert!(result.faults.is_empty(), "\n{}", result.faults.join("\n"));
}

// H60 to H79: answers of a peer, and what the client emits.
#[test]
fn requests_to_a_random_peer_emit_what_they_emit_on_node() {
    let file = corpus("http/clients.jsonl");
    let recorded = fs::read_to_string(file).expect("the recordings are there");
    let result = http_clients::compare(&recorded);
    assert_eq!(result.recorded(), 293);
    assert!(result.faults.is_empty(), "\n{}", result.faults.join("\n"));
}
