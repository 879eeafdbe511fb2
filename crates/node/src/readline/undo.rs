//! The earlier texts of a line.

use std::collections::VecDeque;

/// How many texts are kept.
const MOST: usize = 2048;

/// The longest line, in characters, whose texts are kept: the memory is bounded.
const LONGEST: usize = 1024;

/// A text, and the place of the cursor in it.
pub(super) type Text = (Vec<char>, usize);

/// The texts before and behind the current one.
#[derive(Default)]
pub(super) struct Undo {
    before: VecDeque<Text>,
    behind: Vec<Text>,
}

impl Undo {
    /// Keeps a text that is about to change.
    pub(super) fn keep(&mut self, line: &[char], cursor: usize) {
        if line.len() > LONGEST {
            return self.clear();
        }
        self.push((line.to_vec(), cursor));
    }

    fn push(&mut self, text: Text) {
        self.before.push_back(text);
        if self.before.len() > MOST {
            self.before.pop_front();
        }
    }

    /// Returns the text before the current one.
    pub(super) fn undo(&mut self, current: impl FnOnce() -> Text) -> Option<Text> {
        let before = self.before.pop_back()?;
        self.behind.push(current());
        Some(before)
    }

    /// Returns the text that was left by `undo`.
    pub(super) fn redo(&mut self, current: impl FnOnce() -> Text) -> Option<Text> {
        let behind = self.behind.pop()?;
        self.push(current());
        Some(behind)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
