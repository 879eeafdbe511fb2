//! The signal handle: libuv's.
//!
//! ```text
//!            start            caught                        once: stopped before the call
//!   new ──> stopped ──> listening ──> due, end of poll ──> called ──┬──> listening
//!              ^            │              │                        └──> stopped
//!              └─── stop ───┴──────────────┘
//! ```

use std::fmt;
use std::io;
use std::panic::Location;
use std::rc::Rc;

use super::SignalKind;
use crate::event_loop::handle::LoopHandle;
use crate::event_loop::handles::{Close, Handle, HandleCore, sealed};
use crate::event_loop::signals::Listener;
use crate::kinds::Kind;

/// Calls back when a signal was caught; see [the module](super) for when and in which order.
///
/// # Examples
///
/// ```
/// use phaseloop::{EventLoop, RunMode, signal::{Signal, SignalKind}};
///
/// # fn main() -> std::io::Result<()> {
/// let mut event_loop = EventLoop::new()?;
/// let signal = Signal::new(&event_loop.handle());
/// signal.start(SignalKind::HUP, |signal, kind| {
///     println!("{kind}");
///     signal.stop();
/// })?;
/// # signal_hook::low_level::raise(SignalKind::HUP.as_raw())?;
/// event_loop.run(RunMode::Default)?;
/// # Ok(())
/// # }
/// ```
pub struct Signal {
    core: HandleCore,
    state: Rc<Listener>,
}

impl Signal {
    /// Makes a handle that is not started.
    #[must_use]
    #[track_caller]
    pub fn new(handle: &LoopHandle) -> Self {
        let core = handle.open(Kind::Signal, Location::caller());
        let state = Listener::new(core.header.clone());
        let owner = Rc::downgrade(&state);
        state.header.belongs_to(owner);
        Self { core, state }
    }

    /// Calls `callback` whenever the signal was caught. It gets the handle itself and the signal.
    ///
    /// Started for the same signal already, it keeps its place in the order of start, and what was caught is for the new
    /// callback; for another one it is stopped first.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for what is no signal, and for SIGKILL, SIGSTOP, SIGILL, SIGFPE and
    /// SIGSEGV; the handle stays as it was. The loop's refusal, when the handle was closed or the loop is gone.
    pub fn start(
        &self,
        kind: SignalKind,
        callback: impl FnMut(&Self, SignalKind) + 'static,
    ) -> io::Result<()> {
        self.begin(kind, false, callback)
    }

    /// As [`start`](Self::start), for the first catch only: the handle is stopped before the call, which may start it anew.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn start_once(
        &self,
        kind: SignalKind,
        callback: impl FnMut(&Self, SignalKind) + 'static,
    ) -> io::Result<()> {
        self.begin(kind, true, callback)
    }

    fn begin(
        &self,
        kind: SignalKind,
        once: bool,
        mut callback: impl FnMut(&Self, SignalKind) + 'static,
    ) -> io::Result<()> {
        self.core.check_open().map_err(io::Error::other)?;
        let core = self.core.handle.core();
        let signals = &core.late.parts().signals;
        let started = signals.start(&core.poller, &self.state, kind.as_raw(), once);
        started.map_err(|error| kind.explain(error))?;
        // Weak: the callback lives in what it points to.
        let state = Rc::downgrade(&self.state);
        let before = self.state.callback.set(Box::new(move || {
            if let Some(state) = state.upgrade() {
                let core = HandleCore::view(state.header.clone());
                callback(&Self { core, state }, kind);
            }
        }));
        core.set_active(&self.core.header, true);
        // What the old callback has captured may do anything, also to this handle.
        drop(before);
        Ok(())
    }

    /// Stops the handle; its callback is not called any more, also if its signal was caught already. Does nothing when it
    /// is not started.
    pub fn stop(&self) {
        let core = self.core.handle.core();
        core.late.parts().signals.stop(&self.state);
        core.set_active(&self.core.header, false);
    }

    /// The signal the handle is started for.
    #[must_use]
    pub fn kind(&self) -> Option<SignalKind> {
        self.state.number().map(SignalKind::from_raw)
    }

    /// Stops the handle for good, at once, and has it reported in the closing phase; see [`Close`]. If its signal was caught
    /// already, the report follows the poll phase that would have delivered it.
    pub fn close(&self) -> Close {
        self.core.close()
    }
}

impl Handle for Signal {}

impl sealed::Sealed for Signal {
    fn handle_core(&self) -> &HandleCore {
        &self.core
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        self.core.release();
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal")
            .field("kind", &self.kind())
            .field("created_at", &self.created_at())
            .finish_non_exhaustive()
    }
}
