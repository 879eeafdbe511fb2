//! Why something failed: an error that was thrown or that rejects a promise.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::panic::resume_unwind;
use std::rc::Rc;

use crate::executor::join::panic_message;
use crate::sys::task::Payload;

/// Why a promise was rejected, or what nobody has caught: an error, or the payload of a panic. Cheap to clone.
///
/// Any error becomes one by `?` or [`From`]; [`Reason::new`] takes a text.
///
/// # Examples
///
/// ```
/// use phaseloop::node::Reason;
///
/// let reason = Reason::from("nope".parse::<i32>().unwrap_err());
/// assert_eq!(reason.to_string(), "invalid digit found in string");
/// assert!(reason.error().unwrap().is::<std::num::ParseIntError>());
/// ```
#[derive(Clone)]
pub struct Reason(Rc<Inner>);

enum Inner {
    Error(Box<dyn Error>),
    Panic(Payload),
}

impl Reason {
    /// A reason that is a text, as `new Error(text)`; also of a boxed error.
    pub fn new(error: impl Into<Box<dyn Error>>) -> Self {
        Self(Rc::new(Inner::Error(error.into())))
    }

    /// What a panic carries.
    pub(super) fn from_panic(payload: Payload) -> Self {
        match payload.downcast::<Thrown>() {
            Ok(thrown) => Self::new(thrown.0 as Box<dyn Error>),
            Err(payload) => Self(Rc::new(Inner::Panic(payload))),
        }
    }

    /// The error, to look at or to downcast. `None`: it is a panic.
    #[must_use]
    pub fn error(&self) -> Option<&(dyn Error + 'static)> {
        match &*self.0 {
            Inner::Error(error) => Some(&**error),
            Inner::Panic(_) => None,
        }
    }

    /// The payload of the panic. `None`: it is an error.
    #[must_use]
    pub fn panic(&self) -> Option<&(dyn Any + Send)> {
        match &*self.0 {
            Inner::Error(_) => None,
            Inner::Panic(payload) => Some(&**payload),
        }
    }

    /// Goes on as the panic it was, or as one with this text: nobody has caught it.
    pub(super) fn raise(self) -> ! {
        let text = self.to_string();
        match Rc::try_unwrap(self.0) {
            Ok(Inner::Panic(payload)) => resume_unwind(payload),
            Ok(Inner::Error(_)) | Err(_) => resume_unwind(Box::new(Thrown(text.into()))),
        }
    }
}

impl<E: Error + 'static> From<E> for Reason {
    fn from(error: E) -> Self {
        Self::new(error)
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
            Inner::Error(error) => f.debug_tuple("Reason").field(error).finish(),
            Inner::Panic(_) => write!(f, "Reason(panic: {self})"),
        }
    }
}

/// What [`throw`] unwinds with.
pub(super) struct Thrown(pub(super) Box<dyn Error + Send + Sync>);

/// Unwinds with an error, as JavaScript's `throw`.
///
/// It is a panic that the panic hook does not report: who catches it, or
/// [`run`](super::run), tells. In a function called by [`call`](super::call) it rejects the promise; elsewhere it goes to the
/// listeners of [`process::on_uncaught_panic`](super::process::on_uncaught_panic).
///
/// In plain Rust: `return Err(..)`.
///
/// # Panics
///
/// That is what it does.
pub fn throw(error: impl Into<Box<dyn Error + Send + Sync>>) -> ! {
    resume_unwind(Box::new(Thrown(error.into())))
}
