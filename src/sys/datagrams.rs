//! Rooms for datagrams, filled and emptied with one system call for many, where the system has one.
#![allow(
    unsafe_code,
    reason = "calls that no safe wrapper offers for rooms made once"
)]

use std::fmt;
use std::ops::Range;

// `--cfg phaseloop_portable_poller` has the calls of other systems on Linux too, to test them there.
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

pub(crate) use platform::Address;

/// What is known of a datagram beside its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// Where it came from, or where it is to go.
    pub(crate) address: Address,
    /// How much of its room it takes.
    pub(crate) length: usize,
    /// Whether it was longer than its room, and cut.
    pub(crate) truncated: bool,
}

/// Rooms of one size for so many datagrams, each with a head. Nothing in it moves or grows once it is made.
pub(crate) struct Rooms {
    heads: Vec<Head>,
    /// One room after the other.
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
    /// When that is more bytes than there can be.
    pub(crate) fn new(count: usize, size: usize) -> Self {
        let bytes = count.saturating_mul(stride(size));
        assert!(bytes <= isize::MAX as usize, "no batch is that large");
        let head = Head {
            address: Address::NONE,
            length: 0,
            truncated: false,
        };
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

    /// One datagram's head and room.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> (&mut Head, &mut [u8]) {
        let room = &mut self.bytes[index * stride(self.size)..][..self.size];
        (&mut self.heads[index], room)
    }

    /// Copies a datagram over another.
    pub(crate) fn copy(&mut self, from: usize, to: usize) {
        self.heads[to] = self.heads[from];
        let start = from * stride(self.size);
        let end = start + self.heads[from].length.min(self.size);
        self.bytes.copy_within(start..end, to * stride(self.size));
    }
}

/// Heads with their rooms. The rooms are at least a byte long.
pub(crate) type Iter<'a> =
    std::iter::Zip<std::slice::Iter<'a, Head>, std::slice::ChunksExact<'a, u8>>;

/// The same, to be changed.
pub(crate) type IterMut<'a> =
    std::iter::Zip<std::slice::IterMut<'a, Head>, std::slice::ChunksExactMut<'a, u8>>;

/// From the start of a room to that of the next. Also those that hold nothing take a byte, so that they can be told apart.
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
