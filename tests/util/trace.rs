//! A loop on the paused clock, a trace to compare with a literal line, and a way to be busy.
#![allow(dead_code, reason = "some binaries log no times, or are never busy")]

use std::cell::RefCell;
use std::fmt::Display;
use std::rc::Rc;
use std::time::{Duration, Instant};

use phaseloop::{Builder, EventLoop, LoopHandle, RunMode, time};
use tokio_test::assert_pending;

pub(crate) const ZERO: Duration = Duration::ZERO;

pub(crate) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// A loop whose clock moves only when it would wait, or when a test is [`busy`]; its handle; a
/// trace.
pub(crate) fn paused() -> (EventLoop, LoopHandle, Trace) {
    let event_loop = Builder::new().start_paused(true).build().unwrap();
    let handle = event_loop.handle();
    let trace = Trace::new(&handle);
    (event_loop, handle, trace)
}

/// Lets `duration` pass on the paused clock of the current loop, as a callback does that takes that
/// long.
pub(crate) fn busy(duration: Duration) {
    // The first poll of `advance` moves the clock. The rest of the future is not needed.
    assert_pending!(tokio_test::task::spawn(time::advance(duration)).poll());
}

/// Runs one turn that does not wait.
pub(crate) fn turn(event_loop: &mut EventLoop) -> bool {
    event_loop.run(RunMode::NoWait).unwrap()
}

/// Runs the loop to its end.
pub(crate) fn finish(event_loop: &mut EventLoop) {
    let alive = event_loop.run(RunMode::Default).unwrap();
    assert!(!alive, "nothing stopped the loop");
}

/// Labels in the order in which they were logged.
#[derive(Clone)]
pub(crate) struct Trace {
    labels: Rc<RefCell<Vec<String>>>,
    handle: LoopHandle,
    start: Instant,
}

impl Trace {
    pub(crate) fn new(handle: &LoopHandle) -> Self {
        Self {
            labels: Rc::default(),
            handle: handle.clone(),
            start: handle.now(),
        }
    }

    pub(crate) fn log(&self, label: impl Display) {
        self.labels.borrow_mut().push(label.to_string());
    }

    /// Logs the label with the loop's time in milliseconds since the trace was made: `tick@20`.
    pub(crate) fn stamp(&self, label: impl Display) {
        let time = self.handle.now() - self.start;
        self.log(format_args!("{label}@{}", time.as_millis()));
    }

    /// A closure that logs the label.
    pub(crate) fn call(&self, label: &'static str) -> impl FnOnce() + 'static {
        let trace = self.clone();
        move || trace.log(label)
    }

    /// A callback of a handle that logs the label.
    pub(crate) fn on<T>(&self, label: &'static str) -> impl FnMut(&T) + 'static {
        let trace = self.clone();
        move |_| trace.log(label)
    }

    /// A callback of a handle that logs the label with the loop's time.
    pub(crate) fn on_stamped<T>(&self, label: &'static str) -> impl FnMut(&T) + 'static {
        let trace = self.clone();
        move |_| trace.stamp(label)
    }

    /// Whether a label was logged since the last time.
    pub(crate) fn contains(&self, label: &str) -> bool {
        self.labels.borrow().iter().any(|logged| logged == label)
    }

    /// All labels since the last time, in one line.
    pub(crate) fn take(&self) -> String {
        self.labels.take().join(" ")
    }
}
