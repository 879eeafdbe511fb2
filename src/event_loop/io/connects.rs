//! The sockets that are being connected, and to which address: the kernel does not report it before
//! the connection is established, and a report names it.

use std::cell::RefCell;
use std::net::SocketAddr;

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

#[cfg(feature = "net")]
impl super::Io {
    /// Notes that the source with this key is being connected to `address`.
    pub(crate) fn note_connect(&self, key: usize, address: SocketAddr) {
        self.connects.list.borrow_mut().push((key, address));
    }

    /// Notes that the source with this key is connected, or was given up.
    pub(crate) fn end_connect(&self, key: usize) {
        let mut list = self.connects.list.borrow_mut();
        if let Some(place) = list.iter().position(|(known, _)| *known == key) {
            list.swap_remove(place);
        }
    }
}
