//! A channel for one value.
//!
//! The value of a task is returned by its [`JoinHandle`](crate::JoinHandle). This channel is for a
//! value that is known before a task ends, or that a callback has.
//!
//! Both ends stay on one thread. From another thread use
//! [`Remote::spawn`](crate::Remote::spawn) or a channel of another crate. There is no
//! `blocking_recv`, which would stop the loop on whose thread the sender is.
//!
//! # Examples
//!
//! ```
//! use phaseloop::{spawn, sync::oneshot};
//!
//! #[phaseloop::main]
//! async fn main() {
//!     let (ready, is_ready) = oneshot::channel();
//!     spawn(async move {
//!         let address = "127.0.0.1:8080"; // … binds …
//!         ready.send(address).unwrap();
//!         // … and serves …
//!     })
//!     .detach();
//!     assert_eq!(is_ready.await, Ok("127.0.0.1:8080"));
//! }
//! ```

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures::future::FusedFuture;

use super::error::Closed;
pub use super::error::TryRecvError;
use crate::event_loop::current;
use crate::executor::notes::WaitNote;
use crate::raw::unwind::Steps;

/// The errors of this module, at the path that tokio gives them.
///
/// ```
/// use phaseloop::sync::oneshot::{self, error::{RecvError, TryRecvError}};
///
/// #[phaseloop::main]
/// async fn main() {
///     let (sender, mut receiver) = oneshot::channel::<u32>();
///     assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
///     drop(sender);
///     assert_eq!(receiver.await, Err(RecvError)); // the name that tokio gives `sync::Closed`
/// }
/// ```
pub mod error {
    pub use super::super::error::{Closed as RecvError, TryRecvError};
}

/// Creates a channel for one value.
///
/// # Examples
///
/// ```
/// use phaseloop::{spawn, sync::oneshot};
///
/// #[phaseloop::main]
/// async fn main() {
///     let (sender, receiver) = oneshot::channel();
///     spawn(async move { sender.send(42).unwrap() }).detach();
///     assert_eq!(receiver.await, Ok(42));
/// }
/// ```
#[track_caller]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Rc::new(Shared {
        value: Cell::new(None),
        is_sender_gone: Cell::new(false),
        is_closed: Cell::new(false),
        receiver: Cell::new(None),
        sender: Cell::new(None),
    });
    let site = Some(Location::caller());
    let sender = Sender {
        shared: shared.clone(),
        note: WaitNote::new("the end of oneshot channel", "", site),
    };
    let receiver = Receiver {
        shared,
        is_done: false,
        note: WaitNote::new("oneshot channel", "", site),
    };
    (sender, receiver)
}

struct Shared<T> {
    value: Cell<Option<T>>,
    /// The sender has sent, or was dropped.
    is_sender_gone: Cell<bool>,
    /// The receiver is gone, or takes no value any more.
    is_closed: Cell<bool>,
    /// The wakers of the two ends.
    receiver: Cell<Option<Waker>>,
    sender: Cell<Option<Waker>>,
}

/// Sends the value; see [`channel`]. The drop lets the receiver get an error.
///
/// # Examples
///
/// ```
/// use phaseloop::sync::oneshot;
///
/// fn main() {
///     let (sender, receiver) = oneshot::channel();
///     assert!(!sender.is_closed());
///     drop(receiver);
///     assert!(sender.is_closed());
///     assert_eq!(sender.send(1), Err(1)); // the value is back
/// }
/// ```
pub struct Sender<T> {
    shared: Rc<Shared<T>>,
    note: WaitNote,
}

/// Waits for the value; see [`channel`]. It is a future, which may be polled by `&mut receiver`.
///
/// # Errors
///
/// The future returns [`Closed`] if the sender was dropped, or if the channel was
/// [closed](Self::close) before the value came.
///
/// # Cancel safety
///
/// The receiver itself is the future: polling it by reference loses nothing. Dropping it drops a
/// value that was sent.
///
/// # Examples
///
/// ```
/// use phaseloop::sync::oneshot;
///
/// #[phaseloop::main]
/// async fn main() {
///     let (sender, receiver) = oneshot::channel::<u32>();
///     drop(sender);
///     assert!(receiver.await.is_err(), "no value will come");
/// }
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct Receiver<T> {
    shared: Rc<Shared<T>>,
    is_done: bool,
    note: WaitNote,
}

