//! Blame: which user code ran while a timer was late, and what made a busy period long.
//!
//! An *activity* is the body of a callback, one poll, one tick or one microtask closure. Its *own
//! time* is its span without the activities inside it. The drain after a callback is not part of
//! the callback: each of its entries answers for itself, and has the callback as its cause.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use super::record::{Names, Record, Subject, SubjectKey, What};
use crate::sys::usage::Usage;

/// A suspect took at least this share of a slow period, or [`NOTABLE`].
const NOTABLE_SHARE: u64 = 10;
const NOTABLE: u64 = 1_000_000;

/// A timer that is late by less than this is not late, in nanoseconds.
const SMALLEST_LATENESS: u64 = 1_000_000;

/// Returns how late a timer must be to be called late, in nanoseconds, for a threshold of slow
/// periods.
pub(crate) fn late_limit(slow: u64) -> u64 {
    SMALLEST_LATENESS.max(slow / 10)
}

/// Who made timers late, over the records of a recorder.
///
/// Prints one line for each culprit, the one that took most first.
///
/// # Examples
///
/// ```
/// use std::{thread, time::Duration};
/// use phaseloop::{Builder, observe::Recorder, time::sleep};
///
/// fn main() -> std::io::Result<()> {
///     let recorder = Recorder::new().on_slow(|_| ());
///     let event_loop = Builder::new().record(recorder.clone()).build()?;
///     event_loop.block_on(async {
///         let late = phaseloop::spawn(sleep(Duration::from_millis(1)));
///         phaseloop::task::yield_now().await;
///         thread::sleep(Duration::from_millis(20)); // blocks the loop
///         late.await.unwrap();
///     });
///     for culprit in recorder.blame().culprits {
///         println!("{}: {:?}, made {} timers late", culprit.who, culprit.took, culprit.made_late);
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Blame {
    /// The number of late timers and sleeps.
    pub late: usize,
    /// The culprits, the one that took most first, and the machine last.
    pub culprits: Vec<Culprit>,
}

/// Who made timers late.
///
/// # Examples
///
/// ```
/// use std::{thread, time::Duration};
/// use phaseloop::{Builder, observe::Recorder, time::sleep};
///
/// fn main() -> std::io::Result<()> {
///     let recorder = Recorder::new().on_slow(|_| ());
///     let event_loop = Builder::new().record(recorder.clone()).build()?;
///     event_loop.block_on(async {
///         let late = phaseloop::spawn(sleep(Duration::from_millis(1)));
///         phaseloop::task::yield_now().await;
///         thread::sleep(Duration::from_millis(20)); // blocks the loop
///         late.await.unwrap();
///     });
///     for culprit in recorder.blame().culprits {
///         println!("{}: {:?}, made {} timers late", culprit.who, culprit.took, culprit.made_late);
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Culprit {
    /// Who ran while the timers were due.
    pub who: Subject,
    /// The number of timers for which it was the main reason.
    pub made_late: usize,
    /// The time that it ran while those timers were due, summed over them.
    pub took: Duration,
    /// The longest such time of one timer.
    pub longest: Duration,
}

/// A busy period that was longer than the threshold of its recorder.
///
/// Prints as one line, without the prefix `phaseloop: `.
///
/// # Examples
///
/// ```
/// use std::{thread, time::Duration};
/// use phaseloop::{Builder, observe::Recorder};
///
/// fn main() -> std::io::Result<()> {
///     let recorder = Recorder::new().slow(Duration::from_millis(5)).on_slow(|period| {
///         for suspect in &period.suspects {
///             println!("{} took {:?} of {:?}", suspect.who, suspect.took, period.took);
///         }
///     });
///     let event_loop = Builder::new().record(recorder).build()?;
///     event_loop.block_on(async { thread::sleep(Duration::from_millis(10)) });
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SlowPeriod {
    /// The length of the period.
    pub took: Duration,
    /// The CPU time of the loop's thread in the period; [`took`](Self::took) if the platform does
    /// not report it. Busy periods right before may add a tenth of the recorder's threshold to it.
    pub cpu: Duration,
    /// The voluntary and involuntary context switches of the thread in the period.
    pub switches: (u64, u64),
    /// Who used the time, the one that took most first.
    pub suspects: Vec<Suspect>,
    /// The number of timers that became late in the period.
    pub late: usize,
}

