//! The end that changes the value.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::{Receiver, Ref, Shared, State};
use crate::sync::error::SendError;
use crate::sync::wait_queue::Waiting;

/// Changes a value that receivers watch; see [`channel`](super::channel()).
///
/// Receivers end when the last sender is dropped.
///
/// # Examples
///
/// ```
/// use phaseloop::sync::watch;
///
/// fn main() {
///     let (sender, receiver) = watch::channel(1);
///     sender.send(2).unwrap();
///     assert_eq!(*receiver.borrow(), 2);
///     drop(receiver);
///     assert!(sender.send(3).is_err(), "nothing watches the value");
/// }
/// ```
pub struct Sender<T> {
    shared: Rc<Shared<T>>,
}

impl<T> Sender<T> {
    pub(super) fn new(shared: Rc<Shared<T>>) -> Self {
        Self { shared }
    }

    /// Names the channel in reports.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// fn main() {
    ///     let (sender, _receiver) = watch::channel(1);
    ///     let sender = sender.named("settings"); // the name in the report of a hang
    ///     let late = sender.subscribe();
    ///     assert_eq!(*late.borrow(), *sender.borrow());
    ///     assert!(sender.same_channel(&sender.clone()));
    /// }
    /// ```
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        self.shared.state.identity.set_name(name);
        self
    }

    /// Sets the value, and wakes those that wait for a change, in the order of their wait.
    ///
    /// # Errors
    ///
    /// Returns the value if there is no receiver. [`send_replace`](Self::send_replace) sets it
    /// nevertheless.
    ///
    /// # Panics
    ///
    /// If it is called inside [`modify`](Self::modify). If a waker panics: all are woken before.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// fn main() {
    ///     let (sender, receiver) = watch::channel(1);
    ///     sender.send(2).unwrap();
    ///     assert_eq!(*receiver.borrow(), 2);
    ///     drop(receiver);
    ///     assert!(sender.send(3).is_err(), "nothing watches the value");
    /// }
    /// ```
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.is_closed() {
            return Err(SendError(value));
        }
        let before = self.replace(value);
        self.shared.notify();
        // User code runs last: it finds the new value, and no wake waits for its end.
        drop(before);
        Ok(())
    }

    /// Sets the value, also if there is no receiver, and wakes those that wait for a change.
    /// Returns the value before, unless a [`Ref`] shares it.
    ///
    /// # Panics
    ///
    /// As [`send`](Self::send).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// fn main() {
    ///     let (sender, _) = watch::channel(1); // without a receiver
    ///     sender.send_replace(2);
    ///     assert_eq!(*sender.borrow(), 2);
    /// }
    /// ```
    pub fn send_replace(&self, value: T) -> Option<T> {
        let before = self.replace(value);
        self.shared.notify();
        match before {
            Before::Own(value) => Some(value),
            Before::Shared(value) => Rc::into_inner(value),
        }
    }

    /// Sets the value. Returns the one before.
    #[track_caller]
    fn replace(&self, value: T) -> Before<T> {
        let current = self.shared.value.take();
        let mut current = current.expect("a watched value cannot be sent while it is modified");
        match Rc::get_mut(&mut current) {
            Some(place) => {
                let before = std::mem::replace(place, value);
                self.shared.value.set(Some(current));
                Before::Own(before)
            }
            None => {
                self.shared.value.set(Some(Rc::new(value)));
                Before::Shared(current)
            }
        }
    }

    /// Changes the value in place, and wakes those that wait for a change.
    ///
    /// If `change` panics, no task is woken, and the value is as `change` left it.
    ///
    /// # Panics
    ///
    /// If a [`Ref`] of the value exists, or if it is called inside of another `modify`. If a waker
    /// panics: all are woken before.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// fn main() {
    ///     let (list, watched) = watch::channel(vec![1]);
    ///     list.modify(|list| list.push(2));
    ///     assert_eq!(*watched.borrow(), [1, 2]);
    /// }
    /// ```
    #[track_caller]
    #[doc(alias = "send_modify")]
    pub fn modify(&self, change: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            change(value);
            true
        });
    }

    /// Changes the value in place, and wakes those that wait for a change if `change` returns
    /// `true`. Returns what `change` returns.
    ///
    /// # Panics
    ///
    /// As [`modify`](Self::modify).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// fn main() {
    ///     let (sender, receiver) = watch::channel(vec![1]);
    ///     let added = sender.send_if_modified(|list| {
    ///         let is_new = !list.contains(&2);
    ///         list.push(2);
    ///         is_new // wakes those that wait
    ///     });
    ///     assert!(added && receiver.borrow().len() == 2);
    /// }
    /// ```
    #[track_caller]
    pub fn send_if_modified(&self, change: impl FnOnce(&mut T) -> bool) -> bool {
        let value = self.shared.value.take();
        let mut back = PutBack {
            shared: &self.shared,
            value: Some(value.expect("a watched value cannot be modified while it is modified")),
        };
        let value = back.value.as_mut().and_then(Rc::get_mut);
        let value = value.expect("a watched value cannot be modified while a `Ref` of it exists");
        let has_changed = change(value);
        drop(back);
        if has_changed {
            self.shared.notify();
        }
        has_changed
    }

    /// Returns the value.
    ///
    /// # Panics
    ///
    /// If it is called inside [`modify`](Self::modify).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// fn main() {
    ///     let (sender, _receiver) = watch::channel(1);
    ///     let sender = sender.named("settings"); // the name in the report of a hang
    ///     let late = sender.subscribe();
    ///     assert_eq!(*late.borrow(), *sender.borrow());
    ///     assert!(sender.same_channel(&sender.clone()));
    /// }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref::new(self.shared.get(), false)
    }

    /// Creates a receiver, which has seen the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// fn main() {
    ///     let (sender, _receiver) = watch::channel(1);
    ///     let sender = sender.named("settings"); // the name in the report of a hang
    ///     let late = sender.subscribe();
    ///     assert_eq!(*late.borrow(), *sender.borrow());
    ///     assert!(sender.same_channel(&sender.clone()));
    /// }
    /// ```
    #[must_use]
    pub fn subscribe(&self) -> Receiver<T> {
        let receivers = &self.shared.state.receivers;
        receivers.set(receivers.get() + 1);
        Receiver::new(self.shared.clone(), self.shared.state.version.get())
    }

    /// Returns whether there is no receiver.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (sender, receiver) = watch::channel(1);
    ///     assert_eq!((sender.sender_count(), sender.receiver_count()), (1, 1));
    ///     drop(receiver);
    ///     sender.closed().await;
    ///     assert!(sender.is_closed());
    /// }
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.receiver_count() == 0
    }

    /// Waits until there is no receiver.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (sender, receiver) = watch::channel(1);
    ///     assert_eq!((sender.sender_count(), sender.receiver_count()), (1, 1));
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

    /// Returns the number of receivers.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (sender, receiver) = watch::channel(1);
    ///     assert_eq!((sender.sender_count(), sender.receiver_count()), (1, 1));
    ///     drop(receiver);
    ///     sender.closed().await;
    ///     assert!(sender.is_closed());
    /// }
    /// ```
    #[must_use]
    pub fn receiver_count(&self) -> usize {
        self.shared.state.receivers.get()
    }

    /// Returns the number of senders.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let (sender, receiver) = watch::channel(1);
    ///     assert_eq!((sender.sender_count(), sender.receiver_count()), (1, 1));
    ///     drop(receiver);
    ///     sender.closed().await;
    ///     assert!(sender.is_closed());
    /// }
    /// ```
    #[must_use]
    pub fn sender_count(&self) -> usize {
        self.shared.state.senders.get()
    }

    /// Returns whether two senders change one value.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// fn main() {
    ///     let (sender, _receiver) = watch::channel(1);
    ///     let sender = sender.named("settings"); // the name in the report of a hang
    ///     let late = sender.subscribe();
    ///     assert_eq!(*late.borrow(), *sender.borrow());
    ///     assert!(sender.same_channel(&sender.clone()));
    /// }
    /// ```
    #[must_use]
    pub fn same_channel(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.shared, &other.shared)
    }
}

