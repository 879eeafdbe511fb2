//! Unix streams.

use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net;
use std::panic::Location;

use socket2::{Domain, Type};

use super::name::SocketName;
use crate::io::Source;
use crate::label::Role;
use crate::phase;
use crate::runtime::handle::Close;
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys;

/// The credentials of the peer of a Unix stream, as the kernel recorded them at connect time.
///
/// # Examples
///
/// ```
/// use phaseloop::net::UnixStream;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let (one, _other) = UnixStream::pair()?;
///     #[cfg(target_os = "linux")]
///     assert_eq!(one.peer_credentials()?.process, std::process::id());
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerCredentials {
    /// Process id (pid).
    pub process: u32,
    /// User id (uid).
    pub user: u32,
    /// Group id (gid).
    pub group: u32,
}

/// A Unix stream connection between two processes, or within one.
///
/// It works like [`TcpStream`](crate::net::TcpStream), and also carries open descriptors.
///
/// # Examples
///
/// ```
/// use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
/// use phaseloop::net::UnixStream;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let (mut a, mut b) = UnixStream::pair()?;
///     a.write_all(b"hello").await?;
///     a.close().await?;
///     let mut text = String::new();
///     b.read_to_string(&mut text).await?;
///     assert_eq!(text, "hello");
///     Ok(())
/// }
/// ```
#[doc(alias = "uv_pipe_t")]
pub struct UnixStream {
    source: Source<net::UnixStream>,
}

impl UnixStream {
    /// Connects to a listener when the returned future is awaited.
    ///
    /// An error that is known at once is delivered in the pending phase, as in libuv.
    ///
    /// # Errors
    ///
    /// [`NotFound`](io::ErrorKind::NotFound),
    /// [`ConnectionRefused`](io::ErrorKind::ConnectionRefused),
    /// [`PermissionDenied`](io::ErrorKind::PermissionDenied) and any other OS error of `connect`;
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the queue of the listener is full;
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for an invalid name. The error includes the
    /// name; [`os_error`](crate::os_error) returns its number.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the socket.
    ///
    /// # Panics
    ///
    /// When the future is awaited and no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{fs, net::{UnixListener, UnixStream}};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let missing = UnixStream::connect(folder.join("socket")).await.unwrap_err();
    ///     assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
    ///     let _listener = UnixListener::bind(folder.join("socket"))?;
    ///     UnixStream::connect(folder.join("socket")).await?;
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn connect(name: impl Into<SocketName>) -> impl Future<Output = io::Result<Self>> {
        Self::connect_at(name, Location::caller())
    }

    /// Connects on behalf of the caller at `site`.
    #[doc(hidden)]
    pub async fn connect_at(name: impl Into<SocketName>, site: Site) -> io::Result<Self> {
        // Before the attempt, whose error would wait for a phase of the loop.
        let handle = LoopHandle::current_for("net::UnixStream::connect", Some(site));
        let name = name.into();
        match Self::connect_to(&handle, &name, site) {
            Ok(stream) => Ok(stream),
            Err(error) => {
                phase::pending().await;
                Err(name.explain(error, "connect"))
            }
        }
    }

    #[inline]
    fn connect_to(handle: &LoopHandle, name: &SocketName, site: Site) -> io::Result<Self> {
        let socket = sys::socket::socket(Domain::UNIX, Type::STREAM, None)?;
        // A local connect completes or fails at once.
        sys::socket::connect_at_once(&socket, &name.address()?)?;
        let stream = OwnedFd::from(socket).into();
        Self::register(handle, stream, Role::Connected, site)
    }

    #[inline]
    pub(super) fn register(
        handle: &LoopHandle,
        stream: net::UnixStream,
        role: Role,
        site: Site,
    ) -> io::Result<Self> {
        let source = Source::new_stream(handle, stream, true, site)?;
        Ok(Self {
            source: source.with_role(role),
        })
    }

    #[inline]
    fn adopt(handle: &LoopHandle, stream: net::UnixStream, site: Site) -> io::Result<Self> {
        Self::register(handle, stream, Role::Unknown, site)
    }

    pub(in crate::net) fn from_source(source: Source<net::UnixStream>) -> Self {
        Self { source }
    }

    pub(in crate::net) fn into_source(self) -> Source<net::UnixStream> {
        self.source
    }

    /// Sends bytes together with open descriptors, such as sockets, files and pipes. The receiver
    /// gets duplicates; the originals stay open here. The descriptors travel with the first byte.
    ///
    /// Returns the number of bytes sent. Send the rest, if any, without descriptors.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) without bytes or with more than 253
    /// descriptors; otherwise any OS error of `sendmsg`.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, nothing was sent.
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

