//! A program from its first line to its exit code.
//!
//! ```text
//!   main, up to its first await ─> drain ─> the loop, until it runs dry ─> beforeExit ─> drain ─┬─> exit
//!                                             └────────────── alive again ─────────────────────┘
//! ```

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::process::{ExitCode, Termination};
use std::rc::Rc;

use super::context::Node;
use super::process::{ExitRequest, Origin};
use super::reason::Thrown;
use crate::event_loop::api::block_on::{describe_pending, with_main_future};
use crate::event_loop::core::Core;
use crate::event_loop::current;
use crate::event_loop::{EventLoop, RunMode};
use crate::raw::task::Payload;
use crate::raw::unwind::discard;
use crate::site::Site;

/// The exit code of a program whose main future was pending when the loop ran dry.
const UNSETTLED_MAIN: i32 = 13;

/// The exit code of a program that is ended by a panic or a rejection.
const UNCAUGHT: i32 = 1;

/// The exit code of a program that is ended by a listener of those.
const LISTENER_AT_FAULT: i32 = 7;

/// Runs `main` as a Node program, on a loop made for it.
///
/// The first poll of `main` is the main program: a drain of the lanes follows, then the loop starts (N5). The program
/// ends when nothing is left that could happen; [`process`](super::process) has the events of the end.
///
/// # What nobody catches
///
/// A panic of a callback, a tick or a microtask, and a promise that is rejected and not handled, end the program as in
/// Node: the listeners of [`on_exit`](super::process::on_exit) are told the code 1, standard error says what it was, and
/// the [`Exit`] has the code. If nobody looks at that either, the panic goes on when the `Exit` is dropped.
///
/// # Panics
///
/// When the system has no descriptors left for a loop, and when called while a loop runs on this thread.
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
    let exit = run_at(event_loop, main, Location::caller(), false);
    if let Some(payload) = exit.uncaught.take() {
        tell(&Node::of(event_loop.handle().core()), &payload);
        exit.uncaught.set(Some(payload));
    }
    exit
}

/// The program of a worker: what ends it is for its parent to tell.
pub(super) fn run_worker<F: Future>(
    event_loop: &mut EventLoop,
    main: F,
    site: Site,
) -> Exit<F::Output> {
    run_at(event_loop, main, site, true)
}

#[track_caller]
fn run_at<F: Future>(
    event_loop: &mut EventLoop,
    main: F,
    site: Site,
    has_parent: bool,
) -> Exit<F::Output> {
    let core = event_loop.handle().core().clone();
    // Panics here, before anything has begun, if a loop runs on this thread.
    current::refuse_inside_a_run();
    let node = Node::of(&core);
    node.begin(&core, has_parent);
    let mut exit_code = 0;
    let (output, ended) = with_main_future(&core, main, site, |is_done| {
        catch_unwind(AssertUnwindSafe(|| {
            live(&core, &node);
            if !core.panic_policy.program_has_exited() {
                let by_itself = if is_done() { 0 } else { UNSETTLED_MAIN };
                exit_code = node.process.exit_code().unwrap_or(by_itself);
                core.running(|| node.emit_natural_exit(&core, exit_code));
                // A listener may have set another.
                exit_code = node.process.exit_code().unwrap_or(exit_code);
            }
        }))
    });
    let mut uncaught = None;
    if let Err(payload) = ended {
        if !payload.is::<ExitRequest>() {
            exit_code = fail(&core, &node);
            uncaught = Some(payload);
        }
    }
    if core.panic_policy.program_has_exited() {
        exit_code = node.process.exit_code().unwrap_or(0);
    }
    node.end(&core);
    let pending = || describe_pending(site, &core.tasks.list());
    Exit {
        code: exit_code,
        pending: output.is_none().then(pending),
        output,
        uncaught: Cell::new(uncaught),
    }
}

/// The main program, then the loop, until it is not to be revived.
fn live(core: &Rc<Core>, node: &Node) {
    core.running(|| {
        core.contain(|| core.main_future.call());
        // Also if it has panicked (N77).
        core.contain(|| core.drain());
    });
    while !core.panic_policy.program_has_exited() {
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

/// Nobody has caught the panic: it ends the program. Returns the exit code.
fn fail(core: &Rc<Core>, node: &Node) -> i32 {
    if node.process.is_listener_at_fault() {
        return LISTENER_AT_FAULT;
    }
    // Whatever was set before; the listeners of the end may set another.
    node.process.set_exit_code(UNCAUGHT);
    core.panic_policy.begin();
    let told = catch_unwind(AssertUnwindSafe(|| {
        core.running(|| node.emit_exit(UNCAUGHT));
    }));
    // A panic there changes nothing: the first one counts.
    if let Err(payload) = told {
        discard(payload);
    }
    node.process.exit_code().unwrap_or(UNCAUGHT)
}

/// Says what has ended the program, and where it came from. The panic hook has told of panics.
fn tell(node: &Node, payload: &Payload) {
    let text = payload.downcast_ref::<Thrown>().map(Thrown::text);
    match (node.process.uncaught_origin(), text) {
        (Origin::UnhandledRejection, Some(text)) => {
            eprintln!("phaseloop: a promise was rejected and nobody handled it: {text}");
        }
        (Origin::UnhandledRejection, None) => {
            eprintln!("phaseloop: the panic has rejected a promise, and nobody handled that");
        }
        (Origin::UncaughtException, Some(text)) => eprintln!("phaseloop: uncaught: {text}"),
        (Origin::UncaughtException, None) => {}
    }
}

/// How a program ended. A `main` function may return it: the process then has its [code](Self::code).
///
/// ```no_run
/// use phaseloop::node::{Exit, run};
///
/// fn main() -> Exit<()> {
///     run(async { println!("hello") })
/// }
/// ```
///
/// If the program was ended by a panic that nobody caught, and nobody asks for the code, that panic goes on when this is
/// dropped: it does not get lost, and a test that runs a program fails by it.
pub struct Exit<T> {
    code: i32,
    /// What was pending if the main future was.
    pending: Option<Box<str>>,
    output: Option<T>,
    /// What nobody has caught, until somebody has seen the code.
    uncaught: Cell<Option<Payload>>,
}

impl<T> Exit<T> {
    /// The exit code: that of [`exit`](super::process::exit) or [`set_exit_code`](super::process::set_exit_code), or 1 if a
    /// panic or a rejection that nobody caught has ended the program, 7 if a listener of those has, 13 if the loop ran dry
    /// while the main future was pending, or 0.
    #[must_use]
    pub fn code(&self) -> i32 {
        drop(self.uncaught.take());
        self.code
    }

    /// What nobody has caught, for somebody who will tell.
    pub(super) fn take_uncaught(&self) -> Option<Payload> {
        self.uncaught.take()
    }

    /// What the main future returned; `None` if it did not.
    ///
    /// # Panics
    ///
    /// With the panic that has ended the program, unless somebody has asked for the [`code`](Self::code).
    #[must_use]
    pub fn into_output(mut self) -> Option<T> {
        self.output.take()
    }
}

impl<T> Drop for Exit<T> {
    fn drop(&mut self) {
        if let Some(payload) = self.uncaught.take() {
            if !std::thread::panicking() {
                resume_unwind(payload);
            }
        }
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
        ExitCode::from(self.code() as u8)
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
