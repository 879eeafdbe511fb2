//! Handles to spawned tasks, which await the output or abort the task.
// Marks: a handle of a task that has ended is dropped without a call (row `spawn_join`); `cold`
// are the tasks that fail.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::io;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use super::message::Message;
use super::shared::{Output, TaskRef};
use crate::pool::Job;
use crate::raw::bound::Bound;
use crate::raw::task::Payload;
use crate::task_info::Id;

/// A future of the output of a spawned task, or of a job of the thread pool.
///
/// A job of [`spawn_blocking`](crate::spawn_blocking) counts as a task here: it has a number, can
/// be aborted, and is listed with the tasks.
///
/// Awaiting the handle returns the output, or a [`JoinError`] if the task panicked or was aborted.
/// Dropping the handle *detaches* the task: it continues. When the task completes, the awaiting
/// task is woken into the microtask lane, as by any other wake.
///
/// # Cancel safety
///
/// Awaiting the handle by reference (`&mut handle`) and dropping that future loses no output.
///
/// # Examples
///
/// ```
/// #[phaseloop::main]
/// async fn main() {
///     let task = phaseloop::spawn(async { 20 + 1 });
///     assert_eq!(task.await.unwrap() * 2, 42);
/// }
/// ```
#[must_use = "await it, or call `detach` to let the task go on by itself, as dropping the handle does"]
pub struct JoinHandle<T: 'static> {
    joined: Joined<T>,
}

/// What a handle joins.
enum Joined<T: 'static> {
    Task(Output<T>),
    Job(Bound<Arc<dyn Awaited<T>>>),
    /// A job whose output the handle has returned, or a task that never started, since its loop
    /// was dropped before.
    Nothing(Id),
}

/// A job of the thread pool as its handle sees it, on the owner thread.
pub(crate) trait Awaited<T> {
    /// Polls for the output, which is ready once the completion has arrived. `None`: the job was
    /// cancelled, or the output was taken.
    fn poll(&self, cx: &Context<'_>) -> Poll<Option<Result<T, Payload>>>;
    /// Returns whether a poll would be ready.
    fn is_finished(&self) -> bool;
    /// Notes that the handle was dropped. An output that has arrived is dropped.
    fn detach(&self);
    /// Returns the number that the job has among the tasks.
    fn id(&self) -> Id;
    /// Drops the closure or the output. A running closure continues, and its output is dropped.
    /// Returns whether the loop still counts the job.
    fn cancel(&self) -> bool;
    fn as_job(self: Arc<Self>) -> Arc<dyn Job>;
}

impl<T> JoinHandle<T> {
    pub(crate) fn new(output: Output<T>) -> Self {
        Self {
            joined: Joined::Task(output),
        }
    }

    pub(crate) fn of_job(job: Arc<dyn Awaited<T>>) -> Self {
        Self {
            joined: Joined::Job(Bound::new(job)),
        }
    }

    pub(crate) fn never_started(id: Id) -> Self {
        Self {
            joined: Joined::Nothing(id),
        }
    }

    /// Detaches the task. Equivalent to dropping the handle, but explicit.
    ///
    /// # Examples
    ///
    /// ```
    /// fn main() -> Result<(), phaseloop::Error> {
    ///     phaseloop::run(async {
    ///         phaseloop::spawn(async { println!("not awaited") }).detach();
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    pub fn detach(self) {
        drop(self);
    }

    /// Aborts the task. Its future is dropped when the microtask lane reaches it, and awaiting the
    /// handle returns an error for which [`is_cancelled`](JoinError::is_cancelled) is `true`. If
    /// the drop of its future panics, it is the error of that panic.
    ///
    /// A task that has completed keeps its output. Aborting an aborted task has no further effect.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::pending;
    /// use phaseloop::spawn;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let task = spawn(pending::<()>());
    ///     task.abort();
    ///     assert!(!task.is_finished(), "the lane has not reached it yet");
    ///     assert!(task.await.unwrap_err().is_cancelled());
    /// }
    /// ```
    pub fn abort(&self) {
        match &self.joined {
            Joined::Task(output) => {
                let task = output.local();
                task.shared.abort(output.slot(), task.id);
            }
            Joined::Job(job) => Arc::clone(job).as_job().abort(),
            Joined::Nothing(_) => {}
        }
    }

