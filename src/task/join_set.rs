//! Many tasks, awaited as they end.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures::Stream;
use slab::Slab;

use crate::event_loop::handle::LoopHandle;
use crate::executor::join::{AbortHandle, JoinError, JoinHandle};

/// A set of tasks whose outputs come in the order in which the tasks end.
///
/// Dropping the set aborts the tasks in it.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::{task::JoinSet, time::sleep};
///
/// phaseloop::block_on(async {
///     let mut set = JoinSet::new();
///     for ms in [3, 1, 2] {
///         set.spawn(async move {
///             sleep(Duration::from_millis(ms)).await;
///             ms
///         });
///     }
///     let mut order = Vec::new();
///     while let Some(output) = set.join_next().await {
///         order.push(output.unwrap());
///     }
///     assert_eq!(order, [1, 2, 3]);
/// });
/// ```
pub struct JoinSet<T> {
    tasks: Slab<JoinHandle<T>>,
    ended: Rc<RefCell<Ended>>,
}

/// What the tasks tell the set.
#[derive(Default)]
struct Ended {
    /// The places of tasks that have ended, in that order.
    places: VecDeque<usize>,
    waiter: Option<Waker>,
}

/// Lives in a task's future and reports when that is gone, by whatever way.
struct Report {
    place: usize,
    ended: Rc<RefCell<Ended>>,
}

impl Drop for Report {
    fn drop(&mut self) {
        let waiter = {
            let mut ended = self.ended.borrow_mut();
            ended.places.push_back(self.place);
            ended.waiter.take()
        };
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

impl<T: 'static> JoinSet<T> {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self {
            tasks: Slab::new(),
            ended: Rc::default(),
        }
    }

    /// Spawns a task on the running loop and adds it to the set. `None` when that loop is being dropped.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn spawn<F>(&mut self, future: F) -> Option<AbortHandle>
    where
        F: Future<Output = T> + 'static,
    {
        let handle = LoopHandle::current();
        self.spawn_on(&handle, future)
    }

    /// The same on a given loop.
    #[track_caller]
    pub fn spawn_on<F>(&mut self, handle: &LoopHandle, future: F) -> Option<AbortHandle>
    where
        F: Future<Output = T> + 'static,
    {
        let place = self.tasks.vacant_key();
        let report = Report {
            place,
            ended: self.ended.clone(),
        };
        let task = handle.spawn(async move {
            let _report = report;
            future.await
        });
        let abort = task.abort_handle();
        self.tasks.insert(task);
        abort
    }

    /// Waits for the next task to end and returns what it left. `None` when the set is empty.
    ///
    /// An empty set is ready at once: a loop that selects between this and something else has to ask
    /// [`is_empty`](Self::is_empty) before, or it spins.
    ///
    /// # Cancel safety
    ///
    /// A task is taken out of the set only together with its output: nothing is lost.
    pub async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        std::future::poll_fn(|cx| self.poll_join_next(cx)).await
    }

    /// The poll function of [`join_next`](Self::join_next); remembers the last waker only.
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        if self.tasks.is_empty() {
            return Poll::Ready(None);
        }
        let Some(place) = self.next_ended(cx) else {
            return Poll::Pending;
        };
        let task = self.tasks.get_mut(place).expect("a place is reported once");
        let polled = Pin::new(task).poll(cx);
        match &polled {
            Poll::Ready(_) => drop(self.tasks.remove(place)),
            // The future is gone and the executor is about to say so: come back when it has.
            Poll::Pending => self.ended.borrow_mut().places.push_front(place),
        }
        polled.map(Some)
    }

    fn next_ended(&self, cx: &Context<'_>) -> Option<usize> {
        let next = || self.ended.borrow_mut().places.pop_front();
        next().or_else(|| {
            // The clone and the drop of a waker may be anybody's code, which may end a task.
            let waiter = cx.waker().clone();
            let before = self.ended.borrow_mut().waiter.replace(waiter);
            drop(before);
            next()
        })
    }

    /// Aborts all tasks; they stay in the set, and [`join_next`](Self::join_next) returns them cancelled.
    pub fn abort_all(&self) {
        for (_, task) in &self.tasks {
            task.abort();
        }
    }

    /// Lets all tasks go on by themselves and empties the set.
    pub fn detach_all(&mut self) {
        self.tasks.clear();
        // What the tasks report from now on concerns nobody.
        self.ended = Rc::default();
    }

    /// How many tasks are in the set, ended ones included until they are joined.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }
}

impl<T: 'static> Default for JoinSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: 'static> Stream for JoinSet<T> {
    type Item = Result<T, JoinError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_join_next(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        for (_, task) in &self.tasks {
            task.abort();
        }
    }
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinSet")
            .field("len", &self.tasks.len())
            .finish()
    }
}
