//! A TCP socket before it connects or listens.

mod options;

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::panic::Location;

use socket2::Socket;

use super::connect::Attempt;
use super::listener::TcpListener;
use super::stream::TcpStream;
use crate::error::OsError;
use crate::net::transport::Transport;
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys::poller::impl_as_source;

/// A TCP socket on which options are set before it connects or listens.
///
/// # Examples
///
/// ```
/// use phaseloop::net::TcpSocket;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let socket = TcpSocket::new_v4()?;
///     socket.set_reuse_port(true)?;
///     socket.bind(([127, 0, 0, 1], 0).into())?;
///     let listener = socket.listen(16)?;
///     assert!(listener.local_addr()?.ip().is_loopback());
///     Ok(())
/// }
/// ```
pub struct TcpSocket {
    socket: Transport<Socket>,
    /// Whether binding sets `SO_REUSEADDR`: not once the caller has.
    may_linger: Cell<bool>,
}

impl TcpSocket {
    /// Creates an IPv4 socket.
    ///
    /// # Errors
    ///
    /// Any OS error of `socket`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::TcpSocket;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let socket = TcpSocket::new_v4()?;
    ///     socket.bind("127.0.0.1:0".parse().unwrap())?;
    ///     assert!(socket.local_addr()?.ip().is_loopback());
    ///     Ok(())
    /// }
    /// ```
    pub fn new_v4() -> io::Result<Self> {
        Self::new_on(LoopHandle::try_current().as_ref(), false)
    }

    /// Creates an IPv6 socket, which also serves IPv4 unless [`set_only_v6`](Self::set_only_v6)
    /// excludes it.
    ///
    /// # Errors
    ///
    /// Any OS error of `socket`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::TcpSocket;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let socket = TcpSocket::new_v6()?;
    ///     if socket.bind("[::1]:0".parse().unwrap()).is_ok() {
    ///         println!("{}", socket.local_addr()?);
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn new_v6() -> io::Result<Self> {
        Self::new_on(LoopHandle::try_current().as_ref(), true)
    }

    /// Creates a socket for a loop.
    pub(super) fn new_on(handle: Option<&LoopHandle>, is_v6: bool) -> io::Result<Self> {
        Ok(Self {
            socket: Transport::tcp(handle, is_v6)?,
            may_linger: Cell::new(true),
        })
    }

    /// Binds the socket to an address, with `SO_REUSEADDR` set, unless
    /// [`set_reuseaddr`](Self::set_reuseaddr) was called.
    ///
    /// # Errors
    ///
    /// [`AddrInUse`](io::ErrorKind::AddrInUse),
    /// [`AddrNotAvailable`](io::ErrorKind::AddrNotAvailable),
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a second address or one of the other
    /// family; any other OS error of `bind`. The error names the address.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{TcpListener, TcpSocket};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let socket = TcpSocket::new_v4()?;
    ///     socket.bind("127.0.0.1:0".parse().unwrap())?; // the address that the peer sees
    ///     let local = socket.local_addr()?;
    ///     let stream = socket.connect(listener.local_addr()?).await?;
    ///     assert_eq!(stream.local_addr()?, local);
    ///     Ok(())
    /// }
    /// ```
    pub fn bind(&self, address: SocketAddr) -> io::Result<()> {
        self.bind_plainly(address)
            .map_err(|error| OsError::wrap(error, "bind", address))
    }

    /// Binds without adding the address to an error.
    pub(super) fn bind_plainly(&self, address: SocketAddr) -> io::Result<()> {
        self.socket.bind(address, self.may_linger.get())
    }

    /// Connects when the returned future is awaited; see [`TcpStream::connect`].
    ///
    /// # Errors
    ///
    /// The errors of [`TcpStream::connect`].
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
    /// use phaseloop::net::{TcpListener, TcpSocket};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let socket = TcpSocket::new_v4()?;
    ///     socket.set_recv_buffer_size(1 << 16)?; // before TCP announces it
    ///     let stream = socket.connect(listener.local_addr()?).await?;
    ///     assert_eq!(stream.peer_addr()?, listener.local_addr()?);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn connect(self, address: SocketAddr) -> impl Future<Output = io::Result<TcpStream>> {
        Attempt::new(self.socket, address, Location::caller())
    }

    /// Listens with a queue for `backlog` unaccepted connections, which the kernel may limit
    /// further. An unbound socket gets a free port on all addresses.
    ///
    /// # Errors
    ///
    /// Any OS error of `listen`, such as [`AddrInUse`](io::ErrorKind::AddrInUse).
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{TcpSocket, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = TcpSocket::new_v4()?;
    ///     socket.bind("127.0.0.1:0".parse().unwrap())?;
    ///     let listener = socket.listen(1024)?;
    ///     TcpStream::connect(listener.local_addr()?).await?;
    ///     listener.accept().await?;
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        self.listen_on(&LoopHandle::current(), backlog, Location::caller())
    }

    /// Listens on behalf of the caller at `site`.
    #[doc(hidden)]
    pub fn listen_on(
        self,
        handle: &LoopHandle,
        backlog: u32,
        site: Site,
    ) -> io::Result<TcpListener> {
        TcpListener::register(handle, self.socket.listen(backlog)?, site)
    }

    /// Lets several sockets listen on one address, if the kernel spreads the connections over them.
    #[cfg(feature = "cluster")]
    pub(super) fn set_spread_port(&self) -> io::Result<()> {
        self.socket.set_spread_port()
    }

    /// Returns the address that the socket is bound to.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockname`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::TcpSocket;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let socket = TcpSocket::new_v4()?;
    ///     socket.bind("127.0.0.1:0".parse().unwrap())?;
    ///     assert!(socket.local_addr()?.ip().is_loopback());
    ///     Ok(())
    /// }
    /// ```
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

impl_tos!(TcpSocket, |this| this.socket.options());

impl_as_source!(TcpSocket, |this| this.socket.kernel());

impl fmt::Debug for TcpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpSocket")
            .field("local", &self.local_addr().ok())
            .finish_non_exhaustive()
    }
}
