//! A set of futures that are polled by one task, each only after it was woken.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use slab::Slab;

use super::unwind::Steps;

type BoxFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// Futures that run beside each other in one task.
pub(crate) struct FutureSet<T> {
    members: Slab<Member<T>>,
    woken: Arc<Woken>,
}

struct Member<T> {
    future: BoxFuture<T>,
    mark: Arc<Mark>,
    waker: Waker,
}

impl<T> Default for FutureSet<T> {
    fn default() -> Self {
        Self {
            members: Slab::new(),
            woken: Arc::default(),
        }
    }
}

impl<T> FutureSet<T> {
    /// Adds a future, which the next poll of the set polls.
    pub(crate) fn push(&mut self, future: BoxFuture<T>) {
        let place = self.members.vacant_entry();
        let mark = Arc::new(Mark {
            key: place.key(),
            is_woken: AtomicBool::new(false),
            woken: self.woken.clone(),
        });
        mark.wake_by_ref();
        let waker = mark.clone().into();
        place.insert(Member {
            future,
            mark,
            waker,
        });
    }

    #[allow(dead_code, reason = "called by the layer for Node only")]
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// Polls the futures that were woken, in the order of their wakes, until one completes. Returns
    /// its output, or `None` if the set is empty.
    ///
    /// A future that wakes itself is polled once a call. After a panic of a future, the set is to
    /// be dropped.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        if self.members.is_empty() {
            return Poll::Ready(None);
        }
        for _ in 0..self.woken.expect_wakes(cx.waker()) {
            let Some(key) = self.woken.lock().keys.pop_front() else {
                break;
            };
            // The key of a future that completed after its wake may be another's now: that one is
            // polled once too often, which every future permits.
            let Some(member) = self.members.get_mut(key) else {
                continue;
            };
            member.mark.is_woken.store(false, Ordering::Release);
            let polled = (member.future.as_mut()).poll(&mut Context::from_waker(&member.waker));
            if let Poll::Ready(output) = polled {
                drop(self.members.remove(key));
                return Poll::Ready(Some(output));
            }
        }
        if !self.woken.lock().keys.is_empty() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

/// Each future is dropped, although the drop of another one panics.
impl<T> Drop for FutureSet<T> {
    fn drop(&mut self) {
        let members = std::mem::take(&mut self.members);
        let mut steps = Steps::default();
        steps.drop_each(members.into_iter().map(|(_, member)| member));
        steps.end();
    }
}

impl<T> Extend<BoxFuture<T>> for FutureSet<T> {
    fn extend<I: IntoIterator<Item = BoxFuture<T>>>(&mut self, futures: I) {
        futures.into_iter().for_each(|future| self.push(future));
    }
}

/// What was woken, shared with the wakers, which may be on any thread.
#[derive(Default)]
struct Woken {
    state: Mutex<WokenState>,
}

#[derive(Default)]
struct WokenState {
    /// The keys of the futures that were woken.
    keys: VecDeque<usize>,
    /// The waker of the task that polls the set.
    waker: Option<Waker>,
}

impl Woken {
    fn lock(&self) -> MutexGuard<'_, WokenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes which task is to be woken, and returns how many futures were woken.
    fn expect_wakes(&self, waker: &Waker) -> usize {
        let state = self.lock();
        let is_known = matches!(&state.waker, Some(known) if known.will_wake(waker));
        let wakes = state.keys.len();
        if !is_known {
            // The clone and the drop of a waker may be user code: neither runs under the lock.
            drop(state);
            let waker = waker.clone();
            let before = self.lock().waker.replace(waker);
            drop(before);
        }
        wakes
    }
}

/// The waker of one future.
struct Mark {
    key: usize,
    is_woken: AtomicBool,
    woken: Arc<Woken>,
}

impl Wake for Mark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_woken.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut state = self.woken.lock();
        state.keys.push_back(self.key);
        let waker = state.waker.clone();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::future::{pending, poll_fn, ready};
    use std::rc::Rc;
    use std::task::{Context, Poll, Waker};

    use super::FutureSet;

    fn next<T>(set: &mut FutureSet<T>) -> Poll<Option<T>> {
        set.poll_next(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn futures_complete_in_the_order_they_were_added() {
        let mut set = FutureSet::default();
        assert_eq!(next(&mut set), Poll::Ready(None));
        set.extend([1, 2].map(|n| Box::pin(ready(n)) as _));
        assert_eq!(next(&mut set), Poll::Ready(Some(1)));
        assert_eq!(next(&mut set), Poll::Ready(Some(2)));
        assert_eq!(next(&mut set), Poll::Ready(None));
    }

    #[test]
    fn only_the_future_that_was_woken_is_polled() {
        let wakers = Rc::new(RefCell::new(Vec::new()));
        let polls = Rc::new(RefCell::new(Vec::new()));
        let mut set = FutureSet::<()>::default();
        for number in 0..3 {
            let (wakers, polls) = (wakers.clone(), polls.clone());
            set.push(Box::pin(poll_fn(move |cx| {
                wakers.borrow_mut().push(cx.waker().clone());
                polls.borrow_mut().push(number);
                Poll::Pending
            })));
        }
        assert_eq!(next(&mut set), Poll::Pending);
        let waker = wakers.borrow()[1].clone();
        std::thread::spawn(move || waker.wake()).join().unwrap();
        assert_eq!(next(&mut set), Poll::Pending);
        assert_eq!(*polls.borrow(), [0, 1, 2, 1]);
    }

    #[test]
    fn a_future_that_wakes_itself_is_polled_once_a_call() {
        let polls = Rc::new(Cell::new(0));
        let mut set = FutureSet::<()>::default();
        set.push(Box::pin(pending()));
        let seen = polls.clone();
        set.push(Box::pin(poll_fn(move |cx| {
            seen.set(seen.get() + 1);
            cx.waker().wake_by_ref();
            Poll::Pending
        })));
        for calls in 1..4 {
            assert_eq!(next(&mut set), Poll::Pending);
            assert_eq!(polls.get(), calls);
        }
        assert_eq!(set.len(), 2);
    }
}
