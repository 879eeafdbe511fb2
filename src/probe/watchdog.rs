//! The watchdog: a thread that sees a loop which does not come back to the kernel.
//!
//! ```text
//!   loop      ── busy ────────────────────────────────────────> waits
//!                 since = now                                    since = 0; if reported: "over"
//!   watchdog  ── every quarter of the limit: since + limit < now? ──> reports, with the stack
//! ```
//!
//! A loop publishes three numbers (`marks.rs`): since when it is busy, and the line and the number
//! of what runs. One thread serves all loops of the process (`thread.rs`). It is asleep while all
//! of them wait: a loop that becomes busy wakes it, and it goes back to sleep when it finds them
//! waiting. The reports of one loop are printed in order, whichever thread prints them
//! (`reporter.rs`).

mod marks;
mod reporter;
mod thread;

use std::fmt;
use std::time::Duration;

use super::of_loop::OfLoop;

pub(crate) use marks::Marker;

/// Reports when a loop is stuck: when it has not asked the kernel for events for longer than a
/// limit.
///
/// [`Builder::watchdog`](crate::Builder::watchdog) attaches it to a loop, and so does the
/// environment variable `PHASELOOP_WATCHDOG=50ms` in any program. A stall is reported while it
/// lasts: at the limit, then at 2, 4, 8 … times the limit, with the line of the task or callback
/// that runs and, with the feature `stacks`, the stack of the loop's thread. When the stall is
/// over, the loop itself reports so, with its [report](crate::LoopHandle::report) and, if there is
/// a [`Recorder`](crate::observe::Recorder), the blame.
///
/// One thread of the process watches all loops. It is asleep while the loops wait for events.
///
/// ```text
/// phaseloop: stall: 20.3ms so far: task 101 (examples/blame.rs:50:54)
///   in std::thread::functions::sleep (library/std/src/thread/functions.rs:289)
///   in blame::hash::{{closure}} (examples/blame.rs:24)
/// ```
///
/// # The stack
///
/// The stack is read by a signal, SIGURG, to the loop's thread. A blocking system call of the
/// program may return `EINTR` because of it, and a listener to SIGURG receives it. It is read on
/// Linux with glibc; elsewhere a stall has no stack. A thread that waits inside the kernel without
/// taking signals does not answer, and the stall says so.
///
/// The names of inlined functions and the lines need debug information: `debug = "limited"` in the
/// release profile is enough. In a stripped program each function is an address, such as
/// `server+0x1f3a0`. The command `addr2line -f -i -e` names it, with a copy of the program that is
/// not stripped.
///
/// # Examples
///
/// ```
/// use std::{sync::mpsc, thread, time::Duration};
/// use phaseloop::{Builder, observe::Watchdog};
///
/// fn main() -> std::io::Result<()> {
///     let (send, stalls) = mpsc::channel();
///     let watchdog = Watchdog::new(Duration::from_millis(20)).then(move |stall| {
///         let _ = send.send(stall.to_string());
///     });
///     let mut event_loop = Builder::new().watchdog(watchdog).build()?;
///     event_loop.block_on(async {
///         // Blocks the loop until the watchdog has seen it.
///         let stall = stalls.recv().unwrap();
///         assert!(stall.starts_with("phaseloop: stall: "), "{stall}");
///     });
///     Ok(())
/// }
/// ```
#[must_use = "a watchdog watches once it is attached to a loop"]
pub struct Watchdog {
    limit: Duration,
    stack: bool,
    then: Option<Listener>,
}

type Listener = Box<dyn FnMut(&Stall) + Send>;

impl Watchdog {
    /// Creates a watchdog for loops that are busy for longer than `limit`. A limit below a
    /// microsecond is a microsecond.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{sync::mpsc, time::Duration};
    /// use phaseloop::{Builder, observe::Watchdog};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let (send, stalls) = mpsc::channel();
    ///     let watchdog = Watchdog::new(Duration::from_millis(20)).then(move |stall| {
    ///         let _ = send.send((stall.what.clone(), stall.took));
    ///     });
    ///     let event_loop = Builder::new().watchdog(watchdog).build()?;
    ///     event_loop.block_on(async {
    ///         // Blocks the loop until the watchdog has seen it.
    ///         let (what, took) = stalls.recv().unwrap();
    ///         println!("{what} for {took:?}");
    ///     });
    ///     Ok(())
    /// }
    /// ```
    pub fn new(limit: Duration) -> Self {
        Self {
            limit: limit.max(Duration::from_micros(1)),
            stack: true,
            then: None,
        }
    }

