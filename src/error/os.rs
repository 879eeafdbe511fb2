//! Errors of the system that say what was tried, and on what.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What is inside the [`io::Error`] of an operation on a file, a program or an address: what was tried, on what, and the
/// system's error.
///
/// The outer error has the kind of the system's, and its text is all of it: `connect 127.0.0.1:1: Connection refused (os
/// error 111)`. It does not have the system's number, since the standard library has no error with both; [`os_error`]
/// finds it.
///
/// Exists with the features `fs` and `net`.
///
/// # Examples
///
/// ```
/// use std::io::ErrorKind;
/// use phaseloop::{OsError, fs, os_error};
///
/// phaseloop::block_on(async {
///     let error = fs::read("/no/such/file").await.unwrap_err();
///     assert_eq!(error.kind(), ErrorKind::NotFound);
///     assert!(error.to_string().starts_with("read \"/no/such/file\": "));
///     assert!(os_error(&error).is_some());
///
///     let inner = OsError::of(&error).unwrap();
///     assert_eq!(inner.operation(), "read");
///     assert_eq!(inner.path(), Some("/no/such/file".as_ref()));
/// });
/// ```
#[derive(Debug)]
pub struct OsError {
    operation: &'static str,
    about: About,
    source: io::Error,
}

/// What an operation was about: as much of it as there is.
#[derive(Debug, Default)]
pub(crate) struct About {
    /// A file, the file of a Unix socket, or a program.
    pub(crate) path: Option<PathBuf>,
    /// The second file.
    pub(crate) target: Option<PathBuf>,
    pub(crate) address: Option<SocketAddr>,
    /// The name of a Unix socket without a file.
    pub(crate) name: Option<Vec<u8>>,
    /// Where a program was to be started.
    pub(crate) directory: Option<PathBuf>,
    /// Whether it is that directory which is at fault.
    pub(crate) is_directory: bool,
    /// What to do about it.
    pub(crate) hint: Option<&'static str>,
}

impl OsError {
    /// What an error says of the operation that has failed; `None` for one of another origin.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// What was tried: the name of the function.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// On which file; for a [Unix socket](crate::net::SocketName) that of its name, for a
    /// [`Command`](crate::process::Command) its program. `None` for a file that was opened elsewhere.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.about.path.as_deref()
    }

    /// The second path, of operations that have two.
    #[must_use]
    pub fn target(&self) -> Option<&Path> {
        self.about.target.as_deref()
    }

    /// On which address.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.about.address
    }

    /// In which directory a program was to be started, if one was given.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.about.directory.as_deref()
    }

    /// Whether a program could not be started because its [directory](Self::directory) is missing, or not one, or not to be
    /// entered. The program itself may be fine.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.about.is_directory
    }

    /// The number that the system gave; `None` if the system was not asked.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        self.source.raw_os_error()
    }

    /// Adds to an error what was tried, and on what.
    pub(crate) fn wrap(
        source: io::Error,
        operation: &'static str,
        about: impl Into<About>,
    ) -> io::Error {
        let kind = source.kind();
        let error = Self {
            operation,
            about: about.into(),
            source,
        };
        io::Error::new(kind, error)
    }
}

/// The number that the system gave for an error, also where this crate has added to it what was tried; see [`OsError`].
///
/// # Examples
///
/// ```
/// use phaseloop::{net::TcpStream, os_error};
///
/// phaseloop::block_on(async {
///     let error = TcpStream::connect("127.0.0.1:1").await.unwrap_err();
///     assert!(error.to_string().starts_with("connect 127.0.0.1:1: "));
///     assert_eq!(error.raw_os_error(), None);
///     assert!(os_error(&error).is_some());
/// });
/// ```
#[must_use]
pub fn os_error(error: &io::Error) -> Option<i32> {
    let inner = || OsError::of(error).and_then(OsError::raw_os_error);
    error.raw_os_error().or_else(inner)
}

impl From<Option<PathBuf>> for About {
    fn from(path: Option<PathBuf>) -> Self {
        Self {
            path,
            ..Self::default()
        }
    }
}

impl From<PathBuf> for About {
    fn from(path: PathBuf) -> Self {
        Some(path).into()
    }
}

impl From<(PathBuf, PathBuf)> for About {
    fn from((path, target): (PathBuf, PathBuf)) -> Self {
        Self {
            path: Some(path),
            target: Some(target),
            ..Self::default()
        }
    }
}

impl From<SocketAddr> for About {
    fn from(address: SocketAddr) -> Self {
        Self {
            address: Some(address),
            ..Self::default()
        }
    }
}

impl fmt::Display for OsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = &self.about;
        f.write_str(self.operation)?;
        if let Some(path) = &about.path {
            write!(f, " {path:?}")?;
        }
        if let Some(target) = &about.target {
            write!(f, " to {target:?}")?;
        }
        if let Some(address) = &about.address {
            write!(f, " {address}")?;
        }
        if let Some(name) = &about.name {
            // As the system's tools write it.
            write!(f, " \"@{}\"", name.escape_ascii())?;
        }
        if let Some(directory) = &about.directory {
            write!(f, " in {directory:?}")?;
        }
        let culprit = if about.is_directory {
            "the directory: "
        } else {
            ""
        };
        write!(f, ": {culprit}{}", self.source)?;
        about.hint.map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl std::error::Error for OsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
