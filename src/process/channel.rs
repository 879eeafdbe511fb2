//! Messages and open descriptors between a parent and its child.

mod frames;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::Location;

use self::frames::{Incoming, LONGEST, Outgoing, header};
use crate::event_loop::api::handle::{Close, Handle, HandleCore, sealed};
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::io::Source;
use crate::site::Site;
use crate::sys::process::inherited::{self, Inherited};

/// The variable that tells a child of its channel: the number of the descriptor, and which socket it has to be.
pub(super) const VARIABLE: &str = "PHASELOOP_CHANNEL";

/// How long a message is at most, unless told otherwise.
const MAX_MESSAGE_LEN: usize = 256 * 1024 * 1024;

/// What came over a [`Channel`].
#[derive(Debug)]
pub struct Message {
    /// The bytes, as they were sent.
    pub bytes: Vec<u8>,
    /// The descriptors that were sent with them, in their order; not inherited by children.
    pub descriptors: Vec<OwnedFd>,
}

/// A two-way channel between a parent and a child: whole messages, and open descriptors with them.
///
/// The parent asks for one with [`Command::channel`](super::Command::channel) and finds it in
/// [`Child::channel`](super::Child::channel); the child gets its end from [`Channel::from_env`]. Dropping one end
/// disconnects: the other one receives what was sent before, then `None`.
///
/// A send waits while the other side is slow to receive. A receive that waits keeps the loop alive, unless the channel is
/// [unref'd](Handle::unref). Both wake in the poll phase.
///
/// # Limits
///
/// The other side need not be trusted with memory or descriptors. A message that is longer than
/// [`max_message_len`](Self::max_message_len) is refused by its head, and only bytes that have
/// arrived take memory. Descriptors that no message announces are closed and break the channel. The
/// memory of a long message goes with it, at both ends.
///
/// # Examples
///
/// ```
/// use phaseloop::process::Channel;
///
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let (parent, child) = Channel::pair()?;
///     parent.send(b"hello").await?;
///     parent.send(b"").await?;
///     drop(parent);
///     assert_eq!(child.recv().await?.unwrap().bytes, b"hello");
///     assert_eq!(child.recv().await?.unwrap().bytes, b"");
///     assert!(child.recv().await?.is_none());
///     Ok(())
/// })
/// # }
/// ```
pub struct Channel {
    source: Source<Socket>,
    incoming: RefCell<Incoming>,
    outgoing: RefCell<Outgoing>,
    max_message_len: Cell<usize>,
}

/// This end of the channel.
enum Socket {
    Owned(UnixStream),
    /// Of a child; its drop disconnects.
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
    /// The channel to the parent that has started this process with one. `None` when there is none,
    /// or it was taken already.
    ///
    /// The environment names a descriptor. It is used only if it is a Unix stream socket,
    /// connected, and the very one that the parent has made. The channel has a duplicate of it:
    /// other code in the process that holds the number for its own may close it, and neither closes
    /// the other's. The number itself stays open, and is not inherited by children; dropping the
    /// channel disconnects all the same. The variable stays in the environment, since changing that
    /// is not safe while other threads run; a [`Command`](super::Command) takes it out of its
    /// child's.
    ///
    /// # Errors
    ///
    /// [`InvalidData`](io::ErrorKind::InvalidData) when the environment names a channel that is not
    /// there, else any OS error of `fcntl` or `epoll_ctl`; the next call tries again.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
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

