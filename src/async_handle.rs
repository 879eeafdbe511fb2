//! Async handles: callbacks on the loop that other threads trigger.

use std::fmt;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::Error;
use crate::event_loop::io::asyncs::{AsyncState, Sent};
use crate::executor::shared::Shared;
use crate::keeper::Keeper;
use crate::raw::bound::Bound;
use crate::runtime::handle::{Close, Handle, HandleCore, impl_handle};
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;

/// Runs a callback in the poll phase after one of its [senders](AsyncHandle::sender) has sent, from
/// any thread or signal handler.
///
/// Any number of sends before the callback begins cause one call; a send after that moment causes
/// another one. The handles of a loop are called in the order of their creation. A handle is active
/// from its creation until it is closed or dropped. A send ends the wait of the poll phase, but
/// does not keep the loop alive: an unref'd handle is called when the loop runs for another reason.
///
/// # Examples
///
/// ```
/// use phaseloop::{AsyncHandle, EventLoop, Handle, RunMode};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let mut event_loop = EventLoop::new()?;
///     let handle = AsyncHandle::new(&event_loop.handle(), |handle| handle.unref())?;
///     let sender = handle.sender();
///     let thread = std::thread::spawn(move || sender.send());
///     event_loop.run(RunMode::Default)?;
///     thread.join().unwrap()?;
///     Ok(())
/// }
/// ```
#[doc(alias = "uv_async_t")]
pub struct AsyncHandle {
    core: HandleCore,
    state: Bound<Rc<AsyncState>>,
}

impl AsyncHandle {
    /// Creates a handle. `callback` receives the handle, to close or unref it.
    ///
    /// # Errors
    ///
    /// If the loop was dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{AsyncHandle, Handle, LoopHandle};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let handle = AsyncHandle::new(&LoopHandle::current(), |_| unreachable!())?;
    ///     handle.send()?;
    ///     handle.close().await; // the callback does not run any more
    ///     assert!(handle.is_closing());
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn new(handle: &LoopHandle, callback: impl FnMut(&Self) + 'static) -> Result<Self, Error> {
        Self::new_at(handle, Location::caller(), callback)
    }

    /// Creates a handle on behalf of the caller at `site`.
    #[doc(hidden)]
    pub fn new_at(
        handle: &LoopHandle,
        site: Site,
        mut callback: impl FnMut(&Self) + 'static,
    ) -> Result<Self, Error> {
        if handle.is_closed() {
            return Err(Error::LOOP_CLOSED);
        }
        let core = handle.open(Keeper::Async, site);
        let loop_core = handle.core();
        let state = Rc::new_cyclic(|weak: &std::rc::Weak<AsyncState>| {
            let weak = weak.clone();
            let call = Box::new(move || {
                if let Some(state) = weak.upgrade() {
                    callback(&Self {
                        core: HandleCore::view(state.header.clone()),
                        state: Bound::new(state),
                    });
                }
            });
            loop_core.io.make_async(core.header.clone(), call)
        });
        loop_core.io.add_async(&state);
        loop_core.set_active(&core.header, true);
        Ok(Self {
            core,
            state: Bound::new(state),
        })
    }

    /// Sends from the loop's own thread, in any phase; a [sender](Self::sender) does it from other
    /// threads.
    ///
    /// The callback runs in the next poll phase. A send from the callback of an async handle to a
    /// handle created later is served in the same poll phase.
    ///
    /// # Errors
    ///
    /// If the handle was closed or its loop was dropped. The send has no effect then.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{AsyncHandle, EventLoop, Handle, RunMode};
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let handle = AsyncHandle::new(&event_loop.handle(), |handle| handle.unref())?;
    ///     handle.send()?;
    ///     assert!(!event_loop.run(RunMode::Default)?);
    ///     Ok(())
    /// }
    /// ```
    pub fn send(&self) -> Result<(), Error> {
        send(&self.state.sent, &self.core.handle.core().executor.shared)
    }

    /// Returns a sender for other threads.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{AsyncHandle, EventLoop, Handle, RunMode};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let handle = AsyncHandle::new(&event_loop.handle(), |handle| handle.unref()).unwrap();
    ///     let sender = handle.sender();
    ///     std::thread::spawn(move || sender.send().unwrap()).join().unwrap();
    ///     event_loop.run(RunMode::Default)?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn sender(&self) -> AsyncSender {
        AsyncSender {
            sent: self.state.sent.clone(),
            shared: self.core.handle.core().executor.shared.clone(),
        }
    }

    /// Stops the handle for good, at once, even with a send pending. The close completes in the
    /// closing phase; see [`Close`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{AsyncHandle, Handle, LoopHandle};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let handle = AsyncHandle::new(&LoopHandle::current(), |_| unreachable!())?;
    ///     handle.send()?;
    ///     handle.close().await; // the callback does not run any more
    ///     assert!(handle.is_closing());
    ///     Ok(())
    /// }
    /// ```
    pub fn close(&self) -> Close {
        self.core.close()
    }

    /// Requests, from the callback, another call in this poll phase: after a drain, and before the
    /// handles after it.
    #[doc(hidden)]
    pub fn call_again(&self) {
        self.state.again.set(true);
    }
}

impl_handle!(AsyncHandle, |this| &this.core);

impl fmt::Debug for AsyncHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncHandle")
            .field("created_at", &self.created_at())
            .finish_non_exhaustive()
    }
}

/// Triggers the callback of an [`AsyncHandle`], from any thread and from signal handlers.
///
/// # Examples
///
/// ```
/// use phaseloop::{AsyncHandle, EventLoop, Handle, RunMode};
///
/// fn main() -> std::io::Result<()> {
///     let mut event_loop = EventLoop::new()?;
///     let handle = AsyncHandle::new(&event_loop.handle(), |handle| handle.unref()).unwrap();
///     let sender = handle.sender();
///     std::thread::spawn(move || sender.send().unwrap()).join().unwrap();
///     event_loop.run(RunMode::Default)?;
///     Ok(())
/// }
/// ```
#[derive(Clone)]
#[doc(alias = "uv_async_send")]
pub struct AsyncSender {
    sent: Arc<Sent>,
    shared: Arc<Shared>,
}

impl AsyncSender {
    /// Triggers the callback, once for all sends before it begins.
    ///
    /// It takes no lock and allocates nothing: an atomic swap or two, and a write to a descriptor
    /// if the loop sleeps. Memory written before the send is visible in the callback.
    ///
    /// # Errors
    ///
    /// If the handle was closed or its loop was dropped. The send has no effect then.
    pub fn send(&self) -> Result<(), Error> {
        send(&self.sent, &self.shared)
    }
}

fn send(sent: &Sent, shared: &Shared) -> Result<(), Error> {
    if sent.closed.load(Ordering::Acquire) {
        return Err(Error::HANDLE_CLOSED);
    }
    shared.note_sender();
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
