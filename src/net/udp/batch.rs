//! Datagrams in batches.

mod beside;
mod segments;
mod socket;

use std::fmt;
use std::io;
use std::net::SocketAddr;

use crate::error::OsError;
use crate::net::transport::{Packets, either};
use crate::sys::datagrams::{Address, Head, Iter, IterMut, Rooms};
pub use segments::Segments;

/// Datagrams that are received or sent together, with one system call for many on Linux.
///
/// A batch has buffers for a fixed number of datagrams of one size, allocated once. Each datagram
/// has its bytes and an address: its sender when received, its destination when sent. A received
/// batch can therefore be sent unchanged, and each datagram returns to its sender. Before that, its
/// datagrams may be [changed in place](Self::iter_mut), [dropped](Self::retain_mut), or answered
/// [in another batch](Self::push_reply).
///
/// Sent datagrams leave the batch; unsent ones stay, in order.
///
/// # Examples
///
/// A server that answers in place, and does not answer all:
///
/// ```
/// use std::io;
/// use phaseloop::{net::{Batch, UdpSocket}, spawn};
///
/// async fn serve(socket: UdpSocket) -> io::Result<()> {
///     let mut batch = Batch::new(64, 1500);
///     loop {
///         socket.recv_batch(&mut batch).await?;
///         batch.retain_mut(|mut datagram| {
///             datagram.bytes_mut().make_ascii_uppercase();
///             datagram.bytes() != b"SECRET"
///         });
///         socket.send_batch(&mut batch).await?;
///     }
/// }
///
/// #[phaseloop::main]
/// async fn main() -> io::Result<()> {
///     let server = UdpSocket::bind("127.0.0.1:0").await?;
///     let client = UdpSocket::bind("127.0.0.1:0").await?;
///     client.connect(server.local_addr()?).await?;
///     drop(spawn(serve(server)));
///     client.send(b"secret").await?;
///     client.send(b"hello").await?;
///     let mut buffer = [0; 16];
///     let length = client.recv(&mut buffer).await?;
///     assert_eq!(&buffer[..length], b"HELLO");
///     Ok(())
/// }
/// ```
pub struct Batch {
    rooms: Rooms,
    /// The datagrams are in the buffers from `start` up to `end`.
    start: usize,
    end: usize,
    /// Whether the datagram before `start` could not be sent.
    has_failed: bool,
}

impl Batch {
    /// Creates a batch for `count` datagrams, at least one, of up to `size` bytes.
    ///
    /// # Panics
    ///
    /// When `count * size` overflows.
    #[must_use]
    #[inline]
    pub fn new(count: usize, size: usize) -> Self {
        Self {
            rooms: Rooms::new(count.max(1), size),
            start: 0,
            end: 0,
            has_failed: false,
        }
    }

