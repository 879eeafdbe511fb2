//! Async handles: call back on the loop when another thread says so.

use std::fmt;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::Error;
use crate::event_loop::asyncs::{AsyncState, Sent};
use crate::event_loop::handle::LoopHandle;
use crate::event_loop::handles::{Close, Handle, HandleCore, sealed};
use crate::executor::spawn::Shared;
use crate::kinds::{Kind, Site};

/// Calls back in the poll phase when one of its [senders](AsyncHandle::sender) has sent, from whatever thread or signal
/// handler.
///
/// However often it is sent before the callback begins, there is one callback. What is sent after that moment
/// makes another one. The handles of a loop are called in the order in which they were made. It is active from the
/// start, until it is closed or dropped. A send ends the wait of the poll phase and keeps no loop alive: an unref'd handle
/// is called when the loop runs for another reason.
///
/// # Examples
///
/// ```
/// use phaseloop::{AsyncHandle, EventLoop, Handle, RunMode};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut event_loop = EventLoop::new()?;
/// let handle = AsyncHandle::new(&event_loop.handle(), |handle| handle.unref())?;
/// let sender = handle.sender();
/// let thread = std::thread::spawn(move || sender.send());
/// event_loop.run(RunMode::Default)?;
/// thread.join().unwrap()?;
/// # Ok(())
/// # }
/// ```
pub struct AsyncHandle {
    core: HandleCore,
    state: Rc<AsyncState>,
}

impl AsyncHandle {
    /// Makes a handle that calls `callback`, which gets the handle itself, to close or unref it.
    ///
    /// # Errors
    ///
    /// When the loop is gone.
    #[track_caller]
    pub fn new(handle: &LoopHandle, callback: impl FnMut(&Self) + 'static) -> Result<Self, Error> {
        Self::new_at(handle, Location::caller(), callback)
    }

    /// The same for the line `site`.
    pub(crate) fn new_at(
        handle: &LoopHandle,
        site: Site,
        mut callback: impl FnMut(&Self) + 'static,
    ) -> Result<Self, Error> {
        if handle.is_closed() {
            return Err(Error::LOOP_CLOSED);
        }
        let core = handle.open(Kind::Async, site);
        let loop_core = handle.core();
        let state = Rc::new_cyclic(|weak: &std::rc::Weak<AsyncState>| {
            let weak = weak.clone();
            let call = Box::new(move || {
                if let Some(state) = weak.upgrade() {
                    callback(&Self {
                        core: HandleCore::view(state.header.clone()),
                        state,
                    });
                }
            });
            loop_core.asyncs.make(core.header.clone(), call)
        });
        loop_core.asyncs.insert(&state);
        loop_core.set_active(&core.header, true);
        Ok(Self { core, state })
    }

    /// Makes the loop call back, as a [sender](Self::sender) does: for the loop's own thread, from whatever phase.
    ///
    /// The callback comes in the next poll phase. Sent from the callback of another async handle, to one that was made
    /// after that, it comes in the same one.
    ///
    /// # Errors
    ///
    /// When the handle was closed or its loop is gone; nothing happens then.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{AsyncHandle, EventLoop, Handle, RunMode};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut event_loop = EventLoop::new()?;
    /// let handle = AsyncHandle::new(&event_loop.handle(), |handle| handle.unref())?;
    /// handle.send()?;
    /// assert!(!event_loop.run(RunMode::Default)?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn send(&self) -> Result<(), Error> {
        send(&self.state.sent, &self.core.handle.core().shared)
    }

    /// A way for other threads to make the loop call back.
    #[must_use]
    pub fn sender(&self) -> AsyncSender {
        AsyncSender {
            sent: self.state.sent.clone(),
            shared: self.core.handle.core().shared.clone(),
        }
    }

    /// Stops the handle for good, at once, also if it was sent already, and has it reported in the closing phase; see
    /// [`Close`].
    pub fn close(&self) -> Close {
        self.core.close()
    }

    /// For the callback: has it called once more in this poll phase, after a drain and before the handles after it.
    #[cfg(feature = "node")]
    pub(crate) fn call_again(&self) {
        self.state.again.set(true);
    }
}

impl Handle for AsyncHandle {}

impl sealed::Sealed for AsyncHandle {
    fn handle_core(&self) -> &HandleCore {
        &self.core
    }
}

impl Drop for AsyncHandle {
    fn drop(&mut self) {
        self.core.release();
    }
}

impl fmt::Debug for AsyncHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncHandle")
            .field("created_at", &self.created_at())
            .finish_non_exhaustive()
    }
}

/// Makes an [`AsyncHandle`] call back; for any thread, and for signal handlers.
#[derive(Clone)]
pub struct AsyncSender {
    sent: Arc<Sent>,
    shared: Arc<Shared>,
}

impl AsyncSender {
    /// Makes the loop call the handle's callback, once for all sends until it does.
    ///
    /// Takes no lock and allocates nothing: an atomic swap or two, and a write to a descriptor if the loop sleeps. All
    /// that was done before is visible in the callback.
    ///
    /// # Errors
    ///
    /// When the handle was closed or its loop is gone; nothing happens then.
    pub fn send(&self) -> Result<(), Error> {
        send(&self.sent, &self.shared)
    }
}

fn send(sent: &Sent, shared: &Shared) -> Result<(), Error> {
    if sent.closed.load(Ordering::Acquire) {
        return Err(Error::HANDLE_CLOSED);
    }
    if !sent.pending.swap(true, Ordering::AcqRel) {
        shared.inbox.signal();
    }
    Ok(())
}

impl fmt::Debug for AsyncSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncSender")
            .field("closed", &self.sent.closed)
            .finish()
    }
}
