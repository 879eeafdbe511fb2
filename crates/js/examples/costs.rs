//! What JavaScript on the loop costs, in instructions: `cargo run --release -p phaseloop-js --example
//! costs` counts them by valgrind's callgrind and prints them beside the goals.
//!
//! An operation is counted twice, with `n` and with `2n` of them; the difference has neither the
//! start nor the end of the process. `costs ROW N` runs one row without counting.

use std::process::{Command, ExitCode, Stdio};

use phaseloop_js::Engine;
use phaseloop_node::{process, run, throw};

struct Row {
    name: &'static str,
    /// How many operations are counted.
    count: u64,
    /// The most instructions of one; 0: no goal of its own.
    goal: u64,
    /// The script; `N` is the number of operations.
    script: &'static str,
}

const fn row(name: &'static str, count: u64, goal: u64, script: &'static str) -> Row {
    Row {
        name,
        count,
        goal,
        script,
    }
}

const TICKS: &str = "let i = 0; (function f() { if (i++ < N) process.nextTick(f); })()";
const MICROTASKS: &str = "let i = 0; (function f() { if (i++ < N) queueMicrotask(f); })()";
const AWAITS: &str = "(async () => { for (let i = 0; i < N; i++) await null; })()";
const TURNS: &str = "let i = 0; (function f() { if (i++ < N) setImmediate(f); })()";
const IMMEDIATES: &str = "const f = () => {}; for (let i = 0; i < N; i++) setImmediate(f)";
const TIMERS: &str = "const f = () => {}; for (let i = 0; i < N; i++) setTimeout(f, 1)";
const CLEARED: &str =
    "const f = () => {}; for (let i = 0; i < N; i++) clearTimeout(setTimeout(f, 1e6))";
/// The row that the bare engine runs.
const BARE: &str = "await null, the engine alone";

const ROWS: [Row; 12] = [
    row("process.nextTick", 4_000, 5_000, TICKS),
    row("queueMicrotask", 4_000, 0, MICROTASKS),
    row(BARE, 4_000, 0, AWAITS),
    row("await null", 4_000, 0, AWAITS),
    row("turn with one setImmediate", 4_000, 7_000, TURNS),
    row("4,000 immediates in a turn", 4_000, 8_000, IMMEDIATES),
    row("40,000 immediates in a turn", 40_000, 8_000, IMMEDIATES),
    row("4,000 timers of 1 ms", 4_000, 9_000, TIMERS),
    row("40,000 timers of 1 ms", 40_000, 9_000, TIMERS),
    row("set and clear a timer, 4,000", 4_000, 6_000, CLEARED),
    row("set and clear a timer, 40,000", 40_000, 6_000, CLEARED),
    row(
        "call of a function of Rust",
        4_000,
        0,
        "const { f } = require('rust:app'); for (let i = 0; i < N; i++) f(i)",
    ),
];

fn script(row: &Row, n: u64) -> String {
    row.script.replace('N', &n.to_string())
}

/// Runs a script on the loop.
fn on_the_loop(script: String) -> i32 {
    let exit = run(async move {
        let started = Engine::new().and_then(|engine| {
            engine.function("f", |args| args.get::<f64>(0))?;
            let kept = engine.clone();
            process::on_exit(move |_| drop(kept.clone()));
            engine.run("costs.js", &script)
        });
        if let Err(error) = started {
            throw(error);
        }
    });
    exit.code()
}

/// Runs a script in QuickJS, which empties its own queue of jobs.
fn alone(script: &str) {
    let runtime = rquickjs::Runtime::new().expect("it has memory");
    let context = rquickjs::Context::full(&runtime).expect("it has memory");
    context.with(|ctx| ctx.eval::<(), _>(script).expect("the script is right"));
    while runtime.execute_pending_job().expect("no job throws") {}
}

/// Returns the instructions of this program, run with `args`.
fn instructions(args: &[&str]) -> Option<f64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().ok()?)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let (_, count) = text.split_once("Collected : ")?;
    count.split_whitespace().next()?.parse().ok()
}

fn cost(row: &Row) -> Option<f64> {
    let of = |n: u64| instructions(&[row.name, &n.to_string()]);
    Some((of(2 * row.count)? - of(row.count)?) / row.count as f64)
}

fn shown(name: &str, cost: f64, goal: &str) {
    println!("{name:32} {:>12}  {goal}", cost.round());
}

/// Bytes and allocations of an engine with its prelude.
fn heap() -> f64 {
    let exit = run(async {
        let engine = Engine::new().expect("it has memory");
        let heap = engine.run("heap.js", "process.memoryUsage().heapTotal");
        heap.and_then(|it| it.to::<f64>()).unwrap_or(f64::NAN)
    });
    exit.into_output().unwrap_or(f64::NAN)
}

/// Bytes of this program without its symbols.
fn size() -> Option<u64> {
    let stripped = std::env::temp_dir().join(format!("costs-{}", std::process::id()));
    let made = Command::new("strip")
        .arg("-o")
        .arg(&stripped)
        .arg(std::env::current_exe().ok()?)
        .status();
    let size = std::fs::metadata(&stripped).ok().map(|it| it.len());
    let _ = std::fs::remove_file(stripped);
    made.ok()?.success().then_some(size)?
}

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args().skip(1).collect();
    if let [name, n] = args.as_slice() {
        let n = n.parse().expect("a number");
        match ROWS.iter().find(|row| row.name == name) {
            Some(row) if row.name == BARE => alone(&script(row, n)),
            Some(row) => return ExitCode::from(on_the_loop(script(row, n)) as u8),
            None => return ExitCode::from(on_the_loop(String::new()) as u8),
        }
        return ExitCode::SUCCESS;
    }
    let mut bare = f64::NAN;
    println!("{:32} {:>12}  goal", "one operation", "instructions");
    for row in &ROWS {
        let Some(cost) = cost(row) else {
            eprintln!("valgrind counts the instructions, and is not installed");
            return ExitCode::FAILURE;
        };
        let goal = match (row.name, row.goal) {
            (BARE, _) => {
                bare = cost;
                String::new()
            }
            ("await null", _) => format!("{} (1.1 times the engine alone)", (bare * 1.1).round()),
            (_, 0) => String::new(),
            (_, goal) => goal.to_string(),
        };
        shown(row.name, cost, &goal);
    }
    let start = instructions(&["start of an empty program", "0"]);
    shown(
        "start of an empty program",
        start.unwrap_or(f64::NAN),
        "12000000",
    );
    shown("bytes of an engine", heap(), "500000");
    if let Some(size) = size() {
        shown("bytes of the program, stripped", size as f64, "3500000");
    }
    ExitCode::SUCCESS
}
