//! Errors that say which program was to be started where, and which of the two is at fault.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::sys;

/// What is inside the [`io::Error`] of a program that could not be started: its name, its directory, which of them is at
/// fault, and the system's error.
///
/// The outer error has the kind of the system's; it does not have its number, which is here.
///
/// # Examples
///
/// ```
/// use std::io::ErrorKind;
/// use phaseloop::process::{Command, Error};
///
/// phaseloop::block_on(async {
///     let error = Command::new("true").current_dir("/no/such").spawn().unwrap_err();
///     assert_eq!(error.kind(), ErrorKind::NotFound);
///     assert!(error.to_string().starts_with("spawn \"true\" in \"/no/such\": the directory: "));
///     assert!(Error::of(&error).unwrap().is_directory());
///
///     let error = Command::new("no such program").spawn().unwrap_err();
///     assert_eq!(error.kind(), ErrorKind::NotFound);
///     assert!(error.to_string().starts_with("spawn \"no such program\": "));
///     assert!(!Error::of(&error).unwrap().is_directory());
/// });
/// ```
#[derive(Debug)]
pub struct Error {
    program: OsString,
    directory: Option<PathBuf>,
    is_directory: bool,
    source: io::Error,
}

impl Error {
    /// What an error of this module says of the start of a program; `None` for an error of another origin.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// The program that was to be started.
    #[must_use]
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// The directory that it was to be started in, if one was given.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Whether it is the directory that is missing, or not one, or not to be entered.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.is_directory
    }

    /// The number that the system gave; `None` if the system was not asked.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        self.source.raw_os_error()
    }

    /// Adds the program and its directory to the error of a start. The system does not say which of them it is about, so
    /// the directory is tried once more.
    pub(super) fn wrap(source: io::Error, command: &std::process::Command) -> io::Error {
        let directory = command.get_current_dir();
        let fault = directory.and_then(|directory| sys::process::enter_fault(directory).err());
        let error = Self {
            program: command.get_program().to_owned(),
            directory: directory.map(Path::to_owned),
            is_directory: fault.is_some(),
            source: fault.unwrap_or(source),
        };
        io::Error::new(error.source.kind(), error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spawn {:?}", self.program)?;
        if let Some(directory) = &self.directory {
            write!(f, " in {directory:?}")?;
        }
        let culprit = if self.is_directory {
            "the directory: "
        } else {
            ""
        };
        write!(f, ": {culprit}{}", self.source)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
