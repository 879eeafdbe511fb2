//! The receiving end.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures::stream::{FusedStream, Stream};

use super::state::Shared;
use crate::raw::unwind::Steps;
use crate::site::Site;
use crate::sync::error::TryRecvError;
use crate::sync::permits::Lot;

/// The receiving end of a channel; see [`channel`](super::channel()). It is also a [`Stream`].
///
/// The drop closes the channel, and drops the messages in it.
///
/// # Examples
///
/// ```
/// use phaseloop::sync::mpsc;
///
/// #[phaseloop::main]
/// async fn main() {
///     let (sender, mut receiver) = mpsc::channel(8);
///     sender.send(1).await.unwrap();
///     drop(sender);
///     while let Some(message) = receiver.recv().await {
///         assert_eq!(message, 1);
///     }
/// }
/// ```
pub struct Receiver<T> {
    shared: Rc<Shared<T>>,
}

impl<T> Receiver<T> {
    pub(super) fn new(shared: Rc<Shared<T>>) -> Self {
        Self { shared }
    }

    /// Names the channel in reports.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::mpsc;
    ///
    /// fn main() {
    ///     let (sender, receiver) = mpsc::channel::<u32>(8);
    ///     let receiver = receiver.named("jobs"); // the name in the report of a hang
    ///     assert_eq!(receiver.sender_count(), 1);
    ///     drop(sender);
    ///     assert!(receiver.is_closed());
    /// }
    /// ```
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        self.shared.state.identity().set_name(name);
        self
    }

    /// Waits for the next message. Returns `None` if the channel is empty, and all senders are gone
    /// or the channel is [closed](Self::close). The task wakes in the microtask lane.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no message.
    ///
    /// # Panics
    ///
    /// If the waker of a sender panics, the poll does. The message is received by the next one.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::mpsc;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (sender, mut receiver) = mpsc::channel(8);
    ///     sender.send(1).await.unwrap();
    ///     drop(sender);
    ///     assert_eq!(receiver.recv().await, Some(1));
    ///     assert_eq!(receiver.recv().await, None);
    /// }
    /// ```
    #[track_caller]
    #[inline]
    pub fn recv(&mut self) -> Recv<'_, T> {
        Recv {
            receiver: self,
            site: Location::caller(),
        }
    }

    /// Polls for the next message, as [`recv`](Self::recv) does. A wake of the last waker that was
    /// passed in is enough.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::poll_fn;
    /// use phaseloop::sync::mpsc;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (sender, mut receiver) = mpsc::channel(8);
    ///     sender.send(1).await.unwrap();
    ///     assert_eq!(poll_fn(|cx| receiver.poll_recv(cx)).await, Some(1));
    /// }
    /// ```
    #[inline]
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.shared.poll_pop(None, cx)
    }

    /// Returns the next message if there is one.
    ///
    /// # Errors
    ///
    /// If there is none, now or for ever.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::mpsc;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (sender, mut receiver) = mpsc::channel(8);
    ///     assert!(receiver.try_recv().is_err() && receiver.is_empty());
    ///     sender.send(1).await.unwrap();
    ///     assert_eq!((receiver.len(), receiver.capacity()), (1, Some(7)));
    ///     assert_eq!(receiver.try_recv(), Ok(1));
    /// }
    /// ```
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        match self.shared.pop() {
            Some(message) => Ok(message),
            None if self.shared.state.is_ended() => Err(TryRecvError::Closed),
            None => Err(TryRecvError::Empty),
        }
    }

    /// Closes the channel: nothing is sent any more. Senders that wait get their messages back. The
    /// messages in the channel can be received.
    ///
    /// # Panics
    ///
    /// If the waker of a sender panics. All are woken before the panic is resumed.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::mpsc;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (sender, mut receiver) = mpsc::channel(2);
    ///     sender.send("last").await.unwrap();
    ///     receiver.close();
    ///     assert!(sender.send("late").await.is_err());
    ///     assert_eq!(receiver.recv().await, Some("last"));
    ///     assert_eq!(receiver.recv().await, None);
    /// }
    /// ```
    pub fn close(&mut self) {
        self.shared.state.close();
    }

    /// Returns whether the channel was [closed](Self::close), or all senders are gone.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::mpsc;
    ///
    /// fn main() {
    ///     let (sender, receiver) = mpsc::channel::<u32>(8);
    ///     let receiver = receiver.named("jobs"); // the name in the report of a hang
    ///     assert_eq!(receiver.sender_count(), 1);
    ///     drop(sender);
    ///     assert!(receiver.is_closed());
    /// }
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.state.is_ended()
    }

    /// Returns the number of messages in the channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::mpsc;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (sender, mut receiver) = mpsc::channel(8);
    ///     assert!(receiver.try_recv().is_err() && receiver.is_empty());
    ///     sender.send(1).await.unwrap();
    ///     assert_eq!((receiver.len(), receiver.capacity()), (1, Some(7)));
    ///     assert_eq!(receiver.try_recv(), Ok(1));
    /// }
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.state.len()
    }

    /// Returns whether no message is in the channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::mpsc;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (sender, mut receiver) = mpsc::channel(8);
    ///     assert!(receiver.try_recv().is_err() && receiver.is_empty());
    ///     sender.send(1).await.unwrap();
    ///     assert_eq!((receiver.len(), receiver.capacity()), (1, Some(7)));
    ///     assert_eq!(receiver.try_recv(), Ok(1));
    /// }
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many messages can be sent without a wait, or `None` for a channel without a
    /// limit.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::mpsc;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (sender, mut receiver) = mpsc::channel(8);
    ///     assert!(receiver.try_recv().is_err() && receiver.is_empty());
    ///     sender.send(1).await.unwrap();
    ///     assert_eq!((receiver.len(), receiver.capacity()), (1, Some(7)));
    ///     assert_eq!(receiver.try_recv(), Ok(1));
    /// }
    /// ```
    #[must_use]
    pub fn capacity(&self) -> Option<usize> {
        let state = &self.shared.state;
        state.capacity().map(|_| state.permits().free())
    }

    /// Returns the number of senders.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::mpsc;
    ///
    /// fn main() {
    ///     let (sender, receiver) = mpsc::channel::<u32>(8);
    ///     let receiver = receiver.named("jobs"); // the name in the report of a hang
    ///     assert_eq!(receiver.sender_count(), 1);
    ///     drop(sender);
    ///     assert!(receiver.is_closed());
    /// }
    /// ```
    #[must_use]
    #[doc(alias = "sender_strong_count")]
    pub fn sender_count(&self) -> usize {
        self.shared.state.senders()
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut steps = Steps::default();
        steps.run(|| self.shared.state.close());
        steps.run(|| self.shared.clear());
        steps.end();
    }
}

impl<T> Stream for Receiver<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll_recv(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.len();
        (len, self.is_closed().then_some(len))
    }
}

impl<T> FusedStream for Receiver<T> {
    fn is_terminated(&self) -> bool {
        self.is_empty() && self.is_closed()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("len", &self.len())
            .field("is_closed", &self.is_closed())
            .finish()
    }
}

/// The future of [`Receiver::recv`].
///
/// # Examples
///
/// ```
/// use phaseloop::sync::mpsc;
///
/// #[phaseloop::main]
/// async fn main() {
///     let (sender, mut receiver) = mpsc::channel(8);
///     sender.send(1).await.unwrap();
///     drop(sender);
///     while let Some(message) = receiver.recv().await {
///         assert_eq!(message, 1);
///     }
/// }
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct Recv<'a, T> {
    receiver: &'a mut Receiver<T>,
    site: Site,
}

impl<T> Future for Recv<'_, T> {
    type Output = Option<T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.receiver.shared.poll_pop(Some(self.site), cx)
    }
}

impl<T> Drop for Recv<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.receiver.shared.state.receiver().stop();
    }
}

impl<T> fmt::Debug for Recv<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recv").finish_non_exhaustive()
    }
}
