//! Child processes that emit events: Node's `child_process`, over [`phaseloop::process`]. `fork` is
//! on Unix only.
//!
//! ```
//! use phaseloop_node::{Emitter, Exit, child_process::{CLOSE, spawn}, run};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         let child = spawn("echo", ["hello"]);
//!         child.stdout().unwrap().on_text(|text| println!("{text}"));
//!         child.on(CLOSE, |exit| assert_eq!(exit.code, Some(0)));
//!     })
//! }
//! ```

mod exec;
mod failure;
#[cfg(unix)]
mod fork;
#[cfg_attr(unix, path = "child_process/unix.rs")]
#[cfg_attr(not(unix), path = "child_process/windows.rs")]
mod platform;
mod spawn;

#[cfg(unix)]
use std::cell::OnceCell;
use std::cell::{Cell, RefCell};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

pub use self::exec::{
    ExecError, ExecOptions, ExecOutput, exec, exec_file, exec_file_with, exec_with, promises,
};
#[cfg(unix)]
pub use self::fork::{fork, fork_command};
pub use self::spawn::{Shell, SpawnOptions, Stdio, spawn_with};
use super::abort::AbortSignal;
use super::callback_futures::in_callbacks;
use super::context::Node;
use super::error::Error;
#[cfg(unix)]
use super::events::Mark;
use super::events::{ERROR, Emitter, Event, EventEmitter};
#[cfg(unix)]
use super::ipc::Ipc;
#[cfg(unix)]
pub use super::ipc::{DISCONNECT, Json, MESSAGE};
#[cfg(unix)]
use super::net::Socket;
use super::stream::{self, Readable, Writable};
use phaseloop::Handle;
use phaseloop::io::{PipeReader, PipeWriter};
use phaseloop::process::{self, Command};
use phaseloop::signal::SignalKind;
use phaseloop::task::next_tick;

/// The pipes of a child: its input, its output and its errors.
type Pipes = (Option<PipeWriter>, Option<PipeReader>, Option<PipeReader>);

/// The process has started. JavaScript: `'spawn'`.
pub const SPAWN: Event<()> = Event::new("spawn");

/// The process has ended; its output pipes may still be open. JavaScript: `'exit'`.
pub const EXIT: Event<Exit> = Event::new("exit");

/// The process has ended and its pipes are closed; the argument is that of [`EXIT`]. JavaScript:
/// `'close'`.
///
/// A listener of [`stream::CLOSE`] is called too, right after these, without an argument.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, Exit, child_process::{CLOSE, spawn}, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let child = spawn("sh", ["-c", "echo hello; exit 3"]);
///         child.on(CLOSE, |exit| assert_eq!((exit.code, exit.signal), (Some(3), None)));
///     })
/// }
/// ```
pub const CLOSE: Event<Exit> = Event::new("close");

/// How a process has ended: with an exit code, or by a signal.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, Exit, child_process::{EXIT, spawn}, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let child = spawn("sh", ["-c", "exit 3"]);
///         child.on(EXIT, |exit| assert_eq!((exit.code, exit.signal), (Some(3), None)));
///     })
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exit {
    /// The exit code.
    pub code: Option<i32>,
    /// The signal that terminated the process.
    pub signal: Option<SignalKind>,
}

/// The arguments of a program: an array of `&str`, or a slice or vector of strings or paths.
///
/// Arrays are implemented for `&str` only, so that `[]` needs no type annotation.
///
/// # Examples
///
/// ```
/// use phaseloop_node::child_process::Arguments;
///
/// fn main() {
///     assert_eq!(["-l", "/tmp"].into_arguments(), ["-l", "/tmp"]);
///     assert!([].into_arguments().is_empty());
/// }
/// ```
pub trait Arguments {
    /// Returns the arguments as OS strings.
    fn into_arguments(self) -> Vec<OsString>;
}

/// Collects the arguments of an iterator.
fn collect<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Vec<OsString> {
    let arguments = arguments.into_iter();
    arguments
        .map(|argument| argument.as_ref().to_owned())
        .collect()
}

impl<const N: usize> Arguments for [&str; N] {
    fn into_arguments(self) -> Vec<OsString> {
        collect(self)
    }
}

impl<S: AsRef<OsStr>> Arguments for &[S] {
    fn into_arguments(self) -> Vec<OsString> {
        collect(self)
    }
}

impl<S: AsRef<OsStr>, const N: usize> Arguments for &[S; N] {
    fn into_arguments(self) -> Vec<OsString> {
        collect(self)
    }
}

impl<S: AsRef<OsStr>> Arguments for Vec<S> {
    fn into_arguments(self) -> Vec<OsString> {
        collect(self)
    }
}

