//! The sending ends.
// Marks: a send that finds room makes no call (rows `mpsc_burst/64`, `mpsc_ping_pong`).

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures::sink::Sink;

use super::state::{Shared, State};
use crate::raw::unwind::Steps;
use crate::sync::error::{Closed, SendError, TrySendError};
use crate::sync::permits::{Lot, Request};
use crate::sync::wait_queue::Waiting;

/// A sending end of a channel with a limit; see [`channel`](super::channel()).
///
/// As a [`Sink`] it reserves a place when it is ready, which others cannot take. A sender that is
/// ready and sends nothing keeps its place until it is dropped, or closed as a sink.
///
/// # Examples
///
/// ```
/// use phaseloop::{spawn, sync::mpsc};
///
/// #[phaseloop::main]
/// async fn main() {
///     let (sender, mut receiver) = mpsc::channel(1);
///     let producer = spawn(async move {
///         for number in 0..3 {
///             sender.send(number).await.unwrap(); // waits while the channel is full
///         }
///     });
///     while let Some(number) = receiver.recv().await {
///         println!("{number}");
///     }
///     producer.await.unwrap();
/// }
/// ```
pub struct Sender<T> {
    shared: Rc<Shared<T>>,
    sink: SinkState,
}

/// What a sender has to send as a sink.
enum SinkState {
    Idle,
    /// It waits for a place.
    Waits(Request),
    /// It has a place.
    Ready,
}

/// A sending end of a channel without a limit; see [`unbounded`](super::unbounded()). It is also a
/// [`Sink`], which is always ready.
///
/// # Examples
///
/// ```
/// use phaseloop::sync::mpsc;
///
/// #[phaseloop::main]
/// async fn main() {
///     let (sender, mut receiver) = mpsc::unbounded();
///     sender.send(1).unwrap(); // from a callback, too: it never waits
///     assert_eq!(receiver.recv().await, Some(1));
/// }
/// ```
pub struct UnboundedSender<T> {
    shared: Rc<Shared<T>>,
}

impl<T> Sender<T> {
    pub(super) fn new(shared: Rc<Shared<T>>) -> Self {
        Self {
            shared,
            sink: SinkState::Idle,
        }
    }

    /// Sends a message, and waits while the channel is full. Senders that wait get their places in
    /// the order of asking; the task wakes in the microtask lane.
    ///
    /// # Errors
    ///
    /// Returns the message if the receiver is gone, or has closed the channel.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it returns, nothing was sent, and the message is dropped
    /// with it. A place that was granted to it goes to the next.
    ///
    /// # Panics
    ///
    /// If the waker of the receiver panics, the poll does. The message was sent.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{spawn, sync::mpsc};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (sender, mut receiver) = mpsc::channel(1);
    ///     spawn(async move {
    ///         for number in 0..3 {
    ///             sender.send(number).await.unwrap();
    ///         }
    ///     })
    ///     .detach();
    ///     let mut received = Vec::new();
    ///     while let Some(number) = receiver.recv().await {
    ///         received.push(number);
    ///     }
    ///     assert_eq!(received, [0, 1, 2]);
    /// }
    /// ```
    #[track_caller]
    #[inline(always)]
    pub fn send(&self, message: T) -> Sending<'_, T> {
        Sending {
            sender: self,
            message: Some(message),
            request: Request::new(1, Location::caller()),
        }
    }

    /// Sends a message if there is room and no sender waits for it.
    ///
    /// # Errors
    ///
    /// Returns the message if the channel is full or closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::mpsc;
    ///
    /// fn main() {
    ///     let (sender, _receiver) = mpsc::channel(1);
    ///     assert_eq!((sender.capacity(), sender.max_capacity()), (1, 1));
    ///     sender.try_send(1).unwrap();
    ///     assert!(sender.try_send(2).is_err(), "the channel is full");
    /// }
    /// ```
    #[inline]
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        if self.shared.state.permits().try_take(1) {
            self.shared.push(message);
            Ok(())
        } else if self.is_closed() {
            Err(TrySendError::Closed(message))
        } else {
            Err(TrySendError::Full(message))
        }
    }

    /// Returns how many messages can be sent without a wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::mpsc;
    ///
    /// fn main() {
    ///     let (sender, _receiver) = mpsc::channel(1);
    ///     assert_eq!((sender.capacity(), sender.max_capacity()), (1, 1));
    ///     sender.try_send(1).unwrap();
    ///     assert!(sender.try_send(2).is_err(), "the channel is full");
    /// }
    /// ```
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.state.permits().free()
    }

    /// Returns how many messages the channel holds at most.
    #[must_use]
    pub fn max_capacity(&self) -> usize {
        self.shared.state.capacity().unwrap_or_default()
    }
}

