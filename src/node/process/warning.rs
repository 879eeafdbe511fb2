//! Warnings.

use std::fmt::{self, Write as _};

use super::super::context::Node;
use crate::task::next_tick;

/// Something that a program should know of, and that does not stop it.
///
/// # Examples
///
/// ```
/// use phaseloop::node::process::{self, Warning};
///
/// phaseloop::node::run(async {
///     process::on_warning(|warning| assert_eq!(warning.code(), Some("APP001")));
///     Warning::new("CacheWarning", "the cache is full").with_code("APP001").emit();
/// });
/// ```
#[derive(Clone, Debug)]
pub struct Warning {
    name: String,
    text: String,
    code: Option<String>,
    detail: Option<String>,
}

impl Warning {
    /// A warning of the kind `name`, Node's `type`, which is `Warning` unless there is a better word.
    pub fn new(name: &str, text: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            text: text.into(),
            code: None,
            detail: None,
        }
    }

    /// The warning with a code, by which a program can tell it from others.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// The warning with more text, which standard error shows below it.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Emits the warning, by a tick; see [`on_warning`](super::on_warning).
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

    /// As Node writes it: the process, the code in brackets, the kind and the text; the detail in lines of its own.
    fn print(&self) {
        let mut line = format!("(phaseloop:{}) ", std::process::id());
        if let Some(code) = &self.code {
            let _ = write!(line, "[{code}] ");
        }
        let _ = write!(line, "{self}");
        if let Some(detail) = &self.detail {
            let _ = write!(line, "\n{detail}");
        }
        eprintln!("{line}");
    }

    /// The code, if it has one.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// The further text, if it has one.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// What kind of warning it is.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it says.
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
