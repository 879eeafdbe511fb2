//! Records, put together for the writers: spans that nest, late timers with their culprits, wakes
//! with the polls they led to.

use std::collections::HashMap;

use super::blame::{Activity, Verdict, activities, culprit_of};
use super::record::{Names, Record, Subject, SubjectKey, What};
use crate::phase_order::Phase;

/// Everything that a writer shows.
pub(crate) struct Trace<'a> {
    pub(crate) records: &'a [Record],
    pub(crate) names: &'a Names,
    pub(crate) activities: Vec<Activity>,
    pub(crate) late: Vec<Late<'a>>,
    /// Which loop of the process it is, from 1.
    pub(crate) number: u32,
    /// Its index among several of one program.
    pub(crate) index: Option<u32>,
}

/// A timer that was late.
pub(crate) struct Late<'a> {
    pub(crate) record: &'a Record,
    pub(crate) culprit: Option<Verdict>,
}

/// A phase of one turn, or a callback with its drain, or a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Span {
    pub(crate) fn of(record: &Record) -> Self {
        Self {
            start: record.start,
            end: record.end,
        }
    }

    fn extend(&mut self, record: &Record) {
        self.end = self.end.max(record.end);
    }
}

/// A callback of a phase together with the drain after it.
pub(crate) struct Callback<'a> {
    pub(crate) record: &'a Record,
    pub(crate) span: Span,
}

/// A wake, and the poll that it led to.
pub(crate) struct Wakeup {
    pub(crate) woken: u64,
    pub(crate) polled: u64,
}

impl<'a> Trace<'a> {
    pub(crate) fn new(records: &'a [Record], names: &'a Names, number: u32) -> Self {
        let activities = activities(records);
        let late = of(records, What::Late)
            .map(|record| Late {
                record,
                culprit: culprit_of(&activities, record.start, record.end),
            })
            .collect();
        Self {
            records,
            names,
            activities,
            late,
            number,
            index: None,
        }
    }

    pub(crate) fn of(&self, what: What) -> impl Iterator<Item = &'a Record> + use<'a> {
        of(self.records, what)
    }

    pub(crate) fn subject(&self, record: &Record) -> Subject {
        SubjectKey::of(record).subject(self.names)
    }

    /// Returns how late the timer was whose callback this is, in nanoseconds; `None` if it was not.
    pub(crate) fn lateness(&self, callback: &Record) -> Option<u64> {
        // The late timers are in the order of their calls.
        let first = self
            .late
            .partition_point(|late| late.record.end < callback.start);
        let called = self.late[first..]
            .iter()
            .take_while(|late| late.record.end == callback.start);
        let mut of_site = called.filter(|late| late.record.site == callback.site);
        of_site.next().map(|late| late.record.took())
    }

    /// Returns the earliest start and the latest end.
    pub(crate) fn extent(&self) -> Span {
        let start = self.records.iter().map(|record| record.start).min();
        let end = self.records.iter().map(|record| record.end).max();
        Span {
            start: start.unwrap_or(0),
            end: end.unwrap_or(0),
        }
    }

    /// Returns the callbacks with their drains, in order.
    pub(crate) fn callbacks(&self) -> Vec<Callback<'a>> {
        let mut found: Vec<Callback<'a>> = Vec::new();
        let mut is_open = false;
        for record in self.records.iter().filter(|record| record.depth == 0) {
            match record.what {
                What::Callback => {
                    is_open = true;
                    found.push(Callback {
                        record,
                        span: Span::of(record),
                    });
                }
                What::Poll | What::Main | What::Tick | What::Microtask => {
                    if let Some(last) = found.last_mut().filter(|_| is_open) {
                        last.span.extend(record);
                    }
                }
                What::Wait | What::Turn => is_open = false,
                What::Late | What::Wake | What::Slow | What::Sent | What::Received => {}
            }
        }
        found
    }

    /// Returns the phases that did something, in order. A wait belongs to the poll phase.
    pub(crate) fn phases(&self) -> Vec<(Phase, Span)> {
        let mut found: Vec<(Phase, Span)> = Vec::new();
        let mut open = None;
        for record in self.records.iter().filter(|record| record.depth == 0) {
            let phase = match record.what {
                What::Callback => record.phase,
                What::Wait => Some(Phase::Poll),
                What::Turn => {
                    open = None;
                    continue;
                }
                What::Poll | What::Main | What::Tick | What::Microtask => open,
                What::Late | What::Wake | What::Slow | What::Sent | What::Received => continue,
            };
            let Some(phase) = phase else { continue };
            match found.last_mut() {
                Some((last, span)) if open == Some(phase) && *last == phase => span.extend(record),
                _ => found.push((phase, Span::of(record))),
            }
            open = Some(phase);
        }
        found
    }

    /// Returns each wake whose poll is among the records.
    pub(crate) fn wakeups(&self) -> Vec<Wakeup> {
        let mut woken: HashMap<u32, u64> = HashMap::new();
        let mut found = Vec::new();
        for record in self.records {
            match record.what {
                What::Wake => {
                    woken.entry(record.id).or_insert(record.end);
                }
                What::Poll => {
                    // A poll is recorded at its end; a wake of itself during it came before.
                    if let Some(at) = woken.remove(&record.id) {
                        if at <= record.start {
                            found.push(Wakeup {
                                woken: at,
                                polled: record.start,
                            });
                        } else {
                            woken.insert(record.id, at);
                        }
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// Returns the span of each task, from its first to its last poll, by number.
    pub(crate) fn tasks(&self) -> Vec<(u32, Span)> {
        let mut spans: HashMap<u32, Span> = HashMap::new();
        for record in self.of(What::Poll) {
            let span = spans.entry(record.id).or_insert(Span::of(record));
            span.start = span.start.min(record.start);
            span.extend(record);
        }
        let mut spans: Vec<_> = spans.into_iter().collect();
        spans.sort_unstable_by_key(|&(id, span)| (span.start, id));
        spans
    }
}

fn of(records: &[Record], what: What) -> impl Iterator<Item = &Record> {
    records.iter().filter(move |record| record.what == what)
}
