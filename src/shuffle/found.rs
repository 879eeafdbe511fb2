//! What an exploration says of a run that failed.

use std::fmt;

use super::recording::{Choice, Log};
use crate::choices::Decision;
use crate::error::debug_as_display;

/// The most lines of a trace that a report prints.
const MOST_LINES: usize = 40;

/// A run that failed, shrunk. Its text is the report of [`explore`](super::explore()).
///
/// # Examples
///
/// ```
/// use std::{cell::RefCell, rc::Rc};
/// use phaseloop::{shuffle::Explore, spawn_blocking};
///
/// fn main() {
///     let found = Explore::new().seeds(200).try_run(|| async {
///         let order = Rc::new(RefCell::new(Vec::new()));
///         let jobs = [1, 2].map(|number| {
///             let order = order.clone();
///             phaseloop::spawn(async move {
///                 spawn_blocking(|| ()).await.unwrap();
///                 order.borrow_mut().push(number);
///             })
///         });
///         for job in jobs {
///             job.await.unwrap();
///         }
///         assert_eq!(*order.borrow(), [1, 2], "the jobs end in their order");
///     });
///     let found = found.unwrap_err();
///     println!("seed {:?}: {} decisions suffice", found.seed, found.shrunk.len());
/// }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Found {
    /// The seed of the run; `None` for the usual run, and for one that was not made by a seed.
    pub seed: Option<u64>,
    /// The decisions of the schedule that differ from the usual ones.
    pub unusual: Vec<Decision>,
    /// The fewest of these decisions that were found to fail as well.
    pub shrunk: Vec<Decision>,
    /// Why the run failed.
    pub message: String,
    /// The decisions from the first unusual one on, one line each.
    pub trace: Vec<String>,
    /// The [report](crate::LoopHandle::report) of the loop after the failure.
    pub report: String,
    /// What the program has used that cannot be repeated, such as a child process, with its line.
    pub not_repeatable: Vec<String>,
    /// The runs that shrinking took.
    pub runs: u64,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seed {
            Some(seed) => writeln!(f, "the schedule of seed {seed} fails: {}", self.message)?,
            None if self.unusual.is_empty() => {
                writeln!(f, "the usual schedule fails: {}", self.message)?;
            }
            None => writeln!(f, "the schedule fails: {}", self.message)?,
        }
        if !self.shrunk.is_empty() {
            let (enough, all) = (self.shrunk.len(), self.unusual.len());
            let decisions = if enough == 1 { "decision" } else { "decisions" };
            let runs = self.runs;
            writeln!(
                f,
                "minimized to {enough} {decisions} of {all}, in {runs} runs:"
            )?;
            for decision in &self.shrunk {
                writeln!(
                    f,
                    "  {decision}: {}",
                    decision.kind.meaning(decision.answer)
                )?;
            }
        }
        for outside in &self.not_repeatable {
            writeln!(f, "not repeatable: {outside}")?;
        }
        if let Some(seed) = self.seed {
            writeln!(f, "replay with PHASELOOP_SEED={seed}")?;
        }
        if !self.shrunk.is_empty() {
            let decisions: Vec<_> = self.shrunk.iter().map(Decision::to_string).collect();
            let decisions = decisions.join("; ");
            writeln!(
                f,
                "replay the minimized schedule with PHASELOOP_SCHEDULE=\"{decisions}\""
            )?;
        }
        if !self.trace.is_empty() {
            writeln!(f, "the schedule from its first unusual decision on:")?;
            for line in self.trace.iter().take(MOST_LINES) {
                writeln!(f, "  {line}")?;
            }
            if let Some(more) = self.trace.len().checked_sub(MOST_LINES).filter(|n| *n > 0) {
                writeln!(f, "  … and {more} more")?;
            }
        }
        f.write_str(&self.report)
    }
}

debug_as_display!(Found {
    seed,
    unusual,
    shrunk,
    message,
    trace,
    report,
    not_repeatable,
    runs
});

impl std::error::Error for Found {}

/// Returns the lines from the first deviation on.
pub(super) fn trace(log: &Log) -> Vec<String> {
    let first = log.choices.iter().position(Choice::is_unusual);
    let lines = log.lines.as_deref().unwrap_or_default();
    lines.get(first.unwrap_or(0)..).unwrap_or_default().to_vec()
}

/// Compares two runs that should be equal.
pub(super) fn difference(first: &Log, second: &Log) -> Option<String> {
    let (first, second) = (&first.choices, &second.choices);
    let place = (0..first.len().max(second.len())).find(|n| first.get(*n) != second.get(*n))?;
    let describe = |choice: Option<&Choice>| match choice {
        Some(choice) => format!("\"{}\" of {} choices", choice.decision, choice.count),
        None => "the end of the schedule".to_owned(),
    };
    Some(format!(
        "not repeatable: decision {place} was {}, then {}; the program depends on something that the loop does not decide: \
         another thread, a peer outside of the program, the order of a `HashMap`, the real clock, a random number, a static",
        describe(first.get(place)),
        describe(second.get(place)),
    ))
}

/// The failure of a variable that cannot be read.
pub(super) fn refuse(variable: &str, why: &dyn fmt::Display) -> Box<Found> {
    Box::new(Found {
        seed: None,
        unusual: Vec::new(),
        shrunk: Vec::new(),
        message: format!("{variable} cannot be read: {why}"),
        trace: Vec::new(),
        report: String::new(),
        not_repeatable: Vec::new(),
        runs: 0,
    })
}