    /// Returns a handle that only aborts the task, for any thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::pending;
    /// use phaseloop::spawn;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let task = spawn(pending::<()>());
    ///     let handle = task.abort_handle(); // `Send`: any thread may abort the task
    ///     std::thread::spawn(move || handle.abort()).join().unwrap();
    ///     assert!(task.await.unwrap_err().is_cancelled());
    /// }
    /// ```
    #[must_use]
    pub fn abort_handle(&self) -> AbortHandle {
        let aborted = match &self.joined {
            Joined::Task(output) => Aborted::Task(TaskRef::new(output)),
            Joined::Job(job) => Aborted::Job(Arc::clone(job).as_job()),
            Joined::Nothing(_) => Aborted::Nothing,
        };
        AbortHandle {
            aborted,
            id: self.id(),
        }
    }

    /// Returns whether the task has completed, panicked or been dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::pending;
    /// use phaseloop::spawn;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let task = spawn(pending::<()>());
    ///     task.abort();
    ///     assert!(!task.is_finished(), "the lane has not reached it yet");
    ///     assert!(task.await.unwrap_err().is_cancelled());
    /// }
    /// ```
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match &self.joined {
            Joined::Task(output) => output.is_finished(),
            Joined::Job(job) => job.is_finished(),
            Joined::Nothing(_) => true,
        }
    }

    /// Returns the task's number. A task that never started, because its loop was dropped, has one
    /// as well.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::spawn;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let task = spawn(async { panic!("in a task") });
    ///     let id = task.id();
    ///     assert_eq!(task.abort_handle().id(), id);
    ///     assert_eq!(task.await.unwrap_err().id(), id);
    /// }
    /// ```
    #[must_use]
    pub fn id(&self) -> Id {
        match &self.joined {
            Joined::Task(output) => output.local().id,
            Joined::Job(job) => job.id(),
            Joined::Nothing(id) => *id,
        }
    }

    /// Returns the error of a task that panicked, or was cancelled.
    // Not inlined, so that the poll of the handle is inlined into its task.
    #[cold]
    fn error(&self, panic: Option<Payload>) -> JoinError {
        match panic {
            Some(panic) => JoinError::panicked(panic, self.id()),
            None => JoinError::cancelled(self.id()),
        }
    }

    /// Polls a job, and releases it once it is over.
    // Not inlined: most handles are those of tasks.
    #[inline(never)]
    fn poll_job(&mut self, cx: &Context<'_>) -> Poll<Option<Result<T, Payload>>> {
        let Joined::Job(job) = &self.joined else {
            return Poll::Ready(None);
        };
        let output = ready!(job.poll(cx));
        self.joined = Joined::Nothing(job.id());
        Poll::Ready(output)
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let output = match &mut self.joined {
            Joined::Task(output) => output.poll(cx),
            _ => self.poll_job(cx),
        };
        output.map(|output| match output {
            Some(Ok(output)) => Ok(output),
            Some(Err(panic)) => Err(self.error(Some(panic))),
            None => Err(self.error(None)),
        })
    }
}

impl<T> Unpin for JoinHandle<T> {}

impl<T> Drop for JoinHandle<T> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Joined::Job(_) = self.joined {
            detach_job(std::mem::replace(
                &mut self.joined,
                Joined::Nothing(Id::NONE),
            ));
        }
    }
}

// Not inlined: most handles are those of tasks, and their drop is short.
#[inline(never)]
fn detach_job<T>(joined: Joined<T>) {
    if let Joined::Job(job) = joined {
        job.detach();
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("id", &self.id())
            .field("finished", &self.is_finished())
            .finish()
    }
}

