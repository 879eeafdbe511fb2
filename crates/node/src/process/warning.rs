//! Warnings.

use std::fmt::{self, Write as _};

use crate::context::Node;
use phaseloop::extension::stderr;
use phaseloop::task::next_tick;

/// A warning of a program: a problem that does not stop it.
///
/// # Examples
///
/// ```
/// use phaseloop_node::process::{self, Warning};
///
/// fn main() -> phaseloop_node::Exit<()> {
///     phaseloop_node::run(async {
///         process::on_warning(|warning| assert_eq!(warning.code(), Some("APP001")));
///         Warning::new("CacheWarning", "the cache is full").with_code("APP001").emit();
///     })
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Warning {
    name: String,
    text: String,
    code: Option<String>,
    detail: Option<String>,
}

impl Warning {
    /// Creates a warning with the kind `name`: Node's `type`, by default `Warning`.
    pub fn new(name: &str, text: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            text: text.into(),
            code: None,
            detail: None,
        }
    }

    /// Adds a code, with which a program can identify the warning.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Adds a detail, which is printed below the text.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Emits the warning on the next tick; see [`on_warning`](super::on_warning). JavaScript:
    /// `process.emitWarning(..)`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn emit(self) {
        let node = Node::current();
        next_tick(move || {
            if !node.process.warning.emit(&self) {
                self.print();
            }
        });
    }

    /// Prints the warning in Node's format: the process, the code in brackets, the kind and the
    /// text; the detail on its own lines.
    fn print(&self) {
        let mut line = format!("(phaseloop:{}) ", std::process::id());
        if let Some(code) = &self.code {
            let _ = write!(line, "[{code}] ");
        }
        let _ = write!(line, "{self}");
        if let Some(detail) = &self.detail {
            let _ = write!(line, "\n{detail}");
        }
        stderr::print(format_args!("{line}"));
    }

    /// Returns the code, if there is one.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// Returns the detail, if there is one.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// Returns the kind of the warning.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.text)
    }
}