impl<S: AsRef<OsStr>> Arguments for &Vec<S> {
    fn into_arguments(self) -> Vec<OsString> {
        collect(self)
    }
}

/// Starts a program with pipes for stdin, stdout and stderr. JavaScript: `spawn(command, args)`.
///
/// [`SPAWN`] or the error is emitted on the next tick. A program that cannot be started because it
/// is missing, not permitted, or because of a limit has its pipes all the same. Nothing is at their
/// other ends, and [`CLOSE`] follows when they are closed.
///
/// # Panics
///
/// When no loop runs on this thread. [Throws](super::throw) any other error of the start, such as
/// `ENOTDIR` and `E2BIG`, and `ERR_INVALID_ARG_VALUE` for a NUL byte or an empty name.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, Exit, child_process::{EXIT, spawn}, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let child = spawn("echo", ["hello"]);
///         child.stdout().unwrap().on_data(|bytes| assert_eq!(bytes, b"hello\n"));
///         child.on(EXIT, |exit| assert_eq!(exit.code, Some(0)));
///         spawn("true", []);
///     })
/// }
/// ```
#[track_caller]
pub fn spawn(program: impl AsRef<OsStr>, arguments: impl Arguments) -> ChildProcess {
    spawn_with(program, arguments, SpawnOptions::default())
}

/// Starts the program of a [`Command`], with its directory, environment and stdio. [`spawn_with`]
/// takes Node's options.
///
/// # Panics
///
/// See [`spawn`].
#[track_caller]
pub fn spawn_command(command: &mut Command) -> ChildProcess {
    ChildProcess::start(command)
}

/// A child process. A clone is a handle to the same process. JavaScript: `ChildProcess`.
///
/// [`EXIT`] is emitted at the end of the poll phase. [`CLOSE`] is emitted after it, when the output
/// pipes are closed: right after it, before the lanes are drained, if the process has none. Until
/// then the process is held by its loop and keeps it alive. A process that could not be started
/// emits an error in place of `EXIT`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, Exit, child_process::{CLOSE, spawn}, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let child = spawn("cat", []);
///         child.stdin().unwrap().end("hello");
///         child.stdout().unwrap().on_text(|text| assert_eq!(text, "hello"));
///         child.on(CLOSE, |exit| assert_eq!(exit.code, Some(0)));
///     })
/// }
/// ```
#[derive(Clone)]
pub struct ChildProcess {
    inner: Rc<Inner>,
}

struct Inner {
    emitter: EventEmitter,
    pid: Option<u32>,
    stdin: Option<Writable<Vec<u8>>>,
    stdout: Option<Readable<Vec<u8>>>,
    stderr: Option<Readable<Vec<u8>>>,
    /// The pipes beyond the standard streams, with their numbers.
    #[cfg(unix)]
    sockets: RefCell<Vec<(usize, Socket)>>,
    child: RefCell<Option<process::Child>>,
    exit: Cell<Option<Exit>>,
    /// The IPC channel of a forked process.
    #[cfg(unix)]
    ipc: OnceCell<Rc<Ipc>>,
    /// The last signal that [`kill`](ChildProcess::kill) has sent.
    killed_by: Cell<Option<SignalKind>>,
    /// The number of ends to wait for before [`CLOSE`]: the process and each pipe of its output.
    open: Cell<usize>,
    /// The waker of the task that waits for them.
    closed: RefCell<Option<Waker>>,
}

/// Keeps a process while it runs or its pipes are open. The loop holds this value and drops it at
/// its end.
struct ChildGuard(ChildProcess);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        let child = self.0.inner.child.take();
        drop(child);
        // The listeners of a closed process are dropped already, and new ones stay.
        if self.0.inner.open.get() > 0 {
            self.0.inner.emitter.clear();
        }
    }
}

impl ChildProcess {
    #[track_caller]
    fn start(command: &mut Command) -> Self {
        failure::check_name(command.as_std().get_program());
        match command.spawn() {
            Ok(child) => Self::watch(child),
            Err(error) => {
                let error = failure::of_start(error, command);
                // Without descriptors there are no pipes either.
                let pipes = command.pipes_to_nobody().unwrap_or_default();
                Self::failed(error, pipes)
            }
        }
    }

    /// Creates a process that could not be started. It has its pipes.
    // N102.
    fn failed(error: Error, (stdin, stdout, stderr): Pipes) -> Self {
        let this = Self::new(None, stdin, stdout, stderr);
        let exit = Exit {
            code: error.errno(),
            signal: None,
        };
        let guard = ChildGuard(this.clone());
        next_tick(move || {
            guard.0.ended(exit, Some(&error));
            in_callbacks(async move { guard.0.until_closed().await });
        });
        this
    }