/// Aborts a task without awaiting it, from any thread. [`JoinHandle::abort_handle`] creates it.
///
/// It may outlive the task and the loop. It keeps the memory that the future was in, but not the
/// future.
///
/// # Examples
///
/// ```
/// #[phaseloop::main]
/// async fn main() {
///     let task = phaseloop::spawn(std::future::pending::<()>());
///     let stop = task.abort_handle();
///     let thread = std::thread::spawn(move || stop.abort());
///     assert!(task.await.unwrap_err().is_cancelled());
///     thread.join().unwrap();
/// }
/// ```
#[derive(Clone)]
pub struct AbortHandle {
    aborted: Aborted,
    id: Id,
}

/// What an [`AbortHandle`] aborts.
#[derive(Clone)]
enum Aborted {
    Task(TaskRef),
    Job(Arc<dyn Job>),
    /// A job that was over, or a task that never started.
    Nothing,
}

impl AbortHandle {
    /// Aborts the task, as [`JoinHandle::abort`] does. It has no effect once the task has
    /// completed, or its loop was dropped.
    ///
    /// From another thread the abort arrives in the poll phase, as a call of
    /// [`Remote::call`](crate::Remote::call) does. A task that completes before keeps its output.
    pub fn abort(&self) {
        match &self.aborted {
            Aborted::Task(task) => abort_task(task),
            Aborted::Job(job) => job.clone().abort(),
            Aborted::Nothing => {}
        }
    }

    /// Returns whether the task has completed, panicked or been dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let task = phaseloop::spawn(async {});
    ///     let handle = task.abort_handle();
    ///     assert!(!handle.is_finished());
    ///     task.await.unwrap();
    ///     assert!(handle.is_finished());
    /// }
    /// ```
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match &self.aborted {
            Aborted::Task(task) => task.is_over(),
            Aborted::Job(job) => job.is_over(),
            Aborted::Nothing => true,
        }
    }

    /// Returns the task's number.
    #[must_use]
    pub fn id(&self) -> Id {
        self.id
    }
}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortHandle")
            .field("id", &self.id())
            .field("finished", &self.is_finished())
            .finish()
    }
}

/// Aborts a task from any thread. A poll in progress on the owner thread must not miss the mark, so
/// only the owner thread sets it.
fn abort_task(task: &TaskRef) {
    let shared = &task.local().shared;
    if shared.is_owner_thread() {
        return shared.abort(task.slot(), task.local().id);
    }
    let task = task.clone();
    // A dropped loop has no tasks.
    drop(shared.push(Message::Call(Box::new(move || abort_task(&task)))));
}

/// The error of a task without an output: the task panicked, was aborted, or was dropped with its
/// loop.
///
/// # Examples
///
/// ```
/// use std::error::Error;
///
/// async fn answer() -> Result<u32, Box<dyn Error + Send + Sync>> {
///     Ok(phaseloop::spawn(async { 42 }).await?)
/// }
///
/// fn main() {
///     assert_eq!(phaseloop::block_on(answer()).unwrap(), 42);
/// }
/// ```
pub struct JoinError {
    /// `None` if the task was cancelled. The lock makes the error `Sync` although a payload need
    /// not be.
    panic: Option<Box<Mutex<Payload>>>,
    /// The number of the task. It is never zero, which makes a result with this error shorter.
    id: NonZeroU64,
}

impl JoinError {
    #[cold]
    pub(crate) fn cancelled(id: Id) -> Self {
        Self {
            panic: None,
            id: NonZeroU64::new(id.0).unwrap_or(NonZeroU64::MAX),
        }
    }

    #[cold]
    pub(crate) fn panicked(payload: Payload, id: Id) -> Self {
        Self {
            panic: Some(Box::new(Mutex::new(payload))),
            ..Self::cancelled(id)
        }
    }

