//! TCP listeners.

use std::fmt;
use std::io;
use std::net::{self, SocketAddr};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
#[cfg(feature = "cluster")]
use std::{cell::Cell, time::Duration};

use futures::Stream;

use super::socket::TcpSocket;
use super::stream::TcpStream;
use crate::error::OsError;
use crate::io::{Moving, Source};
use crate::label::Role;
use crate::net::accept::{self, Accept, Accepted, Accepts, BACKLOG};
use crate::net::address::{FirstOf, Resolving, ToAddresses};
use crate::net::detached::Detached;
use crate::net::transport::{Acceptor, Conn};
use crate::runtime::handle::{Close, Handle, impl_handle};
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys::poller::impl_as_source;
#[cfg(feature = "cluster")]
use crate::time::sleep;

/// A TCP socket that accepts connections.
///
/// Each turn of the loop accepts at most one connection, as libuv does, so that a flood of
/// connections does not starve the established ones.
///
/// # Out of descriptors
///
/// When the process or the OS has no descriptor left, [`accept`](TcpListener::accept) returns that
/// error once. The waiting connections are accepted on a reserve descriptor and closed, so that
/// their peers do not wait in vain. The listener stays usable: the next `accept` waits for the next
/// connection.
///
/// # Errors that stay
///
/// Some errors are not of one connection: the system has no memory for it, a security module
/// forbids it, the socket does not listen any more, or there is no descriptor, not even the one
/// held back. [`accept`](TcpListener::accept) returns such an error at once. The next `accept`
/// rests for 10 milliseconds before it tries again, so that a loop that logs the error and goes on
/// leaves the processor to others.
///
/// # Examples
///
/// ```
/// use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
/// use phaseloop::net::{TcpListener, TcpStream};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let address = listener.local_addr()?;
///     phaseloop::spawn(async move {
///         loop {
///             match listener.accept().await {
///                 Ok((mut stream, _)) => drop(stream.write_all(b"hello").await),
///                 Err(error) => eprintln!("accept: {error}"),
///             }
///         }
///     })
///     .detach();
///     let mut text = String::new();
///     TcpStream::connect(address).await?.read_to_string(&mut text).await?;
///     assert_eq!(text, "hello");
///     Ok(())
/// }
/// ```
#[doc(alias = "uv_listen")]
pub struct TcpListener {
    source: Source<Acceptor>,
    /// Not if it came with a descriptor of something else.
    is_tcp: bool,
    accepted: Accepted,
}

