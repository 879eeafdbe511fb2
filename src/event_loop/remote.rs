//! The loop as other threads see it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use super::handle::LoopHandle;
use crate::error::Error;
use crate::executor::join::{JoinError, JoinHandle};
use crate::executor::spawn::{Arrival, Message, Shared};
use crate::raw::nesting::Flat;

/// A handle to a loop for any thread; cheap to clone.
///
/// What is sent through it arrives in the poll phase, each as a callback of its own, in the order
/// of sending. A loop that sleeps is woken once, however much is sent until it looks.
///
/// # Examples
///
/// ```
/// use std::{rc::Rc, thread};
///
/// phaseloop::block_on(async {
///     let remote = phaseloop::LoopHandle::current().remote();
///     let (sender, receiver) = futures::channel::oneshot::channel();
///     let thread = thread::spawn(move || {
///         // The future may hold an `Rc`: it is made on the loop's own thread.
///         let task = remote.spawn(|| async {
///             let local = Rc::new(20);
///             phaseloop::task::yield_now().await;
///             *local + 1
///         });
///         sender.send(task.unwrap().join().unwrap()).unwrap();
///     });
///     assert_eq!(receiver.await, Ok(21));
///     thread.join().unwrap();
/// });
/// ```
#[derive(Clone)]
pub struct Remote {
    shared: Arc<Shared>,
}

impl Remote {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Spawns the future that `make` returns. `make` runs on the loop's thread, as the task's first
    /// step, so the future need not be `Send`.
    ///
    /// # Errors
    ///
    /// When the loop is gone; `make` is dropped on this thread then.
    #[track_caller]
    pub fn spawn<M, F>(&self, make: M) -> Result<RemoteJoinHandle<F::Output>, Error>
    where
        M: FnOnce() -> F + Send + 'static,
        F: Future + 'static,
        F::Output: Send + 'static,
    {
        let site = std::panic::Location::caller();
        let state = Arc::new(Mutex::new(State::default()));
        let sender = Sender {
            state: state.clone(),
        };
        self.call(move || {
            let core = LoopHandle::current().core().clone();
            let task = core.spawn(async move { make().await }, site, None);
            let forward = Forward { task, sender };
            drop(core.spawn(forward, site, None));
        })?;
        Ok(RemoteJoinHandle { state })
    }

    /// Calls `call` on the loop's thread, in the poll phase, followed by a drain of the lanes. A
    /// panic in it is one of a callback: it comes out of the call that runs the loop.
    ///
    /// # Errors
    ///
    /// When the loop is gone; `call` is dropped on this thread then. It is dropped unrun, without
    /// notice, when the loop goes before it gets to it.
    pub fn call(&self, call: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        self.shared
            .inbox
            .push(Message::Call(Box::new(call)))
            .map_err(|_| Error::LOOP_CLOSED)
    }

    /// Lets something arrive on the loop's thread, in the poll phase, followed by a drain of the
    /// lanes. Dropped if the loop is gone, which `false` says, or goes before it gets to it.
    pub(crate) fn send(&self, arrival: Arc<dyn Arrival>) -> bool {
        self.shared.inbox.push(Message::Arrival(arrival)).is_ok()
    }

    /// [Stops](LoopHandle::stop) the loop after the turn in which it sees this.
    ///
    /// # Errors
    ///
    /// When the loop is gone.
    pub fn stop(&self) -> Result<(), Error> {
        self.call(|| LoopHandle::current().stop())
    }

    /// Ends the wait of the poll phase: the loop makes a turn.
    ///
    /// # Errors
    ///
    /// When the loop is gone.
    pub fn wake(&self) -> Result<(), Error> {
        self.call(|| ())
    }

    /// Whether the loop has been dropped.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.inbox.is_closed()
    }
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote")
            .field("closed", &self.is_closed())
            .finish()
    }
}

