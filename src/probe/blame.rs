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
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Blame {
    /// The number of late timers and sleeps.
    pub late: usize,
    /// The culprits, the one that took most first, and the machine last.
    pub culprits: Vec<Culprit>,
}

/// Who made timers late.
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
            "{}: made {} {} late, took {} while they were due, longest {}",
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
                ", the machine took the processor away"
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
mod tests {
    use super::super::record::{Names, Record, Subject, What};
    use super::{blame, late_limit, slow_period};
    use crate::keeper::Keeper;
    use crate::phase_order::Phase;
    use crate::sys::usage::Usage;
    use std::panic::Location;
    use std::time::Duration;

    const MS: u64 = 1_000_000;

    fn record(what: What, start: u64, end: u64) -> Record {
        Record::new(what, start * MS, end * MS)
    }

    fn callback(start: u64, end: u64) -> Record {
        Record {
            phase: Some(Phase::Timers),
            kind: Some(Keeper::Sleep),
            ..record(What::Callback, start, end)
        }
    }

    fn closure(depth: u8, start: u64, end: u64) -> Record {
        Record {
            depth,
            ..record(What::Microtask, start, end)
        }
    }

    fn tick(start: u64, end: u64) -> Record {
        Record {
            site: Some(Location::caller()),
            ..record(What::Tick, start, end)
        }
    }

    fn period(records: &[Record], start: u64, end: u64) -> super::SlowPeriod {
        let usage = Usage {
            cpu: (end - start) * MS,
            ..Usage::default()
        };
        let span = (start * MS, end * MS);
        slow_period(records, span, (&[], MS), Some(usage), &Names::default())
    }

    #[test]
    fn own_time_is_the_span_without_the_activities_inside() {
        let records = [closure(1, 12, 42), tick(10, 50)];
        let found = period(&records, 10, 50);
        let times: Vec<_> = found
            .suspects
            .iter()
            .map(|suspect| (suspect.who.to_string(), suspect.took.as_millis()))
            .collect();
        assert_eq!(times[0], ("microtask".to_owned(), 30));
        assert_eq!(times[1].1, 10);
    }

    #[test]
    fn an_entry_of_a_drain_answers_for_itself_and_has_its_callback_as_cause() {
        let records = [
            callback(0, 0),
            closure(0, 0, 40),
            record(What::Wait, 40, 41),
        ];
        let found = period(&records, 0, 40);
        assert_eq!(found.suspects.len(), 1);
        assert!(matches!(found.suspects[0].who, Subject::Microtask(None)));
        let cause = found.suspects[0].cause.as_ref().unwrap();
        assert_eq!(cause.to_string(), "sleep");
    }

    #[test]
    fn many_runs_of_one_subject_are_one_suspect_and_many_subjects_end_with_the_others() {
        let runs: Vec<_> = (0..20).map(|i| closure(0, i, i + 1)).collect();
        let found = period(&runs, 0, 20);
        assert_eq!((found.suspects.len(), found.suspects[0].times), (1, 20));
        assert_eq!(
            found.to_string(),
            "slow: 20.0ms (cpu 20.0ms): microtask, 20 calls, 20.0ms"
        );
        let sites: Vec<_> = (0..64)
            .map(|i| Record {
                what: What::Poll,
                id: i,
                ..Record::new(What::Poll, u64::from(i) * MS / 2, u64::from(i + 1) * MS / 2)
            })
            .collect();
        let found = period(&sites, 0, 32);
        assert_eq!(found.suspects.len(), 1);
        assert!(
            found.to_string().ends_with("the loop: 64 others, 32.0ms"),
            "{found}"
        );
    }

    #[test]
    fn the_culprit_of_a_late_timer_is_the_largest_overlap_with_its_lateness() {
        let mut late = record(What::Late, 20, 70);
        late.kind = Some(Keeper::Sleep);
        // The tick ran 60 ms, but only 5 of them after the deadline.
        let records = [tick(0, 25), closure(0, 25, 60), tick(60, 70), late];
        let found = blame(&records, &Names::default());
        assert_eq!((found.late, found.culprits.len()), (1, 1));
        let culprit = &found.culprits[0];
        assert!(matches!(culprit.who, Subject::Microtask(_)), "{found}");
        assert_eq!(culprit.took, Duration::from_millis(35));
        assert_eq!(
            culprit.to_string(),
            "microtask: made 1 timer late, took 35.0ms while they were due, longest 35.0ms"
        );
    }

    #[test]
    fn a_wait_that_ends_late_is_the_fault_of_the_machine_which_comes_last() {
        let records = [
            record(What::Wait, 0, 40),
            tick(40, 41),
            record(What::Late, 10, 41),
            tick(41, 49),
            record(What::Late, 42, 49),
        ];
        let found = blame(&records, &Names::default());
        let who: Vec<_> = found.culprits.iter().map(|it| it.who.to_string()).collect();
        assert!(who[0].starts_with("tick ("), "{found}");
        assert_eq!(who[1], "the machine (it woke the loop late)");
        assert_eq!(found.culprits[1].took, Duration::from_millis(30));
    }

    #[test]
    fn of_two_equal_overlaps_the_earlier_subject_is_the_culprit() {
        let late = record(What::Late, 0, 20);
        let records = [tick(0, 10), closure(0, 10, 20), late];
        let found = blame(&records, &Names::default());
        assert!(matches!(found.culprits[0].who, Subject::Tick(_)), "{found}");
    }

    #[test]
    fn time_without_the_processor_is_said() {
        let records = [tick(0, 50)];
        let usage = |voluntary, involuntary| {
            Some(Usage {
                cpu: MS,
                voluntary,
                involuntary,
            })
        };
        let span = (0, 50 * MS);
        let line =
            |usage| slow_period(&records, span, (&[], MS), usage, &Names::default()).to_string();
        assert!(line(usage(3, 1)).contains("mostly waiting (a blocking call?)"));
        assert!(line(usage(1, 3)).contains("the machine took the processor away"));
        assert!(line(None).starts_with("slow: 50.0ms (cpu 50.0ms): tick ("));
    }

    #[test]
    fn a_late_timer_belongs_to_the_period_in_which_it_became_late() {
        let earlier = record(What::Late, 5, 20);
        let records = [earlier, tick(10, 40), record(What::Late, 15, 40)];
        let overdue = (&[7 * MS, 9 * MS, 12 * MS, 30 * MS][..], MS);
        let found = slow_period(
            &records,
            (10 * MS, 40 * MS),
            overdue,
            None,
            &Names::default(),
        );
        assert_eq!((found.late, found.suspects[0].made_late), (4, 4));
    }

    #[test]
    fn a_timer_is_late_after_a_tenth_of_the_threshold_and_a_millisecond() {
        assert_eq!(late_limit(10 * MS), MS);
        assert_eq!(late_limit(50 * MS), 5 * MS);
    }
}
