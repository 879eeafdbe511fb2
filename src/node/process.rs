//! The events of a program's end, and of what nobody has caught; on Unix its signals and its standard streams.

#[cfg(unix)]
mod channel;
mod once;
#[cfg(unix)]
mod signals;
#[cfg(unix)]
mod stdio;
mod warning;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::resume_unwind;
use std::rc::{Rc, Weak};

#[cfg(unix)]
pub use self::channel::{connected, disconnect, on_disconnect, on_message, send, send_with};
pub use self::once::{
    on_uncaught_exception_monitor, once_before_exit, once_exit, once_rejection_handled,
    once_uncaught_exception, once_unhandled_rejection, once_warning,
};
#[cfg(unix)]
pub use self::signals::{on_signal, once_signal};
#[cfg(unix)]
pub use self::stdio::{stderr, stdin, stdout};
pub use self::warning::Warning;
use super::context::Node;
use super::reason::Reason;
use super::report;
use crate::event_loop::extension::Core;
use crate::event_loop::extension::Entry;
use crate::raw::call::Call;
use crate::raw::task::Payload;
use crate::turn::Phase;

/// What the program has asked to be told.
#[derive(Default)]
pub(super) struct ProcessState {
    before_exit: Listeners<i32>,
    exit: Listeners<i32>,
    uncaught: Listeners<(Reason, Origin)>,
    /// Told before those, and not instead of anything.
    monitors: Listeners<(Reason, Origin)>,
    pub(super) unhandled: Listeners<Reason>,
    pub(super) handled_late: Listeners<Reason>,
    warning: Listeners<Warning>,
    exit_code: Cell<Option<i32>>,
    is_exiting: Cell<bool>,
    /// What the listeners of something uncaught are being told, or nobody wanted to be told.
    uncaught_origin: Cell<Option<Origin>>,
    /// A listener of something uncaught has panicked.
    is_listener_at_fault: Cell<bool>,
    #[cfg(unix)]
    channel: channel::ParentChannel,
    #[cfg(unix)]
    signals: signals::SignalListeners,
    #[cfg(unix)]
    standard: stdio::StandardStreams,
    /// Whether `run` is there to return the code.
    is_program: Cell<bool>,
    /// Whether the program is a worker, whose parent is told what ends it.
    has_parent: Cell<bool>,
}

/// Calls `listener` when the loop has run dry, with the exit code (N81).
///
/// If that gives the loop something to do, it goes on, and the event comes again later. Ticks and microtasks alone do not
/// revive it. Not called after [`exit`].
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn on_before_exit(mut listener: impl FnMut(i32) + 'static) -> Listener {
    Node::current().listen(|process| &process.before_exit, move |&code| listener(code))
}

/// Calls `listener` at the very end, with the exit code (N82).
///
/// When the program has ended by itself, the microtasks that the listeners queue still run, and those that these queue.
/// Nothing else runs any more: no tick, no timer, no I/O, and after [`exit`] or something uncaught no microtask either.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn on_exit(mut listener: impl FnMut(i32) + 'static) -> Listener {
    Node::current().listen(|process| &process.exit, move |&code| listener(code))
}

/// Calls `listener` with a panic of a callback, a tick or a microtask that nothing has caught, and with the reason of a
/// rejected promise that nobody handles. Node's `'uncaughtException'`.
///
/// With a listener the loop goes on where Node's would (N70–N78): after a callback with the next one of the phase, after
/// a tick with the next callback, after a microtask with the next microtask. Without one the program ends with the code 1,
/// if [`run`](super::run) runs it; otherwise the panic comes out of the call that runs the loop.
///
/// A panic of a task is none of these: its [`JoinHandle`](crate::JoinHandle) has it.
///
/// # Panics
///
/// When no loop runs on this thread. A panic of the listener ends the program with the code 7, at once and without the
/// listeners of [`on_exit`].
///
/// # Examples
///
/// ```
/// use phaseloop::node::{process, run, set_immediate, throw};
///
/// let exit = run(async {
///     process::on_uncaught_exception(|error, _origin| println!("caught {error}"));
///     set_immediate(|| throw("the first"));
///     set_immediate(|| println!("the second runs"));
/// });
/// assert_eq!(exit.code(), 0);
/// ```
pub fn on_uncaught_exception(mut listener: impl FnMut(&Reason, Origin) + 'static) -> Listener {
    let node = Node::current();
    node.contain_panics();
    node.listen(
        |process| &process.uncaught,
        move |(reason, origin)| listener(reason, *origin),
    )
}

