//! Serializes the stall reports of one loop: whichever thread finds no report in progress prints.
//!
//! The names of a stack are read from the debug information of the program, which may take longer
//! than the stall. The loop does not wait for that: the thread that prints a report prints the
//! next one of the loop, too.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Listener, Stall};
use crate::stderr;

/// How long the end of a loop waits for its last report.
const LAST_REPORT: Duration = Duration::from_secs(3);

/// The reports of one loop.
pub(super) struct Reporter {
    queue: Mutex<Queued>,
    /// Notified when no report is in progress.
    idle: Condvar,
}

pub(super) struct Queued {
    then: Option<Listener>,
    left: VecDeque<Report>,
    /// Whether a thread prints.
    is_printing: bool,
}

/// Reports one stall, to a listener or on standard error.
type Report = Box<dyn FnOnce(&mut Option<Listener>) + Send>;

impl Reporter {
    pub(super) fn new(then: Option<Listener>) -> Self {
        Self {
            queue: Mutex::new(Queued {
                then,
                left: VecDeque::new(),
                is_printing: false,
            }),
            idle: Condvar::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Queued> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a report, and prints what is queued unless another thread does.
    pub(super) fn print<'a>(
        &'a self,
        mut queue: MutexGuard<'a, Queued>,
        report: impl FnOnce(&mut Option<Listener>) + Send + 'static,
    ) {
        queue.left.push_back(Box::new(report));
        if queue.is_printing {
            return;
        }
        queue.is_printing = true;
        while let Some(report) = queue.left.pop_front() {
            let mut then = queue.then.take();
            drop(queue);
            report(&mut then);
            queue = self.lock();
            queue.then = then;
        }
        queue.is_printing = false;
        drop(queue);
        self.idle.notify_all();
    }

    /// Waits until everything is printed, but not for ever: a listener may wait for the caller.
    pub(super) fn wait_until_idle(&self) {
        let queue = self.lock();
        let waited = self
            .idle
            .wait_timeout_while(queue, LAST_REPORT, |queue| queue.is_printing);
        drop(waited);
    }
}

/// Reports a stall whose last part, the names of the stack, may take long: standard error has the
/// first line at once.
pub(super) fn report(
    then: &mut Option<Listener>,
    mut stall: Stall,
    complete: impl FnOnce(&mut Stall),
) {
    match then {
        Some(then) => {
            complete(&mut stall);
            // A panic of user code must not end the watchdog, nor the loop.
            drop(catch_unwind(AssertUnwindSafe(|| then(&stall))));
        }
        None => {
            let mut text = String::new();
            // Writing to a string does not fail.
            let _ = stall.write_head(&mut text);
            stderr::write(&text);
            text.clear();
            complete(&mut stall);
            let _ = stall.write_rest(&mut text);
            stderr::write(&text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Reporter;
    use std::sync::{Arc, Mutex, mpsc};
    use std::thread;

    #[test]
    fn what_is_reported_meanwhile_is_printed_by_the_thread_that_prints() {
        let reporter = Arc::new(Reporter::new(None));
        let (sent, received) = mpsc::channel();
        let (go, wait) = mpsc::channel();
        let (begun, has_begun) = mpsc::channel();
        let printer = thread::spawn({
            let (reporter, sent) = (reporter.clone(), sent.clone());
            move || {
                reporter.print(reporter.lock(), move |_| {
                    begun.send(()).unwrap();
                    wait.recv().unwrap();
                    sent.send(("first", thread::current().id())).unwrap();
                });
            }
        });
        has_begun.recv().unwrap();
        reporter.print(reporter.lock(), move |_| {
            sent.send(("second", thread::current().id())).unwrap();
        });
        assert!(received.try_recv().is_err(), "the caller does not wait");
        go.send(()).unwrap();
        reporter.wait_until_idle();
        let received: Vec<_> = received.iter().collect();
        let id = printer.thread().id();
        assert_eq!(received, [("first", id), ("second", id)]);
        printer.join().unwrap();
    }

    #[test]
    fn the_listener_is_lent_to_each_report() {
        let count = Arc::new(Mutex::new(0));
        let counter = count.clone();
        let reporter = Reporter::new(Some(Box::new(move |_| *counter.lock().unwrap() += 1)));
        for _ in 0..2 {
            reporter.print(reporter.lock(), |then| assert!(then.is_some()));
        }
        assert_eq!(*count.lock().unwrap(), 0);
    }
}
