//! The errors of locks and channels.

use std::error::Error;
use std::fmt;

use crate::error::debug_as_display;

/// What was waited for cannot come any more: the other side of the channel is gone, or the
/// semaphore is closed.
///
/// # Examples
///
/// ```
/// use phaseloop::sync::{Closed, oneshot};
///
/// #[phaseloop::main]
/// async fn main() {
///     let (sender, receiver) = oneshot::channel::<u32>();
///     drop(sender);
///     assert_eq!(receiver.await, Err(Closed));
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Closed;

/// The lock is taken, or a task waits for it.
///
/// # Examples
///
/// ```
/// use phaseloop::sync::Mutex;
///
/// fn main() {
///     let mutex = Mutex::new(1);
///     let guard = mutex.try_lock().unwrap();
///     assert_eq!(mutex.try_lock().unwrap_err().to_string(), "the mutex is locked");
///     drop(guard);
///     assert!(mutex.try_lock().is_ok());
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TryLockError;

/// Why a semaphore has no permits at once.
///
/// # Examples
///
/// ```
/// use phaseloop::sync::{Semaphore, TryAcquireError};
///
/// fn main() {
///     let semaphore = Semaphore::new(1);
///     assert_eq!(semaphore.try_acquire(2).unwrap_err(), TryAcquireError::NoPermits);
///     semaphore.close();
///     assert_eq!(semaphore.try_acquire(1).unwrap_err(), TryAcquireError::Closed);
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TryAcquireError {
    /// The semaphore is closed.
    Closed,
    /// Too few permits are free, or a task waits for them.
    NoPermits,
}

/// A message that was not sent, since no receiver will get it.
///
/// # Examples
///
/// ```
/// use phaseloop::sync::mpsc;
///
/// #[phaseloop::main]
/// async fn main() {
///     let (sender, receiver) = mpsc::channel(1);
///     drop(receiver);
///     assert_eq!(sender.send("back").await.unwrap_err().into_inner(), "back");
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

/// A message that could not be sent at once.
///
/// # Examples
///
/// ```
/// use phaseloop::sync::mpsc::{self, TrySendError};
///
/// fn main() {
///     let (sender, receiver) = mpsc::channel(1);
///     sender.try_send(1).unwrap();
///     assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
///     drop(receiver);
///     assert_eq!(sender.try_send(3), Err(TrySendError::Closed(3)));
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// The channel is full, or a sender waits for its next place.
    Full(T),
    /// No receiver will get the message.
    Closed(T),
}

/// Why nothing was received at once.
///
/// # Examples
///
/// ```
/// use phaseloop::sync::mpsc::{self, TryRecvError};
///
/// fn main() {
///     let (sender, mut receiver) = mpsc::channel::<u32>(1);
///     assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
///     drop(sender);
///     assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TryRecvError {
    /// There is no message now.
    Empty,
    /// No message will come.
    #[doc(alias = "Disconnected")]
    Closed,
}

impl<T> SendError<T> {
    /// Returns the message.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::mpsc;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (sender, receiver) = mpsc::channel(1);
    ///     drop(receiver);
    ///     let error = sender.send("letter").await.unwrap_err();
    ///     assert_eq!(error.into_inner(), "letter"); // the message is not lost
    /// }
    /// ```
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> TrySendError<T> {
    /// Returns the message.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::mpsc;
    ///
    /// fn main() {
    ///     let (sender, _receiver) = mpsc::channel(1);
    ///     sender.try_send(1).unwrap();
    ///     assert_eq!(sender.try_send(2).unwrap_err().into_inner(), 2); // full
    /// }
    /// ```
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(message) | Self::Closed(message) => message,
        }
    }

    fn text(&self) -> &'static str {
        match self {
            Self::Full(_) => "the channel is full",
            Self::Closed(_) => NO_RECEIVER,
        }
    }
}

const NO_RECEIVER: &str = "no receiver will get the message";

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the channel or semaphore is closed")
    }
}

impl fmt::Display for TryLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the mutex is locked")
    }
}

impl fmt::Display for TryAcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "the semaphore is closed",
            Self::NoPermits => "too few permits are free",
        })
    }
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "there is no message",
            Self::Closed => "no message will come",
        })
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NO_RECEIVER)
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// The message need not be `Debug`, and may be long.
impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The message need not be `Debug`, and may be long.
impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

debug_as_display!(Closed {});
debug_as_display!(TryLockError {});
debug_as_display!(TryAcquireError {});
debug_as_display!(TryRecvError {});

impl Error for Closed {}
impl Error for TryLockError {}
impl Error for TryAcquireError {}
impl Error for TryRecvError {}
impl<T> Error for SendError<T> {}
impl<T> Error for TrySendError<T> {}
