//! Views of handles of any kind, to inspect and close them: libuv's `uv_walk`.

use std::fmt;
use std::rc::Rc;

use super::handle::{Close, Handle, HandleCore, HandleInfo, sealed};
use super::loop_handle::LoopHandle;
use crate::event_loop::ledger::handles::{Header, Stage};
use crate::keeper::Keeper;
use crate::raw::bound::Bound;

/// A view of a handle of any kind. [`LoopHandle::walk`] visits such views, and [`Handle::any`]
/// creates one.
///
/// The view does not own the handle. Dropping the view has no effect, and dropping the handle
/// closes it although views exist. Two views are equal if they belong to one handle.
///
/// # Closing from elsewhere
///
/// [`close`](Self::close) also works while a future waits on the handle. The future is woken in the
/// closing phase and completes: reads, writes and waits of all kinds with an error, on Unix
/// `ECANCELED`; streams of events with `None`. The descriptor of a socket, pipe or source is
/// deregistered at once, and closed when its owner drops it.
///
/// # Examples
///
/// ```
/// use phaseloop::{Handle, net::UdpSocket, spawn};
///
/// #[phaseloop::main]
/// async fn main() -> Result<(), std::io::Error> {
///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
///     let view = socket.any();
///     let receiver = spawn(async move { socket.recv_from(&mut [0; 64]).await });
///     phaseloop::task::yield_now().await;
///     view.close().await;
///     assert!(receiver.await.unwrap().is_err());
///     Ok(())
/// }
/// ```
pub struct AnyHandle {
    core: Bound<Rc<HandleCore>>,
}

impl Clone for AnyHandle {
    fn clone(&self) -> Self {
        Self {
            core: Bound::new(self.core.clone()),
        }
    }
}

impl AnyHandle {
    pub(crate) fn new(handle: LoopHandle, header: Rc<Header>) -> Self {
        Self {
            core: Bound::new(Rc::new(HandleCore::view_on(handle, header))),
        }
    }

    /// Returns the kind of the handle.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{Keeper, LoopHandle, time::Timer};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let handle = LoopHandle::current();
    ///     let timer = Timer::new(&handle);
    ///     handle.walk(|each| {
    ///         assert_eq!(each.kind(), Keeper::Timer);
    ///         println!("{}", each.info()); // with the line that created it
    ///         each.close().then(|| ());
    ///     });
    ///     drop(timer);
    /// }
    /// ```
    #[must_use]
    pub fn kind(&self) -> Keeper {
        self.core.header.kind
    }

    /// Returns the handle's entry of [`LoopHandle::handles`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{Keeper, LoopHandle, time::Timer};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let handle = LoopHandle::current();
    ///     let timer = Timer::new(&handle);
    ///     handle.walk(|each| {
    ///         assert_eq!(each.kind(), Keeper::Timer);
    ///         println!("{}", each.info()); // with the line that created it
    ///         each.close().then(|| ());
    ///     });
    ///     drop(timer);
    /// }
    /// ```
    #[must_use]
    pub fn info(&self) -> HandleInfo {
        HandleInfo::of(&self.core.header, self.core.handle.core())
    }

    /// Stops the handle for good. The close completes in the closing phase; see [`Close`].
    ///
    /// For a [`Child`](crate::process::Child) this closes the handle only. The child process
    /// continues, and the loop reaps it in the background.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{Keeper, LoopHandle, time::Timer};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let handle = LoopHandle::current();
    ///     let timer = Timer::new(&handle);
    ///     handle.walk(|each| {
    ///         assert_eq!(each.kind(), Keeper::Timer);
    ///         println!("{}", each.info()); // with the line that created it
    ///         each.close().then(|| ());
    ///     });
    ///     drop(timer);
    /// }
    /// ```
    pub fn close(&self) -> Close {
        self.core.close()
    }
}

impl Handle for AnyHandle {}

impl sealed::Sealed for AnyHandle {
    fn handle_core(&self) -> &HandleCore {
        &self.core
    }
}

impl PartialEq for AnyHandle {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.core.header, &other.core.header)
    }
}

impl Eq for AnyHandle {}

impl fmt::Debug for AnyHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyHandle({})", self.info())
    }
}

impl LoopHandle {
    /// Visits the loop's handles in the order of their creation, including those that are not
    /// started or are closing. It is libuv's `uv_walk`.
    ///
    /// The visitor may create, close and drop handles. The walk skips handles that were created
    /// during it, and those that were dropped before they were visited.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{AsyncHandle, EventLoop, Handle, RunMode, time::Timer};
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let handle = event_loop.handle();
    ///     let timer = Timer::new(&handle);
    ///     timer.start(Duration::from_secs(3600), Duration::ZERO, |_| unreachable!())?;
    ///     let _sent = AsyncHandle::new(&handle, |_| ())?;
    ///     handle.walk(|each| each.close().then(|| println!("closed")));
    ///     assert!(timer.is_closing());
    ///     assert!(!event_loop.run(RunMode::Default)?);
    ///     assert_eq!(handle.handles(), []);
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias = "uv_walk")]
    pub fn walk(&self, mut visit: impl FnMut(&AnyHandle)) {
        for header in self.core().ledger.headers() {
            if header.stage.get() != Stage::Closed {
                visit(&AnyHandle::new(self.clone(), header));
            }
        }
    }
}
