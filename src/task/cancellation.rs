//! Cancellation that follows from a parent to its children.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use crate::event_loop::current;
use crate::executor::notes::WaitNote;
use crate::raw::nesting::drop_flat;
use crate::raw::unwind::Steps;
use crate::site::Site;
use crate::sorted::SortedMap;

/// Signals futures that they should end. Clones share one state.
///
/// A [child](Self::child_token) is cancelled with its parent; the parent is not cancelled with its
/// child. A token wakes its waiters in the order in which they began to wait, and then those of its
/// children, oldest first. A cancelled token stays cancelled.
///
/// It is made of `Rc`: it stays on its thread.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::{spawn, task::CancellationToken, time::sleep};
///
/// #[phaseloop::main]
/// async fn main() {
///     let server = CancellationToken::new();
///     let connection = server.child_token();
///     let task = spawn(async move {
///         connection.run_until_cancelled(sleep(Duration::from_secs(3600))).await
///     });
///     server.cancel();
///     assert_eq!(task.await.unwrap(), None, "the sleep was dropped");
/// }
/// ```
#[derive(Clone)]
pub struct CancellationToken {
    node: Rc<Node>,
}

struct Node {
    is_cancelled: Cell<bool>,
    next_number: Cell<u64>,
    /// The waiters by the number of their registration.
    waiters: RefCell<SortedMap<u64, Waker>>,
    /// The children by the number of their creation.
    children: RefCell<SortedMap<u64, Weak<Self>>>,
    parent: Option<Parent>,
}

/// A child keeps its ancestors, so that a cancellation finds its way down to it.
struct Parent {
    node: Rc<Node>,
    number: u64,
}

impl Node {
    #[inline]
    fn new(parent: Option<Parent>, is_cancelled: bool) -> Self {
        Self {
            is_cancelled: Cell::new(is_cancelled),
            next_number: Cell::new(0),
            waiters: RefCell::default(),
            children: RefCell::default(),
            parent,
        }
    }

    fn next_number(&self) -> u64 {
        let number = self.next_number.get();
        self.next_number.set(number + 1);
        number
    }
}

impl Drop for Node {
    #[inline]
    fn drop(&mut self) {
        if let Some(parent) = self.parent.take() {
            parent.node.children.borrow_mut().remove(parent.number);
            // A long chain of tokens is dropped without recursion.
            drop_flat(parent.node);
        }
    }
}

impl CancellationToken {
    /// Creates a token without a parent.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{spawn, task::CancellationToken};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let token = CancellationToken::new();
    ///     let worker = spawn({
    ///         let token = token.clone();
    ///         async move { token.cancelled().await }
    ///     });
    ///     token.cancel();
    ///     worker.await.unwrap();
    ///     assert!(token.is_cancelled());
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn new() -> Self {
        Self {
            node: Rc::new(Node::new(None, false)),
        }
    }

    /// Creates a token that is cancelled with this one. The child of a cancelled token is
    /// cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::task::CancellationToken;
    ///
    /// fn main() {
    ///     let server = CancellationToken::new();
    ///     let connection = server.child_token();
    ///     let other = server.child_token();
    ///     connection.cancel(); // this connection only
    ///     assert!(!other.is_cancelled());
    ///     server.cancel(); // all of them
    ///     assert!(other.is_cancelled());
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn child_token(&self) -> Self {
        let number = self.node.next_number();
        let parent = Parent {
            node: self.node.clone(),
            number,
        };
        let is_cancelled = self.is_cancelled();
        let node = Rc::new(Node::new(Some(parent), is_cancelled));
        if !is_cancelled {
            let child = Rc::downgrade(&node);
            self.node.children.borrow_mut().insert(number, child);
        }
        Self { node }
    }

    /// Cancels the token and all its descendants. Tasks that wait for them are woken, and run in
    /// the microtask lane.
    ///
    /// # Panics
    ///
    /// If a waker panics. All waiters are woken before the panic is resumed.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{spawn, task::CancellationToken};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let token = CancellationToken::new();
    ///     let worker = spawn({
    ///         let token = token.clone();
    ///         async move { token.cancelled().await }
    ///     });
    ///     token.cancel();
    ///     worker.await.unwrap();
    ///     assert!(token.is_cancelled());
    /// }
    /// ```
    #[inline]
    pub fn cancel(&self) {
        let mut left = vec![self.node.clone()];
        // A waker that panics keeps no other waiter from its wake.
        let mut wakes = Steps::default();
        while let Some(node) = left.pop() {
            if node.is_cancelled.replace(true) {
                continue;
            }
            // Nothing is borrowed while a waker runs: it may be user code.
            let children = node.children.take();
            let children = children.into_values().rev();
            left.extend(children.filter_map(|child| child.upgrade()));
            let waiters = node.waiters.take();
            for waiter in waiters.into_values() {
                wakes.run(|| waiter.wake());
            }
        }
        wakes.end();
    }

