//! Lines of the program, for errors and reports.

use std::panic::Location;

/// The line of the program that created something.
pub(crate) type Site = &'static Location<'static>;
