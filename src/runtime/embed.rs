//! What a foreign loop needs to drive this one.

use std::fmt;
use std::io;
use std::time::Duration;

use super::loop_handle::LoopHandle;
use crate::event_loop::EventLoop;
use crate::event_loop::core::Core;
use crate::sys::poller::{Poller, QueueFd, SharedQueue, impl_queue_fd};

/// The loop's own descriptor; on Windows its completion port. A foreign loop can wait on it.
pub type BackendFd<'a> = QueueFd<'a>;

/// The descriptor of a loop, owned: for a foreign loop that drives this one.
///
/// [`LoopHandle::backend`](crate::LoopHandle::backend) creates it, and says what its readiness
/// means. A clone is cheap and refers to one and the same descriptor. The value may outlive the
/// loop; then the descriptor never becomes readable.
///
/// # Examples
///
/// A plain `poll(2)` loop drives the event loop:
///
/// After `cargo add rustix --features event`:
///
/// ```ignore-windows,ignore-apple,ignore-bsd
/// use std::time::Duration;
/// use phaseloop::{EventLoop, spawn, time::sleep};
/// use rustix::event::{PollFd, PollFlags, poll};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let mut event_loop = EventLoop::new()?;
///     let backend = event_loop.handle().backend()?;
///     let task = event_loop.enter(|| spawn(sleep(Duration::from_millis(5))));
///     while !task.is_finished() {
///         // One descriptor is enough for any host: it also reports timers and new tasks.
///         poll(&mut [PollFd::new(&backend, PollFlags::IN)], None)?;
///         event_loop.turn(Some(Duration::ZERO))?;
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Backend {
    queue: SharedQueue,
}

impl Backend {
    pub(crate) fn of(poller: &Poller) -> Self {
        Self {
            queue: poller.queue(),
        }
    }

    /// Makes the loop drivable by a host, and returns its descriptor.
    fn for_host(core: &Core) -> io::Result<Self> {
        core.embed()?;
        Ok(Self::of(core.io.poller()))
    }
}

impl_queue_fd!(Backend, queue);

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend").finish_non_exhaustive()
    }
}

/// What the poll phase of a loop would wait for if it began now: the result of
/// [`LoopHandle::next_wait`], for hosts that drive the loop.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::{EventLoop, NextWait, spawn, time::sleep};
///
/// fn main() -> std::io::Result<()> {
///     let mut event_loop = EventLoop::new()?;
///     let handle = event_loop.handle();
///     assert_eq!(handle.next_wait(), NextWait::Idle);
///     let task = handle.enter(|| spawn(sleep(Duration::from_secs(3600))));
///     assert_eq!(handle.next_wait(), NextWait::Now);
///     event_loop.turn(Some(Duration::ZERO))?;
///     assert!(matches!(handle.next_wait(), NextWait::Timeout(_)));
///     task.abort();
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NextWait {
    /// It would not wait: something is queued or due, or the loop is stopped.
    Now,
    /// It would wait for an event, for at most this time.
    Timeout(Duration),
    /// It would wait for an event, without a limit: for I/O, a signal, another thread, or a job of
    /// the thread pool.
    Event,
    /// Nothing keeps the loop alive. Only a wake, or what the host starts, gives it work again.
    Idle,
}

impl NextWait {
    /// Returns how long a host may wait for the descriptor before the next turn; `None` means
    /// without a limit.
    ///
    /// Unlike [`LoopHandle::next_timeout`], the result for an idle loop is `None`: a host that
    /// lives on does not spin.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::NextWait;
    ///
    /// fn main() {
    ///     assert_eq!(NextWait::Now.timeout(), Some(Duration::ZERO));
    ///     assert_eq!(NextWait::Idle.timeout(), None);
    /// }
    /// ```
    #[must_use]
    pub const fn timeout(self) -> Option<Duration> {
        match self {
            Self::Now => Some(Duration::ZERO),
            Self::Timeout(timeout) => Some(timeout),
            Self::Event | Self::Idle => None,
        }
    }
}

impl EventLoop {
    /// Returns the descriptor of the loop, owned; see [`LoopHandle::backend`].
    ///
    /// # Errors
    ///
    /// The conditions of [`LoopHandle::backend`] apply.
    pub fn backend(&self) -> io::Result<Backend> {
        Backend::for_host(&self.core)
    }
}

impl LoopHandle {
    /// Calls `f` with this loop as the current loop of the thread, so that [`spawn`](crate::spawn),
    /// [`sleep`](crate::time::sleep) and similar functions work inside `f`. Tasks and closures that
    /// `f` queues run at the start of the next run.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, RunMode, spawn};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let task = event_loop.handle().enter(|| spawn(async { 7 }));
    ///     event_loop.run(RunMode::Default)?;
    ///     assert!(task.is_finished());
    ///     Ok(())
    /// }
    /// ```
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        self.core().entered(f)
    }

    /// Returns the descriptor of the loop for a host that drives it, such as another event loop.
    /// The host waits until the descriptor is readable, then calls
    /// [`EventLoop::turn`] with [`Duration::ZERO`].
    ///
    /// On Linux, readiness of this descriptor is enough. It becomes readable when I/O is ready,
    /// when another thread has sent something, when a timer is due, and when code of the host has
    /// queued or started something outside of a turn: by methods of a handle, or inside
    /// [`enter`](Self::enter). On other platforms timers do not make it readable: the host waits
    /// for at most [`next_wait`](Self::next_wait)`().timeout()`.
    ///
    /// From this call on, the loop keeps a timer of the kernel set while it does not run, and
    /// [`EventLoop::turn`] also runs a loop that is not alive: its host keeps it. A loop that never
    /// called this function pays for neither. Timers on a [paused](crate::time::pause) clock are
    /// due in no real time: they do not make the descriptor readable.
    ///
    /// # Errors
    ///
    /// Any OS error of `timerfd_create` and `epoll_ctl`.
    ///
    /// # Examples
    ///
    /// [`Backend`] has one.
    pub fn backend(&self) -> io::Result<Backend> {
        Backend::for_host(self.core())
    }

    /// Returns what the poll phase would wait for if it began now.
    ///
    /// [`next_timeout`](Self::next_timeout) is libuv's number for it, which is zero both for a loop
    /// with work and for one with nothing to wait for.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, NextWait};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let event_loop = EventLoop::new()?;
    ///     assert_eq!(event_loop.handle().next_wait(), NextWait::Idle);
    ///     event_loop.handle().set_immediate(|| ());
    ///     assert_eq!(event_loop.handle().next_wait(), NextWait::Now);
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn next_wait(&self) -> NextWait {
        let core = self.core();
        match core.next_timeout() {
            Some(0) if !core.stop.get() && !core.is_alive() => NextWait::Idle,
            Some(0) => NextWait::Now,
            Some(timeout) => NextWait::Timeout(Duration::from_nanos(timeout)),
            None => NextWait::Event,
        }
    }
}
