//! The contract of a backend, stated once.

use std::io;
use std::sync::Arc;

use super::Report;
use super::{AsSource, Interest, PollEvents};

/// The kernel's event queue, as one backend uses it.
///
/// [`Poller`](super::Poller) is what the loop calls. It checks that the process is the one that has
/// created the queue, so a backend need not. The default methods and constants are those of a
/// backend that offers nothing beyond registrations and the wait.
pub(in crate::sys) trait Selector: Sized {
    /// Whether EOF is an event of its own, so that a short read proves that no data is left.
    const REPORTS_END: bool = false;
    /// Whether an interest is one-shot, so that each wait has to register it again.
    const NEEDS_REARM: bool = false;
    /// Whether urgent data is an event of its own.
    const REPORTS_PRIORITY: bool = false;
    /// Whether a hang-up is an event of its own.
    const REPORTS_HANG_UP: bool = false;
    /// Whether an event reports that this end has shut down reading.
    #[cfg(feature = "net")]
    const REPORTS_OWN_SHUTDOWN: bool = true;
    /// Whether [`set_timer`](Self::set_timer) works.
    const HAS_TIMER: bool = false;

    /// The objects that outlive the queue while others hold them.
    type Kernel: Kernel;
    /// An event as the wait returns it.
    type Event: Report;

    fn new() -> io::Result<Self>;

    fn kernel(&self) -> &Arc<Self::Kernel>;

    /// Replaces the kernel objects that are shared with the parent, in a child after `fork`. Only
    /// the notifier is registered afterwards.
    ///
    /// # Errors
    ///
    /// `Unsupported` where a child inherits no queue, or cannot replace it.
    fn reinit(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Makes the descriptor readable once, after `delay` nanoseconds, or stops that. The event ends
    /// a wait and belongs to no source.
    ///
    /// # Errors
    ///
    /// `Unsupported` if a timer is to be set and the backend has none; otherwise any OS error.
    fn set_timer(&self, delay: Option<u64>) -> io::Result<()> {
        match delay {
            Some(_) => Err(io::ErrorKind::Unsupported.into()),
            None => Ok(()),
        }
    }

    /// Registers the source once for its life. A backend whose
    /// [`rearm`](Self::rearm) does not set the directions registers it edge-triggered.
    ///
    /// # Safety
    ///
    /// `source` must be deleted before it is dropped.
    unsafe fn add(&self, source: &impl AsSource, key: usize, interest: Interest) -> io::Result<()>;

    /// Registers a source for both directions that was registered for reading. The default is for
    /// backends that register both directions at once.
    fn add_write(&self, _source: &impl AsSource, _key: usize) -> io::Result<()> {
        Ok(())
    }

    /// Registers these directions again. The default is for edge-triggered registrations, which
    /// report every change.
    fn rearm(
        &self,
        _source: &impl AsSource,
        _key: usize,
        _readable: bool,
        _writable: bool,
    ) -> io::Result<()> {
        Ok(())
    }

    /// Registers a source for `events`, level-triggered, or changes its registration. The caller
    /// deletes the source before it is closed.
    fn set_level(
        &self,
        source: &impl AsSource,
        key: usize,
        events: PollEvents,
        is_new: bool,
    ) -> io::Result<()>;

    fn delete(&self, source: &impl AsSource) -> io::Result<()>;

    /// Waits for an event, a notification or the timeout, and adds the events to the list, which is
    /// empty. The timeout is in nanoseconds; `None` waits for ever.
    ///
    /// # Errors
    ///
    /// `Interrupted` if a signal ended the wait; otherwise any OS error.
    fn wait(&self, list: &mut Vec<Self::Event>, timeout: Option<u64>) -> io::Result<()>;
}

/// The kernel objects that `Backend`s share and notifiers refer to.
pub(in crate::sys) trait Kernel {
    /// Returns the poller of `polling`, which has the descriptor of the queue.
    fn poller(&self) -> &polling::Poller;

    /// Ends the wait, from any thread and from signal handlers.
    fn notify(&self);
}