    /// The number of datagrams in the batch.
    #[must_use]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether the batch has no datagrams.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The most datagrams that the batch can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.rooms.count()
    }

    /// The most bytes of a datagram.
    #[must_use]
    pub fn datagram_size(&self) -> usize {
        self.rooms.size()
    }

    /// Iterates over the datagrams, oldest first.
    #[inline]
    pub fn iter(&self) -> Datagrams<'_> {
        Datagrams(self.rooms.iter(self.start..self.end))
    }

    /// Iterates mutably over the datagrams, oldest first.
    #[inline]
    pub fn iter_mut(&mut self) -> DatagramsMut<'_> {
        let size = self.rooms.size();
        DatagramsMut {
            rooms: self.rooms.iter_mut(self.start..self.end),
            size,
        }
    }

    /// Passes each datagram to `keep`, which may change it, and drops those for which it returns
    /// `false`.
    ///
    /// If `keep` panics, the datagrams that it has not seen are dropped, too.
    pub fn retain_mut(&mut self, mut keep: impl FnMut(DatagramMut<'_>) -> bool) {
        self.has_failed = false;
        let end = std::mem::replace(&mut self.end, self.start);
        for index in self.start..end {
            let (head, room) = self.rooms.get_mut(index);
            if keep(DatagramMut { head, room }) {
                if self.end < index {
                    self.rooms.copy(index, self.end);
                }
                self.end += 1;
            }
        }
    }

    /// Adds a datagram for an address, copying its bytes.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for more bytes than the
    /// [size](Self::datagram_size) of the batch, [`StorageFull`](io::ErrorKind::StorageFull) if the
    /// batch is full.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{Batch, UdpSocket};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let a = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let b = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let mut batch = Batch::new(8, 1500);
    ///     batch.push(b"for a", a.local_addr()?)?;
    ///     batch.push(b"for b", b.local_addr()?)?;
    ///     a.send_batch(&mut batch).await?;
    ///     assert!(batch.is_empty());
    ///     assert_eq!(b.recv_batch(&mut batch).await?, 1);
    ///     let received = batch.iter().next().unwrap();
    ///     assert_eq!(received.bytes(), b"for b");
    ///     assert_eq!(received.address(), a.local_addr().ok());
    ///     Ok(())
    /// }
    /// ```
    pub fn push(&mut self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        self.add(bytes, Address::new(to)).map(drop)
    }

    /// Adds a datagram for the peer of a [connected](crate::net::UdpSocket::connect) socket.
    ///
    /// # Errors
    ///
    /// The errors of [`push`](Self::push).
    pub fn push_to_peer(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.add(bytes, Address::NONE).map(drop)
    }

    /// Adds a datagram for the sender of another one. It is [`push`](Self::push) without decoding
    /// the address, and is sent from the [local address](Datagram::local_ip) of the other one.
    ///
    /// # Errors
    ///
    /// The errors of [`push`](Self::push).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use phaseloop::net::{Batch, UdpSocket};
    ///
    /// /// Answers every datagram with its length.
    /// async fn serve(socket: UdpSocket) -> std::io::Result<()> {
    ///     let mut questions = Batch::new(64, 1500);
    ///     let mut answers = Batch::new(64, 8);
    ///     loop {
    ///         socket.recv_batch(&mut questions).await?;
    ///         for question in &questions {
    ///             let length = question.bytes().len() as u64;
    ///             answers.push_reply(&question, &length.to_be_bytes())?;
    ///         }
    ///         while let Err(error) = socket.send_batch(&mut answers).await {
    ///             eprintln!("not sent: {:?}: {error}", answers.failed());
    ///         }
    ///     }
    /// }
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     serve(UdpSocket::bind("127.0.0.1:7000").await?).await
    /// }
    /// ```
    #[inline]
    pub fn push_reply(&mut self, to: &Datagram<'_>, bytes: &[u8]) -> io::Result<()> {
        self.add(bytes, to.head.address)?.local = to.head.local;
        Ok(())
    }

    #[inline]
    fn add(&mut self, bytes: &[u8], address: Address) -> io::Result<&mut Head> {
        if bytes.len() > self.datagram_size() {
            return Err(too_long(bytes.len(), self.datagram_size()));
        }
        if self.end == self.capacity() {
            self.move_to_the_front()?;
        }
        self.has_failed = false;
        let (head, room) = self.rooms.get_mut(self.end);
        room[..bytes.len()].copy_from_slice(bytes);
        *head = Head::new(address, bytes.len());
        self.end += 1;
        Ok(head)
    }

    /// Moves the datagrams to the front if there is room before them.
    fn move_to_the_front(&mut self) -> io::Result<()> {
        if self.len() == self.capacity() {
            let text = format!("the batch is full: {} datagrams", self.len());
            return Err(io::Error::new(io::ErrorKind::StorageFull, text));
        }
        for index in 0..self.len() {
            self.rooms.copy(self.start + index, index);
        }
        (self.start, self.end) = (0, self.len());
        Ok(())
    }

    /// Drops all datagrams.
    pub fn clear(&mut self) {
        (self.start, self.end, self.has_failed) = (0, 0, false);
    }

    /// Returns the datagram that the last send failed for, until the batch is changed or sent
    /// again.
    #[must_use]
    pub fn failed(&self) -> Option<Datagram<'_>> {
        let before = self.start.checked_sub(1).filter(|_| self.has_failed)?;
        Datagrams(self.rooms.iter(before..self.start)).next()
    }

    /// Replaces the datagrams by those in the receive buffer, if any.
    #[inline]
    fn receive(&mut self, socket: &Packets) -> io::Result<usize> {
        self.clear();
        self.end = either!(
            &socket.0,
            socket => self.rooms.receive(socket)?,
            memory => memory.receive_many(&mut self.rooms)?,
        );
        Ok(self.end)
    }

    /// Sends as many datagrams as the kernel accepts in one call. An error concerns the first.
    #[inline]
    fn send(&mut self, socket: &Packets) -> io::Result<usize> {
        self.has_failed = false;
        if self.is_empty() {
            return Ok(0);
        }
        let all = self.start..self.end;
        let sent = either!(
            &socket.0,
            socket => self.rooms.send(socket, all),
            memory => memory.send_many(&mut self.rooms, all),
        );
        match sent {
            Ok(sent) => {
                self.start += sent;
                if self.is_empty() {
                    self.clear();
                }
                Ok(sent)
            }
            Err(error) => {
                if is_temporary(&error) {
                    return Err(error);
                }
                self.start += 1;
                self.has_failed = true;
                let address = self.failed().and_then(|datagram| datagram.address());
                Err(OsError::wrap(error, "send_batch", address))
            }
        }
    }
}

