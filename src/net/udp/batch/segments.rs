//! Several datagrams in one buffer: the kernel cuts it when sending (GSO), and has joined it when
//! receiving (GRO).

use std::io;
use std::net::SocketAddr;

use super::{Batch, Datagram};
use crate::sys::datagrams::Address;

/// Segments: datagrams of one length for one address, which pass through the kernel as one.
impl Batch {
    /// Adds the datagrams that `bytes` is cut into, each of `size` bytes; the last may be shorter.
    /// They count as one of the batch, and take one buffer.
    ///
    /// On Linux the kernel cuts them (`UDP_SEGMENT`), at most 64 and 65,507 bytes at once. The
    /// others, and where it refuses, are sent one by one: more system calls, the same datagrams.
    /// `size` should fit into a packet of the network, for example 1,200 bytes for the internet.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if `size` is 0 or above 65,535; the errors of
    /// [`push`](Self::push).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{Batch, UdpSocket};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let sender = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let receiver = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let mut batch = Batch::new(4, 64 * 1024);
    ///     batch.push_segments(&[7; 2500], 1000, receiver.local_addr()?)?;
    ///     sender.send_batch(&mut batch).await?;
    ///     let mut buffer = [0; 1500];
    ///     for length in [1000, 1000, 500] {
    ///         assert_eq!(receiver.recv(&mut buffer).await?, length);
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn push_segments(&mut self, bytes: &[u8], size: usize, to: SocketAddr) -> io::Result<()> {
        self.add_segments(bytes, size, Address::new(to))
    }

    /// Adds the datagrams that `bytes` is cut into for the peer of a
    /// [connected](crate::net::UdpSocket::connect) socket.
    ///
    /// # Errors
    ///
    /// The errors of [`push_segments`](Self::push_segments).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::Batch;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut batch = Batch::new(4, 1500);
    ///     batch.push_segments_to_peer(b"onetwo3", 3)?;
    ///     let datagram = batch.iter().next().unwrap();
    ///     assert_eq!(datagram.segment_size(), 3);
    ///     assert_eq!(datagram.segments().count(), 3); // "one", "two" and "3"
    ///     Ok(())
    /// }
    /// ```
    pub fn push_segments_to_peer(&mut self, bytes: &[u8], size: usize) -> io::Result<()> {
        self.add_segments(bytes, size, Address::NONE)
    }

    fn add_segments(&mut self, bytes: &[u8], size: usize, address: Address) -> io::Result<()> {
        let Some(segment) = u16::try_from(size).ok().filter(|&size| size > 0) else {
            let text = format!("a segment cannot have {size} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        };
        self.add(bytes, address)?.segment = segment;
        Ok(())
    }
}

impl<'a> Datagram<'a> {
    /// The datagrams in the buffer: one, unless several were
    /// [pushed as one](Batch::push_segments), or [received as one](crate::net::UdpSocket::set_gro).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::Batch;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut batch = Batch::new(4, 1500);
    ///     batch.push_segments_to_peer(b"onetwo3", 3)?;
    ///     let datagram = batch.iter().next().unwrap();
    ///     assert_eq!(datagram.segment_size(), 3);
    ///     assert_eq!(datagram.segments().count(), 3); // "one", "two" and "3"
    ///     Ok(())
    /// }
    /// ```
    #[must_use = "iterators do nothing unless consumed"]
    #[inline]
    pub fn segments(&self) -> Segments<'a> {
        Segments {
            rest: Some(self.bytes),
            size: self.segment_size(),
        }
    }

    /// The length of the [segments](Self::segments), of which the last may be shorter; that of the
    /// datagram if it is the only one.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::Batch;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut batch = Batch::new(4, 1500);
    ///     batch.push_segments_to_peer(b"onetwo3", 3)?;
    ///     let datagram = batch.iter().next().unwrap();
    ///     assert_eq!(datagram.segment_size(), 3);
    ///     assert_eq!(datagram.segments().count(), 3); // "one", "two" and "3"
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn segment_size(&self) -> usize {
        self.head.segment_size()
    }
}

/// An iterator over the datagrams in one buffer; see [`Datagram::segments`].
///
/// # Examples
///
/// ```
/// use phaseloop::net::Batch;
///
/// fn main() -> std::io::Result<()> {
///     let mut batch = Batch::new(4, 1500);
///     batch.push_segments_to_peer(b"onetwo3", 3)?;
///     let datagram = batch.iter().next().unwrap();
///     let segments: Vec<&[u8]> = datagram.segments().collect();
///     assert_eq!(segments, [&b"one"[..], b"two", b"3"]);
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Segments<'a> {
    /// `None` after the last one. An empty datagram is one, too.
    rest: Option<&'a [u8]>,
    size: usize,
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest.take()?;
        let (segment, rest) = rest.split_at(rest.len().min(self.size));
        self.rest = Some(rest).filter(|rest| !rest.is_empty());
        Some(segment)
    }
}