/// A value that was replaced.
enum Before<T> {
    Own(T),
    /// A `Ref` has it, too.
    Shared(Rc<T>),
}

/// A value that is modified; the drop puts it back, also after a panic.
struct PutBack<'a, T> {
    shared: &'a Shared<T>,
    value: Option<Rc<T>>,
}

impl<T> Drop for PutBack<'_, T> {
    fn drop(&mut self) {
        self.shared.value.set(self.value.take());
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        let senders = &self.shared.state.senders;
        senders.set(senders.get() + 1);
        Self::new(self.shared.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let state = &self.shared.state;
        let left = state.senders.get() - 1;
        state.senders.set(left);
        if left == 0 {
            state.changes.wake_all();
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Sender");
        debug.field("receivers", &self.receiver_count());
        debug.finish_non_exhaustive()
    }
}

/// The future of [`Sender::closed`].
///
/// # Examples
///
/// ```
/// use phaseloop::sync::watch;
///
/// #[phaseloop::main]
/// async fn main() {
///     let (sender, receiver) = watch::channel(1);
///     assert_eq!((sender.sender_count(), sender.receiver_count()), (1, 1));
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

impl SenderClosed {
    fn is_closed(&self) -> bool {
        self.state.receivers.get() == 0
    }
}

impl Future for SenderClosed {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.is_closed() {
            return Poll::Ready(());
        }
        // User code, which may drop the last receiver.
        let waker = cx.waker().clone();
        if this.is_closed() {
            return Poll::Ready(());
        }
        let state = &this.state;
        let waiting = &mut this.waiting;
        state.closing.wait(waiting, waker, &state.identity, state);
        Poll::Pending
    }
}

impl Drop for SenderClosed {
    fn drop(&mut self) {
        self.state.closing.stop(&mut self.waiting);
    }
}

impl fmt::Debug for SenderClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SenderClosed").finish_non_exhaustive()
    }
}