    /// Sets whether the stack of the loop's thread is reported, where it can be read. The default
    /// is `true`.
    pub fn stack(self, on: bool) -> Self {
        Self { stack: on, ..self }
    }

    /// Calls `f` for each stall in place of the lines on standard error: on the watchdog's thread
    /// while it lasts, on the loop's thread or the watchdog's when it is over. The stalls of a loop
    /// come in order. `f` should return soon, since the watchdog's thread watches all loops.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{sync::mpsc, time::Duration};
    /// use phaseloop::{Builder, observe::Watchdog};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let (send, stalls) = mpsc::channel();
    ///     let watchdog = Watchdog::new(Duration::from_millis(20)).then(move |stall| {
    ///         let _ = send.send((stall.what.clone(), stall.took));
    ///     });
    ///     let event_loop = Builder::new().watchdog(watchdog).build()?;
    ///     event_loop.block_on(async {
    ///         // Blocks the loop until the watchdog has seen it.
    ///         let (what, took) = stalls.recv().unwrap();
    ///         println!("{what} for {took:?}");
    ///     });
    ///     Ok(())
    /// }
    /// ```
    pub fn then(self, f: impl FnMut(&Stall) + Send + 'static) -> Self {
        Self {
            then: Some(Box::new(f)),
            ..self
        }
    }
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog")
            .field("limit", &self.limit)
            .field("stack", &self.stack)
            .finish_non_exhaustive()
    }
}

/// A loop that is stuck, or was. It prints as a [`Watchdog`] prints it on standard error.
///
/// # Examples
///
/// ```
/// use std::{sync::mpsc, time::Duration};
/// use phaseloop::{Builder, observe::Watchdog};
///
/// fn main() -> std::io::Result<()> {
///     let (send, stalls) = mpsc::channel();
///     let watchdog = Watchdog::new(Duration::from_millis(20)).then(move |stall| {
///         let _ = send.send((stall.what.clone(), stall.took));
///     });
///     let event_loop = Builder::new().watchdog(watchdog).build()?;
///     event_loop.block_on(async {
///         // Blocks the loop until the watchdog has seen it.
///         let (what, took) = stalls.recv().unwrap();
///         println!("{what} for {took:?}");
///     });
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stall {
    /// How long the loop has been busy.
    pub took: Duration,
    /// What runs, or ran when the stall was reported last: the number of a task or the kind of a
    /// callback, and its line.
    pub what: String,
    /// The name of the loop's thread, unless it is the main thread or has no name.
    pub thread: Option<String>,
    /// The index of the loop, if it is one of several of a cluster.
    pub index: Option<u32>,
    /// The functions on the stack of the loop's thread, innermost first, from the one that blocks
    /// to the task or callback. It is empty if the stack cannot be read.
    pub stack: Vec<String>,
    /// Why the stack is empty, if the loop's thread was asked for it.
    pub no_stack: Option<String>,
    /// Whether the stall is over.
    pub is_over: bool,
    /// The report of the loop, and the blame if there is a recorder, when the stall is over.
    pub report: String,
}

impl Stall {
    /// Writes the first line.
    fn write_head(&self, f: &mut impl fmt::Write) -> fmt::Result {
        let Self { took, what, .. } = self;
        let of_loop = OfLoop(self.index);
        match self.is_over {
            true => write!(
                f,
                "phaseloop: {of_loop}stall: over after {took:.1?}: {what}"
            )?,
            false => write!(f, "phaseloop: {of_loop}stall: {took:.1?} so far: {what}")?,
        }
        match &self.thread {
            Some(thread) => writeln!(f, ", thread \"{thread}\""),
            None => writeln!(f),
        }
    }

    /// Writes the lines after the first.
    fn write_rest(&self, f: &mut impl fmt::Write) -> fmt::Result {
        for function in &self.stack {
            writeln!(f, "  in {function}")?;
        }
        if let Some(reason) = &self.no_stack {
            writeln!(f, "  no stack: {reason}")?;
        }
        f.write_str(&self.report)
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_head(f)?;
        self.write_rest(f)
    }
}
