//! Source locations, as reports show them.

use std::panic::Location;

/// A line of the program: it created a handle, spawned a task, or waits.
pub(crate) type Site = &'static Location<'static>;
