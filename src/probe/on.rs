//! The probe that reports to an observer.

use std::rc::Rc;

use crate::executor::Info;
use crate::turn::Phase;

/// Something the loop did.
///
/// Every start has its end, also when the code between them panics.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Fact {
    /// A phase begins (also when it finds nothing to do).
    PhaseStart(Phase),
    /// The phase is over.
    PhaseEnd(Phase),
    /// The loop calls back: a timer, a hook, an event, a close. The drain of the lanes belongs to it.
    CallbackStart(Phase),
    /// The callback has returned and the lanes are drained.
    CallbackEnd(Phase),
    /// A task is polled.
    PollStart(Info),
    /// The poll has returned.
    PollEnd(Info),
}

/// Receives the facts of one loop, on its thread, as they happen.
///
/// It is called from the middle of the loop: it should be quick, must not run the loop, and must not panic: what the loop was
/// about to do may then never be done.
pub trait Observer {
    /// Called for each fact.
    fn observe(&self, fact: &Fact);
}

impl<F: Fn(&Fact)> Observer for F {
    fn observe(&self, fact: &Fact) {
        self(fact);
    }
}

pub(crate) struct Probe {
    observer: Option<Rc<dyn Observer>>,
}

/// Reports the end when it is dropped.
pub(crate) struct Span<'a>(Option<(&'a dyn Observer, Fact)>);

impl Probe {
    /// A probe that nobody listens to.
    pub(crate) fn silent() -> Self {
        Self { observer: None }
    }

    pub(crate) fn new(observer: Rc<dyn Observer>) -> Self {
        Self {
            observer: Some(observer),
        }
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
