//! A program from its first line to its exit code.
//!
//! ```text
//!   main, up to its first await ─> drain ─> the loop, until it runs dry ─> beforeExit ─> drain ─┬─> exit
//!                                             └────────────── alive again ─────────────────────┘
//! ```

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::process::{ExitCode, Termination};
use std::rc::Rc;

use super::process::ExitRequest;
use super::reason::Thrown;
use super::state::Node;
use crate::event_loop::core::Core;
use crate::event_loop::current;
use crate::event_loop::root::{describe_pending, with_root};
use crate::event_loop::{EventLoop, RunMode};
use crate::sys::task::Payload;

/// The exit code of a program whose main future was pending when the loop ran dry.
const UNSETTLED_MAIN: i32 = 13;

/// The exit code that listeners are told when a panic ends the program.
const UNCAUGHT: i32 = 1;

/// Runs `main` as a Node program, on a loop made for it.
///
/// The first poll of `main` is the main program: a drain of the lanes follows, then the loop starts (N5). The program
/// ends when nothing is left that could happen; [`process`](super::process) has the events of the end.
///
/// # Panics
///
/// When the system has no descriptors left for a loop, when called while a loop runs on this thread, and with a panic
/// that nobody catches; `'exit'` is emitted first.
///
/// # Examples
///
/// ```
/// use phaseloop::node;
///
/// let exit = node::run(async { 6 * 7 });
/// assert_eq!(exit.code(), 0);
/// assert_eq!(exit.into_output(), Some(42));
///
/// let stuck = node::run(std::future::pending::<()>());
/// assert_eq!(stuck.code(), 13);
/// ```
#[track_caller]
pub fn run<F: Future>(main: F) -> Exit<F::Output> {
    match EventLoop::new() {
        Ok(mut event_loop) => run_on(&mut event_loop, main),
        Err(error) => panic!("cannot make an event loop: {error}"),
    }
}

/// The same on a loop of the caller's, for its options: a paused clock, a pool of its own.
///
/// # Panics
///
/// As [`run`].
#[track_caller]
pub fn run_on<F: Future>(event_loop: &mut EventLoop, main: F) -> Exit<F::Output> {
    let core = event_loop.handle().core().clone();
    // Panics here, before anything has begun, if a loop runs on this thread.
    current::refuse_inside_a_run();
    let node = Node::of(&core);
    node.begin(&core);
    let (mut exit_code, site) = (0, Location::caller());
    let (output, ended) = with_root(&core, main, site, |is_done| {
        catch_unwind(AssertUnwindSafe(|| {
            live(&core, &node);
            if !core.containment.has_ended() {
                let by_itself = if is_done() { 0 } else { UNSETTLED_MAIN };
                exit_code = node.process.exit_code().unwrap_or(by_itself);
                core.running(|| node.emit_exit(exit_code));
            }
        }))
    });
    if let Err(payload) = ended {
        if !payload.is::<ExitRequest>() {
            fail(&core, &node, payload);
        }
    }
    if core.containment.has_ended() {
        exit_code = node.process.exit_code().unwrap_or(0);
    }
    node.end(&core);
    let pending = || describe_pending(site, &core.tasks.list());
    Exit {
        code: exit_code,
        pending: output.is_none().then(pending),
        output,
    }
}

/// The main program, then the loop, until it is not to be revived.
fn live(core: &Rc<Core>, node: &Node) {
    core.running(|| {
        core.contain(|| core.root.call());
        // Also if it has panicked (N77).
        core.contain(|| core.drain());
    });
    while !core.containment.has_ended() {
        if let Err(error) = core.run(RunMode::Default) {
            panic!("the event queue of the loop failed: {error}");
        }
        if core.was_stopped.get() {
            return;
        }
        core.running(|| {
            if core.contain(|| node.emit_before_exit()).is_some() {
                core.contain(|| core.drain());
            }
        });
        if !core.is_alive() {
            return;
        }
    }
}

/// Nobody has caught the panic: it ends the program.
fn fail(core: &Rc<Core>, node: &Node, payload: Payload) -> ! {
    node.end(core);
    core.running(|| node.emit_exit(node.process.exit_code().unwrap_or(UNCAUGHT)));
    if let Some(thrown) = payload.downcast_ref::<Thrown>() {
        // The panic hook has not told.
        eprintln!("phaseloop: uncaught: {}", thrown.0);
    }
    resume_unwind(payload)
}

/// How a program ended. A `main` function may return it.
#[must_use = "it holds the exit code; return it from `main`, or drop it"]
pub struct Exit<T> {
    code: i32,
    /// What was pending if the main future was.
    pending: Option<Box<str>>,
    output: Option<T>,
}

impl<T> Exit<T> {
    /// The exit code: that of [`exit`](super::process::exit) or [`set_exit_code`](super::process::set_exit_code), or 13 if
    /// the loop ran dry while the main future was pending, or 0.
    #[must_use]
    pub fn code(&self) -> i32 {
        self.code
    }

    /// What the main future returned; `None` if it did not.
    #[must_use]
    pub fn into_output(self) -> Option<T> {
        self.output
    }
}

impl<T> Termination for Exit<T> {
    fn report(self) -> ExitCode {
        if let (UNSETTLED_MAIN, Some(pending)) = (self.code, &self.pending) {
            eprintln!(
                "phaseloop: nothing is left that could wake what is still pending: {pending}"
            );
        }
        // As the system does: the low eight bits.
        ExitCode::from(self.code as u8)
    }
}

impl<T> fmt::Debug for Exit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exit")
            .field("code", &self.code)
            .field("returned", &self.output.is_some())
            .finish()
    }
}
