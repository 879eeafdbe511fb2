//! Decides whether the panic hook reports a panic or the program handles it.
//!
//! Node prints nothing for an exception that a listener of `uncaughtException` receives, nor for
//! one that rejects a promise. The default panic hook knows neither, so [`install`] puts a hook in
//! front of it.

use std::cell::Cell;
use std::panic;
use std::sync::Once;

use super::context::Node;
use phaseloop::extension::Loop;

thread_local! {
    /// The number of calls on this thread that catch a panic for a promise, a stream or a caller.
    static CATCHING: Cell<usize> = const { Cell::new(0) };
}

/// Marks a call that catches panics, as long as this value lives.
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

/// Puts a hook in front of the panic hook of the process, once. It prints nothing for panics that
/// the program handles.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    if std::thread::panicking() {
        // A panicking thread cannot set a hook; a later program installs it.
        return;
    }
    INSTALLED.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !is_program_notified() {
                report(info);
            }
        }));
    });
}

/// Returns whether a panic now would reach a listener for uncaught exceptions, or the parent of a
/// worker.
fn is_program_notified() -> bool {
    let is_received = Node::known().is_some_and(|node| node.process.receives_panics());
    is_received && !is_in_plain_task()
}

/// Returns whether the panic is of a spawned task, whose join handle alone receives it.
fn is_in_plain_task() -> bool {
    CATCHING.get() == 0 && Loop::current().is_some_and(|core| core.polls_task())
}

/// Returns whether code of this module, which knows the payload, would catch an error that is
/// thrown now.
pub(super) fn is_looked_at() -> bool {
    let has_program = |node: &Node| node.process.is_program() || node.process.listens();
    CATCHING.get() > 0 || Node::known().is_some_and(|node| has_program(&node))
}
