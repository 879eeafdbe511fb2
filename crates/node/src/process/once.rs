//! Listeners that are called once. JavaScript: `process.once('exit', ..)`.

use std::cell::Cell;
use std::rc::{Rc, Weak};

use super::warning::Warning;
use super::{Listener, Listeners, Origin, ProcessState};
use crate::context::Node;
use crate::reason::Reason;

impl Node {
    /// Adds a listener that is removed right before it is called.
    fn listen_once<E: 'static>(
        self: &Rc<Self>,
        event: fn(&ProcessState) -> &Listeners<E>,
        listener: impl FnOnce(&E) + 'static,
    ) -> Listener {
        let (listener, id) = (Cell::new(Some(listener)), Rc::new(Cell::new(None)));
        let (node, own_id) = (Rc::downgrade(self), id.clone());
        let added = event(&self.process).add(move |argument: &E| {
            if let (Some(node), Some(id)) = (Weak::upgrade(&node), own_id.take()) {
                event(&node.process).remove(id);
            }
            if let Some(listener) = listener.take() {
                listener(argument);
            }
        });
        id.set(Some(added));
        self.listener(event, added)
    }
}

/// Calls `listener` the first time that the loop has no work left; see
/// [`on_before_exit`](super::on_before_exit). JavaScript: `process.once('beforeExit', ..)`.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, process, run, set_immediate};
///
/// fn main() -> Exit<()> {
///     run(async {
///         // `on_before_exit` would go on for ever.
///         process::once_before_exit(|_| {
///             set_immediate(|| println!("one more turn"));
///         });
///     })
/// }
/// ```
pub fn once_before_exit(listener: impl FnOnce(i32) + 'static) -> Listener {
    Node::current().listen_once(|process| &process.before_exit, move |&code| listener(code))
}

/// Calls `listener` when the program ends; see [`on_exit`](super::on_exit). JavaScript:
/// `process.once('exit', ..)`.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn once_exit(listener: impl FnOnce(i32) + 'static) -> Listener {
    Node::current().listen_once(|process| &process.exit, move |&code| listener(code))
}

/// Calls `listener` with the first uncaught error. The next one ends the program, unless another
/// listener exists. JavaScript: `process.once('uncaughtException', ..)`.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn once_uncaught_exception(listener: impl FnOnce(&Reason, Origin) + 'static) -> Listener {
    let node = Node::current();
    node.contain_panics();
    node.listen_once(
        |process| &process.uncaught,
        move |(reason, origin)| listener(reason, *origin),
    )
}

/// Calls `listener` with the first unhandled rejection; see
/// [`on_unhandled_rejection`](super::on_unhandled_rejection). JavaScript:
/// `process.once('unhandledRejection', ..)`.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn once_unhandled_rejection(listener: impl FnOnce(&Reason) + 'static) -> Listener {
    Node::current().listen_once(|process| &process.unhandled, listener)
}

/// Calls `listener` with the first rejection that is handled late; see
/// [`on_rejection_handled`](super::on_rejection_handled). JavaScript:
/// `process.once('rejectionHandled', ..)`.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn once_rejection_handled(listener: impl FnOnce(&Reason) + 'static) -> Listener {
    Node::current().listen_once(|process| &process.handled_late, listener)
}

/// Calls `listener` with the next warning; see [`on_warning`](super::on_warning). JavaScript:
/// `process.once('warning', ..)`.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn once_warning(listener: impl FnOnce(&Warning) + 'static) -> Listener {
    Node::current().listen_once(|process| &process.warning, listener)
}

/// Calls `listener` with each uncaught error, before the listeners of
/// [`on_uncaught_exception`](super::on_uncaught_exception). It does not count as a handler: the
/// error still ends the program if there is no other listener. JavaScript:
/// `process.on('uncaughtExceptionMonitor', ..)`.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{process, run, set_immediate, throw};
///
/// fn main() {
///     let exit = run(async {
///         process::on_uncaught_exception_monitor(|error, _origin| println!("seen: {error}"));
///         set_immediate(|| throw("the end"));
///     });
///     assert_eq!(exit.code(), 1);
/// }
/// ```
pub fn on_uncaught_exception_monitor(
    mut listener: impl FnMut(&Reason, Origin) + 'static,
) -> Listener {
    let node = Node::current();
    node.contain_panics();
    node.listen(
        |process| &process.monitors,
        move |(reason, origin)| listener(reason, *origin),
    )
}
