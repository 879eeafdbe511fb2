//! Finds a short list of deviations that still fails.

use std::time::{Duration, Instant};

use crate::choices::{Kind, Pick};

/// The most runs and the longest time that shrinking takes.
const MOST_RUNS: u64 = 500;
const LONGEST: Duration = Duration::from_secs(10);

/// Runs the program with a list of picks. Returns the unusual picks of that run if it failed.
pub(super) type Attempt<'a> = dyn FnMut(&[Pick]) -> Option<Vec<Pick>> + 'a;

/// Returns the shortest list that was found, and the number of runs.
pub(super) fn shrink(picks: Vec<Pick>, attempt: &mut Attempt<'_>) -> (Vec<Pick>, u64) {
    let mut shrinker = Shrinker {
        best: picks,
        attempt,
        runs: 0,
        since: crate::sys::clock::monotonic(),
    };
    while shrinker.round() {}
    (shrinker.best, shrinker.runs)
}

struct Shrinker<'a, 'b> {
    best: Vec<Pick>,
    attempt: &'a mut Attempt<'b>,
    runs: u64,
    since: Instant,
}

impl Shrinker<'_, '_> {
    /// Runs a shorter or simpler list. If it fails, what that run recorded is the new best list.
    fn try_list(&mut self, list: &[Pick]) -> bool {
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
            let kept = self.best.iter().filter(|pick| pick.kind != kind);
            let kept: Vec<_> = kept.copied().collect();
            if kept.len() < self.best.len() {
                self.try_list(&kept);
            }
        }
    }

    /// Leaves out halves, quarters and so on down to single picks.
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

    /// Leaves out one pick and moves later ones up by one: a question that is not asked any more
    /// takes its number with it, and perhaps those of the questions that followed from it.
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
            for answer in 1..self.best.get(place).map_or(0, |pick| pick.answer) {
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

    fn include(self, gone: Pick, pick: Pick) -> bool {
        let is_same = pick.kind == gone.kind && pick.who == gone.who;
        let is_about_same = gone.who.is_some() && pick.who == gone.who;
        match self {
            Self::SameKind => is_same,
            Self::SameSubject => is_same || is_about_same,
            Self::Any => is_same || is_about_same || pick.who.is_none(),
        }
    }
}

/// Returns the list without one pick, its followers moved up by one. The list is in the order of
/// the questions.
fn without(picks: &[Pick], place: usize, followers: Followers) -> Vec<Pick> {
    let gone = picks[place];
    let later = picks[place + 1..].iter().map(|pick| Pick {
        nth: pick
            .nth
            .saturating_sub(u32::from(followers.include(gone, *pick))),
        ..*pick
    });
    picks[..place].iter().copied().chain(later).collect()
}

/// Orders lists: fewer picks first, then smaller answers.
fn weight(picks: &[Pick]) -> (usize, u64) {
    let answers = picks.iter().map(|pick| u64::from(pick.answer)).sum();
    (picks.len(), answers)
}

#[cfg(test)]
mod tests {
    use super::shrink;
    use crate::choices::{Kind, Pick, Who};

    fn pick(kind: Kind, who: u32, nth: u32, answer: u32) -> Pick {
        Pick {
            kind,
            who: Some(Who::Source(who)),
            nth,
            answer,
        }
    }

    #[test]
    fn what_is_not_needed_goes() {
        let needed = [pick(Kind::Delay, 3, 7, 2), pick(Kind::Event, 1, 0, 1)];
        let mut picks: Vec<_> = (0..40).map(|n| pick(Kind::Wake, n, n, 5)).collect();
        picks.extend((0..40).map(|n| pick(Kind::Delay, 3, n, 3)));
        picks.push(needed[1]);
        let mut fails = |list: &[Pick]| {
            let delayed = list
                .iter()
                .any(|pick| (pick.kind, pick.nth) == (Kind::Delay, 7) && pick.answer >= 2);
            (delayed && list.contains(&needed[1])).then(|| list.to_vec())
        };
        let (best, runs) = shrink(picks, &mut fails);
        assert_eq!(best, needed);
        assert!(runs < 100, "{runs}");
    }

    #[test]
    fn a_question_that_is_not_asked_any_more_takes_its_number_along() {
        // It fails if the last two of the questions that are asked get a deviation; one
        // question fewer is asked for each pick fewer.
        let mut fails = |list: &[Pick]| {
            let last = u32::try_from(list.len()).ok()?.checked_sub(1)?;
            let ends = [last.checked_sub(1)?, last];
            let fails = ends
                .iter()
                .all(|nth| list.iter().any(|pick| pick.nth == *nth));
            fails.then(|| list.to_vec())
        };
        let picks = (0..9).map(|nth| pick(Kind::Delay, 0, nth, 1)).collect();
        let (best, _) = shrink(picks, &mut fails);
        assert_eq!(best.len(), 2);
    }

    #[test]
    fn shrinking_ends_although_every_run_fails_with_another_list() {
        let mut turn = 0;
        let mut fails = |list: &[Pick]| {
            turn += 1;
            let mut list = list.to_vec();
            list.push(pick(Kind::Late, turn, 0, 1));
            Some(list)
        };
        let (_, runs) = shrink(vec![pick(Kind::Late, 0, 0, 1); 30], &mut fails);
        assert!(runs <= super::MOST_RUNS);
    }
}