impl<T> UnboundedSender<T> {
    pub(super) fn new(shared: Rc<Shared<T>>) -> Self {
        Self { shared }
    }

    /// Sends a message.
    ///
    /// # Errors
    ///
    /// Returns the message if the receiver is gone, or has closed the channel.
    ///
    /// # Panics
    ///
    /// If the waker of the receiver panics. The message was sent.
    #[inline]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        if self.is_closed() {
            return Err(SendError(message));
        }
        self.shared.push(message);
        Ok(())
    }
}

/// What both kinds of senders have.
macro_rules! impl_sender {
    ($sender:ident, $name:literal) => {
        impl<T> $sender<T> {
            /// Names the channel in reports.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::sync::mpsc;
            ///
            /// #[phaseloop::main]
            /// async fn main() {
            ///     let (sender, receiver) = mpsc::channel::<u32>(8);
            ///     let sender = sender.named("jobs"); // the name in the report of a hang
            ///     drop(receiver);
            ///     sender.closed().await;
            ///     assert!(sender.is_closed());
            /// }
            /// ```
            #[must_use]
            pub fn named(self, name: &'static str) -> Self {
                self.shared.state.identity().set_name(name);
                self
            }

            /// Returns whether nothing can be sent any more: the receiver is gone, or has closed
            /// the channel.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::sync::mpsc;
            ///
            /// #[phaseloop::main]
            /// async fn main() {
            ///     let (sender, receiver) = mpsc::channel::<u32>(8);
            ///     let sender = sender.named("jobs"); // the name in the report of a hang
            ///     drop(receiver);
            ///     sender.closed().await;
            ///     assert!(sender.is_closed());
            /// }
            /// ```
            #[must_use]
            #[inline]
            pub fn is_closed(&self) -> bool {
                self.shared.state.is_closed()
            }

            /// Waits until nothing can be sent any more.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future has no effect.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::sync::mpsc;
            ///
            /// #[phaseloop::main]
            /// async fn main() {
            ///     let (sender, receiver) = mpsc::channel::<u32>(8);
            ///     let sender = sender.named("jobs"); // the name in the report of a hang
            ///     drop(receiver);
            ///     sender.closed().await;
            ///     assert!(sender.is_closed());
            /// }
            /// ```
            #[track_caller]
            pub fn closed(&self) -> SenderClosed {
                SenderClosed {
                    state: self.shared.state.clone(),
                    waiting: Waiting::new(Location::caller()),
                }
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
            ///     let (sender, _receiver) = mpsc::channel(8);
            ///     assert!(sender.is_empty());
            ///     sender.send(1).await.unwrap();
            ///     let other = sender.clone();
            ///     assert!(sender.same_channel(&other));
            ///     assert_eq!((sender.len(), sender.sender_count()), (1, 2));
            /// }
            /// ```
            #[must_use]
            pub fn len(&self) -> usize {
                self.shared.state.len()
            }

            /// Returns whether no message is in the channel.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Returns the number of senders.
            #[must_use]
            #[doc(alias = "strong_count")]
            pub fn sender_count(&self) -> usize {
                self.shared.state.senders()
            }

            /// Returns whether two senders send to one receiver.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::sync::mpsc;
            ///
            /// #[phaseloop::main]
            /// async fn main() {
            ///     let (sender, _receiver) = mpsc::channel(8);
            ///     assert!(sender.is_empty());
            ///     sender.send(1).await.unwrap();
            ///     let other = sender.clone();
            ///     assert!(sender.same_channel(&other));
            ///     assert_eq!((sender.len(), sender.sender_count()), (1, 2));
            /// }
            /// ```
            #[must_use]
            pub fn same_channel(&self, other: &Self) -> bool {
                Rc::ptr_eq(&self.shared, &other.shared)
            }
        }

        impl<T> Clone for $sender<T> {
            fn clone(&self) -> Self {
                self.shared.state.add_sender();
                Self::new(self.shared.clone())
            }
        }

        impl<T> fmt::Debug for $sender<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct($name)
                    .field("len", &self.len())
                    .field("is_closed", &self.is_closed())
                    .finish()
            }
        }
    };
}

impl_sender!(Sender, "Sender");
impl_sender!(UnboundedSender, "UnboundedSender");

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut steps = Steps::default();
        steps.run(|| self.end_sink());
        steps.run(|| self.shared.state.remove_sender());
        steps.end();
    }
}

impl<T> Drop for UnboundedSender<T> {
    fn drop(&mut self) {
        self.shared.state.remove_sender();
    }
}