impl<T> Sender<T> {
    /// Names the channel in reports.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::oneshot;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (sender, receiver) = oneshot::channel();
    ///     let receiver = receiver.named("answer"); // the name in the report of a hang
    ///     sender.named("answer").send(42).unwrap();
    ///     assert_eq!(receiver.await, Ok(42));
    /// }
    /// ```
    #[must_use]
    pub fn named(mut self, name: &'static str) -> Self {
        self.note.set_name(name);
        self
    }

    /// Sends the value. The task that waits wakes in the microtask lane.
    ///
    /// # Errors
    ///
    /// Returns the value if the receiver is gone, or has closed the channel.
    ///
    /// # Panics
    ///
    /// If the waker of the receiver panics. The value was sent.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{spawn, sync::oneshot};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (sender, receiver) = oneshot::channel();
    ///     spawn(async move { sender.send(42).unwrap() }).detach();
    ///     assert_eq!(receiver.await, Ok(42));
    /// }
    /// ```
    #[inline]
    pub fn send(self, value: T) -> Result<(), T> {
        if self.is_closed() {
            return Err(value);
        }
        self.shared.value.set(Some(value));
        // The drop wakes the receiver.
        Ok(())
    }

    /// Returns whether the value would not be received.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::oneshot;
    ///
    /// fn main() {
    ///     let (sender, receiver) = oneshot::channel();
    ///     assert!(!sender.is_closed());
    ///     drop(receiver);
    ///     assert!(sender.is_closed());
    ///     assert_eq!(sender.send(1), Err(1)); // the value is back
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed.get()
    }

    /// Waits until the value would not be received.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::oneshot;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (mut sender, receiver) = oneshot::channel::<u32>();
    ///     drop(receiver);
    ///     sender.closed().await; // the answer is not wanted: stop searching
    /// }
    /// ```
    pub async fn closed(&mut self) {
        let stop = StopOnDrop(self);
        std::future::poll_fn(|cx| stop.0.poll_closed(cx)).await;
    }

    /// Polls whether the value would not be received, as [`closed`](Self::closed) does. A wake of
    /// the last waker that was passed in is enough.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::poll_fn;
    /// use phaseloop::sync::oneshot;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (mut sender, receiver) = oneshot::channel::<u32>();
    ///     drop(receiver);
    ///     poll_fn(|cx| sender.poll_closed(cx)).await; // the work can be given up
    /// }
    /// ```
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_closed() {
            // User code, which may drop the receiver.
            let waker = cx.waker().clone();
            let before = self.shared.sender.replace(Some(waker));
            drop(before);
        }
        let polled = if self.is_closed() {
            Poll::Ready(())
        } else {
            Poll::Pending
        };
        current::note_wait(&mut self.note, cx, polled)
    }
}

/// Ends the wait of a sender, whose future is dropped.
struct StopOnDrop<'a, T>(&'a mut Sender<T>);

impl<T> Drop for StopOnDrop<'_, T> {
    fn drop(&mut self) {
        self.0.note.end();
        let waker = self.0.shared.sender.take();
        drop(waker);
    }
}

impl<T> Drop for Sender<T> {
    #[inline]
    fn drop(&mut self) {
        let shared = &*self.shared;
        shared.is_sender_gone.set(true);
        let own = shared.sender.take();
        let receiver = shared.receiver.take();
        if own.is_none() {
            // The common case needs no care for a second panic.
            if let Some(receiver) = receiver {
                receiver.wake();
            }
            return;
        }
        let mut steps = Steps::default();
        steps.run(|| drop(own));
        if let Some(receiver) = receiver {
            steps.run(|| receiver.wake());
        }
        steps.end();
    }
}

