//! The inbox for other threads: a queue, and at most one notification until the loop empties it.
//!
//! ```text
//!             push/signal                push/signal
//!     Idle ───────────────> Pending <─────────────── Parked     (the last one notifies)
//!      ^  └── park ──> Parked  │                        │
//!      │                       │ unpark                 │ unpark
//!      └───────────────────────┴────────────────────────┘
//! ```
//!
//! A sender first queues its item, then swaps the state to *pending*; only the sender that finds
//! *parked* notifies. The loop parks by compare-and-swap from *idle*, so it cannot miss an item
//! that was queued before. Both sides use read-modify-write operations on one atomic, so no two
//! variables can get out of step. A busy loop is never notified; it checks the state once in each
//! turn.

use std::sync::PoisonError;

use crate::raw::sync::{AtomicU8, Mutex, Ordering};
use crate::sys::poller::Notify;

/// The loop is running, and nothing was sent since its last check.
const IDLE: u8 = 0;
/// Something was sent, and the loop need not be notified again.
const PENDING: u8 = 1;
/// Nothing was sent, and the loop waits, is about to wait, or is left to another poller.
const PARKED: u8 = 2;

pub(crate) struct Inbox<T, N> {
    state: AtomicU8,
    queue: Mutex<Queue<T>>,
    notifier: N,
}

struct Queue<T> {
    items: Vec<T>,
    /// Set once; further items are refused.
    closed: bool,
}

impl<T, N: Notify> Inbox<T, N> {
    /// Creates the inbox of a loop that does not run yet: a send makes its descriptor readable.
    pub(crate) fn new(notifier: N) -> Self {
        Self {
            state: AtomicU8::new(PARKED),
            queue: Mutex::new(Queue {
                items: Vec::new(),
                closed: false,
            }),
            notifier,
        }
    }

    // Any thread.

    /// Queues an item and wakes the loop.
    ///
    /// # Errors
    ///
    /// Returns the item if the loop was dropped.
    pub(crate) fn push(&self, item: T) -> Result<(), T> {
        {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            if queue.closed {
                return Err(item);
            }
            queue.items.push(item);
        }
        // If the state is pending, the loop has not looked since, and will find the item: a look
        // that came before this push has left the state idle, and the lock makes that visible here.
        // A load does not take the cache line from the other senders.
        if !self.is_pending() {
            self.signal();
        }
        Ok(())
    }

    /// Wakes the loop without queueing an item. It is async-signal-safe: one swap and at most one
    /// write.
    pub(crate) fn signal(&self) {
        if self.state.swap(PENDING, Ordering::AcqRel) == PARKED {
            self.notifier.notify();
        }
    }

    /// Returns whether the loop was dropped.
    pub(crate) fn is_closed(&self) -> bool {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.closed
    }

