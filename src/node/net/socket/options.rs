//! What a socket is made with, and what it tells of itself.

use std::net::SocketAddr;

use super::Socket;
use crate::node::events::ListenerId;
use crate::node::stream::{Duplex, ReadableBuilder, WritableBuilder};
use crate::node::string_decoder::Encoding;

/// What a socket is made with. JavaScript: `{ allowHalfOpen: true, highWaterMark: 4096 }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// Whether it stays open for writing when the other side has ended.
    pub allow_half_open: bool,
    /// How many bytes each direction keeps; 16 KiB unless told otherwise.
    pub high_water_mark: Option<usize>,
}

impl SocketOptions {
    pub(super) fn duplex(
        self,
        mut readable: ReadableBuilder<Vec<u8>>,
        mut writable: WritableBuilder<Vec<u8>>,
    ) -> Duplex<Vec<u8>, Vec<u8>> {
        if let Some(mark) = self.high_water_mark {
            readable = readable.high_water_mark(mark);
            writable = writable.high_water_mark(mark);
        }
        let duplex = Duplex::new(readable, writable);
        duplex.set_allow_half_open(self.allow_half_open);
        duplex
    }
}

impl Socket {
    /// Lets the loop end although the socket is open. JavaScript: `socket.unref()`.
    pub fn unref(&self) {
        self.set_referenced(false);
    }

    /// Makes the socket keep the loop alive; it does from the start. JavaScript: `socket.ref()`.
    pub fn ref_(&self) {
        self.set_referenced(true);
    }

    fn set_referenced(&self, is_referenced: bool) {
        self.inner.is_unreferenced.set(!is_referenced);
        if let Some(connection) = &*self.inner.slot.borrow() {
            connection.set_referenced(is_referenced);
        }
    }

    /// How many bytes have come. JavaScript: `socket.bytesRead`.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.readable().bytes_read()
    }

    /// How many bytes were written, with those that wait. JavaScript: `socket.bytesWritten`.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.writable().bytes_written() + self.writable().length() as u64
    }

    /// Whether the socket stays open for writing when the other side has ended. JavaScript: `socket.allowHalfOpen`.
    #[must_use]
    pub fn allow_half_open(&self) -> bool {
        self.duplex.allow_half_open()
    }

    /// Sets [`allow_half_open`](Self::allow_half_open). JavaScript: `socket.allowHalfOpen = true`.
    pub fn set_allow_half_open(&self, allow: bool) {
        self.duplex.set_allow_half_open(allow);
    }

    /// Decodes what comes from now on; see [`Readable::set_encoding`]. JavaScript: `socket.setEncoding('utf8')`.
    pub fn set_encoding(&self, encoding: Encoding) -> &Self {
        self.readable().set_encoding(encoding);
        self
    }

    /// Adds a listener for what comes, as text; see [`Readable::on_text`].
    pub fn on_text(&self, listener: impl Fn(&str) + 'static) -> ListenerId {
        self.readable().on_text(listener)
    }

    /// Whether the socket was destroyed.
    #[must_use]
    pub fn destroyed(&self) -> bool {
        self.readable().destroyed()
    }

    /// Whether it is being connected.
    #[must_use]
    pub fn connecting(&self) -> bool {
        self.inner.connecting.get()
    }

    /// Whether an error has closed its connection: what Node's `'close'` is given.
    #[must_use]
    pub fn had_error(&self) -> bool {
        self.inner.had_error.get()
    }

    /// This end's address; also after the close. `None` for a local socket.
    #[must_use]
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.inner.addresses.get().0
    }

    /// The other end's address; also after the close. `None` for a local socket.
    #[must_use]
    pub fn remote_address(&self) -> Option<SocketAddr> {
        self.inner.addresses.get().1
    }
}
