//! The wait on a paused clock.

use std::any::Any;
use std::io;

use super::hook::cannot_pause;
use super::peers::Peers;
use crate::clock::NEVER;
use crate::event_loop::core::Core;
use crate::event_loop::io::sources::SourceState;
use crate::event_loop::wait::Wait;
use crate::keeper::Keeper;

/// A clock that stands still while the loop is busy, and jumps when it has nothing to do.
pub(crate) struct PausedClock {
    peers: Peers,
}

impl PausedClock {
    /// `outside_timeout` is how long the clock waits for peers outside; see [`Peers::new`].
    pub(crate) fn new(outside_timeout: Option<u64>) -> Self {
        let peers = Peers::new(outside_timeout);
        Self { peers }
    }
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
        core.waiting(timeout, true, |timeout, _| self.wait_or_jump(core, timeout))
    }

    fn note_attempt(&self, source: &SourceState) {
        self.peers.count_attempt(source.key);
    }

    fn note_pair(&self, one: &SourceState, other: &SourceState) {
        self.peers.note_pair(one.key, other.key);
    }
}

impl PausedClock {
    /// Waits on a paused clock. Events that are there already come first; without any, and if
    /// nothing comes from outside of the loop, the clock advances to the end of the wait. If the
    /// wait has no end or a job runs on another thread, the wait is real.
    fn wait_or_jump(&self, core: &Core, timeout: Option<u64>) -> io::Result<()> {
        core.ask_kernel(Some(0))?;
        if core.has_arrived() {
            return Ok(());
        }
        let can_advance =
            core.executor.clock.auto_advance() && core.ledger.count(Keeper::Work) == 0;
        match timeout {
            Some(timeout) if can_advance => {
                if self.peers.receives(core, timeout)? {
                    return Ok(());
                }
                let end = core.executor.clock.read().saturating_add(timeout);
                core.executor.clock.advance_to(end);
                Ok(())
            }
            _ if core.executor.shared.inbox.park() => core.ask_kernel(None),
            _ => core.ask_kernel(Some(0)),
        }
    }
}

/// Pauses the clock.
///
/// # Panics
///
/// If another runtime waits inside of the loop, since it has timers of its own.
#[track_caller]
pub(crate) fn pause_clock(core: &Core) {
    if let Some(hook) = core.waits.hook() {
        panic!("{}", cannot_pause(hook.name()));
    }
    core.executor.clock.pause();
    for source in core.io.sources() {
        source.ask_about_attempts();
    }
    core.counters.publish(&core.executor);
}
