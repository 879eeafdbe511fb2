//! Messages and descriptors between a parent and its child.

mod frames;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::Location;

use self::frames::{Incoming, LONGEST, Outgoing, header};
use crate::io::Source;
use crate::label::Role;
use crate::runtime::handle::{Close, Handle, impl_handle};
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys::process::inherited::{self, Inherited};

/// The environment variable that describes the channel to the child: the descriptor number and the
/// identity of the socket.
pub(super) const VARIABLE: &str = "PHASELOOP_CHANNEL";

/// The default limit for the length of a message.
const MAX_MESSAGE_LEN: usize = 256 * 1024 * 1024;

/// A message received from a [`Channel`].
///
/// # Examples
///
/// ```
/// use std::fs::File;
/// use std::os::fd::AsFd;
/// use phaseloop::process::Channel;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let (one, other) = Channel::pair()?;
///     let file = File::open("Cargo.toml")?;
///     one.send_with(b"a file", &[file.as_fd()]).await?;
///     let message = other.recv().await?.unwrap();
///     assert_eq!(message.bytes, b"a file");
///     assert_eq!(message.descriptors.len(), 1);
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Message {
    /// The bytes of the message.
    pub bytes: Vec<u8>,
    /// The descriptors that were sent with it, in the order of sending. They are close-on-exec.
    pub descriptors: Vec<OwnedFd>,
}

/// A two-way channel between a parent and a child, for whole messages and open descriptors.
///
/// The parent requests one with [`Command::channel`](super::Command::channel) and finds it in
/// [`Child::channel`](super::Child::channel). The child gets its end from [`Channel::from_env`].
/// Dropping one end disconnects: the other end receives the messages sent before, then `None`.
///
/// A send waits while the socket buffer is full. A waiting receive keeps the loop alive, unless the
/// channel is [unref'd](Handle::unref). Both are woken in the poll phase.
///
/// # Limits
///
/// The peer need not be trusted with memory or descriptors. A message longer than
/// [`max_message_len`](Self::max_message_len) is rejected when its header arrives, and only
/// received bytes take memory. Descriptors that no message announces are closed and break the
/// channel. The memory of a long message is freed with it, at both ends.
///
/// # Examples
///
/// ```
/// use phaseloop::process::Channel;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let (parent, child) = Channel::pair()?;
///     parent.send(b"hello").await?;
///     parent.send(b"").await?;
///     drop(parent);
///     assert_eq!(child.recv().await?.unwrap().bytes, b"hello");
///     assert_eq!(child.recv().await?.unwrap().bytes, b"");
///     assert!(child.recv().await?.is_none());
///     Ok(())
/// }
/// ```
pub struct Channel {
    source: Source<Socket>,
    incoming: RefCell<Incoming>,
    outgoing: RefCell<Outgoing>,
    max_message_len: Cell<usize>,
}

/// The socket of this end.
enum Socket {
    Owned(UnixStream),
    /// The socket of a child, which disconnects on drop.
    Inherited(Inherited),
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Owned(stream) => stream.as_fd(),
            Self::Inherited(socket) => socket.as_fd(),
        }
    }
}

impl Channel {
    /// Returns the channel to the parent. `None` if the parent gave this process no channel, or if
    /// it was taken already.
    ///
    /// The environment names a descriptor. It is used only if it is the connected Unix stream
    /// socket that the parent has created. The channel owns a duplicate: if other code in the
    /// process owns the number, neither closes the descriptor of the other. The number itself stays
    /// open and becomes close-on-exec; dropping the channel disconnects nevertheless. The variable
    /// stays in the environment, since changing the environment is not safe while other threads
    /// run; a [`Command`](super::Command) removes it from the environment of its child.
    ///
    /// # Errors
    ///
    /// [`InvalidData`](io::ErrorKind::InvalidData) if the environment names a channel that does not
    /// exist; otherwise any OS error of `fcntl` or `epoll_ctl`. The next call tries again.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Channel;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     match Channel::from_env()? {
    ///         Some(_channel) => println!("a program with a channel has started this process"),
    ///         None => println!("started from a shell"),
    ///     }
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    #[inline]
    pub fn from_env() -> io::Result<Option<Self>> {
        let handle = LoopHandle::current();
        let Some(value) = std::env::var_os(VARIABLE) else {
            return Ok(None);
        };
        let Some(socket) = inherited::take(&value)? else {
            return Ok(None);
        };
        let socket = Socket::Inherited(socket);
        Self::new(&handle, socket, Location::caller()).map(Some)
    }