/// Calls `listener` with the reason of each rejected promise that nobody handles, when the lanes are empty (N23).
///
/// Without a listener the reason goes to those of [`on_uncaught_exception`].
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn on_unhandled_rejection(listener: impl FnMut(&Reason) + 'static) -> Listener {
    Node::current().listen(|process| &process.unhandled, listener)
}

/// Calls `listener` when a rejection that was reported as unhandled is handled after all (N23).
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn on_rejection_handled(listener: impl FnMut(&Reason) + 'static) -> Listener {
    Node::current().listen(|process| &process.handled_late, listener)
}

/// Calls `listener` with each warning. Without a listener, they go to standard error.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn on_warning(listener: impl FnMut(&Warning) + 'static) -> Listener {
    Node::current().listen(|process| &process.warning, listener)
}

/// Emits a warning, by a tick.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn emit_warning(name: &str, text: impl Into<String>) {
    Warning::new(name, text).emit();
}

/// Ends the program at once (N83): the listeners of [`on_exit`] are called, and nothing else any more.
///
/// It unwinds to [`run`](super::run), which returns the code. The process goes on.
///
/// # Panics
///
/// When no loop runs on this thread. On a loop that `run` does not run, a line on standard error says so, and the unwinding
/// goes out of the call that does.
pub fn exit(code: i32) -> ! {
    let node = Node::current();
    if !node.process.is_program.get() {
        eprintln!("phaseloop: process::exit({code}) was called outside of node::run");
    }
    node.process.exit_code.set(Some(code));
    node.emit_exit(code);
    if let Some(core) = node.core() {
        core.exit_program();
    }
    resume_unwind(Box::new(ExitRequest))
}

/// The code that the program will end with, if one was set.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
pub fn exit_code() -> Option<i32> {
    Node::current().process.exit_code.get()
}

/// Sets the code that the program will end with when it ends by itself.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn set_exit_code(code: i32) {
    Node::current().process.exit_code.set(Some(code));
}

/// What [`exit`] unwinds with.
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

    /// What takes the listener `id` off again.
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

    /// Lets the loop's uncaught panics come here.
    fn contain_panics(self: &Rc<Self>) {
        report::install();
        let node = Rc::downgrade(self);
        if let Some(core) = self.core() {
            let handler = move |payload: Payload| match Weak::upgrade(&node) {
                Some(node) if !payload.is::<ExitRequest>() && node.process.is_told() => {
                    node.uncaught(Reason::from_panic(payload), Origin::UncaughtException);
                }
                _ => resume_unwind(payload),
            };
            core.set_panic_handler(Some(Rc::new(handler)));
        }
    }

    /// Tells the listeners of something uncaught, or raises it.
    pub(super) fn uncaught(&self, reason: Reason, origin: Origin) {
        let uncaught = (reason, origin);
        let process = &self.process;
        // Found like this if a listener panics.
        process.is_listener_at_fault.set(true);
        process.monitors.emit(&uncaught);
        let was_told = process.uncaught.emit(&uncaught);
        process.is_listener_at_fault.set(false);
        if !was_told {
            process.uncaught_origin.set(Some(origin));
            uncaught.0.raise();
        }
        // One more turn of the loop is certain (N78).
        if let Some(core) = self.core() {
            core.enqueue(Phase::Check, Entry::Call(Call::new(|| ())));
        }
    }

    /// The program is over: nothing of the lanes runs.
    pub(super) fn drop_lanes(&self) {
        if let Some(core) = self.core() {
            core.drop_lanes();
        }
    }

    pub(super) fn emit_before_exit(&self) {
        let code = self.process.exit_code.get().unwrap_or(0);
        self.process.before_exit.emit(&code);
    }

    /// Tells of the end of a program that has ended by itself, then runs the microtasks that this has queued (N82).
    pub(super) fn emit_natural_exit(&self, core: &Core, code: i32) {
        if core.contain(|| self.emit_exit(code)).is_some() {
            core.drain_microtasks();
        }
    }

    /// Tells of the end, once.
    pub(super) fn emit_exit(&self, code: i32) {
        if !self.process.is_exiting.replace(true) {
            self.process.exit.emit(&code);
        }
    }

    /// A program begins: the end of another on this loop is forgotten. Panics come here from the start, since a listener
    /// may be added by the very callback that panics.
    pub(super) fn begin(self: &Rc<Self>, core: &Core, has_parent: bool) {
        self.process.has_parent.set(has_parent);
        self.process.is_program.set(true);
        self.process.is_exiting.set(false);
        self.process.exit_code.set(None);
        self.process.uncaught_origin.set(None);
        self.process.is_listener_at_fault.set(false);
        core.begin_program();
        self.contain_panics();
    }

    /// The program is over; the loop may go on. What the listeners of [`on_exit`] have queued is dropped (N82).
    pub(super) fn end(&self, core: &Core) {
        self.process.is_program.set(false);
        self.process.has_parent.set(false);
        core.begin_program();
        if self.process.uncaught.is_empty() {
            core.set_panic_handler(None);
        }
        // Tasks stay: they belong to the loop, which may run again.
        core.drop_queued_calls();
    }
}