    fn new(
        child: Option<process::Child>,
        stdin: Option<PipeWriter>,
        stdout: Option<PipeReader>,
        stderr: Option<PipeReader>,
    ) -> Self {
        let outputs = usize::from(stdout.is_some()) + usize::from(stderr.is_some());
        let inner = Rc::new(Inner {
            emitter: EventEmitter::of_class("ChildProcess"),
            pid: child.as_ref().map(process::Child::id),
            stdin: stdin.map(Writable::to_handle),
            stdout: stdout.map(Readable::from_handle),
            stderr: stderr.map(Readable::from_handle),
            #[cfg(unix)]
            sockets: RefCell::default(),
            child: RefCell::new(child),
            exit: Cell::new(None),
            #[cfg(unix)]
            ipc: OnceCell::new(),
            killed_by: Cell::new(None),
            open: Cell::new(1 + outputs),
            closed: RefCell::default(),
        });
        let this = Self { inner };
        for output in this.outputs() {
            this.wait_for(output);
            // Reading starts now, so that EOF is noticed even if no listener reads.
            output.read_size(0);
        }
        this.clear_with_the_loop();
        this
    }

    fn outputs(&self) -> impl Iterator<Item = &Readable<Vec<u8>>> {
        [self.stdout(), self.stderr()].into_iter().flatten()
    }

    /// Has the listeners of the child and of its streams dropped with the loop.
    fn clear_with_the_loop(&self) {
        let open = &Node::current().emitters;
        open.insert(&self.inner.emitter);
        if let Some(stdin) = self.stdin() {
            open.insert(stdin.emitter());
        }
        for output in self.outputs() {
            open.insert(output.emitter());
        }
    }

    fn watch(mut child: process::Child) -> Self {
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let stderr = child.stderr.take();
        let exited = child.exited();
        let this = Self::new(Some(child), stdin, stdout, stderr);
        let emitter = this.inner.emitter.clone();
        next_tick(move || {
            emitter.emit(SPAWN, ());
        });
        let guard = ChildGuard(this.clone());
        in_callbacks(async move {
            let status = exited.await;
            let exit = platform::exit_of(status.ok(), guard.0.inner.killed_by.get());
            guard.0.ended(exit, None);
            guard.0.until_closed().await;
        });
        this
    }

    /// Counts a pipe that must be closed before the process is.
    fn wait_for(&self, pipe: &impl Emitter) {
        // The process holds the pipe, so its listener holds the process weakly: no reference cycle.
        let inner = Rc::downgrade(&self.inner);
        pipe.once(stream::CLOSE, move |()| {
            if let Some(inner) = inner.upgrade() {
                Self { inner }.closed_one();
            }
        });
    }

    /// The process has exited, or could not be started.
    fn ended(&self, exit: Exit, error: Option<&Error>) {
        self.inner.exit.set(Some(exit));
        if let Some(stdin) = self.stdin() {
            stdin.destroy(None);
        }
        match error {
            Some(error) => self.inner.emitter.emit(ERROR, error),
            None => self.inner.emitter.emit(EXIT, exit),
        };
        let this = self.clone();
        // Output without a reader is discarded, so that the pipes reach EOF.
        next_tick(move || {
            let discard = |output: &Readable<Vec<u8>>| {
                if output.flowing().is_none() && output.is_readable() {
                    output.resume();
                }
            };
            this.outputs().for_each(discard);
            #[cfg(unix)]
            {
                let sockets = this.inner.sockets.borrow().clone();
                let readables = sockets.iter().map(|(_, socket)| socket.readable());
                readables.for_each(discard);
            }
        });
        self.closed_one();
    }

    fn closed_one(&self) {
        self.inner.open.set(self.inner.open.get() - 1);
        let waker = self.inner.closed.take();
        if let Some(waker) = waker {
            waker.wake();
        }
        if self.inner.open.get() == 0 {
            self.emit_close();
        }
    }

    fn emit_close(&self) {
        let emitter = &self.inner.emitter;
        #[cfg(unix)]
        if self.inner.ipc.get().is_some() {
            // 'disconnect' may follow by a tick that is queued already.
            let (emitter, mark) = (emitter.clone(), Mark::now());
            next_tick(move || emitter.drop_before(mark, &[]));
            self.emit_exit_of_close();
            self.inner.emitter.emit(stream::CLOSE, ());
            return;
        }
        emitter.end_with(|| {
            self.emit_exit_of_close();
            emitter.emit(stream::CLOSE, ());
        });
    }

