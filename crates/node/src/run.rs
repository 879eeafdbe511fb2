//! Runs a Node program, from its main function to its exit code.
//!
//! ```text
//!   main, up to its first await ─> drain ─> the loop, until done ─> beforeExit ─> drain ─┬─> exit
//!                                              └─────────── alive again ─────────────────┘
//! ```

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::process::{ExitCode, Termination};

use super::context::Node;
use super::process::{ExitRequest, Origin};
use super::reason::Thrown;
use crate::site::{Site, line_of};
use phaseloop::EventLoop;
use phaseloop::extension::Loop;
use phaseloop::extension::Payload;
use phaseloop::extension::discard;
use phaseloop::extension::stderr;

/// The exit code of a program whose main future was pending when nothing kept the loop alive.
const UNSETTLED_MAIN: i32 = 13;

/// The exit code of a program that an uncaught panic or an unhandled rejection has ended.
const UNCAUGHT: i32 = 1;

/// The exit code of a program that a panic of a listener for those has ended.
const LISTENER_AT_FAULT: i32 = 7;

/// Runs `main` as a Node program, on a loop of its own.
///
/// The first poll of `main` is the main program. A drain of the lanes follows, then the loop
/// starts. The program ends when nothing keeps the loop alive; [`process`](super::process) has the
/// events of the exit.
///
/// # Uncaught errors
///
/// A panic of a callback, a tick or a microtask, and a rejected promise without a handler, end the
/// program as in Node. The listeners of [`on_exit`](super::process::on_exit) receive the code 1,
/// the error is printed to standard error, and the [`Exit`] has the code. If the code is not read
/// either, the panic resumes when the `Exit` is dropped.
///
/// # Panics
///
/// When the loop cannot be created (an OS error of `epoll_create1` or `eventfd`, such as `EMFILE`),
/// and when a loop already runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node as node;
///
/// fn main() {
///     let exit = node::run(async { 6 * 7 });
///     assert_eq!(exit.code(), 0);
///     assert_eq!(exit.into_output(), Some(42));
///
///     let stuck = node::run(std::future::pending::<()>());
///     assert_eq!(stuck.code(), 13);
/// }
/// ```
#[track_caller]
pub fn run<F: Future>(main: F) -> Exit<F::Output> {
    match EventLoop::new() {
        Ok(mut event_loop) => run_on(&mut event_loop, main),
        Err(error) => panic!("cannot create an event loop: {error}"),
    }
}

/// Runs `main` as a Node program on an existing loop, for example one with a paused clock or a pool
/// of its own; otherwise like [`run`].
///
/// # Panics
///
/// When a loop already runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::EventLoop;
/// use phaseloop_node as node;
///
/// fn main() -> std::io::Result<()> {
///     let mut event_loop = EventLoop::new()?;
///     let exit = node::run_on(&mut event_loop, async { 6 * 7 });
///     assert_eq!(exit.into_output(), Some(42));
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn run_on<F: Future>(event_loop: &mut EventLoop, main: F) -> Exit<F::Output> {
    let exit = run_at(event_loop, main, Location::caller(), false);
    if let Some(mut payload) = exit.uncaught.take() {
        report(&Node::of(&Loop::of(&event_loop.handle())), &mut payload);
        exit.uncaught.set(Some(payload));
    }
    exit
}