impl ProcessState {
    /// Whether something uncaught is to be told to listeners, and has not been.
    fn is_told(&self) -> bool {
        let has_listeners = !self.uncaught.is_empty() || !self.monitors.is_empty();
        has_listeners && self.uncaught_origin.get().is_none()
    }

    pub(super) fn exit_code(&self) -> Option<i32> {
        self.exit_code.get()
    }

    pub(super) fn set_exit_code(&self, code: i32) {
        self.exit_code.set(Some(code));
    }

    /// Whether it was a listener of something uncaught that has panicked.
    pub(super) fn is_listener_at_fault(&self) -> bool {
        self.is_listener_at_fault.get()
    }

    /// Where what ends the program comes from.
    pub(super) fn uncaught_origin(&self) -> Origin {
        self.uncaught_origin
            .get()
            .unwrap_or(Origin::UncaughtException)
    }

    pub(super) fn is_program(&self) -> bool {
        self.is_program.get()
    }

    /// Whether the end was announced: from then on ticks are not queued.
    pub(super) fn is_exiting(&self) -> bool {
        self.is_exiting.get()
    }

    /// Whether a panic of the program goes to a listener, or to the parent of a worker.
    pub(super) fn is_told_of_panics(&self) -> bool {
        (self.listens() && !self.is_listener_at_fault.get()) || self.has_parent.get()
    }

    /// Whether there is a listener for what is uncaught.
    pub(super) fn listens(&self) -> bool {
        !self.uncaught.is_empty()
    }

    pub(super) fn shut_down(&self) {
        #[cfg(unix)]
        self.channel.shut_down();
        #[cfg(unix)]
        self.signals.shut_down();
        #[cfg(unix)]
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

/// Where something uncaught comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// A panic, or [`throw`](super::throw).
    UncaughtException,
    /// A rejected promise that nobody handled.
    UnhandledRejection,
}

/// As Node calls it: `uncaughtException` or `unhandledRejection`.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UncaughtException => "uncaughtException",
            Self::UnhandledRejection => "unhandledRejection",
        })
    }
}

/// A registered listener. Dropping this leaves it registered.
pub struct Listener {
    remove: Box<dyn Fn() -> bool>,
}

impl Listener {
    /// Takes the listener back. `false`: that has happened, or the loop is gone.
    pub fn remove(&self) -> bool {
        (self.remove)()
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

type Listening<E> = RefCell<dyn FnMut(&E)>;

/// The listeners of one event, in the order of registration.
pub(super) struct Listeners<E> {
    list: RefCell<Vec<(u64, Rc<Listening<E>>)>>,
    next_id: Cell<u64>,
}

impl<E> Default for Listeners<E> {
    fn default() -> Self {
        Self {
            list: RefCell::default(),
            next_id: Cell::new(0),
        }
    }
}

impl<E> Listeners<E> {
    fn add(&self, listener: impl FnMut(&E) + 'static) -> u64 {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        let entry = (id, Rc::new(RefCell::new(listener)) as Rc<Listening<E>>);
        self.list.borrow_mut().push(entry);
        id
    }

    fn remove(&self, id: u64) -> bool {
        let mut list = self.list.borrow_mut();
        let index = list.iter().position(|entry| entry.0 == id);
        let removed = index.map(|index| list.remove(index));
        // The drop of the listener may be anybody's code.
        drop(list);
        removed.is_some()
    }

    fn is_empty(&self) -> bool {
        self.list.borrow().is_empty()
    }

    /// Calls those that are registered now. `false`: there are none.
    pub(super) fn emit(&self, event: &E) -> bool {
        let list: Vec<_> = self
            .list
            .borrow()
            .iter()
            .map(|entry| entry.1.clone())
            .collect();
        for listener in &list {
            // One that is being called, and has caused the same event, is not called again.
            if let Ok(mut listener) = listener.try_borrow_mut() {
                listener(event);
            }
        }
        !list.is_empty()
    }

    fn clear(&self) {
        drop(self.list.take());
    }
}
