//! A bounded channel between loops, and between threads.
//!
//! Senders push under a lock. The receiver takes the whole queue at a time and returns it message
//! by message, so that a burst costs one lock and one wake. A send wakes only a receiver that
//! waits: the waker is taken out, so a second send finds none.
// Rules C8, C9, C10, C11.
// Marks: the way of a message is inlined into its task, and what happens once a batch is not:
// cluster_flood.

mod error;
#[cfg(all(test, phaseloop_loom))]
mod loom_models;
mod noted;

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use futures::Stream;
use futures::stream::FusedStream;

use self::noted::note_message;
use crate::executor::budget;
use crate::probe::joint::number_message;
use crate::raw::sync::{AtomicUsize, Mutex, MutexGuard, Ordering};
use crate::raw::unwind::Steps;
use crate::site::Site;

pub use error::{SendError, TryRecvError, TrySendError};

/// Creates a channel of this many messages, for loops and threads.
///
/// A message that is sent from another loop arrives in the poll phase; messages of one sender
/// arrive in the order of sending. The capacity counts the messages that `recv` has not returned.
///
/// # Panics
///
/// If the capacity is zero.
///
/// # Examples
///
/// ```
/// use phaseloop::cluster;
///
/// fn main() -> std::io::Result<()> {
///     cluster::Builder::new().loops(2).block_on(async {
///         let (sender, mut receiver) = cluster::channel(8);
///         let senders = cluster::current().each(move |index| {
///             let sender = sender.clone();
///             async move { sender.send(index).await.unwrap() }
///         });
///         let mut sum = 0;
///         while let Some(index) = receiver.recv().await {
///             sum += index;
///         }
///         assert_eq!(sum, 0 + 1);
///         senders.await;
///     })
/// }
/// ```
#[must_use]
#[track_caller]
pub fn channel<T: Send + 'static>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(capacity > 0, "a channel has room for at least one message");
    let shared = Arc::new(Shared {
        capacity,
        site: Location::caller(),
        used: AtomicUsize::new(0),
        state: Mutex::new(State {
            queue: VecDeque::new(),
            numbers: VecDeque::new(),
            senders: 1,
            is_received: true,
            receiver: None,
            full: VecDeque::new(),
            next_wait: 0,
        }),
    });
    let sender = Sender {
        shared: shared.clone(),
    };
    let receiver = Receiver {
        shared,
        batch: VecDeque::new(),
        numbers: VecDeque::new(),
        is_noted: false,
    };
    (sender, receiver)
}

struct Shared<T> {
    capacity: usize,
    /// The line that made the channel.
    site: Site,
    /// The messages that `recv` has not returned. Senders add to it under the lock.
    used: AtomicUsize,
    state: Mutex<State<T>>,
}

struct State<T> {
    queue: VecDeque<T>,
    /// The numbers of the messages in a trace; empty without one.
    numbers: VecDeque<u32>,
    senders: usize,
    /// Whether the receiver exists.
    is_received: bool,
    /// The receiver, while it waits and no wake is under way.
    receiver: Option<Waker>,
    /// The senders that wait for room, in their order.
    full: VecDeque<(u64, Waker)>,
    next_wait: u64,
}

impl<T> Shared<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a message that `recv` returns. Returns whether all senders that wait are to be woken,
    /// since half of the capacity is free: one by one would be a wake a message.
    fn count_received(&self) -> bool {
        let used = self.used.fetch_sub(1, Ordering::AcqRel) - 1;
        used == self.capacity / 2
    }

    #[inline(never)]
    fn wake_senders(&self) {
        let full = std::mem::take(&mut self.state().full);
        // A waker that panics keeps no other sender from its wake.
        let mut wakes = Steps::default();
        for (_, waker) in full {
            wakes.run(|| waker.wake());
        }
        wakes.end();
    }

    /// Registers a waker for when there is room, or the receiver is gone. Returns whether that is
    /// so already.
    fn wait_for_room(&self, wait: &mut Option<u64>, waker: Waker) -> bool {
        // Cloning or dropping a waker may run user code; neither happens under the lock.
        let mut state = self.state();
        if !state.is_received || !self.is_full() {
            drop(state);
            drop(waker);
            return true;
        }
        let before = state.wait(wait, waker);
        drop(state);
        drop(before);
        false
    }

    /// Queues a message, for which there is room, and wakes the receiver if it waits.
    #[inline]
    fn push(&self, mut state: MutexGuard<'_, State<T>>, message: T) {
        self.used.fetch_add(1, Ordering::AcqRel);
        state.queue.push_back(message);
        if let Some(number) = number_message() {
            note_message(true, number);
            state.numbers.push_back(number);
        }
        let receiver = state.receiver.take();
        drop(state);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
    }

    fn is_full(&self) -> bool {
        self.used.load(Ordering::Acquire) >= self.capacity
    }
}

