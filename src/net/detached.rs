//! Sockets on the way from one loop to another.

use std::fmt;
use std::io;
use std::panic::Location;

use crate::io::Moving;
use crate::net::tcp::{TcpListener, TcpStream};
use crate::net::transport::{Acceptor, Conn, Packets};
use crate::net::udp::UdpSocket;
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys::socket::{BorrowedSocket, Lend};

/// A socket, and how a loop registers it.
trait Sent<T>: Send + Sync {
    fn attach(self: Box<Self>, handle: &LoopHandle) -> io::Result<T>;

    fn lend(&self) -> BorrowedSocket<'_>;
}

/// The one implementor of [`Sent`].
struct Parts<S, F> {
    socket: S,
    moving: Moving,
    open: F,
}

impl<T, S, F> Sent<T> for Parts<S, F>
where
    S: Lend + Send + Sync,
    F: FnOnce(&LoopHandle, S, Moving) -> io::Result<T> + Send + Sync,
{
    fn attach(self: Box<Self>, handle: &LoopHandle) -> io::Result<T> {
        (self.open)(handle, self.socket, self.moving)
    }

    fn lend(&self) -> BorrowedSocket<'_> {
        self.socket.lend()
    }
}

/// A socket that belongs to no loop, so that it can be sent to another thread.
///
/// `detach` deregisters a socket from its loop, and [`attach`](Self::attach) registers it with the
/// loop that runs. The loop reads nothing ahead, so no byte is lost in between. The line that
/// created the socket, what reports call it, and whether it keeps its loop alive go along.
///
/// Dropping a `Detached` closes the socket.
///
/// # Another process
///
/// On Unix a `Detached` has a descriptor (`AsFd`), which [`Channel::send_with`] passes to another
/// process. There `Detached::<TcpListener>::try_from` makes the received descriptor a `Detached`
/// again; so for `TcpStream` and `UdpSocket`. The connections that wait for a listener, and the
/// bytes that wait for a stream, stay in the kernel's queue meanwhile. The role and the line do not
/// go along. On other platforms a `Detached` moves between the threads of one process only: there
/// is no `Channel`.
///
/// [`Channel::send_with`]: crate::process::Channel::send_with
///
/// # Examples
///
/// A connection that another loop answers:
///
/// ```
/// use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
/// use phaseloop::net::{TcpListener, TcpStream};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let mut client = TcpStream::connect(listener.local_addr()?).await?;
///     let (detached, _peer) = listener.accept_detached().await?;
///     let other = std::thread::spawn(move || {
///         phaseloop::block_on(async {
///             let mut server = detached.attach()?;
///             server.write_all(b"from another loop").await
///         })
///     });
///     let mut text = String::new();
///     client.read_to_string(&mut text).await?;
///     assert_eq!(text, "from another loop");
///     other.join().unwrap()
/// }
/// ```
pub struct Detached<T> {
    socket: Box<dyn Sent<T>>,
    site: Site,
}

impl<T> Detached<T> {
    /// Registers the socket with the loop that runs.
    ///
    /// # Errors
    ///
    /// Any OS error of registering the descriptor with the poller; then the socket is closed.
    /// [`Unsupported`](io::ErrorKind::Unsupported) for a socket in memory, which only a test has,
    /// on a loop of another network.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let address = socket.local_addr()?;
    ///     let detached = socket.detach();
    ///     // A loop on another thread takes the socket over.
    ///     let thread = std::thread::spawn(move || {
    ///         phaseloop::block_on(async { detached.attach()?.local_addr() })
    ///     });
    ///     assert_eq!(thread.join().unwrap()?, address);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn attach(self) -> io::Result<T> {
        self.socket.attach(&LoopHandle::current())
    }

    /// Returns the line that created the socket.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?.detach();
    ///     println!("bound at {}", socket.created_at()); // the line of `bind`
    ///     assert!(socket.created_at().file().ends_with(".rs"));
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn created_at(&self) -> &'static Location<'static> {
        self.site
    }

    /// Lends the socket to a call of the OS.
    ///
    /// # Panics
    ///
    /// If the socket is in memory.
    pub(super) fn lend(&self) -> BorrowedSocket<'_> {
        self.socket.lend()
    }

    /// Creates a `Detached` of a socket that `open` registers.
    pub(super) fn new<S: Lend + Send + Sync + 'static>(
        socket: S,
        moving: Moving,
        open: impl FnOnce(&LoopHandle, S, Moving) -> io::Result<T> + Send + Sync + 'static,
    ) -> Self {
        Self {
            site: moving.site,
            socket: Box::new(Parts {
                socket,
                moving,
                open,
            }),
        }
    }
}

impl<T> fmt::Debug for Detached<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detached")
            .field("type", &std::any::type_name::<T>())
            .field("created_at", &self.site)
            .finish_non_exhaustive()
    }
}

impl Detached<TcpStream> {
    /// Creates a connection that belongs to no loop yet.
    pub(super) fn of_conn(conn: Conn, moving: Moving) -> Self {
        Self::new(conn.0.into_sent(), moving, |handle, socket, moving| {
            let conn = Conn(socket.into_place(handle)?);
            let source = conn.open(handle, true, moving.site)?;
            Ok(TcpStream::from_source(source.arrived(moving)))
        })
    }
}

impl Detached<TcpListener> {
    pub(super) fn of_acceptor(acceptor: Acceptor, is_tcp: bool, moving: Moving) -> Self {
        let socket = acceptor.0.into_sent();
        Self::new(socket, moving, move |handle, socket, moving| {
            let acceptor = Acceptor(socket.into_place(handle)?);
            let source = acceptor.open(handle, moving.site)?;
            Ok(TcpListener::from_source(source.arrived(moving), is_tcp))
        })
    }
}

impl Detached<UdpSocket> {
    pub(super) fn of_packets(packets: Packets, moving: Moving) -> Self {
        Self::new(packets.0.into_sent(), moving, |handle, socket, moving| {
            let packets = Packets(socket.into_place(handle)?);
            let source = packets.open(handle, moving.site)?.arrived(moving);
            Ok(UdpSocket { source })
        })
    }
}

/// Documents and declares a `detach`.
macro_rules! detach {
    ($type:ty, |$socket:ident| $detached:expr) => {
        impl $type {
            /// Deregisters the socket, so that it can move to another loop; see
            /// [`Detached`](crate::net::Detached).
            ///
            /// # Panics
            ///
            /// If the socket was closed through `AsyncWrite`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::net::{TcpListener, TcpStream};
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
            ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
            ///     let peer = stream.peer_addr()?;
            ///     let detached = stream.detach(); // `Send`: it may move to another thread
            ///     assert_eq!(detached.attach()?.peer_addr()?, peer);
            ///     Ok(())
            /// }
            /// ```
            pub fn detach(self) -> $crate::net::Detached<Self> {
                let $socket = self;
                $detached
            }
        }
    };
}

detach!(TcpStream, |stream| {
    let (conn, moving) = stream.into_source().detach();
    Detached::of_conn(conn, moving)
});

detach!(TcpListener, |listener| {
    let (source, is_tcp) = listener.into_source();
    let (acceptor, moving) = source.detach();
    Detached::of_acceptor(acceptor, is_tcp, moving)
});

detach!(UdpSocket, |socket| {
    let (packets, moving) = socket.source.detach();
    Detached::of_packets(packets, moving)
});
