//! Lines of the program, for errors and reports.

use std::panic::Location;

/// The line of the program that created something.
pub(crate) type Site = &'static Location<'static>;

/// Returns the line below an error's text, such as `\n    at src/main.rs:7:5`. It is empty for a
/// line of this crate, which would not help.
pub(crate) fn line_of(what: &str, site: Option<Site>) -> String {
    let own = file!().strip_suffix("site.rs").unwrap_or(file!());
    let site = site.filter(|site| !site.file().starts_with(own));
    site.map_or_else(String::new, |site| format!("\n    {what} {site}"))
}
