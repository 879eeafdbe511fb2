//! Closures that a phase runs once.
// Marks: an immediate is written to its queue, not copied on the way (row `immediates`).

use std::panic::Location;

use super::loop_handle::LoopHandle;
use crate::event_loop::phases::queue::{Entry, QueueKey};
use crate::frame::carry;
use crate::phase_order::Phase;
use crate::raw::call::Call;
use crate::site::Site;

/// The kind of a queued closure, for a tracker.
const IMMEDIATE: &str = "Immediate";

/// A closure queued for a phase, by [`LoopHandle::call_in`] or
/// [`set_immediate`](crate::set_immediate). Dropping this value does not remove the closure.
///
/// # Examples
///
/// ```
/// use phaseloop::{EventLoop, RunMode};
///
/// fn main() -> std::io::Result<()> {
///     let mut event_loop = EventLoop::new()?;
///     let immediate = event_loop.handle().set_immediate(|| unreachable!("it was cleared"));
///     assert!(immediate.has_ref());
///     assert!(immediate.clear());
///     event_loop.run(RunMode::Default)?;
///     Ok(())
/// }
/// ```
pub struct PhaseCall {
    handle: LoopHandle,
    phase: Phase,
    /// `None` if the loop was dropped.
    key: Option<QueueKey>,
}

impl std::fmt::Debug for PhaseCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PhaseCall")
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}

/// A closure queued for the check phase.
pub type Immediate = PhaseCall;

impl LoopHandle {
    /// Queues a closure for the check phase; see [`set_immediate`](crate::set_immediate).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::LoopHandle;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let immediate = LoopHandle::current().set_immediate(|| unreachable!());
    ///     assert!(immediate.clear());
    ///     assert!(!immediate.clear(), "it was removed already");
    /// }
    /// ```
    #[track_caller]
    pub fn set_immediate(&self, immediate: impl FnOnce() + 'static) -> Immediate {
        self.call_in(Phase::Check, immediate)
    }

    /// Calls `callback` once, in the next pass of `phase`: in this turn if the phase is still to
    /// come, otherwise in the next turn.
    ///
    /// The callback runs after the phase's own work: the hooks of idle, prepare and check, the I/O
    /// of poll, the closes of closing, the timers that are due. Callbacks for one phase run in the
    /// order in which they were queued. A callback that is queued while its phase runs waits for
    /// the next pass. The lanes are drained after each callback.
    ///
    /// A queued callback keeps the loop alive and keeps it from sleeping, unless it is
    /// [unref'd](PhaseCall::unref). If the loop was dropped, the callback is dropped without a
    /// call. To wait for a phase in async code, await [`phase::idle`](crate::phase::idle()) and its
    /// siblings.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{cell::RefCell, rc::Rc};
    /// use phaseloop::{EventLoop, RunMode, phase::Phase};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let log = Rc::new(RefCell::new(Vec::new()));
    ///     for phase in [Phase::Closing, Phase::Poll, Phase::Idle] {
    ///         let log = log.clone();
    ///         event_loop.handle().call_in(phase, move || log.borrow_mut().push(phase));
    ///     }
    ///     event_loop.run(RunMode::Default)?;
    ///     assert_eq!(*log.borrow(), [Phase::Idle, Phase::Poll, Phase::Closing]);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn call_in(&self, phase: Phase, callback: impl FnOnce() + 'static) -> PhaseCall {
        let call = carry(IMMEDIATE, Call::new(callback));
        self.clone().into_call_in(phase, call, Location::caller())
    }

    /// Queues the closure on the current loop.
    ///
    /// # Panics
    ///
    /// If no loop runs on this thread.
    #[inline]
    #[track_caller]
    pub(crate) fn call_in_current(phase: Phase, callback: impl FnOnce() + 'static) -> PhaseCall {
        let handle = Self::current();
        let call = handle.core().carried(IMMEDIATE, Call::new(callback));
        handle.into_call_in(phase, call, Location::caller())
    }

    /// Queues a closure and moves the handle into the returned call.
    #[inline(always)]
    fn into_call_in(self, phase: Phase, call: Call, site: Site) -> PhaseCall {
        // No closure: its captures would go through memory.
        let key = if self.is_closed() {
            None
        } else {
            Some(self.core().enqueue(phase, Entry::Call(call), Some(site)))
        };
        self.core().notify_host();
        PhaseCall {
            handle: self,
            phase,
            key,
        }
    }
}

impl PhaseCall {
    /// Removes the closure from its queue, even while its phase runs. Returns `false` if it has run
    /// or was removed before.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::LoopHandle;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let immediate = LoopHandle::current().set_immediate(|| unreachable!());
    ///     assert!(immediate.clear());
    ///     assert!(!immediate.clear(), "it was removed already");
    /// }
    /// ```
    pub fn clear(&self) -> bool {
        self.key
            .is_some_and(|key| self.handle.core().dequeue(self.phase, key))
    }

    /// Returns whether the closure keeps the loop alive; `false` once it has run or was removed.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, RunMode};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let immediate = event_loop.handle().set_immediate(|| ());
    ///     immediate.unref();
    ///     assert!(!immediate.has_ref() && !event_loop.handle().is_alive());
    ///     immediate.ref_();
    ///     event_loop.run(RunMode::Default)?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn has_ref(&self) -> bool {
        let referenced = |key| {
            self.handle
                .core()
                .phases
                .is_entry_referenced(self.phase, key)
        };
        self.key.and_then(referenced).unwrap_or(false)
    }

    /// Makes the closure keep the loop alive, which is the default. Idempotent.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, RunMode};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let immediate = event_loop.handle().set_immediate(|| ());
    ///     immediate.unref();
    ///     assert!(!immediate.has_ref() && !event_loop.handle().is_alive());
    ///     immediate.ref_();
    ///     event_loop.run(RunMode::Default)?;
    ///     Ok(())
    /// }
    /// ```
    pub fn ref_(&self) {
        self.set_referenced(true);
    }

    /// Lets the loop end or sleep although the closure has not run. The closure still runs if its
    /// phase is reached for another reason. Idempotent.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, RunMode};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let immediate = event_loop.handle().set_immediate(|| ());
    ///     immediate.unref();
    ///     assert!(!immediate.has_ref() && !event_loop.handle().is_alive());
    ///     immediate.ref_();
    ///     event_loop.run(RunMode::Default)?;
    ///     Ok(())
    /// }
    /// ```
    pub fn unref(&self) {
        self.set_referenced(false);
    }

    fn set_referenced(&self, referenced: bool) {
        if let Some(key) = self.key {
            let core = self.handle.core();
            core.set_entry_referenced(self.phase, key, referenced);
        }
    }
}
