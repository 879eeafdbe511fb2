//! The error type of Node's events, signals and streams.

mod requests;
mod system;

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;

use self::system::{Request, errno_of, syscall_of, text_of_file};
pub(super) use self::system::{code_of, text_of};
use super::site::Site;
use phaseloop::{OsError, os_error};

/// An error as Node reports it: a name, an optional code and a message. It is cheap to clone, since
/// each listener may keep one.
///
/// The names are JavaScript's: `Error` by default, `AbortError` and `TimeoutError` from
/// [signals](super::AbortSignal). The codes are Node's: those of OS errors, such as `ECONNREFUSED`,
/// and `ERR_…` from streams. The messages are Node's too, with the system call, the path or the
/// address:
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
/// use phaseloop_node::Error;
///
/// fn main() {
///     let error = Error::from(io::Error::from(io::ErrorKind::ConnectionRefused));
///     assert_eq!((error.name(), error.code()), ("Error", Some("ECONNREFUSED")));
///     assert_eq!(Error::new("boom").to_string(), "boom");
/// }
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
    /// The failed request, for an OS error.
    request: Option<Box<Request>>,
    /// The line of the program that asked for what has failed.
    site: Option<Site>,
    /// What was thrown, if it was no error of this crate.
    value: Option<Rc<dyn Any>>,
}

enum Cause {
    Io(io::Error),
    Node(Error),
    /// The errors of several attempts, all of which failed.
    Several(Vec<Error>),
}

impl Error {
    /// Creates an error with a message only.
    #[must_use]
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self::make("Error", None, message.into(), None)
    }

    /// Creates an error with a code and a message.
    #[must_use]
    pub fn with_code(
        code: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::new(message).coded(code)
    }

    /// Creates an error with a name of its own: JavaScript's `class Name extends Error`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Error, catch, throw};
    ///
    /// fn main() {
    ///     let status = 503;
    ///     let error = Error::named("HttpError", "try again").coded(format!("E{status}"));
    ///     let caught = catch(|| throw(error)).unwrap_err();
    ///     assert_eq!((caught.name(), caught.code()), ("HttpError", Some("E503")));
    /// }
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
            site: None,
            value: None,
        });
        Self { inner }
    }

    /// Creates a `TypeError`: a value has the wrong type.
    #[must_use]
    pub fn type_error(message: impl Into<Cow<'static, str>>) -> Self {
        Self::named("TypeError", message)
    }

    /// Creates a `RangeError`: a value is outside of the allowed range.
    #[must_use]
    pub fn range_error(message: impl Into<Cow<'static, str>>) -> Self {
        Self::named("RangeError", message)
    }

    /// Returns the error with this code. Existing clones keep their code.
    #[must_use]
    pub fn coded(self, code: impl Into<Cow<'static, str>>) -> Self {
        self.change(|inner| inner.code = Some(code.into()))
    }

    /// Returns the error with `cause` as its [source](std::error::Error::source): JavaScript's `{
    /// cause }`. Existing clones keep their source.
    #[must_use]
    pub fn caused_by(self, cause: impl Into<Self>) -> Self {
        self.change(|inner| inner.cause = Some(Cause::Node(cause.into())))
    }

    /// Returns the error with the line of the program that asked for what has failed. A shared
    /// error stays as it is.
    pub(super) fn at(mut self, site: Site) -> Self {
        if let Some(inner) = Rc::get_mut(&mut self.inner) {
            inner.site = Some(site);
        }
        self
    }

    /// Returns the line of the program that asked for what has failed.
    pub(super) fn site(&self) -> Option<Site> {
        self.inner.site
    }

    /// Changes the error. If it is shared, changes a new error with its name, code and message.
    fn change(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        if let Some(inner) = Rc::get_mut(&mut self.inner) {
            change(inner);
            return self;
        }
        let mut inner = Inner {
            name: self.inner.name.clone(),
            code: self.inner.code.clone(),
            message: self.inner.message.clone(),
            value: self.inner.value.clone(),
            cause: Some(Cause::Node(self)),
            request: None,
            site: None,
        };
        change(&mut inner);
        Self {
            inner: Rc::new(inner),
        }
    }

    /// Returns the error with the value that it stands for. A shared error stays as it is.
    pub(super) fn with_value(mut self, value: Rc<dyn Any>) -> Self {
        if let Some(inner) = Rc::get_mut(&mut self.inner) {
            inner.value = Some(value);
        }
        self
    }

    /// The value that the error stands for.
    pub(super) fn value(&self) -> Option<&Rc<dyn Any>> {
        self.inner.value.as_ref()
    }

    /// The default reason of an [`AbortController`](super::AbortController). Node's is a
    /// `DOMException`, whose code is a number.
    pub(super) fn aborted() -> Self {
        let message = Cow::Borrowed("This operation was aborted");
        Self::make("AbortError", Some("20"), message, None)
    }

    /// The error of an operation that was abandoned before its end.
    pub(super) fn left() -> Self {
        Self::stopped(None)
    }

    /// The error of an operation that a signal has cancelled, with the signal's reason as its
    /// cause.
    pub(super) fn aborted_by(reason: Self) -> Self {
        Self::stopped(Some(Cause::Node(reason)))
    }

    fn stopped(cause: Option<Cause>) -> Self {
        let message = Cow::Borrowed("The operation was aborted");
        Self::make("AbortError", Some("ABORT_ERR"), message, cause)
    }

    /// The reason of [`AbortSignal::timeout`](super::AbortSignal::timeout).
    pub(super) fn timed_out() -> Self {
        let message = Cow::Borrowed("The operation was aborted due to timeout");
        Self::make("TimeoutError", Some("23"), message, None)
    }

    /// The error of several failed attempts: their only error, or Node's `AggregateError` of all,
    /// which has the code of the first and no text.
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
            site: None,
            value: None,
        });
        Self { inner }
    }

    /// The reason of a promise that was resolved with itself.
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
            site: None,
            value: None,
        });
        Self { inner }
    }

    /// The name of the error, such as `Error`, `TypeError` or `AbortError`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The code: Node's, or the one set by [`coded`](Self::coded).
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.inner.code.as_deref()
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// The system call that failed, such as `open`, `connect` or `spawn ls`.
    #[must_use]
    pub fn syscall(&self) -> Option<&str> {
        self.request().map(|request| &*request.syscall)
    }

    /// The path of the failed request.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.request()?.path.as_deref()
    }

    /// The second path, for calls with two paths. Node's `dest`.
    #[must_use]
    pub fn target(&self) -> Option<&Path> {
        self.request()?.target.as_deref()
    }

    /// The address of the failed request.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.request()?.address
    }

    /// The name whose lookup failed. JavaScript: `error.hostname`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, dns, run};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         dns::lookup("no.such.name.invalid", |address| {
    ///             assert_eq!(address.unwrap_err().hostname(), Some("no.such.name.invalid"));
    ///         });
    ///     })
    /// }
    /// ```
    #[must_use]
    pub fn hostname(&self) -> Option<&str> {
        self.request()?.host.as_deref()
    }

    /// The error number as Node has it: negative for an OS error, -2 for `ENOENT` on Linux, and
    /// that of libuv for a failed lookup. The error of several attempts has none; its parts do.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        let given = self.request().and_then(|request| request.errno);
        if given.is_some() || !self.errors().is_empty() {
            return given;
        }
        let number = self
            .as_io()
            .map(|error| os_error(error).map(|number| -number))?;
        // The standard library has found some errors itself, before it asked the system.
        number.or_else(|| errno_of(self.code()?))
    }

    fn request(&self) -> Option<&Request> {
        self.inner.request.as_deref()
    }

    /// The [`io::Error`] behind this error.
    #[must_use]
    pub fn as_io(&self) -> Option<&io::Error> {
        match &self.inner.cause {
            Some(Cause::Io(error)) => Some(error),
            Some(Cause::Several(errors)) => errors.first()?.as_io(),
            _ => None,
        }
    }

    /// The errors of several attempts, such as a connection to a name with several addresses. Empty
    /// for any other error.
    #[must_use]
    pub fn errors(&self) -> &[Self] {
        match &self.inner.cause {
            Some(Cause::Several(errors)) => errors,
            _ => &[],
        }
    }

    /// Returns whether both are clones of one error.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.inner, &other.inner)
    }
}

