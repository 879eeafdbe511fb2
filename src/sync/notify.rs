//! Wakes without a value.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::identity::Identity;
use super::wait_queue::{WaitQueue, Waiting};
use crate::executor::primitives::{Described, Primitive};

/// Wakes tasks that wait for something to happen, without a value.
///
/// [`notify_one`](Self::notify_one) wakes the task that waits longest. If none waits, the next wait
/// ends at once; several such calls count as one. [`notify_all`](Self::notify_all) ends the waits
/// that have begun, and stores nothing.
///
/// # Examples
///
/// ```
/// use std::cell::RefCell;
/// use std::rc::Rc;
/// use phaseloop::{spawn, sync::Notify};
///
/// #[phaseloop::main]
/// async fn main() {
///     let (jobs, added) = (Rc::new(RefCell::new(Vec::new())), Rc::new(Notify::new()));
///     let worker = spawn({
///         let (jobs, added) = (jobs.clone(), added.clone());
///         async move {
///             loop {
///                 if let Some(job) = jobs.borrow_mut().pop() {
///                     return job;
///                 }
///                 added.notified().await;
///             }
///         }
///     });
///     jobs.borrow_mut().push("first");
///     added.notify_one();
///     assert_eq!(worker.await.unwrap(), "first");
/// }
/// ```
pub struct Notify {
    state: Rc<State>,
}

struct State {
    identity: Identity,
    /// The next wait ends at once.
    has_permit: Cell<bool>,
    /// The number of calls of `notify_all`.
    rounds: Cell<u64>,
    waiting: WaitQueue,
}

impl Notify {
    /// Creates a `Notify` without a permit.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::rc::Rc;
    /// use phaseloop::{spawn, sync::Notify};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let ready = Rc::new(Notify::new());
    ///     let waiting = spawn({
    ///         let ready = ready.clone();
    ///         async move { ready.notified().await }
    ///     });
    ///     ready.notify_one(); // also if the task does not wait yet
    ///     waiting.await.unwrap();
    /// }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn new() -> Self {
        let state = State {
            identity: Identity::new(Location::caller()),
            has_permit: Cell::new(false),
            rounds: Cell::new(0),
            waiting: WaitQueue::default(),
        };
        Self {
            state: Rc::new(state),
        }
    }

    /// Names it in reports.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::Notify;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let ready = Notify::new().named("ready"); // the name in the report of a hang
    ///     ready.notify_one();
    ///     ready.notified().await;
    /// }
    /// ```
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        self.state.identity.set_name(name);
        self
    }

    /// Waits for a notification. The task wakes in the microtask lane.
    ///
    /// A [`notify_all`](Self::notify_all) after this call ends the wait, also if the future was not
    /// polled yet. The future has a place in the line from its first poll on, or from
    /// [`enable`](Notified::enable) on.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the line. A notification by `notify_one` that it
    /// has got and not returned goes to the next.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::Notify;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let notify = Notify::new();
    ///     let (one, two) = (notify.notified(), notify.notified());
    ///     notify.notify_all();
    ///     one.await;
    ///     two.await;
    /// }
    /// ```
    #[track_caller]
    pub fn notified(&self) -> Notified {
        Notified {
            state: self.state.clone(),
            rounds: self.state.rounds.get(),
            waiting: Waiting::new(Location::caller()),
            is_done: false,
        }
    }

    /// Notifies the one that waits longest, or the next that waits.
    ///
    /// # Panics
    ///
    /// If a waker panics.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::rc::Rc;
    /// use phaseloop::{spawn, sync::Notify};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let ready = Rc::new(Notify::new());
    ///     let waiting = spawn({
    ///         let ready = ready.clone();
    ///         async move { ready.notified().await }
    ///     });
    ///     ready.notify_one(); // also if the task does not wait yet
    ///     waiting.await.unwrap();
    /// }
    /// ```
    #[inline]
    pub fn notify_one(&self) {
        self.state.notify_one();
    }

    /// Notifies all that wait, in the order of their wait.
    ///
    /// # Panics
    ///
    /// If a waker panics. All are woken before the panic is resumed.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::rc::Rc;
    /// use phaseloop::{spawn, sync::Notify, task::yield_now};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let start = Rc::new(Notify::new());
    ///     let runners = [1, 2, 3].map(|number| {
    ///         let start = start.clone();
    ///         spawn(async move {
    ///             start.notified().await;
    ///             number
    ///         })
    ///     });
    ///     yield_now().await; // all three wait
    ///     start.notify_all();
    ///     for runner in runners {
    ///         println!("{}", runner.await.unwrap());
    ///     }
    /// }
    /// ```
    #[doc(alias = "notify_waiters")]
    pub fn notify_all(&self) {
        self.state.rounds.set(self.state.rounds.get() + 1);
        self.state.waiting.wake_all();
    }
}

