//! Workers: threads with their own loops.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::port::{DetachedPort, MessagePort, pair};
use crate::callback_futures::in_callbacks;
use crate::context::Node;
use crate::error::Error;
use crate::events::{ERROR, Emitter, Event, EventEmitter, ListenerId, Listening, WeakThis as _};
use crate::promise::{Deferred, Promise};
use crate::reason::Reason;
use crate::run;
use crate::site::Site;
use phaseloop::EventLoop;
use phaseloop::Remote;
use phaseloop::extension::ignore_panic;
use phaseloop::phase;

/// The program of the worker is about to start. JavaScript: `'online'`.
pub const ONLINE: Event<()> = Event::new("online");

/// The worker has ended, with this exit code: the code of [`run`](crate::run), 1 after a
/// panic or after [`terminate`](Worker::terminate), or 0 if it was terminated before its program
/// started. JavaScript: `'exit'`.
pub const EXIT: Event<i32> = Event::new("exit");

/// A program on its own thread and loop, which sends `R` and receives `S`. JavaScript: `Worker`.
///
/// Its events are emitted in this order: [`ONLINE`], the messages in the order in which they were
/// sent, [`ERROR`](crate::events::ERROR) if the program panicked, [`EXIT`]. The worker keeps
/// the loop alive until then, unless it is [unref'd](Self::unref). Dropping the value does not stop
/// the worker.
///
/// # Examples
///
/// ```
/// use std::{cell::Cell, rc::Rc};
/// use phaseloop_node as node;
/// use phaseloop_node::{Emitter, worker_threads::{EXIT, Worker}};
///
/// fn main() {
///     let sum = Rc::new(Cell::new(0));
///     let seen = sum.clone();
///     let exit = node::run(async move {
///         let worker = Worker::new(|port| async move {
///             let parent = port.clone();
///             port.on_message(move |n: &u32| {
///                 parent.post_message(n * 2);
///                 parent.close();
///             });
///         })?;
///         worker.on_message(move |n| seen.set(*n));
///         worker.on(EXIT, |code| assert_eq!(*code, 0));
///         worker.post_message(21);
///         Ok::<_, std::io::Error>(())
///     });
///     assert_eq!((exit.code(), sum.get()), (0, 42));
/// }
/// ```
pub struct Worker<S: 'static, R: 'static> {
    inner: Rc<Inner<S, R>>,
}

struct Inner<S: 'static, R: 'static> {
    emitter: EventEmitter,
    control: MessagePort<(), Control>,
    port: MessagePort<S, R>,
    life: Arc<Life>,
    exit_code: Cell<Option<i32>>,
    /// The id of its thread.
    id: u64,
    thread: RefCell<Option<thread::JoinHandle<()>>>,
}

enum Control {
    Online,
    Error(Failure),
    Exit(i32),
}

/// The failure of a worker, in a form that can be sent to the parent.
struct Failure {
    name: String,
    code: Option<String>,
    message: String,
}

impl Failure {
    fn of(reason: &Reason) -> Self {
        Self {
            name: reason.name().to_owned(),
            code: reason.code().map(str::to_owned),
            message: reason.to_string(),
        }
    }

    fn to_error(&self) -> Error {
        let error = Error::named(self.name.clone(), self.message.clone());
        match &self.code {
            Some(code) => error.coded(code.clone()),
            None => error,
        }
    }
}

/// The state of a worker that both threads share.
#[derive(Default)]
struct Life {
    state: Mutex<LifeState>,
    changed: Condvar,
}

#[derive(Default)]
struct LifeState {
    /// Whether the turn that created the worker is over.
    may_begin: bool,
    /// The remote of the worker's loop, once its program has started.
    remote: Option<Remote>,
    terminated: bool,
}

/// The id of the next worker.
static IDS: AtomicU64 = AtomicU64::new(1);

/// How long a worker waits for the end of the turn that created it, in case that turn blocks. Node
/// takes longer to start a worker.
const LONGEST_START: Duration = Duration::from_millis(10);

