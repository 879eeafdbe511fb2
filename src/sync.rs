//! Channels and locks for the tasks of one loop.
//!
//! | type | for |
//! |---|---|
//! | [`oneshot`] | one value from one task to another |
//! | [`mpsc`] | many values, from many tasks to one |
//! | [`watch`] | the last value, from some tasks to many |
//! | [`Notify`] | a wake without a value |
//! | [`Mutex`] | a section with an `await` in it that one task at a time runs |
//! | [`Semaphore`] | a section that so many run at a time |
//!
//! ```
//! use std::rc::Rc;
//! use phaseloop::{spawn, sync::{Mutex, mpsc}};
//!
//! #[phaseloop::main]
//! async fn main() {
//!     let total = Rc::new(Mutex::new(0));
//!     let (sender, mut receiver) = mpsc::channel(8);
//!     spawn(async move { sender.send(2).await }).detach();
//!     while let Some(number) = receiver.recv().await {
//!         *total.lock().await += number;
//!     }
//!     assert_eq!(*total.lock().await, 2);
//! }
//! ```
//!
//! They are made of `Rc` and `Cell`, without atomics, and stay on one thread. Between two loops and
//! between threads, use [`Remote`](crate::Remote) or channels of other crates;
//! [the guide](crate::guide::from_tokio#channels-and-locks) says which.
//!
//! # Order
//!
//! A task that is woken runs in the microtask lane of the current drain. Tasks are served in the
//! order in which they began to wait. A [`Mutex`], a [`Semaphore`] and the room of a channel are
//! handed over: at the release the first that waits has the permit, before it runs, and no
//! other overtakes it.
//!
//! There is one exception, and it keeps a task from a deadlock with itself. A future that was
//! granted a permit and is not polled any more, as the one below, can neither use nor release it.
//! If another future of the *same task* asks, it takes the permit, and the first waits again at its
//! old place:
//!
//! ```
//! use std::pin::pin;
//! use std::rc::Rc;
//! use std::time::Duration;
//! use phaseloop::{select, spawn, sync::Mutex, time::sleep};
//!
//! #[phaseloop::main]
//! async fn main() {
//!     let lock = Rc::new(Mutex::new(()));
//!     let guard = lock.clone().lock_owned().await;
//!     spawn(async move {
//!         sleep(Duration::from_millis(5)).await;
//!         drop(guard);
//!     })
//!     .detach();
//!     let mut first = pin!(lock.lock());
//!     select! {
//!         _ = &mut first => unreachable!("the task holds the lock"),
//!         () = sleep(Duration::from_millis(1)) => {
//!             // With most async locks this waits for ever: the lock is granted to `first`, which
//!             // is not polled here.
//!             drop(lock.lock().await);
//!         }
//!     }
//!     drop(first.await);
//! }
//! ```
//!
//! # Reports
//!
//! [`LoopHandle::report`](crate::LoopHandle::report) and
//! [`task_tree`](crate::LoopHandle::task_tree) list each wait with the line that waits, the line
//! that made the lock or channel, and who has it. If tasks wait for each other in a circle, the
//! report begins with the circle. Each type has a method `named`, whose name reports print:
//!
//! ```
//! use std::rc::Rc;
//! use phaseloop::{LoopHandle, phase, spawn, sync::Mutex};
//!
//! #[phaseloop::main]
//! async fn main() {
//!     let audit = Rc::new(Mutex::new(()).named("audit"));
//!     let guard = audit.lock().await;
//!     let task = spawn({
//!         let audit = audit.clone();
//!         async move { drop(audit.lock().await) }
//!     });
//!     phase::check().await;
//!     let report = LoopHandle::current().report().to_string();
//!     // task 1 (src/main.rs:7:16): waits for mutex "audit" (src/main.rs:5:25) at
//!     // src/main.rs:9:33, taken at src/main.rs:6:23 by the main future
//!     assert!(report.contains("waits for mutex \"audit\""), "{report}");
//!     assert!(report.contains("by the main future"), "{report}");
//!     drop(guard);
//!     task.await.unwrap();
//! }
//! ```
//!
//! # Outside of a loop
//!
//! All types work with any executor of the thread, and after their loop is gone. A future that no
//! loop polls belongs to no task: the exception above does not hold for it, and no report lists it.

mod error;
mod identity;
mod lock;
pub mod mpsc;
mod mutex;
mod notify;
mod one_waiter;
pub mod oneshot;
mod permits;
mod semaphore;
mod wait_queue;
pub mod watch;

pub use self::error::{Closed, TryAcquireError, TryLockError};
pub use self::mutex::{Lock, LockOwned, Mutex, MutexGuard, OwnedMutexGuard};
pub use self::notify::{Notified, Notify};
pub use self::semaphore::{Acquire, AcquireOwned, OwnedPermit, Permit, Semaphore};
