//! A source as its owner holds it.

use std::io;
use std::mem::ManuallyDrop;
use std::rc::Rc;

use super::selector::Selector as _;
use super::{AsSource, Interest, Poller, RawSource};
use crate::raw::bound::Bound;

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
