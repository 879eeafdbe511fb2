//! The reason of a failure: an error that was thrown or that rejects a promise.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::panic::resume_unwind;
use std::rc::Rc;

use super::child_process::ExecError;
use super::combinators::AggregateError;
use super::error::{Error as NodeError, code_of};
use super::events::UnheardError;
use super::report;
use super::site::line_of;
use phaseloop::extension::Payload;
use phaseloop::extension::ThreadBound;
use phaseloop::extension::panic_message;

/// The reason of a rejected promise or of an uncaught exception: an error, or the payload of a
/// panic. It is cheap to clone.
///
/// Any error converts into a reason by `?` or [`From`]; [`Reason::new`] also takes a text.
///
/// # Examples
///
/// ```
/// use phaseloop_node::Reason;
///
/// fn main() {
///     let reason = Reason::from("nope".parse::<i32>().unwrap_err());
///     assert_eq!(reason.to_string(), "invalid digit found in string");
///     assert!(reason.downcast_ref::<std::num::ParseIntError>().is_some());
///     assert_eq!((reason.name(), reason.code()), ("Error", None));
/// }
/// ```
#[derive(Clone)]
pub struct Reason(Rc<Inner>);

enum Inner {
    Error(Box<dyn Error>),
    Panic(Payload),
}

impl Reason {
    /// Creates a reason from a text, as `new Error(text)` does, or from a boxed error. A reason is
    /// returned unchanged.
    pub fn new(error: impl Into<Box<dyn Error>>) -> Self {
        match error.into().downcast::<Boxed>() {
            Ok(reason) => reason.0,
            Err(error) => Self(Rc::new(Inner::Error(error))),
        }
    }

    /// Creates a reason that is no error, as `Promise.reject(42)` does.
    ///
    /// If no handler exists, the program ends with an error in its place: its name is
    /// `UnhandledPromiseRejection`, its code `ERR_UNHANDLED_REJECTION`, and its message contains
    /// the value. A panic whose payload is no text is treated alike.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, Promise, Reason, process, run};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         process::on_uncaught_exception(|reason, _| {
    ///             assert_eq!(reason.code(), Some("ERR_UNHANDLED_REJECTION"));
    ///             assert!(reason.to_string().ends_with("with the reason \"42\"."));
    ///         });
    ///         Promise::<()>::rejected(Reason::value(42));
    ///     })
    /// }
    /// ```
    pub fn value(value: impl fmt::Display) -> Self {
        Self::new(Value(value.to_string()))
    }

    /// Creates the reason for the payload of a panic.
    pub(super) fn from_panic(payload: Payload) -> Self {
        match payload.downcast::<Thrown>() {
            Ok(thrown) => thrown.into_reason(),
            Err(payload) => Self(Rc::new(Inner::Panic(payload))),
        }
    }

    /// The error. `None`: the reason is a panic.
    #[must_use]
    pub fn error(&self) -> Option<&(dyn Error + 'static)> {
        match &*self.0 {
            Inner::Error(error) => Some(&**error),
            Inner::Panic(_) => None,
        }
    }

    /// The payload of the panic. `None`: the reason is an error.
    #[must_use]
    pub fn panic(&self) -> Option<&(dyn Any + Send)> {
        match &*self.0 {
            Inner::Error(_) => None,
            Inner::Panic(payload) => Some(&**payload),
        }
    }

    /// The error if it is of type `T`, including one that a panic carries. For other payloads use
    /// [`panic`](Self::panic).
    #[must_use]
    pub fn downcast_ref<T: Error + 'static>(&self) -> Option<&T> {
        match &*self.0 {
            Inner::Error(error) => error.downcast_ref(),
            Inner::Panic(payload) => payload.downcast_ref(),
        }
    }

    /// The name of the error, such as `TypeError`: the name of an [`Error`](super::Error),
    /// `AggregateError`, or `Error` for errors of other types, texts and panics.
    #[must_use]
    pub fn name(&self) -> &str {
        let error = self.error();
        match self.node_error() {
            Some(error) => error.name(),
            None if error.is_some_and(|error| error.is::<AggregateError>()) => "AggregateError",
            None => "Error",
        }
    }

    /// Node's code: the code of an [`Error`](super::Error), or of an OS error, such as `ENOENT`.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self.node_error() {
            Some(error) => error.code(),
            None => self.error()?.downcast_ref().and_then(code_of),
        }
    }

    /// Returns the error of this module, also inside one that adds fields to it.
    pub(super) fn node_error(&self) -> Option<&NodeError> {
        let error = self.error()?;
        let known = error.downcast_ref::<NodeError>();
        known
            .or_else(|| error.downcast_ref().map(ExecError::error))
            .or_else(|| error.downcast_ref().and_then(UnheardError::error))
    }

    /// Returns the reason that ends the program if no handler exists. A value that is no error is
    /// the cause of one.
    pub(super) fn or_unhandled(self) -> Self {
        let is_error = match &*self.0 {
            Inner::Error(error) => !error.is::<Value>(),
            Inner::Panic(payload) => panic_message(&**payload).is_some(),
        };
        if is_error {
            return self;
        }
        let text = format!(
            "This error originated either by throwing inside of an async function without a catch \
             block, or by rejecting a promise which was not handled with .catch(). The promise \
             rejected with the reason \"{self}\"."
        );
        let error = NodeError::named("UnhandledPromiseRejection", text);
        Self::new(error.coded("ERR_UNHANDLED_REJECTION"))
    }

    /// Resumes the panic, or throws the error as [`throw`] does.
    #[track_caller]
    pub(super) fn raise(self) -> ! {
        match Rc::try_unwrap(self.0) {
            Ok(Inner::Panic(payload)) => resume_unwind(payload),
            Ok(error) => Thrown::unwind(Self(Rc::new(error))),
            Err(shared) => Thrown::unwind(Self(shared)),
        }
    }
}