impl<S, R> Worker<S, R>
where
    S: Send + 'static,
    R: Send + 'static,
{
    /// Starts a thread that runs the future of `main` as a [program](crate::run) on its own
    /// loop. `main` is called on the new thread and gets the port to this side, Node's
    /// `parentPort`. Its future need not be `Send`.
    ///
    /// # Errors
    ///
    /// Any OS error of the creation of a thread.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn new<M, F>(main: M) -> io::Result<Self>
    where
        M: FnOnce(MessagePort<R, S>) -> F + Send + 'static,
        F: Future + 'static,
        F::Output: 'static,
    {
        // The control port is created first, so that within one poll phase the worker's state is
        // reported before its messages.
        let (control, controlled) = pair();
        let control: MessagePort<(), Control> = control.attach();
        let (port, parent_port) = pair();
        let port: MessagePort<S, R> = port.attach();
        let (life, site) = (Arc::new(Life::default()), Location::caller());
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        let data = Node::current().environment.copied();
        let main = move |port| {
            Node::current().environment.become_worker(id, data);
            main(port)
        };
        let thread = {
            let life = life.clone();
            thread::Builder::new()
                .name("phaseloop-worker".to_owned())
                .spawn(move || run_worker(main, parent_port, controlled, &life, site))?
        };
        let begins = life.clone();
        in_callbacks(async move {
            phase::closing().await;
            begins.open();
        });
        let inner = Rc::new(Inner {
            emitter: EventEmitter::of_class("Worker"),
            control,
            port,
            life,
            exit_code: Cell::new(None),
            id,
            thread: RefCell::new(Some(thread)),
        });
        let worker = inner.clone();
        inner.control.on_message(move |news| worker.control(news));
        Ok(Self { inner })
    }

    /// Sends a message to the worker. JavaScript: `worker.postMessage(message)`.
    pub fn post_message(&self, message: S) {
        self.inner.port.post_message(message);
    }

    /// Adds a listener for the worker's messages. JavaScript: `worker.on('message', ..)`.
    pub fn on_message(&self, listener: impl Fn(&R) + 'static) -> ListenerId {
        let id = self.inner.port.on_message(listener);
        // The control port keeps the loop alive, not this port.
        self.inner.port.unref();
        id
    }

    /// Adds a listener for the worker's messages that gets the worker as its first argument; see
    /// [`Emitter::on_this`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, run, worker_threads::Worker};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let worker = Worker::new(|parent| async move {
    ///             parent.on_message_this(|parent, n: &u32| parent.post_message(n * 2));
    ///         })
    ///         .unwrap();
    ///         worker.on_message_this(|worker, n| {
    ///             assert_eq!(*n, 42);
    ///             worker.terminate();
    ///         });
    ///         worker.post_message(21);
    ///     })
    /// }
    /// ```
    pub fn on_message_this(&self, listener: impl Fn(&Listening<Self>, &R) + 'static) -> ListenerId {
        let port = &self.inner.port;
        let id = port
            .emitter()
            .on_with(MessagePort::<S, R>::MESSAGE, self.weak_this(), listener);
        port.unref();
        id
    }

    /// Stops the worker's loop after its current turn; code that never yields cannot be
    /// interrupted. [`EXIT`] follows with code 1. A worker whose program has not started never
    /// starts it: it emits no [`ONLINE`], and exits with code 0.
    ///
    /// The promise is fulfilled with the exit code when [`EXIT`] is emitted, or at once with `None`
    /// if the worker has already ended. JavaScript: `await worker.terminate()`.
    ///
    /// # Cancel safety
    ///
    /// The worker is stopped by the call; dropping the promise changes nothing.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn terminate(&self) -> Promise<Option<i32>> {
        let ended = Deferred::new();
        let promise = ended.promise();
        if self.exit_code().is_some() {
            ended.resolve(None);
        } else {
            self.once(EXIT, move |code| ended.resolve(Some(*code)));
        }
        self.stop();
        promise
    }

    fn stop(&self) {
        let remote = {
            let mut state = self.inner.life.lock();
            state.terminated = true;
            state.remote.clone()
        };
        self.inner.life.changed.notify_all();
        if let Some(remote) = remote {
            // An error means that the loop was dropped, so it has stopped.
            let _ = remote.stop();
        }
    }

    /// Makes the worker keep the loop alive, which is the default. JavaScript: `worker.ref()`.
    pub fn ref_(&self) {
        self.inner.control.ref_();
    }

    /// Lets the loop end while the worker runs. JavaScript: `worker.unref()`.
    pub fn unref(&self) {
        self.inner.control.unref();
    }

    /// Returns the exit code, once [`EXIT`] was emitted.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        self.inner.exit_code.get()
    }
}

