//! The events of a loop as values, for tests that list them or wait for one. It is an observer like
//! any other: it uses the public trait only.

use std::cell::RefCell;
use std::panic::Location;

use phaseloop::observe::{Activity, Body, Observer, Waited, Wake, Wants};
use phaseloop::phase::Phase;
use phaseloop::task::{Id, Info};

/// An event in the life of a loop.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "not every test reads all of it")]
pub(crate) enum Fact {
    PhaseStart(Phase),
    PhaseEnd(Phase),
    CallbackStart(Phase),
    CallbackEnd(Phase),
    PollStart(Info),
    PollEnd(Info),
    CallStart(Lane, Option<&'static Location<'static>>),
    CallEnd(Lane, Option<&'static Location<'static>>),
    WaitStart,
    WaitEnd { events: usize },
    Wake { task: Info, by: Option<Info> },
    Spawned(Info),
    Ended(Id),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Lane {
    Ticks,
    Microtasks,
}

/// Returns an observer that calls `f` with phases, callbacks and polls.
pub(crate) fn facts(f: impl Fn(&Fact) + 'static) -> impl Observer + 'static {
    let wants = Wants::PHASES | Wants::DISPATCHES | Wants::ACTIVITIES;
    Facts {
        wants,
        polled: RefCell::default(),
        f: move |fact: &Fact| {
            if !matches!(fact, Fact::CallStart(..) | Fact::CallEnd(..)) {
                f(fact);
            }
        },
    }
}

/// Returns an observer that calls `f` with every event.
pub(crate) fn all_facts(f: impl Fn(&Fact) + 'static) -> impl Observer + 'static {
    Facts {
        wants: Wants::ALL,
        polled: RefCell::default(),
        f,
    }
}

struct Facts<F> {
    wants: Wants,
    /// The tasks that are being polled: at the end of its last poll a task is gone.
    polled: RefCell<Vec<Info>>,
    f: F,
}

impl<F: Fn(&Fact)> Observer for Facts<F> {
    fn wants(&self) -> Wants {
        self.wants
    }

    fn begin(&self, activity: &Activity<'_>) {
        match activity.body() {
            Body::Poll(_) => {
                let task = activity.task().expect("it is about to be polled");
                self.polled.borrow_mut().push(task.clone());
                (self.f)(&Fact::PollStart(task));
            }
            Body::Tick => (self.f)(&Fact::CallStart(Lane::Ticks, activity.site())),
            Body::Microtask => (self.f)(&Fact::CallStart(Lane::Microtasks, activity.site())),
            _ => {}
        }
    }

    fn end(&self, activity: &Activity<'_>) {
        match activity.body() {
            Body::Poll(_) => {
                let task = self.polled.borrow_mut().pop().expect("its poll has begun");
                (self.f)(&Fact::PollEnd(task));
            }
            Body::Tick => (self.f)(&Fact::CallEnd(Lane::Ticks, activity.site())),
            Body::Microtask => (self.f)(&Fact::CallEnd(Lane::Microtasks, activity.site())),
            _ => {}
        }
    }

    fn begin_dispatch(&self, phase: Phase) {
        (self.f)(&Fact::CallbackStart(phase));
    }

    fn end_dispatch(&self, phase: Phase) {
        (self.f)(&Fact::CallbackEnd(phase));
    }

    fn begin_phase(&self, phase: Phase) {
        (self.f)(&Fact::PhaseStart(phase));
    }

    fn end_phase(&self, phase: Phase) {
        (self.f)(&Fact::PhaseEnd(phase));
    }

    fn begin_wait(&self, _now: u64) {
        (self.f)(&Fact::WaitStart);
    }

    fn end_wait(&self, waited: &Waited) {
        let events = waited.events;
        (self.f)(&Fact::WaitEnd { events });
    }

    fn spawned(&self, task: &Info) {
        (self.f)(&Fact::Spawned(task.clone()));
    }

    fn ended(&self, task: Id) {
        (self.f)(&Fact::Ended(task));
    }

    fn woken(&self, wake: &Wake<'_>) {
        if let Some(task) = wake.task() {
            let by = wake.by();
            (self.f)(&Fact::Wake { task, by });
        }
    }
}
