//! Errors without a listener.

use std::fmt;

use crate::error::Error;
use crate::reason::Reason;

/// An error that was emitted without a listener; returned by
/// [`EventEmitter::try_emit`](super::EventEmitter::try_emit).
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Error, events::{ERROR, EventEmitter}};
///
/// fn main() {
///     let emitter = EventEmitter::new();
///     let unheard = emitter.try_emit(ERROR, Error::new("too late")).unwrap_err();
///     assert_eq!(unheard.message(), "too late");
/// }
/// ```
#[derive(Clone)]
pub struct UnheardError {
    pub(super) reason: Reason,
}

impl UnheardError {
    /// Returns the value that [`emit`](super::EventEmitter::emit) would have thrown: the error
    /// itself.
    #[must_use]
    pub fn reason(&self) -> &Reason {
        &self.reason
    }

    /// Returns the error, if it is one of Node's.
    pub(crate) fn error(&self) -> Option<&Error> {
        self.reason.node_error()
    }

    /// Returns the text of the error.
    #[must_use]
    pub fn message(&self) -> String {
        self.reason.to_string()
    }
}

/// Errors with equal texts are equal.
impl PartialEq for UnheardError {
    fn eq(&self, other: &Self) -> bool {
        self.message() == other.message()
    }
}

impl Eq for UnheardError {}

impl fmt::Display for UnheardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.reason, f)
    }
}

impl std::error::Error for UnheardError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.reason.error()
    }
}

/// One line, as [`Display`](fmt::Display) writes it; all fields with `{:#?}`.
impl fmt::Debug for UnheardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.reason, f)
    }
}
