//! A set of tasks, joined in the order of completion.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker, ready};

use futures::Stream;
use slab::Slab;

use crate::event_loop::current;
use crate::executor::join::{AbortHandle, JoinError, JoinHandle};
use crate::executor::notes::TaskSet;
use crate::raw::bound::Bound;
use crate::runtime::loop_handle::LoopHandle;
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
/// #[phaseloop::main]
/// async fn main() {
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
/// }
/// ```
pub struct JoinSet<T: 'static> {
    tasks: Slab<JoinHandle<T>>,
    ended: Bound<Arc<Mutex<Ended>>>,
}

/// What the tasks and jobs share with the set. It is made for threads because of the wakers of
/// jobs; the lock is never contended, and no user code runs under it.
#[derive(Default)]
struct Ended {
    /// The numbers of the tasks, by place. Those of tasks that were joined may be left.
    ids: Vec<Id>,
    /// Whether the loop knows the set, for its reports.
    is_noted: bool,
    /// The slots of completed tasks, in the order of completion.
    places: VecDeque<usize>,
    waiter: Option<Waker>,
}

fn lock(ended: &Mutex<Ended>) -> MutexGuard<'_, Ended> {
    ended.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ended {
    fn note_id(&mut self, place: usize, id: Id) {
        match self.ids.get_mut(place) {
            Some(known) => *known = id,
            None => self.ids.push(id),
        }
    }
}

impl TaskSet for Mutex<Ended> {
    fn waiter(&self) -> Option<*const ()> {
        lock(self).waiter.as_ref().map(Waker::data)
    }

    fn members(&self) -> Vec<Id> {
        lock(self).ids.clone()
    }
}

/// Reports the end of a task: return, panic or abort. It lives in the future of the task, whose end
/// drops it; that of a job is the waker that awaits the job.
struct Report {
    place: usize,
    ended: Arc<Mutex<Ended>>,
}

impl Report {
    fn send(&self) {
        let waiter = {
            let mut ended = lock(&self.ended);
            ended.places.push_back(self.place);
            ended.waiter.take()
        };
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

/// The report in the future of a task.
struct ReportOnDrop(Report);

impl Drop for ReportOnDrop {
    fn drop(&mut self) {
        self.0.send();
    }
}

/// A job wakes its awaiter once, when its output can be taken.
impl Wake for Report {
    fn wake(self: Arc<Self>) {
        self.send();
    }
}

impl<T> JoinSet<T> {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self {
            tasks: Slab::new(),
            ended: Bound::new(Arc::default()),
        }
    }

    /// Returns the number of tasks in the set, completed ones included until they are joined.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }
}

/// Adding tasks.
impl<T: 'static> JoinSet<T> {
    /// Spawns a task on the running loop and adds it to the set.
    ///
    /// If the loop is being dropped, the future is dropped, and the task joins as cancelled.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::task::JoinSet;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let mut set = JoinSet::new();
    ///     for number in [1, 2, 3] {
    ///         set.spawn(async move { number * 10 });
    ///     }
    ///     let mut sum = 0;
    ///     while let Some(result) = set.join_next().await {
    ///         sum += result.unwrap();
    ///     }
    ///     assert_eq!(sum, 60);
    /// }
    /// ```
    #[track_caller]
    pub fn spawn<F>(&mut self, task: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.spawn_on(task, &LoopHandle::current())
    }