impl<E: Error + 'static> From<E> for Reason {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

/// A reason is thrown, and rejects a promise, as an error does.
impl From<Reason> for Box<dyn Error> {
    fn from(reason: Reason) -> Self {
        Self::from(Boxed(reason))
    }
}

/// A reason in the place of an error. [`Reason::new`] takes it out again.
struct Boxed(Reason);

impl fmt::Debug for Boxed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Boxed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for Boxed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.error().and_then(Error::source)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Inner::Error(error) => error.fmt(f),
            Inner::Panic(payload) => f.write_str(panic_message(&**payload).unwrap_or("a panic")),
        }
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Inner::Error(error) if f.alternate() => f.debug_tuple("Reason").field(error).finish(),
            Inner::Panic(_) if f.alternate() => write!(f, "Reason(panic: {self})"),
            _ => fmt::Display::fmt(self, f),
        }
    }
}

/// A reason that is no error: the text of a value.
#[derive(Debug)]
struct Value(String);

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Value {}

/// The panic payload of [`throw`]: the reason for its own thread, the text for other threads.
pub(super) struct Thrown {
    reason: ThreadBound<Reason>,
    text: String,
}

impl Thrown {
    /// Unwinds with the reason where code of this module will catch it. Elsewhere it unwinds with
    /// the text, as any panic does.
    #[track_caller]
    fn unwind(reason: Reason) -> ! {
        let text = reason.to_string();
        assert!(report::is_looked_at(), "{text}");
        resume_unwind(Box::new(Self {
            reason: ThreadBound::new(reason),
            text,
        }))
    }

    pub(super) fn into_reason(mut self) -> Reason {
        match self.reason.get_mut() {
            Some(reason) => reason.clone(),
            None => Reason::new(std::mem::take(&mut self.text)),
        }
    }

    /// Returns the reason; `None` on another thread.
    pub(super) fn reason(&mut self) -> Option<&Reason> {
        self.reason.get_mut().map(|reason| &*reason)
    }

    /// Returns the error and its causes, as Node prints them: one line each.
    pub(super) fn describe(&mut self) -> String {
        match self.reason.get_mut() {
            Some(reason) => describe(reason),
            None => std::mem::take(&mut self.text),
        }
    }
}

/// Throws an error, as JavaScript's `throw` does: unwinds with it. [`catch`](super::catch) returns
/// the error itself.
///
/// In a function called by [`call`](super::call), the error rejects the promise. Elsewhere the
/// listeners of [`process::on_uncaught_exception`](super::process::on_uncaught_exception) receive
/// it.
///
/// The panic hook does not report this panic: [`run`](super::run) or the catching code does.
/// Outside of a program and of catching code it is a plain panic with the error's text.
///
/// In plain Rust: `return Err(..)`.
///
/// # Panics
///
/// Always: this is how it unwinds.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Error, catch, throw};
///
/// fn main() {
///     let caught = catch(|| throw(Error::new("no"))).unwrap_err();
///     assert_eq!(caught.to_string(), "no");
/// }
/// ```
#[track_caller]
pub fn throw(error: impl Into<Box<dyn Error>>) -> ! {
    Thrown::unwind(Reason::new(error))
}

/// Returns the error inside the reason, or an error with its text.
impl From<Reason> for NodeError {
    fn from(reason: Reason) -> Self {
        let error = reason.node_error().cloned();
        error.unwrap_or_else(|| Self::new(reason.to_string()).with_value(Rc::new(reason)))
    }
}

/// Describes a reason and its causes, one line each: the name, the text, and the fields that the
/// text may not have.
fn describe(reason: &Reason) -> String {
    let Some(error) = reason.error() else {
        return reason.to_string();
    };
    let mut text = String::new();
    let mut next = Some(
        reason
            .node_error()
            .map_or(error, |error| error as &dyn Error),
    );
    for depth in 0..MOST_CAUSES {
        let Some(error) = next else { break };
        let node = error.downcast_ref::<NodeError>();
        let name = match node {
            None if depth == 0 => reason.name(),
            _ => node.map_or("Error", NodeError::name),
        };
        if depth > 0 {
            text.push_str(&format!("\n{:1$}[cause]: ", "", 2 * depth));
        }
        text.push_str(&format!("{name}: {error}"));
        if let Some(node) = node {
            text.push_str(&fields_of(node));
            text.push_str(&line_of("at", node.site()));
        }
        // What the system has reported is in the text already.
        next = error.source().filter(|cause| !cause.is::<std::io::Error>());
    }
    text
}

/// How many errors of a chain are printed.
const MOST_CAUSES: usize = 16;

/// Returns the fields of an error, such as ` { code: 'ECONNREFUSED', port: 1 }`.
fn fields_of(error: &NodeError) -> String {
    let address = error.address();
    let fields = [
        error.code().map(|code| format!("code: '{code}'")),
        error
            .syscall()
            .map(|syscall| format!("syscall: '{syscall}'")),
        error
            .path()
            .map(|path| format!("path: '{}'", path.display())),
        address.map(|address| format!("address: '{}'", address.ip())),
        address.map(|address| format!("port: {}", address.port())),
    ];
    let fields: Vec<_> = fields.into_iter().flatten().collect();
    match fields.is_empty() {
        true => String::new(),
        false => format!(" {{ {} }}", fields.join(", ")),
    }
}