/// The sending end of a [`channel`]; clones send to the same receiver.
///
/// # Examples
///
/// ```
/// use phaseloop::cluster;
///
/// fn main() -> std::io::Result<()> {
///     let sum = cluster::Builder::new().loops(2).block_on(async {
///         let (sender, mut receiver) = cluster::channel(16);
///         let senders = cluster::current().each(move |index| {
///             let sender = sender.clone();
///             async move { sender.send(index).await.unwrap() }
///         });
///         let mut sum = 0;
///         while let Some(index) = receiver.recv().await {
///             sum += index;
///         }
///         senders.await;
///         sum
///     })?;
///     assert_eq!(sum, 1);
///     Ok(())
/// }
/// ```
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T: Send + 'static> Sender<T> {
    /// Sends a message, and waits while the channel is full.
    ///
    /// # Errors
    ///
    /// The message, if the receiver is gone.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, the message was not sent, and is dropped.
    pub fn send(&self, message: T) -> impl Future<Output = Result<(), SendError<T>>> + '_ {
        let mut sending = Sending {
            shared: &self.shared,
            message: Some(message),
            wait: None,
        };
        poll_fn(move |cx| sending.poll(cx))
    }

    /// Sends a message if the channel has room.
    ///
    /// # Errors
    ///
    /// The message, if the channel is full or the receiver is gone.
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        let state = self.shared.state();
        if !state.is_received {
            return Err(TrySendError::Closed(message));
        }
        if self.shared.is_full() {
            return Err(TrySendError::Full(message));
        }
        self.shared.push(state, message);
        Ok(())
    }

    /// Returns whether the receiver is gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        !self.shared.state().is_received
    }

    /// Returns how many messages `recv` has not returned.
    pub(super) fn len(&self) -> usize {
        self.shared.used.load(Ordering::Acquire)
    }

    /// Returns whether there is room for a message.
    pub(super) fn has_room(&self) -> bool {
        !self.shared.is_full()
    }

    /// Registers a waker for when there is room, or the receiver is gone. `wait` is the number of
    /// the registration. Returns whether that is so already.
    pub(super) fn wait_for_room(&self, wait: &mut Option<u64>, waker: &Waker) -> bool {
        self.shared.wait_for_room(wait, waker.clone())
    }
}

const SENT: &str = "`send` polled after completion";

struct Sending<'a, T> {
    shared: &'a Arc<Shared<T>>,
    message: Option<T>,
    /// The number of the wait, if the channel was full.
    wait: Option<u64>,
}

impl<T: 'static> Sending<'_, T> {
    #[inline]
    fn poll(&mut self, cx: &Context<'_>) -> Poll<Result<(), SendError<T>>> {
        let state = self.shared.state();
        if state.is_received && !self.shared.is_full() {
            self.shared.push(state, self.message.take().expect(SENT));
            return Poll::Ready(Ok(()));
        }
        drop(state);
        self.poll_full(cx)
    }

    /// Waits for room, unless the receiver is gone.
    #[inline(never)]
    fn poll_full(&mut self, cx: &Context<'_>) -> Poll<Result<(), SendError<T>>> {
        let is_new = self.wait.is_none();
        if self
            .shared
            .wait_for_room(&mut self.wait, cx.waker().clone())
        {
            if self.shared.state().is_received {
                // There is room meanwhile, and it may be gone again.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            return Poll::Ready(Err(SendError(self.message.take().expect(SENT))));
        }
        if is_new {
            self.shared.note();
        }
        Poll::Pending
    }
}

impl<T> State<T> {
    /// Registers a sender that waits for room. Returns its waker of before.
    fn wait(&mut self, wait: &mut Option<u64>, waker: Waker) -> Option<Waker> {
        let number = *wait.get_or_insert_with(|| {
            self.next_wait += 1;
            self.next_wait
        });
        match self.full.iter_mut().find(|(one, _)| *one == number) {
            Some((_, before)) => Some(std::mem::replace(before, waker)),
            None => {
                self.full.push_back((number, waker));
                None
            }
        }
    }
}

impl<T> Drop for Sending<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(wait) = self.wait {
            self.shared.leave(wait);
        }
    }
}

impl<T> Shared<T> {
    /// Removes a sender that waits no more.
    #[inline(never)]
    fn leave(&self, wait: u64) {
        let mut state = self.state();
        let place = state.full.iter().position(|(one, _)| *one == wait);
        let waker = place.and_then(|place| state.full.remove(place));
        drop(state);
        drop(waker);
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.shared.state().senders += 1;
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.senders -= 1;
        let receiver = (state.senders == 0)
            .then(|| state.receiver.take())
            .flatten();
        drop(state);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
    }
}

/// The receiving end of a [`channel`]. It is a [`Stream`].
///
/// # Examples
///
/// ```
/// use phaseloop::cluster;
///
/// fn main() -> std::io::Result<()> {
///     let sum = cluster::Builder::new().loops(2).block_on(async {
///         let (sender, mut receiver) = cluster::channel(16);
///         let senders = cluster::current().each(move |index| {
///             let sender = sender.clone();
///             async move { sender.send(index).await.unwrap() }
///         });
///         let mut sum = 0;
///         while let Some(index) = receiver.recv().await {
///             sum += index;
///         }
///         senders.await;
///         sum
///     })?;
///     assert_eq!(sum, 1);
///     Ok(())
/// }
/// ```
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The messages that were taken out of the queue.
    batch: VecDeque<T>,
    /// Their numbers in a trace; empty without one.
    numbers: VecDeque<u32>,
    /// Whether the loop that waits knows of the channel, for its reports.
    is_noted: bool,
}