    /// Returns whether the token was cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{spawn, task::CancellationToken};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let token = CancellationToken::new();
    ///     let worker = spawn({
    ///         let token = token.clone();
    ///         async move { token.cancelled().await }
    ///     });
    ///     token.cancel();
    ///     worker.await.unwrap();
    ///     assert!(token.is_cancelled());
    /// }
    /// ```
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.node.is_cancelled.get()
    }

    /// Waits until the token is cancelled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{spawn, task::CancellationToken};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let token = CancellationToken::new();
    ///     let worker = spawn({
    ///         let token = token.clone();
    ///         async move { token.cancelled().await }
    ///     });
    ///     token.cancel();
    ///     worker.await.unwrap();
    ///     assert!(token.is_cancelled());
    /// }
    /// ```
    #[track_caller]
    pub fn cancelled(&self) -> Cancelled {
        self.cancelled_at(Some(Location::caller()))
    }

    /// `site` is the line that waits, if known.
    fn cancelled_at(&self, site: Option<Site>) -> Cancelled {
        Cancelled {
            node: self.node.clone(),
            number: None,
            note: WaitNote::new("cancellation", "", site),
        }
    }

    /// Runs `future` until it completes, and returns its output; or until the token is cancelled,
    /// and returns `None`. If both happen before the next poll, it returns `None`.
    ///
    /// # Cancel safety
    ///
    /// A cancellation drops `future`, as does dropping the returned future.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::pending;
    /// use phaseloop::task::CancellationToken;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let token = CancellationToken::new();
    ///     assert_eq!(token.run_until_cancelled(async { 42 }).await, Some(42));
    ///     token.cancel();
    ///     assert_eq!(token.run_until_cancelled(pending::<u32>()).await, None);
    /// }
    /// ```
    pub async fn run_until_cancelled<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut cancelled = self.cancelled_at(None);
        std::future::poll_fn(|cx| {
            if Pin::new(&mut cancelled).poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            future.as_mut().poll(cx).map(Some)
        })
        .await
    }

    /// Returns a guard that cancels the token when it is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::task::CancellationToken;
    ///
    /// fn main() {
    ///     let token = CancellationToken::new();
    ///     let guard = token.clone().drop_guard();
    ///     drop(guard);
    ///     assert!(token.is_cancelled());
    /// }
    /// ```
    pub fn drop_guard(self) -> DropGuard {
        DropGuard { token: Some(self) }
    }
}

impl Default for CancellationToken {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CancellationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancellationToken")
            .field("is_cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

/// The future of [`CancellationToken::cancelled`].
///
/// # Examples
///
/// ```
/// use phaseloop::{spawn, task::CancellationToken};
///
/// #[phaseloop::main]
/// async fn main() {
///     let token = CancellationToken::new();
///     let worker = spawn({
///         let token = token.clone();
///         async move { token.cancelled().await }
///     });
///     token.cancel();
///     worker.await.unwrap();
///     assert!(token.is_cancelled());
/// }
/// ```
#[must_use = "futures do nothing unless awaited"]
pub struct Cancelled {
    node: Rc<Node>,
    /// The number of the registration, while there is one.
    number: Option<u64>,
    note: WaitNote,
}

impl Future for Cancelled {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // The clone and the drop of a waker may be user code: neither runs under the borrow, and
        // the clone may cancel the token, which then wakes only those that wait already.
        let is_cancelled = || self.node.is_cancelled.get();
        let waker = (!is_cancelled()).then(|| cx.waker().clone());
        let Some(waker) = waker.filter(|_| !is_cancelled()) else {
            self.number = None;
            return current::note_wait(&mut self.note, cx, Poll::Ready(()));
        };
        let number = match self.number {
            Some(number) => number,
            None => self.node.next_number(),
        };
        self.number = Some(number);
        let before = self.node.waiters.borrow_mut().insert(number, waker);
        drop(before);
        current::note_wait(&mut self.note, cx, Poll::Pending)
    }
}

impl Drop for Cancelled {
    #[inline]
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let waker = self.node.waiters.borrow_mut().remove(number);
            drop(waker);
        }
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancelled")
            .field("is_cancelled", &self.node.is_cancelled.get())
            .finish_non_exhaustive()
    }
}

/// Cancels its token on drop; see [`CancellationToken::drop_guard`].
///
/// # Examples
///
/// ```
/// use phaseloop::task::CancellationToken;
///
/// fn main() {
///     let token = CancellationToken::new();
///     let guard = token.clone().drop_guard();
///     drop(guard); // also by an early return or a panic
///     assert!(token.is_cancelled());
/// }
/// ```
#[derive(Debug)]
#[must_use = "dropping the guard at once cancels the token at once"]
pub struct DropGuard {
    token: Option<CancellationToken>,
}

impl DropGuard {
    /// Returns the token and does not cancel it.
    #[must_use]
    #[inline]
    #[expect(
        clippy::missing_panics_doc,
        reason = "the guard has its token until this call consumes it"
    )]
    pub fn disarm(mut self) -> CancellationToken {
        self.token.take().expect("it is taken here only")
    }
}

impl Drop for DropGuard {
    #[inline]
    fn drop(&mut self) {
        if let Some(token) = &self.token {
            token.cancel();
        }
    }
}
