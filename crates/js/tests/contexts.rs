//! Stores of `AsyncLocalStorage` in random programs, beside Node's: `await` of values, promises and
//! thenables, `for await`, `then`, `finally`, `Promise.all`, `run`, `enterWith`, lanes and
//! immediates, with three storages.
//!
//! `PHASELOOP_NODE=node cargo test -p phaseloop-js --test contexts -- --ignored --nocapture` runs
//! 1,000 programs; `PHASELOOP_PROGRAMS` sets another number.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// How many programs one process runs, one after the other.
const BATCH: u64 = 50;

/// Of 1,000 programs, how many may differ from Node in a store.
const MOST_DIFFERING: u64 = 5;

/// Numbers by a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Writes a program.
struct Writer {
    random: Random,
    text: String,
    label: u32,
}

impl Writer {
    fn at(&mut self) {
        self.label += 1;
        let _ = write!(self.text, "at({});", self.label);
    }

    /// A body of an async function, or of a function that cannot wait.
    fn body(&mut self, depth: u32, waits: bool) {
        self.at();
        for _ in 0..=self.random.below(3) {
            self.statement(depth, waits);
            self.at();
        }
    }

    fn nested(&mut self, before: &str, depth: u32, waits: bool, after: &str) {
        self.text.push_str(before);
        self.body(depth.saturating_sub(1), waits);
        self.text.push_str(after);
    }

    fn statement(&mut self, depth: u32, waits: bool) {
        let (storage, value) = (self.random.below(3), self.random.below(100));
        if depth == 0 {
            let _ = match (self.random.below(3), waits) {
                (0, true) => write!(self.text, "await {value};"),
                (1, _) => write!(self.text, "s[{storage}].enterWith({value});"),
                _ => Ok(()),
            };
            return;
        }
        let run = format!("s[{storage}].run({value}, ");
        match (self.random.below(16), waits) {
            (0, true) => self.text.push_str("await null;"),
            (1, true) => self.text.push_str("await Promise.resolve(1);"),
            (2, true) => {
                self.nested("await { then(f) {", depth, false, "f(1); } };");
            }
            (3, true) => self.nested("await (async () => {", depth, true, "})();"),
            (4, true) => self
                .text
                .push_str("await new Promise((f) => setImmediate(f));"),
            (5, true) => self
                .text
                .push_str("try { await Promise.reject(1); } catch {}"),
            (6, true) => {
                self.nested(
                    "for await (const x of (async function* () { yield 1;",
                    depth,
                    true,
                    "yield 2; })()) {",
                );
                self.at();
                self.text.push('}');
            }
            (7, true) => self.nested(&format!("await {run}async () => {{"), depth, true, "});"),
            (8, true) => {
                self.nested("await Promise.all([(async () => {", depth, true, "})(), 2,");
                self.nested("Promise.resolve().then(() => {", depth, false, "})]);");
            }
            (9, _) => self.nested(&format!("{run}() => {{"), depth, false, "});"),
            (10, _) => self.nested("Promise.resolve(1).then(() => {", depth, false, "});"),
            (11, _) => self.nested("Promise.resolve().finally(() => {", depth, false, "});"),
            (12, _) => self.nested("process.nextTick(() => {", depth, false, "});"),
            (13, _) => self.nested("queueMicrotask(() => {", depth, false, "});"),
            (14, _) => self.nested("setImmediate(() => {", depth, false, "});"),
            _ => {
                let _ = write!(self.text, "s[{storage}].enterWith({value});");
            }
        }
    }
}