    /// Returns whether something was sent since the last `unpark`.
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        self.state.load(Ordering::Acquire) == PENDING
    }

    // Only the owner thread calls the following functions.

    /// Returns whether there are items to [`take`](Self::take).
    pub(crate) fn has_items(&self) -> bool {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        !queue.items.is_empty()
    }

    /// Announces a wait. Returns `false` if something was sent already, and then the loop must not
    /// wait.
    pub(crate) fn park(&self) -> bool {
        self.state
            .compare_exchange(IDLE, PARKED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Leaves the loop to another poller that waits on its descriptor. The next send notifies; if
    /// something was sent already, this call notifies.
    pub(crate) fn leave_parked(&self) {
        if !self.park() {
            self.notifier.notify();
        }
    }

    /// Ends a wait. Returns `true` if something was sent, to be [taken](Self::take).
    pub(crate) fn unpark(&self) -> bool {
        self.state.swap(IDLE, Ordering::AcqRel) == PENDING
    }

    /// Takes the loop back from another poller. What was sent stays pending.
    pub(crate) fn resume(&self) {
        let _ = self
            .state
            .compare_exchange(PARKED, IDLE, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Swaps the queued items with `empty`.
    pub(crate) fn take(&self, empty: &mut Vec<T>) {
        debug_assert!(empty.is_empty());
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut queue.items, empty);
    }

    /// Calls `f` with the queued items. `f` runs no user code.
    pub(crate) fn look(&self, f: impl FnOnce(&[T])) {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        f(&queue.items);
    }

    /// Refuses all further items and returns the queued ones.
    pub(crate) fn close(&self) -> Vec<T> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.closed = true;
        std::mem::take(&mut queue.items)
    }
}

#[cfg(all(test, not(phaseloop_loom)))]
mod tests {
    use super::{Inbox, Notify};
    use std::cell::Cell;

    struct Counter(Cell<usize>);

    impl Notify for Counter {
        fn notify(&self) {
            self.0.set(self.0.get() + 1);
        }
    }

    /// Creates the inbox of a running loop.
    fn inbox() -> Inbox<u32, Counter> {
        let inbox = Inbox::new(Counter(Cell::new(0)));
        inbox.resume();
        inbox
    }

    #[test]
    fn a_loop_that_never_ran_is_notified() {
        let inbox = Inbox::new(Counter(Cell::new(0)));
        inbox.push(1).unwrap();
        assert_eq!(inbox.notifier.0.get(), 1);
    }

    #[test]
    fn a_busy_loop_is_not_notified() {
        let inbox = inbox();
        inbox.push(1).unwrap();
        inbox.push(2).unwrap();
        assert_eq!(inbox.notifier.0.get(), 0);
        assert!(inbox.is_pending());
        assert!(!inbox.park(), "there is something to take");
        assert!(inbox.unpark());
        let mut items = Vec::new();
        inbox.take(&mut items);
        assert_eq!(items, [1, 2]);
    }

    #[test]
    fn a_parked_loop_is_notified_once_until_it_looked() {
        let inbox = inbox();
        assert!(inbox.park());
        for item in 0..5 {
            inbox.push(item).unwrap();
        }
        assert_eq!(inbox.notifier.0.get(), 1);
        assert!(inbox.unpark());
        assert!(inbox.park());
        inbox.signal();
        inbox.signal();
        assert_eq!(inbox.notifier.0.get(), 2);
    }

    #[test]
    fn leaving_with_something_pending_notifies_at_once() {
        let inbox = inbox();
        inbox.push(1).unwrap();
        inbox.leave_parked();
        assert_eq!(inbox.notifier.0.get(), 1);
        inbox.resume();
        assert!(inbox.is_pending(), "resuming takes nothing");
    }

    #[test]
    fn a_closed_inbox_gives_the_item_back() {
        let inbox = inbox();
        inbox.push(1).unwrap();
        assert_eq!(inbox.close(), [1]);
        assert_eq!(inbox.push(2), Err(2));
        assert!(inbox.is_closed());
    }
}

/// Checks every interleaving of the senders and the loop, up to a bound on preemptions.
///
/// `RUSTFLAGS="--cfg phaseloop_loom" LOOM_MAX_PREEMPTIONS=3 cargo test --release --lib loom`
#[cfg(all(test, phaseloop_loom))]
mod loom_models {
    use super::{Inbox, Notify};
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    /// A model of the kernel's wait: a flag that a notification sets and the end of a wait clears.
    struct Kernel {
        ready: Mutex<bool>,
        changed: Condvar,
    }

    impl Kernel {
        fn new() -> Self {
            Self {
                ready: Mutex::new(false),
                changed: Condvar::new(),
            }
        }

        fn wait(&self) {
            let mut ready = self.ready.lock().unwrap();
            while !*ready {
                ready = self.changed.wait(ready).unwrap();
            }
            *ready = false;
        }
    }

    impl Notify for Arc<Kernel> {
        fn notify(&self) {
            *self.ready.lock().unwrap() = true;
            self.changed.notify_one();
        }
    }

    type Model = Arc<Inbox<u32, Arc<Kernel>>>;

    fn model() -> (Model, Arc<Kernel>) {
        let kernel = Arc::new(Kernel::new());
        let inbox = Inbox::new(kernel.clone());
        inbox.resume();
        (Arc::new(inbox), kernel)
    }

    /// Runs the poll phase of a loop without other work. A lost wake would show as a deadlock.
    fn next_batch(inbox: &Model, kernel: &Kernel) -> Vec<u32> {
        let mut batch = Vec::new();
        if inbox.park() {
            kernel.wait();
        }
        if inbox.unpark() {
            inbox.take(&mut batch);
        }
        batch
    }

    #[test]
    fn loom_no_wake_is_lost_and_none_is_seen_twice() {
        loom::model(|| {
            let (inbox, kernel) = model();
            let senders: Vec<_> = [1, 2]
                .into_iter()
                .map(|item| {
                    let inbox = inbox.clone();
                    thread::spawn(move || inbox.push(item).unwrap())
                })
                .collect();
            let mut seen = Vec::new();
            while seen.len() < 2 {
                seen.extend(next_batch(&inbox, &kernel));
            }
            seen.sort_unstable();
            assert_eq!(seen, [1, 2]);
            for sender in senders {
                sender.join().unwrap();
            }
        });
    }

    #[test]
    fn loom_a_signal_without_an_item_ends_the_wait() {
        loom::model(|| {
            let (inbox, kernel) = model();
            let sent = Arc::new(loom::sync::atomic::AtomicBool::new(false));
            let sender = {
                let (inbox, sent) = (inbox.clone(), sent.clone());
                thread::spawn(move || {
                    sent.store(true, loom::sync::atomic::Ordering::Relaxed);
                    inbox.signal();
                })
            };
            loop {
                if inbox.park() {
                    kernel.wait();
                }
                if inbox.unpark() {
                    break;
                }
            }
            assert!(
                sent.load(loom::sync::atomic::Ordering::Relaxed),
                "what was done before the signal is visible after it"
            );
            sender.join().unwrap();
        });
    }

    #[test]
    fn loom_a_loop_left_to_another_poller_is_notified() {
        loom::model(|| {
            let (inbox, kernel) = model();
            let sender = {
                let inbox = inbox.clone();
                thread::spawn(move || inbox.push(7).unwrap())
            };
            inbox.leave_parked();
            kernel.wait();
            inbox.resume();
            let mut batch = Vec::new();
            while batch.is_empty() {
                batch = next_batch(&inbox, &kernel);
            }
            assert_eq!(batch, [7]);
            sender.join().unwrap();
        });
    }

    /// Each item is taken by the loop, returned by `close`, or returned to its sender.
    #[test]
    fn loom_closing_races_with_senders_and_loses_nothing() {
        loom::model(|| {
            let (inbox, _kernel) = model();
            let senders: Vec<_> = [1, 2]
                .into_iter()
                .map(|item| {
                    let inbox = inbox.clone();
                    thread::spawn(move || inbox.push(item).is_err())
                })
                .collect();
            let mut taken = Vec::new();
            if inbox.unpark() {
                inbox.take(&mut taken);
            }
            taken.extend(inbox.close());
            let refused = senders
                .into_iter()
                .map(|sender| usize::from(sender.join().unwrap()))
                .sum::<usize>();
            assert_eq!(taken.len() + refused, 2);
            assert!(inbox.close().is_empty(), "nothing slips in after the close");
        });
    }
}