/// A part of a slow period.
///
/// # Examples
///
/// ```
/// use std::{thread, time::Duration};
/// use phaseloop::{Builder, observe::Recorder};
///
/// fn main() -> std::io::Result<()> {
///     let recorder = Recorder::new().slow(Duration::from_millis(5)).on_slow(|period| {
///         for suspect in &period.suspects {
///             println!("{} took {:?} of {:?}", suspect.who, suspect.took, period.took);
///         }
///     });
///     let event_loop = Builder::new().record(recorder).build()?;
///     event_loop.block_on(async { thread::sleep(Duration::from_millis(10)) });
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Suspect {
    /// Who ran.
    pub who: Subject,
    /// How often it ran.
    pub times: u64,
    /// Its own time.
    pub took: Duration,
    /// The longest run.
    pub longest: Duration,
    /// The callback in whose drain the longest run happened, if it is not a callback itself.
    pub cause: Option<Subject>,
    /// The number of timers for which it was the main reason.
    pub made_late: usize,
}

/// An activity of the records, with what surrounds it.
pub(crate) struct Activity {
    pub(crate) key: SubjectKey,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The span without the activities inside it.
    pub(crate) own: u64,
    /// The index of the activity that surrounds it.
    pub(crate) parent: Option<usize>,
    /// The callback in whose drain it ran.
    pub(crate) cause: Option<SubjectKey>,
}

/// Returns the activities of `records`, in the order of their ends, and the waits among them: a
/// wait that goes on after a deadline is the machine's fault.
pub(crate) fn activities(records: &[Record]) -> Vec<Activity> {
    let mut found: Vec<Activity> = Vec::new();
    // The activities at each depth that no surrounding activity has claimed yet.
    let mut open: Vec<Vec<usize>> = Vec::new();
    let mut cause = None;
    for record in records {
        if matches!(record.what, What::Wait | What::Turn) {
            cause = None;
        }
        if !record.what.is_activity() && record.what != What::Wait {
            continue;
        }
        let depth = usize::from(record.depth);
        open.resize_with(open.len().max(depth + 2), Vec::new);
        let index = found.len();
        let mut own = record.took();
        for inside in std::mem::take(&mut open[depth + 1]) {
            let inside: &mut Activity = &mut found[inside];
            // The ring may have lost the activity that surrounded an older one.
            if inside.start >= record.start {
                inside.parent = Some(index);
                own = own.saturating_sub(inside.end - inside.start);
            }
        }
        open[depth].push(index);
        if depth == 0 {
            open[0].clear();
        }
        let key = SubjectKey::of(record);
        let is_callback = record.what == What::Callback && depth == 0;
        if is_callback {
            cause = Some(key);
        }
        found.push(Activity {
            key,
            start: record.start,
            end: record.end,
            own,
            parent: None,
            cause: cause.filter(|_| !is_callback),
        });
    }
    found
}

/// The culprit of one late timer.
pub(crate) struct Verdict {
    pub(crate) key: SubjectKey,
    /// The culprit's activity with the largest overlap.
    pub(crate) activity: usize,
    /// How long the culprit ran while the timer was due.
    pub(crate) took: u64,
}

