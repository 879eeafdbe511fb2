//! The timeout of a socket that neither reads nor writes.

use std::panic::Location;
use std::rc::Rc;

use super::{Socket, TIMEOUT};
use crate::delay::Delay;
use crate::events::Emitter as _;
use crate::reason::throw;
use crate::site::Site;
use crate::timers::set_timeout_mut_at;

/// Returns the idle time that a program asks for. `None`: there is no limit.
///
/// # Panics
///
/// Throws `ERR_OUT_OF_RANGE` for what is no time.
pub(crate) fn idle_time(delay: impl Into<Delay>) -> Option<Delay> {
    match delay.into().as_idle_time("msecs") {
        Ok(delay) => delay,
        Err(error) => throw(error),
    }
}

impl Socket {
    /// Emits [`TIMEOUT`] whenever no byte was read or written for `delay`. The socket stays open; a
    /// listener decides what to do. The call replaces an earlier timeout. A delay of zero,
    /// [`clear_timeout`](Self::clear_timeout) and the destruction of the socket stop the timer.
    /// JavaScript: `socket.setTimeout(delay)`.
    ///
    /// A delay above 2³¹ − 1 milliseconds is cut to that, with a `TimeoutOverflowWarning`. The
    /// timer does not keep the loop alive.
    ///
    /// # Panics
    ///
    /// [Throws](crate::throw) `ERR_OUT_OF_RANGE` for a delay that is negative, infinite or no
    /// number. Panics when no loop runs on this thread.
    #[track_caller]
    pub fn set_timeout(&self, delay: impl Into<Delay>) {
        self.clear_or_set(idle_time(delay), Location::caller());
    }

    /// Sets the timeout as a part of this module does, for the line that has made the connection.
    #[track_caller]
    pub(crate) fn limit_idle_time(&self, delay: Option<Delay>) {
        let site = self.inner.site.get();
        self.clear_or_set(delay, site.unwrap_or(Location::caller()));
    }

    #[track_caller]
    fn clear_or_set(&self, delay: Option<Delay>, site: Site) {
        self.clear_timeout();
        let Some(delay) = delay.filter(|_| !self.destroyed()) else {
            return;
        };
        self.inner.idle_delay.set(delay.as_millis());
        // Weak: the timer must not keep a dropped socket.
        let inner = Rc::downgrade(&self.inner);
        let timeout = set_timeout_mut_at(delay, site, move |_| {
            let inner = inner.upgrade();
            let inner = inner.filter(|inner| !inner.is_idle_muted.get());
            if let Some(duplex) = inner.and_then(|inner| inner.duplex()) {
                duplex.emitter().emit(TIMEOUT, ());
            }
        });
        timeout.unref();
        self.inner.idle.replace(Some(timeout));
    }

    /// Stops the timer of [`set_timeout`](Self::set_timeout). JavaScript: `socket.setTimeout(0)`.
    pub fn clear_timeout(&self) {
        self.inner.is_idle_muted.set(false);
        let idle = self.inner.idle.take();
        if let Some(idle) = idle {
            idle.close();
        }
    }
}
