//! TCP listeners.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::net::{self, SocketAddr};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use socket2::{Domain, Protocol, Type};

use super::address::{ToAddresses, first_of};
use super::stream::TcpStream;
use super::tcp_socket::TcpSocket;
use crate::event_loop::handle::LoopHandle;
use crate::event_loop::handles::{Close, Handle, HandleCore, sealed};
use crate::io::{AsSource, Source};
use crate::kinds::Site;
use crate::phase;
use crate::sys;
use crate::time::sleep_at;

/// How many connections wait for [`TcpListener::accept`], unless told otherwise.
pub(super) const BACKLOG: u32 = 1024;

/// How long the listener rests when there is no descriptor, not even one to turn connections away with.
const REST: Duration = Duration::from_millis(10);

/// A TCP socket that waits for connections.
///
/// Each turn of the loop accepts at most one connection, as libuv does, so that a flood of them leaves the connections that
/// are there already their turn.
///
/// # Out of descriptors
///
/// When the process or the system has no descriptor left, [`accept`](TcpListener::accept) returns that error once. The
/// connections that wait then are accepted on a descriptor held back for this, and closed: their peers learn of it instead of
/// waiting. The listener goes on: the next `accept` waits for the next connection.
pub struct TcpListener {
    source: Source<net::TcpListener>,
    /// The turn in which a connection was accepted last.
    last_accept: Cell<Option<u64>>,
}

impl TcpListener {
    /// Listens on the first of the target's addresses that can be bound. Port 0 gets a free one. Nothing is done before the
    /// returned future is awaited.
    ///
    /// The address may be bound again while connections of a former listener linger. For other options see [`TcpSocket`].
    ///
    /// # Errors
    ///
    /// That of the last address that was tried, which it names: [`AddrInUse`](io::ErrorKind::AddrInUse),
    /// [`AddrNotAvailable`](io::ErrorKind::AddrNotAvailable), [`PermissionDenied`](io::ErrorKind::PermissionDenied);
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a target that is no address. [`os_error`](crate::os_error) finds
    /// the system's number.
    ///
    /// # Panics
    ///
    /// When it is awaited where no loop runs.
    #[track_caller]
    pub fn bind(target: impl ToAddresses) -> impl Future<Output = io::Result<Self>> {
        let site = Location::caller();
        first_of("bind", target, async move |address| {
            Self::bind_to(address, site)
        })
    }

    fn bind_to(address: SocketAddr, site: Site) -> io::Result<Self> {
        let socket = sys::socket::socket(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        let socket = TcpSocket::from_socket(socket);
        socket.bind_plainly(address)?;
        socket.listen_on(&LoopHandle::current_for(site), BACKLOG, site)
    }

    pub(super) fn register(
        handle: &LoopHandle,
        listener: net::TcpListener,
        site: Site,
    ) -> io::Result<Self> {
        sys::socket::keep_reserve();
        Ok(Self {
            source: Source::new_at(handle, listener, site)?,
            last_accept: Cell::new(None),
        })
    }

    /// Puts a listener of the standard library on the running loop. It is made non-blocking.
    ///
    /// # Errors
    ///
    /// The system's.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn from_std(listener: net::TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Self::register(&LoopHandle::current(), listener, Location::caller())
    }

    /// Takes the listener off the loop. It stays non-blocking.
    #[must_use]
    pub fn into_std(self) -> net::TcpListener {
        self.source.into_inner()
    }

    /// Waits for a connection, in the poll phase, once the returned future is awaited. The connection counts as
    /// [made](Handle::created_at) by the line of this call.
    ///
    /// # Errors
    ///
    /// When there is no descriptor for it (see [`TcpListener`]), and what the system says of a connection that went away
    /// before it was accepted. The listener goes on after either.
    ///
    /// # Cancel safety
    ///
    /// No connection is lost.
    #[track_caller]
    pub fn accept(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> {
        self.accept_at(Location::caller())
    }

    /// The same for the line `site`.
    pub(crate) async fn accept_at(&self, site: Site) -> io::Result<(TcpStream, SocketAddr)> {
        let handle = self.event_loop();
        let (stream, peer) =
            accept_one(&self.source, &self.last_accept, site, sys::socket::accept).await?;
        Ok((TcpStream::register(&handle, stream, site)?, peer))
    }

    /// The connections as a stream that never ends. They count as [made](Handle::created_at) by the line of this call.
    #[track_caller]
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming {
            listener: self,
            site: Location::caller(),
            accept: None,
        }
    }

    /// The address that is listened on.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.get_ref().local_addr()
    }

    /// How many hops packets of accepted connections may take.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn ttl(&self) -> io::Result<u32> {
        self.get_ref().ttl()
    }

    /// Sets how many hops packets of accepted connections may take.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.get_ref().set_ttl(ttl)
    }

    /// Closes the listener at once, and has that reported in the closing phase; see [`Close`].
    pub fn close(self) -> Close {
        self.source.close()
    }

    /// The socket itself, for options that have no method here.
    #[must_use]
    pub fn get_ref(&self) -> &net::TcpListener {
        self.source.get_ref()
    }
}

/// Accepts a connection of whatever kind of listener: at most one a turn, and none while there is no descriptor for it.
pub(super) async fn accept_one<L: AsSource, C>(
    listener: &Source<L>,
    last_accept: &Cell<Option<u64>>,
    site: Site,
    accept: impl Fn(&L) -> io::Result<C>,
) -> io::Result<C> {
    let handle = listener.event_loop();
    let accepted = loop {
        if last_accept.get() == Some(handle.turns()) {
            phase::poll().await;
        }
        listener.readable().await?;
        // Of several who wait, the first may have had this turn's.
        if last_accept.get() == Some(handle.turns()) {
            continue;
        }
        match listener.try_with(&accept) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            accepted => break accepted,
        }
    };
    last_accept.set(Some(handle.turns()));
    match &accepted {
        // There may have been no number for it when it was to be taken back.
        Ok(_) => sys::socket::keep_reserve(),
        Err(error) if sys::socket::is_out_of_descriptors(error) => {
            let turned_away = sys::socket::with_spare(|| {
                // Until there is none left: then the source counts as not ready.
                while listener.try_with(&accept).is_ok() {}
            });
            if turned_away.is_none() {
                sleep_at(REST, site).await;
            }
        }
        Err(_) => {}
    }
    accepted
}

impl Handle for TcpListener {}

impl sealed::Sealed for TcpListener {
    fn handle_core(&self) -> &HandleCore {
        self.source.handle_core()
    }
}

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpListener")
            .field("local", &self.local_addr().ok())
            .finish_non_exhaustive()
    }
}

type Accept<'a> = Pin<Box<dyn Future<Output = io::Result<(TcpStream, SocketAddr)>> + 'a>>;

/// The connections of a [`TcpListener`], as [`accept`](TcpListener::accept) returns them. Never ends, also not after an
/// error.
pub struct Incoming<'a> {
    listener: &'a TcpListener,
    /// The line that made it, and so the connections.
    site: Site,
    accept: Option<Accept<'a>>,
}

impl Stream for Incoming<'_> {
    type Item = io::Result<TcpStream>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let (listener, site) = (self.listener, self.site);
        let accept = self
            .accept
            .get_or_insert_with(|| Box::pin(listener.accept_at(site)));
        let accepted = std::task::ready!(accept.as_mut().poll(cx));
        self.accept = None;
        Poll::Ready(Some(accepted.map(|(stream, _)| stream)))
    }
}

impl fmt::Debug for Incoming<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Incoming").field(self.listener).finish()
    }
}
