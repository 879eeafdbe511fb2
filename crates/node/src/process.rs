//! The `process` object of Node: exit events, uncaught errors and warnings, signals and the
//! standard streams; on Unix also the IPC channel to the parent.
//!
//! ```
//! use phaseloop_node::{Exit, process, run};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         process::on_exit(|code| println!("bye, with {code}"));
//!     })
//! }
//! ```

#[cfg(unix)]
mod channel;
mod listener;
mod once;
mod signals;
mod stdio;
mod warning;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::resume_unwind;
use std::rc::{Rc, Weak};

#[cfg(unix)]
pub use self::channel::{connected, disconnect, on_disconnect, on_message, send, send_with};
pub use self::listener::Listener;
pub(super) use self::listener::Listeners;
pub use self::once::{
    on_uncaught_exception_monitor, once_before_exit, once_exit, once_rejection_handled,
    once_uncaught_exception, once_unhandled_rejection, once_warning,
};
pub use self::signals::{on_signal, once_signal};
#[cfg(all(unix, feature = "tty"))]
pub(crate) use self::stdio::{is_stdout, stdin_tty, stdout_columns};
pub use self::stdio::{stderr, stdin, stdout};
pub use self::warning::Warning;
use super::context::Node;
use super::reason::Reason;
use super::report;
use super::site::Site;
use phaseloop::extension::Call;
use phaseloop::extension::Loop;
use phaseloop::extension::Payload;
use phaseloop::extension::frame::{Frame, carry};
use phaseloop::extension::stderr;

/// Returns the text of an uncaught error, if it is one of the engine.
pub(super) type Describe = fn(&Reason, Origin) -> Option<String>;

/// The listeners of the program, and the state of its exit.
#[derive(Default)]
pub(super) struct ProcessState {
    /// The codes of the deprecations that were warned of.
    deprecations: RefCell<Vec<&'static str>>,
    before_exit: Listeners<i32>,
    exit: Listeners<i32>,
    uncaught: Listeners<(Reason, Origin)>,
    /// Called before the `uncaught` listeners; they do not count as a handler.
    monitors: Listeners<(Reason, Origin)>,
    pub(super) unhandled: Listeners<Reason>,
    pub(super) handled_late: Listeners<Reason>,
    warning: Listeners<Warning>,
    exit_code: Cell<Option<i32>>,
    is_exiting: Cell<bool>,
    /// The origin of an uncaught error that no listener has handled.
    uncaught_origin: Cell<Option<Origin>>,
    /// What describes the errors of an engine, and what it made of the one that ends the program.
    pub(super) describe: Cell<Option<Describe>>,
    description: Cell<Option<String>>,
    /// The line that made the promise whose rejection is being reported.
    rejected: Cell<Option<Site>>,
    /// Whether a listener for uncaught errors has panicked.
    is_listener_at_fault: Cell<bool>,
    #[cfg(unix)]
    channel: channel::ParentChannel,
    signals: signals::SignalListeners,
    standard: stdio::StandardStreams,
    /// Whether `run` runs this program and returns its code.
    is_program: Cell<bool>,
    /// Whether the program is a worker, whose parent gets the error that ends it.
    has_parent: Cell<bool>,
}

/// Calls `listener` with the exit code when the loop has no work left. JavaScript:
/// `process.on('beforeExit', ..)`.
///
/// If the listener gives the loop new work, the loop continues and the event is emitted again
/// later. Ticks and microtasks alone do not revive the loop. The event is not emitted after
/// [`exit`].
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{process, run, set_timeout};
/// use std::{cell::Cell, rc::Rc};
///
/// fn main() {
///     let calls = Rc::new(Cell::new(0));
///     let count = calls.clone();
///     run(async move {
///         process::on_before_exit(move |_| {
///             count.set(count.get() + 1);
///             if count.get() < 3 {
///                 set_timeout(1, || ()); // new work: the event is emitted again
///             }
///         });
///     });
///     assert_eq!(calls.get(), 3);
/// }
/// ```
// N81.
pub fn on_before_exit(mut listener: impl FnMut(i32) + 'static) -> Listener {
    Node::current().listen(|process| &process.before_exit, move |&code| listener(code))
}

