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
        "microtask: delayed 1 timer by 35.0ms in total, by 35.0ms at most"
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
    let line = |usage| slow_period(&records, span, (&[], MS), usage, &Names::default()).to_string();
    assert!(line(usage(3, 1)).contains("mostly waiting (a blocking call?)"));
    assert!(line(usage(1, 3)).contains("the process was preempted"));
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
