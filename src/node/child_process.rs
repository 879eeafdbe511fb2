//! Child processes, with events. Node's `child_process`, over [`crate::process`]; on Unix only.

mod exec;
mod fork;

use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::future::poll_fn;
use std::os::unix::process::ExitStatusExt;
use std::rc::Rc;
use std::task::{Poll, Waker};

pub use self::exec::{
    ExecError, ExecOptions, ExecOutput, exec, exec_file, exec_file_with, exec_with, promises,
};
pub use self::fork::{fork, fork_command};
use super::callback_futures::in_callbacks;
use super::context::Node;
use super::error::Error;
use super::events::{ERROR, Emitter, Event, EventEmitter};
use super::ipc::Ipc;
pub use super::ipc::{DISCONNECT, Json, MESSAGE};
use super::stream::{CLOSE, Readable, Writable};
use crate::process::{self, Command, ExitStatus, Stdio};
use crate::signal::SignalKind;
use crate::task::next_tick;

/// The program runs.
pub const SPAWN: Event<()> = Event::new("spawn");

/// The program has ended; its output may not have.
pub const EXIT: Event<Exit> = Event::new("exit");

/// How a program has ended: by itself, with a code, or by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exit {
    /// The exit code.
    pub code: Option<i32>,
    /// The signal that has ended it.
    pub signal: Option<SignalKind>,
}

/// The arguments of a program: an array of texts, or a slice or a vector of anything that is a text or a path.
///
/// Of arrays only those of `&str`, so that `[]` needs no type.
pub trait Arguments {
    /// The arguments, one by one.
    fn into_arguments(self) -> Vec<OsString>;
}

/// The arguments of an iterator.
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

/// Starts a program with three pipes.
///
/// [`SPAWN`], or the error, comes by a tick (N102).
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{Emitter, child_process::{EXIT, spawn}, run};
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

/// Starts what a [`Command`] describes: its directory, its variables, what it reads and writes.
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn spawn_command(command: &mut Command) -> ChildProcess {
    ChildProcess::start(command)
}

/// A program that was started. A clone is the same.
///
/// [`EXIT`] comes at the end of the poll phase. [`CLOSE`] comes after it, when all its pipes are closed: right after it,
/// before any drain, if it has none (N102). It lives on its loop, and keeps that alive, until then.
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
    /// The channel of a forked program.
    ipc: OnceCell<Rc<Ipc>>,
    /// A signal was sent from here.
    was_killed: Cell<bool>,
    /// What has to end before [`CLOSE`]: the program, and each pipe.
    open: Cell<usize>,
    /// Wakes what waits for that.
    closed: RefCell<Option<Waker>>,
}

/// What keeps a program while it runs or its pipes are open. The loop has it, and drops it in the end.
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
        // It has no program that would hold it until its end.
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
            ipc: OnceCell::new(),
            was_killed: Cell::new(false),
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
            // Started now, so that its end is seen although nobody reads.
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

    /// One more pipe that has to be closed before the child is.
    fn wait_for(&self, pipe: &impl Emitter) {
        // The child has the pipe: what listens to that must not have the child.
        let inner = Rc::downgrade(&self.inner);
        pipe.once(CLOSE, move |()| {
            if let Some(inner) = inner.upgrade() {
                Self { inner }.closed_one();
            }
        });
    }

    fn exited(&self, status: Option<ExitStatus>) {
        let exit = Exit {
            code: status.and_then(|status| status.code()),
            signal: status
                .and_then(|status| status.signal())
                .map(SignalKind::from_raw),
        };
        self.inner.exit.set(Some(exit));
        if let Some(stdin) = self.stdin() {
            stdin.destroy(None);
        }
        self.inner.emitter.emit(EXIT, exit);
        let this = self.clone();
        // What nobody reads is let go of, so that the pipes end.
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

    /// Waits until the program has ended and its pipes are closed.
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

    /// The process's number. `None` if it could not be started.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.inner.pid
    }

    /// What the program reads, if it is a pipe.
    #[must_use]
    pub fn stdin(&self) -> Option<&Writable<Vec<u8>>> {
        self.inner.stdin.as_ref()
    }

    /// What the program writes, if it is a pipe.
    #[must_use]
    pub fn stdout(&self) -> Option<&Readable<Vec<u8>>> {
        self.inner.stdout.as_ref()
    }

    /// What the program complains about, if it is a pipe.
    #[must_use]
    pub fn stderr(&self) -> Option<&Readable<Vec<u8>>> {
        self.inner.stderr.as_ref()
    }

    /// How it has ended, once [`EXIT`] was emitted.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        self.inner.exit.get()
    }

    /// Sends a signal. `false`: it has ended, or was never started.
    pub fn kill(&self, signal: SignalKind) -> bool {
        let child = self.inner.child.borrow();
        let was_sent = self.exit().is_none()
            && child
                .as_ref()
                .is_some_and(|child| child.signal(signal).is_ok());
        if was_sent {
            self.inner.was_killed.set(true);
        }
        was_sent
    }

    /// Whether [`kill`](Self::kill) has sent a signal; the program may run on. JavaScript: `subprocess.killed`.
    #[must_use]
    pub fn killed(&self) -> bool {
        self.inner.was_killed.get()
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