impl State {
    fn notify_one(&self) {
        match self.waiting.serve_first() {
            Some(waker) => waker.wake(),
            None => self.has_permit.set(true),
        }
    }
}

impl Default for Notify {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Notify");
        debug.field("has_permit", &self.state.has_permit.get());
        debug.finish_non_exhaustive()
    }
}

impl Primitive for State {
    #[inline]
    fn describe(&self, found: &mut Vec<Described>) {
        let waiters = self.waiting.described();
        if !waiters.is_empty() {
            found.push(self.identity.described("notify", waiters));
        }
    }
}

/// The future of [`Notify::notified`].
///
/// # Examples
///
/// ```
/// use std::rc::Rc;
/// use phaseloop::{spawn, sync::Notify};
///
/// #[phaseloop::main]
/// async fn main() {
///     let ready = Rc::new(Notify::new());
///     let waiting = spawn({
///         let ready = ready.clone();
///         async move { ready.notified().await }
///     });
///     ready.notify_one(); // also if the task does not wait yet
///     waiting.await.unwrap();
/// }
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct Notified {
    state: Rc<State>,
    /// The number of calls of `notify_all` when it was made.
    rounds: u64,
    waiting: Waiting,
    is_done: bool,
}

impl Notified {
    /// Takes a place in the line without a wait, or takes the stored permit. Returns whether the
    /// wait has ended.
    ///
    /// A [`notify_one`](Notify::notify_one) after this call then reaches this future, although it
    /// was not polled.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::pin::pin;
    /// use phaseloop::sync::Notify;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let changed = Notify::new();
    ///     let mut next = pin!(changed.notified());
    ///     next.as_mut().enable(); // from here on `notify_all` reaches it, before its first poll
    ///     changed.notify_all();
    ///     next.await;
    /// }
    /// ```
    pub fn enable(mut self: Pin<&mut Self>) -> bool {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        self.as_mut().poll(&mut cx).is_ready()
    }

    /// Returns whether a notification has come.
    fn take_notification(&mut self) -> bool {
        let state = &self.state;
        if self.is_done {
            return true;
        }
        self.is_done = state.rounds.get() != self.rounds
            || state.waiting.is_served(&self.waiting)
            || !self.waiting.has_begun() && state.has_permit.replace(false);
        if self.is_done {
            state.waiting.stop(&mut self.waiting);
        }
        self.is_done
    }
}

impl Future for Notified {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.take_notification() {
            return Poll::Ready(());
        }
        // User code, which may notify.
        let waker = cx.waker().clone();
        if this.take_notification() {
            return Poll::Ready(());
        }
        let state = &this.state;
        let waiting = &mut this.waiting;
        state.waiting.wait(waiting, waker, &state.identity, state);
        Poll::Pending
    }
}

impl Drop for Notified {
    fn drop(&mut self) {
        let state = &self.state;
        let passes_on = !self.is_done && state.waiting.is_served(&self.waiting);
        state.waiting.stop(&mut self.waiting);
        if passes_on {
            state.notify_one();
        }
    }
}

impl fmt::Debug for Notified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Notified");
        debug.field("is_done", &self.is_done);
        debug.finish_non_exhaustive()
    }
}