    fn emit_exit_of_close(&self) {
        let exit = self.exit();
        debug_assert!(exit.is_some(), "a process is closed after its end");
        if let Some(exit) = exit {
            self.inner.emitter.emit(CLOSE, exit);
        }
    }

    /// Kills the process when `abort` is aborted; it may be aborted already. A process that does
    /// not run is not aborted.
    fn end_with(&self, abort: &AbortSignal, kill_signal: SignalKind) {
        // Weak, because the signal may outlive many processes.
        let (inner, source) = (Rc::downgrade(&self.inner), abort.clone());
        let end = move || {
            let child = inner.upgrade().map(|inner| Self { inner });
            if let (Some(reason), Some(child)) = (source.reason(), child) {
                if child.kill(kill_signal) {
                    child.emit(ERROR, Error::aborted_by(reason));
                }
            }
        };
        if abort.aborted() {
            return next_tick(end);
        }
        let (listener, abort) = (abort.on_abort(end), abort.clone());
        self.once(CLOSE, move |_| _ = abort.off(listener));
    }

    /// Waits until the process and its pipes are closed.
    async fn until_closed(&self) {
        poll_fn(|cx| {
            if self.inner.open.get() == 0 {
                return Poll::Ready(());
            }
            let before = self.inner.closed.replace(Some(cx.waker().clone()));
            drop(before);
            Poll::Pending
        })
        .await;
    }

    /// Returns the process id; `None` if the process could not be started. JavaScript:
    /// `subprocess.pid`.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.inner.pid
    }

    /// Returns the standard input of the process, if it is a pipe. JavaScript: `subprocess.stdin`.
    #[must_use]
    pub fn stdin(&self) -> Option<&Writable<Vec<u8>>> {
        self.inner.stdin.as_ref()
    }

    /// Returns the standard output of the process, if it is a pipe. JavaScript:
    /// `subprocess.stdout`.
    #[must_use]
    pub fn stdout(&self) -> Option<&Readable<Vec<u8>>> {
        self.inner.stdout.as_ref()
    }

    /// Returns the standard error of the process, if it is a pipe. JavaScript: `subprocess.stderr`.
    #[must_use]
    pub fn stderr(&self) -> Option<&Readable<Vec<u8>>> {
        self.inner.stderr.as_ref()
    }

    /// Returns the pipe with a number of 3 or more in [`SpawnOptions::stdio`]. It carries bytes in
    /// both directions. Unix only. JavaScript: `subprocess.stdio[number]`.
    #[cfg(unix)]
    #[must_use]
    pub fn stdio(&self, number: usize) -> Option<Socket> {
        let sockets = self.inner.sockets.borrow();
        let found = sockets.iter().find(|(known, _)| *known == number);
        found.map(|(_, socket)| socket.clone())
    }

    /// Lets the loop end while the process runs. Its pipes still keep the loop alive: start it with
    /// [`Stdio::Ignore`]. JavaScript: `subprocess.unref()`.
    pub fn unref(&self) {
        if let Some(child) = &*self.inner.child.borrow() {
            child.unref();
        }
    }

    /// Makes the process keep the loop alive, which is the default. JavaScript: `subprocess.ref()`.
    pub fn ref_(&self) {
        if let Some(child) = &*self.inner.child.borrow() {
            child.ref_();
        }
    }

    /// Returns how the process has ended, once [`EXIT`] was emitted. The code of a process that
    /// could not be started is its [error number](Error::errno). JavaScript:
    /// `subprocess.exitCode`, `subprocess.signalCode`.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        self.inner.exit.get()
    }

    /// Sends a signal. Returns `false` if the process has ended or was never started. JavaScript:
    /// `subprocess.kill(signal)`.
    pub fn kill(&self, signal: SignalKind) -> bool {
        let child = self.inner.child.borrow();
        let was_sent = self.exit().is_none()
            && child
                .as_ref()
                .is_some_and(|child| child.signal(signal).is_ok());
        if was_sent {
            self.inner.killed_by.set(Some(signal));
        }
        was_sent
    }

    /// Returns whether [`kill`](Self::kill) has sent a signal; the process may still run.
    /// JavaScript: `subprocess.killed`.
    #[must_use]
    pub fn killed(&self) -> bool {
        self.inner.killed_by.get().is_some()
    }
}

impl Emitter for ChildProcess {
    fn emitter(&self) -> &EventEmitter {
        &self.inner.emitter
    }
}

crate::weak_this!(ChildProcess { inner });

impl fmt::Debug for ChildProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildProcess")
            .field("pid", &self.pid())
            .field("exit", &self.exit())
            .finish_non_exhaustive()
    }
}
