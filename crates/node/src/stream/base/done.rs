//! How a stream is notified of the end of an operation.

use std::fmt;
use std::rc::{Rc, Weak};

use super::{Callback, ReadableSide, WritableSide};
use crate::error::Error;
use crate::stream::links::References;

/// Reports to a stream that a requested operation is done or has failed: Node's `callback`
/// argument. The stream keeps waiting if the value is dropped without a call.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Error, Exit, run, stream::Writable};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let even = Writable::objects(|n: u32, done| match n % 2 {
///             0 => done.ok(),
///             _ => done.fail(Error::new("odd")),
///         })
///         .build();
///         even.end(2_u32);
///     })
/// }
/// ```
#[must_use = "the stream waits until the result is reported"]
pub struct Done(Report);

/// What a report calls.
enum Report {
    Call(Callback),
    /// The end of a write: without an allocation, since each write has one. The sides of the stream
    /// live until then.
    Write(Rc<dyn WritableSide>, Option<Rc<dyn ReadableSide>>),
    /// The end of the last function of a writable side.
    End(Rc<dyn WritableSide>, Option<Rc<dyn ReadableSide>>),
}

impl Done {
    pub(in crate::stream) fn new(call: impl FnOnce(Result<(), Error>) + 'static) -> Self {
        Self(Report::Call(Box::new(call)))
    }

    /// Returns what the function that writes to `side` gets. `other` is the other side of a duplex
    /// stream.
    pub(in crate::stream) fn of_write(
        side: Rc<dyn WritableSide>,
        other: Option<Rc<dyn ReadableSide>>,
    ) -> Self {
        Self(Report::Write(side, other))
    }

    /// Returns what the last function of `side` gets.
    pub(in crate::stream) fn of_end(
        side: Rc<dyn WritableSide>,
        other: Option<Rc<dyn ReadableSide>>,
    ) -> Self {
        Self(Report::End(side, other))
    }

    /// Returns a report that does not keep the stream alive, for a value that the stream holds.
    pub(in crate::stream) fn downgrade(self) -> WeakDone {
        WeakDone(match self.0 {
            Report::Call(call) => WeakReport::Call(call),
            Report::Write(side, _) => WeakReport::Write(Rc::downgrade(&side)),
            Report::End(side, _) => WeakReport::End(Rc::downgrade(&side)),
        })
    }

    /// Reports the references to a stream, as a [`Link`](crate::stream::links::Link) does.
    pub(in crate::stream) fn references(&self, found: &mut References) {
        if let Report::Write(side, other) | Report::End(side, other) = &self.0 {
            found.add(side);
            if let Some(other) = other {
                found.add(other);
            }
        }
    }

    /// Reports the result of the operation.
    pub fn call(self, result: Result<(), Error>) {
        match self.0 {
            Report::Call(call) => call(result),
            Report::Write(side, _other) => side.write_is_done(result),
            Report::End(side, _other) => side.end_is_done(result),
        }
    }

    /// Reports the given error, or success if there is none. A `destroy` function usually ends with
    /// this.
    pub fn pass(self, error: Option<Error>) {
        self.call(error.map_or(Ok(()), Err));
    }

    /// Reports success.
    pub fn ok(self) {
        self.call(Ok(()));
    }

    /// Reports a failure.
    pub fn fail(self, error: impl Into<Error>) {
        self.call(Err(error.into()));
    }
}

/// A [`Done`] that does not keep its stream alive.
pub(in crate::stream) struct WeakDone(WeakReport);

enum WeakReport {
    Call(Callback),
    Write(Weak<dyn WritableSide>),
    End(Weak<dyn WritableSide>),
}

impl WeakDone {
    pub(in crate::stream) fn call(self, result: Result<(), Error>) {
        match self.0 {
            WeakReport::Call(call) => call(result),
            WeakReport::Write(side) => {
                if let Some(side) = side.upgrade() {
                    side.write_is_done(result);
                }
            }
            WeakReport::End(side) => {
                if let Some(side) = side.upgrade() {
                    side.end_is_done(result);
                }
            }
        }
    }

    pub(in crate::stream) fn ok(self) {
        self.call(Ok(()));
    }
}

impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Done")
    }
}
