//! All cores: several loops as one program.
//!
//! A [`Builder`] starts a loop on each of several threads and runs a main future on the first.
//! Nothing moves between loops by itself: a task stays on its loop, and inside of a loop the order
//! is what it is without a cluster. Loops exchange messages through [`channel`], and share state by
//! [`Sharded`] and [`Remote`]. A socket moves to another loop as a
//! [`Detached`](crate::net::Detached). [`listen`] spreads connections over the loops, and
//! [`Cluster::shutdown`] ends them when what is under way has completed.
//!
//! What comes from another loop is delivered in the poll phase, as the messages of any thread are.
//! From one loop to one channel, or to one [`Remote`], it arrives in the order of sending. Between
//! channels, and between senders on different loops, no order is promised.
//!
//! # Examples
//!
//! ```
//! use std::cell::Cell;
//! use phaseloop::cluster::{self, Sharded};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let sum = cluster::Builder::new().loops(2).block_on(async {
//!         let hits = Sharded::new(async |index| Cell::new(index)).await?;
//!         let here = hits.clone();
//!         // A future on each loop; it need not be `Send`.
//!         let counts = cluster::current().each(move |_| {
//!             let hits = here.here();
//!             async move {
//!                 hits.set(hits.get() + 10);
//!                 hits.get()
//!             }
//!         });
//!         let counts: Result<Vec<_>, _> = counts.await.into_iter().collect();
//!         Ok::<usize, phaseloop::task::JoinError>(counts?.iter().sum())
//!     })??;
//!     assert_eq!(sum, 10 + 11);
//!     Ok(())
//! }
//! ```
// Marks: `cold`, since a poll that uses up its budget is rare.

mod balance;
mod builder;
mod channel;
#[cfg(feature = "test-util")]
mod explore;
mod listen;
mod listener;
mod report;
mod roots;
mod sharded;
mod shutdown;

use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use crate::metrics::Metrics;
use crate::runtime::loop_handle::LoopHandle;
use crate::runtime::remote::Remote;
use crate::task::{CancellationToken, Id};

pub use balance::Balance;
pub use builder::Builder;
pub use channel::{Receiver, SendError, Sender, TryRecvError, TrySendError, channel};
pub use listen::{Listen, Listeners, listen};
pub use listener::Listener;
pub use report::ClusterReport;
pub use roots::Each;
pub use sharded::Sharded;
pub use shutdown::{Left, Shutdown, Stopped, stopping};

/// The loops of a program; cheap to clone.
///
/// # Examples
///
/// ```
/// use phaseloop::cluster;
///
/// fn main() -> std::io::Result<()> {
///     let lengths = cluster::Builder::new().loops(2).block_on(async {
///         let all = cluster::current();
///         println!("{} loops", all.len());
///         all.each(|index| async move { index }).await.len()
///     })?;
///     assert_eq!(lengths, 2);
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Inner>,
}

struct Inner {
    remotes: Vec<Remote>,
    next_shard: AtomicU64,
    /// The listeners of all loops.
    hubs: Mutex<Vec<Weak<listen::Hub>>>,
    end: shutdown::End,
}

impl Cluster {
    fn new(remotes: Vec<Remote>) -> Self {
        Self {
            inner: Arc::new(Inner {
                remotes,
                next_shard: AtomicU64::new(0),
                hubs: Mutex::default(),
                end: shutdown::End::default(),
            }),
        }
    }

    /// Returns the number of loops.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::cluster;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     cluster::Builder::new().loops(2).block_on(async {
    ///         let all = cluster::current();
    ///         let there = all.remote(1).spawn(|| async { cluster::index() }).unwrap();
    ///         assert_eq!(there.await.unwrap(), 1);
    ///         for metrics in all.metrics().await {
    ///             println!("busy for {:.0} %", metrics.unwrap().utilization() * 100.0);
    ///         }
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a cluster has a loop")]
    pub fn len(&self) -> usize {
        self.inner.remotes.len()
    }

    /// Returns the handle to a loop, by its index.
    ///
    /// # Panics
    ///
    /// If there is no loop of that index.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::cluster;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     cluster::Builder::new().loops(2).block_on(async {
    ///         let all = cluster::current();
    ///         let there = all.remote(1).spawn(|| async { cluster::index() }).unwrap();
    ///         assert_eq!(there.await.unwrap(), 1);
    ///         for metrics in all.metrics().await {
    ///             println!("busy for {:.0} %", metrics.unwrap().utilization() * 100.0);
    ///         }
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn remote(&self, index: usize) -> &Remote {
        let remotes = &self.inner.remotes;
        assert!(
            index < remotes.len(),
            "there is no loop {index} in a cluster of {}",
            remotes.len()
        );
        &remotes[index]
    }

