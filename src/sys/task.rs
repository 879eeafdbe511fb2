//! Tasks for futures that are not `Send`, on top of `async-task`.
//!
//! A waker may be used on any thread, so a *runnable* (a task that wants to be polled) may be created on
//! any thread. Its future may be touched on the thread that spawned it only. [`Runnable`] guards that:
//! anywhere else it neither runs nor drops the future, it leaks.
#![allow(
    unsafe_code,
    reason = "async-task leaves the thread rule of local futures to its caller"
)]

use std::future::Future;
use std::task::Waker;

use crate::sys::thread::{self, ThreadToken};

/// What the task carries beside its future, plus the thread it belongs to.
struct Home<M> {
    thread: ThreadToken,
    metadata: M,
}

/// A task that was woken and waits to be polled.
///
/// Dropping it on its own thread drops the future and closes the task; dropping it elsewhere leaks it.
pub(crate) struct Runnable<M: Send + Sync + 'static>(Option<async_task::Runnable<Home<M>>>);

/// Where the output of a task is awaited.
pub(crate) struct Output<T, M: Send + Sync + 'static>(
    // Always `Some` until dropped.
    Option<async_task::FallibleTask<T, Home<M>>>,
);

/// Makes a task out of `future`. It belongs to the calling thread.
///
/// `schedule` is called with the runnable at every wake, on the thread of the waker. It should be of size
/// zero: then a wake hands its reference over instead of cloning it.
pub(crate) fn spawn_local<F, M, S>(
    metadata: M,
    future: F,
    schedule: S,
) -> (Runnable<M>, Output<F::Output, M>)
where
    F: Future + 'static,
    F::Output: 'static,
    M: Send + Sync + 'static,
    S: Fn(Runnable<M>) + Send + Sync + 'static,
{
    let home = Home {
        thread: thread::token(),
        metadata,
    };
    let builder = async_task::Builder::new().metadata(home);
    // SAFETY: the four conditions of `spawn_unchecked`.
    // - The future is not `Send`: the runnable is wrapped right here and in `schedule`, and `Runnable` runs
    //   or drops it on `home.thread` only. Tokens are never reused, so no other thread passes for it.
    // - The future is `'static`.
    // - The schedule function is `Send`, `Sync` and `'static`, and so is the metadata (which async-task
    //   itself forgets to ask for).
    let (runnable, task) = unsafe {
        builder.spawn_unchecked(
            move |_| future,
            move |runnable| schedule(Runnable(Some(runnable))),
        )
    };
    (Runnable(Some(runnable)), Output(Some(task.fallible())))
}

impl<M: Send + Sync + 'static> Runnable<M> {
    pub(crate) fn metadata(&self) -> &M {
        &self.inner().metadata().metadata
    }

    pub(crate) fn waker(&self) -> Waker {
        self.inner().waker()
    }

    /// Polls the future once. Does nothing on a thread the task does not belong to.
    pub(crate) fn run(mut self) {
        if self.is_home() {
            if let Some(runnable) = self.0.take() {
                runnable.run();
            }
        }
    }

    fn is_home(&self) -> bool {
        self.inner().metadata().thread == thread::token()
    }

    fn inner(&self) -> &async_task::Runnable<Home<M>> {
        self.0.as_ref().expect("only `run` and `drop` empty it")
    }
}

impl<M: Send + Sync + 'static> Drop for Runnable<M> {
    fn drop(&mut self) {
        if self.0.is_some() && !self.is_home() {
            std::mem::forget(self.0.take());
        }
    }
}

impl<T, M: Send + Sync + 'static> Output<T, M> {
    /// `None` once the task was closed without an output.
    pub(crate) fn poll(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<Option<T>> {
        match &mut self.0 {
            Some(task) => std::pin::Pin::new(task).poll(cx),
            None => std::task::Poll::Ready(None),
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.0.as_ref().is_none_or(|task| task.is_finished())
    }
}

/// Dropping detaches: the task goes on.
impl<T, M: Send + Sync + 'static> Drop for Output<T, M> {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.detach();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Runnable, spawn_local};
    use std::rc::Rc;
    use std::sync::Mutex;
    use std::sync::mpsc::{Sender, channel};

    type Queue = Mutex<Sender<Runnable<Meta>>>;
    struct Meta(Queue);

    fn schedule(runnable: Runnable<Meta>) {
        let sender = runnable.metadata().0.lock().unwrap().clone();
        sender.send(runnable).unwrap();
    }

    #[test]
    fn a_runnable_neither_runs_nor_drops_its_future_away_from_home() {
        let (sender, receiver) = channel();
        let held = Rc::new(());
        let inside = held.clone();
        let (runnable, mut output) = spawn_local(
            Meta(Mutex::new(sender)),
            async move {
                let _inside = inside;
                std::future::pending::<()>().await
            },
            schedule,
        );
        let waker = runnable.waker();
        runnable.run();

        waker.wake_by_ref();
        let runnable = receiver.recv().unwrap();
        std::thread::spawn(move || drop(runnable)).join().unwrap();
        assert_eq!(Rc::strong_count(&held), 2, "leaked, not dropped elsewhere");
        assert!(!output.is_finished());
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(output.poll(&mut cx).is_pending());
    }
}