/// Calls `listener` with the exit code when the program ends. JavaScript: `process.on('exit', ..)`.
///
/// If the program ends by itself, the microtasks that the listeners queue still run, and the
/// microtasks that these queue. Ticks, timers and I/O do not run any more. After [`exit`] or an
/// uncaught error, microtasks do not run either.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{process, run, set_timeout};
///
/// fn main() {
///     let exit = run(async {
///         process::on_exit(|code| println!("bye, with {code}"));
///         set_timeout(1, || process::exit(3));
///     });
///     assert_eq!(exit.code(), 3);
/// }
/// ```
// N82.
pub fn on_exit(mut listener: impl FnMut(i32) + 'static) -> Listener {
    Node::current().listen(|process| &process.exit, move |&code| listener(code))
}

/// Calls `listener` with each uncaught panic of a callback, a tick or a microtask, and with the
/// reason of each unhandled rejection. JavaScript: `process.on('uncaughtException', ..)`.
///
/// With a listener the loop continues as Node does: after a callback with the next callback of the
/// phase, after a tick with the next callback, after a microtask with the next microtask. Without a
/// listener a program under [`run`](super::run) ends with code 1; otherwise the panic unwinds out
/// of the call that runs the loop.
///
/// A panic of a task is not uncaught: its [`JoinHandle`](phaseloop::JoinHandle) returns it.
///
/// # Panics
///
/// When no loop runs on this thread. A panic of the listener ends the program with code 7, at once
/// and without the listeners of [`on_exit`].
///
/// # Examples
///
/// ```
/// use phaseloop_node::{process, run, set_immediate, throw};
///
/// fn main() {
///     let exit = run(async {
///         process::on_uncaught_exception(|error, _origin| println!("caught {error}"));
///         set_immediate(|| throw("the first"));
///         set_immediate(|| println!("the second runs"));
///     });
///     assert_eq!(exit.code(), 0);
/// }
/// ```
pub fn on_uncaught_exception(mut listener: impl FnMut(&Reason, Origin) + 'static) -> Listener {
    let node = Node::current();
    node.contain_panics();
    node.listen(
        |process| &process.uncaught,
        move |(reason, origin)| listener(reason, *origin),
    )
}

/// Calls `listener` with the reason of each rejected promise without a handler, when the lanes are
/// empty. JavaScript: `process.on('unhandledRejection', ..)`.
///
/// Without a listener the reason goes to the listeners of [`on_uncaught_exception`].
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn on_unhandled_rejection(listener: impl FnMut(&Reason) + 'static) -> Listener {
    Node::current().listen(|process| &process.unhandled, listener)
}

/// Calls `listener` when a rejection that was reported as unhandled gets a handler. JavaScript:
/// `process.on('rejectionHandled', ..)`.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn on_rejection_handled(listener: impl FnMut(&Reason) + 'static) -> Listener {
    Node::current().listen(|process| &process.handled_late, listener)
}

/// Calls `listener` with each warning. Without a listener, warnings are written to standard error.
/// JavaScript: `process.on('warning', ..)`.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, process, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         process::on_warning(|warning| println!("{warning}"));
///         process::emit_warning("DeprecationWarning", "old() is old");
///     })
/// }
/// ```
pub fn on_warning(listener: impl FnMut(&Warning) + 'static) -> Listener {
    Node::current().listen(|process| &process.warning, listener)
}

/// Emits a warning on the next tick. JavaScript: `process.emitWarning(text, name)`.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn emit_warning(name: &str, text: impl Into<String>) {
    Warning::new(name, text).emit();
}

/// Ends the program at once: the listeners of [`on_exit`] are called, and no other user code runs.
/// JavaScript: `process.exit(code)`.
///
/// The call unwinds to [`run`](super::run), which returns the code. The OS process continues.
///
/// # Panics
///
/// When no loop runs on this thread. On a loop without `run`, a line on standard error reports it,
/// and the call unwinds out of the call that runs the loop.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{process, run, set_timeout};
///
/// fn main() {
///     let exit = run(async {
///         set_timeout(60_000, || unreachable!("the program ends before"));
///         process::exit(3);
///     });
///     assert_eq!(exit.code(), 3);
/// }
/// ```
// N83.
pub fn exit(code: i32) -> ! {
    let node = Node::current();
    if !node.process.is_program.get() {
        stderr::print(format_args!(
            "phaseloop: process::exit({code}) was called outside of node::run"
        ));
    }
    node.process.exit_code.set(Some(code));
    node.emit_exit(code);
    if let Some(core) = node.core() {
        core.exit_program();
    }
    resume_unwind(Box::new(ExitRequest))
}

/// Returns the exit code, if one was set. JavaScript: `process.exitCode`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
pub fn exit_code() -> Option<i32> {
    Node::current().process.exit_code.get()
}

