//! Unix sockets: streams and listeners.

use std::ffi::OsStr;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net;
use std::panic::Location;
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Type};

use super::listener::{Accepted, BACKLOG, accept_one};
use crate::error::OsError;
use crate::error::os::About;
use crate::event_loop::handle::LoopHandle;
use crate::event_loop::handles::{Close, Handle, HandleCore, sealed};
use crate::io::{Readiness, Source};
use crate::kinds::Site;
use crate::phase;
use crate::sys;

/// The name of a Unix socket: a path, or on Linux a name without a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocketName {
    /// A file of the file system.
    Path(PathBuf),
    /// A name of its own space, which ends with its socket; Linux only.
    Abstract(Vec<u8>),
}

impl SocketName {
    /// A name without a file.
    #[must_use]
    pub fn abstract_name(name: impl Into<Vec<u8>>) -> Self {
        Self::Abstract(name.into())
    }

    /// The system's form of the name. Too long, empty, or with a zero byte in a path: refused, never cut (R195).
    pub(super) fn address(&self) -> io::Result<SockAddr> {
        match self {
            Self::Path(path) => {
                let bytes = path.as_os_str().as_bytes();
                if bytes.is_empty() || bytes.contains(&0) {
                    let text = "a socket's path is neither empty nor has it a zero byte";
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
                }
                SockAddr::unix(path)
            }
            // Checked by the standard library, then in the form that `socket2` reads.
            Self::Abstract(name) => {
                sys::unix_socket::abstract_address(name)?;
                let mut path = vec![0];
                path.extend_from_slice(name);
                SockAddr::unix(Path::new(OsStr::from_bytes(&path)))
            }
        }
    }

    /// Adds the name and what was tried with it to an error.
    pub(super) fn explain(&self, error: io::Error, operation: &'static str) -> io::Error {
        OsError::wrap(error, operation, self.clone())
    }

    fn of(address: &net::SocketAddr) -> Option<Self> {
        let path = address
            .as_pathname()
            .map(|path| Self::Path(path.to_owned()));
        path.or_else(|| {
            sys::unix_socket::abstract_name(address).map(|name| Self::Abstract(name.to_vec()))
        })
    }
}

impl<P: AsRef<Path>> From<P> for SocketName {
    fn from(path: P) -> Self {
        Self::Path(path.as_ref().to_owned())
    }
}

impl From<SocketName> for About {
    fn from(name: SocketName) -> Self {
        match name {
            SocketName::Path(path) => path.into(),
            SocketName::Abstract(name) => Self {
                name: Some(name),
                ..Self::default()
            },
        }
    }
}

pub(super) fn name_of(address: io::Result<net::SocketAddr>) -> io::Result<Option<SocketName>> {
    address.map(|address| SocketName::of(&address))
}

/// Who is at the other end of a Unix stream, as the system saw it when it connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerCredentials {
    /// Its process.
    pub process: u32,
    /// Its user.
    pub user: u32,
    /// Its group.
    pub group: u32,
}

/// A connection between two processes, or within one.
///
/// As [`TcpStream`](super::TcpStream); besides bytes it carries open descriptors.
///
/// # Examples
///
/// ```
/// use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
/// use phaseloop::net::UnixStream;
///
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let (mut a, mut b) = UnixStream::pair()?;
///     a.write_all(b"hello").await?;
///     a.close().await?;
///     let mut text = String::new();
///     b.read_to_string(&mut text).await?;
///     assert_eq!(text, "hello");
///     Ok(())
/// })
/// # }
/// ```
pub struct UnixStream {
    source: Source<net::UnixStream>,
}

impl UnixStream {
    /// Connects to a listener, once the returned future is awaited.
    ///
    /// Every error that is known at once comes in the pending phase, as libuv has it.
    ///
    /// # Errors
    ///
    /// [`NotFound`](io::ErrorKind::NotFound), [`ConnectionRefused`](io::ErrorKind::ConnectionRefused),
    /// [`PermissionDenied`](io::ErrorKind::PermissionDenied) and others of the system;
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when the listener's queue is full;
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a name that cannot be one. They say the name;
    /// [`os_error`](crate::os_error) finds the system's number.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the socket.
    ///
    /// # Panics
    ///
    /// When it is awaited where no loop runs.
    #[track_caller]
    pub fn connect(name: impl Into<SocketName>) -> impl Future<Output = io::Result<Self>> {
        Self::connect_at(name, Location::caller())
    }

    /// The same for the line `site`.
    pub(crate) async fn connect_at(name: impl Into<SocketName>, site: Site) -> io::Result<Self> {
        let name = name.into();
        match Self::connect_to(&name, site) {
            Ok(stream) => Ok(stream),
            Err(error) => {
                phase::pending().await;
                Err(name.explain(error, "connect"))
            }
        }
    }

