//! How long a closed socket keeps its listeners.

use std::rc::{Rc, Weak};

use super::{Inner, Socket};

/// Keeps the listeners of a socket after its close: the program may connect the socket again.
///
/// A listener often holds a clone of its own socket, as a JavaScript closure does. Such a clone
/// holds nothing, so that the close frees the socket.
pub(super) struct Hold(Weak<Inner>);

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(duplex) = self.0.upgrade().and_then(|inner| inner.duplex()) {
            duplex.keep_listeners(false);
        }
    }
}

impl Hold {
    /// Keeps the listeners of a socket as long as the returned value lives.
    pub(super) fn of(inner: &Rc<Inner>) -> Rc<Self> {
        let hold = Rc::new(Self(Rc::downgrade(inner)));
        inner.hold.replace(Some(Rc::downgrade(&hold)));
        if let Some(duplex) = inner.duplex() {
            duplex.keep_listeners(true);
        }
        hold
    }
}

impl Inner {
    /// Returns what a handle that is made now holds. One of a destroyed socket is made for what
    /// comes after the close.
    fn hold(self: &Rc<Self>) -> Option<Rc<Hold>> {
        let is_known = self.hold.borrow().is_some();
        let duplex = self.duplex().filter(|_| is_known)?;
        if duplex.is_released() {
            return None;
        }
        let known = self.hold.borrow().as_ref().and_then(Weak::upgrade);
        Some(known.unwrap_or_else(|| Hold::of(self)))
    }
}

impl Clone for Socket {
    /// Returns another handle to the same socket.
    fn clone(&self) -> Self {
        Self {
            duplex: self.duplex.clone(),
            inner: self.inner.clone(),
            hold: match self.destroyed() {
                true => self.inner.hold(),
                false => None,
            },
        }
    }
}
