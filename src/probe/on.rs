//! The probe with the feature `probe`: it reports to an observer.

use std::rc::Rc;

use crate::phase_order::Phase;
use crate::task_info::Info;

/// An event in the life of a loop.
///
/// Each start is followed by its end, even if the code between them panics.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Fact {
    /// A phase begins, even if it has nothing to do.
    PhaseStart(Phase),
    /// The phase has ended.
    PhaseEnd(Phase),
    /// A callback begins: of a timer, a hook, an event or a close. The drain of the lanes belongs
    /// to the callback.
    CallbackStart(Phase),
    /// The callback has returned, and the lanes are drained.
    CallbackEnd(Phase),
    /// The poll of a task begins.
    PollStart(Info),
    /// The poll has returned.
    PollEnd(Info),
}

/// Receives the facts of one loop, on its owner thread, as they happen.
///
/// The loop calls the observer in the middle of its work, so the observer should be fast and must
/// not run the loop. It must not panic: the loop could lose the work that it was about to do.
///
/// # Examples
///
/// ```
/// use std::{cell::Cell, rc::Rc};
/// use phaseloop::{Builder, probe::Fact, task::yield_now};
///
/// # fn main() -> std::io::Result<()> {
/// let polls = Rc::new(Cell::new(0));
/// let counter = polls.clone();
/// let observer = move |fact: &Fact| {
///     if matches!(fact, Fact::PollStart(_)) {
///         counter.set(counter.get() + 1);
///     }
/// };
/// let mut event_loop = Builder::new().observer(observer).build()?;
/// event_loop.block_on(async {
///     phaseloop::spawn(async { yield_now().await }).await.unwrap();
/// });
/// assert_eq!(polls.get(), 2, "the task was polled twice; the main future is not a task");
/// # Ok(())
/// # }
/// ```
pub trait Observer {
    /// Called for each fact.
    fn observe(&self, fact: &Fact);
}

impl<F: Fn(&Fact)> Observer for F {
    fn observe(&self, fact: &Fact) {
        self(fact);
    }
}

#[derive(Clone)]
pub(crate) struct Probe {
    observer: Option<Rc<dyn Observer>>,
}

/// Reports the end on its drop.
pub(crate) struct Span<'a>(Option<(&'a dyn Observer, Fact)>);

impl Probe {
    /// Creates a probe without an observer.
    pub(crate) fn silent() -> Self {
        Self { observer: None }
    }

    pub(crate) fn new(observer: Rc<dyn Observer>) -> Self {
        Self {
            observer: Some(observer),
        }
    }

    /// Returns whether there is no observer.
    pub(crate) fn is_silent(&self) -> bool {
        self.observer.is_none()
    }

    pub(crate) fn phase(&self, phase: Phase) -> Span<'_> {
        self.span(|| (Fact::PhaseStart(phase), Fact::PhaseEnd(phase)))
    }

    pub(crate) fn callback(&self, phase: Phase) -> Span<'_> {
        self.span(|| (Fact::CallbackStart(phase), Fact::CallbackEnd(phase)))
    }

    pub(crate) fn poll(&self, task: impl FnOnce() -> Option<Info>) -> Span<'_> {
        if self.observer.is_none() {
            return Span(None);
        }
        match task() {
            Some(task) => self.span(|| (Fact::PollStart(task.clone()), Fact::PollEnd(task))),
            None => Span(None),
        }
    }

    fn span(&self, facts: impl FnOnce() -> (Fact, Fact)) -> Span<'_> {
        Span(self.observer.as_deref().map(|observer| {
            let (start, end) = facts();
            observer.observe(&start);
            (observer, end)
        }))
    }
}

impl Drop for Span<'_> {
    fn drop(&mut self) {
        if let Some((observer, end)) = &self.0 {
            observer.observe(end);
        }
    }
}
