//! Which of several loops a line is about.

use std::fmt;

/// Prints as `loop 1: `, and as nothing for a loop alone.
pub(crate) struct OfLoop(pub(crate) Option<u32>);

impl fmt::Display for OfLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(index) => write!(f, "loop {index}: "),
            None => Ok(()),
        }
    }
}