    /// Sends a range of a file; see [`TcpStream::send_file`](crate::net::TcpStream::send_file).
    ///
    /// # Errors
    ///
    /// The errors of [`TcpStream::send_file`](crate::net::TcpStream::send_file).
    ///
    /// # Cancel safety
    ///
    /// As [`TcpStream::send_file`](crate::net::TcpStream::send_file).
    #[cfg(feature = "fs")]
    pub fn send_file<'a>(
        &'a self,
        file: &'a crate::fs::File,
        range: impl std::ops::RangeBounds<u64>,
    ) -> crate::net::SendFile<'a> {
        crate::net::send_file::send_file(&self.source, file, range)
    }

    /// Receives bytes, and appends the descriptors that came with them to `descriptors`, in the
    /// order of sending. The descriptors are close-on-exec. A plain read closes the descriptors
    /// that come with its bytes.
    ///
    /// # Errors
    ///
    /// Any OS error of `recvmsg`. If the kernel had to drop descriptors, because the process is out
    /// of them or because the message brought more than there is room for, an error reports it: the
    /// bytes are in `buffer`, the descriptors that fitted are in `descriptors`, and the others are
    /// lost. There is room for all descriptors of a message, and for the credentials of its sender
    /// (`SO_PASSCRED`).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, nothing was received.
    pub async fn recv_with(
        &self,
        buffer: &mut [u8],
        descriptors: &mut Vec<OwnedFd>,
    ) -> io::Result<usize> {
        self.source
            .read_with(|stream| sys::unix_socket::receive_with(stream, buffer, descriptors))
            .await
    }

    /// Returns the credentials of the peer.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(SO_PEERCRED)`; [`Unsupported`](io::ErrorKind::Unsupported) on
    /// platforms other than Linux.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UnixStream;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (one, _other) = UnixStream::pair()?;
    ///     let peer = one.peer_credentials()?;
    ///     println!("user {} of group {}", peer.user, peer.group);
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias = "peer_cred")]
    pub fn peer_credentials(&self) -> io::Result<PeerCredentials> {
        let (process, user, group) = sys::unix_socket::peer_credentials(self.get_ref().as_fd())?;
        Ok(PeerCredentials {
            process,
            user,
            group,
        })
    }

    /// Returns whether the loop knows that the peer has closed both directions.
    #[doc(hidden)]
    pub fn is_hung_up(&self) -> bool {
        self.source.is_hung_up()
    }

    /// Reads without waiting; 0 is EOF.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if no data has arrived; otherwise any OS error of
    /// `recv`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UnixStream;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (one, other) = UnixStream::pair()?;
    ///     one.try_write(b"hello")?;
    ///     other.readable().await?;
    ///     assert_eq!(other.try_read(&mut [0; 16])?, 5);
    ///     Ok(())
    /// }
    /// ```
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.try_read(buffer)
    }

    /// Reads without waiting, and appends to `buffer`; 0 is EOF. It reads as much as the spare
    /// capacity holds, and a buffer without any grows.
    ///
    /// # Errors
    ///
    /// The errors of [`try_read`](Self::try_read). They leave the buffer as it was.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UnixStream;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (one, other) = UnixStream::pair()?;
    ///     one.try_write(b"hello")?;
    ///     other.readable().await?;
    ///     let mut received = Vec::new();
    ///     other.try_read_buf(&mut received)?;
    ///     assert_eq!(received, b"hello");
    ///     Ok(())
    /// }
    /// ```
    pub fn try_read_buf(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        self.source.try_receive(buffer)
    }

    /// Writes without waiting, and returns the number of bytes accepted.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the send buffer is full; otherwise any OS error
    /// of `send`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UnixStream;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (one, other) = UnixStream::pair()?;
    ///     one.try_write(b"hello")?;
    ///     other.readable().await?;
    ///     assert_eq!(other.try_read(&mut [0; 16])?, 5);
    ///     Ok(())
    /// }
    /// ```
    pub fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
        self.source.try_write(buffer)
    }

    /// Reads without waiting into several buffers; see [`try_read`](Self::try_read).
    ///
    /// # Errors
    ///
    /// The errors of [`try_read`](Self::try_read).
    pub fn try_read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.source.try_read_vectored(buffers)
    }

    /// Writes several buffers without waiting; see [`try_write`](Self::try_write).
    ///
    /// # Errors
    ///
    /// The errors of [`try_write`](Self::try_write).
    pub fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.source.try_write_vectored(buffers)
    }

    /// Closes the connection at once. The close completes in the closing phase; see [`Close`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::AsyncReadExt;
    /// use phaseloop::net::UnixStream;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (one, mut other) = UnixStream::pair()?;
    ///     one.close_now().await;
    ///     assert_eq!(other.read(&mut [0; 8]).await?, 0); // EOF
    ///     Ok(())
    /// }
    /// ```
    pub fn close_now(self) -> Close {
        self.source.close()
    }
}

impl_unix_socket!(UnixStream, net::UnixStream);
impl_unix_peer!(UnixStream, net::UnixStream);
impl_async_stream!(UnixStream);
impl_readiness!(
    UnixStream,
    net::UnixStream,
    poll_read_ready,
    poll_write_ready
);

impl fmt::Debug for UnixStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixStream")
            .field("local", &self.local_name().ok().flatten())
            .field("peer", &self.peer_name().ok().flatten())
            .finish_non_exhaustive()
    }
}

#[cfg(feature = "fs")]
impl crate::net::send_file::Outlet for net::UnixStream {
    fn send_file(&self, file: &std::fs::File, offset: u64, length: usize) -> io::Result<usize> {
        sys::send_file::send(self, file, offset, length)
    }
}
