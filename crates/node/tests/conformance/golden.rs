//! Recorded traces of random programs, against what they do here.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::interpreter;
use crate::program::Program;
use crate::support::{self, Clock};

/// A program that takes longer, on the virtual clock, waits for something that does not come.
const LONGEST_RUN: Duration = Duration::from_secs(20);

/// How many tokens around a difference are shown.
const CONTEXT: usize = 6;

#[derive(Default)]
pub(crate) struct Comparison {
    pub(crate) passed: usize,
    /// One text for each program that ran otherwise than recorded.
    pub(crate) faults: Vec<String>,
    /// How many this system cannot run.
    pub(crate) left_out: usize,
}

impl Comparison {
    /// How many were recorded.
    #[allow(dead_code, reason = "called by the tests and not by the example")]
    pub(crate) fn recorded(&self) -> usize {
        self.passed + self.faults.len() + self.left_out
    }
}

/// Runs each line `{"seed", "program", "trace"}` by `clock`, which is a virtual one.
pub(crate) fn compare(recorded: &str, clock: Clock) -> Comparison {
    let mut comparison = Comparison::default();
    for (number, line) in recorded.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        match compare_line(line, clock) {
            Ok(()) => comparison.passed += 1,
            Err(fault) => {
                let fault = format!("line {}: {fault}", number + 1);
                comparison.faults.push(fault);
            }
        }
    }
    comparison
}

fn compare_line(line: &str, clock: Clock) -> Result<(), String> {
    let record: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let seed = record.get("seed").map_or("?".to_owned(), Value::to_string);
    let expected: Vec<String> = match record.get("trace") {
        Some(Value::String(trace)) => trace.split_whitespace().map(str::to_owned).collect(),
        Some(Value::Array(trace)) => {
            let tokens = trace.iter().filter_map(Value::as_str);
            tokens.map(str::to_owned).collect()
        }
        _ => return Err(format!("seed {seed}: no trace")),
    };
    let program = record.get("program").cloned().unwrap_or_default();
    let trace =
        run(program, clock, Some(LONGEST_RUN)).map_err(|fault| format!("seed {seed}: {fault}"))?;
    match difference(&expected, &trace) {
        Some(text) => Err(format!("seed {seed}: {text}")),
        None => Ok(()),
    }
}

/// Runs one program on a thread of its own and returns its trace.
pub(crate) fn run(
    program: Value,
    clock: Clock,
    limit: Option<Duration>,
) -> Result<Vec<String>, String> {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || {
        let trace = Program::parse(&program)
            .map(|program| support::run(interpreter::main(program), clock).0);
        // The receiver was dropped if the program took too long.
        let _ = sender.send(trace);
    });
    let received = match limit {
        Some(limit) => receiver.recv_timeout(limit),
        None => receiver
            .recv()
            .map_err(|_| mpsc::RecvTimeoutError::Disconnected),
    };
    match received {
        Ok(trace) => trace,
        Err(mpsc::RecvTimeoutError::Timeout) => Err("it does not end".to_owned()),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            let panicked = thread.join().is_err();
            Err(if panicked { "it panicked" } else { "no trace" }.to_owned())
        }
    }
}

/// Where two traces part, with what is around.
pub(crate) fn difference(expected: &[String], found: &[String]) -> Option<String> {
    if expected == found {
        return None;
    }
    let same = expected.iter().zip(found).take_while(|(a, b)| a == b);
    let at = same.count();
    let token = |trace: &[String]| trace.get(at).map_or("the end".to_owned(), Clone::clone);
    let context = |trace: &[String]| {
        let end = trace.len().min(at + CONTEXT);
        trace[at.saturating_sub(CONTEXT)..end].join(" ")
    };
    Some(format!(
        "token {}: expected {}, found {}\n  expected … {} …\n  found    … {} …",
        at + 1,
        token(expected),
        token(found),
        context(expected),
        context(found)
    ))
}
