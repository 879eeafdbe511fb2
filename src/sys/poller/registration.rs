//! A source as its owner holds it, and as the poller sees it.
// Marks: only tests have sources in memory: without them the test is no code.

use std::io;
use std::mem::ManuallyDrop;
use std::rc::Rc;

#[cfg(windows)]
use super::RawSource;
use super::selector::Selector as _;
use super::{AsSource, Interest, Poller};
use crate::raw::bound::Bound;

/// The raw descriptor of a registered source. Its owner keeps it open as long as it is registered.
#[cfg(unix)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RawSource(pub(in crate::sys) std::os::fd::RawFd);

#[cfg(unix)]
impl RawSource {
    pub(crate) fn of(source: &impl AsSource) -> Self {
        Self(std::os::fd::AsRawFd::as_raw_fd(&source.source()))
    }

    /// Names the source as users do. `peer` is the address that it is being connected to, if so.
    pub(crate) fn label(
        self,
        role: crate::label::Role,
        peer: Option<std::net::SocketAddr>,
    ) -> crate::label::Label {
        self.with(|source| crate::sys::describe::describe(*source, role, peer))
    }

    /// Calls `f` with the source.
    pub(in crate::sys) fn with<R>(self, f: impl FnOnce(&std::os::fd::BorrowedFd<'_>) -> R) -> R {
        // SAFETY: the descriptor is open: its owner has registered it, or is about to.
        f(&unsafe { std::os::fd::BorrowedFd::borrow_raw(self.0) })
    }
}

/// Returns whether bytes that a write has accepted are still on their way to the kernel.
#[cfg(unix)]
#[inline]
pub(crate) fn is_writing(_: &impl AsSource) -> bool {
    false
}

#[cfg(windows)]
pub(crate) fn is_writing(source: &impl AsSource) -> bool {
    source.is_writing()
}

/// Implements the platform's view of a descriptor for a type, by an expression that returns one of
/// the kernel.
#[cfg(feature = "net")]
macro_rules! impl_as_source {
    ($type:ty, |$this:ident| $kernel:expr) => {
        #[cfg(unix)]
        impl std::os::fd::AsFd for $type {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                let $this = self;
                std::os::fd::AsFd::as_fd($kernel)
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsRawFd for $type {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                let $this = self;
                std::os::fd::AsRawFd::as_raw_fd($kernel)
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsSocket for $type {
            fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
                let $this = self;
                std::os::windows::io::AsSocket::as_socket($kernel)
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsRawSocket for $type {
            fn as_raw_socket(&self) -> std::os::windows::io::RawSocket {
                let $this = self;
                std::os::windows::io::AsRawSocket::as_raw_socket($kernel)
            }
        }
    };
}
#[cfg(feature = "net")]
pub(crate) use impl_as_source;

/// A registered source. It is deregistered before it is closed.
pub(crate) struct Registration<T: AsSource> {
    /// Valid until `leave` or drop. No `&mut T` is ever returned: the descriptor must stay the
    /// registered one.
    source: ManuallyDrop<T>,
    poller: Bound<Rc<Poller>>,
    /// Whether the source is in memory, and so is not known to the poller.
    #[cfg(feature = "test-util")]
    is_in_memory: bool,
}

impl<T: AsSource> Registration<T> {
    /// Registers `source` under `key`.
    ///
    /// # Errors
    ///
    /// Any OS error of `epoll_ctl`: `AlreadyExists` for a source that is registered already,
    /// `PermissionDenied` for one that cannot be polled (a regular file), `OutOfMemory`. The source
    /// is returned with the error.
    pub(crate) fn new(
        poller: Rc<Poller>,
        source: T,
        key: usize,
        interest: Interest,
    ) -> Result<Self, (T, io::Error)> {
        // SAFETY: the source must be deleted from the poller before it is dropped. `Registration`
        // owns it; its drop deregisters the source first, and `leave` is called for a deregistered
        // one only.
        match unsafe { poller.add(&source, key, interest) } {
            Ok(()) => Ok(Self {
                source: ManuallyDrop::new(source),
                poller: Bound::new(poller),
                #[cfg(feature = "test-util")]
                is_in_memory: false,
            }),
            Err(error) => Err((source, error)),
        }
    }

    /// Holds a source that is in memory, and whose events do not come from the poller.
    #[cfg(feature = "test-util")]
    pub(crate) fn in_memory(poller: Rc<Poller>, source: T) -> Self {
        Self {
            source: ManuallyDrop::new(source),
            poller: Bound::new(poller),
            is_in_memory: true,
        }
    }

    /// Returns whether the poller knows the source.
    #[inline(always)]
    #[cfg_attr(
        not(feature = "test-util"),
        expect(clippy::unused_self, reason = "only tests have sources in memory")
    )]
    fn is_polled(&self) -> bool {
        #[cfg(feature = "test-util")]
        return !self.is_in_memory;
        #[cfg(not(feature = "test-util"))]
        true
    }

    #[inline]
    pub(crate) fn get(&self) -> &T {
        &self.source
    }

    /// Registers a source for both directions that was registered, under `key`, for reading. If it
    /// is writable, an event reports that.
    pub(crate) fn add_write(&self, key: usize) -> io::Result<()> {
        if !self.is_polled() {
            return Ok(());
        }
        self.poller.add_write(self.get(), key)
    }

    /// Registers one-shot interests in these directions again, under the key of the source, on
    /// platforms that need it.
    // The owner of a registration knows the key. A copy here would be in every socket.
    pub(crate) fn rearm(&self, key: usize, readable: bool, writable: bool) -> io::Result<()> {
        if !self.is_polled() {
            return Ok(());
        }
        self.poller
            .selector
            .rearm(self.get(), key, readable, writable)
    }

    /// Returns whether this process was forked from the one that has made the poller, and so shares
    /// the source with it.
    #[cfg(all(feature = "fs", any(target_os = "linux", target_os = "android")))]
    pub(crate) fn is_inherited(&self) -> bool {
        self.poller.is_inherited()
    }

    /// Returns the raw source, for a later [`Poller::remove`] while this registration exists.
    pub(crate) fn raw(&self) -> RawSource {
        RawSource::of(self.get())
    }

    /// Returns the source, which [`Poller::remove`] has deregistered.
    pub(crate) fn leave(self) -> T {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is not dropped; each field is moved out or dropped here, once.
        unsafe {
            std::ptr::drop_in_place(&raw mut this.poller);
            ManuallyDrop::take(&mut this.source)
        }
    }

    fn deregister(&self) {
        // The error is ignored. Only a source that stays registered would matter, and the call
        // fails only if other code has closed the descriptor, which has deregistered it.
        if self.is_polled() {
            let _ = self.poller.delete(&*self.source);
        }
    }
}

impl<T: AsSource> Drop for Registration<T> {
    fn drop(&mut self) {
        self.deregister();
        // SAFETY: the source is not used afterwards; `leave`, which moves it out, prevents this
        // drop.
        unsafe { ManuallyDrop::drop(&mut self.source) };
    }
}