    /// Spawns a task on the given loop and adds it to the set; see [`spawn`](Self::spawn).
    #[track_caller]
    pub fn spawn_on<F>(&mut self, task: F, handle: &LoopHandle) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        let report = ReportOnDrop(self.next_report());
        let task = handle.spawn(async move {
            let _report = report;
            task.await
        });
        self.insert(task)
    }

    /// Runs a closure on the thread pool for the running loop, as
    /// [`spawn_blocking`](crate::spawn_blocking) does, and adds the job to the set.
    ///
    /// An abort cancels a job that no thread has taken yet; a job that runs continues, and its
    /// output is dropped.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::task::JoinSet;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let mut set = JoinSet::new();
    ///     for number in 1..=3_u64 {
    ///         set.spawn_blocking(move || number * number);
    ///     }
    ///     let squares = set.join_all().await;
    ///     assert_eq!(squares.iter().sum::<u64>(), 14);
    /// }
    /// ```
    #[track_caller]
    pub fn spawn_blocking<F>(&mut self, job: F) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        self.spawn_blocking_on(job, &LoopHandle::current())
    }

    /// Runs a closure on the thread pool for the given loop, and adds the job to the set; see
    /// [`spawn_blocking`](Self::spawn_blocking).
    #[track_caller]
    pub fn spawn_blocking_on<F>(&mut self, job: F, handle: &LoopHandle) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        let report = Arc::new(self.next_report());
        let mut job = handle.spawn_blocking(job);
        if job.is_finished() {
            // The loop was dropped.
            report.send();
        } else {
            let waker = Waker::from(report);
            let polled = Pin::new(&mut job).poll(&mut Context::from_waker(&waker));
            debug_assert!(
                polled.is_pending(),
                "a completion arrives in the poll phase"
            );
        }
        self.insert(job)
    }

    /// Returns the report of the task that is added next.
    fn next_report(&self) -> Report {
        Report {
            place: self.tasks.vacant_key(),
            ended: self.ended.clone(),
        }
    }

    fn insert(&mut self, task: JoinHandle<T>) -> AbortHandle {
        let abort = task.abort_handle();
        let place = self.tasks.insert(task);
        lock(&self.ended).note_id(place, abort.id());
        abort
    }
}

