//! The end that watches the value.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::{Ref, Shared};
use crate::site::Site;
use crate::sync::error::Closed;
use crate::sync::wait_queue::Waiting;

/// Watches a value; see [`channel`](super::channel()). Each clone has its own memory of what it has
/// seen.
///
/// # Examples
///
/// ```
/// use phaseloop::sync::watch;
///
/// #[phaseloop::main]
/// async fn main() {
///     let (sender, mut receiver) = watch::channel("starting");
///     sender.send("ready").unwrap();
///     receiver.changed().await.unwrap();
///     assert_eq!(*receiver.borrow(), "ready");
///     drop(sender);
///     assert!(receiver.changed().await.is_err(), "no further value comes");
/// }
/// ```
pub struct Receiver<T> {
    shared: Rc<Shared<T>>,
    /// The version of the value that was seen last.
    seen: u64,
}

impl<T> Receiver<T> {
    pub(super) fn new(shared: Rc<Shared<T>>, seen: u64) -> Self {
        Self { shared, seen }
    }

    /// Names the channel in reports.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// fn main() {
    ///     let (_sender, receiver) = watch::channel(1);
    ///     let receiver = receiver.named("settings"); // the name in the report of a hang
    ///     assert!(receiver.same_channel(&receiver.clone()));
    /// }
    /// ```
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        self.shared.state.identity.set_name(name);
        self
    }

    /// Returns the value. It counts as seen as much as before.
    ///
    /// # Panics
    ///
    /// If it is called while the value is [modified](super::Sender::modify).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// fn main() {
    ///     let (sender, mut receiver) = watch::channel(1);
    ///     sender.send(2).unwrap();
    ///     assert_eq!(*receiver.borrow(), 2);
    ///     assert_eq!(receiver.has_changed(), Ok(true)); // `borrow` counts nothing as seen
    ///     assert_eq!(*receiver.borrow_and_update(), 2);
    ///     assert_eq!(receiver.has_changed(), Ok(false));
    /// }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref::new(self.shared.get(), self.is_behind())
    }

    /// Returns the value, and counts it as seen.
    ///
    /// # Panics
    ///
    /// As [`borrow`](Self::borrow).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// fn main() {
    ///     let (sender, mut receiver) = watch::channel(1);
    ///     sender.send(2).unwrap();
    ///     assert_eq!(*receiver.borrow(), 2);
    ///     assert_eq!(receiver.has_changed(), Ok(true)); // `borrow` counts nothing as seen
    ///     assert_eq!(*receiver.borrow_and_update(), 2);
    ///     assert_eq!(receiver.has_changed(), Ok(false));
    /// }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        let has_changed = self.is_behind();
        self.seen = self.version();
        Ref::new(self.shared.get(), has_changed)
    }

    fn version(&self) -> u64 {
        self.shared.state.version.get()
    }

    fn is_behind(&self) -> bool {
        self.version() != self.seen
    }

    fn is_ended(&self) -> bool {
        self.shared.state.senders.get() == 0
    }

    /// Returns whether there is a value that was not seen.
    ///
    /// # Errors
    ///
    /// If there is no sender, and the last value was seen.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// fn main() {
    ///     let (sender, mut receiver) = watch::channel(1);
    ///     sender.send(2).unwrap();
    ///     assert_eq!(*receiver.borrow(), 2);
    ///     assert_eq!(receiver.has_changed(), Ok(true)); // `borrow` counts nothing as seen
    ///     assert_eq!(*receiver.borrow_and_update(), 2);
    ///     assert_eq!(receiver.has_changed(), Ok(false));
    /// }
    /// ```
    pub fn has_changed(&self) -> Result<bool, Closed> {
        match self.is_behind() {
            false if self.is_ended() => Err(Closed),
            is_behind => Ok(is_behind),
        }
    }

    /// Counts the value as not seen: the next [`changed`](Self::changed) returns at once.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (_sender, mut receiver) = watch::channel(1);
    ///     receiver.mark_changed();
    ///     receiver.changed().await.unwrap(); // the first value, too
    ///     receiver.mark_changed();
    ///     receiver.mark_unchanged();
    ///     assert_eq!(receiver.has_changed(), Ok(false));
    /// }
    /// ```
    pub fn mark_changed(&mut self) {
        self.seen = self.version().wrapping_sub(1);
    }

    /// Counts the value as seen.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (_sender, mut receiver) = watch::channel(1);
    ///     receiver.mark_changed();
    ///     receiver.changed().await.unwrap(); // the first value, too
    ///     receiver.mark_changed();
    ///     receiver.mark_unchanged();
    ///     assert_eq!(receiver.has_changed(), Ok(false));
    /// }
    /// ```
    pub fn mark_unchanged(&mut self) {
        self.seen = self.version();
    }

    /// Waits for a value that was not seen, and counts it as seen. The task wakes in the microtask
    /// lane.
    ///
    /// # Errors
    ///
    /// If the last sender was dropped, and its last value was seen.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no change.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (sender, mut receiver) = watch::channel("starting");
    ///     sender.send("ready").unwrap();
    ///     receiver.changed().await.unwrap();
    ///     assert_eq!(*receiver.borrow(), "ready");
    ///     drop(sender);
    ///     assert!(receiver.changed().await.is_err(), "no further value comes");
    /// }
    /// ```
    #[track_caller]
    pub fn changed(&mut self) -> Changed<'_, T> {
        self.changed_at(Location::caller())
    }

    fn changed_at(&mut self, site: Site) -> Changed<'_, T> {
        Changed {
            receiver: self,
            waiting: Waiting::new(site),
        }
    }

    /// Waits until the value meets a condition, and counts it as seen. The condition is asked for
    /// the current value first, and then for each that is seen.
    ///
    /// # Errors
    ///
    /// If the last sender was dropped, and its last value does not meet the condition.
    ///
    /// # Panics
    ///
    /// If the condition panics, the poll does.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no change: a value that did not meet the condition counts as seen.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{spawn, sync::watch};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (count, mut watched) = watch::channel(0);
    ///     spawn(async move {
    ///         for _ in 0..5 {
    ///             count.modify(|count| *count += 1);
    ///             phaseloop::task::yield_now().await;
    ///         }
    ///     })
    ///     .detach();
    ///     assert_eq!(*watched.wait_for(|count| *count >= 3).await.unwrap(), 3);
    ///     assert!(watched.wait_for(|count| *count > 5).await.is_err());
    /// }
    /// ```
    #[track_caller]
    pub fn wait_for<'a>(
        &'a mut self,
        condition: impl FnMut(&T) -> bool + 'a,
    ) -> impl Future<Output = Result<Ref<'a, T>, Closed>> {
        wait_for(self, Location::caller(), condition)
    }

    /// Returns whether two receivers watch one value.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// fn main() {
    ///     let (_sender, receiver) = watch::channel(1);
    ///     let receiver = receiver.named("settings"); // the name in the report of a hang
    ///     assert!(receiver.same_channel(&receiver.clone()));
    /// }
    /// ```
    #[must_use]
    pub fn same_channel(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.shared, &other.shared)
    }
}

