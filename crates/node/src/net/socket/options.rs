//! The options of a socket, and its properties.

use std::net::SocketAddr;
use std::time::Duration;

use super::{CONNECT, Socket};
use crate::delay::Delay;
use crate::error::Error;
use crate::events::{Emitter, ListenerId};
use crate::reason::throw;
use crate::stream::{Duplex, FINISH, ReadableBuilder, WritableBuilder};
use crate::string_decoder::Encoding;
use phaseloop::net::Keepalive;

/// Options of a socket. JavaScript: `{ allowHalfOpen: true, highWaterMark: 4096 }`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, net, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let options = net::SocketOptions { allow_half_open: true, high_water_mark: Some(4096) };
///         let socket = net::Socket::with_options(options);
///         assert!(socket.allow_half_open());
///     })
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// Whether the writing direction stays open when the peer has ended.
    pub allow_half_open: bool,
    /// The high water mark of each direction in bytes. The default is 16 KiB.
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
    fn set_referenced(&self, is_referenced: bool) {
        self.inner.is_unreferenced.set(!is_referenced);
        if let Some(connection) = &*self.inner.slot.borrow() {
            connection.set_referenced(is_referenced);
        }
    }

    /// Sets whether small writes leave at once, without waiting for the acknowledgement of earlier
    /// ones. It has no effect on a local socket. JavaScript: `socket.setNoDelay(true)`.
    pub fn set_no_delay(&self, no_delay: bool) -> &Self {
        self.inner.no_delay.set(no_delay);
        if let Some(connection) = &*self.inner.slot.borrow() {
            connection.set_no_delay(no_delay);
        }
        self
    }

    /// Sets whether the system probes the peer when the connection is idle, and after which time;
    /// see [`set_keep_alive_with`](Self::set_keep_alive_with). JavaScript:
    /// `socket.setKeepAlive(enable, initialDelay)`.
    pub fn set_keep_alive(&self, enable: bool, initial_delay: impl Into<Delay>) -> &Self {
        self.set_keep_alive_with(KeepAliveOptions {
            enable,
            initial_delay: Some(initial_delay.into()),
            ..KeepAliveOptions::default()
        })
    }

    /// Sets whether the system probes the peer when the connection is idle, and how. It has no
    /// effect on a local socket. JavaScript:
    /// `socket.setKeepAlive({ enable, initialDelay, interval, count })`.
    ///
    /// If a time is below one second, or the count is zero, the probes are switched on with the
    /// settings that the connection has: those of an earlier call, or the usual ones of the system.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, net, run};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let socket = net::Socket::new();
    ///         socket.set_keep_alive_with(net::KeepAliveOptions {
    ///             enable: true,
    ///             initial_delay: Some(60_000.into()),
    ///             interval: Some(5_000.into()),
    ///             count: Some(3),
    ///         });
    ///     })
    /// }
    /// ```
    pub fn set_keep_alive_with(&self, options: KeepAliveOptions) -> &Self {
        let slot = self.inner.slot.borrow();
        let known = match &*slot {
            Some(_) => self.inner.keep_alive.get(),
            None => KeepAlive::default(),
        };
        let set = KeepAlive {
            is_on: options.enable,
            how: options.probes().unwrap_or(known.how),
        };
        self.inner.keep_alive.set(set);
        if let Some(connection) = &*slot {
            connection.set_keep_alive(set.probes());
        }
        self
    }

    /// Returns the state of the connection: `"opening"`, `"open"`, `"readOnly"`, `"writeOnly"` or
    /// `"closed"`. As in Node, a new socket is `"open"`. JavaScript: `socket.readyState`.
    #[must_use]
    pub fn ready_state(&self) -> &'static str {
        if self.connecting() {
            return "opening";
        }
        match (self.readable().is_readable(), self.writable().is_writable()) {
            (true, true) => "open",
            (true, false) => "readOnly",
            (false, true) => "writeOnly",
            (false, false) => "closed",
        }
    }

    /// Returns whether the socket has no connection yet, or no longer. JavaScript:
    /// `socket.pending`.
    #[must_use]
    pub fn pending(&self) -> bool {
        !self.inner.is_open() || self.connecting()
    }

    /// Ends the writing direction, and destroys the socket when all bytes are written. JavaScript:
    /// `socket.destroySoon()`.
    pub fn destroy_soon(&self) {
        if self.writable().is_writable() {
            self.end(());
        }
        if self.writable().finished() {
            return self.destroy(None);
        }
        self.once_this(FINISH, |socket, ()| socket.destroy(None));
    }

    /// Destroys the socket and resets the connection: the peer gets the error `ECONNRESET`, and
    /// what is not sent is lost. JavaScript: `socket.resetAndDestroy()`.
    ///
    /// A socket that connects is reset when it is connected. One without a connection is destroyed
    /// with the error `ERR_SOCKET_CLOSED`.
    ///
    /// # Panics
    ///
    /// [Throws](crate::throw) `ERR_INVALID_HANDLE_TYPE` if the connection is not TCP.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Emitter, Exit, events::ERROR, net, run};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let server = net::create_server(|socket| socket.reset_and_destroy());
    ///         server.listen_this(("127.0.0.1", 0), |server| {
    ///             let client = net::connect(server.address().unwrap());
    ///             client.resume();
    ///             let server = server.clone();
    ///             client.on(ERROR, move |error| {
    ///                 assert_eq!(error.code(), Some("ECONNRESET"));
    ///                 server.close();
    ///             });
    ///         });
    ///     })
    /// }
    /// ```
    pub fn reset_and_destroy(&self) {
        if self.connecting() {
            self.once_this(CONNECT, |socket, ()| socket.reset_and_destroy());
            return;
        }
        let connection = self.inner.slot.borrow();
        let resets = connection.as_ref().map(|known| known.resets_on_close());
        drop(connection);
        match resets {
            Some(true) => self.destroy(None),
            Some(false) => {
                let error = Error::type_error("This handle type cannot be sent");
                throw(error.coded("ERR_INVALID_HANDLE_TYPE"));
            }
            None => {
                let error = Error::with_code("ERR_SOCKET_CLOSED", "Socket is closed");
                self.destroy(Some(error));
            }
        }
    }

    /// Sets the timeout like [`set_timeout`](Self::set_timeout), and uses a muted timer of the same
    /// delay again.
    pub(crate) fn set_timeout_again(&self, millis: u32) {
        if self.inner.is_idle_muted.replace(false) && self.inner.idle_delay.get() == millis {
            return self.inner.is_active();
        }
        self.set_timeout(millis);
    }

    /// Takes the effect from the timeout, as [`clear_timeout`](Self::clear_timeout) does, but keeps
    /// the timer for [`set_timeout_again`](Self::set_timeout_again).
    pub(crate) fn mute_timeout(&self) {
        self.inner.is_idle_muted.set(true);
    }

    /// Returns the number of bytes received. JavaScript: `socket.bytesRead`.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.readable().bytes_read()
    }

    /// Returns the number of bytes written, with those still buffered. JavaScript:
    /// `socket.bytesWritten`.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.writable().bytes_written() + self.writable().length() as u64
    }

    /// Returns whether the writing direction stays open when the peer has ended. JavaScript:
    /// `socket.allowHalfOpen`.
    #[must_use]
    pub fn allow_half_open(&self) -> bool {
        self.duplex.allow_half_open()
    }

    /// Sets [`allow_half_open`](Self::allow_half_open). JavaScript: `socket.allowHalfOpen = true`.
    pub fn set_allow_half_open(&self, allow: bool) {
        self.duplex.set_allow_half_open(allow);
    }

    /// Decodes received bytes from now on; see
    /// [`Readable::set_encoding`](crate::stream::Readable::set_encoding). JavaScript:
    /// `socket.setEncoding('utf8')`.
    pub fn set_encoding(&self, encoding: Encoding) -> &Self {
        self.readable().set_encoding(encoding);
        self
    }

    /// Adds a listener for received text; see
    /// [`Readable::on_text`](crate::stream::Readable::on_text).
    pub fn on_text(&self, listener: impl Fn(&str) + 'static) -> ListenerId {
        self.readable().on_text(listener)
    }

    /// Returns whether the socket was destroyed. JavaScript: `socket.destroyed`.
    #[must_use]
    pub fn destroyed(&self) -> bool {
        self.readable().destroyed()
    }

    /// Returns whether the socket is connecting. JavaScript: `socket.connecting`.
    #[must_use]
    pub fn connecting(&self) -> bool {
        self.inner.is_connecting()
    }

    /// Returns whether an error has closed the connection: the argument of Node's `'close'` event.
    #[must_use]
    pub fn had_error(&self) -> bool {
        self.inner.had_error.get()
    }

    /// Returns the local address, also after the close. `None` for a local socket. JavaScript:
    /// `socket.localAddress`, `socket.localPort`.
    #[must_use]
    #[doc(alias = "localPort")]
    #[doc(alias = "local_port")]
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.inner.addresses.get().0
    }

    /// Returns the address of the peer, also after the close. `None` for a local socket.
    /// JavaScript: `socket.remoteAddress`, `socket.remotePort`.
    #[must_use]
    #[doc(alias = "remotePort")]
    #[doc(alias = "remote_port")]
    pub fn remote_address(&self) -> Option<SocketAddr> {
        self.inner.addresses.get().1
    }
}

