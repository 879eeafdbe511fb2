//! The handle to a loop for other threads.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use futures::FutureExt;
use waker_fn::waker_fn;

use super::loop_handle::LoopHandle;
use crate::error::Error;
use crate::event_loop::core::Core;
use crate::event_loop::current;
use crate::executor::join::{AbortHandle, JoinError};
use crate::executor::message::Message;
use crate::executor::notes::{NamedWait, SharedWait, Source};
use crate::executor::shared::Shared;
use crate::metrics::Utilization;
use crate::raw::nesting::Flat;
use crate::raw::task::Payload;
use crate::site::Site;
use crate::task_info::Id;

/// A handle to a loop for any thread; cheap to clone.
///
/// Calls and spawns arrive in the poll phase, each as a callback of its own, in the order of
/// sending. A sleeping loop is woken once for all sends that come before it runs.
///
/// # Examples
///
/// After `cargo add futures`:
///
/// ```
/// use std::{rc::Rc, thread};
///
/// #[phaseloop::main]
/// async fn main() {
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
/// }
/// ```
#[derive(Clone)]
#[doc(alias = "uv_async_send")]
pub struct Remote {
    shared: Arc<Shared>,
}

impl Remote {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Spawns the future that `make` returns. `make` runs on the owner thread, as the first step of
    /// the task, so the future need not be `Send`.
    ///
    /// # Errors
    ///
    /// If the loop was dropped; then `make` is dropped on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::EventLoop;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let event_loop = EventLoop::new()?;
    ///     let remote = event_loop.remote();
    ///     let thread = std::thread::spawn(move || {
    ///         // The future need not be `Send`: it is made on the loop's thread.
    ///         remote.spawn(|| async { 42 }).unwrap().join().unwrap()
    ///     });
    ///     while !thread.is_finished() {
    ///         event_loop.block_on(phaseloop::task::yield_now());
    ///     }
    ///     assert_eq!(thread.join().unwrap(), 42);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn spawn<M, F>(&self, make: M) -> Result<RemoteJoinHandle<F::Output>, Error>
    where
        M: FnOnce() -> F + Send + 'static,
        F: Future + 'static,
        F::Output: Send + 'static,
    {
        let site = std::panic::Location::caller();
        let state = Arc::new(Mutex::new(State::new(self.shared.index, site)));
        let sender = Sender {
            state: state.clone(),
        };
        self.call(move || {
            let state = sender.state.clone();
            if lock(&state).aborted {
                return;
            }
            let core = LoopHandle::current().core().clone();
            #[cfg(feature = "cluster")]
            let (number, root) = core.outstanding.new_root();
            let task = core.executor.spawn(
                async move {
                    #[cfg(feature = "cluster")]
                    let _root = root;
                    // A panic of `make` is one of the task.
                    let output = AssertUnwindSafe(async { make().await }).catch_unwind();
                    sender.send(output.await);
                },
                site,
                None,
            );
            #[cfg(feature = "cluster")]
            core.outstanding.begin_root(number, task.abort_handle());
            let is_aborted = {
                let mut state = lock(&state);
                state.task = Some(task.abort_handle());
                state.aborted
            };
            // An abort that came after the look above has found no task.
            if is_aborted {
                task.abort();
            }
            task.detach();
        })?;
        Ok(RemoteJoinHandle {
            state,
            home: self.shared.clone(),
            is_noted: false,
        })
    }

    /// Returns how long the loop was active and how long it waited, up to this moment.
    ///
    /// It works on any thread, also while the loop is stuck in a callback: then the active time
    /// grows. After the loop was dropped, the times stay as they were.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{thread, time::Duration};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let remote = phaseloop::LoopHandle::current().remote();
    ///     let (before, other) = (remote.utilization(), remote.clone());
    ///     let watcher = thread::spawn(move || {
    ///         thread::sleep(Duration::from_millis(20));
    ///         other.utilization()
    ///     });
    ///     let seen = watcher.join().unwrap(); // blocks the loop
    ///     assert!(seen.since(&before).active >= Duration::from_millis(15));
    ///     assert_eq!(seen.idle, before.idle);
    /// }
    /// ```
    #[must_use]
    pub fn utilization(&self) -> Utilization {
        let (active, idle) = self.shared.pace.read();
        Utilization {
            active: Duration::from_nanos(active),
            idle: Duration::from_nanos(idle),
        }
    }

