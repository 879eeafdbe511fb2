//! Messages and open descriptors between a parent and its child.
//!
//! A frame is the length of the message (4 bytes, the highest first), the number of its descriptors (1 byte) and the
//! message. The descriptors travel with the first byte, so they are there when the frame begins to arrive; messages take
//! theirs in the order of arrival.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::Location;

use crate::event_loop::handle::LoopHandle;
use crate::event_loop::handles::{Close, Handle, HandleCore, sealed};
use crate::io::Source;
use crate::kinds::Site;
use crate::sys::process::inherited;
use crate::sys::unix_socket::{self, MOST_DESCRIPTORS};

/// The variable that tells a child of its channel: the number of the descriptor, and which socket it has to be.
pub(super) const VARIABLE: &str = "PHASELOOP_CHANNEL";

const HEADER: usize = 5;

/// How much one receive takes at most.
const CHUNK: usize = 64 * 1024;

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
    source: Source<UnixStream>,
    incoming: RefCell<Incoming>,
    outgoing: RefCell<Outgoing>,
}

impl Channel {
    /// The channel to the parent that has started this process with one. `None` when there is none, or it was taken
    /// already.
    ///
    /// # Errors
    ///
    /// [`InvalidData`](io::ErrorKind::InvalidData) when the environment names a channel that is not there, else the
    /// system's.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn from_env() -> io::Result<Option<Self>> {
        let Some(value) = std::env::var_os(VARIABLE) else {
            return Ok(None);
        };
        match inherited::take(&value)? {
            Some(socket) => Self::from_std(socket.into()).map(Some),
            None => Ok(None),
        }
    }

    /// Two ends within this process.
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
        let (one, other) = UnixStream::pair()?;
        Ok((Self::from_std(one)?, Self::from_std(other)?))
    }

    /// A channel over a stream whose other end is one, too. It is made non-blocking.
    ///
    /// # Errors
    ///
    /// The system's.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn from_std(stream: UnixStream) -> io::Result<Self> {
        Self::from_std_at(stream, Location::caller())
    }

    /// The same, made by the line `site`.
    #[track_caller]
    pub(super) fn from_std_at(stream: UnixStream, site: Site) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            source: Source::new_stream(&LoopHandle::current(), stream, true, site)?,
            incoming: RefCell::default(),
            outgoing: RefCell::default(),
        })
    }

    /// Sends a message, empty or not. Messages arrive whole and in the order in which their sends have begun.
    ///
    /// # Errors
    ///
    /// [`BrokenPipe`](io::ErrorKind::BrokenPipe) when the other side has disconnected,
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for 4 GiB or more.
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
        let frame = frame(message, descriptors.len())?;
        let mut has_begun = false;
        let send = |stream: &UnixStream| {
            let mut outgoing = self.outgoing.borrow_mut();
            outgoing.flush(stream)?;
            if !has_begun {
                let sent = unix_socket::send_with(stream, &frame, descriptors)?;
                has_begun = true;
                outgoing.rest.extend_from_slice(&frame[sent..]);
                outgoing.flush(stream)?;
            }
            Ok(())
        };
        self.source.write_with(send).await
    }

    /// The next message; `None` when the other side has disconnected and everything it sent was received.
    ///
    /// # Errors
    ///
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) when the other side went in the middle of a message. An error, now
    /// and for ever, when descriptors were lost because this process had no room for them.
    ///
    /// # Cancel safety
    ///
    /// Given up, nothing is lost: what has arrived of a message stays for the next receive.
    pub async fn recv(&self) -> io::Result<Option<Message>> {
        // Many messages may have arrived together.
        self.source.spend().await?;
        loop {
            if let Some(message) = self.incoming.borrow_mut().next()? {
                return Ok(Some(message));
            }
            let fill = |stream: &UnixStream| self.incoming.borrow_mut().fill(stream);
            if self.source.read_with(fill).await? == 0 {
                // Somebody else may have received the last one meanwhile.
                let incoming = &mut *self.incoming.borrow_mut();
                return match incoming.next()? {
                    None if !incoming.bytes.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
                    message => Ok(message),
                };
            }
        }
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

fn frame(message: &[u8], descriptors: usize) -> io::Result<Vec<u8>> {
    let length = u32::try_from(message.len());
    let count = u8::try_from(descriptors).ok();
    let (Ok(length), Some(count)) = (length, count.filter(|_| descriptors <= MOST_DESCRIPTORS))
    else {
        let text =
            format!("a message has less than 4 GiB and at most {MOST_DESCRIPTORS} descriptors");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    };
    let mut frame = Vec::with_capacity(HEADER + message.len());
    frame.extend_from_slice(&length.to_be_bytes());
    frame.push(count);
    frame.extend_from_slice(message);
    Ok(frame)
}

/// What of the last frame is still to be sent. No other one begins before.
#[derive(Default)]
struct Outgoing {
    rest: Vec<u8>,
}

impl Outgoing {
    fn flush(&mut self, stream: &UnixStream) -> io::Result<()> {
        while !self.rest.is_empty() {
            let sent = unix_socket::send_with(stream, &self.rest, &[])?;
            self.rest.drain(..sent);
        }
        Ok(())
    }
}

/// What has arrived and makes no whole message yet.
#[derive(Default)]
struct Incoming {
    bytes: Vec<u8>,
    descriptors: VecDeque<OwnedFd>,
    /// Why nothing more can be received.
    broken: Option<String>,
}

impl Incoming {
    /// Receives what is there; 0 is the end.
    fn fill(&mut self, stream: &UnixStream) -> io::Result<usize> {
        let length = self.bytes.len();
        self.bytes.resize(length + CHUNK, 0);
        let mut descriptors = Vec::new();
        let received =
            unix_socket::receive_with(stream, &mut self.bytes[length..], &mut descriptors);
        self.bytes
            .truncate(length + received.as_ref().map_or(0, |count| *count));
        self.descriptors.extend(descriptors);
        match received {
            // The other side went without having received everything: that is its end, too.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(0),
            // Descriptors, and the bytes they came with, are lost: nothing that follows could be told apart.
            Err(error) if error.kind() == io::ErrorKind::Other => {
                self.broken = Some(error.to_string());
                Err(error)
            }
            received => received,
        }
    }

    /// The next message that is there as a whole.
    fn next(&mut self) -> io::Result<Option<Message>> {
        if let Some(broken) = &self.broken {
            return Err(io::Error::other(broken.clone()));
        }
        let Some((header, rest)) = self.bytes.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let [a, b, c, d, count] = *header;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        let Some(message) = rest.get(..length) else {
            return Ok(None);
        };
        let count = usize::from(count);
        if self.descriptors.len() < count {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let message = Message {
            bytes: message.to_vec(),
            descriptors: self.descriptors.drain(..count).collect(),
        };
        self.bytes.drain(..HEADER + length);
        Ok(Some(message))
    }
}
