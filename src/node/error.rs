//! Errors as Node's events, signals and streams carry them.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::rc::Rc;

/// What went wrong, as Node says it: a name, perhaps a code, a message. Cheap to clone, since every listener may keep it.
///
/// The names are those of JavaScript: `Error` unless told otherwise, `AbortError` and `TimeoutError` from
/// [signals](super::AbortSignal). The codes are Node's: `ECONNREFUSED` and its kin from the system, `ERR_…` from streams.
///
/// # Examples
///
/// ```
/// use std::io;
/// use phaseloop::node::Error;
///
/// let error = Error::from(io::Error::from(io::ErrorKind::ConnectionRefused));
/// assert_eq!((error.name(), error.code()), ("Error", Some("ECONNREFUSED")));
/// assert_eq!(Error::new("boom").to_string(), "boom");
/// ```
#[derive(Clone)]
pub struct Error {
    inner: Rc<Inner>,
}

struct Inner {
    name: &'static str,
    code: Option<&'static str>,
    message: Cow<'static, str>,
    cause: Option<Cause>,
}

enum Cause {
    Io(io::Error),
    Node(Error),
}

impl Error {
    /// An error with a message and nothing else.
    #[must_use]
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self::make("Error", None, message.into(), None)
    }

    /// An error with a code.
    #[must_use]
    pub fn with_code(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::make("Error", Some(code), message.into(), None)
    }

    /// What an [`AbortController`](super::AbortController) gives as the reason unless it is told another.
    pub(super) fn aborted() -> Self {
        let message = Cow::Borrowed("This operation was aborted");
        Self::make("AbortError", Some("ABORT_ERR"), message, None)
    }

    /// What an operation reports that was left before its end.
    pub(super) fn left() -> Self {
        Self::stopped(None)
    }

    /// What an operation reports that a signal has ended; the signal's reason is its cause.
    pub(super) fn aborted_by(reason: Self) -> Self {
        Self::stopped(Some(Cause::Node(reason)))
    }

    fn stopped(cause: Option<Cause>) -> Self {
        let message = Cow::Borrowed("The operation was aborted");
        Self::make("AbortError", Some("ABORT_ERR"), message, cause)
    }

    /// What [`AbortSignal::timeout`](super::AbortSignal::timeout) gives as the reason.
    pub(super) fn timed_out() -> Self {
        let message = Cow::Borrowed("The operation was aborted due to timeout");
        Self::make("TimeoutError", Some("TIMEOUT_ERR"), message, None)
    }

    fn make(
        name: &'static str,
        code: Option<&'static str>,
        message: Cow<'static, str>,
        cause: Option<Cause>,
    ) -> Self {
        let inner = Rc::new(Inner {
            name,
            code,
            message,
            cause,
        });
        Self { inner }
    }

    /// `Error`, `AbortError` or `TimeoutError`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.inner.name
    }

    /// Node's code, where there is one.
    #[must_use]
    pub fn code(&self) -> Option<&'static str> {
        self.inner.code
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// The system's error behind this one.
    #[must_use]
    pub fn as_io(&self) -> Option<&io::Error> {
        match &self.inner.cause {
            Some(Cause::Io(error)) => Some(error),
            _ => None,
        }
    }

    /// Whether both are clones of one error.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Error {
    /// What a lookup reports. The resolver's errors have no kinds: either the name is not known, or nobody could be asked.
    pub(super) fn of_lookup(error: io::Error) -> Self {
        let message = error.to_string();
        let code = code_of(error.kind()).unwrap_or_else(|| {
            // As the C libraries put it.
            let is_temporary = ["Temporary failure", "Try again", "temporarily"]
                .iter()
                .any(|words| message.contains(words));
            if is_temporary {
                "EAI_AGAIN"
            } else {
                "ENOTFOUND"
            }
        });
        let message = Cow::Owned(message);
        Self::make("Error", Some(code), message, Some(Cause::Io(error)))
    }
}

impl From<io::Error> for Error {
    /// Keeps the error as the [source](std::error::Error::source), and finds Node's code for its kind.
    fn from(error: io::Error) -> Self {
        let message = Cow::Owned(error.to_string());
        Self::make(
            "Error",
            code_of(error.kind()),
            message,
            Some(Cause::Io(error)),
        )
    }
}

impl From<Error> for io::Error {
    /// An error of the same kind as the system's error behind it; [`Interrupted`](io::ErrorKind::Interrupted) is never
    /// used for an abort, since readers and writers retry that.
    fn from(error: Error) -> Self {
        let kind = error.as_io().map_or(io::ErrorKind::Other, Self::kind);
        Self::new(kind, error.message().to_owned())
    }
}

/// The code that Node has for a kind of error, where the kind says enough.
fn code_of(kind: io::ErrorKind) -> Option<&'static str> {
    use io::ErrorKind as Kind;
    Some(match kind {
        Kind::NotFound => "ENOENT",
        Kind::PermissionDenied => "EACCES",
        Kind::ConnectionRefused => "ECONNREFUSED",
        Kind::ConnectionReset => "ECONNRESET",
        Kind::HostUnreachable => "EHOSTUNREACH",
        Kind::NetworkUnreachable => "ENETUNREACH",
        Kind::ConnectionAborted => "ECONNABORTED",
        Kind::NotConnected => "ENOTCONN",
        Kind::AddrInUse => "EADDRINUSE",
        Kind::AddrNotAvailable => "EADDRNOTAVAIL",
        Kind::BrokenPipe => "EPIPE",
        Kind::AlreadyExists => "EEXIST",
        Kind::WouldBlock => "EAGAIN",
        Kind::NotADirectory => "ENOTDIR",
        Kind::IsADirectory => "EISDIR",
        Kind::DirectoryNotEmpty => "ENOTEMPTY",
        Kind::ReadOnlyFilesystem => "EROFS",
        Kind::InvalidInput => "EINVAL",
        Kind::TimedOut => "ETIMEDOUT",
        Kind::StorageFull => "ENOSPC",
        Kind::FileTooLarge => "EFBIG",
        Kind::ResourceBusy => "EBUSY",
        Kind::ExecutableFileBusy => "ETXTBSY",
        Kind::TooManyLinks => "EMLINK",
        Kind::ArgumentListTooLong => "E2BIG",
        Kind::Interrupted => "EINTR",
        Kind::OutOfMemory => "ENOMEM",
        _ => return None,
    })
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.inner.name, self.inner.message)?;
        self.inner
            .code
            .map_or(Ok(()), |code| write!(f, " ({code})"))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.inner.cause {
            Some(Cause::Io(error)) => Some(error),
            Some(Cause::Node(error)) => Some(error),
            None => None,
        }
    }
}
