//! The connecting of a socket.

use std::panic::Location;
use std::rc::Rc;

use super::opening::{already, deferred, open, open_with, tick};
use super::{CONNECT, Inner, READY, Socket};
use crate::abort::{AbortController, AbortSignal};
use crate::callback_futures::in_callbacks;
use crate::error::Error;
use crate::events::Emitter as _;
use crate::net::address::Address;
use crate::net::connection::Connection;
use crate::net::options::ConnectOptions;
use crate::site::Site;
use phaseloop::extension::frame::Frame;
use phaseloop::phase;
use phaseloop::task::next_tick;

impl Socket {
    /// Connects the socket, also again after its close. [`CONNECT`] and [`READY`] are emitted when
    /// the connection is established; an error destroys the socket. JavaScript:
    /// `socket.connect(port, host)`.
    ///
    /// The connection to an IP address begins on the next tick. A socket that is destroyed before
    /// never reaches its peer. A second call while the socket connects is the error `EALREADY`,
    /// also if the socket was destroyed between both calls, but the tick of the first has not run.
    /// A call while the socket is connected is the error `EISCONN`. Linux accepts the first such
    /// call of a TCP client, and [`CONNECT`] is emitted again.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::cell::Cell;
    /// use phaseloop_node::{Emitter, Exit, net, run, stream::CLOSE};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let server = net::create_server(|socket| socket.end("hello"));
    ///         server.listen_this(("127.0.0.1", 0), |server| {
    ///             let (server, address) = (server.clone(), server.address().unwrap());
    ///             let (socket, left) = (net::Socket::new(), Cell::new(2));
    ///             socket.on_data(|bytes| assert_eq!(bytes, b"hello"));
    ///             socket.on_this(CLOSE, move |socket, ()| match left.replace(left.get() - 1) {
    ///                 0 => server.close(),
    ///                 _ => socket.connect(address),
    ///             });
    ///             socket.connect(address);
    ///         });
    ///     })
    /// }
    /// ```
    #[track_caller]
    pub fn connect(&self, address: impl Into<Address>) {
        self.connect_at(address.into(), Location::caller());
    }

    /// Connects the socket with options; see [`connect`](Self::connect). JavaScript:
    /// `socket.connect({ port, host, localAddress, localPort, lookup, blockList })`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::rc::Rc;
    /// use phaseloop_node::{Emitter, Exit, net, run, stream::CLOSE};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let server = net::create_server(|socket| socket.end("hello"));
    ///         server.listen_this(("127.0.0.1", 0), |server| {
    ///             let options = net::ConnectOptions {
    ///                 lookup: Some(Rc::new(|_name, done| done(Ok(vec![[127, 0, 0, 1].into()])))),
    ///                 ..Default::default()
    ///             };
    ///             let socket = net::Socket::new();
    ///             let port = server.address().unwrap().port();
    ///             socket.connect_with_options(("database", port), options);
    ///             socket.on_data(|bytes| assert_eq!(bytes, b"hello"));
    ///             let server = server.clone();
    ///             socket.on(CLOSE, move |()| server.close());
    ///         });
    ///     })
    /// }
    /// ```
    #[track_caller]
    pub fn connect_with_options(&self, address: impl Into<Address>, options: ConnectOptions) {
        let (site, lookups) = (Location::caller(), self.inner.lookups.clone());
        self.connect_by(site, open_with(address.into(), options, site, lookups));
    }

    /// Connects the socket for a line of the program.
    #[track_caller]
    pub(crate) fn connect_at(&self, address: Address, site: Site) {
        let lookups = self.inner.lookups.clone();
        self.connect_by(site, open(address, site, lookups));
    }

    /// Connects the socket with the connection that `opening` opens, for a line of the program. The
    /// destruction of the socket drops `opening`.
    #[track_caller]
    pub(crate) fn connect_by(
        &self,
        site: Site,
        opening: impl Future<Output = Result<Box<dyn Connection>, Error>> + 'static,
    ) {
        let socket = self.clone();
        if self.connecting() {
            return next_tick(move || socket.destroy(Some(already())));
        }
        if self.inner.is_open() {
            return self.connect_open();
        }
        self.duplex.undestroy();
        let signal = self.inner.begin();
        self.inner.site.set(Some(site));
        self.set_frame(Frame::current());
        self.duplex.closes_by_hand();
        in_callbacks(async move {
            // The result may be known inside this call, before the caller could add a listener.
            let Ok(connected) = signal.guard(deferred(opening)).await else {
                return;
            };
            match connected {
                Ok(connection) => socket.connected(connection),
                Err(error) => socket.destroy(Some(error.at(site))),
            }
        });
    }

    fn connected(&self, connection: Box<dyn Connection>) {
        let opening = self.inner.opening.take();
        drop(opening);
        self.open(connection);
        let (_, peer) = self.inner.addresses.get();
        // The kernel keeps the state "connecting" until the next `connect`, which returns success.
        let connects_twice = cfg!(any(target_os = "linux", target_os = "android"));
        self.inner
            .connects_twice
            .set(connects_twice && peer.is_some());
        self.announce();
    }

    fn announce(&self) {
        self.inner.is_active();
        self.emitter().emit(CONNECT, ());
        self.emitter().emit(READY, ());
        if !self.readable().is_paused() {
            self.readable().read_size(0);
        }
    }

    /// Connects a socket that is connected. It keeps its connection.
    fn connect_open(&self) {
        let (socket, signal) = (self.clone(), self.inner.begin());
        in_callbacks(async move {
            let accepts = socket.inner.connects_twice.replace(false);
            let connecting = signal.guard(async {
                tick(&Rc::default()).await;
                if accepts {
                    phase::poll().await;
                }
            });
            if connecting.await.is_err() {
                return;
            }
            if accepts {
                let opening = socket.inner.opening.take();
                drop(opening);
                socket.announce();
            } else {
                let error = Error::with_code("EISCONN", "connect EISCONN");
                socket.destroy(Some(error));
            }
        });
    }
}

impl Inner {
    /// Makes the socket a connecting one. The signal stops it.
    fn begin(&self) -> AbortSignal {
        let controller = AbortController::new();
        let signal = controller.signal();
        self.opening.replace(Some(controller));
        signal
    }
}
