//! Packages of npm, ported. Each port runs a scenario that its package ran under Node 26. The file
//! `.mjs` is the scenario in JavaScript, the file `.expected` what it printed.

mod connect;
mod connect_scenario;
mod p_queue;
mod p_queue_scenario;
mod p_retry;
mod p_retry_scenario;

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::rc::Rc;

use phaseloop_node::perf_hooks::performance;
use phaseloop_node::run_on;

use crate::util::trace::paused;

/// What a scenario prints.
#[derive(Clone, Default)]
struct Log {
    lines: Rc<RefCell<Vec<String>>>,
    start: Rc<Cell<f64>>,
}

impl Log {
    fn part(&self, name: &str) {
        self.log(format_args!("== {name}"));
        self.start.set(performance::now());
    }

    fn log(&self, line: impl Display) {
        self.lines.borrow_mut().push(line.to_string());
    }

    /// Logs the time since the beginning of the part, in steps of 50 ms.
    fn stamp(&self, line: impl Display) {
        let steps = (performance::now() - self.start.get()) / 50.0;
        self.log(format_args!("{line}@{}", steps.round() * 50.0));
    }
}

/// Runs a scenario on the paused clock and compares its lines with those of the package.
fn prints<F: Future<Output = ()> + 'static>(
    expected: &str,
    scenario: impl FnOnce(Log) -> F + 'static,
) {
    let (mut event_loop, _, _) = paused();
    let log = Log::default();
    let exit = run_on(&mut event_loop, scenario(log.clone()));
    assert_eq!(exit.code(), 0);
    let lines = log.lines.take();
    let expected: Vec<_> = expected.lines().collect();
    let same = lines.iter().zip(&expected).take_while(|(a, b)| a == b);
    let at = same.count();
    assert!(
        lines == expected,
        "line {} is {:?} in place of {:?}:\n{}",
        at + 1,
        lines.get(at),
        expected.get(at),
        lines.join("\n")
    );
}

/// The guide has the numbers of lines that are neither empty nor comments, and of clones.
#[test]
fn the_guide_counts_the_lines_and_clones_of_the_ports() {
    let guide = include_str!("../../../src/guide/porting.md");
    let ports: [(&str, &[&str]); 3] = [
        ("connect", &[include_str!("connect.rs")]),
        (
            "p-queue",
            &[
                include_str!("p_queue.rs"),
                include_str!("p_queue/interval.rs"),
                include_str!("p_queue/timeout.rs"),
            ],
        ),
        ("p-retry", &[include_str!("p_retry.rs")]),
    ];
    for (name, files) in ports {
        let lines = files.iter().flat_map(|file| file.lines()).map(str::trim);
        let code = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
        let clones = |file: &&str| file.matches(".clone()").count();
        let clones: usize = files.iter().map(clones).sum();
        let counts = format!(" | {} | {clones} |", code.count());
        let row = guide
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}`")));
        assert!(row.unwrap().ends_with(&counts), "{name}{counts}");
    }
}
