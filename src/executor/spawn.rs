//! From a future to a task: the wrapper that catches panics and tells the loop when the future is gone.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::inbox::{Inbox, Notify};
use super::registry::{Info, TaskKey};
use crate::sys::poller::Notifier;
use crate::sys::task;

/// A task that was woken; see [`crate::sys::task`].
pub(crate) type Runnable = task::Runnable<Meta>;

/// Where the output of a task arrives.
pub(crate) type Output<T> = task::Output<Result<T, Caught>, Meta>;

/// What every task carries: the loop it belongs to, and its slot in the registry there.
pub(crate) struct Meta {
    pub(crate) shared: Arc<Shared>,
    pub(crate) slot: u32,
}

/// The part of a loop that any thread may touch.
pub(crate) struct Shared {
    pub(crate) inbox: Inbox<Message, Notifier>,
}

/// What other threads send.
pub(crate) enum Message {
    /// A task was woken.
    Wake(Runnable),
    /// The future of `block_on` was woken.
    WakeRoot,
    /// Something is to be done on the loop's thread.
    Call(Box<dyn FnOnce() + Send>),
}

impl Notify for Notifier {
    fn notify(&self) {
        Self::notify(self);
    }
}

/// The loop, as its tasks know it.
pub(crate) trait Owner: 'static {
    /// The future in this slot of the registry is gone.
    fn finished(&self, slot: u32);
    /// What is known of the task in this slot.
    fn info(&self, slot: u32) -> Option<Info>;
    /// A task panicked and nobody will ever look at it.
    fn unhandled_panic(&self, task: Option<Info>, payload: Payload);
    /// Ends the task, if it still runs.
    fn abort(&self, key: TaskKey);
}

pub(crate) type Payload = Box<dyn Any + Send>;

/// The payload of a panic; reports itself if it is dropped untaken.
pub(crate) struct Caught {
    payload: Option<Payload>,
    owner: Rc<dyn Owner>,
    task: Option<Info>,
}

impl Caught {
    pub(crate) fn take(mut self) -> Payload {
        self.payload.take().expect("taken once, by value")
    }
}

impl Drop for Caught {
    fn drop(&mut self) {
        if let Some(payload) = self.payload.take() {
            self.owner.unhandled_panic(self.task.take(), payload);
        }
    }
}

pin_project! {
    /// What the executor polls.
    pub(crate) struct TaskFuture<F, O: Owner> {
        // `None` once the future has returned or panicked.
        #[pin]
        future: Option<F>,
        owner: Rc<O>,
        slot: u32,
    }

    impl<F, O: Owner> PinnedDrop for TaskFuture<F, O> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if this.future.is_some() {
                // A panic here would abort the process: async-task cannot let it out.
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| this.future.set(None))) {
                    this.owner.unhandled_panic(this.owner.info(*this.slot), payload);
                }
            }
            this.owner.finished(*this.slot);
        }
    }
}

impl<F, O: Owner> TaskFuture<F, O> {
    pub(crate) fn new(future: F, owner: Rc<O>, slot: u32) -> Self {
        Self {
            future: Some(future),
            owner,
            slot,
        }
    }
}

impl<F: Future, O: Owner> Future for TaskFuture<F, O> {
    type Output = Result<F::Output, Caught>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let future = this.future.as_mut().as_pin_mut();
            let polled = future.expect("not polled after the end").poll(cx);
            if polled.is_ready() {
                this.future.set(None);
            }
            polled
        }));
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(payload) => Poll::Ready(Err(Caught {
                payload: Some(payload),
                task: this.owner.info(*this.slot),
                owner: this.owner.clone(),
            })),
        }
    }
}
