//! Connected datagram sockets.

use std::net::SocketAddr;
use std::panic::Location;

use super::{Sent, Socket, State, any_address};
use crate::error::Error;
use crate::events::{ERROR, Event};
use crate::reason::throw;
use phaseloop::task::next_tick;

/// The socket is connected; see [`Socket::connect`]. JavaScript: `'connect'`.
pub const CONNECT: Event<()> = Event::new("connect");

/// Throws the error of a peer without a port.
#[track_caller]
pub(super) fn check_port(to: SocketAddr) {
    if to.port() == 0 {
        let text = "Port should be > 0 and < 65536. Received type number (0).";
        throw(Error::range_error(text).coded("ERR_SOCKET_BAD_PORT"));
    }
}

/// Throws the error of an operation that needs an unconnected socket.
fn already_connected() -> ! {
    throw(Error::with_code(
        "ERR_SOCKET_DGRAM_IS_CONNECTED",
        "Already connected",
    ))
}

impl Socket {
    /// Connects the socket: it receives datagrams of the peer only, and
    /// [`send_to_peer`](Self::send_to_peer) needs no address. An unbound socket is bound to any
    /// port first. [`CONNECT`] or the error is emitted on a tick. JavaScript: `socket.connect(port,
    /// address)`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread. [Throws](crate::throw)
    /// `ERR_SOCKET_DGRAM_IS_CONNECTED` if it is connected, `ERR_SOCKET_DGRAM_NOT_RUNNING` after
    /// [`close`](Self::close), and `ERR_SOCKET_BAD_PORT` for port 0.
    #[track_caller]
    pub fn connect(&self, to: SocketAddr) {
        check_port(to);
        self.check_open();
        if self.inner.is_connecting.replace(true) {
            already_connected();
        }
        if self.inner.state.get() == State::Unbound {
            self.begin_binding();
            self.bind_later(any_address(to), Location::caller());
        }
        let this = self.clone();
        if self.inner.state.get() == State::Bound {
            next_tick(move || this.connect_now(to));
        } else {
            self.enqueue(move || next_tick(move || this.connect_now(to)));
        }
    }

    fn connect_now(&self, to: SocketAddr) {
        let bound = self.inner.bound.borrow();
        let connected = bound.as_ref().map(|bound| bound.socket.connect_now(to));
        drop(bound);
        let this = self.clone();
        match connected {
            // The socket was closed before this tick.
            None => {}
            Some(Ok(())) => {
                self.inner.peer.set(Some(to));
                next_tick(move || {
                    this.inner.emitter.emit(CONNECT, ());
                });
            }
            Some(Err(error)) => {
                self.inner.is_connecting.set(false);
                let error = Error::of_address(error, "connect", to);
                next_tick(move || {
                    this.inner.emitter.emit(ERROR, &error);
                });
            }
        }
    }

    /// Sends a datagram to the peer of a connected socket. JavaScript: `socket.send(bytes)`.
    ///
    /// # Panics
    ///
    /// See [`send`](Self::send). [Throws](crate::throw) `ERR_SOCKET_DGRAM_NOT_CONNECTED`
    /// before [`CONNECT`].
    #[track_caller]
    pub fn send_to_peer(&self, bytes: &[u8]) {
        self.check_open();
        let peer = self.remote_address();
        self.send_at(bytes.to_vec(), peer, None, Location::caller());
    }

    /// Sends a datagram to the peer of a connected socket. `callback` is called with the size or
    /// the error, on a tick. JavaScript: `socket.send(bytes, callback)`.
    ///
    /// # Panics
    ///
    /// See [`send_to_peer`](Self::send_to_peer).
    #[track_caller]
    pub fn send_to_peer_with(
        &self,
        bytes: &[u8],
        callback: impl FnOnce(Result<usize, Error>) + 'static,
    ) {
        self.check_open();
        let peer = self.remote_address();
        let callback: Sent = Box::new(callback);
        self.send_at(bytes.to_vec(), peer, Some(callback), Location::caller());
    }

    /// Disconnects the socket: it receives datagrams of all peers again, and
    /// [`send`](Self::send) takes an address. JavaScript: `socket.disconnect()`.
    ///
    /// # Panics
    ///
    /// [Throws](crate::throw) `ERR_SOCKET_DGRAM_NOT_CONNECTED` if the socket is not
    /// connected, and any OS error of `connect`.
    #[track_caller]
    pub fn disconnect(&self) {
        let peer = self.remote_address();
        let bound = self.inner.bound.borrow();
        let result = bound
            .as_ref()
            .map_or(Ok(()), |bound| bound.socket.disconnect());
        drop(bound);
        if let Err(error) = result {
            throw(Error::of_address(error, "connect", peer));
        }
        self.inner.peer.set(None);
        self.inner.is_connecting.set(false);
    }

    /// Refuses an address for a send of a connected socket.
    #[track_caller]
    pub(super) fn check_unconnected(&self) {
        if self.inner.peer.get().is_some() {
            already_connected();
        }
    }

    /// Returns the address of the peer. JavaScript: `socket.remoteAddress()`.
    ///
    /// # Panics
    ///
    /// [Throws](crate::throw) `ERR_SOCKET_DGRAM_NOT_CONNECTED` if the socket is not
    /// connected.
    #[must_use]
    pub fn remote_address(&self) -> SocketAddr {
        let not_connected = || {
            throw(Error::with_code(
                "ERR_SOCKET_DGRAM_NOT_CONNECTED",
                "Not connected",
            ))
        };
        self.inner.peer.get().unwrap_or_else(not_connected)
    }
}
