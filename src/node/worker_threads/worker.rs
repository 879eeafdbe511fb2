//! Workers: a thread with a loop of its own.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::super::error::Error;
use super::super::events::{ERROR, Emitter, Event, EventEmitter, ListenerId};
use super::super::reason::Reason;
use super::super::run::run_on;
use super::port::{DetachedPort, MessagePort, pair};
use crate::event_loop::EventLoop;
use crate::event_loop::remote::Remote;
use crate::kinds::Site;

/// The worker's program is about to begin.
pub const ONLINE: Event<()> = Event::new("online");

/// The worker is over, with this exit code: 0, 1 after a panic or [`terminate`](Worker::terminate), or what
/// [`run`](super::super::run) says.
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
    Error(String),
    Exit(i32),
}

/// What is known of the worker's loop elsewhere.
#[derive(Default)]
struct Life {
    state: Mutex<LifeState>,
}

#[derive(Default)]
struct LifeState {
    remote: Option<Remote>,
    terminated: bool,
}

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
        let inner = Rc::new(Inner {
            emitter: EventEmitter::new(),
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

    /// Stops the worker's loop after the turn that runs there; what it computes without a pause cannot be interrupted.
    /// [`EXIT`] follows, with the code 1.
    pub fn terminate(&self) {
        let remote = {
            let mut state = self.inner.life.lock();
            state.terminated = true;
            state.remote.clone()
        };
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
                self.emitter.emit(ONLINE, &());
            }
            Control::Error(message) => {
                let (worker, error) = (self.clone(), Error::new(message.clone()));
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
        self.emitter.emit(EXIT, &code);
        self.emitter.remove_all_events();
    }
}

impl Life {
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
    control.post(Control::Online);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let mut event_loop =
            EventLoop::new().unwrap_or_else(|error| panic!("cannot make an event loop: {error}"));
        let terminated = {
            let mut state = life.lock();
            state.remote = Some(event_loop.remote());
            state.terminated
        };
        if terminated {
            return 1;
        }
        let main = event_loop.enter(|| main(parent_port.attach_at(site)));
        let exit = run_on(&mut event_loop, main);
        if let Some(panic) = exit.take_uncaught() {
            resume_unwind(panic);
        }
        exit.code()
    }));
    let code = match ended {
        _ if life.lock().terminated => 1,
        Ok(code) => code,
        Err(panic) => {
            control.post(Control::Error(Reason::from_panic(panic).to_string()));
            1
        }
    };
    control.post(Control::Exit(code));
}

impl<S: 'static, R: 'static> Emitter for Worker<S, R> {
    fn emitter(&self) -> &EventEmitter {
        &self.inner.emitter
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