/// What the loop and the thread that spawned share.
struct State<T> {
    /// May hold the handle of another task, and so on.
    output: Option<Flat<Result<T, JoinError>>>,
    /// Whether the handle has delivered the output.
    is_taken: bool,
    /// Who awaits the output.
    waiter: Option<Waker>,
    aborted: bool,
    /// Whom to wake for an abort.
    forward: Option<Waker>,
}

impl<T> Default for State<T> {
    fn default() -> Self {
        Self {
            output: None,
            is_taken: false,
            waiter: None,
            aborted: false,
            forward: None,
        }
    }
}

fn lock<T>(state: &Mutex<State<T>>) -> MutexGuard<'_, State<T>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The loop's end; reports "cancelled" if it goes before it has sent anything.
struct Sender<T: 'static> {
    state: Arc<Mutex<State<T>>>,
}

impl<T: 'static> Sender<T> {
    fn send(&self, output: Result<T, JoinError>) {
        let waiter = {
            let mut state = lock(&self.state);
            if state.output.is_some() || state.is_taken {
                return;
            }
            state.output = Some(Flat::new(output));
            state.waiter.take()
        };
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

impl<T: 'static> Drop for Sender<T> {
    fn drop(&mut self) {
        self.send(Err(JoinError::cancelled()));
    }
}

/// The task beside the task: hands the output out and the abort in.
struct Forward<T: 'static> {
    task: JoinHandle<T>,
    sender: Sender<T>,
}

impl<T: 'static> Future for Forward<T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // The clone and the drop of a waker may be anybody's code: neither under the lock.
        let waker = cx.waker().clone();
        let (before, aborted) = {
            let mut state = lock(&self.sender.state);
            (state.forward.replace(waker), state.aborted)
        };
        drop(before);
        if aborted {
            self.task.abort();
        }
        Pin::new(&mut self.task)
            .poll(cx)
            .map(|output| self.sender.send(output))
    }
}

/// Awaits, from any thread, the output of a task spawned through a [`Remote`].
///
/// Dropping it detaches the task. It is a future for any executor, and [`join`](Self::join) waits
/// without one.
///
/// # Cancel safety
///
/// Polling it by reference and giving up in between loses nothing.
///
/// # Panics
///
/// Polling it again after it was ready.
#[must_use = "dropping the handle detaches the task"]
pub struct RemoteJoinHandle<T> {
    state: Arc<Mutex<State<T>>>,
}

impl<T> RemoteJoinHandle<T> {
    /// Blocks this thread until the task has ended.
    ///
    /// Not on the loop's own thread: it would wait for itself.
    ///
    /// # Errors
    ///
    /// When the task panicked, was aborted, or went with its loop.
    pub fn join(mut self) -> Result<T, JoinError> {
        let this_thread = thread::current();
        let waker = waker_fn::waker_fn(move || this_thread.unpark());
        let mut cx = Context::from_waker(&waker);
        loop {
            match Pin::new(&mut self).poll(&mut cx) {
                Poll::Ready(output) => return output,
                Poll::Pending => thread::park(),
            }
        }
    }

    /// Ends the task as soon as the loop gets to it; without effect once it has returned.
    pub fn abort(&self) {
        let forward = {
            let mut state = lock(&self.state);
            state.aborted = true;
            state.forward.take()
        };
        if let Some(forward) = forward {
            forward.wake();
        }
    }

    /// Whether the task has ended and its output can be had at once.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        let state = lock(&self.state);
        state.output.is_some() || state.is_taken
    }
}

impl<T> Future for RemoteJoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let waker = cx.waker().clone();
        let mut state = lock(&self.state);
        if state.is_taken {
            drop(state);
            panic!("`RemoteJoinHandle` polled after completion");
        }
        if let Some(output) = state.output.take().and_then(Flat::into_inner) {
            state.is_taken = true;
            return Poll::Ready(output);
        }
        let before = state.waiter.replace(waker);
        drop(state);
        drop(before);
        Poll::Pending
    }
}

impl<T> std::fmt::Debug for RemoteJoinHandle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteJoinHandle")
            .field("finished", &self.is_finished())
            .finish()
    }
}
