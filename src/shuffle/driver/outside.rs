//! What comes to a shuffled loop from outside: signals, exits of children, other threads.

use std::io;

use super::{Shuffled, Until};
use crate::choices::{Kind, Threads};
use crate::event_loop::core::Core;
use crate::site::Site;

impl Shuffled {
    /// Notes that the program uses something that cannot be repeated.
    pub(super) fn add_outside(&self, what: &'static str, site: Site) {
        let mut outside = self.outside.borrow_mut();
        if !outside.contains(&(what, site)) {
            outside.push((what, site));
        }
    }

    /// Ends the hold of the caught signals if it meets a condition. Returns whether it does.
    pub(super) fn release_caught(&self, condition: impl Fn(Until) -> bool) -> bool {
        let is_released = self.caught.get().is_some_and(condition);
        if is_released {
            self.caught.set(Some(Until::Now));
        }
        is_released
    }
}

impl Core {
    /// Returns whether the signals that were caught are held back. The chooser is asked once for
    /// all that were caught since the last delivery.
    pub(super) fn holds_caught(&self, shuffled: &Shuffled) -> bool {
        if !self.has_caught() {
            shuffled.caught.set(None);
            return false;
        }
        let moment = self.moment(shuffled);
        let until = shuffled.caught.get().unwrap_or_else(|| {
            shuffled.ask_delay(Kind::Caught, None, &"the signals that were caught", moment)
        });
        shuffled.caught.set(Some(until));
        !until.is_over(moment)
    }

    /// Returns whether the signals that were caught are held back at the end of a wait. If not,
    /// they are delivered now, and the hold ends.
    pub(super) fn still_holds_caught(&self, shuffled: &Shuffled) -> bool {
        let holds = self.holds_caught(shuffled);
        if !holds {
            shuffled.caught.set(None);
        }
        holds
    }

    /// Waits in real time for peers outside of the loop before the clock moves, if the program has
    /// such peers. Returns whether something has arrived.
    pub(super) fn receives_before_move(
        &self,
        shuffled: &Shuffled,
        timeout: u64,
    ) -> io::Result<bool> {
        let has_peers =
            shuffled.limits.threads == Threads::Allow || !shuffled.outside.borrow().is_empty();
        Ok(has_peers && self.receives_from_peers(timeout)?)
    }

    /// Checks that no other thread has sent something although that is refused.
    ///
    /// # Panics
    ///
    /// If one has.
    pub(super) fn refuse_foreign_senders(&self) {
        let stranger = self.shared().foreign_senders.first();
        assert!(stranger.is_none(), "{}", refusal(stranger));
    }

    /// Returns what a run that has ended says of other threads that have sent something.
    pub(crate) fn refused_sender(&self) -> Option<String> {
        let stranger = self.shared().foreign_senders.first();
        stranger.map(|_| refusal(stranger))
    }

    /// Returns what the program has used that cannot be repeated, one line each.
    pub(crate) fn used_outside(&self) -> Vec<String> {
        let Some(shuffled) = self.shuffled() else {
            return Vec::new();
        };
        let outside = shuffled.outside.borrow();
        outside
            .iter()
            .map(|(what, site)| format!("{what} ({site})"))
            .collect()
    }
}

fn refusal(stranger: Option<&str>) -> String {
    let stranger = stranger.unwrap_or("another thread");
    format!(
        "{stranger} has sent something to the loop: its moment cannot be repeated; \
         `Explore::threads(Threads::Allow)` permits it"
    )
}
