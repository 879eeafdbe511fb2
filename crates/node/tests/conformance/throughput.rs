//! How many operations a second, here and on Node, in one run: the same measurements as
//! `throughput.js`.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::time::Instant;

use phaseloop_node as node;
use phaseloop_node::fs::create_write_stream;
use phaseloop_node::stream::CLOSE;
use phaseloop_node::{
    Deferred, clear_timeout, next_tick, queue_microtask, set_immediate, set_timeout,
};

const BATCH: u32 = 1000;
const LINES: u32 = 20_000;
const ROUNDS: u32 = 100;

/// A way to queue a closure.
trait Queue: 'static {
    fn queue(closure: impl FnOnce() + 'static);
}

struct Immediates;
struct Ticks;
struct Microtasks;

impl Queue for Immediates {
    fn queue(closure: impl FnOnce() + 'static) {
        set_immediate(closure);
    }
}

impl Queue for Ticks {
    fn queue(closure: impl FnOnce() + 'static) {
        next_tick(closure);
    }
}

impl Queue for Microtasks {
    fn queue(closure: impl FnOnce() + 'static) {
        queue_microtask(closure);
    }
}

/// Prints what both do, and the ratio. `batches` says how long: a thousand operations each.
///
/// # Errors
///
/// When Node is missing or prints something else.
pub(crate) fn compare(batches: u32) -> Result<(), String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/throughput.js");
    let node = Command::new(crate::fuzz::node())
        .arg(script)
        .arg(batches.to_string())
        .output()
        .map_err(|error| format!("node: {error}"))?;
    let theirs = String::from_utf8_lossy(&node.stdout);
    let ours = node::run(measure_all(batches)).into_output();
    let ours = ours.ok_or("the program never ended")?;
    println!(
        "{:<46}{:>14}{:>14}{:>8}",
        "operations/s", "phaseloop", "node", "ratio"
    );
    for ((name, ours), line) in ours.into_iter().zip(theirs.lines()) {
        let theirs = line
            .strip_prefix(name)
            .map(|number| number.trim().parse::<f64>());
        let Some(Ok(theirs)) = theirs else {
            return Err(format!("node printed `{line}` for {name}"));
        };
        println!("{name:<46}{ours:>14.0}{theirs:>14.0}{:>8.1}", ours / theirs);
    }
    Ok(())
}

async fn measure_all(batches: u32) -> Vec<(&'static str, f64)> {
    vec![
        ("immediates", measure::<Immediates>(batches).await),
        ("next_tick", measure::<Ticks>(batches).await),
        ("microtasks", measure::<Microtasks>(batches).await),
        ("set_timeout+clear", measure_timers(batches)),
        (
            "20,000 short lines through createWriteStream",
            measure_lines().await,
        ),
    ]
}

fn per_second(batches: u32, seconds: f64) -> f64 {
    f64::from(BATCH * batches) / seconds
}

async fn measure<Q: Queue>(batches: u32) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let (sum, done) = (Rc::new(Cell::new(0)), Deferred::new());
        let start = Instant::now();
        queue_batch::<Q>(batches, sum.clone(), done.clone());
        done.promise().await.expect("it is resolved");
        best = best.min(start.elapsed().as_secs_f64());
        assert_eq!(sum.get(), u64::from(batches) * u64::from(BATCH - 1));
    }
    per_second(batches, best)
}

/// Queues a batch of closures, of which the last queues the next batch.
fn queue_batch<Q: Queue>(left: u32, sum: Rc<Cell<u64>>, done: Deferred<()>) {
    if left == 0 {
        return done.resolve(());
    }
    for _ in 1..BATCH {
        let sum = sum.clone();
        Q::queue(move || sum.set(sum.get() + 1));
    }
    Q::queue(move || queue_batch::<Q>(left - 1, sum, done));
}

fn measure_timers(batches: u32) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..BATCH * batches {
            clear_timeout(&set_timeout(100, || ()));
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    per_second(batches, best)
}

/// Writes short lines into a file, until it is closed.
async fn measure_lines() -> f64 {
    let name = format!("phaseloop-throughput-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let file = create_write_stream(&path);
        for _ in 0..LINES {
            file.write("a short line\n");
        }
        let closed = node::events::once(&file, CLOSE);
        file.end(());
        closed.await.expect("the file can be written");
        best = best.min(start.elapsed().as_secs_f64());
    }
    let written = fs::metadata(&path).map_or(0, |file| file.len());
    assert_eq!(written, u64::from(LINES) * 13, "every line is there");
    // A file that is left there does no harm.
    let _ = fs::remove_file(&path);
    f64::from(LINES) / best
}
