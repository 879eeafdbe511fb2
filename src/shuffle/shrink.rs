//! Finds a short list of deviations that still fails.

use std::time::{Duration, Instant};

use crate::choices::{Decision, Kind};

/// The most runs and the longest time that shrinking takes.
const MOST_RUNS: u64 = 500;
const LONGEST: Duration = Duration::from_secs(10);

/// Runs the program with a list of decisions. Returns the unusual ones of that run if it failed.
pub(super) type Attempt<'a> = dyn FnMut(&[Decision]) -> Option<Vec<Decision>> + 'a;

/// Returns the shortest list that was found, and the number of runs.
pub(super) fn shrink(decisions: Vec<Decision>, attempt: &mut Attempt<'_>) -> (Vec<Decision>, u64) {
    let mut shrinker = Shrinker {
        best: decisions,
        attempt,
        runs: 0,
        since: crate::sys::clock::monotonic(),
    };
    while shrinker.round() {}
    (shrinker.best, shrinker.runs)
}

struct Shrinker<'a, 'b> {
    best: Vec<Decision>,
    attempt: &'a mut Attempt<'b>,
    runs: u64,
    since: Instant,
}

impl Shrinker<'_, '_> {
    /// Runs a shorter or simpler list. If it fails, what that run recorded is the new best list.
    fn try_list(&mut self, list: &[Decision]) -> bool {
        if self.runs == MOST_RUNS || self.since.elapsed() > LONGEST {
            return false;
        }
        self.runs += 1;
        let Some(recorded) = (self.attempt)(list) else {
            return false;
        };
        let is_better = weight(&recorded) < weight(&self.best);
        if is_better {
            self.best = recorded;
        }
        is_better
    }

    /// Returns whether the round has gained something.
    fn round(&mut self) -> bool {
        let before = weight(&self.best);
        self.without_kinds();
        self.without_runs();
        self.without_one_and_its_successors();
        self.with_smaller_answers();
        weight(&self.best) < before
    }

    fn without_kinds(&mut self) {
        for kind in Kind::ALL {
            let kept = self.best.iter().filter(|decision| decision.kind != kind);
            let kept: Vec<_> = kept.copied().collect();
            if kept.len() < self.best.len() {
                self.try_list(&kept);
            }
        }
    }

    /// Leaves out halves, quarters and so on down to single decisions.
    fn without_runs(&mut self) {
        let mut length = self.best.len().div_ceil(2);
        while length > 0 {
            let mut start = 0;
            while start < self.best.len() {
                let end = (start + length).min(self.best.len());
                let kept = [&self.best[..start], &self.best[end..]].concat();
                if !self.try_list(&kept) {
                    start = end;
                }
            }
            length = if length == 1 { 0 } else { length.div_ceil(2) };
        }
    }

    /// Leaves out one decision and moves later ones up by one: a question that is not asked any
    /// more takes its number with it, and perhaps those of the questions that followed from it.
    fn without_one_and_its_successors(&mut self) {
        let mut place = 0;
        while place < self.best.len() {
            let gains = Followers::ALL
                .into_iter()
                .any(|followers| self.try_list(&without(&self.best, place, followers)));
            if !gains {
                place += 1;
            }
        }
    }

    fn with_smaller_answers(&mut self) {
        for place in 0..self.best.len() {
            for answer in 1..self.best.get(place).map_or(0, |decision| decision.answer) {
                let mut list = self.best.clone();
                list[place].answer = answer;
                if self.try_list(&list) {
                    break;
                }
            }
        }
    }
}

/// Which later questions are not asked any more, one each, once a question is not.
#[derive(Clone, Copy)]
enum Followers {
    /// Those of the same kind and subject.
    SameKind,
    /// Those about the same subject, such as the delay of the event that a write waited for.
    SameSubject,
    /// Also those about no subject, such as the order of a batch.
    Any,
}

impl Followers {
    const ALL: [Self; 3] = [Self::SameKind, Self::SameSubject, Self::Any];

    fn include(self, gone: Decision, decision: Decision) -> bool {
        let is_same = decision.kind == gone.kind && decision.who == gone.who;
        let is_about_same = gone.who.is_some() && decision.who == gone.who;
        match self {
            Self::SameKind => is_same,
            Self::SameSubject => is_same || is_about_same,
            Self::Any => is_same || is_about_same || decision.who.is_none(),
        }
    }
}

/// Returns the list without one decision, its followers moved up by one. The list is in the
/// order of the questions.
fn without(decisions: &[Decision], place: usize, followers: Followers) -> Vec<Decision> {
    let gone = decisions[place];
    let later = decisions[place + 1..].iter().map(|decision| Decision {
        nth: decision
            .nth
            .saturating_sub(u32::from(followers.include(gone, *decision))),
        ..*decision
    });
    decisions[..place].iter().copied().chain(later).collect()
}

/// Orders lists: fewer decisions first, then smaller answers.
fn weight(decisions: &[Decision]) -> (usize, u64) {
    let answers = decisions
        .iter()
        .map(|decision| u64::from(decision.answer))
        .sum();
    (decisions.len(), answers)
}

#[cfg(test)]
mod tests {
    use super::shrink;
    use crate::choices::{Decision, Kind, Who};

    fn decision(kind: Kind, who: u32, nth: u32, answer: u32) -> Decision {
        Decision {
            kind,
            who: Some(Who::Source(who)),
            nth,
            answer,
        }
    }

    #[test]
    fn what_is_not_needed_goes() {
        let needed = [
            decision(Kind::Delay, 3, 7, 2),
            decision(Kind::Event, 1, 0, 1),
        ];
        let mut decisions: Vec<_> = (0..40).map(|n| decision(Kind::Wake, n, n, 5)).collect();
        decisions.extend((0..40).map(|n| decision(Kind::Delay, 3, n, 3)));
        decisions.push(needed[1]);
        let mut fails = |list: &[Decision]| {
            let delayed = list.iter().any(|decision| {
                (decision.kind, decision.nth) == (Kind::Delay, 7) && decision.answer >= 2
            });
            (delayed && list.contains(&needed[1])).then(|| list.to_vec())
        };
        let (best, runs) = shrink(decisions, &mut fails);
        assert_eq!(best, needed);
        assert!(runs < 100, "{runs}");
    }

    #[test]
    fn a_question_that_is_not_asked_any_more_takes_its_number_along() {
        // It fails if the last two of the questions that are asked get a deviation; one
        // question fewer is asked for each decision fewer.
        let mut fails = |list: &[Decision]| {
            let last = u32::try_from(list.len()).ok()?.checked_sub(1)?;
            let ends = [last.checked_sub(1)?, last];
            let fails = ends
                .iter()
                .all(|nth| list.iter().any(|decision| decision.nth == *nth));
            fails.then(|| list.to_vec())
        };
        let decisions = (0..9).map(|nth| decision(Kind::Delay, 0, nth, 1)).collect();
        let (best, _) = shrink(decisions, &mut fails);
        assert_eq!(best.len(), 2);
    }

    #[test]
    fn shrinking_ends_although_every_run_fails_with_another_list() {
        let mut turn = 0;
        let mut fails = |list: &[Decision]| {
            turn += 1;
            let mut list = list.to_vec();
            list.push(decision(Kind::Late, turn, 0, 1));
            Some(list)
        };
        let (_, runs) = shrink(vec![decision(Kind::Late, 0, 0, 1); 30], &mut fails);
        assert!(runs <= super::MOST_RUNS);
    }
}