impl<T> Receiver<T> {
    /// Names the channel in reports.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::oneshot;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (sender, receiver) = oneshot::channel();
    ///     let receiver = receiver.named("answer"); // the name in the report of a hang
    ///     sender.named("answer").send(42).unwrap();
    ///     assert_eq!(receiver.await, Ok(42));
    /// }
    /// ```
    pub fn named(mut self, name: &'static str) -> Self {
        self.note.set_name(name);
        self
    }

    /// Returns the value if it was sent.
    ///
    /// # Errors
    ///
    /// If it was not sent yet, or will not be.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::oneshot;
    ///
    /// fn main() {
    ///     let (sender, mut receiver) = oneshot::channel();
    ///     assert!(receiver.try_recv().is_err() && !receiver.has_value());
    ///     sender.send(42).unwrap();
    ///     assert!(receiver.has_value());
    ///     assert_eq!(receiver.try_recv(), Ok(42));
    /// }
    /// ```
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        // Asked first: a value is set before its sender is gone.
        let is_ended = self.is_ended();
        match self.shared.value.take() {
            Some(value) => {
                self.is_done = true;
                Ok(value)
            }
            None if is_ended => Err(TryRecvError::Closed),
            None => Err(TryRecvError::Empty),
        }
    }

    fn is_ended(&self) -> bool {
        self.is_done || self.shared.is_sender_gone.get() || self.shared.is_closed.get()
    }

    /// Closes the channel: no value is sent any more. One that was sent can be received.
    ///
    /// # Panics
    ///
    /// If the waker of the sender panics.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::oneshot;
    ///
    /// fn main() {
    ///     let (sender, mut receiver) = oneshot::channel();
    ///     receiver.close();
    ///     assert_eq!(sender.send(42), Err(42));
    /// }
    /// ```
    pub fn close(&mut self) {
        self.shared.is_closed.set(true);
        if let Some(sender) = self.shared.sender.take() {
            sender.wake();
        }
    }

    /// Returns whether the value was sent and not received yet.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::oneshot;
    ///
    /// fn main() {
    ///     let (sender, mut receiver) = oneshot::channel();
    ///     assert!(receiver.try_recv().is_err() && !receiver.has_value());
    ///     sender.send(42).unwrap();
    ///     assert!(receiver.has_value());
    ///     assert_eq!(receiver.try_recv(), Ok(42));
    /// }
    /// ```
    #[must_use]
    pub fn has_value(&self) -> bool {
        let value = self.shared.value.take();
        let has_value = value.is_some();
        self.shared.value.set(value);
        has_value
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, Closed>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut received = this.try_recv();
        if matches!(received, Err(TryRecvError::Empty)) {
            // User code, which may send.
            let waker = cx.waker().clone();
            let before = this.shared.receiver.replace(Some(waker));
            drop(before);
            received = this.try_recv();
        }
        let polled = match received {
            Ok(value) => Poll::Ready(Ok(value)),
            Err(TryRecvError::Closed) => {
                this.is_done = true;
                Poll::Ready(Err(Closed))
            }
            Err(TryRecvError::Empty) => Poll::Pending,
        };
        current::note_wait(&mut this.note, cx, polled)
    }
}

impl<T> FusedFuture for Receiver<T> {
    fn is_terminated(&self) -> bool {
        self.is_done
    }
}

impl<T> Drop for Receiver<T> {
    #[inline]
    fn drop(&mut self) {
        let shared = &*self.shared;
        shared.is_closed.set(true);
        let (own, sender) = (shared.receiver.take(), shared.sender.take());
        let value = shared.value.take();
        if own.is_none() && sender.is_none() {
            return;
        }
        let mut steps = Steps::default();
        if let Some(sender) = sender {
            steps.run(|| sender.wake());
        }
        steps.run(|| drop(own));
        steps.run(|| drop(value));
        steps.end();
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("is_closed", &self.is_closed())
            .finish()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("has_value", &self.has_value())
            .finish()
    }
}
