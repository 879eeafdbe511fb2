//! The entries of these timers in the report of their loop.

use super::pass::{MILLISECOND, TimerLists, now};
use crate::event_loop::extension::Core;
use crate::event_loop::extension::{Due, Waiting};
use crate::keeper::Keeper;

impl TimerLists {
    pub(in crate::node) fn report(&self, core: &Core, found: &mut Vec<Waiting>) {
        let now = now(core);
        for state in self.lists.borrow().values() {
            let expiry = state.start.get() + u64::from(state.duration.get());
            let left = expiry.saturating_sub(now).saturating_mul(MILLISECOND);
            let is_referenced = state.referenced.get();
            found.push(Waiting {
                state: if is_referenced { "" } else { "unref'd" }.to_owned(),
                due: Some(Due(left)),
                keeps_alive: is_referenced,
                ..Waiting::new(Keeper::Timer, Some(state.site.get()))
            });
        }
    }
}
