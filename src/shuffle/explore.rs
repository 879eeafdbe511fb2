//! Runs a program under many seeds, and explains the first one that fails.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::time::Duration;

use super::found::{Found, difference, refuse, trace};
use super::progress::Progress;
use super::quiet;
use super::recording::{Answer, Log, Recorder, Replay};
use super::runs::Run;
use super::shrink::shrink;
use super::strategy::{Deviation, Pct, Strategy};
use crate::choices::walk::Walk;
use crate::choices::{Decision, Kind, Limits, Threads};
use crate::wire::Settings;

/// Runs `program` under `seeds` seeds; see the [module](crate::shuffle).
///
/// The program starts with an empty loop each time, and must be able to run many times in one
/// process. Statics keep their values between runs.
///
/// # Panics
///
/// If a run fails: the program or one of its tasks panics, nothing is left that could wake the
/// program, the loop makes too many turns, its lanes do not become empty, or the same seed gives
/// two different runs. The text is the [`Found`].
///
/// # Examples
///
/// ```
/// use phaseloop::{shuffle, spawn_blocking};
///
/// fn main() {
///     shuffle::explore(100, || async {
///         let mut jobs: Vec<_> = (0..3).map(|n| spawn_blocking(move || n)).collect();
///         let mut sum = 0;
///         while let Some(job) = jobs.pop() {
///             sum += job.await.unwrap();
///         }
///         assert_eq!(sum, 3);
///     });
/// }
/// ```
#[track_caller]
pub fn explore<F: Future<Output = ()>>(seeds: u64, program: impl Fn() -> F) {
    Explore::new().seeds(seeds).run(program);
}

/// Runs `program` once with the answers of a list, as the report of a failure prints it, and the
/// usual answer to all other questions.
///
/// # Panics
///
/// If the run fails, or if the list cannot be parsed.
///
/// # Examples
///
/// A failure that was found once stays a test:
///
/// ```
/// fn main() {
///     phaseloop::shuffle::run("job-run job0 0 =3; late 0 =1", || async {
///         phaseloop::spawn_blocking(|| ()).await.unwrap();
///     });
/// }
/// ```
#[track_caller]
pub fn run<F: Future<Output = ()>>(decisions: &str, program: impl Fn() -> F) {
    let found = match parse_decisions(decisions) {
        Ok(decisions) => Explore::new().run_decisions(&decisions, &program),
        Err(error) => panic!("{error}"),
    };
    if let Err(found) = found {
        panic!("{found}");
    }
}

fn parse_decisions(text: &str) -> Result<Vec<Decision>, super::ParseDecisionError> {
    let decisions = text.split(';').map(str::trim);
    decisions
        .filter(|decision| !decision.is_empty())
        .map(str::parse)
        .collect()
}

/// When an exploration runs a seed twice to see whether it can be repeated.
///
/// # Examples
///
/// ```
/// use phaseloop::shuffle::{Determinism, Explore};
/// use phaseloop::task::yield_now;
///
/// fn main() {
///     // Each tenth seed runs twice: a difference is a program that reads a real clock.
///     let explore = Explore::new().seeds(20).check(Determinism::Every(10));
///     explore.run(|| async { yield_now().await });
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Determinism {
    /// The usual run, and every seed that fails.
    #[default]
    EveryFailure,
    /// Also every n-th seed.
    Every(u64),
    /// No seed.
    Off,
}

/// An exploration with options; [`explore`] has none but the number of seeds.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::{shuffle::{Explore, Kind}, time::sleep};
///
/// fn main() {
///     // A test of times needs timers that are not late.
///     Explore::new().seeds(20).without(Kind::Late).run(|| async {
///         let start = phaseloop::time::now();
///         sleep(Duration::from_millis(5)).await;
///         assert_eq!(phaseloop::time::now() - start, Duration::from_millis(5));
///     });
/// }
/// ```
#[derive(Clone, Debug)]
#[must_use = "an exploration does nothing until `run`"]
pub struct Explore {
    seeds: u64,
    first: u64,
    strategy: Option<Strategy>,
    pub(super) limits: Limits,
    without: Vec<Kind>,
    check: Determinism,
    pub(super) network: Settings,
    /// How many loops run the program, and what makes them one.
    #[cfg(feature = "cluster")]
    pub(crate) several: Option<(usize, super::several::MakeCrew)>,
}

