//! A value that changes, and those that watch it.
//!
//! A receiver sees the last value, not each one: values that were replaced before it looked are
//! gone. For each value, use a channel of [`mpsc`](super::mpsc).
//!
//! # Examples
//!
//! ```
//! use phaseloop::{spawn, sync::watch};
//!
//! #[phaseloop::main]
//! async fn main() {
//!     let (config, mut watched) = watch::channel("first");
//!     let task = spawn(async move {
//!         let mut seen = vec![*watched.borrow_and_update()];
//!         while watched.changed().await.is_ok() {
//!             seen.push(*watched.borrow_and_update());
//!         }
//!         seen
//!     });
//!     phaseloop::task::yield_now().await;
//!     config.send("second").unwrap();
//!     config.send("third").unwrap(); // before the task runs
//!     phaseloop::task::yield_now().await;
//!     drop(config);
//!     assert_eq!(task.await.unwrap(), ["first", "third"]);
//! }
//! ```

mod receiver;
mod sender;

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::Location;
use std::rc::Rc;

pub use self::receiver::{Changed, Receiver};
pub use self::sender::{Sender, SenderClosed};
pub use super::error::SendError;
use super::identity::Identity;
use super::wait_queue::WaitQueue;
use crate::event_loop::current;
use crate::executor::primitives::{Described, LastUse, Primitive, TaskKey};

/// The errors of this module, at the path that tokio gives them.
///
/// ```
/// use phaseloop::sync::watch::{self, error::{RecvError, SendError}};
///
/// #[phaseloop::main]
/// async fn main() {
///     let (sender, mut receiver) = watch::channel(1);
///     drop(receiver.clone());
///     drop(sender);
///     assert_eq!(receiver.changed().await, Err(RecvError)); // tokio's name of `sync::Closed`
///     let (sender, receiver) = watch::channel(1);
///     drop(receiver);
///     assert_eq!(sender.send(2), Err(SendError(2)));
/// }
/// ```
pub mod error {
    pub use super::super::error::{Closed as RecvError, SendError};
}

/// Creates a value that can be watched. The receiver has seen the first value.
///
/// # Examples
///
/// ```
/// use phaseloop::{spawn, sync::watch};
///
/// #[phaseloop::main]
/// async fn main() {
///     let (settings, mut changes) = watch::channel(1);
///     let reader = spawn(async move {
///         changes.changed().await.unwrap();
///         *changes.borrow_and_update()
///     });
///     settings.send(2).unwrap();
///     assert_eq!(reader.await.unwrap(), 2);
/// }
/// ```
#[track_caller]
pub fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let state = State {
        identity: Identity::new(Location::caller()),
        version: Cell::new(0),
        senders: Cell::new(1),
        receivers: Cell::new(1),
        changes: WaitQueue::default(),
        closing: WaitQueue::default(),
        last_sender: Cell::new(TaskKey::NONE),
    };
    let shared = Rc::new(Shared {
        state: Rc::new(state),
        value: Cell::new(Some(Rc::new(value))),
    });
    (Sender::new(shared.clone()), Receiver::new(shared, 0))
}

/// The value and the state, which reports reach without the type of the value.
struct Shared<T> {
    state: Rc<State>,
    /// `None` while it is modified. The `Rc` is shared with each [`Ref`].
    value: Cell<Option<Rc<T>>>,
}

struct State {
    identity: Identity,
    /// The number of changes.
    version: Cell<u64>,
    senders: Cell<usize>,
    receivers: Cell<usize>,
    /// The receivers that wait for a change.
    changes: WaitQueue,
    /// The senders that wait for the end of all receivers.
    closing: WaitQueue,
    last_sender: Cell<TaskKey>,
}

impl<T> Shared<T> {
    /// Returns the value.
    ///
    /// # Panics
    ///
    /// If the value is being modified.
    #[track_caller]
    fn get(&self) -> Rc<T> {
        let value = self.value.take();
        self.value.set(value.clone());
        value.expect("a watched value cannot be read while it is being modified")
    }

    /// Notes a change, and wakes those that wait for it, in the order of their wait.
    fn notify(&self) {
        let state = &self.state;
        state.version.set(state.version.get() + 1);
        state.last_sender.set(current::task_key());
        state.changes.wake_all();
    }
}

impl Primitive for State {
    #[inline]
    fn describe(&self, found: &mut Vec<Described>) {
        let changes = self.changes.described();
        if !changes.is_empty() {
            let senders = self.senders.get();
            let plural = if senders == 1 { "" } else { "s" };
            found.push(Described {
                state: format!("{senders} sender{plural}"),
                last: Some(LastUse {
                    verb: "last sent",
                    site: None,
                    task: self.last_sender.get(),
                }),
                ..self.identity.described("a change of watch", changes)
            });
        }
        let closing = self.closing.described();
        if !closing.is_empty() {
            found.push(self.identity.described("the end of watch", closing));
        }
    }
}

/// The value at the time of a call. A later value does not change it.
///
/// While one exists, [`Sender::modify`] panics, and [`Sender::send`] allocates memory for the new
/// value. So drop it before an `await`.
///
/// # Examples
///
/// ```
/// use phaseloop::sync::watch;
///
/// fn main() {
///     let (sender, mut receiver) = watch::channel(1);
///     sender.send(2).unwrap();
///     let value = receiver.borrow_and_update();
///     assert!(*value == 2 && value.has_changed());
/// }
/// ```
pub struct Ref<'a, T> {
    value: Rc<T>,
    has_changed: bool,
    _borrowed: PhantomData<&'a Shared<T>>,
}

impl<T> Ref<'_, T> {
    fn new(value: Rc<T>, has_changed: bool) -> Self {
        Self {
            value,
            has_changed,
            _borrowed: PhantomData,
        }
    }

    /// Returns whether the receiver that returned it had not seen the value before. It is `false`
    /// for a sender.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::sync::watch;
    ///
    /// fn main() {
    ///     let (sender, mut receiver) = watch::channel(1);
    ///     sender.send(2).unwrap();
    ///     let value = receiver.borrow_and_update();
    ///     assert!(*value == 2 && value.has_changed());
    /// }
    /// ```
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: fmt::Display> fmt::Display for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}
