//! What tasks wait for that is no handle of the loop: a promise, an event, a cancellation.

use super::{Wait, Waits, place_of};
use crate::event_loop::core::Core;
use crate::event_loop::extension::Waiting;
use crate::executor::notes::{NamedWait, Source};
use crate::label::Label;

/// Lists what tasks wait for that is no handle of the loop.
#[inline]
pub(super) fn named_waits(core: &Core) -> Vec<(Waiting, Source)> {
    let extension = core.extension.get();
    let left_out = extension.map(|extension| extension.own_wakers());
    let left_out = left_out.unwrap_or_default();
    let named = core.executor.named_waits().all().into_iter();
    let named = named.chain(core.executor.shared_waits());
    let named = named.filter(|(_, waker)| left_out.binary_search(waker).is_err());
    named
        .map(|(wait, waker)| (Waiting::named(&wait, waker), wait.source))
        .collect()
}

impl Waits {
    /// Notes which task has a named wait. If it is known which task ends it, that says more.
    pub(super) fn relate_named(&mut self, place: usize) {
        let (waiting, source) = &self.named[place];
        let wakers = waiting.wakers.clone();
        let (is_reported, ids) = match source {
            Source::Unknown | Source::Elsewhere(..) => (true, Vec::new()),
            Source::Task(id) => (place_of(&self.tasks, *id).is_none(), vec![*id]),
            Source::Combined(combined) => (true, combined.tasks.clone()),
        };
        let tasks = ids.into_iter().filter_map(|id| place_of(&self.tasks, id));
        let tasks: Vec<_> = tasks.map(Wait::Task).collect();
        let named = is_reported.then_some(Wait::Named(place));
        for what in named.into_iter().chain(tasks) {
            for waker in &wakers {
                self.add(*waker, what);
            }
        }
    }
}

impl Waiting {
    fn named(wait: &NamedWait, waker: *const ()) -> Self {
        let which = match &wait.source {
            Source::Combined(combined) => format!("of {}", combined.how),
            Source::Elsewhere(which, _) => which.clone(),
            _ => match wait.name {
                Some(name) => format!("{name:?}"),
                None => wait.which.to_owned(),
            },
        };
        Self {
            label: Label::new(wait.what, which),
            site: wait.site,
            state: match &wait.source {
                Source::Elsewhere(_, state) => state.clone(),
                _ => String::new(),
            },
            due: None,
            keeps_alive: false,
            wakers: vec![waker],
        }
    }
}
