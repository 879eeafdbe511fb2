//! The sockets that are being connected, and to which address: the kernel does not tell before the
//! connection is established, and a report names it.

use std::cell::RefCell;
use std::net::SocketAddr;

#[cfg(feature = "net")]
use crate::event_loop::core::Core;

#[derive(Default)]
pub(super) struct Connects {
    /// The keys of the sources, with the addresses.
    list: RefCell<Vec<(usize, SocketAddr)>>,
}

impl Connects {
    /// Returns the address that a source is being connected to.
    pub(super) fn target(&self, key: usize) -> Option<SocketAddr> {
        let list = self.list.borrow();
        let found = list.iter().find(|(known, _)| *known == key);
        found.map(|&(_, address)| address)
    }
}

/// Notes that a source is being connected, as long as this value lives.
#[cfg(feature = "net")]
pub(crate) struct Connecting<'a> {
    core: &'a Core,
    key: usize,
}

#[cfg(feature = "net")]
impl<'a> Connecting<'a> {
    pub(crate) fn new(core: &'a Core, key: usize, address: SocketAddr) -> Self {
        core.io.connects.list.borrow_mut().push((key, address));
        Self { core, key }
    }
}

#[cfg(feature = "net")]
impl Drop for Connecting<'_> {
    fn drop(&mut self) {
        let mut list = self.core.io.connects.list.borrow_mut();
        if let Some(place) = list.iter().position(|(key, _)| *key == self.key) {
            list.swap_remove(place);
        }
    }
}
