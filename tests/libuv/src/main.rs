//! Runs random programs on phaseloop and on libuv, and compares what happens.
//!
//! ```text
//!   cargo run --manifest-path tests/libuv/Cargo.toml -- 2000        programs 0 to 1,999
//!   cargo run --manifest-path tests/libuv/Cargo.toml -- 1 117       program 117
//! ```
//!
//! A program starts, stops, closes and refs timers, hooks, async handles and poll handles, writes to
//! and closes their peers, queues and cancels work, stops the loop and lets time pass, from the main
//! function and from callbacks. Both loops have a clock that stands still except in waits. Where
//! libuv leaves the order open, both sides are given the same one: events by descriptor, work in the
//! order of queueing. A difference is shrunk to a small program, and printed with both traces.
//!
//! What differs on purpose is not compared; see `tests/LIBUV.md`: a run refreshes the time first
//! (R15, R46), the value that a run returns is compared by whether the loop is alive then (R19),
//! closed handles are left alone (R109, R125), async handles are created before the run (R120).

mod gate;
mod interpreter;
mod kernel;
mod ours;
mod program;
mod random;
mod shrink;
mod theirs;

use std::process::ExitCode;
use std::time::Instant;

use interpreter::{MakeSide, trace};
use program::{Handle, Kind, Op, Program};

/// The lines of a trace that are printed before the first difference, and from it on.
const AROUND: usize = 6;

/// The most operations of a shrunk program in the check of the check.
const SMALL: usize = 5;

fn main() -> ExitCode {
    // SAFETY: no other thread runs yet.
    unsafe { std::env::set_var("UV_THREADPOOL_SIZE", "1") };
    gate::close();
    let mut arguments = std::env::args().skip(1).map(|argument| {
        let number: Result<u64, _> = argument.parse();
        number.unwrap_or_else(|error| panic!("{argument}: {error}"))
    });
    let count = arguments.next().unwrap_or(2_000);
    let first = arguments.next().unwrap_or(0);
    let start = Instant::now();
    let report = (first..first + count).find_map(difference);
    let status = match report {
        Some(report) => Err(report),
        None => check_the_check().map(|found| {
            let time = start.elapsed().as_secs();
            println!("{count} programs from {first} on run alike, in {time} s; {found}");
        }),
    };
    gate::open();
    match status {
        Ok(()) => ExitCode::SUCCESS,
        Err(report) => {
            eprintln!("{report}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a program on both loops. Returns a report if they differ.
fn difference(seed: u64) -> Option<String> {
    let program = Program::random(seed);
    let sides: [(&str, MakeSide); 2] = [
        ("phaseloop, shuffled with the usual answers", ours::make),
        ("phaseloop, not shuffled", ours::make_plain),
    ];
    sides.into_iter().find_map(|(name, make)| {
        let differs = |program: &Program| {
            let is_comparable = name != "phaseloop, not shuffled" || is_plain(program);
            is_comparable && trace(program, make) != trace(program, theirs::make)
        };
        differs(&program)
            .then(|| report(seed, name, make, &shrink::shrink(program.clone(), differs)))
    })
}

/// Whether a program leaves nothing open: it queues no work, and polls one descriptor at most.
fn is_plain(program: &Program) -> bool {
    let ops = || program.0.values().flatten();
    let mut polls: Vec<Handle> = ops()
        .filter_map(|op| match op {
            Op::StartPoll(poll, _) => Some(*poll),
            _ => None,
        })
        .collect();
    polls.sort_unstable();
    polls.dedup();
    polls.len() < 2 && !ops().any(|op| matches!(op, Op::Queue))
}

fn report(seed: u64, name: &str, make: MakeSide, program: &Program) -> String {
    let (ours, theirs) = (trace(program, make), trace(program, theirs::make));
    let same = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
    let left_out = same.saturating_sub(AROUND);
    let lines = |trace: &[String]| {
        let lines = trace.iter().enumerate();
        let lines = lines.skip(left_out).take(same - left_out + AROUND);
        let lines = lines.map(|(n, line)| format!("{} {line}\n", if n < same { ' ' } else { '>' }));
        lines.collect::<String>()
    };
    let note = match left_out {
        0 => String::new(),
        _ => format!(" (after {left_out} lines that are equal)"),
    };
    format!(
        "program {seed} differs; shrunk:\n\n{program}\n{name}{note}:\n{}\nlibuv{note}:\n{}",
        lines(&ours),
        lines(&theirs)
    )
}

/// Checks that a fault is found and shrunk: the other loop gets programs without the stops of timers.
///
/// # Errors
///
/// What was found is too long, or nothing was.
fn check_the_check() -> Result<String, String> {
    let without_stops = |program: &Program| {
        let mut program = program.clone();
        for ops in program.0.values_mut() {
            ops.retain(|op| !matches!(op, Op::Stop(handle) if handle.kind == Kind::Timer));
        }
        program
    };
    let differs = |program: &Program| {
        trace(&without_stops(program), ours::make) != trace(program, theirs::make)
    };
    let programs = (0..1_000).map(|seed| (seed, Program::random(seed)));
    let found = programs.into_iter().find(|(_, program)| differs(program));
    let (seed, program) = found.ok_or("a timer that does not stop was not found")?;
    let shrunk = shrink::shrink(program, differs);
    let length = shrunk.len();
    if length > SMALL {
        return Err(format!(
            "it was shrunk to {length} operations only:\n{shrunk}"
        ));
    }
    Ok(format!(
        "a timer that does not stop is found by program {seed}, and shrunk to {length} operations"
    ))
}
