//! The methods of the loop that its engine (`src/event_loop.rs`) does not need.

use std::fmt;

use super::builder::Builder;
use super::embed::BackendFd;
use super::loop_handle::LoopHandle;
use super::remote::Remote;
use crate::error::debug_as_display;
use crate::event_loop::EventLoop;

impl EventLoop {
    /// Creates a loop with the default options.
    ///
    /// # Errors
    ///
    /// Any OS error of creating the event queue (`epoll_create1`, `eventfd`), such as no
    /// descriptors left.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, RunMode};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     event_loop.handle().set_immediate(|| println!("in the check phase"));
    ///     event_loop.run(RunMode::Default)?;
    ///     Ok(())
    /// }
    /// ```
    pub fn new() -> std::io::Result<Self> {
        Builder::new().build()
    }

    /// Returns a handle to the loop for its owner thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, RunMode};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     event_loop.handle().set_immediate(|| println!("in the check phase"));
    ///     event_loop.run(RunMode::Default)?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn handle(&self) -> LoopHandle {
        LoopHandle::from_core(self.core.clone())
    }

    /// Returns a handle to the loop for other threads.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, RunMode};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let remote = event_loop.remote();
    ///     let call = move || remote.call(|| println!("on the loop's thread"));
    ///     let thread = std::thread::spawn(call);
    ///     thread.join().unwrap().unwrap();
    ///     event_loop.run(RunMode::NoWait)?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn remote(&self) -> Remote {
        Remote::new(self.core.executor.shared.clone())
    }

    /// Returns the descriptor that becomes readable when the poll phase has something to do.
    ///
    /// Unlike that of [`backend`](Self::backend), it says nothing of timers and of what was queued
    /// outside of a turn: a host that waits for it waits for at most
    /// [`next_timeout`](LoopHandle::next_timeout).
    #[must_use]
    #[doc(alias = "uv_backend_fd")]
    pub fn backend_fd(&self) -> BackendFd<'_> {
        self.core.io.backend_fd()
    }

    /// Drops the loop if it is unused: no open handle, started or not, no task, nothing queued or
    /// in flight.
    ///
    /// Dropping the loop makes no such check.
    ///
    /// # Errors
    ///
    /// [`Busy`] holds the loop, usable as before, and its text names what is left on it.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, time::Timer};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let event_loop = EventLoop::new()?;
    ///     let timer = Timer::new(&event_loop.handle());
    ///     let busy = event_loop.close().unwrap_err();
    ///     assert!(busy.to_string().contains("timer created at"));
    ///     drop(timer);
    ///     assert!(busy.into_event_loop().close().is_ok());
    ///     Ok(())
    /// }
    /// ```
    pub fn close(self) -> Result<(), Busy> {
        let core = &self.core;
        let is_free =
            core.ledger.handle_count() == 0 && core.executor.tasks.len() == 0 && !core.is_alive();
        if is_free {
            Ok(())
        } else {
            Err(Busy { event_loop: self })
        }
    }
}

impl fmt::Debug for EventLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLoop")
            .field("alive", &self.core.is_alive())
            .field("tasks", &self.core.executor.tasks.len())
            .field("handles", &self.core.ledger.handle_count())
            .finish_non_exhaustive()
    }
}

/// The error of [`EventLoop::close`]: the loop is still in use.
///
/// # Examples
///
/// ```
/// use phaseloop::{EventLoop, time::Timer};
///
/// fn main() -> std::io::Result<()> {
///     let event_loop = EventLoop::new()?;
///     let timer = Timer::new(&event_loop.handle());
///     let busy = event_loop.close().unwrap_err();
///     println!("{busy}"); // which handle is open, and the line that created it
///     drop(timer);
///     assert!(busy.into_event_loop().close().is_ok());
///     Ok(())
/// }
/// ```
pub struct Busy {
    event_loop: EventLoop,
}

impl Busy {
    /// Returns the loop.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, time::Timer};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let event_loop = EventLoop::new()?;
    ///     let timer = Timer::new(&event_loop.handle());
    ///     let busy = event_loop.close().unwrap_err();
    ///     println!("{busy}"); // which handle is open, and the line that created it
    ///     drop(timer);
    ///     assert!(busy.into_event_loop().close().is_ok());
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn into_event_loop(self) -> EventLoop {
        self.event_loop
    }
}

impl fmt::Display for Busy {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let handle = self.event_loop.handle();
        let handles = handle
            .handles()
            .into_iter()
            .map(|info| format!("{} created at {}", info.name, info.created_at));
        let tasks = handle.tasks().into_iter().map(|task| task.to_string());
        let keepers = handle
            .keepers()
            .into_iter()
            .map(|(kind, count)| format!("{count} × {kind} active"));
        let left: Vec<_> = handles.chain(tasks).chain(keepers).collect();
        write!(f, "event loop still in use: {}", left.join(", "))
    }
}

debug_as_display!(Busy { event_loop });

impl std::error::Error for Busy {}