/// Returns the subject whose own time overlaps most with the span from a deadline to the call; the
/// earlier one of two.
pub(crate) fn culprit_of(activities: &[Activity], deadline: u64, call: u64) -> Option<Verdict> {
    // The order of ends lets the search begin with the first activity that ends after the deadline.
    let first = activities.partition_point(|activity| activity.end <= deadline);
    let overlap = |activity: &Activity| {
        let start = activity.start.max(deadline);
        activity.end.min(call).saturating_sub(start)
    };
    let mut sums: HashMap<SubjectKey, (u64, usize, u64)> = HashMap::new();
    let mut order = Vec::new();
    let mut own = HashMap::new();
    for (index, activity) in activities.iter().enumerate().skip(first) {
        if activity.parent.is_none() && activity.start >= call {
            break;
        }
        let overlap = overlap(activity);
        if overlap == 0 {
            continue;
        }
        *own.entry(index).or_insert(0) += i128::from(overlap);
        if let Some(parent) = activity.parent {
            *own.entry(parent).or_insert(0) -= i128::from(overlap);
        }
    }
    let mut indices: Vec<_> = own.keys().copied().collect();
    indices.sort_unstable();
    for index in indices {
        let took = u64::try_from(own[&index]).unwrap_or(0);
        let sum = sums.entry(activities[index].key).or_insert_with(|| {
            order.push(activities[index].key);
            (0, index, 0)
        });
        sum.0 += took;
        if took > sum.2 {
            (sum.1, sum.2) = (index, took);
        }
    }
    let mut best: Option<Verdict> = None;
    for key in order {
        let (took, activity, _) = sums[&key];
        if took > best.as_ref().map_or(0, |best| best.took) {
            best = Some(Verdict {
                key,
                activity,
                took,
            });
        }
    }
    best
}

/// Sums up who made timers late.
pub(crate) fn blame(records: &[Record], names: &Names) -> Blame {
    let activities = activities(records);
    let mut sums: HashMap<SubjectKey, (usize, u64, u64)> = HashMap::new();
    let mut late = 0;
    for record in records.iter().filter(|record| record.what == What::Late) {
        late += 1;
        if let Some(verdict) = culprit_of(&activities, record.start, record.end) {
            let sum = sums.entry(verdict.key).or_default();
            sum.0 += 1;
            sum.1 += verdict.took;
            sum.2 = sum.2.max(verdict.took);
        }
    }
    let mut culprits: Vec<_> = sums
        .into_iter()
        .map(|(key, (made_late, took, longest))| Culprit {
            who: key.subject(names),
            made_late,
            took: Duration::from_nanos(took),
            longest: Duration::from_nanos(longest),
        })
        .collect();
    // The machine comes last: it cannot be changed by the program.
    let is_machine = |culprit: &Culprit| matches!(culprit.who, Subject::Machine);
    culprits.sort_by(|a, b| {
        (is_machine(a).cmp(&is_machine(b)))
            .then_with(|| (b.took, b.longest).cmp(&(a.took, a.longest)))
            .then_with(|| a.who.to_string().cmp(&b.who.to_string()))
    });
    Blame { late, culprits }
}