fn is_temporary(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted)
}

fn too_long(length: usize, size: usize) -> io::Error {
    let text = format!("a datagram of {length} bytes is too long: the batch has room for {size}");
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

impl<'a> IntoIterator for &'a Batch {
    type Item = Datagram<'a>;
    type IntoIter = Datagrams<'a>;

    #[inline]
    fn into_iter(self) -> Datagrams<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Batch {
    type Item = DatagramMut<'a>;
    type IntoIter = DatagramsMut<'a>;

    #[inline]
    fn into_iter(self) -> DatagramsMut<'a> {
        self.iter_mut()
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("datagram_size", &self.datagram_size())
            .finish_non_exhaustive()
    }
}

/// A datagram of a [`Batch`].
///
/// # Examples
///
/// ```
/// use phaseloop::net::Batch;
///
/// fn main() -> std::io::Result<()> {
///     let mut batch = Batch::new(8, 1500);
///     batch.push(b"hello", ([127, 0, 0, 1], 7000).into())?;
///     let datagram = batch.iter().next().unwrap();
///     assert_eq!(datagram.bytes(), b"hello");
///     assert_eq!(datagram.address().unwrap().port(), 7000);
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Datagram<'a> {
    head: &'a Head,
    bytes: &'a [u8],
}

impl<'a> Datagram<'a> {
    #[inline]
    fn new(head: &'a Head, room: &'a [u8]) -> Self {
        let bytes = &room[..head.length];
        Self { head, bytes }
    }

    /// The bytes received, or to be sent.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The sender or the destination. `None`: the peer of a connected socket, or a sender that the
    /// kernel does not name.
    #[inline]
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.head.address.get()
    }

    /// Whether the datagram was longer than its buffer and was truncated.
    #[inline]
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.head.truncated
    }
}

impl fmt::Debug for Datagram<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Datagram")
            .field("address", &self.address())
            .field("length", &self.bytes.len())
            .field("truncated", &self.is_truncated())
            .finish_non_exhaustive()
    }
}

/// A mutable datagram of a [`Batch`].
///
/// # Examples
///
/// ```
/// use phaseloop::net::Batch;
///
/// fn main() -> std::io::Result<()> {
///     let mut batch = Batch::new(8, 1500);
///     batch.push(b"hello", ([127, 0, 0, 1], 7000).into())?;
///     for mut datagram in batch.iter_mut() {
///         datagram.bytes_mut().make_ascii_uppercase();
///         datagram.set_address(([127, 0, 0, 1], 7001).into());
///     }
///     assert_eq!(batch.iter().next().unwrap().bytes(), b"HELLO");
///     Ok(())
/// }
/// ```
pub struct DatagramMut<'a> {
    head: &'a mut Head,
    room: &'a mut [u8],
}

