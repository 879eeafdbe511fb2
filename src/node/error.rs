//! Errors as Node's events, signals and streams carry them.

mod system;

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;

pub(super) use self::system::code_of;
use self::system::{Place, Request, syscall_of, text_of_file, text_of_socket};
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
    name: Cow<'static, str>,
    code: Option<Cow<'static, str>>,
    message: Cow<'static, str>,
    cause: Option<Cause>,
    /// What the system was asked to do, if it was the system that failed.
    request: Option<Box<Request>>,
}

enum Cause {
    Io(io::Error),
    Node(Error),
    /// Of several attempts, all of which failed.
    Several(Vec<Error>),
}

impl Error {
    /// An error with a message and nothing else.
    #[must_use]
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self::make("Error", None, message.into(), None)
    }

    /// An error with a code.
    #[must_use]
    pub fn with_code(
        code: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::new(message).coded(code)
    }

    /// An error with a name of its own: JavaScript's `class Name extends Error`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::node::{Error, catch, throw};
    ///
    /// let status = 503;
    /// let error = Error::named("HttpError", "try again").coded(format!("E{status}"));
    /// let caught = catch(|| throw(error)).unwrap_err();
    /// assert_eq!((caught.name(), caught.code()), ("HttpError", Some("E503")));
    /// ```
    #[must_use]
    pub fn named(
        name: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        let inner = Rc::new(Inner {
            name: name.into(),
            code: None,
            message: message.into(),
            cause: None,
            request: None,
        });
        Self { inner }
    }

    /// A `TypeError`: a value is not of the kind that is asked for.
    #[must_use]
    pub fn type_error(message: impl Into<Cow<'static, str>>) -> Self {
        Self::named("TypeError", message)
    }

    /// A `RangeError`: a value is not among those that are allowed.
    #[must_use]
    pub fn range_error(message: impl Into<Cow<'static, str>>) -> Self {
        Self::named("RangeError", message)
    }

    /// The error with this code. Clones that exist already keep theirs.
    #[must_use]
    pub fn coded(self, code: impl Into<Cow<'static, str>>) -> Self {
        self.change(|inner| inner.code = Some(code.into()))
    }

    /// The error with this one as its [source](std::error::Error::source): JavaScript's `{ cause }`. Clones that exist
    /// already keep theirs.
    #[must_use]
    pub fn caused_by(self, cause: impl Into<Self>) -> Self {
        self.change(|inner| inner.cause = Some(Cause::Node(cause.into())))
    }

    /// Changes the error, or, if it is shared, a new one with its name, code and message.
    fn change(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        if let Some(inner) = Rc::get_mut(&mut self.inner) {
            change(inner);
            return self;
        }
        let mut inner = Inner {
            name: self.inner.name.clone(),
            code: self.inner.code.clone(),
            message: self.inner.message.clone(),
            cause: Some(Cause::Node(self)),
            request: None,
        };
        change(&mut inner);
        Self {
            inner: Rc::new(inner),
        }
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

    /// What has become of several attempts: their only error, or all of them as Node's `AggregateError`, which has the
    /// code of the first and no text.
    pub(super) fn aggregate(mut errors: Vec<Self>) -> Self {
        if errors.len() == 1 {
            return errors.remove(0);
        }
        let code = errors.first().and_then(|first| first.inner.code.clone());
        let inner = Rc::new(Inner {
            name: "AggregateError".into(),
            code,
            message: "".into(),
            cause: Some(Cause::Several(errors)),
            request: None,
        });
        Self { inner }
    }

    /// What a promise is rejected with that is resolved with itself.
    pub(super) fn chaining_cycle() -> Self {
        Self::type_error("Chaining cycle detected for promise #<Promise>")
    }

    fn make(
        name: &'static str,
        code: Option<&'static str>,
        message: Cow<'static, str>,
        cause: Option<Cause>,
    ) -> Self {
        let inner = Rc::new(Inner {
            name: name.into(),
            code: code.map(Cow::Borrowed),
            message,
            cause,
            request: None,
        });
        Self { inner }
    }

    /// The kind of error, such as `Error`, `TypeError` or `AbortError`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Node's code, or the one it was [given](Self::coded), where there is one.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.inner.code.as_deref()
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
            Some(Cause::Several(errors)) => errors.first()?.as_io(),
            _ => None,
        }
    }

    /// The errors of several attempts, as of a connection to a name with several addresses. Empty for any other error.
    #[must_use]
    pub fn errors(&self) -> &[Self] {
        match &self.inner.cause {
            Some(Cause::Several(errors)) => errors,
            _ => &[],
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
            name: Cow::Borrowed("Error"),
            code: code.map(Cow::Borrowed),
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
        self.code().map_or(Ok(()), |code| write!(f, " ({code})"))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.inner.cause {
            Some(Cause::Io(error)) => Some(error),
            Some(Cause::Node(error)) => Some(error),
            Some(Cause::Several(errors)) => errors.first().map(|error| error as _),
            None => None,
        }
    }
}