/// Runs the program of a worker. Its parent reports an uncaught error.
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
    let core = Loop::of(&event_loop.handle());
    // This panics before anything has begun, if a loop runs on this thread.
    Loop::refuse_inside_a_run();
    let node = Node::of(&core);
    node.begin(&core, has_parent);
    let mut exit_code = 0;
    let (output, ended) = core.with_main_future(main, site, |is_done| {
        catch_unwind(AssertUnwindSafe(|| {
            live(&core, &node);
            if !core.program_has_exited() {
                let by_itself = if is_done() { 0 } else { UNSETTLED_MAIN };
                exit_code = node.process.exit_code().unwrap_or(by_itself);
                core.running(|| node.emit_natural_exit(&core, exit_code));
                // A listener may have set another code.
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
    if core.program_has_exited() {
        exit_code = node.process.exit_code().unwrap_or(0);
    }
    node.end(&core);
    let pending = || core.describe_pending(site);
    Exit {
        code: exit_code,
        pending: output.is_none().then(pending),
        output,
        uncaught: Cell::new(uncaught),
    }
}

/// Runs the main program, then the loop, until `beforeExit` does not revive it.
fn live(core: &Loop, node: &Node) {
    core.running(|| {
        core.contain(|| core.begin_main_future());
        // The drain also runs if the main program has panicked (N77).
        core.contain(|| core.drain());
    });
    node.timeline.begin_loop(core);
    while !core.program_has_exited() {
        if let Err(error) = core.run() {
            panic!("the event queue of the loop failed: {error}");
        }
        if core.was_stopped() {
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

/// Ends the program after an uncaught panic. Returns the exit code.
fn fail(core: &Loop, node: &Node) -> i32 {
    if node.process.is_listener_at_fault() {
        return LISTENER_AT_FAULT;
    }
    // This replaces any code that was set before. The listeners of `exit` may set another.
    node.process.set_exit_code(UNCAUGHT);
    core.begin_program();
    let emitted = catch_unwind(AssertUnwindSafe(|| {
        core.running(|| node.emit_exit(UNCAUGHT));
    }));
    // A panic of these listeners is dropped: the first panic counts.
    if let Err(payload) = emitted {
        discard(payload);
    }
    node.process.exit_code().unwrap_or(UNCAUGHT)
}

/// Prints the error that has ended the program, and its origin. The panic hook has already printed
/// panics.
fn report(node: &Node, payload: &mut Payload) {
    let origin = node.process.uncaught_origin();
    let mut thrown = payload.downcast_mut::<Thrown>();
    let described = || node.process.described(thrown.as_mut()?.reason()?, origin);
    if let Some(text) = node.process.take_description().or_else(described) {
        stderr::print(format_args!("{text}"));
        return;
    }
    match (origin, thrown.map(Thrown::describe)) {
        (Origin::UnhandledRejection, Some(text)) => {
            let line = line_of("of the promise at", node.process.rejected());
            stderr::print(format_args!("phaseloop: unhandled rejection: {text}{line}"));
        }
        (Origin::UnhandledRejection, None) => {
            stderr::print(format_args!(
                "phaseloop: unhandled rejection: the panic above has rejected a promise{}",
                line_of("of the promise at", node.process.rejected())
            ));
        }
        (Origin::UncaughtException, Some(text)) => {
            stderr::print(format_args!("phaseloop: uncaught: {text}"));
        }
        (Origin::UncaughtException, None) => {}
    }
}

/// The outcome of a program. If `main` returns it, the process exits with its [code](Self::code).
/// If that is 0 and the main future has returned an `Err`, the error is printed, and the process
/// exits with 1.
///
/// That is when the loop is empty: a server that listens keeps a program alive whose main future
/// has failed. A panic of the main future ends the program at once.
///
/// ```no_run
/// use phaseloop_node::{Exit, run};
///
/// fn main() -> Exit<()> {
///     run(async { println!("hello") })
/// }
/// ```
///
/// If an uncaught panic has ended the program and the code is not read, the panic resumes when this
/// is dropped. It is not lost, and a test that runs such a program fails.
pub struct Exit<T> {
    code: i32,
    /// A description of the pending tasks, if the main future was pending.
    pending: Option<Box<str>>,
    output: Option<T>,
    /// The uncaught panic, until the code is read.
    uncaught: Cell<Option<Payload>>,
}

impl<T> Exit<T> {
    /// The exit code: the one of [`exit`](super::process::exit) or
    /// [`set_exit_code`](super::process::set_exit_code). Otherwise it is 1 if an uncaught panic or
    /// an unhandled rejection has ended the program, 7 if a listener for those has panicked, 13 if
    /// the loop ran out of work while the main future was pending, or 0.
    #[must_use]
    pub fn code(&self) -> i32 {
        drop(self.uncaught.take());
        self.code
    }

    /// Takes the uncaught panic, for a caller that reports it.
    pub(super) fn take_uncaught(&self) -> Option<Payload> {
        self.uncaught.take()
    }

    /// The output of the main future; `None` if it did not complete.
    ///
    /// # Panics
    ///
    /// With the panic that has ended the program, unless the [`code`](Self::code) was read.
    #[must_use]
    pub fn into_output(mut self) -> Option<T> {
        self.output.take()
    }
}

impl<T> Drop for Exit<T> {
    fn drop(&mut self) {
        if let Some(payload) = self.uncaught.take() {
            if !std::thread::panicking() {
                stderr::print(format_args!(
                    "phaseloop: an uncaught error has ended the program, and its Exit was dropped: \
                     the error goes on as a panic (return the Exit from main, or read its code)"
                ));
                resume_unwind(payload);
            }
        }
    }
}

impl<T: Termination> Termination for Exit<T> {
    fn report(mut self) -> ExitCode {
        if let (UNSETTLED_MAIN, Some(pending)) = (self.code, &self.pending) {
            stderr::print(format_args!(
                "phaseloop: nothing is left that could wake what is still pending: {pending}"
            ));
        }
        match self.code() {
            0 => self.output.take().map_or(ExitCode::SUCCESS, T::report),
            // The kernel, too, keeps only the low eight bits.
            code => ExitCode::from(code as u8),
        }
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