/// Joining tasks.
impl<T: 'static> JoinSet<T> {
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
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::task::JoinSet;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let mut set = JoinSet::new();
    ///     for number in [1, 2, 3] {
    ///         set.spawn(async move { number * 10 });
    ///     }
    ///     let mut sum = 0;
    ///     while let Some(result) = set.join_next().await {
    ///         sum += result.unwrap();
    ///     }
    ///     assert_eq!(sum, 60);
    /// }
    /// ```
    pub async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        poll_fn(|cx| self.poll_join_next(cx)).await
    }

    /// Waits for the next task to complete and returns its number with its output; see
    /// [`join_next`](Self::join_next).
    ///
    /// # Errors
    ///
    /// The result is an error if the task panicked or was aborted; [`JoinError::id`] is its number.
    ///
    /// # Cancel safety
    ///
    /// A task leaves the set only together with its output: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::task::JoinSet;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let mut set = JoinSet::new();
    ///     let answer = set.spawn(async { 42 }).id();
    ///     assert_eq!(set.join_next_with_id().await.unwrap().unwrap(), (answer, 42));
    ///     assert!(set.join_next_with_id().await.is_none());
    /// }
    /// ```
    pub async fn join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        poll_fn(|cx| self.poll_join_next_with_id(cx)).await
    }

    /// Returns the result of a task that has completed, without waiting. `None` if the set is
    /// empty, or if no task in it has completed.
    ///
    /// # Errors
    ///
    /// The result is an error if the task panicked or was aborted.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::task::{JoinSet, yield_now};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let mut set = JoinSet::from_iter([async { 42 }]);
    ///     assert!(set.try_join_next().is_none(), "it was not polled yet");
    ///     yield_now().await;
    ///     assert_eq!(set.try_join_next().unwrap().unwrap(), 42);
    ///     assert!(set.try_join_next().is_none() && set.is_empty());
    /// }
    /// ```
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        self.try_join_next_with_id().map(without_id)
    }

    /// Returns the number and the output of a task that has completed, without waiting; see
    /// [`try_join_next`](Self::try_join_next).
    ///
    /// # Errors
    ///
    /// The result is an error if the task panicked or was aborted; [`JoinError::id`] is its number.
    pub fn try_join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        let place = *lock(&self.ended).places.front()?;
        // Its future may be dropped while the executor has not published the output yet.
        if !self.tasks.get(place)?.is_finished() {
            return None;
        }
        lock(&self.ended).places.pop_front();
        match self.poll_at(place, &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => unreachable!("a finished task has its output"),
        }
    }

    /// Waits for all tasks, and returns their outputs in the order of completion.
    ///
    /// # Panics
    ///
    /// If a task panicked, its panic resumes here; if one was aborted, this function panics. The
    /// tasks that are left are aborted.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the outputs so far, and aborts the tasks that are left.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{task::JoinSet, time::sleep};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let nap = |ms| async move {
    ///         sleep(Duration::from_millis(ms)).await;
    ///         ms
    ///     };
    ///     let set: JoinSet<_> = [3, 1, 2].map(nap).into_iter().collect();
    ///     assert_eq!(set.join_all().await, [1, 2, 3]);
    /// }
    /// ```
    pub async fn join_all(mut self) -> Vec<T> {
        let mut outputs = Vec::with_capacity(self.len());
        while let Some(output) = self.join_next().await {
            match output.map_err(JoinError::try_into_panic) {
                Ok(output) => outputs.push(output),
                Err(Ok(panic)) => resume_unwind(panic),
                Err(Err(error)) => panic!("{error}"),
            }
        }
        outputs
    }

    /// Aborts all tasks, and waits until they have ended. Their outputs and panics are dropped.
    ///
    /// A job of [`spawn_blocking`](Self::spawn_blocking) that runs is not waited for.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the tasks are aborted nevertheless; those that were not joined
    /// stay in the set.
    pub async fn shutdown(&mut self) {
        self.abort_all();
        while self.join_next().await.is_some() {}
    }

    /// Polls for the next completed task; the function behind [`join_next`](Self::join_next). Only
    /// the last waker is kept.
    ///
    /// # Errors
    ///
    /// As [`join_next`](Self::join_next).
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        let joined = self.poll_join_next_with_id(cx);
        joined.map(|joined| joined.map(without_id))
    }

    /// Polls for the next completed task and its number; the function behind
    /// [`join_next_with_id`](Self::join_next_with_id). Only the last waker is kept.
    ///
    /// # Errors
    ///
    /// As [`join_next_with_id`](Self::join_next_with_id).
    pub fn poll_join_next_with_id(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(Id, T), JoinError>>> {
        if self.tasks.is_empty() {
            return Poll::Ready(None);
        }
        let Some(place) = self.next_ended(cx) else {
            return Poll::Pending;
        };
        let polled = self.poll_at(place, cx);
        if polled.is_pending() {
            // The future is dropped, but the executor has not published the output yet. The handle
            // wakes this task when it has.
            lock(&self.ended).places.push_front(place);
        }
        polled.map(Some)
    }

    /// Polls the task at a place that was reported, and removes it if it is ready.
    fn poll_at(&mut self, place: usize, cx: &mut Context<'_>) -> Poll<Result<(Id, T), JoinError>> {
        let task = self.tasks.get_mut(place).expect("a place is reported once");
        let (id, output) = (task.id(), ready!(Pin::new(task).poll(cx)));
        drop(self.tasks.remove(place));
        Poll::Ready(output.map(|output| (id, output)))
    }

    fn next_ended(&self, cx: &Context<'_>) -> Option<usize> {
        let next = || lock(&self.ended).places.pop_front();
        next().or_else(|| {
            self.note();
            // Cloning and dropping a waker may run user code, which may end a task.
            let waiter = cx.waker().clone();
            current::note_waker(&waiter);
            let before = lock(&self.ended).waiter.replace(waiter);
            drop(before);
            next()
        })
    }

    /// Lets the reports of the loop know what waits for the set, with its first wait.
    fn note(&self) {
        if !std::mem::replace(&mut lock(&self.ended).is_noted, true) {
            let set = Arc::downgrade(&self.ended);
            if let Some(handle) = LoopHandle::try_current() {
                handle.core().executor.note_set(set);
            }
        }
    }

    /// Aborts all tasks. They stay in the set, and [`join_next`](Self::join_next) returns them as
    /// cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::pending;
    /// use phaseloop::task::JoinSet;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let mut set = JoinSet::new();
    ///     set.spawn(pending::<()>());
    ///     set.abort_all();
    ///     assert!(set.join_next().await.unwrap().unwrap_err().is_cancelled());
    ///     set.spawn(pending());
    ///     set.shutdown().await; // aborts and waits
    ///     assert!(set.is_empty());
    /// }
    /// ```
    pub fn abort_all(&self) {
        for (_, task) in &self.tasks {
            task.abort();
        }
    }

    /// Detaches all tasks and empties the set.
    pub fn detach_all(&mut self) {
        // Reports of detached tasks go to the old state, which no set reads.
        self.ended = Bound::new(Arc::default());
        // The drop of an output is user code, which finds an empty set if it panics.
        drop(std::mem::take(&mut self.tasks));
    }
}

fn without_id<T>(joined: Result<(Id, T), JoinError>) -> Result<T, JoinError> {
    joined.map(|(_, output)| output)
}

impl<T> Default for JoinSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Spawns each future on the running loop.
///
/// # Panics
///
/// When no loop runs on this thread, unless there is no future.
impl<T: 'static, F: Future<Output = T> + 'static> FromIterator<F> for JoinSet<T> {
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = F>>(futures: I) -> Self {
        let mut set = Self::new();
        for future in futures {
            set.spawn(future);
        }
        set
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
