//! The wait on a paused clock.

use std::any::Any;
use std::io;

use super::Wait;
use super::hook::cannot_pause;
use super::peers::Peers;
use crate::clock::NEVER;
use crate::event_loop::core::Core;
use crate::keeper::Keeper;

/// A clock that stands still while the loop is busy, and jumps when it has nothing to do.
#[derive(Default)]
pub(super) struct PausedClock {
    pub(super) peers: Peers,
}

impl Wait for PausedClock {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn wait(&self, core: &Core, timeout: u64) -> io::Result<usize> {
        if timeout == 0 {
            return core.end_look(core.ask_kernel(Some(0)));
        }
        let timeout = (timeout != NEVER).then_some(timeout);
        core.waiting(timeout, true, |timeout, _| core.wait_paused(timeout))
    }
}

impl Core {
    /// Pauses the clock.
    ///
    /// # Panics
    ///
    /// If another runtime waits inside of the loop, since it has timers of its own.
    #[track_caller]
    pub(crate) fn pause_clock(&self) {
        if let Some(hook) = self.wait_hook() {
            panic!("{}", cannot_pause(hook.name()));
        }
        self.clock().pause();
        for source in self.io.sources() {
            source.ask_about_attempts();
        }
        self.publish_pace();
    }

    /// Waits on a paused clock. Events that are there already come first; without any, and if
    /// nothing comes from outside of the loop, the clock advances to the end of the wait. If the
    /// wait has no end or a job runs on another thread, the wait is real.
    fn wait_paused(&self, timeout: Option<u64>) -> io::Result<()> {
        self.ask_kernel(Some(0))?;
        if self.has_arrived() {
            return Ok(());
        }
        let can_advance = self.clock().auto_advance() && self.ledger.count(Keeper::Work) == 0;
        match timeout {
            Some(timeout) if can_advance => {
                if self.receives_from_peers(timeout)? {
                    return Ok(());
                }
                let end = self.clock().read().saturating_add(timeout);
                self.clock().advance_to(end);
                Ok(())
            }
            _ if self.shared().inbox.park() => self.ask_kernel(None),
            _ => self.ask_kernel(Some(0)),
        }
    }
}
