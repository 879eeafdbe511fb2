//! What an async listener returns.

use crate::reason::Reason;

/// What an async listener returns: `()`, or a `Result` whose error rejects its promise.
pub trait Handled: 'static {
    /// Returns the error, if there is one.
    ///
    /// # Errors
    ///
    /// The error that the listener has returned.
    fn into_result(self) -> Result<(), Reason>;
}

impl Handled for () {
    fn into_result(self) -> Result<(), Reason> {
        Ok(())
    }
}

impl<E: Into<Box<dyn std::error::Error>> + 'static> Handled for Result<(), E> {
    fn into_result(self) -> Result<(), Reason> {
        self.map_err(Reason::new)
    }
}