    fn connect_to(name: &SocketName, site: Site) -> io::Result<Self> {
        let socket = sys::socket::socket(Domain::UNIX, Type::STREAM, None)?;
        // Local: connected at once or not at all.
        sys::socket::connect_at_once(&socket, &name.address()?)?;
        let handle = LoopHandle::current_for(site);
        Self::register(&handle, OwnedFd::from(socket).into(), site)
    }

    /// Two connected streams.
    ///
    /// # Errors
    ///
    /// The system's.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = net::UnixStream::pair()?;
        Ok((Self::from_std(one)?, Self::from_std(other)?))
    }

    fn register(handle: &LoopHandle, stream: net::UnixStream, site: Site) -> io::Result<Self> {
        let source = Source::new_stream(handle, stream, true, site)?;
        Ok(Self { source })
    }

    /// Puts a stream of the standard library on the running loop. It is made non-blocking.
    ///
    /// # Errors
    ///
    /// The system's.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn from_std(stream: net::UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Self::register(&LoopHandle::current(), stream, Location::caller())
    }

    /// Takes the stream off the loop. It stays non-blocking.
    #[must_use]
    pub fn into_std(self) -> net::UnixStream {
        self.source.into_inner()
    }

    /// Sends bytes together with open descriptors: sockets, files, pipes. The receiver gets descriptors of its own; those
    /// sent stay open here. They travel with the first byte.
    ///
    /// Returns how many of the bytes were sent; the rest, if any, goes without descriptors.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) without bytes or with more than 253 descriptors, else the system's.
    ///
    /// # Cancel safety
    ///
    /// Given up, nothing was sent.
    pub async fn send_with(
        &self,
        bytes: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<usize> {
        if bytes.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "descriptors travel with at least one byte",
            ));
        }
        self.source
            .write_with(|stream| sys::unix_socket::send_with(stream, bytes, descriptors))
            .await
    }

    /// Receives bytes and adds the descriptors that came with them to `descriptors`, in the order of sending. They are not
    /// inherited by child processes. A plain read drops the descriptors that come with its bytes.
    ///
    /// # Errors
    ///
    /// The system's. When it had to drop descriptors because the process has no numbers left for them, an error says so:
    /// the bytes are in `buffer`, and the descriptors that fitted in `descriptors`, but the others are lost, as they would
    /// be in any program.
    ///
    /// # Cancel safety
    ///
    /// Given up, nothing was received.
    pub async fn recv_with(
        &self,
        buffer: &mut [u8],
        descriptors: &mut Vec<OwnedFd>,
    ) -> io::Result<usize> {
        self.source
            .read_with(|stream| sys::unix_socket::receive_with(stream, buffer, descriptors))
            .await
    }

    /// Who is at the other end.
    ///
    /// # Errors
    ///
    /// The system's; [`Unsupported`](io::ErrorKind::Unsupported) elsewhere than on Linux.
    pub fn peer_credentials(&self) -> io::Result<PeerCredentials> {
        let (process, user, group) = sys::unix_socket::peer_credentials(self.get_ref().as_fd())?;
        Ok(PeerCredentials {
            process,
            user,
            group,
        })
    }

    /// The name of this end; `None` if it has none.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn local_name(&self) -> io::Result<Option<SocketName>> {
        name_of(self.get_ref().local_addr())
    }

    /// The name of the other end; `None` if it has none.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn peer_name(&self) -> io::Result<Option<SocketName>> {
        name_of(self.get_ref().peer_addr())
    }

    /// Waits until there is something to read, the end, or an error.
    pub fn readable(&self) -> Readiness<'_, net::UnixStream> {
        self.source.readable()
    }

    /// Waits until there is room to write, or an error.
    pub fn writable(&self) -> Readiness<'_, net::UnixStream> {
        self.source.writable()
    }

    /// Reads what is there; 0 is the end.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is nothing now, else the system's.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.try_read_bytes(buffer)
    }

    /// Writes as much as there is room for.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is none now, else the system's.
    pub fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
        self.source.try_write_bytes(buffer)
    }

    /// Ends one direction or both.
    ///
    /// # Errors
    ///
    /// [`NotConnected`](io::ErrorKind::NotConnected) when the peer is gone.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.get_ref().shutdown(how)
    }

    /// Takes the error that the system keeps for the socket, if any.
    ///
    /// # Errors
    ///
    /// The system's, when it cannot be asked.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.get_ref().take_error()
    }

    /// Closes the connection at once, both directions, and has that reported in the closing phase; see [`Close`].
    pub fn close_now(self) -> Close {
        self.source.close()
    }

    /// The socket itself, for options that have no method here.
    #[must_use]
    pub fn get_ref(&self) -> &net::UnixStream {
        self.source.get_ref()
    }
}

impl_async_stream!(UnixStream);

impl Handle for UnixStream {}

impl sealed::Sealed for UnixStream {
    fn handle_core(&self) -> &HandleCore {
        self.source.handle_core()
    }
}