    /// Returns how many accepted connections the loop has open.
    #[cfg(feature = "cluster")]
    pub(crate) fn open_connections(&self) -> usize {
        let connections = &self.shared.connections;
        connections.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Returns whether this is a handle of a loop.
    #[inline]
    pub(crate) fn is_of(&self, core: &Core) -> bool {
        Arc::ptr_eq(&core.executor.shared, &self.shared)
    }

    /// Returns whether another loop of the same program, which is on the same thread, runs now.
    #[cfg(feature = "test-util")]
    pub(crate) fn is_of_sibling(&self) -> bool {
        let has_siblings = self.shared.foreign_senders.has_siblings();
        has_siblings && current::with(|core| core.is_some_and(|core| !self.is_of(core)))
    }

    /// Calls `call` on the owner thread, in the poll phase; a drain of the lanes follows. A panic
    /// of `call` is a panic of a callback: it propagates out of the run of the loop.
    ///
    /// # Errors
    ///
    /// If the loop was dropped; then `call` is dropped on this thread. A loop that is dropped later
    /// drops the calls it has not run, without a notice.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::EventLoop;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let event_loop = EventLoop::new()?;
    ///     let remote = event_loop.remote();
    ///     remote.call(|| println!("in the poll phase")).unwrap();
    ///     remote.wake().unwrap();
    ///     assert!(!remote.is_closed());
    ///     drop(event_loop);
    ///     assert!(remote.is_closed() && remote.stop().is_err());
    ///     Ok(())
    /// }
    /// ```
    pub fn call(&self, call: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        self.shared
            .push(Message::Call(Box::new(call)))
            .map_err(|_| Error::LOOP_CLOSED)
    }

    /// Sends the completion of a job, which arrives in the poll phase; a drain of the lanes
    /// follows. Returns `false` if the loop was dropped. A loop that is dropped later abandons it.
    #[cfg(feature = "fs")]
    pub(crate) fn send(&self, ended: Arc<dyn crate::pool::Job>) -> bool {
        self.shared.push(Message::JobEnded(ended)).is_ok()
    }

    /// [Stops](LoopHandle::stop) the loop after the turn in which this call arrives.
    ///
    /// # Errors
    ///
    /// If the loop was dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::EventLoop;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let event_loop = EventLoop::new()?;
    ///     let remote = event_loop.remote();
    ///     remote.call(|| println!("in the poll phase")).unwrap();
    ///     remote.wake().unwrap();
    ///     assert!(!remote.is_closed());
    ///     drop(event_loop);
    ///     assert!(remote.is_closed() && remote.stop().is_err());
    ///     Ok(())
    /// }
    /// ```
    pub fn stop(&self) -> Result<(), Error> {
        self.call(|| LoopHandle::current().stop())
    }

    /// Wakes the loop: the wait of its poll phase ends, and the turn goes on.
    ///
    /// # Errors
    ///
    /// If the loop was dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::EventLoop;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let event_loop = EventLoop::new()?;
    ///     let remote = event_loop.remote();
    ///     remote.call(|| println!("in the poll phase")).unwrap();
    ///     remote.wake().unwrap();
    ///     assert!(!remote.is_closed());
    ///     drop(event_loop);
    ///     assert!(remote.is_closed() && remote.stop().is_err());
    ///     Ok(())
    /// }
    /// ```
    pub fn wake(&self) -> Result<(), Error> {
        self.call(|| ())
    }

    /// Returns whether the loop has been dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::EventLoop;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let event_loop = EventLoop::new()?;
    ///     let remote = event_loop.remote();
    ///     remote.call(|| println!("in the poll phase")).unwrap();
    ///     remote.wake().unwrap();
    ///     assert!(!remote.is_closed());
    ///     drop(event_loop);
    ///     assert!(remote.is_closed() && remote.stop().is_err());
    ///     Ok(())
    /// }
    /// ```
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

/// The state that the task shares with the thread that spawned it.
struct State<T: 'static> {
    /// The output. It may own the handle of another task, and so on, so it is dropped without deep
    /// recursion.
    output: Option<Flat<Result<T, JoinError>>>,
    /// Whether the handle has returned the output.
    is_taken: bool,
    /// The waker of the task that awaits the output.
    waiter: Option<Waker>,
    aborted: bool,
    /// The task, once it was spawned.
    task: Option<AbortHandle>,
    /// The index of its loop among several, and the line that spawned it.
    of_loop: Option<u32>,
    site: Site,
}

impl<T> State<T> {
    fn new(of_loop: Option<u32>, site: Site) -> Self {
        Self {
            output: None,
            is_taken: false,
            waiter: None,
            aborted: false,
            task: None,
            of_loop,
            site,
        }
    }
}

/// For reports of the loop that awaits the task.
impl<T> SharedWait for Mutex<State<T>> {
    fn describe(&self, found: &mut Vec<(NamedWait, *const ())>) {
        let state = lock(self);
        let Some(waiter) = &state.waiter else {
            return;
        };
        let which = match state.of_loop {
            Some(index) => format!("of loop {index}"),
            None => "of another loop".to_owned(),
        };
        let wait = NamedWait {
            source: Source::Elsewhere(which, String::new()),
            ..NamedWait::new("task", "", Some(state.site))
        };
        found.push((wait, waiter.data()));
    }
}

fn lock<T>(state: &Mutex<State<T>>) -> MutexGuard<'_, State<T>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sending side, owned by the task. Its drop reports the task as cancelled if no output was
/// sent.
struct Sender<T: 'static> {
    state: Arc<Mutex<State<T>>>,
}