/// Returns the programs of some seeds as one file.
fn source(seeds: std::ops::Range<u64>) -> String {
    let mut writer = Writer {
        random: Random(1),
        text: String::from(
            "'use strict';\nconst { AsyncLocalStorage } = require('async_hooks');\n\
             const s = [0, 1, 2].map(() => new AsyncLocalStorage());\nlet name;\n\
             const stores = () => s.map((it) => it.getStore()).join();\n\
             const at = (label) => console.log(`${name} ${label}|${stores()}`);\n\
             const turn = () => new Promise((f) => setTimeout(f, 2));\nconst programs = [\n",
        ),
        label: 0,
    };
    for seed in seeds.clone() {
        writer.random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..4).for_each(|_| _ = writer.random.below(2));
        writer.label = 0;
        writer.nested("async () => {", 5, true, "},\n");
    }
    let first = seeds.start;
    let _ = write!(
        writer.text,
        "];\nconst start = (place) => {{\n  if (place === programs.length) return;\n  \
         name = {first} + place;\n  for (const it of s) it.enterWith(undefined);\n  \
         programs[place]().then(turn).then(turn).then(() => setImmediate(() => start(place + 1)));\n}};\nstart(0);\n"
    );
    writer.text
}

fn output(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // The harness of tests prints a line of its own first.
    let own = text
        .split_once("running 1 test\n")
        .map(|(_, own)| own.to_owned());
    own.unwrap_or(text)
}

fn own(program: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["the_program_of_the_environment", "--ignored"])
        .args(["--nocapture", "--exact", "-q"])
        .env("PHASELOOP_JS_PROGRAM", program);
    command
}

#[test]
#[ignore = "the test below starts it, with a program"]
fn the_program_of_the_environment() {
    let Ok(program) = std::env::var("PHASELOOP_JS_PROGRAM") else {
        return;
    };
    std::process::exit(phaseloop_js::main(program).code());
}

/// Returns the lines of a program, without the stores.
fn order(lines: &[&str]) -> Vec<String> {
    let labels = lines
        .iter()
        .map(|line| line.split('|').next().unwrap_or_default());
    labels.map(str::to_owned).collect()
}

#[test]
#[ignore = "it needs Node: PHASELOOP_NODE"]
fn random_programs_have_the_order_and_the_stores_of_node() {
    let Ok(node) = std::env::var("PHASELOOP_NODE") else {
        println!("PHASELOOP_NODE is not set");
        return;
    };
    let count = std::env::var("PHASELOOP_PROGRAMS").map_or(1_000, |it| it.parse().unwrap());
    let file = std::env::temp_dir().join(format!("phaseloop-contexts-{}.js", std::process::id()));
    let (mut orders, mut stores, mut lines) = (Vec::new(), Vec::new(), 0);
    for first in (0..count).step_by(BATCH as usize) {
        let seeds = first..(first + BATCH).min(count);
        std::fs::write(&file, source(seeds.clone())).unwrap();
        let expected = output(Command::new(&node).arg(&file));
        let printed = output(&mut own(&file));
        for seed in seeds {
            let of = |text: &str| -> Vec<String> {
                let own = text
                    .lines()
                    .filter(|it| it.split(' ').next() == Some(&seed.to_string()));
                own.map(str::to_owned).collect()
            };
            let (node, here) = (of(&expected), of(&printed));
            assert!(!node.is_empty(), "program {seed} prints");
            lines += node.len();
            let [node, here] =
                [&node, &here].map(|it| it.iter().map(String::as_str).collect::<Vec<_>>());
            if order(&node) != order(&here) {
                orders.push(seed);
            } else if node != here {
                let place = node.iter().zip(&here).position(|(a, b)| a != b).unwrap();
                println!("program {seed}: {} here {}", node[place], here[place]);
                stores.push(seed);
            }
        }
    }
    let kept = std::env::var_os("PHASELOOP_KEEP").is_some();
    if !kept {
        std::fs::remove_file(&file).unwrap();
    }
    println!(
        "{count} programs, {lines} lines: the order differs in {}, a store in {}",
        orders.len(),
        stores.len()
    );
    assert!(orders.is_empty(), "the orders: {orders:?}");
    assert!(
        stores.len() as u64 * 1_000 <= MOST_DIFFERING * count,
        "the stores: {stores:?}"
    );
}