    /// Creates a channel with both ends in this process.
    ///
    /// # Errors
    ///
    /// Any OS error of `socketpair` or `epoll_ctl`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Channel;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (parent, child) = Channel::pair()?;
    ///     parent.send(b"job 1").await?;
    ///     parent.send(b"job 2").await?;
    ///     assert_eq!(child.recv().await?.unwrap().bytes, b"job 1"); // messages, not a stream
    ///     assert_eq!(child.recv().await?.unwrap().bytes, b"job 2");
    ///     drop(parent);
    ///     assert!(child.recv().await?.is_none());
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    #[inline]
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = UnixStream::pair()?;
        let site = Location::caller();
        Ok((
            Self::from_std_at(one, site)?,
            Self::from_std_at(other, site)?,
        ))
    }

    /// Creates a channel over a connected stream, whose peer must be a channel as well. The stream
    /// is set to non-blocking mode.
    ///
    /// # Errors
    ///
    /// Any OS error of `ioctl` or `epoll_ctl`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Channel;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (one, _other) = std::os::unix::net::UnixStream::pair()?;
    ///     let channel = Channel::from_std(one)?;
    ///     assert!(channel.max_message_len() > 0);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    #[inline]
    pub fn from_std(stream: UnixStream) -> io::Result<Self> {
        let site = Location::caller();
        LoopHandle::current()
            .core()
            .waits
            .note_outside("a socket of the standard library", site);
        Self::from_std_at(stream, site)
    }

    /// Creates a channel on behalf of the caller at `site`.
    #[track_caller]
    #[inline]
    pub(super) fn from_std_at(stream: UnixStream, site: Site) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Self::new(&LoopHandle::current(), Socket::Owned(stream), site)
    }

    #[inline]
    fn new(handle: &LoopHandle, socket: Socket, site: Site) -> io::Result<Self> {
        let source = Source::new_stream(handle, socket, true, site)?;
        Ok(Self {
            source: source.with_role(Role::Channel),
            incoming: RefCell::default(),
            outgoing: RefCell::default(),
            max_message_len: Cell::new(MAX_MESSAGE_LEN),
        })
    }

    /// Returns the limit for the length of a message, sent or received. The default is 256 MiB; see
    /// [`set_max_message_len`](Self::set_max_message_len).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Channel;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (one, other) = Channel::pair()?;
    ///     other.set_max_message_len(4); // a longer message of the peer is an error
    ///     assert_eq!(other.max_message_len(), 4);
    ///     one.send(b"hello").await?;
    ///     assert!(other.recv().await.is_err());
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn max_message_len(&self) -> usize {
        self.max_message_len.get()
    }

    /// Sets [`max_message_len`](Self::max_message_len) for this end. A message that was rejected
    /// for its length can be received after the limit is raised.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Channel;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (one, other) = Channel::pair()?;
    ///     other.set_max_message_len(4);
    ///     one.send(b"hello").await?;
    ///     assert!(other.recv().await.is_err());
    ///     other.set_max_message_len(5);
    ///     assert_eq!(other.recv().await?.unwrap().bytes, b"hello");
    ///     Ok(())
    /// }
    /// ```
    pub fn set_max_message_len(&self, bytes: usize) {
        self.max_message_len.set(bytes.min(LONGEST));
    }

    /// Sends a message, which may be empty. Messages arrive whole, in the order in which their
    /// sends began.
    ///
    /// # Errors
    ///
    /// [`BrokenPipe`](io::ErrorKind::BrokenPipe) if the peer has disconnected,
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for more than
    /// [`max_message_len`](Self::max_message_len) bytes.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the message is either not sent, or partly sent and completed by
    /// the next send.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Channel;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (parent, child) = Channel::pair()?;
    ///     parent.send(b"job 1").await?;
    ///     parent.send(b"job 2").await?;
    ///     assert_eq!(child.recv().await?.unwrap().bytes, b"job 1"); // messages, not a stream
    ///     assert_eq!(child.recv().await?.unwrap().bytes, b"job 2");
    ///     drop(parent);
    ///     assert!(child.recv().await?.is_none());
    ///     Ok(())
    /// }
    /// ```
    pub async fn send(&self, message: &[u8]) -> io::Result<()> {
        self.send_with(message, &[]).await
    }

    /// Sends a message with open descriptors: sockets, pipes, files. The receiver gets duplicates;
    /// the sent descriptors stay open here.
    ///
    /// # Errors
    ///
    /// The errors of [`send`](Self::send); [`InvalidInput`](io::ErrorKind::InvalidInput) for more
    /// than 253 descriptors.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the message is either not sent, or partly sent and completed by
    /// the next send.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::os::fd::AsFd;
    /// use phaseloop::process::Channel;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (one, other) = Channel::pair()?;
    ///     let file = std::fs::File::open("Cargo.toml")?;
    ///     one.send_with(b"a file", &[file.as_fd()]).await?;
    ///     let message = other.recv().await?.unwrap();
    ///     assert_eq!(message.descriptors.len(), 1); // open in the receiving process
    ///     Ok(())
    /// }
    /// ```
    pub async fn send_with(
        &self,
        message: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let header = header(message, descriptors, self.max_message_len())?;
        let mut has_begun = false;
        let send = |socket: &Socket| {
            let mut outgoing = self.outgoing.borrow_mut();
            outgoing.flush(socket)?;
            if !has_begun {
                outgoing.begin(socket, header, message, descriptors)?;
                has_begun = true;
                outgoing.flush(socket)?;
            }
            Ok(())
        };
        self.source.write_with(send).await
    }

    /// Receives the next message. It returns `None` once the peer has disconnected and all its
    /// messages were received.
    ///
    /// # Errors
    ///
    /// - [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the peer disconnected in the middle of
    ///   a message.
    /// - [`InvalidData`](io::ErrorKind::InvalidData) for a message that is longer than
    ///   [`max_message_len`](Self::max_message_len).
    /// - [`InvalidData`](io::ErrorKind::InvalidData), from now on, if the peer has sent descriptors
    ///   that no message announces, or has announced descriptors that did not arrive.
    /// - An error, from now on, if descriptors were lost because this process had none free.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no data: a partly received message stays for the next receive.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Channel;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (parent, child) = Channel::pair()?;
    ///     parent.send(b"job 1").await?;
    ///     parent.send(b"job 2").await?;
    ///     assert_eq!(child.recv().await?.unwrap().bytes, b"job 1"); // messages, not a stream
    ///     assert_eq!(child.recv().await?.unwrap().bytes, b"job 2");
    ///     drop(parent);
    ///     assert!(child.recv().await?.is_none());
    ///     Ok(())
    /// }
    /// ```
    pub async fn recv(&self) -> io::Result<Option<Message>> {
        // Messages may have arrived together: a buffered one needs no system call, but counts
        // against the budget.
        self.source.spend().await?;
        loop {
            if let Some(message) = self.next()? {
                return Ok(Some(message));
            }
            let fill = |socket: &Socket| self.incoming.borrow_mut().fill(socket);
            if self.source.read_with(fill).await? == 0 {
                // Another receive may have completed the last message meanwhile.
                let message = self.next()?;
                if message.is_none() {
                    self.incoming.borrow().end()?;
                }
                return Ok(message);
            }
        }
    }

    #[inline]
    fn next(&self) -> io::Result<Option<Message>> {
        self.incoming.borrow_mut().next(self.max_message_len())
    }

    /// Disconnects at once. The close completes in the closing phase; see [`Close`]. Messages that
    /// were not received are lost.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Channel;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (one, other) = Channel::pair()?;
    ///     one.close().await;
    ///     assert!(other.recv().await?.is_none());
    ///     Ok(())
    /// }
    /// ```
    pub fn close(self) -> Close {
        self.source.close()
    }
}

impl_handle!(Channel, |this| this.source.handle_core());

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.get_ref().as_fd()
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("active", &self.is_active())
            .field("created_at", &self.created_at())
            .finish_non_exhaustive()
    }
}