impl Explore {
    /// Creates an exploration of 100 seeds with the default options.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::shuffle::Explore;
    /// use phaseloop::spawn;
    ///
    /// fn main() {
    ///     Explore::new().first(100).seeds(20).run(|| async {
    ///         let sum = spawn(async { 1 }).await.unwrap() + spawn(async { 2 }).await.unwrap();
    ///         assert_eq!(sum, 3); // in every order
    ///     });
    /// }
    /// ```
    pub fn new() -> Self {
        Self {
            seeds: 100,
            first: 0,
            strategy: None,
            limits: Limits {
                threads: Threads::Refuse,
                max_drain: NonZeroU64::new(1_000_000),
                ..Limits::default()
            },
            without: Vec::new(),
            check: Determinism::default(),
            network: Settings::default(),
            #[cfg(feature = "cluster")]
            several: None,
        }
    }

    /// Sets the number of seeds.
    pub fn seeds(mut self, seeds: u64) -> Self {
        self.seeds = seeds;
        self
    }

    /// Sets the first seed, 0 by default.
    pub fn first(mut self, seed: u64) -> Self {
        self.first = seed;
        self
    }

    /// Sets how the answers are chosen. By default three of four seeds use [`Strategy::Walk`], and
    /// the fourth [`Strategy::Pct`] with depth 3.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = Some(strategy);
        self
    }

    /// Sets by how much an event or a job may be delayed, and a timer be late: 50 ms by default, in
    /// the time of the loop's clock.
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.limits.max_delay = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        self
    }

    /// Sets the number of turns after which a run fails: 200,000 by default.
    pub fn max_turns(mut self, turns: u64) -> Self {
        self.limits.max_turns = turns;
        self
    }

    /// Sets the number of ticks and microtasks after which a run fails whose lanes do not become
    /// empty: 1,000,000 by default. Two tasks that always wake each other starve timers and I/O, as
    /// in Node.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{shuffle::Explore, task::yield_microtask};
    ///
    /// fn main() {
    ///     let explore = Explore::new().max_drain(1_000.try_into().unwrap());
    ///     let found = explore.try_run(|| async {
    ///         loop {
    ///             yield_microtask().await;
    ///         }
    ///     });
    ///     assert!(found.unwrap_err().message.contains("1000 ticks and microtasks"));
    /// }
    /// ```
    pub fn max_drain(mut self, entries: NonZeroU64) -> Self {
        self.limits.max_drain = Some(entries);
        self
    }

    /// Sets the real time after which a run fails that waits for something outside of the program:
    /// one second by default.
    pub fn stall(mut self, time: Duration) -> Self {
        self.limits.stall = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self
    }

    /// Sets the windows, links and losses of the [network in memory](crate::sim).
    pub fn network(mut self, settings: Settings) -> Self {
        self.network = settings;
        self
    }

    /// Sets whether other threads may send to the loop. By default they may not: a run in which one
    /// sends fails, since the moment of the send cannot be repeated.
    ///
    /// # Examples
    ///
    /// After `cargo add futures`:
    ///
    /// ```
    /// use phaseloop::shuffle::{Explore, Threads};
    ///
    /// fn main() {
    ///     let explore = Explore::new().seeds(10).threads(Threads::Allow);
    ///     explore.run(|| async {
    ///         let (sender, receiver) = futures::channel::oneshot::channel();
    ///         let thread = std::thread::spawn(move || sender.send(7));
    ///         assert_eq!(receiver.await, Ok(7));
    ///         thread.join().unwrap().unwrap();
    ///     });
    /// }
    /// ```
    pub fn threads(mut self, threads: Threads) -> Self {
        self.limits.threads = threads;
        self
    }

    /// Gives the usual answer to all questions of a kind.
    pub fn without(mut self, kind: Kind) -> Self {
        self.without.push(kind);
        self
    }

    /// Sets when a seed runs twice to see whether it can be repeated.
    pub fn check(mut self, check: Determinism) -> Self {
        self.check = check;
        self
    }

    /// Runs the program under the seeds.
    ///
    /// # Panics
    ///
    /// If a run fails; see [`explore`].
    #[track_caller]
    pub fn run<F: Future<Output = ()>>(self, program: impl Fn() -> F) {
        if let Err(found) = self.with_environment().and_then(|plan| plan.go(&program)) {
            panic!("{found}");
        }
    }

    /// Runs the program under the seeds. The environment is not read.
    ///
    /// # Errors
    ///
    /// The first run that failed.
    pub fn try_run<F: Future<Output = ()>>(
        self,
        program: impl Fn() -> F,
    ) -> Result<Explored, Box<Found>> {
        Plan::Seeds(self).go(&program)
    }

    /// Applies `PHASELOOP_SCHEDULE`, `PHASELOOP_SEED` and `PHASELOOP_SEEDS`.
    fn with_environment(mut self) -> Result<Plan, Box<Found>> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        if let Some(decisions) = variable("PHASELOOP_SCHEDULE") {
            let decisions = parse_decisions(&decisions)
                .map_err(|error| refuse("PHASELOOP_SCHEDULE", &error))?;
            return Ok(Plan::Decisions(self, decisions));
        }
        if let Some(seeds) = variable("PHASELOOP_SEED") {
            let range = parse_seeds(&seeds)
                .ok_or_else(|| refuse("PHASELOOP_SEED", &"write it as `117` or `117..217`"))?;
            (self.first, self.seeds) = range;
        } else if let Some(seeds) = variable("PHASELOOP_SEEDS") {
            let number = seeds.parse();
            self.seeds = number.map_err(|error| refuse("PHASELOOP_SEEDS", &error))?;
        }
        Ok(Plan::Seeds(self))
    }

    fn run_seeds<F: Future<Output = ()>>(
        &self,
        program: &impl Fn() -> F,
    ) -> Result<Explored, Box<Found>> {
        let mut explored = Explored::default();
        let usual = self.run_once(Replay::new(&[]), program, false);
        explored.add(&usual);
        self.judge(&usual, None, program, || Replay::new(&[]), true)?;
        let length = usual.log.choices.len();
        if let Some(Strategy::Deviate { depth, limit }) = self.strategy {
            self.run_deviations(depth, limit, program, &mut explored)?;
            return Ok(explored);
        }
        let mut progress = Progress::new(self.seeds);
        for seed in self.first..self.first.saturating_add(self.seeds) {
            progress.show(seed - self.first);
            let answer = || Self::answers(self.strategy, seed, length);
            let outcome = self.run_once(answer(), program, false);
            explored.add(&outcome);
            let twice = matches!(self.check, Determinism::Every(n) if n > 0 && seed % n == 0);
            self.judge(&outcome, Some(seed), program, answer, twice)?;
        }
        Ok(explored)
    }

    /// Returns what answers the questions of a seed.
    fn answers(strategy: Option<Strategy>, seed: u64, length: usize) -> Box<dyn Answer> {
        match strategy {
            None if seed % 4 == 3 => Box::new(Pct::new(seed, 3, length)),
            None | Some(Strategy::Walk) => Box::new(Walk::new(seed)),
            Some(Strategy::Pct { depth }) => Box::new(Pct::new(seed, depth, length)),
            Some(Strategy::Usual | Strategy::Deviate { .. }) => Box::new(Replay::new(&[])),
        }
    }

    fn run_deviations<F: Future<Output = ()>>(
        &self,
        depth: u32,
        limit: u64,
        program: &impl Fn() -> F,
        explored: &mut Explored,
    ) -> Result<(), Box<Found>> {
        let mut progress = Progress::new(limit);
        let mut left = VecDeque::from([Deviation::default()]);
        while let Some(deviation) = left.pop_front() {
            if explored.runs >= limit {
                return Ok(());
            }
            progress.show(explored.runs);
            let outcome = self.run_once(deviation.clone(), program, false);
            explored.add(&outcome);
            self.judge(&outcome, None, program, || deviation.clone(), false)?;
            if deviation.depth() < depth as usize {
                left.extend(deviation.next(&outcome.log.choices));
            }
        }
        Ok(())
    }

    fn run_decisions<F: Future<Output = ()>>(
        &self,
        decisions: &[Decision],
        program: &impl Fn() -> F,
    ) -> Result<Explored, Box<Found>> {
        let outcome = self.run_once(Replay::new(decisions), program, true);
        let mut explored = Explored::default();
        explored.add(&outcome);
        match outcome.failure {
            None => Ok(explored),
            Some(failure) => Err(Box::new(Found {
                seed: None,
                unusual: outcome.log.unusual(),
                shrunk: outcome.log.unusual(),
                message: failure.message,
                trace: trace(&outcome.log),
                report: failure.report,
                not_repeatable: outcome.outside,
                runs: 1,
            })),
        }
    }

    /// Checks the outcome of a run. `again` returns what answered its questions.
    fn judge<F: Future<Output = ()>, A: Answer + 'static>(
        &self,
        outcome: &Outcome,
        seed: Option<u64>,
        program: &impl Fn() -> F,
        again: impl Fn() -> A,
        twice: bool,
    ) -> Result<(), Box<Found>> {
        let failure = outcome.failure.as_ref();
        let is_checked = self.check != Determinism::Off && (twice || failure.is_some());
        if is_checked {
            let second = self.run_once(again(), program, false);
            if let Some(message) = difference(&outcome.log, &second.log) {
                return Err(Box::new(Found {
                    seed,
                    unusual: outcome.log.unusual(),
                    shrunk: Vec::new(),
                    message,
                    trace: Vec::new(),
                    report: String::new(),
                    not_repeatable: outcome.outside.clone(),
                    runs: 2,
                }));
            }
        }
        match failure {
            None => Ok(()),
            Some(_) => Err(Box::new(self.explain(outcome, seed, program))),
        }
    }

    /// Shrinks a failure, and runs what is left once more with a trace.
    fn explain<F: Future<Output = ()>>(
        &self,
        outcome: &Outcome,
        seed: Option<u64>,
        program: &impl Fn() -> F,
    ) -> Found {
        let unusual = outcome.log.unusual();
        let (shrunk, runs) = shrink(unusual.clone(), &mut |decisions| {
            let outcome = self.run_once(Replay::new(decisions), program, false);
            outcome.failure.map(|_| outcome.log.unusual())
        });
        let last = self.run_once(Replay::new(&shrunk), program, true);
        let first = outcome.failure.as_ref();
        let failure = last.failure.as_ref().or(first);
        Found {
            seed,
            unusual,
            shrunk,
            message: failure.map_or_else(String::new, |failure| failure.message.clone()),
            trace: trace(&last.log),
            report: failure.map_or_else(String::new, |failure| failure.report.clone()),
            not_repeatable: last.outside,
            runs,
        }
    }

    /// Runs the program once. With `traced`, the log has a line for each question.
    fn run_once<F: Future<Output = ()>>(
        &self,
        answer: impl Answer + 'static,
        program: &impl Fn() -> F,
        traced: bool,
    ) -> Outcome {
        let log = Rc::new(RefCell::new(Log::default()));
        log.borrow_mut().lines = traced.then(Vec::new);
        let recorder = Recorder::new(answer, &self.without, log.clone());
        let mut run = Run::new(self, Box::new(recorder));
        let result = quiet::catch(|| run.block_on(program()));
        let message = result.err().or_else(|| run.refused_sender());
        let outside = run.used_outside();
        let failure = message.map(|message| Failure {
            message,
            report: if traced { run.report() } else { String::new() },
        });
        // The drops of what the program has left run user code, too.
        let dropped = quiet::catch(|| drop(run));
        let failure = failure.or_else(|| {
            dropped.err().map(|message| Failure {
                message,
                report: String::new(),
            })
        });
        Outcome {
            failure,
            outside,
            log: log.take(),
        }
    }
}

