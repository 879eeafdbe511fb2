//! Handles to spawned tasks: await the result, or end the task.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use super::registry::Id;
use super::shared::{Output, Shared};
use crate::raw::task::Payload;

/// Awaits the output of a spawned task.
///
/// Dropping the handle *detaches* the task: it goes on without it. Awaiting gives the task's output, or a
/// [`JoinError`] when it panicked or was aborted. When the task ends, the awaiting task is woken into the
/// microtask lane, as by any other wake.
///
/// # Cancel safety
///
/// The handle is a future that holds nothing but its place: polling it by reference (`&mut handle`) and
/// giving up in between loses nothing.
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
    /// `None`: the loop was gone when the task was spawned.
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

    /// Lets the task go on without anybody who awaits it: the same as dropping the handle, said aloud.
    ///
    /// # Examples
    ///
    /// ```
    /// phaseloop::run(async {
    ///     phaseloop::spawn(async { println!("nobody waits for this") }).detach();
    /// })?;
    /// # Ok::<(), phaseloop::Error>(())
    /// ```
    pub fn detach(self) {
        drop(self);
    }

    /// Ends the task: its future is dropped when its turn in the microtask lane comes, and awaiting the
    /// handle gives an error for which [`is_cancelled`](JoinError::is_cancelled) holds.
    ///
    /// A task that has finished already keeps its output. Aborting twice is the same as once.
    pub fn abort(&self) {
        if let Some(output) = &self.output {
            let task = output.local();
            task.shared.abort(output.slot(), task.id);
        }
    }

    /// A handle that only aborts, to be kept elsewhere. `None` if the task never started because its loop was gone.
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

    /// Whether the task has returned, panicked or been dropped.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.output.as_ref().is_none_or(Output::is_finished)
    }

    /// The task's number. `None` if it never started because its loop was gone.
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

/// Ends a task without waiting for it. Made by [`JoinHandle::abort_handle`].
#[derive(Clone)]
pub struct AbortHandle {
    shared: Arc<Shared>,
    slot: u32,
    id: Id,
    /// Neither `Send` nor `Sync`: tasks are aborted on the thread of their loop.
    _local: PhantomData<*const ()>,
}

impl AbortHandle {
    /// Ends the task, as [`JoinHandle::abort`] does. Without effect once it is over.
    pub fn abort(&self) {
        self.shared.abort(self.slot, self.id);
    }

    /// The task's number.
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

/// Why a task has no output: it panicked, or it was aborted (or its loop dropped) before it returned.
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
    /// `None`: cancelled. A lock, so that the error is `Sync` although a payload need not be.
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

    /// The payload, to look at.
    fn payload(&self) -> Option<MutexGuard<'_, Payload>> {
        let payload = self.panic.as_ref()?;
        Some(payload.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the task was aborted, or dropped with its loop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.panic.is_none()
    }

    /// Whether the task panicked.
    #[must_use]
    pub fn is_panic(&self) -> bool {
        self.panic.is_some()
    }

    /// The payload of the panic, for [`std::panic::resume_unwind`].
    ///
    /// # Errors
    ///
    /// Gives the error back when the task did not panic.
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send + 'static>, Self> {
        let payload = self.panic.ok_or_else(Self::cancelled)?;
        Ok(payload.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The text of a panic, where it has one.
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