    /// Returns the metrics of each loop, by index. A loop that has ended has none. The future waits
    /// for a loop that is stuck.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::cluster;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     cluster::Builder::new().loops(2).block_on(async {
    ///         let all = cluster::current();
    ///         let there = all.remote(1).spawn(|| async { cluster::index() }).unwrap();
    ///         assert_eq!(there.await.unwrap(), 1);
    ///         for metrics in all.metrics().await {
    ///             println!("busy for {:.0} %", metrics.unwrap().utilization() * 100.0);
    ///         }
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn metrics(&self) -> Each<Metrics> {
        self.each(|_| async { LoopHandle::current().metrics() })
    }

    /// Returns whether this and another one are of the same loops.
    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    fn next_shard(&self) -> u64 {
        self.inner.next_shard.fetch_add(1, Ordering::Relaxed)
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("loops", &self.len())
            .finish_non_exhaustive()
    }
}

/// Locks a mutex that no holder leaves in a bad state.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the index of the running loop in its cluster; 0 outside of a cluster.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
pub fn index() -> usize {
    Member::current().index
}

/// Returns the cluster of the running loop. A loop outside of a cluster is a cluster of one.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
pub fn current() -> Cluster {
    Member::current().cluster.clone()
}

/// What a loop knows of its cluster.
struct Member {
    index: usize,
    cluster: Cluster,
    /// The values of `Sharded`, by their numbers.
    shards: RefCell<HashMap<u64, Rc<dyn Any>>>,
    /// Whether the run of the loop is over.
    has_ended: Cell<bool>,
    /// Wakes the future that waits for that.
    waiter: Cell<Option<Waker>>,
    /// Cancelled when the loop's own listeners are to be closed.
    closing: CancellationToken,
    /// Cancelled when the listeners have returned their last connections.
    stopping: CancellationToken,
    /// The tasks that await a shutdown, which does not wait for them.
    excused: RefCell<Vec<Id>>,
    /// On loop 0, the limit of the shutdown that has begun.
    shutdown: OnceCell<Rc<shutdown::Limit>>,
}

impl Member {
    fn new(index: usize, cluster: Cluster) -> Rc<Self> {
        Rc::new(Self {
            index,
            cluster,
            shards: RefCell::default(),
            has_ended: Cell::new(false),
            waiter: Cell::new(None),
            closing: CancellationToken::new(),
            stopping: CancellationToken::new(),
            excused: RefCell::default(),
            shutdown: OnceCell::new(),
        })
    }

    /// Returns that of the running loop.
    #[track_caller]
    fn current() -> Rc<Self> {
        let handle = LoopHandle::current();
        let member = handle.core().member.get_or_init(|| {
            let cluster = Cluster::new(vec![handle.remote()]);
            Self::new(0, cluster)
        });
        member.clone().downcast().expect("only this module sets it")
    }

    fn end(&self) {
        self.has_ended.set(true);
        if let Some(waiter) = self.waiter.take() {
            waiter.wake();
        }
    }

    fn poll_ended(&self, cx: &Context<'_>) -> Poll<()> {
        if self.has_ended.get() {
            return Poll::Ready(());
        }
        self.waiter.set(Some(cx.waker().clone()));
        Poll::Pending
    }

    /// Drops the values that the loop owns, one by one: each drop is user code.
    fn drop_shards(&self) {
        loop {
            let first = self.shards.borrow().keys().min().copied();
            let Some(number) = first else { return };
            let value = self.shards.borrow_mut().remove(&number);
            drop(value);
        }
    }
}

/// Wakes what is polled in the next poll phase of its loop, since it has used up its budget.
/// Returns `false` if nothing is polled: a callback has no budget.
#[cold]
fn wakes_in_poll_phase(cx: &Context<'_>) -> bool {
    crate::event_loop::current::with(|core| {
        let Some(core) = core.filter(|core| core.executor.is_polling()) else {
            return false;
        };
        crate::executor::budget::restore(0);
        if crate::event_loop::current::is_running(core) {
            core.enqueue(
                crate::phase_order::Phase::Poll,
                crate::event_loop::phases::queue::Entry::Wake(cx.waker().clone()),
                None,
            );
        } else {
            cx.waker().wake_by_ref();
        }
        true
    })
}
