//! Why a channel has not sent or received.

use std::fmt;

/// The message of a [`Sender::send`](super::Sender::send) whose receiver is gone.
///
/// # Examples
///
/// ```
/// use phaseloop::cluster::{self, TrySendError};
///
/// fn main() -> std::io::Result<()> {
///     cluster::Builder::new().loops(1).block_on(async {
///         let (sender, receiver) = cluster::channel(1);
///         sender.try_send(1).unwrap();
///         assert!(matches!(sender.try_send(2), Err(TrySendError::Full(2))));
///         drop(receiver);
///         assert!(sender.is_closed() && sender.send(3).await.is_err());
///     })?;
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(
    /// The message.
    pub T,
);

/// Why [`Sender::try_send`](super::Sender::try_send) has not sent.
///
/// # Examples
///
/// ```
/// use phaseloop::cluster::{self, TrySendError};
///
/// fn main() -> std::io::Result<()> {
///     cluster::Builder::new().loops(1).block_on(async {
///         let (sender, receiver) = cluster::channel(1);
///         sender.try_send(1).unwrap();
///         assert!(matches!(sender.try_send(2), Err(TrySendError::Full(2))));
///         drop(receiver);
///         assert!(sender.is_closed() && sender.send(3).await.is_err());
///     })?;
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// The channel is full.
    Full(T),
    /// The receiver is gone.
    Closed(T),
}

/// Why [`Receiver::try_recv`](super::Receiver::try_recv) returns no message.
///
/// # Examples
///
/// ```
/// use phaseloop::cluster::{self, TryRecvError};
///
/// fn main() -> std::io::Result<()> {
///     cluster::Builder::new().loops(1).block_on(async {
///         let (sender, mut receiver) = cluster::channel::<u32>(1);
///         assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
///         drop(sender);
///         assert_eq!(receiver.recv().await, None);
///     })?;
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TryRecvError {
    /// There is no message at this moment.
    Empty,
    /// All senders are gone.
    Closed,
}

const CLOSED: &str = "the receiver of the channel is gone";

/// Prints the text, for `unwrap`; the message need not be `Debug`.
impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CLOSED)
    }
}

impl<T> std::error::Error for SendError<T> {}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the channel is full",
            Self::Closed(_) => CLOSED,
        })
    }
}

impl<T> std::error::Error for TrySendError<T> {}

impl fmt::Debug for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the channel is empty",
            Self::Closed => "all senders of the channel are gone",
        })
    }
}

impl std::error::Error for TryRecvError {}
