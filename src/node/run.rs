//! A program from its first line to its exit code.

use std::fmt;
use std::process::{ExitCode, Termination};

use crate::event_loop::EventLoop;

/// The exit code of a program whose main future was pending when the loop ran dry.
const UNSETTLED_MAIN: i32 = 13;

/// Runs `main` as a Node program, on a loop made for it.
///
/// # Panics
///
/// When the system has no descriptors left for a loop, when called while a loop runs on this thread, and with a panic
/// that nobody catches.
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
pub fn run<F>(main: F) -> Exit<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    match EventLoop::new() {
        Ok(mut event_loop) => run_on(&mut event_loop, main),
        Err(error) => panic!("cannot make an event loop: {error}"),
    }
}

/// The same on a loop of the caller's, for its options: a [paused](crate::Builder) clock, a pool of its own.
///
/// # Panics
///
/// As [`run`].
pub fn run_on<F>(event_loop: &mut EventLoop, main: F) -> Exit<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    match event_loop.run_until_done(main) {
        Ok(output) => Exit {
            code: 0,
            output: Some(output),
        },
        Err(_) => Exit {
            code: UNSETTLED_MAIN,
            output: None,
        },
    }
}

/// How a program ended. A `main` function may return it.
#[must_use = "it holds the exit code; return it from `main`, or drop it"]
pub struct Exit<T> {
    code: i32,
    output: Option<T>,
}

impl<T> Exit<T> {
    /// The exit code: 0, or 13 if the loop ran dry while the main future was pending.
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
