//! Errors of the loop itself. OS errors stay [`io::Error`](std::io::Error)s.

/// Implements `Debug` for an error: the text of `Display`, which `unwrap` and a `main` that returns
/// the error print; with `{:#?}` the fields.
macro_rules! debug_as_display {
    ($error:ident { $($field:ident),* }) => {
        impl ::std::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                if f.alternate() {
                    f.debug_struct(stringify!($error))
                        $(.field(stringify!($field), &self.$field))*
                        .finish()
                } else {
                    ::std::fmt::Display::fmt(self, f)
                }
            }
        }
    };
}
pub(crate) use debug_as_display;

pub(crate) mod kinds;
#[cfg(any(feature = "fs", feature = "net"))]
pub(crate) mod os;

use std::fmt;

#[cfg(any(feature = "fs", feature = "net"))]
pub use os::{OsError, os_error};

/// An error of the loop itself, such as the use of a closed handle.
///
/// The type is opaque, so that reasons can be added: match with its predicates. The text is for
/// people and may change.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::{LoopHandle, time::Timer};
///
/// #[phaseloop::main]
/// async fn main() {
///     let timer = Timer::new(&LoopHandle::current());
///     assert!(timer.again().unwrap_err().is_never_started());
///     timer.close().then(|| ());
///     let error = timer.start(Duration::ZERO, Duration::ZERO, |_| ()).unwrap_err();
///     assert!(error.is_handle_closed(), "{error}");
/// }
/// ```
pub struct Error {
    kind: Kind,
    /// The pending tasks, for the reasons that name them.
    pending: Option<Box<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    LoopClosed,
    HandleClosed,
    NeverStarted,
    Deadlock,
    Stopped,
}

impl Error {
    pub(crate) const LOOP_CLOSED: Self = Self::new(Kind::LoopClosed);
    pub(crate) const HANDLE_CLOSED: Self = Self::new(Kind::HandleClosed);
    pub(crate) const NEVER_STARTED: Self = Self::new(Kind::NeverStarted);

    const fn new(kind: Kind) -> Self {
        Self {
            kind,
            pending: None,
        }
    }

    pub(crate) fn deadlock(pending: Box<str>) -> Self {
        Self {
            kind: Kind::Deadlock,
            pending: Some(pending),
        }
    }

    pub(crate) fn stopped(pending: Box<str>) -> Self {
        Self {
            kind: Kind::Stopped,
            pending: Some(pending),
        }
    }

    /// The loop has been dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::EventLoop;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let remote = EventLoop::new()?.remote(); // the loop is dropped at once
    ///     assert!(remote.wake().unwrap_err().is_loop_closed());
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn is_loop_closed(&self) -> bool {
        self.kind == Kind::LoopClosed
    }

    /// The handle was closed and cannot be started again.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{LoopHandle, time::Timer};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let timer = Timer::new(&LoopHandle::current());
    ///     assert!(timer.again().unwrap_err().is_never_started());
    ///     timer.close().then(|| ());
    ///     let error = timer.start(Duration::ZERO, Duration::ZERO, |_| ()).unwrap_err();
    ///     assert!(error.is_handle_closed(), "{error}");
    /// }
    /// ```
    #[must_use]
    pub fn is_handle_closed(&self) -> bool {
        self.kind == Kind::HandleClosed
    }

    /// The timer was never started, so it has no callback to start again.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{LoopHandle, time::Timer};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let timer = Timer::new(&LoopHandle::current());
    ///     assert!(timer.again().unwrap_err().is_never_started());
    ///     timer.close().then(|| ());
    ///     let error = timer.start(Duration::ZERO, Duration::ZERO, |_| ()).unwrap_err();
    ///     assert!(error.is_handle_closed(), "{error}");
    /// }
    /// ```
    #[must_use]
    pub fn is_never_started(&self) -> bool {
        self.kind == Kind::NeverStarted
    }

    /// Nothing was left that could wake the main future, and it had not returned.
    ///
    /// # Examples
    ///
    /// ```
    /// fn main() {
    ///     let error = phaseloop::run(std::future::pending::<()>()).unwrap_err();
    ///     assert!(error.is_deadlock());
    ///     println!("{error}"); // with what the future and the tasks wait for
    /// }
    /// ```
    #[must_use]
    pub fn is_deadlock(&self) -> bool {
        self.kind == Kind::Deadlock
    }

    /// The loop was stopped before the main future had returned.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.kind == Kind::Stopped
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pending = self.pending.as_deref().unwrap_or("something");
        match self.kind {
            Kind::LoopClosed => f.write_str("the event loop has been dropped"),
            Kind::HandleClosed => {
                f.write_str("the handle is closed; make a new one to start again")
            }
            Kind::NeverStarted => {
                f.write_str("the timer was never started; call `start` before `again` or `restart`")
            }
            Kind::Deadlock => write!(
                f,
                "deadlock: nothing left on the event loop can wake {pending}. A future that waits \
                 only for a channel, another task or something unref'd does not keep the loop \
                 alive. Wait for a timer, I/O or a job of the pool, or use `block_on` if another \
                 thread wakes the future"
            ),
            Kind::Stopped => write!(
                f,
                "the event loop was stopped, by `LoopHandle::stop` or `Remote::stop`, before \
                 {pending} completed"
            ),
        }
    }
}

debug_as_display!(Error { kind, pending });

impl std::error::Error for Error {}

/// For programs that return `io::Result`; the kind is [`Other`](std::io::ErrorKind::Other).
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        Self::other(error)
    }
}
