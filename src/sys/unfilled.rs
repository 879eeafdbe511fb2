//! Receives into memory that is not initialised: the spare capacity of a `Vec`, and the buffers
//! that hyper and tokio lend to a reader.
#![allow(
    unsafe_code,
    reason = "reports to `Vec`, hyper and tokio how many bytes the kernel has written"
)]

use std::io;
use std::mem::MaybeUninit;
#[cfg(any(feature = "hyper", feature = "tokio-io"))]
use std::task::{Poll, ready};

use socket2::SockRef;

/// A socket that receives into memory which is not initialised.
pub(crate) trait Receive {
    /// Receives once, and returns how many bytes at the start of `memory` it has written; 0 is EOF.
    fn receive(&self, memory: &mut [MaybeUninit<u8>]) -> io::Result<usize>;
}

/// Receives from a socket of the kernel.
#[cfg(unix)]
#[inline]
pub(crate) fn receive(
    socket: &impl std::os::fd::AsFd,
    memory: &mut [MaybeUninit<u8>],
) -> io::Result<usize> {
    SockRef::from(socket).recv(memory)
}

/// Receives from a socket of the kernel.
#[cfg(windows)]
pub(crate) fn receive(
    socket: &impl std::os::windows::io::AsSocket,
    memory: &mut [MaybeUninit<u8>],
) -> io::Result<usize> {
    SockRef::from(socket).recv(memory)
}

#[cfg(unix)]
impl Receive for std::os::unix::net::UnixStream {
    #[inline]
    fn receive(&self, memory: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
        receive(self, memory)
    }
}

/// Lent memory, and how many bytes at its start the kernel has written.
pub(crate) struct Unfilled<'a> {
    memory: &'a mut [MaybeUninit<u8>],
    filled: usize,
}

impl<'a> Unfilled<'a> {
    fn new(memory: &'a mut [MaybeUninit<u8>]) -> Self {
        Self { memory, filled: 0 }
    }

    /// How many bytes one receive may bring.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.memory.len()
    }

    /// Limits what one receive may bring.
    #[inline]
    pub(crate) fn truncate(&mut self, most: usize) {
        let memory = std::mem::take(&mut self.memory);
        self.memory = &mut memory[..most];
    }

    /// Receives once; 0 is EOF. Bytes of an earlier receive are overwritten.
    #[inline]
    pub(crate) fn receive(&mut self, socket: &impl Receive) -> io::Result<usize> {
        self.filled = socket.receive(self.memory)?;
        Ok(self.filled)
    }
}

/// The least room that a receive into a `Vec` gets. A vector without room would look like EOF.
const LEAST_ROOM: usize = 64;

/// Lets `receive` append to `buffer`, which grows if it has no spare capacity.
pub(crate) fn fill_vec(
    buffer: &mut Vec<u8>,
    receive: impl FnOnce(&mut Unfilled<'_>) -> io::Result<usize>,
) -> io::Result<usize> {
    if buffer.len() == buffer.capacity() {
        buffer.reserve(LEAST_ROOM);
    }
    let mut unfilled = Unfilled::new(buffer.spare_capacity_mut());
    receive(&mut unfilled)?;
    let filled = unfilled.filled;
    // SAFETY: `filled` is what `Receive` has returned: it has written that many bytes behind the
    // length, inside of the capacity.
    unsafe { buffer.set_len(buffer.len() + filled) };
    Ok(filled)
}

/// Lets `poll` receive into the memory of a reader of hyper.
#[cfg(feature = "hyper")]
#[inline]
pub(crate) fn fill_hyper(
    cursor: &mut hyper::rt::ReadBufCursor<'_>,
    poll: impl FnOnce(&mut Unfilled<'_>) -> Poll<io::Result<usize>>,
) -> Poll<io::Result<()>> {
    // SAFETY: `Unfilled` lends the memory to a `Receive` only, which writes initialised bytes.
    let mut unfilled = Unfilled::new(unsafe { cursor.as_mut() });
    ready!(poll(&mut unfilled))?;
    let filled = unfilled.filled;
    // SAFETY: `filled` is what `Receive` has returned: it has written that many bytes.
    unsafe { cursor.advance(filled) };
    Poll::Ready(Ok(()))
}

/// Lets `poll` receive into the memory of a reader of tokio's traits.
#[cfg(feature = "tokio-io")]
#[inline]
pub(crate) fn fill_tokio(
    buffer: &mut tokio::io::ReadBuf<'_>,
    poll: impl FnOnce(&mut Unfilled<'_>) -> Poll<io::Result<usize>>,
) -> Poll<io::Result<()>> {
    // SAFETY: `Unfilled` lends the memory to a `Receive` only, which writes initialised bytes.
    let mut unfilled = Unfilled::new(unsafe { buffer.unfilled_mut() });
    ready!(poll(&mut unfilled))?;
    let filled = unfilled.filled;
    // SAFETY: `filled` is what `Receive` has returned: it has written that many bytes.
    unsafe { buffer.assume_init(filled) };
    buffer.advance(filled);
    Poll::Ready(Ok(()))
}
