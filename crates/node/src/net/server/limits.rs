//! Which connections a server takes, and how their sockets begin.

use std::net::SocketAddr;

use super::Server;
use crate::delay::Delay;
use crate::events::Event;
use crate::net::block_list::BlockList;

/// A connection was dropped, because there are [too many](Server::set_max_connections).
/// JavaScript: `'drop'`.
pub const DROP: Event<Dropped> = Event::new("drop");

/// The addresses of a connection that was dropped. A local socket has none.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, net};
///
/// fn main() {
///     let server = net::Server::new();
///     server.set_max_connections(Some(1000));
///     server.on(net::DROP, |dropped| println!("too many: {:?}", dropped.remote));
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// The local address.
    pub local: Option<SocketAddr>,
    /// The address of the peer.
    pub remote: Option<SocketAddr>,
}

/// How an accepted socket begins.
#[derive(Clone, Copy, Default)]
pub(super) struct Begin {
    pub(super) is_paused: bool,
    pub(super) no_delay: bool,
    pub(super) keep_alive: Option<Delay>,
}

impl Server {
    /// Returns the number of connections beyond which further ones are dropped. JavaScript:
    /// `server.maxConnections`.
    #[must_use]
    pub fn max_connections(&self) -> Option<usize> {
        self.inner.max_connections.get()
    }

    /// Sets the number of connections beyond which further ones are closed at once, with [`DROP`];
    /// `None`, the default, is no limit. JavaScript: `server.maxConnections = count`.
    pub fn set_max_connections(&self, most: Option<usize>) {
        self.inner.max_connections.set(most);
    }

    /// Sets a list of addresses whose connections are closed at once, without an event. JavaScript:
    /// the option `blockList` of `net.createServer`.
    pub fn set_block_list(&self, list: &BlockList) {
        self.inner.block_list.replace(Some(list.clone()));
    }

    /// Sets whether accepted sockets are paused, so that no byte is read before `resume`.
    /// JavaScript: the option `pauseOnConnect` of `net.createServer`.
    pub fn set_pause_on_connect(&self, pauses: bool) {
        self.change_begin(|begin| begin.is_paused = pauses);
    }

    /// Sets whether accepted sockets send small writes at once; see
    /// [`Socket::set_no_delay`](crate::net::Socket::set_no_delay).
    /// JavaScript: the option `noDelay` of `net.createServer`.
    pub fn set_no_delay(&self, no_delay: bool) {
        self.change_begin(|begin| begin.no_delay = no_delay);
    }

    /// Sets whether idle connections are probed; see
    /// [`Socket::set_keep_alive`](crate::net::Socket::set_keep_alive). JavaScript: the
    /// options `keepAlive` and `keepAliveInitialDelay` of `net.createServer`.
    pub fn set_keep_alive(&self, enable: bool, initial_delay: impl Into<Delay>) {
        let delay = enable.then(|| initial_delay.into());
        self.change_begin(|begin| begin.keep_alive = delay);
    }

    fn change_begin(&self, change: impl FnOnce(&mut Begin)) {
        let mut begin = self.inner.begin.get();
        change(&mut begin);
        self.inner.begin.set(begin);
    }
}
