//! Listeners of Unix streams.

use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::panic::Location;
use std::task::{Context, Poll};

use socket2::{Domain, Type};

use super::name::{RemoveOnDrop, SocketName};
use super::stream::UnixStream;
use crate::io::Source;
use crate::label::Role;
use crate::net::accept::{self, Accept, Accepted, Accepts, BACKLOG};
use crate::runtime::handle::{Close, Handle};
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys;
use crate::sys::poller::Interest;

/// A Unix socket that accepts connections.
///
/// The bound path is removed when the listener is dropped or closed. Each turn accepts at most one
/// connection. [`TcpListener`](crate::net::TcpListener) describes that limit, and what happens when
/// descriptors run out and after errors that stay.
///
/// # Examples
///
/// ```
/// use phaseloop::net::{UnixListener, UnixStream};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let path = std::env::temp_dir().join(format!("doc-{}.socket", std::process::id()));
///     let listener = UnixListener::bind(&path)?;
///     let client = UnixStream::connect(&path).await?;
///     let (server, _peer) = listener.accept().await?;
///     drop((client, server));
///     listener.close().await; // removes the path
///     assert!(!path.exists());
///     Ok(())
/// }
/// ```
pub struct UnixListener {
    /// The path to remove. It comes before the socket, so that no client finds the path without its
    /// listener.
    path: RemoveOnDrop,
    source: Source<net::UnixListener>,
    accepted: Accepted,
}

impl UnixListener {
    /// Listens on a name.
    ///
    /// # Errors
    ///
    /// [`AddrInUse`](io::ErrorKind::AddrInUse) for a path that exists, even if no socket listens on
    /// it; [`NotFound`](io::ErrorKind::NotFound) if its directory does not exist;
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for an invalid name; any other OS error of
    /// `bind` and `listen`. The error includes the name.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{fs, net::{UnixListener, UnixStream}};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let listener = UnixListener::bind(folder.join("socket"))?;
    ///     let client = UnixStream::connect(folder.join("socket")).await?;
    ///     let (server, _name) = listener.accept().await?;
    ///     client.try_write(b"hello")?;
    ///     server.readable().await?;
    ///     assert_eq!(server.try_read(&mut [0; 16])?, 5);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn bind(name: impl Into<SocketName>) -> io::Result<Self> {
        Self::bind_at(name, Location::caller())
    }

    /// Binds on behalf of the caller at `site`.
    #[doc(hidden)]
    #[track_caller]
    pub fn bind_at(name: impl Into<SocketName>, site: Site) -> io::Result<Self> {
        let (name, handle) = (name.into(), LoopHandle::current());
        Self::bind_to(&handle, name.clone(), site).map_err(|error| name.explain(error, "bind"))
    }

    #[inline]
    fn bind_to(handle: &LoopHandle, name: SocketName, site: Site) -> io::Result<Self> {
        let socket = sys::socket::socket(Domain::UNIX, Type::STREAM, None)?;
        socket.bind(&name.address()?)?;
        // From here on, this handle removes the path.
        let path = RemoveOnDrop::of(name);
        socket.listen(i32::try_from(BACKLOG).unwrap_or(i32::MAX))?;
        let mut listener = Self::adopt(handle, OwnedFd::from(socket).into(), site)?;
        listener.path = path;
        Ok(listener)
    }

    pub(in crate::net) fn adopt(
        handle: &LoopHandle,
        listener: net::UnixListener,
        site: Site,
    ) -> io::Result<Self> {
        sys::socket::keep_reserve();
        Ok(Self {
            source: Source::new_at(handle, listener, Interest::Read, site)?,
            path: RemoveOnDrop::NOTHING,
            accepted: Accepted::default(),
        })
    }

    /// Accepts a connection, and returns it with the name of the peer, which most peers do not
    /// have. It waits in the poll phase, once the returned future is awaited.
    ///
    /// # Errors
    ///
    /// The errors of [`TcpListener::accept`](crate::net::TcpListener::accept).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no connection.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{fs, net::{UnixListener, UnixStream}};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let listener = UnixListener::bind(folder.join("socket"))?;
    ///     let client = UnixStream::connect(folder.join("socket")).await?;
    ///     let (server, _name) = listener.accept().await?;
    ///     client.try_write(b"hello")?;
    ///     server.readable().await?;
    ///     assert_eq!(server.try_read(&mut [0; 16])?, 5);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn accept(&self) -> impl Future<Output = io::Result<(UnixStream, Option<SocketName>)>> {
        self.accept_at(Location::caller())
    }

    /// Polls [`accept`](Self::accept). The listener keeps the waker of the last call, so that a
    /// caller which keeps no future is woken when a connection arrives. Futures of `accept` can
    /// wait beside it.
    ///
    /// # Errors
    ///
    /// The errors of [`accept`](Self::accept).
    #[track_caller]
    pub fn poll_accept(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<(UnixStream, Option<SocketName>)>> {
        accept::poll_accept(self, Location::caller(), cx)
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
    ) -> impl Future<Output = io::Result<(UnixStream, Option<SocketName>)>> {
        Accept::new(self, site)
    }

    /// Closes the listener at once and removes its path. The close completes in the closing phase;
    /// see [`Close`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{fs, net::UnixListener};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let listener = UnixListener::bind(folder.join("socket"))?;
    ///     listener.close().await;
    ///     assert!(!folder.join("socket").exists(), "its path is removed");
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn close(self) -> Close {
        drop(self.path);
        self.source.close()
    }

    pub(in crate::net) fn into_parts(self) -> (RemoveOnDrop, Source<net::UnixListener>) {
        (self.path, self.source)
    }

    pub(in crate::net) fn from_parts(
        path: RemoveOnDrop,
        source: Source<net::UnixListener>,
    ) -> Self {
        Self {
            path,
            source,
            accepted: Accepted::default(),
        }
    }

    fn into_source(mut self) -> Source<net::UnixListener> {
        self.path.keep();
        self.source
    }
}

impl Accepts for UnixListener {
    type Socket = net::UnixListener;
    type Raw = (net::UnixStream, net::SocketAddr);
    type Connection = (UnixStream, Option<SocketName>);

    fn parts(&self) -> (&Source<net::UnixListener>, &Accepted) {
        (&self.source, &self.accepted)
    }

    fn accept_raw(socket: &net::UnixListener) -> io::Result<Self::Raw> {
        let (stream, peer) = socket.accept()?;
        stream.set_nonblocking(true)?;
        Ok((stream, peer))
    }

    fn open(&self, (stream, peer): Self::Raw, site: Site) -> io::Result<Self::Connection> {
        let stream = UnixStream::register(&self.event_loop(), stream, Role::Accepted, site)?;
        Ok((stream, SocketName::of(&peer)))
    }
}

impl_unix_socket!(UnixListener, net::UnixListener);

impl fmt::Debug for UnixListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixListener")
            .field("local", &self.local_name().ok().flatten())
            .finish_non_exhaustive()
    }
}
