//! Buffers for many datagrams, filled and sent with one system call where the kernel has one.
#![allow(
    unsafe_code,
    reason = "calls that no safe wrapper offers for rooms made once"
)]

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::ops::Range;

// `--cfg phaseloop_portable_poller` selects the portable code on Linux, to test it there.
#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    not(phaseloop_portable_poller)
))]
mod many;
#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    not(phaseloop_portable_poller)
))]
use many as platform;
#[cfg(any(
    not(any(target_os = "linux", target_os = "android")),
    phaseloop_portable_poller
))]
mod one_by_one;
#[cfg(any(
    not(any(target_os = "linux", target_os = "android")),
    phaseloop_portable_poller
))]
use one_by_one as platform;

mod single;

pub(crate) use platform::{Address, is_set, set};
pub(crate) use single::{peek, peek_from, recv, recv_from};

/// The metadata of a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// Source or destination address.
    pub(crate) address: Address,
    /// Length of the datagram in its buffer.
    pub(crate) length: usize,
    /// Whether the datagram was longer than its buffer and was truncated.
    pub(crate) truncated: bool,
    /// The length of each of the datagrams in the buffer, of which the last may be shorter; 0:
    /// there is one.
    pub(crate) segment: u16,
    /// The type of service of IPv4, or the traffic class of IPv6.
    pub(crate) tos: Tos,
    /// The address of this machine that a datagram was sent to, or is to be sent from.
    pub(crate) local: Option<IpAddr>,
}

/// The type of service of one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tos {
    /// Not reported, or that of the socket.
    None,
    /// It is not sent: the marks of congestion belong to the way that the datagram came.
    #[cfg_attr(
        not(any(target_os = "linux", target_os = "android")),
        allow(dead_code, reason = "only Linux reports it")
    )]
    Received(u8),
    Set(u8),
}

/// What the kernel does for a socket if it is asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// It joins datagrams, and reports their length.
    Joined,
    /// It reports the type of service of received datagrams.
    Tos,
    /// It reports the address that received datagrams were sent to.
    LocalIp,
    /// No datagram is sent in fragments.
    Whole,
}

impl Head {
    /// Describes one datagram.
    #[inline]
    pub(crate) fn new(address: Address, length: usize) -> Self {
        Self {
            address,
            length,
            truncated: false,
            segment: 0,
            tos: Tos::None,
            local: None,
        }
    }

    /// The length of the datagrams in the buffer. The last may be shorter.
    #[inline]
    pub(crate) fn segment_size(&self) -> usize {
        match self.segment {
            0 => self.length,
            size => self.length.min(size.into()),
        }
    }
}

/// Buffers of one size for a fixed number of datagrams, each with a [`Head`]. Nothing moves or
/// grows after construction.
pub(crate) struct Rooms {
    heads: Vec<Head>,
    /// The buffers, one after the other.
    bytes: Vec<u8>,
    size: usize,
    #[allow(
        dead_code,
        reason = "only the calls for many datagrams need something to be kept"
    )]
    calls: platform::Calls,
}

impl Rooms {
    /// # Panics
    ///
    /// When `count * size` overflows.
    #[inline]
    pub(crate) fn new(count: usize, size: usize) -> Self {
        let bytes = count.saturating_mul(stride(size));
        assert!(bytes <= isize::MAX as usize, "no batch is that large");
        let head = Head::new(Address::NONE, 0);
        let (mut heads, mut bytes) = (vec![head; count], vec![0; bytes]);
        let calls = platform::Calls::new(&mut heads, &mut bytes, size);
        Self {
            heads,
            bytes,
            size,
            calls,
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.heads.len()
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    #[inline]
    pub(crate) fn iter(&self, range: Range<usize>) -> Iter<'_> {
        let stride = stride(self.size);
        let bytes = &self.bytes[range.start * stride..range.end * stride];
        self.heads[range].iter().zip(bytes.chunks_exact(stride))
    }

    #[inline]
    pub(crate) fn iter_mut(&mut self, range: Range<usize>) -> IterMut<'_> {
        let stride = stride(self.size);
        let bytes = &mut self.bytes[range.start * stride..range.end * stride];
        let rooms = bytes.chunks_exact_mut(stride);
        self.heads[range].iter_mut().zip(rooms)
    }

    /// The head and the buffer of one datagram.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> (&mut Head, &mut [u8]) {
        let room = &mut self.bytes[index * stride(self.size)..][..self.size];
        (&mut self.heads[index], room)
    }

    /// Sends the datagrams of one buffer, one by one. Those that were sent leave the buffer.
    ///
    /// # Errors
    ///
    /// The error of `send` for the first that is left.
    pub(crate) fn send_each(
        &mut self,
        index: usize,
        mut send: impl FnMut(&[u8], &Head) -> io::Result<usize>,
    ) -> io::Result<()> {
        let (head, room) = self.get_mut(index);
        let size = head.segment_size();
        let mut done = 0;
        loop {
            let end = head.length.min(done + size);
            if let Err(error) = send(&room[done..end], head) {
                room.copy_within(done..head.length, 0);
                head.length -= done;
                return Err(error);
            }
            done = end;
            if done == head.length {
                return Ok(());
            }
        }
    }

    /// Copies one datagram over another.
    pub(crate) fn copy(&mut self, from: usize, to: usize) {
        self.heads[to] = self.heads[from];
        let start = from * stride(self.size);
        let end = start + self.heads[from].length.min(self.size);
        self.bytes.copy_within(start..end, to * stride(self.size));
    }
}

/// Iterates over heads with their buffers. A buffer is at least a byte long.
pub(crate) type Iter<'a> =
    std::iter::Zip<std::slice::Iter<'a, Head>, std::slice::ChunksExact<'a, u8>>;

/// Iterates over heads with their buffers, mutably.
pub(crate) type IterMut<'a> =
    std::iter::Zip<std::slice::IterMut<'a, Head>, std::slice::ChunksExactMut<'a, u8>>;

/// Distance between the starts of two buffers. Empty buffers take a byte, so that `chunks` can
/// separate them.
const fn stride(size: usize) -> usize {
    if size == 0 { 1 } else { size }
}

impl fmt::Debug for Rooms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rooms")
            .field("count", &self.count())
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}
