//! A timer of the loop that many timers of the extension share.

use std::fmt;
use std::rc::Rc;

use super::event_loop::Loop;
use crate::event_loop::ledger::handles::Header;
use crate::event_loop::phases::timers::TimerState;
use crate::frame::without_context;
use crate::keeper::Keeper;
use crate::site::Site;

/// A timer whose callback runs many user timers. The callback drains the lanes between them and
/// after the last, so the loop does not.
pub struct SharedTimer(Rc<TimerState>);

impl fmt::Debug for SharedTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedTimer").finish_non_exhaustive()
    }
}

impl SharedTimer {
    /// Creates a timer that calls `fire`, in no context. It counts as a handle but is not listed,
    /// since it has no owner to close it.
    pub fn new(site: Site, fire: impl FnMut() + 'static) -> Self {
        let header = Header::new(Keeper::Timer, site, u64::MAX);
        let state = TimerState::new(Rc::new(header));
        state.drains_itself.set(true);
        let replaced = without_context(|| state.callback.set(Box::new(fire)));
        debug_assert!(replaced.is_none(), "a new timer has no callback");
        Self(state)
    }

    /// Arms the timer for a time of the loop's clock in nanoseconds, in place of the one before.
    pub fn arm_at(&self, on: &Loop, due: u64) {
        on.0.disarm_timer(&self.0);
        on.0.arm_timer_at(&self.0, due);
    }

    /// Sets whether the armed timer keeps the loop alive.
    pub fn set_referenced(&self, on: &Loop, referenced: bool) {
        on.0.set_referenced(&self.0.header, referenced);
    }

    /// Drops the callback.
    pub fn clear(&self) {
        self.0.callback.clear();
    }
}