impl<T: Send + 'static> Receiver<T> {
    /// Receives a message. `None` means that all senders are gone, and all messages were received.
    ///
    /// A message counts as an operation of I/O: after 128 of them a task goes on in the next poll
    /// phase.
    ///
    /// # Panics
    ///
    /// If the waker of a sender panics, the poll does. The message is received by the next one.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no message.
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Receives a message that is there.
    ///
    /// # Errors
    ///
    /// [`TryRecvError::Empty`] if there is none, [`TryRecvError::Closed`] if there will be none.
    ///
    /// # Panics
    ///
    /// If the waker of a sender panics. The message stays in the channel then.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        if self.batch.is_empty() {
            let mut state = self.shared.state();
            std::mem::swap(&mut state.queue, &mut self.batch);
            self.numbers.append(&mut state.numbers);
            if self.batch.is_empty() {
                return Err(if state.senders == 0 {
                    TryRecvError::Closed
                } else {
                    TryRecvError::Empty
                });
            }
        }
        self.next_of_batch().ok_or(TryRecvError::Empty)
    }

    /// Closes the channel, and returns the messages that were not received.
    pub(super) fn close(&mut self) -> VecDeque<T> {
        let mut state = self.shared.state();
        state.is_received = false;
        self.batch.append(&mut state.queue);
        drop(state);
        self.shared.wake_senders();
        std::mem::take(&mut self.batch)
    }

    /// Polls [`recv`](Self::recv). The waker of the last call is kept.
    #[inline]
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        if self.batch.is_empty() && !std::task::ready!(self.poll_batch(cx)) {
            return Poll::Ready(None);
        }
        if !budget::take() && super::wakes_in_poll_phase(cx) {
            return Poll::Pending;
        }
        Poll::Ready(self.next_of_batch())
    }

    #[inline]
    fn next_of_batch(&mut self) -> Option<T> {
        let mut message = self.batch.pop_front()?;
        if self.shared.count_received() {
            message = self.wake_senders(message);
        }
        if let Some(number) = self.numbers.pop_front() {
            note_message(false, number);
        }
        Some(message)
    }

    /// Wakes the senders. If a waker panics, the message is in the batch again.
    #[inline(never)]
    fn wake_senders(&mut self, message: T) -> T {
        let mut unreceived = Unreceived {
            receiver: self,
            message: Some(message),
        };
        unreceived.receiver.shared.wake_senders();
        let message = unreceived.message.take();
        message.expect("only a panic puts the message back")
    }

    /// Takes the whole queue. Returns `false` if it is empty and all senders are gone; waits if
    /// they are not.
    #[inline(never)]
    fn poll_batch(&mut self, cx: &Context<'_>) -> Poll<bool> {
        // Cloning a waker may run user code, which happens outside the lock. With messages in the
        // queue it is not needed.
        let is_empty = self.shared.used.load(Ordering::Acquire) == 0;
        let mut waker = is_empty.then(|| cx.waker().clone());
        loop {
            let mut state = self.shared.state();
            if !state.queue.is_empty() {
                std::mem::swap(&mut state.queue, &mut self.batch);
                if !state.numbers.is_empty() {
                    self.numbers.append(&mut state.numbers);
                }
                return Poll::Ready(true);
            }
            if state.senders == 0 {
                return Poll::Ready(false);
            }
            if let Some(waker) = waker.take() {
                let before = state.receiver.replace(waker);
                drop(state);
                drop(before);
                if !std::mem::replace(&mut self.is_noted, true) {
                    self.shared.note();
                }
                return Poll::Pending;
            }
            drop(state);
            waker = Some(cx.waker().clone());
        }
    }
}

/// A message on its way out of the batch. It returns there if a waker panics.
struct Unreceived<'a, T> {
    receiver: &'a mut Receiver<T>,
    message: Option<T>,
}

impl<T> Drop for Unreceived<'_, T> {
    fn drop(&mut self) {
        if let Some(message) = self.message.take() {
            self.receiver.batch.push_front(message);
            // A sender may have its place meanwhile: the channel then has one message more.
            self.receiver.shared.used.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl<T: Send + 'static> Stream for Receiver<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll_recv(cx)
    }
}

/// No message is pinned.
impl<T> Unpin for Receiver<T> {}

impl<T: Send + 'static> FusedStream for Receiver<T> {
    fn is_terminated(&self) -> bool {
        let state = self.shared.state();
        self.batch.is_empty() && state.queue.is_empty() && state.senders == 0
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.is_received = false;
        let queue = std::mem::take(&mut state.queue);
        let receiver = state.receiver.take();
        drop(state);
        let mut steps = Steps::default();
        steps.run(|| self.shared.wake_senders());
        steps.run(|| drop(receiver));
        steps.drop_each(self.batch.drain(..).chain(queue));
        steps.end();
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}
