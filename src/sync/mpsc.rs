//! Channels for many senders and one receiver.
//!
//! | channel | its senders | when the receiver is slow |
//! |---|---|---|
//! | [`channel(n)`](channel()) | [`Sender::send`] waits for a place, in order | senders wait |
//! | [`unbounded()`](unbounded()) | [`UnboundedSender::send`] returns at once | memory grows |
//!
//! Messages are received in the order of sending. Both ends stay on one thread. Between loops and
//! threads use [`Remote`](crate::Remote), or a channel of another crate.
//!
//! There is no `blocking_send` and no `blocking_recv`: they would stop the loop on whose thread the
//! other end is. Use [`Sender::try_send`] and [`Receiver::try_recv`] outside of async code.
//!
//! # Examples
//!
//! ```
//! use phaseloop::{spawn, sync::mpsc};
//!
//! #[phaseloop::main]
//! async fn main() {
//!     let (jobs, mut queue) = mpsc::channel(2);
//!     let worker = spawn(async move {
//!         let mut sum = 0;
//!         while let Some(job) = queue.recv().await {
//!             sum += job;
//!         }
//!         sum
//!     });
//!     for job in 1..=4 {
//!         jobs.send(job).await.unwrap(); // waits while two are queued
//!     }
//!     drop(jobs); // no more jobs: the worker ends
//!     assert_eq!(worker.await.unwrap(), 10);
//! }
//! ```

mod receiver;
mod sender;
mod state;

use std::panic::Location;
use std::rc::Rc;

pub use self::receiver::{Receiver, Recv};
pub use self::sender::{Sender, SenderClosed, Sending, UnboundedSender};
use self::state::Shared;
pub use super::error::{SendError, TryRecvError, TrySendError};

/// The errors of this module, at the path that tokio gives them.
///
/// ```
/// use phaseloop::sync::mpsc::{self, error::{SendError, TryRecvError, TrySendError}};
///
/// #[phaseloop::main]
/// async fn main() {
///     let (sender, mut receiver) = mpsc::channel(1);
///     assert_eq!(sender.try_send("one"), Ok(()));
///     assert_eq!(sender.try_send("two"), Err(TrySendError::Full("two")));
///     assert_eq!(receiver.recv().await, Some("one"));
///     assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
///     drop(receiver);
///     assert_eq!(sender.send("three").await, Err(SendError("three")));
/// }
/// ```
pub mod error {
    pub use super::super::error::{SendError, TryRecvError, TrySendError};
}

/// Creates a channel that holds up to `capacity` messages.
///
/// # Panics
///
/// If the capacity is zero.
///
/// # Examples
///
/// ```
/// use phaseloop::sync::mpsc;
///
/// fn main() {
///     let (sender, mut receiver) = mpsc::channel(1);
///     sender.try_send("one").unwrap();
///     assert!(sender.try_send("two").is_err(), "it is full");
///     assert_eq!(receiver.try_recv(), Ok("one"));
/// }
/// ```
#[track_caller]
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(capacity > 0, "a channel holds one message at least");
    let shared = Shared::new(Some(capacity), Location::caller());
    (Sender::new(shared.clone()), Receiver::new(shared))
}

/// Creates a channel that holds any number of messages.
///
/// A sender that is faster than the receiver fills the memory. Prefer [`channel`](channel()) for
/// what comes from outside of the program.
///
/// # Examples
///
/// ```
/// use phaseloop::sync::mpsc;
///
/// #[phaseloop::main]
/// async fn main() {
///     let (sender, mut receiver) = mpsc::unbounded();
///     for number in 0..1000 {
///         sender.send(number).unwrap();
///     }
///     assert_eq!(receiver.len(), 1000);
///     assert_eq!(receiver.recv().await, Some(0));
/// }
/// ```
#[track_caller]
#[doc(alias = "unbounded_channel")]
pub fn unbounded<T>() -> (UnboundedSender<T>, Receiver<T>) {
    let shared = Shared::new(None, Location::caller());
    let sender = UnboundedSender::new(Rc::clone(&shared));
    (sender, Receiver::new(shared))
}