impl TcpListener {
    /// Listens on the first address of the target that can be bound. Port 0 selects a free port.
    /// Binding happens when the returned future is awaited.
    ///
    /// `SO_REUSEADDR` is set, so that the address can be bound while connections of a previous
    /// listener are in `TIME_WAIT`. [`TcpSocket`] offers further options.
    ///
    /// # Errors
    ///
    /// The OS error of `bind` or `listen` for the last address that was tried, which the error
    /// names, such as [`AddrInUse`](io::ErrorKind::AddrInUse),
    /// [`AddrNotAvailable`](io::ErrorKind::AddrNotAvailable) and
    /// [`PermissionDenied`](io::ErrorKind::PermissionDenied); [`os_error`](crate::os_error) returns
    /// its number. [`InvalidInput`](io::ErrorKind::InvalidInput) for a target that is neither an
    /// address nor a name with a port.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped before it completes has bound no socket.
    ///
    /// # Panics
    ///
    /// When the future is awaited and no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::TcpListener;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?; // 0: any free port
    ///     println!("listening on {}", listener.local_addr()?);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn bind(target: impl ToAddresses) -> impl Future<Output = io::Result<Self>> {
        let site = Location::caller();
        let addresses = Resolving::of("net::TcpListener::bind", target, site);
        FirstOf::new(addresses, |address, site| {
            Self::bind_to(&LoopHandle::current(), address, site)
                .map_err(|error| OsError::wrap(error, "bind", address))
        })
    }

    fn bind_to(handle: &LoopHandle, address: SocketAddr, site: Site) -> io::Result<Self> {
        let socket = TcpSocket::new_on(Some(handle), address.is_ipv6())?;
        socket.bind_plainly(address)?;
        socket.listen_on(handle, BACKLOG, site)
    }

    /// Listens `count` times on the first address of the target that can be bound. Several
    /// listeners share the port, and the kernel spreads the connections over them.
    #[cfg(feature = "cluster")]
    pub(crate) fn bind_times(
        target: impl ToAddresses,
        count: usize,
        backlog: u32,
        site: Site,
    ) -> impl Future<Output = io::Result<Vec<Self>>> {
        let addresses = Resolving::of("cluster::listen", target, site);
        FirstOf::new(addresses, move |mut address, site| {
            let handle = LoopHandle::current();
            let bind = |address: SocketAddr| {
                let socket = TcpSocket::new_on(Some(&handle), address.is_ipv6())?;
                if count > 1 {
                    socket.set_spread_port()?;
                }
                socket.bind_plainly(address)?;
                socket.listen_on(&handle, backlog, site)
            };
            let mut listeners = Vec::with_capacity(count);
            for _ in 0..count {
                let listener = bind(address).map_err(|error| OsError::wrap(error, "bind", address));
                let listener: Self = listener?;
                // The port of the first is that of all.
                address = listener.local_addr()?;
                listeners.push(listener);
            }
            Ok(listeners)
        })
    }

    /// Deregisters the listener, to accept what is left in the kernel's queue and close it then.
    #[cfg(feature = "cluster")]
    pub(crate) fn into_last(self) -> Last {
        let (site, is_tcp) = (self.created_at(), self.is_tcp);
        let socket = self.source.into_inner();
        Last {
            socket,
            is_held_back: Cell::new(false),
            site,
            is_tcp,
        }
    }

    /// Accepts a connection that an event has reported.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is none; any OS error of `accept`.
    #[cfg(feature = "cluster")]
    pub(crate) fn accept_ready(&self, site: Site) -> io::Result<(Detached<TcpStream>, SocketAddr)> {
        let (conn, peer) = self.source.try_read_with(Acceptor::accept)?;
        Ok((self.detached(conn, site), peer))
    }

    pub(in crate::net) fn register(
        handle: &LoopHandle,
        listener: Acceptor,
        site: Site,
    ) -> io::Result<Self> {
        Ok(Self {
            is_tcp: listener.is_tcp(),
            source: listener.open(handle, site)?,
            accepted: Accepted::default(),
        })
    }

    pub(in crate::net) fn from_source(source: Source<Acceptor>, is_tcp: bool) -> Self {
        Self {
            source,
            is_tcp,
            accepted: Accepted::default(),
        }
    }

    pub(in crate::net) fn into_source(self) -> (Source<Acceptor>, bool) {
        (self.source, self.is_tcp)
    }

    /// Registers a listener of the standard library with the running loop, in non-blocking mode.
    ///
    /// # Errors
    ///
    /// Any OS error of registering the descriptor with the poller.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn from_std(listener: net::TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let (handle, site) = (LoopHandle::current(), Location::caller());
        handle
            .core()
            .waits
            .note_outside("a socket of the standard library", site);
        Self::register(&handle, Acceptor::from_std(listener), site)
    }

    /// Deregisters the listener and returns it. It stays in non-blocking mode.
    ///
    /// # Panics
    ///
    /// If the listener is on a network in memory, which only a test has.
    #[must_use]
    pub fn into_std(self) -> net::TcpListener {
        self.source.into_inner().0.into_kernel()
    }

    /// Accepts a connection. It waits in the poll phase, once the returned future is awaited.
    /// [`created_at`](Handle::created_at) of the connection is the line of this call.
    ///
    /// # Errors
    ///
    /// Any OS error of `accept`: of a connection that went away before it was accepted, for want of
    /// a descriptor, or one that stays (see [`TcpListener`]). The listener goes on after each.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no connection.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use phaseloop::io::AsyncWriteExt;
    /// use phaseloop::{net::TcpListener, spawn};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:7000").await?;
    ///     loop {
    ///         let (mut stream, peer) = listener.accept().await?;
    ///         let text = format!("hello {peer}\n");
    ///         let greet = async move { stream.write_all(text.as_bytes()).await };
    ///         spawn(greet).detach();
    ///     }
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn accept(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> {
        self.accept_at(Location::caller())
    }

    /// Accepts a connection that is registered with no loop, so that another one can
    /// [attach](Detached::attach) it. It waits as [`accept`](Self::accept) does.
    ///
    /// # Errors
    ///
    /// The errors of [`accept`](Self::accept).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no connection.
    ///
    /// # Examples
    ///
    /// See [`Detached`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let client = TcpStream::connect(listener.local_addr()?).await?;
    ///     let (connection, peer) = listener.accept_detached().await?;
    ///     assert_eq!(peer, client.local_addr()?);
    ///     // The loop of another thread serves the connection.
    ///     let thread = std::thread::spawn(move || {
    ///         phaseloop::block_on(async { connection.attach()?.peer_addr() })
    ///     });
    ///     assert_eq!(thread.join().unwrap()?, peer);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn accept_detached(
        &self,
    ) -> impl Future<Output = io::Result<(Detached<TcpStream>, SocketAddr)>> {
        self.accept_detached_at(Location::caller())
    }

    pub(crate) fn accept_detached_at(
        &self,
        site: Site,
    ) -> impl Future<Output = io::Result<(Detached<TcpStream>, SocketAddr)>> {
        let mut accept = Accept::new(self, site);
        std::future::poll_fn(move |cx| {
            let raw = std::task::ready!(accept.poll_raw(cx));
            Poll::Ready(raw.map(|(conn, peer)| (self.detached(conn, accept.site()), peer)))
        })
    }

    fn detached(&self, conn: Conn, site: Site) -> Detached<TcpStream> {
        Detached::of_conn(
            conn,
            Moving::unregistered(Role::Accepted, self.is_tcp, site),
        )
    }

    /// Returns whether the next accept waits because of an error that stays.
    #[doc(hidden)]
    pub fn is_resting(&self) -> bool {
        self.accepted.is_resting()
    }

    /// Accepts on behalf of the caller at `site`.
    #[doc(hidden)]
    pub fn accept_at(
        &self,
        site: Site,
    ) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> {
        Accept::new(self, site)
    }

    /// Polls [`accept`](Self::accept). The listener keeps the waker of the last call, so that a
    /// caller which keeps no future is woken when a connection arrives. Futures of `accept` can
    /// wait beside it.
    ///
    /// # Errors
    ///
    /// The errors of [`accept`](Self::accept).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::poll_fn;
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let client = TcpStream::connect(listener.local_addr()?).await?;
    ///     let (_server, peer) = poll_fn(|cx| listener.poll_accept(cx)).await?;
    ///     assert_eq!(peer, client.local_addr()?);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        accept::poll_accept(self, Location::caller(), cx)
    }

    /// Returns an endless stream of connections. Their [`created_at`](Handle::created_at) is the
    /// line of this call.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{TcpListener, TcpStream};
    /// use phaseloop::stream::StreamExt;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let client = TcpStream::connect(listener.local_addr()?).await?;
    ///     let server = listener.incoming().next().await.unwrap()?;
    ///     assert_eq!(server.peer_addr()?, client.local_addr()?);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming {
            accept: Accept::new(self, Location::caller()),
        }
    }

    /// Returns the address that the listener is bound to.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockname`.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.source.get_ref().local_addr()
    }

    /// Returns the time to live (TTL) of accepted connections.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(IP_TTL)`.
    pub fn ttl(&self) -> io::Result<u32> {
        self.source.get_ref().ttl()
    }

    /// Sets the time to live (TTL) of accepted connections.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IP_TTL)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::TcpListener;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     listener.set_ttl(42)?;
    ///     assert_eq!(listener.ttl()?, 42);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.source.get_ref().set_ttl(ttl)
    }

    /// Closes the listener at once. The close completes in the closing phase; see [`Close`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let address = listener.local_addr()?;
    ///     listener.close().await;
    ///     assert!(TcpStream::connect(address).await.is_err());
    ///     Ok(())
    /// }
    /// ```
    pub fn close(self) -> Close {
        self.source.close()
    }

    /// Returns the socket of the standard library, for options without a method here.
    ///
    /// # Panics
    ///
    /// If the listener is on a network in memory, which only a test has.
    #[must_use]
    pub fn get_ref(&self) -> &net::TcpListener {
        self.source.get_ref().0.kernel()
    }
}

