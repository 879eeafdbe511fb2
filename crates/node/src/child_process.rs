//! Child processes that emit events: Node's `child_process`, over [`phaseloop::process`]. `fork` is on
//! Unix only.

mod exec;
#[cfg(unix)]
mod fork;
#[cfg_attr(unix, path = "child_process/unix.rs")]
#[cfg_attr(not(unix), path = "child_process/windows.rs")]
mod platform;

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
use super::callback_futures::in_callbacks;
use super::context::Node;
use super::error::Error;
use super::events::{ERROR, Emitter, Event, EventEmitter};
#[cfg(unix)]
use super::ipc::Ipc;
#[cfg(unix)]
pub use super::ipc::{DISCONNECT, Json, MESSAGE};
use super::stream::{CLOSE, Readable, Writable};
use phaseloop::process::{self, Command, ExitStatus, Stdio};
use phaseloop::signal::SignalKind;
use phaseloop::task::next_tick;

/// The process has started. JavaScript: `'spawn'`.
pub const SPAWN: Event<()> = Event::new("spawn");

/// The process has ended; its output pipes may still be open. JavaScript: `'exit'`.
pub const EXIT: Event<Exit> = Event::new("exit");

/// How a process has ended: with an exit code, or by a signal.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, child_process::{EXIT, spawn}, run};
///
/// run(async {
///     let child = spawn("sh", ["-c", "exit 3"]);
///     child.on(EXIT, |exit| assert_eq!((exit.code, exit.signal), (Some(3), None)));
/// });
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
/// assert_eq!(["-l", "/tmp"].into_arguments(), ["-l", "/tmp"]);
/// assert!([].into_arguments().is_empty());
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
/// [`SPAWN`] or the error is emitted on the next tick.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, child_process::{EXIT, spawn}, run};
///
/// run(async {
///     let child = spawn("echo", ["hello"]);
///     child.stdout().unwrap().on_data(|bytes| assert_eq!(bytes, b"hello\n"));
///     child.on(EXIT, |exit| assert_eq!(exit.code, Some(0)));
///     spawn("true", []);
/// });
/// ```
#[track_caller]
pub fn spawn(program: impl AsRef<OsStr>, arguments: impl Arguments) -> ChildProcess {
    let mut command = Command::new(program);
    command.args(arguments.into_arguments());
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped());
    command.stderr(Stdio::piped());
    ChildProcess::start(&mut command)
}

/// Starts the program of a [`Command`], with its directory, environment and stdio. JavaScript:
/// `spawn(command, args, options)`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn spawn_command(command: &mut Command) -> ChildProcess {
    ChildProcess::start(command)
}

/// A child process. A clone is a handle to the same process. JavaScript: `ChildProcess`.
///
/// [`EXIT`] is emitted at the end of the poll phase. [`CLOSE`] is emitted after it, when all pipes
/// are closed: right after it, before the lanes are drained, if the process has no pipes. Until
/// then the process is held by its loop and keeps it alive.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, child_process::spawn, run, stream::CLOSE};
///
/// run(async {
///     let child = spawn("cat", []);
///     child.stdin().unwrap().end_chunk("hello");
///     child.stdout().unwrap().on_text(|text| assert_eq!(text, "hello"));
///     let this = child.clone();
///     child.on(CLOSE, move |()| assert_eq!(this.exit().unwrap().code, Some(0)));
/// });
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
    child: RefCell<Option<process::Child>>,
    exit: Cell<Option<Exit>>,
    /// The IPC channel of a forked process.
    #[cfg(unix)]
    ipc: OnceCell<Rc<Ipc>>,
    /// The last signal that [`kill`](ChildProcess::kill) has sent.
    killed_by: Cell<Option<SignalKind>>,
    /// The number of ends to wait for before [`CLOSE`]: the process and each pipe.
    open: Cell<usize>,
    /// The waker of the task that waits for the last of them.
    closed: RefCell<Option<Waker>>,
}

/// Keeps a process while it runs or its pipes are open. The loop holds this value and drops it at
/// its end.
struct Kept(ChildProcess);

impl Drop for Kept {
    fn drop(&mut self) {
        let child = self.0.inner.child.take();
        drop(child);
        self.0.inner.emitter.clear();
    }
}