/// Describes the busy period from `start` to `end`. `records` are those of the period, `overdue`
/// the deadlines of timers that are due and were not called yet. A timer is late after
/// `late_limit`.
pub(crate) fn slow_period(
    records: &[Record],
    (start, end): (u64, u64),
    (overdue, late_limit): (&[u64], u64),
    usage: Option<Usage>,
    names: &Names,
) -> SlowPeriod {
    let activities = activities(records);
    let took = end.saturating_sub(start);
    let mut made_late: HashMap<SubjectKey, usize> = HashMap::new();
    let called = records.iter().filter(|record| record.what == What::Late);
    let called = called.map(|record| (record.start, record.end));
    let waiting = overdue.iter().map(|&deadline| (deadline, end));
    let mut late = 0;
    // A timer that was late before was reported by the period before.
    let is_new = |&(deadline, _): &(u64, u64)| deadline.saturating_add(late_limit) >= start;
    for (deadline, call) in called.chain(waiting).filter(is_new) {
        late += 1;
        if let Some(verdict) = culprit_of(&activities, deadline, call) {
            *made_late.entry(verdict.key).or_default() += 1;
        }
    }
    let mut sums: HashMap<SubjectKey, Sum> = HashMap::new();
    let mut order = Vec::new();
    let is_inside = |activity: &&Activity| activity.start >= start && !activity.key.is_wait();
    for activity in activities.iter().filter(is_inside) {
        let sum = sums.entry(activity.key).or_insert_with(|| {
            order.push(activity.key);
            Sum::default()
        });
        sum.times += 1;
        sum.took += activity.own;
        if activity.own >= sum.longest {
            (sum.longest, sum.cause) = (activity.own, activity.cause);
        }
    }
    order.sort_by_key(|key| std::cmp::Reverse(sums[key].took));
    let is_notable = |key: &&SubjectKey| {
        let sum = sums[*key].took;
        sum >= NOTABLE || sum * NOTABLE_SHARE >= took
    };
    let notable = order.iter().take_while(is_notable).count();
    let suspect = |key: &SubjectKey| Suspect {
        who: key.subject(names),
        times: sums[key].times,
        took: Duration::from_nanos(sums[key].took),
        longest: Duration::from_nanos(sums[key].longest),
        cause: sums[key].cause.map(|cause| cause.subject(names)),
        made_late: made_late.get(key).copied().unwrap_or(0),
    };
    let mut suspects: Vec<_> = order[..notable].iter().map(suspect).collect();
    // A flood of different subjects is summed up in one line.
    let rest = &order[notable..];
    let of_rest: u64 = rest.iter().map(|key| sums[key].took).sum();
    if of_rest * NOTABLE_SHARE >= took && !rest.is_empty() {
        suspects.push(Suspect {
            who: Subject::Loop,
            times: rest.len() as u64,
            took: Duration::from_nanos(of_rest),
            longest: Duration::from_nanos(
                rest.iter().map(|key| sums[key].longest).max().unwrap_or(0),
            ),
            cause: None,
            made_late: rest.iter().filter_map(|key| made_late.get(key)).sum(),
        });
    }
    SlowPeriod {
        took: Duration::from_nanos(took),
        cpu: Duration::from_nanos(usage.map_or(took, |usage| usage.cpu.min(took))),
        switches: usage.map_or((0, 0), |usage| (usage.voluntary, usage.involuntary)),
        suspects,
        late,
    }
}

#[derive(Default)]
struct Sum {
    times: u64,
    took: u64,
    longest: u64,
    cause: Option<SubjectKey>,
}

impl fmt::Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.culprits.is_empty() {
            return writeln!(f, "no timer was late");
        }
        self.culprits
            .iter()
            .try_for_each(|culprit| writeln!(f, "{culprit}"))
    }
}

impl fmt::Display for Culprit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: delayed {} {} by {} in total, by {} at most",
            self.who,
            self.made_late,
            timers(self.made_late),
            Millis(self.took),
            Millis(self.longest)
        )
    }
}

impl fmt::Display for SlowPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (took, cpu) = (Millis(self.took), Millis(self.cpu));
        write!(f, "slow: {took} (cpu {cpu}")?;
        // Without CPU time the suspects were not running, so they must not be blamed without this
        // remark.
        if self.cpu * 2 < self.took {
            let (voluntary, involuntary) = self.switches;
            f.write_str(if voluntary > involuntary {
                ", mostly waiting (a blocking call?)"
            } else {
                ", the process was preempted"
            })?;
        }
        f.write_str(")")?;
        let mut separator = ": ";
        for suspect in &self.suspects {
            f.write_str(separator)?;
            suspect.fmt(f)?;
            separator = ", ";
        }
        if self.late > 0 {
            write!(f, "; {} {} late", self.late, timers(self.late))?;
        }
        Ok(())
    }
}

impl fmt::Display for Suspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (times, took) = (self.times, Millis(self.took));
        let unit = self.who.unit(times);
        write!(f, "{}", self.who)?;
        match &self.who {
            Subject::Loop => write!(f, ": {times} {unit}, {took}")?,
            _ => write!(f, ", {times} {unit}, {took}")?,
        }
        match &self.cause {
            Some(cause) => write!(f, ", after {cause}"),
            None => Ok(()),
        }
    }
}

fn timers(count: usize) -> &'static str {
    if count == 1 { "timer" } else { "timers" }
}

/// Prints a duration in milliseconds with one decimal, as `50.2ms`.
pub(crate) struct Millis(pub(crate) Duration);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1}ms", self.0.as_secs_f64() * 1e3)
    }
}

#[cfg(test)]
mod tests;