async fn wait_for<'a, T>(
    receiver: &'a mut Receiver<T>,
    site: Site,
    mut condition: impl FnMut(&T) -> bool,
) -> Result<Ref<'a, T>, Closed> {
    loop {
        let has_changed = receiver.is_behind();
        receiver.seen = receiver.version();
        // Nothing is borrowed while the condition runs: it may send.
        let value = receiver.shared.get();
        if condition(&value) {
            return Ok(Ref::new(value, has_changed));
        }
        // A `Ref` across the wait would keep `modify` from its work.
        drop(value);
        receiver.changed_at(site).await?;
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        let receivers = &self.shared.state.receivers;
        receivers.set(receivers.get() + 1);
        Self::new(self.shared.clone(), self.seen)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let state = &self.shared.state;
        let left = state.receivers.get() - 1;
        state.receivers.set(left);
        if left == 0 {
            state.closing.wake_all();
        }
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Receiver");
        debug.field("has_changed", &self.is_behind());
        debug.finish_non_exhaustive()
    }
}

/// The future of [`Receiver::changed`].
///
/// # Examples
///
/// ```
/// use phaseloop::sync::watch;
///
/// #[phaseloop::main]
/// async fn main() {
///     let (sender, mut receiver) = watch::channel("starting");
///     sender.send("ready").unwrap();
///     receiver.changed().await.unwrap();
///     assert_eq!(*receiver.borrow(), "ready");
///     drop(sender);
///     assert!(receiver.changed().await.is_err(), "no further value comes");
/// }
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct Changed<'a, T> {
    receiver: &'a mut Receiver<T>,
    waiting: Waiting,
}

impl<T> Changed<'_, T> {
    fn result(&mut self) -> Option<Result<(), Closed>> {
        let receiver = &mut *self.receiver;
        if receiver.is_behind() {
            receiver.seen = receiver.version();
            return Some(Ok(()));
        }
        receiver.is_ended().then_some(Err(Closed))
    }
}

impl<T> Future for Changed<'_, T> {
    type Output = Result<(), Closed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Some(result) = this.result() {
            return Poll::Ready(result);
        }
        // User code, which may send.
        let waker = cx.waker().clone();
        if let Some(result) = this.result() {
            return Poll::Ready(result);
        }
        let state = &this.receiver.shared.state;
        let waiting = &mut this.waiting;
        state.changes.wait(waiting, waker, &state.identity, state);
        Poll::Pending
    }
}

impl<T> Drop for Changed<'_, T> {
    fn drop(&mut self) {
        let changes = &self.receiver.shared.state.changes;
        changes.stop(&mut self.waiting);
    }
}

impl<T> fmt::Debug for Changed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changed").finish_non_exhaustive()
    }
}