impl ChildProcess {
    #[track_caller]
    fn start(command: &mut Command) -> Self {
        match command.spawn() {
            Ok(child) => Self::watch(child),
            Err(error) => Self::failed(Error::of_spawn(
                error,
                command.as_std().get_program().as_ref(),
            )),
        }
    }

    fn failed(error: Error) -> Self {
        let this = Self::new(None, None, None, None);
        // No task waits for a process that did not start, so the tick keeps the value.
        let kept = Kept(this.clone());
        next_tick(move || {
            kept.0.inner.emitter.emit(ERROR, &error);
        });
        this
    }

    fn new(
        child: Option<process::Child>,
        stdin: Option<Writable<Vec<u8>>>,
        stdout: Option<Readable<Vec<u8>>>,
        stderr: Option<Readable<Vec<u8>>>,
    ) -> Self {
        let pipes = [stdin.is_some(), stdout.is_some(), stderr.is_some()];
        let pipes = pipes.iter().filter(|is_there| **is_there).count();
        let inner = Rc::new(Inner {
            emitter: EventEmitter::of_class("ChildProcess"),
            pid: child.as_ref().map(process::Child::id),
            stdin,
            stdout,
            stderr,
            child: RefCell::new(child),
            exit: Cell::new(None),
            #[cfg(unix)]
            ipc: OnceCell::new(),
            killed_by: Cell::new(None),
            open: Cell::new(1 + pipes),
            closed: RefCell::default(),
        });
        Self { inner }
    }

    /// Has the listeners of the child and of its streams dropped with the loop.
    fn clear_with_the_loop(&self) {
        let open = &Node::current().emitters;
        open.insert(&self.inner.emitter);
        if let Some(stdin) = self.stdin() {
            open.insert(stdin.emitter());
        }
        for output in [self.stdout(), self.stderr()].into_iter().flatten() {
            open.insert(output.emitter());
        }
    }

    fn watch(mut child: process::Child) -> Self {
        let stdin = child.stdin.take().map(Writable::from_writer);
        let stdout = child.stdout.take().map(Readable::from_reader);
        let stderr = child.stderr.take().map(Readable::from_reader);
        let exited = child.exited();
        let this = Self::new(Some(child), stdin, stdout, stderr);
        if let Some(stdin) = this.stdin() {
            this.wait_for(stdin);
        }
        for output in [this.stdout(), this.stderr()].into_iter().flatten() {
            this.wait_for(output);
            // Reading starts now, so that EOF is noticed even if no listener reads.
            output.read_size(0);
        }
        this.clear_with_the_loop();
        let emitter = this.inner.emitter.clone();
        next_tick(move || {
            emitter.emit(SPAWN, ());
        });
        let kept = Kept(this.clone());
        in_callbacks(async move {
            let status = exited.await;
            kept.0.exited(status.ok());
            kept.0.all_closed().await;
        });
        this
    }

    /// Counts a pipe that must be closed before the process is.
    fn wait_for(&self, pipe: &impl Emitter) {
        // The process holds the pipe, so its listener holds the process weakly: no reference cycle.
        let inner = Rc::downgrade(&self.inner);
        pipe.once(CLOSE, move |()| {
            if let Some(inner) = inner.upgrade() {
                Self { inner }.closed_one();
            }
        });
    }

    fn exited(&self, status: Option<ExitStatus>) {
        let exit = platform::exit_of(status, self.inner.killed_by.get());
        self.inner.exit.set(Some(exit));
        if let Some(stdin) = self.stdin() {
            stdin.destroy(None);
        }
        self.inner.emitter.emit(EXIT, exit);
        let this = self.clone();
        // Output without a reader is discarded, so that the pipes reach EOF.
        next_tick(move || {
            for output in [this.stdout(), this.stderr()].into_iter().flatten() {
                if output.flowing().is_none() && output.is_readable() {
                    output.resume();
                }
            }
        });
        self.closed_one();
    }

    fn closed_one(&self) {
        self.inner.open.set(self.inner.open.get() - 1);
        if self.inner.open.get() == 0 {
            self.inner.emitter.emit(CLOSE, ());
            self.inner.emitter.clear();
            let waker = self.inner.closed.take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Waits until the process has ended and its pipes are closed.
    async fn all_closed(&self) {
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

    /// Returns how the process has ended, once [`EXIT`] was emitted. JavaScript:
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

impl fmt::Debug for ChildProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildProcess")
            .field("pid", &self.pid())
            .field("exit", &self.exit())
            .finish_non_exhaustive()
    }
}
