//! Handles to spawned tasks, which await the output or abort the task.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use super::shared::{Output, Shared};
use crate::raw::task::Payload;
use crate::task_info::Id;

/// A future of the output of a spawned task.
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
/// phaseloop::block_on(async {
///     let task = phaseloop::spawn(async { 20 + 1 });
///     assert_eq!(task.await.unwrap() * 2, 42);
/// });
/// ```
#[must_use = "await it, or call `detach` to let the task go on by itself, as dropping the handle does"]
pub struct JoinHandle<T> {
    /// `None` if the loop was dropped before the task was spawned.
    output: Option<Output<T>>,
}

impl<T> JoinHandle<T> {
    pub(crate) fn new(output: Output<T>) -> Self {
        Self {
            output: Some(output),
        }
    }

    pub(crate) fn never_started() -> Self {
        Self { output: None }
    }

    /// Detaches the task. Equivalent to dropping the handle, but explicit.
    ///
    /// # Examples
    ///
    /// ```
    /// phaseloop::run(async {
    ///     phaseloop::spawn(async { println!("not awaited") }).detach();
    /// })?;
    /// # Ok::<(), phaseloop::Error>(())
    /// ```
    pub fn detach(self) {
        drop(self);
    }

    /// Aborts the task. Its future is dropped when the microtask lane reaches it, and awaiting the
    /// handle returns an error for which [`is_cancelled`](JoinError::is_cancelled) is `true`.
    ///
    /// A task that has completed keeps its output. Aborting an aborted task has no further effect.
    pub fn abort(&self) {
        if let Some(output) = &self.output {
            let task = output.local();
            task.shared.abort(output.slot(), task.id);
        }
    }

    /// Returns a handle that only aborts the task, to be kept elsewhere. Returns `None` if the task
    /// never started because its loop was dropped.
    #[must_use]
    pub fn abort_handle(&self) -> Option<AbortHandle> {
        let output = self.output.as_ref()?;
        Some(AbortHandle {
            shared: output.local().shared.clone(),
            slot: output.slot(),
            id: output.local().id,
            _local: PhantomData,
        })
    }

    /// Returns whether the task has completed, panicked or been dropped.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.output.as_ref().is_none_or(Output::is_finished)
    }

    /// Returns the task's number, or `None` if the task never started because its loop was dropped.
    #[must_use]
    pub fn id(&self) -> Option<Id> {
        self.output.as_ref().map(|output| output.local().id)
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(output) = &mut self.output else {
            return Poll::Ready(Err(JoinError::cancelled()));
        };
        output.poll(cx).map(|output| match output {
            Some(Ok(output)) => Ok(output),
            Some(Err(panic)) => Err(JoinError::panicked(panic)),
            None => Err(JoinError::cancelled()),
        })
    }
}

impl<T> Unpin for JoinHandle<T> {}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("id", &self.id())
            .field("finished", &self.is_finished())
            .finish()
    }
}

/// Aborts a task without awaiting it. [`JoinHandle::abort_handle`] creates it.
///
/// # Examples
///
/// ```
/// phaseloop::block_on(async {
///     let task = phaseloop::spawn(std::future::pending::<()>());
///     let stop = task.abort_handle().unwrap();
///     phaseloop::set_immediate(move || stop.abort());
///     assert!(task.await.unwrap_err().is_cancelled());
/// });
/// ```
#[derive(Clone)]
pub struct AbortHandle {
    shared: Arc<Shared>,
    slot: u32,
    id: Id,
    /// The type is neither `Send` nor `Sync`: tasks are aborted on the owner thread.
    _local: PhantomData<*const ()>,
}

impl AbortHandle {
    /// Aborts the task, as [`JoinHandle::abort`] does. It has no effect once the task has
    /// completed.
    pub fn abort(&self) {
        self.shared.abort(self.slot, self.id);
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
            .finish()
    }
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
/// assert_eq!(phaseloop::block_on(answer()).unwrap(), 42);
/// ```
pub struct JoinError {
    /// `None` if the task was cancelled. The lock makes the error `Sync` although a payload need
    /// not be.
    panic: Option<Box<Mutex<Payload>>>,
}

impl JoinError {
    pub(crate) fn cancelled() -> Self {
        Self { panic: None }
    }

    pub(crate) fn panicked(payload: Payload) -> Self {
        Self {
            panic: Some(Box::new(Mutex::new(payload))),
        }
    }

    /// Returns the payload of the panic, for inspection.
    fn payload(&self) -> Option<MutexGuard<'_, Payload>> {
        let payload = self.panic.as_ref()?;
        Some(payload.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns whether the task was aborted, or dropped with its loop.
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
    /// # Errors
    ///
    /// Returns this error if the task did not panic.
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send + 'static>, Self> {
        let payload = self.panic.ok_or_else(Self::cancelled)?;
        Ok(payload.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the text of a panic, if it has one.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> Option<&str> {
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

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.payload() {
            None => f.write_str("JoinError::Cancelled"),
            Some(payload) => {
                let message = panic_message(&**payload).unwrap_or("..");
                write!(f, "JoinError::Panic({message:?})")
            }
        }
    }
}

impl std::error::Error for JoinError {}