impl<S: 'static, R: 'static> Worker<S, R> {
    /// Returns the id of the worker's thread, until [`EXIT`] is emitted. JavaScript:
    /// `worker.threadId`.
    #[must_use]
    pub fn thread_id(&self) -> Option<u64> {
        let has_exited = self.inner.exit_code.get().is_some();
        (!has_exited).then_some(self.inner.id)
    }
}

impl<S: 'static, R: 'static> Inner<S, R> {
    fn control(self: &Rc<Self>, news: &Control) {
        match news {
            Control::Online => {
                self.emitter.emit(ONLINE, ());
            }
            Control::Error(failure) => {
                let (worker, error) = (self.clone(), failure.to_error());
                self.port.when_empty(move || {
                    worker.emitter.emit(ERROR, &error);
                });
            }
            Control::Exit(code) => {
                let (worker, code) = (self.clone(), *code);
                self.port.when_empty(move || worker.end(code));
            }
        }
    }

    fn end(&self, code: i32) {
        self.exit_code.set(Some(code));
        self.control.close();
        self.port.close();
        let thread = self.thread.take();
        if let Some(thread) = thread {
            // The thread ends right after it has sent its exit code, so the join does not block.
            // Its panics were caught.
            let _ = thread.join();
        }
        self.emitter.emit(EXIT, code);
        self.emitter.remove_all_events();
    }
}

impl Life {
    /// Reports to the parent that the program is about to start on the loop of `remote`. Returns
    /// `false` if the worker was terminated before.
    ///
    /// The program never starts within the turn that created the worker, so a `terminate` in that
    /// turn is always in time.
    fn begins(&self, remote: Remote, control: &DetachedPort<Control, ()>) -> bool {
        let must_wait = |state: &mut LifeState| !state.may_begin && !state.terminated;
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), LONGEST_START, must_wait);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.terminated {
            return false;
        }
        state.remote = Some(remote);
        control.post(Control::Online);
        true
    }

    /// Returns whether the worker was terminated after its program had started.
    fn was_ended(&self) -> bool {
        let state = self.lock();
        state.terminated && state.remote.is_some()
    }

    /// Records that the turn that created the worker is over.
    fn open(&self) {
        self.lock().may_begin = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LifeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The main function of the worker's thread.
fn run_worker<S, R, M, F>(
    main: M,
    parent_port: DetachedPort<R, S>,
    control: DetachedPort<Control, ()>,
    life: &Life,
    site: Site,
) where
    S: Send + 'static,
    R: Send + 'static,
    M: FnOnce(MessagePort<R, S>) -> F,
    F: Future + 'static,
    F::Output: 'static,
{
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let mut event_loop = EventLoop::new()?;
        if !life.begins(event_loop.remote(), &control) {
            return Ok(0);
        }
        let main = async move { main(parent_port.attach_at(site)).await };
        let exit = run::run_worker(&mut event_loop, main, site);
        match exit.take_uncaught() {
            Some(panic) => Err(Reason::from_panic(panic)),
            None => Ok(exit.code()),
        }
    }));
    let ended = ended.unwrap_or_else(|panic| Err(Reason::from_panic(panic)));
    let code = match &ended {
        _ if life.was_ended() => 1,
        Ok(code) => *code,
        Err(reason) => {
            control.post(Control::Error(Failure::of(reason)));
            1
        }
    };
    control.post(Control::Exit(code));
    // The drop of a panic payload may panic, which would abort the process at the end of the
    // thread.
    ignore_panic(|| drop(ended));
}

impl<S: 'static, R: 'static> Emitter for Worker<S, R> {
    fn emitter(&self) -> &EventEmitter {
        &self.inner.emitter
    }
}

// Weak: the loop holds the worker while it can emit.
crate::weak_this!(Worker < S, R > { inner });

impl<S: 'static, R: 'static> Clone for Worker<S, R> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
        }
    }
}

impl<S: 'static, R: 'static> fmt::Debug for Worker<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("exit_code", &self.inner.exit_code.get())
            .finish_non_exhaustive()
    }
}