    /// Two ends within this process.
    ///
    /// # Errors
    ///
    /// Any OS error of `socketpair` or `epoll_ctl`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = UnixStream::pair()?;
        Ok((Self::from_std(one)?, Self::from_std(other)?))
    }

    /// A channel over a stream whose other end is one, too. It is made non-blocking.
    ///
    /// # Errors
    ///
    /// Any OS error of `ioctl` or `epoll_ctl`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn from_std(stream: UnixStream) -> io::Result<Self> {
        Self::from_std_at(stream, Location::caller())
    }

    /// A channel that was made by the line `site`.
    #[track_caller]
    pub(super) fn from_std_at(stream: UnixStream, site: Site) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Self::new(&LoopHandle::current(), Socket::Owned(stream), site)
    }

    fn new(handle: &LoopHandle, socket: Socket, site: Site) -> io::Result<Self> {
        Ok(Self {
            source: Source::new_stream(handle, socket, true, site)?,
            incoming: RefCell::default(),
            outgoing: RefCell::default(),
            max_message_len: Cell::new(MAX_MESSAGE_LEN),
        })
    }

    /// How many bytes a message can have, sent or received: 256 MiB, unless
    /// [set](Self::set_max_message_len).
    #[must_use]
    pub fn max_message_len(&self) -> usize {
        self.max_message_len.get()
    }

    /// Sets [`max_message_len`](Self::max_message_len) for this end. A message that was refused for
    /// its length can be received with a higher limit.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::Channel;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// phaseloop::block_on(async {
    ///     let (one, other) = Channel::pair()?;
    ///     other.set_max_message_len(4);
    ///     one.send(b"hello").await?;
    ///     assert!(other.recv().await.is_err());
    ///     other.set_max_message_len(5);
    ///     assert_eq!(other.recv().await?.unwrap().bytes, b"hello");
    ///     Ok(())
    /// })
    /// # }
    /// ```
    pub fn set_max_message_len(&self, bytes: usize) {
        self.max_message_len.set(bytes.min(LONGEST));
    }

    /// Sends a message, empty or not. Messages arrive whole and in the order in which their sends have begun.
    ///
    /// # Errors
    ///
    /// [`BrokenPipe`](io::ErrorKind::BrokenPipe) when the other side has disconnected,
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for more than
    /// [`max_message_len`](Self::max_message_len) bytes.
    ///
    /// # Cancel safety
    ///
    /// Given up, the message was either not sent, or has begun to be and is finished by the next send.
    pub async fn send(&self, message: &[u8]) -> io::Result<()> {
        self.send_with(message, &[]).await
    }

    /// Sends a message with open descriptors: sockets, pipes, files. The receiver gets its own; those sent stay open here.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send); [`InvalidInput`](io::ErrorKind::InvalidInput) for more than 253 descriptors.
    ///
    /// # Cancel safety
    ///
    /// As [`send`](Self::send).
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

    /// The next message; `None` when the other side has disconnected and everything it sent was received.
    ///
    /// # Errors
    ///
    /// - [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) when the other side went in the middle of a
    ///   message.
    /// - [`InvalidData`](io::ErrorKind::InvalidData) for a message that is longer than
    ///   [`max_message_len`](Self::max_message_len).
    /// - [`InvalidData`](io::ErrorKind::InvalidData), now and for ever, when the other side has sent
    ///   descriptors that no message announces, or has announced some that did not come.
    /// - An error, now and for ever, when descriptors were lost because this process had no room for
    ///   them.
    ///
    /// # Cancel safety
    ///
    /// Given up, nothing is lost: what has arrived of a message stays for the next receive.
    pub async fn recv(&self) -> io::Result<Option<Message>> {
        // Many messages may have arrived together.
        self.source.spend().await?;
        loop {
            if let Some(message) = self.next()? {
                return Ok(Some(message));
            }
            let fill = |socket: &Socket| self.incoming.borrow_mut().fill(socket);
            if self.source.read_with(fill).await? == 0 {
                // Another receive may have taken in the last one meanwhile.
                let message = self.next()?;
                if message.is_none() {
                    self.incoming.borrow().end()?;
                }
                return Ok(message);
            }
        }
    }

    fn next(&self) -> io::Result<Option<Message>> {
        self.incoming.borrow_mut().next(self.max_message_len())
    }

    /// Disconnects at once, and has that reported in the closing phase; see [`Close`]. What was not received here is lost.
    pub fn close(self) -> Close {
        self.source.close()
    }
}

impl Handle for Channel {}

impl sealed::Sealed for Channel {
    fn handle_core(&self) -> &HandleCore {
        self.source.handle_core()
    }
}

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
