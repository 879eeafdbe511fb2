//! libuv's signal handle.
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
use crate::event_loop::io::signals::Listener;
use crate::keeper::Keeper;
use crate::raw::bound::Bound;
use crate::runtime::handle::{Close, Handle, HandleCore, impl_handle};
use crate::runtime::loop_handle::LoopHandle;

/// Runs a callback for each caught signal; [the module](super) describes the order.
///
/// # Examples
///
/// After `cargo add rustix --features process`:
///
/// ```
/// use phaseloop::{EventLoop, RunMode, signal::{Signal, SignalKind}};
/// use rustix::process::{getpid, kill_process};
///
/// fn main() -> std::io::Result<()> {
///     let mut event_loop = EventLoop::new()?;
///     let signal = Signal::new(&event_loop.handle());
///     signal.start(SignalKind::HUP, |signal, kind| {
///         println!("{kind}");
///         signal.stop();
///     })?;
///     // As `kill -HUP` does from a shell.
///     kill_process(getpid(), rustix::process::Signal::HUP)?;
///     event_loop.run(RunMode::Default)?;
///     Ok(())
/// }
/// ```
#[doc(alias = "uv_signal_t")]
pub struct Signal {
    core: HandleCore,
    state: Bound<Rc<Listener>>,
}

impl Signal {
    /// Creates a stopped handle.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use phaseloop::signal::{Signal, SignalKind};
    /// use phaseloop::{EventLoop, RunMode, process};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let signal = Signal::new(&event_loop.handle());
    ///     signal.start(SignalKind::USR1, |signal, _kind| {
    ///         println!("reload the settings");
    ///         signal.stop(); // nothing keeps the loop alive then
    ///     })?;
    ///     process::kill(std::process::id() as i32, SignalKind::USR1)?;
    ///     event_loop.run(RunMode::Default)?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    #[track_caller]
    #[inline]
    pub fn new(handle: &LoopHandle) -> Self {
        let core = handle.open(Keeper::Signal, Location::caller());
        let state = Listener::new(core.header.clone());
        state.header.belongs_to(&state);
        Self {
            core,
            state: Bound::new(state),
        }
    }

    /// Starts the handle: `callback` runs whenever the signal was caught. It receives the handle
    /// and the signal.
    ///
    /// A handle that is started for the same signal keeps its place in the order, and a caught
    /// signal goes to the new callback. A handle that is started for another signal is stopped
    /// first.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a number that is no signal, and for
    /// SIGKILL, SIGSTOP, SIGILL, SIGFPE and SIGSEGV; the handle stays unchanged. An error with
    /// [`Error`](crate::Error) as its source if the handle was closed or the loop was dropped.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use phaseloop::signal::{Signal, SignalKind};
    /// use phaseloop::{EventLoop, RunMode, process};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let signal = Signal::new(&event_loop.handle());
    ///     signal.start(SignalKind::USR1, |signal, _kind| {
    ///         println!("reload the settings");
    ///         signal.stop(); // nothing keeps the loop alive then
    ///     })?;
    ///     process::kill(std::process::id() as i32, SignalKind::USR1)?;
    ///     event_loop.run(RunMode::Default)?;
    ///     Ok(())
    /// }
    /// ```
    pub fn start(
        &self,
        kind: SignalKind,
        callback: impl FnMut(&Self, SignalKind) + 'static,
    ) -> io::Result<()> {
        self.begin(kind, false, callback)
    }

    /// Starts the handle for one signal only: it is stopped before the callback runs, which may
    /// start it again.
    ///
    /// # Errors
    ///
    /// The errors of [`start`](Self::start).
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use phaseloop::signal::{Signal, SignalKind};
    /// use phaseloop::{EventLoop, RunMode, process};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let signal = Signal::new(&event_loop.handle());
    ///     signal.start_once(SignalKind::USR1, |_, kind| println!("{kind}"))?;
    ///     process::kill(std::process::id() as i32, SignalKind::USR1)?;
    ///     event_loop.run(RunMode::Default)?; // it ends by itself, after one signal
    ///     Ok(())
    /// }
    /// ```
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
        let started = core.start_signal(&self.state, kind.as_raw(), once);
        started.map_err(|error| kind.explain(error))?;
        // The reference is weak, since the handle owns the callback.
        let state = Rc::downgrade(&self.state);
        let before = self.state.callback.set(Box::new(move || {
            if let Some(state) = state.upgrade() {
                let core = HandleCore::view(state.header.clone());
                callback(
                    &Self {
                        core,
                        state: Bound::new(state),
                    },
                    kind,
                );
            }
        }));
        core.set_active(&self.core.header, true);
        // Dropping the old callback may run user code, which may use this handle.
        drop(before);
        Ok(())
    }

    /// Stops the handle: its callback does not run any more, even if its signal was caught already.
    /// Stopping a stopped handle does nothing.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use phaseloop::signal::{Signal, SignalKind};
    /// use phaseloop::{EventLoop, RunMode, process};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let signal = Signal::new(&event_loop.handle());
    ///     signal.start(SignalKind::USR1, |signal, _kind| {
    ///         println!("reload the settings");
    ///         signal.stop(); // nothing keeps the loop alive then
    ///     })?;
    ///     process::kill(std::process::id() as i32, SignalKind::USR1)?;
    ///     event_loop.run(RunMode::Default)?;
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub fn stop(&self) {
        let core = self.core.handle.core();
        core.stop_signal(&self.state);
        core.set_active(&self.core.header, false);
    }

    /// The signal that the handle is started for.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, signal::{Signal, SignalKind}};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let event_loop = EventLoop::new()?;
    ///     let signal = Signal::new(&event_loop.handle());
    ///     assert_eq!(signal.kind(), None);
    ///     signal.start(SignalKind::INT, |_, _| ())?;
    ///     assert_eq!(signal.kind(), Some(SignalKind::INT));
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn kind(&self) -> Option<SignalKind> {
        self.state.number().map(SignalKind::from_raw)
    }

    /// Stops the handle for good, at once. The close completes in the closing phase; see [`Close`].
    /// If the signal was caught already, the close completes after the poll phase that would have
    /// delivered it.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{LoopHandle, signal::{Signal, SignalKind}};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let signal = Signal::new(&LoopHandle::current());
    ///     signal.start(SignalKind::INT, |_, _| ())?;
    ///     signal.close().await;
    ///     Ok(())
    /// }
    /// ```
    pub fn close(&self) -> Close {
        self.core.close()
    }
}

impl_handle!(Signal, |this| &this.core);

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal")
            .field("kind", &self.kind())
            .field("created_at", &self.created_at())
            .finish_non_exhaustive()
    }
}