/// Sets the exit code of a program that ends by itself. JavaScript: `process.exitCode = code`.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{process, run};
///
/// fn main() {
///     let exit = run(async { process::set_exit_code(2) });
///     assert_eq!(exit.code(), 2);
/// }
/// ```
pub fn set_exit_code(code: i32) {
    Node::current().process.exit_code.set(Some(code));
}

/// The panic payload of [`exit`].
pub(super) struct ExitRequest;

impl Node {
    fn listen<E: 'static>(
        self: &Rc<Self>,
        event: fn(&ProcessState) -> &Listeners<E>,
        listener: impl FnMut(&E) + 'static,
    ) -> Listener {
        let id = event(&self.process).add(listener);
        self.listener(event, id)
    }

    /// Returns the value that removes the listener `id`.
    fn listener<E: 'static>(
        self: &Rc<Self>,
        event: fn(&ProcessState) -> &Listeners<E>,
        id: u64,
    ) -> Listener {
        let node = Rc::downgrade(self);
        Listener {
            remove: Box::new(move || {
                let node = Weak::upgrade(&node);
                node.is_some_and(|node| event(&node.process).remove(id))
            }),
        }
    }

    /// Routes the uncaught panics of the loop to `uncaught`.
    fn contain_panics(self: &Rc<Self>) {
        report::install();
        let node = Rc::downgrade(self);
        if let Some(core) = self.core() {
            let handler = move |payload: Payload| match Weak::upgrade(&node) {
                Some(node) if !payload.is::<ExitRequest>() && node.process.has_listener() => {
                    node.uncaught(Reason::from_panic(payload), Origin::UncaughtException);
                }
                _ => resume_unwind(payload),
            };
            core.set_panic_handler(Some(Rc::new(handler)));
        }
    }

    /// Calls the listeners for uncaught errors; raises the error if there is none.
    pub(super) fn uncaught(&self, reason: Reason, origin: Origin) {
        self.log(|| format!("{origin}: {reason}"));
        let uncaught = (reason, origin);
        let process = &self.process;
        // Set during the calls, so that it stays set if a listener panics.
        process.is_listener_at_fault.set(true);
        process.monitors.emit(&uncaught);
        let was_handled = process.uncaught.emit(&uncaught);
        process.is_listener_at_fault.set(false);
        if !was_handled {
            process.uncaught_origin.set(Some(origin));
            // Now: the engine ends with the program.
            process
                .description
                .set(process.described(&uncaught.0, origin));
            uncaught.0.raise();
        }
        // One more turn of the loop is certain: Node's `setImmediate(noop)` in its handler (N78).
        if let Some(core) = self.core() {
            let call = carry("Immediate", Call::new(|| ()));
            core.push_immediate(call);
        }
        let hooks = self.hooks.borrow().clone();
        if let Some(hooks) = hooks {
            hooks.unwind();
        }
    }

    /// Drops all queued tasks and calls: the program has ended.
    pub(super) fn drop_lanes(&self) {
        if let Some(core) = self.core() {
            core.drop_lanes();
        }
    }

    pub(super) fn emit_before_exit(&self) {
        let hooks = self.hooks.borrow().clone();
        if let Some(hooks) = hooks {
            hooks.report_destroyed();
        }
        let code = self.process.exit_code.get().unwrap_or(0);
        self.log(|| "nothing keeps the loop alive: beforeExit".to_owned());
        Frame::default().call(|| self.process.before_exit.emit(&code));
    }

    /// Emits 'exit' for a program that has ended by itself, then runs the microtasks that this has
    /// queued.
    // N82.
    pub(super) fn emit_natural_exit(&self, core: &Loop, code: i32) {
        let emit = || Frame::default().call(|| self.emit_exit(code));
        if core.contain(emit).is_some() {
            core.drain_microtasks();
        }
    }

    /// Emits 'exit', at most once.
    pub(super) fn emit_exit(&self, code: i32) {
        if !self.process.is_exiting.replace(true) {
            self.log(|| format!("the program exits with code {code}"));
            self.process.exit.emit(&code);
        }
    }

    /// Starts a program and resets the exit state of an earlier program on this loop. The panic
    /// handler is set from the start, because the callback that panics may itself add a listener
    /// first.
    pub(super) fn begin(self: &Rc<Self>, core: &Loop, has_parent: bool) {
        self.process.has_parent.set(has_parent);
        self.process.is_program.set(true);
        self.timeline.begin_program();
        self.process.is_exiting.set(false);
        self.process.exit_code.set(None);
        self.process.uncaught_origin.set(None);
        self.process.description.set(None);
        self.process.is_listener_at_fault.set(false);
        core.begin_program();
        self.contain_panics();
    }

    /// Ends the program; the loop may run again. Calls queued by the listeners of [`on_exit`] are
    /// dropped.
    // N82.
    pub(super) fn end(&self, core: &Loop) {
        self.process.is_program.set(false);
        self.process.has_parent.set(false);
        core.begin_program();
        if self.process.uncaught.is_empty() {
            core.set_panic_handler(None);
        }
        // Tasks are kept: they belong to the loop, which may run again.
        core.drop_queued_calls();
    }
}