/// A listener that is about to be closed, and belongs to no loop. The kernel resets what is left in
/// the queue of a closed one, so handshakes are held back before.
#[cfg(feature = "cluster")]
pub(crate) struct Last {
    socket: Acceptor,
    is_held_back: Cell<bool>,
    site: Site,
    is_tcp: bool,
}

#[cfg(feature = "cluster")]
impl Last {
    /// Accepts a connection that waits, whether or not an event has reported it. `None` means that
    /// there is none.
    pub(crate) fn accept(&self) -> Option<(Detached<TcpStream>, SocketAddr)> {
        let (conn, peer) = self.socket.accept().ok()?;
        let moving = Moving::unregistered(Role::Accepted, self.is_tcp, self.site);
        Some((Detached::of_conn(conn, moving), peer))
    }
}

#[cfg(feature = "cluster")]
impl Last {
    /// Lets no further handshake begin, once, and waits for those under way, as far as they are of
    /// this machine or a near one. Returns whether there may be a connection since.
    pub(crate) async fn hold_back(&self) -> bool {
        let is_new = !self.is_held_back.replace(true) && self.socket.hold_back();
        if is_new {
            sleep(HANDSHAKE).await;
        }
        is_new
    }
}

/// How long a handshake under way is waited for.
#[cfg(feature = "cluster")]
const HANDSHAKE: Duration = Duration::from_millis(2);

