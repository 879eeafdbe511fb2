//! Workers: a thread with a loop of its own.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::super::callback_futures::in_callbacks;
use super::super::error::Error;
use super::super::events::{ERROR, Emitter, Event, EventEmitter, ListenerId, Listening};
use super::super::promise::{Deferred, Promise};
use super::super::reason::Reason;
use super::super::run;
use super::port::{DetachedPort, MessagePort, pair};
use crate::event_loop::EventLoop;
use crate::event_loop::api::remote::Remote;
use crate::phase;
use crate::raw::unwind::quietly;
use crate::site::Site;

/// The worker's program is about to begin.
pub const ONLINE: Event<()> = Event::new("online");

/// The worker is over, with this exit code: what [`run`](super::super::run) says, 1 after a panic or after
/// [`terminate`](Worker::terminate), or 0 if that came before its program began.
pub const EXIT: Event<i32> = Event::new("exit");

/// A program on a thread and a loop of its own, which sends `R` and receives `S`.
///
/// Its events come in this order: [`ONLINE`], then messages in the order in which they were sent, then
/// [`ERROR`](super::super::events::ERROR) if the program panicked, then [`EXIT`] (N132). It keeps the loop alive until
/// then, unless [unref'd](Self::unref). Dropping the value changes nothing: the worker goes on.
///
/// # Examples
///
/// ```
/// use std::{cell::Cell, rc::Rc};
/// use phaseloop::node::{self, Emitter, worker_threads::{EXIT, Worker}};
///
/// let sum = Rc::new(Cell::new(0));
/// let seen = sum.clone();
/// let exit = node::run(async move {
///     let worker = Worker::new(|port| async move {
///         let parent = port.clone();
///         port.on_message(move |n: &u32| {
///             parent.post_message(n * 2);
///             parent.close();
///         });
///     })?;
///     worker.on_message(move |n| seen.set(*n));
///     worker.on(EXIT, |code| assert_eq!(*code, 0));
///     worker.post_message(21);
///     Ok::<_, std::io::Error>(())
/// });
/// assert_eq!((exit.code(), sum.get()), (0, 42));
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
    thread: RefCell<Option<thread::JoinHandle<()>>>,
}

enum Control {
    Online,
    Error(Failure),
    Exit(i32),
}

/// What has ended a worker, as it goes to the parent.
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

/// What is known of the worker's loop elsewhere.
#[derive(Default)]
struct Life {
    state: Mutex<LifeState>,
    changed: Condvar,
}

#[derive(Default)]
struct LifeState {
    /// The turn in which the worker was made is over.
    may_begin: bool,
    /// The worker's loop, from its beginning.
    remote: Option<Remote>,
    terminated: bool,
}

/// How long a worker waits for the end of the turn that has made it, if that blocks. Node takes longer to start one.
const LONGEST_START: Duration = Duration::from_millis(10);

impl<S, R> Worker<S, R>
where
    S: Send + 'static,
    R: Send + 'static,
{
    /// Starts a thread that runs the future of `main` as a [program](super::super::run) on its own loop. `main` gets the
    /// port to this side, Node's `parentPort`, and is called on the new thread; what it returns need not be `Send`.
    ///
    /// # Errors
    ///
    /// When the system starts no thread.
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
        // In this order: on one poll phase, what is said of the worker comes before what it says.
        let (control, controlled) = pair();
        let control: MessagePort<(), Control> = control.attach();
        let (port, parent_port) = pair();
        let port: MessagePort<S, R> = port.attach();
        let (life, site) = (Arc::new(Life::default()), Location::caller());
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
            thread: RefCell::new(Some(thread)),
        });
        let worker = inner.clone();
        inner.control.on_message(move |news| worker.hear(news));
        Ok(Self { inner })
    }

    /// Sends a message to the worker.
    pub fn post_message(&self, message: S) {
        self.inner.port.post_message(message);
    }

    /// Adds a listener for the worker's messages.
    pub fn on_message(&self, listener: impl Fn(&R) + 'static) -> ListenerId {
        let id = self.inner.port.on_message(listener);
        // What keeps the loop alive is the worker, not this.
        self.inner.port.unref();
        id
    }

    /// Adds a listener for the worker's messages that is given the worker first; see [`Emitter::on_this`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::node::{run, worker_threads::Worker};
    ///
    /// run(async {
    ///     let worker = Worker::new(|parent| async move {
    ///         parent.on_message_this(|parent, n: &u32| parent.post_message(n * 2));
    ///     })
    ///     .unwrap();
    ///     worker.on_message_this(|worker, n| {
    ///         assert_eq!(*n, 42);
    ///         worker.terminate();
    ///     });
    ///     worker.post_message(21);
    /// });
    /// ```
    pub fn on_message_this(&self, listener: impl Fn(&Listening<Self>, &R) + 'static) -> ListenerId {
        let port = &self.inner.port;
        let id = port
            .emitter()
            .on_with(MessagePort::<S, R>::MESSAGE, self.weak_this(), listener);
        port.unref();
        id
    }

    /// Stops the worker's loop after the turn that runs there; what it computes without a pause cannot be interrupted.
    /// [`EXIT`] follows, with the code 1. A worker whose program has not begun never begins: it emits no [`ONLINE`], and
    /// exits with the code 0.
    ///
    /// JavaScript: `await worker.terminate()`. The promise is fulfilled with the exit code when [`EXIT`] is emitted, or at
    /// once with `None` if the worker is over.
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
            // A loop that is gone has stopped.
            let _ = remote.stop();
        }
    }

    /// Makes the worker keep the loop alive; it does from the start.
    pub fn ref_(&self) {
        self.inner.control.ref_();
    }

    /// Lets the loop end although the worker runs.
    pub fn unref(&self) {
        self.inner.control.unref();
    }

    /// The exit code, once [`EXIT`] was emitted.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        self.inner.exit_code.get()
    }
}

impl<S: 'static, R: 'static> Inner<S, R> {
    fn hear(self: &Rc<Self>, news: &Control) {
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
            // Its last act was to tell us. Its panics were caught.
            let _ = thread.join();
        }
        self.emitter.emit(EXIT, code);
        self.emitter.remove_all_events();
    }
}

impl Life {
    /// The program is about to begin, on the loop of `remote`: the parent is told. `false`: it was terminated before.
    ///
    /// The program never begins in the turn that has made the worker: who terminates it there is always in time.
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

    /// Whether the program was terminated after it had begun.
    fn was_ended(&self) -> bool {
        let state = self.lock();
        state.terminated && state.remote.is_some()
    }

    /// The turn that has made the worker is over.
    fn open(&self) {
        self.lock().may_begin = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LifeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The worker's thread.
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
    // The drop of a payload may panic, which would abort the process at the end of the thread.
    quietly(|| drop(ended));
}

impl<S: 'static, R: 'static> Emitter for Worker<S, R> {
    fn emitter(&self) -> &EventEmitter {
        &self.inner.emitter
    }

    /// Weak: the loop holds it while it can emit.
    fn weak_this(&self) -> Box<dyn Fn() -> Option<Self>> {
        let this = Rc::downgrade(&self.inner);
        Box::new(move || this.upgrade().map(|inner| Self { inner }))
    }
}

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
