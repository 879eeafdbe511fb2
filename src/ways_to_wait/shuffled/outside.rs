//! What comes to a shuffled loop from outside: signals, exits of children, other threads.

use std::io;

use super::{Shuffled, Until, shuffled};
use crate::choices::{Kind, Threads};
use crate::event_loop::core::Core;
use crate::keeper::Keeper;
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

    /// Returns whether the signals that were caught are held back. The chooser is asked once for
    /// all that were caught since the last delivery.
    pub(super) fn holds_caught(&self, core: &Core) -> bool {
        if !core.has_caught() {
            self.caught.set(None);
            return false;
        }
        let moment = self.moment(core);
        let until = self.caught.get().unwrap_or_else(|| {
            self.ask_delay(Kind::Caught, None, &"the signals that were caught", moment)
        });
        self.caught.set(Some(until));
        !until.is_over(moment)
    }

    /// Returns whether the signals that were caught are held back at the end of a wait. If not,
    /// they are delivered now, and the hold ends.
    pub(super) fn still_holds_caught(&self, core: &Core) -> bool {
        let holds = self.holds_caught(core);
        if !holds {
            self.caught.set(None);
        }
        holds
    }

    /// Waits in real time for peers outside of the loop before the clock moves, if the program has
    /// such peers. Returns whether something has arrived.
    pub(super) fn receives_before_move(&self, core: &Core, timeout: u64) -> io::Result<bool> {
        Ok(self.has_peers() && self.peers.receives(core, timeout)?)
    }

    /// Returns whether the program may have peers outside of the loop.
    pub(super) fn has_peers(&self) -> bool {
        self.limits.threads == Threads::Allow || !self.outside.borrow().is_empty()
    }
}

/// Returns whether the loop waits for something outside of it that is no other thread.
pub(super) fn is_awaited(core: &Core) -> bool {
    const OUTSIDE: [Keeper; 6] = [
        Keeper::Async,
        Keeper::Io,
        Keeper::Poll,
        Keeper::Signal,
        Keeper::Child,
        Keeper::Watch,
    ];
    OUTSIDE.iter().any(|kind| match kind {
        // Whatever a socket in memory could wait for has happened.
        Keeper::Io => core.awaits_kernel(),
        kind => core.count_keepers(*kind) > 0,
    })
}

/// Checks that no other thread has sent something although that is refused.
///
/// # Panics
///
/// If one has.
pub(super) fn refuse_foreign_senders(core: &Core) {
    let sender = core.executor.shared.foreign_senders.first();
    assert!(sender.is_none(), "{}", refusal(sender));
}

/// Returns what a run that has ended says of other threads that have sent something.
pub(crate) fn refused_sender(core: &Core) -> Option<String> {
    let sender = core.executor.shared.foreign_senders.first();
    sender.map(|_| refusal(sender))
}

/// Returns what the program has used that cannot be repeated, one line each.
pub(crate) fn used_outside(core: &Core) -> Vec<String> {
    let Some(shuffled) = shuffled(core) else {
        return Vec::new();
    };
    let outside = shuffled.outside.borrow();
    outside
        .iter()
        .map(|(what, site)| format!("{what} ({site})"))
        .collect()
}

fn refusal(sender: Option<&str>) -> String {
    let sender = sender.unwrap_or("another thread");
    format!(
        "{sender} has sent something to the loop: its moment cannot be repeated; \
         `Explore::threads(Threads::Allow)` permits it"
    )
}