impl ProcessState {
    /// Records a deprecation. Returns whether it is the first one with its code.
    pub(super) fn deprecates(&self, code: &'static str) -> bool {
        let mut known = self.deprecations.borrow_mut();
        let is_new = !known.contains(&code);
        if is_new {
            known.push(code);
        }
        is_new
    }

    /// Returns whether an uncaught error goes to listeners: there are some, and none was raised
    /// before.
    fn has_listener(&self) -> bool {
        let has_listeners = !self.uncaught.is_empty() || !self.monitors.is_empty();
        has_listeners && self.uncaught_origin.get().is_none()
    }

    pub(super) fn exit_code(&self) -> Option<i32> {
        self.exit_code.get()
    }

    pub(super) fn set_exit_code(&self, code: i32) {
        self.exit_code.set(Some(code));
    }

    /// Returns whether a listener for uncaught errors has panicked.
    pub(super) fn is_listener_at_fault(&self) -> bool {
        self.is_listener_at_fault.get()
    }

    /// Sets the line that made the promise whose rejection is reported now.
    pub(super) fn set_rejected(&self, site: Option<Site>) {
        self.rejected.set(site);
    }

    /// Returns the line that made the promise whose rejection ends the program.
    pub(super) fn rejected(&self) -> Option<Site> {
        self.rejected.get()
    }

    /// Returns the origin of the error that ends the program.
    pub(super) fn described(&self, reason: &Reason, origin: Origin) -> Option<String> {
        self.describe.get()?(reason, origin)
    }

    /// Takes the engine's text of the error that has ended the program.
    pub(super) fn take_description(&self) -> Option<String> {
        self.description.take()
    }

    pub(super) fn uncaught_origin(&self) -> Origin {
        self.uncaught_origin
            .get()
            .unwrap_or(Origin::UncaughtException)
    }

    pub(super) fn is_program(&self) -> bool {
        self.is_program.get()
    }

    /// Returns whether 'exit' was emitted; ticks are not queued from then on.
    pub(super) fn is_exiting(&self) -> bool {
        self.is_exiting.get()
    }

    /// Returns whether a panic of the program goes to a listener, or to the parent of a worker.
    pub(super) fn receives_panics(&self) -> bool {
        (self.listens() && !self.is_listener_at_fault.get()) || self.has_parent.get()
    }

    /// Returns whether there is a listener for uncaught errors.
    pub(super) fn listens(&self) -> bool {
        !self.uncaught.is_empty()
    }

    pub(super) fn shut_down(&self) {
        #[cfg(unix)]
        self.channel.shut_down();
        self.signals.shut_down();
        self.standard.shut_down();
        self.before_exit.clear();
        self.exit.clear();
        self.uncaught.clear();
        self.monitors.clear();
        self.unhandled.clear();
        self.handled_late.clear();
        self.warning.clear();
    }
}

/// The origin of an uncaught error.
///
/// # Examples
///
/// ```
/// use phaseloop_node::process::{self, Origin};
///
/// fn main() {
///     let exit = phaseloop_node::run(async {
///         process::on_uncaught_exception(|_, origin| {
///             assert_eq!(origin, Origin::UncaughtException);
///             assert_eq!(origin.to_string(), "uncaughtException");
///         });
///         phaseloop::task::next_tick(|| panic!("uncaught"));
///     });
///     assert_eq!(exit.code(), 0);
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// A panic, or [`throw`](super::throw).
    UncaughtException,
    /// A rejected promise without a handler.
    UnhandledRejection,
}

/// Writes Node's name: `uncaughtException` or `unhandledRejection`.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UncaughtException => "uncaughtException",
            Self::UnhandledRejection => "unhandledRejection",
        })
    }
}
