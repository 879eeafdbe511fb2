//! Errors that say what was done to which file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What is inside the [`io::Error`] of an operation on a file: the operation, its paths, and the system's error.
///
/// The outer error has the kind of the system's; it does not have its number, which is here.
///
/// # Examples
///
/// ```
/// use phaseloop::fs;
///
/// phaseloop::block_on(async {
///     let error = fs::read("/no/such/file").await.unwrap_err();
///     assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
///     assert!(error.to_string().starts_with("read \"/no/such/file\": "));
///     let inner = fs::Error::of(&error).unwrap();
///     assert_eq!(inner.operation(), "read");
///     assert_eq!(inner.path(), Some("/no/such/file".as_ref()));
///     assert!(inner.raw_os_error().is_some());
/// });
/// ```
#[derive(Debug)]
pub struct Error {
    operation: &'static str,
    path: Option<PathBuf>,
    /// The second path of an operation that has two.
    target: Option<PathBuf>,
    source: io::Error,
}

impl Error {
    /// What an error of this module says about its file; `None` for an error of another origin.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// What was tried: the name of the function.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// To which path. `None` for a file that was opened elsewhere.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The second path, of operations that have two.
    #[must_use]
    pub fn target(&self) -> Option<&Path> {
        self.target.as_deref()
    }

    /// The number that the system gave; `None` if the system was not asked.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        self.source.raw_os_error()
    }

    /// Adds to an error what was tried, and on which paths.
    pub(super) fn wrap(
        source: io::Error,
        operation: &'static str,
        path: Option<PathBuf>,
        target: Option<PathBuf>,
    ) -> io::Error {
        let kind = source.kind();
        let error = Self {
            operation,
            path,
            target,
            source,
        };
        io::Error::new(kind, error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.operation)?;
        if let Some(path) = &self.path {
            write!(f, " {path:?}")?;
        }
        if let Some(target) = &self.target {
            write!(f, " to {target:?}")?;
        }
        write!(f, ": {}", self.source)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
