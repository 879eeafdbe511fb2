//! What shuffled loops of one thread share: the chooser, the network in memory, and the numbers of
//! what is asked about.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::choices::{Chooser, Kind, Question};
use crate::wire::Wire;

/// One millisecond, the smallest lateness.
const MILLISECOND: u64 = 1_000_000;

/// What the loops of a thread share. A loop alone has one of its own.
#[derive(Clone)]
pub(crate) struct Group {
    chooser: Rc<RefCell<Box<dyn Chooser>>>,
    /// The network in memory.
    pub(super) wire: Rc<RefCell<Wire>>,
    /// The numbers of the next source and the next job.
    pub(super) sources: Rc<Cell<u32>>,
    pub(super) jobs: Rc<Cell<u32>>,
}

/// Returns a number, and counts it.
pub(super) fn next_number(next: &Cell<u32>) -> u32 {
    next.replace(next.get() + 1)
}

impl Group {
    pub(crate) fn new(chooser: Box<dyn Chooser>, wire: Wire) -> Self {
        Self {
            chooser: Rc::new(RefCell::new(chooser)),
            wire: Rc::new(RefCell::new(wire)),
            sources: Rc::default(),
            jobs: Rc::default(),
        }
    }

    /// Asks for an answer. A question with a single answer is not asked.
    pub(super) fn ask(&self, question: &Question<'_>) -> usize {
        if question.count < 2 {
            return 0;
        }
        let answer = self.chooser.borrow_mut().choose(question);
        answer.min(question.count - 1)
    }

    /// Asks how far the clock moves beyond a deadline.
    pub(super) fn ask_lateness(&self, max_delay: u64) -> u64 {
        let answer = self.ask(&Question {
            kind: Kind::Late,
            who: None,
            count: 3,
            among: &[],
            about: &"the clock moves to the next deadline",
        });
        match answer {
            0 => 0,
            1 => MILLISECOND.min(max_delay),
            _ => max_delay,
        }
    }
}