impl Accepts for TcpListener {
    type Socket = Acceptor;
    type Raw = (Conn, SocketAddr);
    type Connection = (TcpStream, SocketAddr);

    fn parts(&self) -> (&Source<Acceptor>, &Accepted) {
        (&self.source, &self.accepted)
    }

    fn accept_raw(socket: &Acceptor) -> io::Result<Self::Raw> {
        socket.accept()
    }

    fn open(&self, (stream, peer): Self::Raw, site: Site) -> io::Result<Self::Connection> {
        let handle = self.event_loop();
        let stream = TcpStream::register(&handle, stream, self.is_tcp, Role::Accepted, site)?;
        Ok((stream, peer))
    }
}

impl_handle!(TcpListener, |this| this.source.handle_core());
impl_as_source!(TcpListener, |this| this.get_ref());

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpListener")
            .field("local", &self.local_addr().ok())
            .finish_non_exhaustive()
    }
}

/// The stream of connections of a [`TcpListener`], returned by [`incoming`](TcpListener::incoming).
/// It never ends, not even after an error.
///
/// # Examples
///
/// ```
/// use phaseloop::net::{TcpListener, TcpStream};
/// use phaseloop::stream::StreamExt;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let client = TcpStream::connect(listener.local_addr()?).await?;
///     let server = listener.incoming().next().await.unwrap()?;
///     assert_eq!(server.peer_addr()?, client.local_addr()?);
///     Ok(())
/// }
/// ```
pub struct Incoming<'a> {
    /// The next accept. The line that created the stream is that of the connections.
    accept: Accept<'a, TcpListener>,
}

impl Stream for Incoming<'_> {
    type Item = io::Result<TcpStream>;

    #[inline]
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let accepted = std::task::ready!(Pin::new(&mut self.accept).poll(cx));
        Poll::Ready(Some(accepted.map(|(stream, _)| stream)))
    }
}

impl fmt::Debug for Incoming<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Incoming")
            .field(self.accept.listener)
            .finish()
    }
}