impl DatagramMut<'_> {
    /// The bytes received, or to be sent.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.room[..self.head.length]
    }

    /// The bytes received, or to be sent, mutably.
    #[inline]
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.room[..self.head.length]
    }

    /// The whole buffer: the bytes of the datagram, followed by old content.
    ///
    /// To replace the content in place, write it here and then [set its length](Self::set_len).
    #[inline]
    #[must_use]
    pub fn room_mut(&mut self) -> &mut [u8] {
        self.room
    }

    /// Sets the length of the datagram, or of all [segments](Datagram::segments). It no longer
    /// counts as truncated.
    ///
    /// # Panics
    ///
    /// When `length` exceeds the size of the buffer.
    #[inline]
    pub fn set_len(&mut self, length: usize) {
        let size = self.room.len();
        assert!(length <= size, "{length} of {size} bytes");
        self.head.length = length;
        self.head.truncated = false;
    }

    /// Replaces the content by one datagram.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for more bytes than the buffer holds.
    #[inline]
    pub fn set_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let size = self.room.len();
        let room = self.room.get_mut(..bytes.len());
        room.ok_or_else(|| too_long(bytes.len(), size))?
            .copy_from_slice(bytes);
        self.set_len(bytes.len());
        self.head.segment = 0;
        Ok(())
    }

    /// The sender or the destination; see [`Datagram::address`].
    #[inline]
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.head.address.get()
    }

    /// Sets the destination.
    #[inline]
    pub fn set_address(&mut self, to: SocketAddr) {
        self.head.address = Address::new(to);
    }

    /// Whether the datagram was truncated; see [`Datagram::is_truncated`].
    #[inline]
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.head.truncated
    }
}

impl fmt::Debug for DatagramMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Datagram::new(self.head, self.room).fmt(f)
    }
}

/// An iterator over the datagrams of a [`Batch`]; see [`Batch::iter`].
///
/// # Examples
///
/// ```
/// use phaseloop::net::Batch;
///
/// fn main() -> std::io::Result<()> {
///     let mut batch = Batch::new(4, 1500);
///     batch.push_to_peer(b"one")?;
///     let mut datagrams = batch.iter();
///     assert_eq!(datagrams.len(), 1);
///     assert_eq!(datagrams.next().unwrap().bytes(), b"one");
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
#[must_use = "iterators do nothing unless consumed"]
pub struct Datagrams<'a>(Iter<'a>);

impl<'a> Iterator for Datagrams<'a> {
    type Item = Datagram<'a>;

    #[inline]
    fn next(&mut self) -> Option<Datagram<'a>> {
        let (head, room) = self.0.next()?;
        Some(Datagram::new(head, room))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Datagrams<'_> {}

/// A mutable iterator over the datagrams of a [`Batch`]; see [`Batch::iter_mut`].
///
/// # Examples
///
/// ```
/// use phaseloop::net::Batch;
///
/// fn main() -> std::io::Result<()> {
///     let mut batch = Batch::new(4, 1500);
///     batch.push_to_peer(b"one")?;
///     for mut datagram in batch.iter_mut() {
///         datagram.bytes_mut().make_ascii_uppercase();
///     }
///     assert_eq!(batch.iter().next().unwrap().bytes(), b"ONE");
///     Ok(())
/// }
/// ```
#[derive(Debug)]
#[must_use = "iterators do nothing unless consumed"]
pub struct DatagramsMut<'a> {
    rooms: IterMut<'a>,
    size: usize,
}

impl<'a> Iterator for DatagramsMut<'a> {
    type Item = DatagramMut<'a>;

    #[inline]
    fn next(&mut self) -> Option<DatagramMut<'a>> {
        let (head, room) = self.rooms.next()?;
        let room = &mut room[..self.size];
        Some(DatagramMut { head, room })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rooms.size_hint()
    }
}

impl ExactSizeIterator for DatagramsMut<'_> {}
