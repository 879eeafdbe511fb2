//! The log of a run: every question, by name, with its answer.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::rc::Rc;

use crate::choices::{Chooser, Decision, Kind, Question, Who};

/// A question that was asked, with its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) decision: Decision,
    pub(super) count: u32,
}

impl Choice {
    pub(super) fn is_unusual(&self) -> bool {
        self.decision.answer != 0
    }
}

/// The questions of one run, and what they were about if that was asked for.
#[derive(Default)]
pub(super) struct Log {
    pub(super) choices: Vec<Choice>,
    /// One line for each question.
    pub(super) lines: Option<Vec<String>>,
}

impl Log {
    pub(super) fn unusual(&self) -> Vec<Decision> {
        let unusual = self.choices.iter().filter(|choice| choice.is_unusual());
        unusual.map(|choice| choice.decision).collect()
    }
}

/// Records the answers of another chooser.
pub(super) struct Recorder<C> {
    chooser: C,
    /// Questions of these kinds get the usual answer.
    without: Vec<Kind>,
    counts: HashMap<(Kind, Option<Who>), u32>,
    log: Rc<RefCell<Log>>,
}

impl<C> Recorder<C> {
    pub(super) fn new(chooser: C, without: &[Kind], log: Rc<RefCell<Log>>) -> Self {
        Self {
            chooser,
            without: without.to_vec(),
            counts: HashMap::new(),
            log,
        }
    }
}

/// Answers a question whose name is known.
pub(super) trait Answer {
    fn answer(&mut self, question: &Question<'_>, nth: u32) -> usize;
}

impl Answer for Box<dyn Answer> {
    fn answer(&mut self, question: &Question<'_>, nth: u32) -> usize {
        (**self).answer(question, nth)
    }
}

impl<C: Answer> Chooser for Recorder<C> {
    fn choose(&mut self, question: &Question<'_>) -> usize {
        let next = self
            .counts
            .entry((question.kind, question.who))
            .or_default();
        let nth = *next;
        *next += 1;
        let answer = if self.without.contains(&question.kind) {
            0
        } else {
            let answer = self.chooser.answer(question, nth);
            answer.min(question.count - 1)
        };
        let decision = Decision {
            kind: question.kind,
            who: question.who,
            nth,
            answer: number(answer),
        };
        let mut log = self.log.borrow_mut();
        log.choices.push(Choice {
            decision,
            count: number(question.count),
        });
        if let Some(lines) = &mut log.lines {
            lines.push(line(&decision, question));
        }
        answer
    }
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn line(decision: &Decision, question: &Question<'_>) -> String {
    let mut line = format!("{decision}: {}", decision.kind.meaning(decision.answer));
    if let Some(who) = question.among.get(decision.answer as usize) {
        let _ = write!(line, " ({who})");
    }
    let about = question.about.to_string();
    if !about.is_empty() {
        let _ = write!(line, "  {about}");
    }
    line
}

/// Gives the answers of a list, and the usual one to every other question.
pub(super) struct Replay(HashMap<(Kind, Option<Who>, u32), u32>);

impl Replay {
    pub(super) fn new(decisions: &[Decision]) -> Self {
        let entry =
            |decision: &Decision| ((decision.kind, decision.who, decision.nth), decision.answer);
        Self(decisions.iter().map(entry).collect())
    }
}

impl Answer for Replay {
    fn answer(&mut self, question: &Question<'_>, nth: u32) -> usize {
        let answer = self.0.get(&(question.kind, question.who, nth));
        answer.map_or(0, |answer| *answer as usize)
    }
}