#[cfg(feature = "tls")]
impl Socket {
    /// Returns what the handshake has agreed on, while the socket is connected.
    pub(crate) fn session(&self) -> Option<crate::tls::Session> {
        self.inner.slot.borrow().as_ref()?.session()
    }
}

impl_ref!(Socket, "socket");

/// Options of [`Socket::set_keep_alive_with`]. JavaScript:
/// `{ enable: true, initialDelay: 60000, interval: 5000, count: 3 }`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::net::KeepAliveOptions;
///
/// fn main() {
///     assert!(!KeepAliveOptions::default().enable);
/// }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct KeepAliveOptions {
    /// Whether the system probes the peer.
    pub enable: bool,
    /// The idle time before the first probe, in whole seconds. Without it, the settings of the
    /// connection stay as they are.
    pub initial_delay: Option<Delay>,
    /// The time between two probes, in whole seconds. The default is one second.
    pub interval: Option<Delay>,
    /// The number of unanswered probes after which the connection is closed. The default is ten.
    pub count: Option<u32>,
}

impl KeepAliveOptions {
    /// Returns the settings, if the system takes them.
    fn probes(self) -> Option<Keepalive> {
        let whole = |delay: Delay| match u64::from(delay.as_millis()) / 1000 {
            0 => None,
            seconds => Some(Duration::from_secs(seconds)),
        };
        let mut probes = Keepalive::after(whole(self.initial_delay?)?);
        if let Some(interval) = self.interval {
            probes = probes.interval(whole(interval)?);
        }
        match self.count {
            Some(0) => None,
            Some(count) => Some(probes.retries(count)),
            None => Some(probes),
        }
    }
}