    /// Returns the payload of the panic, for inspection.
    fn payload(&self) -> Option<MutexGuard<'_, Payload>> {
        let payload = self.panic.as_ref()?;
        Some(payload.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns whether the task was aborted, or dropped with its loop.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::pending;
    /// use phaseloop::spawn;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let aborted = spawn(pending::<()>());
    ///     aborted.abort();
    ///     assert!(aborted.await.unwrap_err().is_cancelled());
    ///     let error = spawn(async { panic!("in a task") }).await.unwrap_err();
    ///     assert!(error.is_panic());
    ///     let payload = error.try_into_panic().unwrap();
    ///     assert_eq!(*payload.downcast_ref::<&str>().unwrap(), "in a task");
    /// }
    /// ```
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.panic.is_none()
    }

    /// Returns whether the task panicked.
    #[must_use]
    pub fn is_panic(&self) -> bool {
        self.panic.is_some()
    }

    /// Returns the payload of the panic, for [`std::panic::resume_unwind`].
    ///
    /// # Panics
    ///
    /// If the task did not panic. [`try_into_panic`](Self::try_into_panic) returns the error
    /// instead.
    ///
    /// # Examples
    ///
    /// ```
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let task = phaseloop::spawn(async { panic!("a bug") });
    ///     let error = task.await.unwrap_err();
    ///     assert_eq!(error.into_panic().downcast_ref(), Some(&"a bug"));
    /// }
    /// ```
    #[track_caller]
    #[must_use]
    pub fn into_panic(self) -> Box<dyn Any + Send + 'static> {
        match self.try_into_panic() {
            Ok(payload) => payload,
            Err(error) => panic!("`into_panic` of an error that is no panic: {error}"),
        }
    }

    /// Returns the payload of the panic, for [`std::panic::resume_unwind`].
    ///
    /// # Errors
    ///
    /// Returns this error if the task did not panic.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::pending;
    /// use phaseloop::spawn;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let aborted = spawn(pending::<()>());
    ///     aborted.abort();
    ///     assert!(aborted.await.unwrap_err().is_cancelled());
    ///     let error = spawn(async { panic!("in a task") }).await.unwrap_err();
    ///     assert!(error.is_panic());
    ///     let payload = error.try_into_panic().unwrap();
    ///     assert_eq!(*payload.downcast_ref::<&str>().unwrap(), "in a task");
    /// }
    /// ```
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send + 'static>, Self> {
        match self.panic {
            Some(payload) => Ok(payload.into_inner().unwrap_or_else(PoisonError::into_inner)),
            None => Err(self),
        }
    }

    /// Returns the number of the task, as [`JoinHandle::id`] does.
    ///
    /// A task of a [scope](crate::task::scope()) and a closure of
    /// [`queue_work`](crate::LoopHandle::queue_work) have no number, and a task of
    /// [`Remote::spawn`](crate::Remote::spawn) has none before it has arrived at its loop. For them
    /// the result is a number that no task has.
    #[must_use]
    pub fn id(&self) -> Id {
        Id(self.id.get())
    }
}

/// Returns the text of a panic, if it has one.
pub fn panic_message(payload: &(dyn Any + Send)) -> Option<&str> {
    payload
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.payload() {
            None => f.write_str("the task was aborted before it returned"),
            Some(payload) => match panic_message(&**payload) {
                Some(message) => write!(f, "the task panicked: {message}"),
                None => f.write_str("the task panicked"),
            },
        }
    }
}

/// Prints the text of [`Display`](fmt::Display); with `{:#?}` the number of the task, too.
impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return fmt::Display::fmt(self, f);
        }
        let panic = self.payload();
        let message = panic
            .as_ref()
            .map(|it| panic_message(&***it).unwrap_or(".."));
        f.debug_struct("JoinError")
            .field("id", &self.id)
            .field("panic", &message)
            .finish()
    }
}

impl std::error::Error for JoinError {}

/// Converts into an error of the kind [`Other`](io::ErrorKind::Other), with the panic or the abort
/// as its text.
impl From<JoinError> for io::Error {
    fn from(error: JoinError) -> Self {
        Self::other(error)
    }
}