/// The sender as a sink.
impl<T> Sender<T> {
    /// Gives back the place that is reserved or waited for.
    fn end_sink(&mut self) {
        let room = self.shared.state.permits();
        match std::mem::replace(&mut self.sink, SinkState::Idle) {
            SinkState::Idle => {}
            SinkState::Waits(mut request) => request.cancel(room),
            SinkState::Ready => room.release(1),
        }
    }
}

impl<T> Sink<T> for Sender<T> {
    type Error = Closed;

    #[track_caller]
    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        let this = &mut *self;
        let state = &this.shared.state;
        if state.is_closed() {
            this.end_sink();
            return Poll::Ready(Err(Closed));
        }
        if let SinkState::Idle = this.sink {
            this.sink = SinkState::Waits(Request::new(1, Location::caller()));
        }
        if let SinkState::Waits(request) = &mut this.sink {
            std::task::ready!(request.poll(state, cx))?;
            this.sink = SinkState::Ready;
        }
        Poll::Ready(Ok(()))
    }

    fn start_send(mut self: Pin<&mut Self>, message: T) -> Result<(), Closed> {
        let is_ready = matches!(self.sink, SinkState::Ready);
        assert!(
            is_ready,
            "`poll_ready` must return `Ready` before `start_send`"
        );
        if self.is_closed() {
            self.end_sink();
            return Err(Closed);
        }
        // The message has the place.
        self.sink = SinkState::Idle;
        self.shared.push(message);
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        Poll::Ready(Ok(()))
    }

    /// Gives up the place that is reserved. The channel ends with the last sender.
    fn poll_close(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        self.end_sink();
        Poll::Ready(Ok(()))
    }
}

impl<T> Sink<T> for UnboundedSender<T> {
    type Error = Closed;

    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        Poll::Ready(if self.is_closed() {
            Err(Closed)
        } else {
            Ok(())
        })
    }

    fn start_send(self: Pin<&mut Self>, message: T) -> Result<(), Closed> {
        self.send(message).map_err(|_| Closed)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        Poll::Ready(Ok(()))
    }
}

/// The future of [`Sender::send`].
///
/// # Examples
///
/// ```
/// use phaseloop::{spawn, sync::mpsc};
///
/// #[phaseloop::main]
/// async fn main() {
///     let (sender, mut receiver) = mpsc::channel(1);
///     let producer = spawn(async move {
///         for number in 0..3 {
///             sender.send(number).await.unwrap(); // waits while the channel is full
///         }
///     });
///     while let Some(number) = receiver.recv().await {
///         println!("{number}");
///     }
///     producer.await.unwrap();
/// }
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct Sending<'a, T> {
    sender: &'a Sender<T>,
    /// `None` after it was sent.
    message: Option<T>,
    request: Request,
}

/// The message is moved, and never pinned.
impl<T> Unpin for Sending<'_, T> {}

impl<T> Future for Sending<'_, T> {
    type Output = Result<(), SendError<T>>;

    /// # Panics
    ///
    /// If it is polled after it has returned.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        assert!(this.message.is_some(), "a message is sent once");
        let shared = &this.sender.shared;
        let result = std::task::ready!(this.request.poll(&shared.state, cx));
        let message = this.message.take().expect("it was not sent");
        Poll::Ready(match result {
            Ok(()) => {
                shared.push(message);
                Ok(())
            }
            Err(Closed) => Err(SendError(message)),
        })
    }
}

impl<T> Drop for Sending<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.request.cancel(self.sender.shared.state.permits());
    }
}

impl<T> fmt::Debug for Sending<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").finish_non_exhaustive()
    }
}

/// The future of [`Sender::closed`].
///
/// # Examples
///
/// ```
/// use phaseloop::sync::mpsc;
///
/// #[phaseloop::main]
/// async fn main() {
///     let (sender, receiver) = mpsc::channel::<u32>(8);
///     let sender = sender.named("jobs"); // the name in the report of a hang
///     drop(receiver);
///     sender.closed().await;
///     assert!(sender.is_closed());
/// }
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct SenderClosed {
    state: Rc<State>,
    waiting: Waiting,
}

impl Future for SenderClosed {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.state.is_closed() {
            return Poll::Ready(());
        }
        // User code, which may close the channel.
        let waker = cx.waker().clone();
        if this.state.is_closed() {
            return Poll::Ready(());
        }
        let state = &this.state;
        let waiting = &mut this.waiting;
        let closing = state.closing();
        closing.wait(waiting, waker, state.identity(), state);
        Poll::Pending
    }
}

impl Drop for SenderClosed {
    fn drop(&mut self) {
        self.state.closing().stop(&mut self.waiting);
    }
}

impl fmt::Debug for SenderClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SenderClosed").finish_non_exhaustive()
    }
}