/// The probes of a connection.
#[derive(Clone, Copy)]
pub(super) struct KeepAlive {
    is_on: bool,
    /// The settings that the connection has, also while the probes are off.
    how: Keepalive,
}

impl KeepAlive {
    /// Returns the settings, if the probes are on.
    pub(super) fn probes(self) -> Option<Keepalive> {
        self.is_on.then_some(self.how)
    }
}

/// The usual settings of Linux.
impl Default for KeepAlive {
    fn default() -> Self {
        let how = Keepalive::after(Duration::from_secs(2 * 60 * 60));
        Self {
            is_on: false,
            how: how.interval(Duration::from_secs(75)).retries(9),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{KeepAliveOptions, Socket, SocketOptions};
    use phaseloop::net::TcpStream;
    use std::net;
    use std::panic::Location;

    // N159: what reaches the system. The same values were read from a connection of Node 26.10.
    #[test]
    fn n159_the_interval_and_the_count_of_probes_reach_the_system() {
        let exit = crate::run(async {
            let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
            let stream = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let twin = socket2::Socket::from(stream.try_clone().unwrap());
            let connection = Box::new(TcpStream::from_std(stream).unwrap());
            let options = SocketOptions::default();
            let socket = Socket::accepted(connection, options, None, Location::caller());
            let set = |initial_delay: Option<u32>, interval: Option<u32>, count| {
                socket.set_keep_alive_with(KeepAliveOptions {
                    enable: true,
                    initial_delay: initial_delay.map(Into::into),
                    interval: interval.map(Into::into),
                    count,
                });
                assert!(twin.keepalive().unwrap());
                let (idle, interval) = (twin.tcp_keepalive_time(), twin.tcp_keepalive_interval());
                let seconds = (idle.unwrap().as_secs(), interval.unwrap().as_secs());
                (seconds.0, seconds.1, twin.tcp_keepalive_retries().unwrap())
            };
            assert_eq!(set(None, None, None), (7200, 75, 9));
            assert_eq!(set(Some(5000), Some(10_999), Some(9)), (5, 10, 9));
            assert_eq!(set(Some(6000), None, None), (6, 1, 10));
            assert_eq!(set(Some(7000), Some(3000), None), (7, 3, 10));
            // Refused: the settings stay.
            assert_eq!(set(Some(9000), Some(999), Some(4)), (7, 3, 10));
            assert_eq!(set(Some(9000), Some(2000), Some(0)), (7, 3, 10));
            assert_eq!(set(Some(999), Some(2000), Some(5)), (7, 3, 10));
            // The system refuses the idle time, the interval, the count, one after the other.
            assert_eq!(set(Some(40_000_000), Some(2000), Some(5)), (7, 3, 10));
            assert_eq!(set(Some(8000), Some(40_000_000), Some(5)), (8, 3, 10));
            assert_eq!(set(Some(9000), Some(2000), Some(128)), (9, 2, 10));
            socket.set_keep_alive(false, 5000);
            assert!(!twin.keepalive().unwrap());
            socket.destroy(None);
        });
        assert_eq!(exit.code(), 0);
    }
}
