//! OS errors with their operation and object.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::kinds::kind_of;

/// The source of an [`io::Error`] of an operation on a file, a program or an address: the
/// operation, its object, and the OS error.
///
/// The outer error has the kind of the OS error and a text with all parts: `connect 127.0.0.1:1:
/// Connection refused (os error 111)`. Its `raw_os_error` is `None`, since an [`io::Error`] cannot
/// hold both a number and a source; [`os_error`] returns the number.
///
/// It exists with the features `fs` and `net`.
///
/// # Examples
///
/// ```
/// use std::io::ErrorKind;
/// use phaseloop::{OsError, fs, os_error};
///
/// #[phaseloop::main]
/// async fn main() {
///     let error = fs::read("/no/such/file").await.unwrap_err();
///     assert_eq!(error.kind(), ErrorKind::NotFound);
///     assert!(error.to_string().starts_with("read \"/no/such/file\": "));
///     assert!(os_error(&error).is_some());
///
///     let inner = OsError::of(&error).unwrap();
///     assert_eq!(inner.operation(), "read");
///     assert_eq!(inner.path(), Some("/no/such/file".as_ref()));
///     // `unwrap` prints the same line; `{:#?}` prints the fields.
///     assert_eq!(format!("{inner:?}"), inner.to_string());
/// }
/// ```
pub struct OsError {
    operation: &'static str,
    about: About,
    source: io::Error,
}

/// The object of an operation, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// A file, the path of a Unix socket, or a program.
    pub path: Option<PathBuf>,
    /// The second path of an operation on two.
    pub target: Option<PathBuf>,
    /// The address of a socket.
    pub address: Option<SocketAddr>,
    /// The abstract name of a Unix socket.
    pub name: Option<Vec<u8>>,
    /// The working directory for a program.
    pub directory: Option<PathBuf>,
    /// Whether that directory is the cause of the error.
    pub is_directory: bool,
    /// A remedy.
    pub hint: Option<&'static str>,
}

impl OsError {
    /// Returns the details of an error of this crate; `None` for another error.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{OsError, fs};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let error = fs::read("no-such-file").await.unwrap_err();
    ///     let details = OsError::of(&error).expect("an error of this crate");
    ///     assert_eq!(details.path(), Some("no-such-file".as_ref()));
    ///     println!("{}: {:?}", details.operation(), details.raw_os_error());
    /// }
    /// ```
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// The operation: the name of the function.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{OsError, fs};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let error = fs::read("no-such-file").await.unwrap_err();
    ///     let details = OsError::of(&error).expect("an error of this crate");
    ///     assert_eq!(details.path(), Some("no-such-file".as_ref()));
    ///     println!("{}: {:?}", details.operation(), details.raw_os_error());
    /// }
    /// ```
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// The path: of the file, of the [Unix socket](crate::net::SocketName), or of the program of a
    /// [`Command`](crate::process::Command). `None` for a file that was opened elsewhere.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{OsError, fs};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let error = fs::read("no-such-file").await.unwrap_err();
    ///     let details = OsError::of(&error).expect("an error of this crate");
    ///     assert_eq!(details.path(), Some("no-such-file".as_ref()));
    ///     println!("{}: {:?}", details.operation(), details.raw_os_error());
    /// }
    /// ```
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.about.path.as_deref()
    }

    /// The second path of an operation on two.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{OsError, fs};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let error = fs::rename("no-such-file", "other").await.unwrap_err();
    ///     let details = OsError::of(&error).unwrap();
    ///     assert_eq!(details.target(), Some("other".as_ref()));
    /// }
    /// ```
    #[must_use]
    pub fn target(&self) -> Option<&Path> {
        self.about.target.as_deref()
    }

    /// The address.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{OsError, net::TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let error = TcpStream::connect("127.0.0.1:1").await.unwrap_err();
    ///     let details = OsError::of(&error).unwrap();
    ///     assert_eq!(details.address(), Some(([127, 0, 0, 1], 1).into()));
    /// }
    /// ```
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.about.address
    }

    /// The working directory for a program, if one was given.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{OsError, process::Command};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let error = Command::new("true").current_dir("/no/such/place").spawn().unwrap_err();
    ///     let details = OsError::of(&error).unwrap();
    ///     assert!(details.is_directory(), "it is not the program that is missing");
    ///     println!("{:?}", details.directory());
    /// }
    /// ```
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.about.directory.as_deref()
    }

    /// Whether a program could not be started because its [working directory](Self::directory) does
    /// not exist, is not a directory, or cannot be entered.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{OsError, process::Command};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let error = Command::new("true").current_dir("/no/such/place").spawn().unwrap_err();
    ///     let details = OsError::of(&error).unwrap();
    ///     assert!(details.is_directory(), "it is not the program that is missing");
    ///     println!("{:?}", details.directory());
    /// }
    /// ```
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.about.is_directory
    }

    /// The number of the OS error; `None` if the error did not come from the OS.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{OsError, fs};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let error = fs::read("no-such-file").await.unwrap_err();
    ///     let details = OsError::of(&error).expect("an error of this crate");
    ///     assert_eq!(details.path(), Some("no-such-file".as_ref()));
    ///     println!("{}: {:?}", details.operation(), details.raw_os_error());
    /// }
    /// ```
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        os_error(&self.source)
    }

    /// Adds an operation and its object to an error.
    pub fn wrap(source: io::Error, operation: &'static str, about: impl Into<About>) -> io::Error {
        let kind = kind_of(&source);
        let error = Self {
            operation,
            about: about.into(),
            source,
        };
        io::Error::new(kind, error)
    }
}

/// Returns the number of an OS error, also of one that this crate has wrapped in an [`OsError`].
///
/// # Examples
///
/// ```
/// use phaseloop::{net::TcpStream, os_error};
///
/// #[phaseloop::main]
/// async fn main() {
///     let error = TcpStream::connect("127.0.0.1:1").await.unwrap_err();
///     assert!(error.to_string().starts_with("connect 127.0.0.1:1: "));
///     assert_eq!(error.raw_os_error(), None);
///     assert!(os_error(&error).is_some());
/// }
/// ```
#[must_use]
pub fn os_error(error: &io::Error) -> Option<i32> {
    let inner = || OsError::of(error).and_then(OsError::raw_os_error);
    let below = || number_below(error);
    error.raw_os_error().or_else(inner).or_else(below)
}

/// Returns the number of an OS error that was given a kind.
fn number_below(error: &io::Error) -> Option<i32> {
    error.get_ref()?.downcast_ref::<io::Error>()?.raw_os_error()
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

impl From<Option<SocketAddr>> for About {
    fn from(address: Option<SocketAddr>) -> Self {
        Self {
            address,
            ..Self::default()
        }
    }
}

impl From<SocketAddr> for About {
    fn from(address: SocketAddr) -> Self {
        Some(address).into()
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
            // An abstract name is shown with `@`, as `ss` and `lsof` do.
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

debug_as_display!(OsError {
    operation,
    about,
    source
});

impl std::error::Error for OsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