impl AsFd for UnixStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.get_ref().as_fd()
    }
}

impl fmt::Debug for UnixStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixStream")
            .field("local", &self.local_name().ok().flatten())
            .field("peer", &self.peer_name().ok().flatten())
            .finish_non_exhaustive()
    }
}

/// A Unix socket that waits for connections.
///
/// A path that it has bound is removed when it is dropped or closed. At most one connection is accepted per turn, as by
/// [`TcpListener`](super::TcpListener), which also says what happens when descriptors run out and after errors that stay.
pub struct UnixListener {
    /// What to remove in the end; before the socket is closed, so that nobody finds the path without its listener (R193).
    path: RemoveOnDrop,
    source: Source<net::UnixListener>,
    accepted: Accepted,
}

impl UnixListener {
    /// Listens under a name.
    ///
    /// # Errors
    ///
    /// [`AddrInUse`](io::ErrorKind::AddrInUse) for a path that exists, whatever it is;
    /// [`NotFound`](io::ErrorKind::NotFound) for a directory that does not;
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a name that cannot be one; the system's. They say the name.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn bind(name: impl Into<SocketName>) -> io::Result<Self> {
        Self::bind_at(name, Location::caller())
    }

    /// The same for the line `site`.
    #[track_caller]
    pub(crate) fn bind_at(name: impl Into<SocketName>, site: Site) -> io::Result<Self> {
        let (name, handle) = (name.into(), LoopHandle::current());
        Self::bind_to(&handle, name.clone(), site).map_err(|error| name.explain(error, "bind"))
    }

    fn bind_to(handle: &LoopHandle, name: SocketName, site: Site) -> io::Result<Self> {
        let socket = sys::socket::socket(Domain::UNIX, Type::STREAM, None)?;
        socket.bind(&name.address()?)?;
        // From here on the path is ours to remove.
        let path = RemoveOnDrop::of(name);
        socket.listen(i32::try_from(BACKLOG).unwrap_or(i32::MAX))?;
        let mut listener = Self::register(handle, OwnedFd::from(socket).into(), site)?;
        listener.path = path;
        Ok(listener)
    }

    fn register(handle: &LoopHandle, listener: net::UnixListener, site: Site) -> io::Result<Self> {
        sys::socket::keep_reserve();
        Ok(Self {
            source: Source::new_at(handle, listener, site)?,
            path: RemoveOnDrop(None),
            accepted: Accepted::default(),
        })
    }

    /// Puts a listener of the standard library on the running loop. It is made non-blocking; its path stays in the end.
    ///
    /// # Errors
    ///
    /// The system's.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn from_std(listener: net::UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Self::register(&LoopHandle::current(), listener, Location::caller())
    }

    /// Waits for a connection, in the poll phase, once the returned future is awaited.
    ///
    /// # Errors
    ///
    /// As [`TcpListener::accept`](super::TcpListener::accept).
    ///
    /// # Cancel safety
    ///
    /// No connection is lost.
    #[track_caller]
    pub fn accept(&self) -> impl Future<Output = io::Result<UnixStream>> {
        self.accept_at(Location::caller())
    }

    /// The same for the line `site`.
    pub(crate) async fn accept_at(&self, site: Site) -> io::Result<UnixStream> {
        let handle = self.event_loop();
        let accept = |listener: &net::UnixListener| {
            let (stream, _) = listener.accept()?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        };
        let stream = accept_one(&self.source, &self.accepted, site, accept).await?;
        UnixStream::register(&handle, stream, site)
    }

    /// The name that is listened on; `None` if it has none.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn local_name(&self) -> io::Result<Option<SocketName>> {
        name_of(self.get_ref().local_addr())
    }

    /// Closes the listener at once, removes its path, and has that reported in the closing phase; see [`Close`].
    pub fn close(self) -> Close {
        drop(self.path);
        self.source.close()
    }

    /// The socket itself, for options that have no method here.
    #[must_use]
    pub fn get_ref(&self) -> &net::UnixListener {
        self.source.get_ref()
    }
}

/// A bound path that nobody else will remove.
pub(super) struct RemoveOnDrop(pub(super) Option<PathBuf>);

impl RemoveOnDrop {
    pub(super) fn of(name: SocketName) -> Self {
        match name {
            // As it is now: the process may go to another directory.
            SocketName::Path(path) => Self(Some(std::path::absolute(&path).unwrap_or(path))),
            SocketName::Abstract(_) => Self(None),
        }
    }
}

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            // Somebody may have removed it already.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Handle for UnixListener {}

impl sealed::Sealed for UnixListener {
    fn handle_core(&self) -> &HandleCore {
        self.source.handle_core()
    }
}

impl fmt::Debug for UnixListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixListener")
            .field("local", &self.local_name().ok().flatten())
            .finish_non_exhaustive()
    }
}
