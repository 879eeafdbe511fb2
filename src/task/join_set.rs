//! A set of tasks, joined in the order of completion.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures::Stream;
use slab::Slab;

use crate::event_loop::api::loop_handle::LoopHandle;
use crate::event_loop::current;
use crate::executor::join::{AbortHandle, JoinError, JoinHandle};
use crate::executor::notes::TaskSet;
use crate::raw::bound::Bound;
use crate::task_info::Id;

/// A set of tasks whose outputs are returned in the order of completion.
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
pub struct JoinSet<T: 'static> {
    tasks: Slab<JoinHandle<T>>,
    ended: Bound<Rc<RefCell<Ended>>>,
}

/// State that the tasks share with the set.
#[derive(Default)]
struct Ended {
    /// The numbers of the tasks, by place. Those of tasks that were joined may be left.
    ids: Vec<Option<Id>>,
    /// Whether the loop knows the set, for its reports.
    is_noted: bool,
    /// The slots of completed tasks, in the order of completion.
    places: VecDeque<usize>,
    waiter: Option<Waker>,
}

impl Ended {
    fn note_id(&mut self, place: usize, id: Option<Id>) {
        match self.ids.get_mut(place) {
            Some(known) => *known = id,
            None => self.ids.push(id),
        }
    }
}

impl TaskSet for RefCell<Ended> {
    fn waiter(&self) -> Option<*const ()> {
        self.borrow().waiter.as_ref().map(Waker::data)
    }

    fn members(&self) -> Vec<Id> {
        self.borrow().ids.iter().flatten().copied().collect()
    }
}

/// Lives in the future of a task. Its drop reports the end of the task: return, panic or abort.
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
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self {
            tasks: Slab::new(),
            ended: Bound::new(Rc::default()),
        }
    }

    /// Spawns a task on the running loop and adds it to the set. `None` if the loop is being
    /// dropped.
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

    /// Spawns a task on the given loop and adds it to the set. `None` if the loop was dropped.
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
        self.ended.borrow_mut().note_id(place, task.id());
        self.tasks.insert(task);
        abort
    }

    /// Waits for the next task to complete and returns its result. `None` if the set is empty.
    ///
    /// An empty set is ready at once: a loop that selects between this and another future must
    /// check [`is_empty`](Self::is_empty) first, or it spins.
    ///
    /// # Errors
    ///
    /// The result is an error if the task panicked or was aborted.
    ///
    /// # Cancel safety
    ///
    /// A task leaves the set only together with its output: dropping the future loses nothing.
    pub async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        std::future::poll_fn(|cx| self.poll_join_next(cx)).await
    }

    /// Polls for the next completed task; the function behind [`join_next`](Self::join_next). Only
    /// the last waker is kept.
    ///
    /// # Errors
    ///
    /// As [`join_next`](Self::join_next).
    #[expect(
        clippy::missing_panics_doc,
        reason = "a task reports its place once, and leaves the set after that"
    )]
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
            // The future is dropped, but the executor has not published the output yet. The handle
            // wakes this task when it has.
            Poll::Pending => self.ended.borrow_mut().places.push_front(place),
        }
        polled.map(Some)
    }

    fn next_ended(&self, cx: &Context<'_>) -> Option<usize> {
        let next = || self.ended.borrow_mut().places.pop_front();
        next().or_else(|| {
            self.note();
            // Cloning and dropping a waker may run user code, which may end a task.
            let waiter = cx.waker().clone();
            current::note_waker(&waiter);
            let before = self.ended.borrow_mut().waiter.replace(waiter);
            drop(before);
            next()
        })
    }

    /// Lets the reports of the loop know what waits for the set, with its first wait.
    fn note(&self) {
        if !std::mem::replace(&mut self.ended.borrow_mut().is_noted, true) {
            let set = Rc::downgrade(&self.ended);
            if let Some(handle) = LoopHandle::try_current() {
                handle.core().executor().note_set(set);
            }
        }
    }

    /// Aborts all tasks. They stay in the set, and [`join_next`](Self::join_next) returns them as
    /// cancelled.
    pub fn abort_all(&self) {
        for (_, task) in &self.tasks {
            task.abort();
        }
    }

    /// Detaches all tasks and empties the set.
    pub fn detach_all(&mut self) {
        self.tasks.clear();
        // Reports of detached tasks go to the old state, which no set reads.
        self.ended = Bound::new(Rc::default());
    }

    /// The number of tasks in the set, completed ones included until they are joined.
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
