//! Errors as Node's events, signals and streams carry them.

mod system;

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;

use self::system::{Place, Request, code_of, syscall_of, text_of_file, text_of_socket};
use crate::error::{OsError, os_error};

/// What went wrong, as Node says it: a name, perhaps a code, a message. Cheap to clone, since every listener may keep it.
///
/// The names are those of JavaScript: `Error` unless told otherwise, `AbortError` and `TimeoutError` from
/// [signals](super::AbortSignal). The codes are Node's: `ECONNREFUSED` and its kin from the system, `ERR_…` from streams. So
/// are the messages, with the call of the system, the path or the address:
///
/// ```text
/// ENOENT: no such file or directory, open 'x'
/// connect ECONNREFUSED 127.0.0.1:1
/// ```
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
    /// What the system was asked to do, if it was the system that failed.
    request: Option<Box<Request>>,
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

    /// What an [`AbortController`](super::AbortController) gives as the reason unless it is told another. Node's is a
    /// `DOMException`, whose code is a number.
    pub(super) fn aborted() -> Self {
        let message = Cow::Borrowed("This operation was aborted");
        Self::make("AbortError", Some("20"), message, None)
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
        Self::make("TimeoutError", Some("23"), message, None)
    }

    /// An error of another thread.
    pub(super) fn named(name: &'static str, code: Option<&'static str>, message: String) -> Self {
        Self::make(name, code, message.into(), None)
    }

    /// What a promise is rejected with that is resolved with itself.
    pub(super) fn chaining_cycle() -> Self {
        let message = Cow::Borrowed("Chaining cycle detected for promise #<Promise>");
        Self::make("TypeError", None, message, None)
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
            request: None,
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

    /// The call of the system that failed, such as `open`, `connect` or `spawn ls`.
    #[must_use]
    pub fn syscall(&self) -> Option<&str> {
        self.request().map(|request| &*request.syscall)
    }

    /// The path that it was about.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.request()?.path.as_deref()
    }

    /// The second path, of calls that have two. Node's `dest`.
    #[must_use]
    pub fn target(&self) -> Option<&Path> {
        self.request()?.target.as_deref()
    }

    /// The address that it was about.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.request()?.address
    }

    /// The system's number, negative as in Node: -2 for `ENOENT` on Linux.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        self.as_io().and_then(os_error).map(|number| -number)
    }

    fn request(&self) -> Option<&Request> {
        self.inner.request.as_deref()
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

/// Errors of the system, in Node's words.
impl Error {
    fn of_system(
        code: Option<&'static str>,
        message: String,
        request: Request,
        error: io::Error,
    ) -> Self {
        let inner = Rc::new(Inner {
            name: "Error",
            code,
            message: Cow::Owned(message),
            cause: Some(Cause::Io(error)),
            request: Some(Box::new(request)),
        });
        Self { inner }
    }

    /// An error of a socket; without a code of Node's it keeps its own text.
    fn of_socket(
        error: io::Error,
        syscall: &'static str,
        says_why: bool,
        place: &Place<'_>,
    ) -> Self {
        let code = code_of(&error);
        let text = code.map(|code| text_of_socket(syscall, code, says_why, place));
        let request = Request {
            syscall: syscall.into(),
            path: match place {
                Place::Path(path) => Some((*path).to_owned()),
                _ => None,
            },
            address: match place {
                Place::Address(address) => Some(*address),
                _ => None,
            },
            ..Request::default()
        };
        let text = text.unwrap_or_else(|| format!("{syscall}: {error}"));
        Self::of_system(code, text, request, error)
    }

    /// `read ECONNRESET`.
    pub(super) fn of_call(error: io::Error, syscall: &'static str) -> Self {
        Self::of_socket(error, syscall, false, &Place::None)
    }

    /// `connect ECONNREFUSED 127.0.0.1:1`, `connect ENOENT /no/such/socket`: with what the error itself says it is about.
    pub(super) fn of_connect(error: io::Error) -> Self {
        Self::of_place(error, "connect", false, None)
    }

    /// `listen EADDRINUSE: address already in use 127.0.0.1:1`.
    pub(super) fn of_listen(error: io::Error, address: Option<SocketAddr>) -> Self {
        Self::of_place(error, "listen", true, address)
    }

    /// `bind EADDRINUSE 127.0.0.1:1`, `send EMSGSIZE 127.0.0.1:1`.
    pub(super) fn of_address(error: io::Error, syscall: &'static str, to: SocketAddr) -> Self {
        Self::of_place(error, syscall, false, Some(to))
    }

    /// With the address or the path that is given or that the error itself is about.
    fn of_place(
        error: io::Error,
        syscall: &'static str,
        says_why: bool,
        address: Option<SocketAddr>,
    ) -> Self {
        let about = OsError::of(&error);
        let address = address.or_else(|| about?.address());
        let path = about.and_then(OsError::path).map(Path::to_owned);
        let place = match (address, &path) {
            (Some(address), _) => Place::Address(address),
            (None, Some(path)) => Place::Path(path),
            (None, None) => Place::None,
        };
        Self::of_socket(error, syscall, says_why, &place)
    }

    /// `ENOSPC: no space left on device, write`: of a file that is open, without its path.
    pub(super) fn of_descriptor(error: io::Error, syscall: &'static str) -> Self {
        let request = Request {
            syscall: syscall.into(),
            ..Request::default()
        };
        let code = code_of(&error);
        let text = match code {
            Some(code) => text_of_file(code, &request),
            None => error.to_string(),
        };
        Self::of_system(code, text, request, error)
    }

    /// `spawn no-such-program ENOENT`.
    pub(super) fn of_spawn(error: io::Error, program: &Path) -> Self {
        let (code, name) = (code_of(&error), program.display());
        let text = match code {
            Some(code) => format!("spawn {name} {code}"),
            None => error.to_string(),
        };
        let request = Request {
            syscall: format!("spawn {name}").into(),
            path: Some(program.to_owned()),
            ..Request::default()
        };
        Self::of_system(code, text, request, error)
    }

    /// `getaddrinfo ENOTFOUND no.such.name`. The resolver's errors have no kinds: either the name is not known, or nobody
    /// could be asked.
    pub(super) fn of_lookup(error: io::Error, host: &str) -> Self {
        let code = code_of(&error).unwrap_or_else(|| {
            // As the C libraries put it.
            let words = ["Temporary failure", "Try again", "temporarily"];
            let text = error.to_string();
            if words.iter().any(|words| text.contains(words)) {
                "EAI_AGAIN"
            } else {
                "ENOTFOUND"
            }
        });
        let text = text_of_socket("getaddrinfo", code, false, &Place::Name(host));
        let request = Request {
            syscall: "getaddrinfo".into(),
            ..Request::default()
        };
        Self::of_system(Some(code), text, request, error)
    }
}

impl From<io::Error> for Error {
    /// Keeps the error as the [source](std::error::Error::source), and finds Node's code and, for an error of
    /// [`crate::fs`] or of [`crate::net`], Node's words.
    fn from(error: io::Error) -> Self {
        let code = code_of(&error);
        let Some(file) = OsError::of(&error) else {
            let message = Cow::Owned(error.to_string());
            return Self::make("Error", code, message, Some(Cause::Io(error)));
        };
        if file.address().is_some() {
            let syscall = file.operation();
            return Self::of_place(error, syscall, false, None);
        }
        let request = Request {
            syscall: syscall_of(file.operation()).into(),
            path: file.path().map(Path::to_owned),
            target: file.target().map(Path::to_owned),
            address: None,
        };
        let text = match code {
            Some(code) => text_of_file(code, &request),
            None => error.to_string(),
        };
        Self::of_system(code, text, request, error)
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