impl From<io::Error> for Error {
    /// Keeps the error as the [source](std::error::Error::source) and looks up Node's code. For
    /// errors of [`phaseloop::fs`] and [`phaseloop::net`] it also writes Node's message.
    fn from(error: io::Error) -> Self {
        let code = code_of(&error);
        let Some(file) = OsError::of(&error) else {
            let message = Cow::Owned(error.to_string());
            return Self::make("Error", code, message, Some(Cause::Io(error)));
        };
        if file.address().is_some() {
            let syscall = file.operation();
            return Self::of_endpoint(error, syscall, false, None);
        }
        let request = Request {
            syscall: syscall_of(file.operation()).into(),
            path: file.path().map(Path::to_owned),
            target: file.target().map(Path::to_owned),
            ..Request::default()
        };
        let text = match code {
            Some(code) => text_of_file(code, &request),
            None => error.to_string(),
        };
        Self::of_system(code, text, request, error)
    }
}

impl From<Error> for io::Error {
    /// Keeps the kind of the [`io::Error`] behind this error. An abort is never
    /// [`Interrupted`](io::ErrorKind::Interrupted), since readers and writers retry that.
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

/// One line, as [`Display`](fmt::Display) writes it; all fields with `{:#?}`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return fmt::Display::fmt(self, f);
        }
        let mut shown = f.debug_struct("Error");
        shown
            .field("name", &self.name())
            .field("message", &self.message())
            .field("code", &self.code())
            .field("syscall", &self.syscall())
            .field("path", &self.path())
            .field("address", &self.address())
            .field("cause", &std::error::Error::source(self))
            .finish()
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
