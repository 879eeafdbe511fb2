//! Who tells of a panic: the panic hook, or those of the program who are handed it.
//!
//! Node prints nothing for an exception that a listener of `uncaughtException` gets, nor for one that a promise carries
//! away from there. The panic hook does not know of either, so [`install`] puts one before it that does.

use std::cell::Cell;
use std::panic;
use std::sync::Once;

use super::context::Node;
use crate::event_loop::core::Core;
use crate::event_loop::current;

thread_local! {
    /// How many calls on this thread catch a panic for a promise, a stream or a caller.
    static CATCHING: Cell<usize> = const { Cell::new(0) };
}

/// A call that catches panics, as long as this lives.
pub(super) struct Catching(());

impl Catching {
    pub(super) fn begin() -> Self {
        CATCHING.set(CATCHING.get() + 1);
        Self(())
    }
}

impl Drop for Catching {
    fn drop(&mut self) {
        CATCHING.set(CATCHING.get() - 1);
    }
}

/// Puts a hook before the process's panic hook, once. It is silent where the program is told.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    if std::thread::panicking() {
        // Hooks cannot be set now; a later program does it.
        return;
    }
    INSTALLED.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !is_program_told() {
                report(info);
            }
        }));
    });
}

/// Whether a panic of this moment goes to a listener for what is uncaught, or to the parent of a worker.
fn is_program_told() -> bool {
    current::with(|core| {
        let Some((core, node)) = core.and_then(|core| Some((core, Node::known(core)?))) else {
            return false;
        };
        node.process.is_told_of_panics() && !is_in_plain_task(core)
    })
}

/// Whether the panic is that of a spawned task, which its handle gets, and only that.
fn is_in_plain_task(core: &Core) -> bool {
    core.polls_task() && CATCHING.get() == 0
}

/// Whether an error that is thrown now is caught by something of this module, which knows what it is.
pub(super) fn is_looked_at() -> bool {
    let has_program = |core: &Core| {
        Node::known(core).is_some_and(|node| node.process.is_program() || node.process.listens())
    };
    CATCHING.get() > 0 || current::with(|core| core.is_some_and(has_program))
}
