//! How the answers of a seed are chosen.

use std::collections::HashMap;

use super::recording::{Answer, Choice};
use crate::choices::walk::{Random, Walk};
use crate::choices::{Chooser, Question, Who};

/// How an exploration chooses its answers.
///
/// # Examples
///
/// ```
/// use phaseloop::shuffle::{Explore, Strategy};
///
/// fn main() {
///     // All runs with at most one deviation: for a small program a proof.
///     let strategy = Strategy::Deviate { depth: 1, limit: 1_000 };
///     Explore::new().strategy(strategy).run(|| async {
///         phaseloop::spawn_blocking(|| ()).await.unwrap();
///     });
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// Each seed draws, for each [`Kind`](super::Kind), how often it leaves the usual way: never,
    /// in one of 16 questions, one of 4, or one of 2.
    Walk,
    /// Sources and jobs have random priorities, and the highest comes first. At `depth - 1` moments
    /// the first falls behind all others and is delayed as long as allowed. Other questions are
    /// answered as by [`Walk`](Self::Walk). It finds bugs that need few events in an exact order
    /// within a long run.
    Pct {
        /// The number of events whose order the bug needs, at least 1.
        depth: u32,
    },
    /// All runs with no, one, two … up to `depth` deviations, in this order, at most `limit`
    /// runs. What it finds has the fewest deviations possible.
    Deviate {
        /// The most deviations in one run.
        depth: u32,
        /// The most runs.
        limit: u64,
    },
    /// The usual answer to every question, as an ordinary loop gives it.
    Usual,
}

impl Answer for Walk {
    fn answer(&mut self, question: &Question<'_>, _: u32) -> usize {
        self.choose(question)
    }
}

/// [`Strategy::Pct`].
pub(super) struct Pct {
    walk: Walk,
    priorities: HashMap<Who, u64>,
    random: Random,
    /// The questions at which the first falls behind, the next one last.
    changes: Vec<u64>,
    asked: u64,
    /// The next priority of what falls behind; each is lower than all before.
    lowest: u64,
    /// What was delayed by a change, until its next question about a delay.
    delayed: Vec<Who>,
}

/// The lowest priority that is drawn. Below it are those that have fallen behind.
const DRAWN: u64 = 1 << 32;

impl Pct {
    /// Creates the chooser of a seed. `length` is the number of questions of the usual run.
    pub(super) fn new(seed: u64, depth: u32, length: usize) -> Self {
        let mut random = Random::new(!seed);
        let changes = (1..depth).map(|_| random.below(length.max(1) as u64));
        let mut changes: Vec<_> = changes.collect();
        changes.sort_unstable_by(|a, b| b.cmp(a));
        Self {
            walk: Walk::new(seed),
            priorities: HashMap::new(),
            random,
            changes,
            asked: 0,
            lowest: DRAWN,
            delayed: Vec::new(),
        }
    }

    fn first(&mut self, among: &[Who]) -> usize {
        let mut best = (0, 0);
        for (place, who) in among.iter().enumerate() {
            let random = &mut self.random;
            let priority = self.priorities.entry(*who);
            let priority = *priority.or_insert_with(|| DRAWN + (random.next() >> 1));
            if priority > best.1 {
                best = (place, priority);
            }
        }
        best.0
    }

    fn fall_behind(&mut self, who: Who) {
        self.lowest -= 1;
        self.priorities.insert(who, self.lowest);
        self.delayed.push(who);
    }
}

impl Answer for Pct {
    fn answer(&mut self, question: &Question<'_>, nth: u32) -> usize {
        self.asked += 1;
        let is_change = self.changes.last().is_some_and(|at| self.asked > *at);
        if !question.among.is_empty() {
            let first = self.first(question.among);
            if !is_change {
                return first;
            }
            self.changes.pop();
            self.fall_behind(question.among[first]);
            return self.first(question.among);
        }
        if let Some(who) = question.who {
            let was_delayed = self.delayed.iter().position(|delayed| *delayed == who);
            if is_change {
                self.changes.pop();
                self.fall_behind(who);
                return question.count - 1;
            }
            if let Some(place) = was_delayed {
                self.delayed.swap_remove(place);
                return question.count - 1;
            }
        }
        self.walk.answer(question, nth)
    }
}

/// One run of [`Strategy::Deviate`]: the positions of the unusual questions, with the answers.
#[derive(Clone, Default)]
pub(super) struct Deviation {
    unusual: Vec<(usize, u32)>,
    asked: usize,
}

impl Deviation {
    pub(super) fn depth(&self) -> usize {
        self.unusual.len()
    }

    /// Returns the runs with one more deviation, behind the last one of this run.
    pub(super) fn next(&self, choices: &[Choice]) -> Vec<Self> {
        let first = self.unusual.last().map_or(0, |(place, _)| place + 1);
        let questions = choices.iter().enumerate().skip(first);
        let deviations = questions.flat_map(|(place, choice)| {
            (1..choice.count).map(move |answer| {
                let mut unusual = self.unusual.clone();
                unusual.push((place, answer));
                Self { unusual, asked: 0 }
            })
        });
        deviations.collect()
    }
}

impl Answer for Deviation {
    fn answer(&mut self, _: &Question<'_>, _: u32) -> usize {
        let place = self.asked;
        self.asked += 1;
        let found = self.unusual.iter().find(|(at, _)| *at == place);
        found.map_or(0, |(_, answer)| *answer as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, Deviation, Pct};
    use crate::choices::{Decision, Kind, Question, Who};
    use crate::shuffle::recording::Choice;

    fn question(kind: Kind, among: &[Who], count: usize) -> Question<'_> {
        Question {
            kind,
            who: None,
            count,
            among,
            about: &"",
        }
    }

    #[test]
    fn priorities_choose_alike_until_the_first_falls_behind() {
        let among = [Who::Source(0), Who::Source(1), Who::Source(2)];
        let mut pct = Pct::new(3, 2, 10);
        let answers: Vec<_> = (0..12)
            .map(|nth| pct.answer(&question(Kind::Event, &among, 3), nth))
            .collect();
        let changes = answers.windows(2).filter(|pair| pair[0] != pair[1]);
        assert_eq!(changes.count(), 1, "{answers:?}");
    }

    #[test]
    fn deviations_cover_every_answer_behind_the_last_one() {
        let choice = |count| Choice {
            decision: Decision {
                kind: Kind::Event,
                who: None,
                nth: 0,
                answer: 0,
            },
            count,
        };
        let choices = [choice(3), choice(2)];
        let first = Deviation::default().next(&choices);
        let unusual: Vec<_> = first.iter().map(|run| run.unusual[0]).collect();
        assert_eq!(unusual, [(0, 1), (0, 2), (1, 1)]);
        assert_eq!(first[0].next(&choices).len(), 1);
        assert_eq!(first[2].next(&choices).len(), 0);
    }
}
