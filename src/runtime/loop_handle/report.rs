//! The answers to "why does it hang".

use super::LoopHandle;
use crate::report::tree::TaskTree;
use crate::report::{Report, report};

impl LoopHandle {
    /// Returns a report of what keeps the loop alive, what else is open on it, and which tasks are
    /// pending, with names and source lines. Print it when a program hangs.
    ///
    /// The cost is proportional to the size of the report, and the loop is not changed. A loop that
    /// waits can print its report on a signal, or on the request of another thread: `remote.call(||
    /// eprintln!("{}", LoopHandle::current().report()))`. `examples/why_hang.rs` shows both. If a
    /// callback or poll does not return, the loop cannot report: the watchdog of the feature
    /// `probe` does.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{LoopHandle, task, time::sleep};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let task = task::Builder::new().name("sleeper").spawn(sleep(Duration::from_secs(3600)));
    ///     phaseloop::phase::check().await;
    ///     let report = LoopHandle::current().report().to_string();
    ///     assert!(report.contains("due in 3599."), "{report}");
    ///     assert!(report.contains("wakes task 1 \"sleeper\""), "{report}");
    ///     task.abort();
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn report(&self) -> Report {
        report(self.core())
    }

    /// Returns the tree of tasks: who waits for whom, down to the socket, sleep or job that the
    /// loop waits for.
    ///
    /// [`report`](Self::report) lists the same facts by what keeps the loop alive. The cost is
    /// proportional to the number of tasks and handles, and the loop is not changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{LoopHandle, phase, spawn, task, time::sleep};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let inner = spawn(sleep(Duration::from_secs(3600)));
    ///     let outer = task::Builder::new().name("outer").spawn(inner);
    ///     phase::check().await;
    ///     let tree = LoopHandle::current().task_tree().to_string();
    ///     // the main future (src/main.rs:4:12): is being polled
    ///     // task 2 "outer" (src/main.rs:6:54)
    ///     // └ task 1 (src/main.rs:5:17)
    ///     //   └ sleep (src/main.rs:5:23): due in 3599.999s
    ///     let lines: Vec<_> = tree.lines().collect();
    ///     assert!(lines[1].starts_with("task 2 \"outer\" ("));
    ///     assert!(lines[2].starts_with("└ task 1 ("));
    ///     assert!(lines[3].starts_with("  └ sleep ("));
    ///     outer.abort();
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn task_tree(&self) -> TaskTree {
        TaskTree::of(self.core())
    }
}