impl<T: 'static> Sender<T> {
    fn send(&self, output: Result<T, Payload>) {
        self.set(|id| output.map_err(|payload| JoinError::panicked(payload, id)));
    }

    /// Sets the output of the task, whose number `make` gets, unless there is one.
    fn set(&self, make: impl FnOnce(Id) -> Result<T, JoinError>) {
        let (waiter, task) = {
            let mut state = lock(&self.state);
            if state.output.is_some() || state.is_taken {
                return;
            }
            let task = state.task.take();
            let id = task.as_ref().map_or(Id::NONE, AbortHandle::id);
            state.output = Some(Flat::new(make(id)));
            (state.waiter.take(), task)
        };
        drop(task);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

impl<T: 'static> Drop for Sender<T> {
    fn drop(&mut self) {
        self.set(|id| Err(JoinError::cancelled(id)));
    }
}

/// A future, for any thread, of the output of a task that was spawned through a [`Remote`].
///
/// Any executor can poll it; [`join`](Self::join) blocks without one. Dropping it detaches the
/// task.
///
/// # Cancel safety
///
/// Dropping a future that polls the handle by reference loses no output.
///
/// # Panics
///
/// If it is polled again after it was ready.
///
/// # Examples
///
/// ```
/// use phaseloop::{LoopHandle, spawn_blocking};
///
/// #[phaseloop::main]
/// async fn main() {
///     let remote = LoopHandle::current().remote();
///     // A thread of the pool spawns a task on the loop, and blocks until it has completed.
///     let add = || async { 20 + 1 };
///     let sum = spawn_blocking(move || remote.spawn(add).unwrap().join().unwrap());
///     assert_eq!(sum.await.unwrap(), 21);
/// }
/// ```
#[must_use = "dropping the handle detaches the task"]
pub struct RemoteJoinHandle<T: 'static> {
    state: Arc<Mutex<State<T>>>,
    /// The loop of the task.
    home: Arc<Shared>,
    /// Whether the loop that awaits the task knows of it, for its reports.
    is_noted: bool,
}

impl<T> RemoteJoinHandle<T> {
    /// Blocks this thread until the task has completed, and returns its output.
    ///
    /// # Errors
    ///
    /// If the task panicked, was aborted, or was dropped with its loop.
    ///
    /// # Panics
    ///
    /// On the owner thread of the loop, unless the task has completed: the loop would wait for
    /// itself.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::EventLoop;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let event_loop = EventLoop::new()?;
    ///     let remote = event_loop.remote();
    ///     let thread = std::thread::spawn(move || {
    ///         // The future need not be `Send`: it is made on the loop's thread.
    ///         remote.spawn(|| async { 42 }).unwrap().join().unwrap()
    ///     });
    ///     while !thread.is_finished() {
    ///         event_loop.block_on(phaseloop::task::yield_now());
    ///     }
    ///     assert_eq!(thread.join().unwrap(), 42);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn join(self) -> Result<T, JoinError> {
        assert!(
            self.is_finished() || !self.home.is_owner_thread(),
            "`join` on the thread of the task's loop would wait for ever: `.await` the handle"
        );
        let thread = thread::current();
        let waker = waker_fn(move || thread.unpark());
        let (mut handle, mut cx) = (self, Context::from_waker(&waker));
        loop {
            match Pin::new(&mut handle).poll(&mut cx) {
                Poll::Ready(output) => return output,
                // A wake that came since the poll is not lost: `park` returns at once then.
                Poll::Pending => thread::park(),
            }
        }
    }

    /// Aborts the task in the next poll phase of its loop. It has no effect once the task has
    /// completed.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::LoopHandle;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let remote = LoopHandle::current().remote();
    ///     let task = remote.spawn(std::future::pending::<()>).unwrap();
    ///     task.abort();
    ///     assert!(task.await.unwrap_err().is_cancelled());
    /// }
    /// ```
    pub fn abort(&self) {
        let task = {
            let mut state = lock(&self.state);
            state.aborted = true;
            state.task.clone()
        };
        if let Some(task) = task {
            task.abort();
        }
    }

    /// Returns whether the task has completed and its output is available.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::LoopHandle;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let remote = LoopHandle::current().remote();
    ///     let task = remote.spawn(std::future::pending::<()>).unwrap();
    ///     task.abort();
    ///     assert!(task.await.unwrap_err().is_cancelled());
    /// }
    /// ```
    #[must_use]
    pub fn is_finished(&self) -> bool {
        let state = lock(&self.state);
        state.output.is_some() || state.is_taken
    }
}

impl<T> Future for RemoteJoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
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
        self.note();
        Poll::Pending
    }
}

impl<T> RemoteJoinHandle<T> {
    /// Notes for reports that the current loop awaits the task.
    fn note(&mut self) {
        if !std::mem::replace(&mut self.is_noted, true) {
            let wait = Arc::downgrade(&self.state);
            current::with(|core| core.map_or((), |core| core.executor.note_shared(wait)));
        }
    }
}

impl<T> std::fmt::Debug for RemoteJoinHandle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = lock(&self.state);
        let mut names = f.debug_struct("RemoteJoinHandle");
        if let Some(index) = state.of_loop {
            names.field("loop", &index);
        }
        names
            .field("spawned_at", &format_args!("{}", state.site))
            .field("finished", &(state.output.is_some() || state.is_taken))
            .finish()
    }
}
