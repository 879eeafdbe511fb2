//! Attempts to read or write on a shuffled loop: the chooser cuts them short, or lets them block.

use super::{About, Shuffled};
use crate::choices::{Kind, NIBBLES, Question};
use crate::event_loop::io::sources::{Direction, SourceState};
use crate::sys::poller::Event;

impl Shuffled {
    /// Chooses how many of the requested bytes an attempt transfers; `None` if it would block. Then
    /// the source is not ready until an event reports it again.
    pub(super) fn short_transfer(
        &self,
        source: &SourceState,
        direction: Direction,
        asked: usize,
    ) -> Option<usize> {
        let kind = match direction {
            Direction::Write => Kind::Write,
            _ => Kind::Read,
        };
        let sizes = NIBBLES.iter().take_while(|size| **size < asked).count();
        match self.ask_attempt(kind, source, direction, 2 + sizes) {
            0 => Some(asked),
            1 => None,
            answer => Some(NIBBLES[answer - 2]),
        }
    }

    pub(super) fn ask_attempt(
        &self,
        kind: Kind,
        source: &SourceState,
        direction: Direction,
        count: usize,
    ) -> usize {
        let answer = self.ask(&Question {
            kind,
            who: Some(self.source_number(source.key)),
            count,
            among: &[],
            about: &About(Some(source.header.site)),
        });
        if answer == 1 {
            // The bits that an edge reports once, such as EOF, stay.
            source.defer(direction);
            self.again.borrow_mut().push(Event {
                key: source.key,
                ready: direction.ready(),
            });
        }
        answer
    }
}