impl Default for Explore {
    fn default() -> Self {
        Self::new()
    }
}

/// What an exploration runs.
enum Plan {
    Seeds(Explore),
    Decisions(Explore, Vec<Decision>),
}

impl Plan {
    fn go<F: Future<Output = ()>>(self, program: &impl Fn() -> F) -> Result<Explored, Box<Found>> {
        match self {
            Self::Seeds(explore) => explore.run_seeds(program),
            Self::Decisions(explore, decisions) => explore.run_decisions(&decisions, program),
        }
    }
}

/// The outcome of one run.
struct Outcome {
    failure: Option<Failure>,
    /// What the program has used that cannot be repeated.
    outside: Vec<String>,
    log: Log,
}

struct Failure {
    message: String,
    report: String,
}

/// What an exploration without a failure has done.
///
/// # Examples
///
/// ```
/// use phaseloop::shuffle::Explore;
/// use phaseloop::task::yield_now;
///
/// fn main() {
///     let explore = Explore::new().seeds(20);
///     let explored = explore.try_run(|| async { yield_now().await }).unwrap();
///     println!("{} runs, {} decisions", explored.runs, explored.questions);
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explored {
    /// The runs, including the usual one.
    pub runs: u64,
    /// The questions of all runs.
    pub questions: u64,
}

impl Explored {
    fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.questions += outcome.log.choices.len() as u64;
    }
}

/// Returns the first seed and the number of seeds.
fn parse_seeds(text: &str) -> Option<(u64, u64)> {
    match text.split_once("..") {
        None => Some((text.parse().ok()?, 1)),
        Some((first, end)) => {
            let (first, end): (u64, u64) = (first.parse().ok()?, end.parse().ok()?);
            Some((first, end.checked_sub(first)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{parse_decisions, parse_seeds};

    #[test]
    fn a_seed_is_a_number_or_a_range() {
        assert_eq!(parse_seeds("117"), Some((117, 1)));
        assert_eq!(parse_seeds("117..217"), Some((117, 100)));
        for bad in ["", "x", "5..", "9..5"] {
            assert_eq!(parse_seeds(bad), None, "{bad}");
        }
    }

    #[test]
    fn picks_are_separated_by_semicolons() {
        assert_eq!(parse_decisions("late 0 =1; job 2 =1;").unwrap().len(), 2);
        assert!(parse_decisions("late 0 =1, job 2 =1").is_err());
    }
}
