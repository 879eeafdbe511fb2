//! Many datagrams with one system call, where the system has one for it.
#![cfg_attr(
    any(target_os = "linux", target_os = "android"),
    allow(unsafe_code, reason = "system calls that no safe wrapper offers")
)]

use std::io;
use std::net::{SocketAddr, UdpSocket};

/// How many datagrams one call of [`send`] or [`Batch::receive`] takes at most.
const MOST_AT_ONCE: usize = 64;

/// Room for several datagrams, and those that were received last.
pub struct Batch {
    /// One buffer after the other.
    buffer: Box<[u8]>,
    /// The length of each.
    size: usize,
    received: Vec<Received>,
}

#[derive(Clone, Copy)]
struct Received {
    length: usize,
    from: Option<SocketAddr>,
    truncated: bool,
}

/// One datagram of a [`Batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Datagram<'a> {
    /// What was sent.
    pub bytes: &'a [u8],
    /// Who sent it; `None` if the system does not say.
    pub from: Option<SocketAddr>,
    /// Whether it was longer than the room for it, and cut.
    pub truncated: bool,
}

impl Batch {
    /// Room for `count` datagrams, at least one, of up to `size` bytes.
    ///
    /// # Panics
    ///
    /// When that is more bytes than there can be.
    #[must_use]
    pub fn new(count: usize, size: usize) -> Self {
        let count = count.max(1);
        let bytes = count.checked_mul(size).expect("no batch is that large");
        Self {
            buffer: vec![0; bytes].into_boxed_slice(),
            size,
            received: Vec::with_capacity(count),
        }
    }

    /// How many datagrams were received last.
    #[must_use]
    pub fn len(&self) -> usize {
        self.received.len()
    }

    /// Whether none was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.received.is_empty()
    }

    /// How many datagrams there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buffer.len().checked_div(self.size).unwrap_or(1)
    }

    /// The datagrams that were received last, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Datagram<'_>> {
        self.received
            .iter()
            .enumerate()
            .map(|(index, received)| Datagram {
                bytes: &self.buffer[index * self.size..][..received.length],
                from: received.from,
                truncated: received.truncated,
            })
    }
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .finish()
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod many {
    use super::{Batch, MOST_AT_ONCE, Received};
    use socket2::{SockAddr, SockAddrStorage};
    use std::io;
    use std::mem;
    use std::net::{SocketAddr, UdpSocket};
    use std::os::fd::AsRawFd;

    impl Batch {
        pub(crate) fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
            self.received.clear();
            let count = self.capacity().min(MOST_AT_ONCE);
            let mut addresses: Vec<SockAddrStorage> =
                (0..count).map(|_| SockAddrStorage::zeroed()).collect();
            let mut buffers: Vec<libc::iovec> = (0..count)
                .map(|index| libc::iovec {
                    iov_base: self.buffer[index * self.size..].as_mut_ptr().cast(),
                    iov_len: self.size,
                })
                .collect();
            let mut messages: Vec<libc::mmsghdr> = (0..count)
                .map(|index| {
                    // SAFETY: all zero is a valid empty message header.
                    let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
                    message.msg_hdr.msg_name = (&raw mut addresses[index]).cast();
                    message.msg_hdr.msg_namelen = addresses[index].size_of();
                    message.msg_hdr.msg_iov = &raw mut buffers[index];
                    message.msg_hdr.msg_iovlen = 1;
                    message
                })
                .collect();
            // SAFETY: the headers point to `count` addresses and buffers that outlive the call, each valid for its length.
            let received = unsafe {
                libc::recvmmsg(
                    socket.as_raw_fd(),
                    messages.as_mut_ptr(),
                    count as _,
                    libc::MSG_DONTWAIT as _,
                    std::ptr::null_mut(),
                )
            };
            let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
            for (message, address) in messages.iter().zip(addresses).take(received) {
                // SAFETY: the system has written an address of this length, or none.
                let address = unsafe { SockAddr::new(address, message.msg_hdr.msg_namelen) };
                self.received.push(Received {
                    length: message.msg_len as usize,
                    from: address.as_socket(),
                    truncated: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
                });
            }
            Ok(received)
        }
    }

    pub(crate) fn send(socket: &UdpSocket, datagrams: &[(&[u8], SocketAddr)]) -> io::Result<usize> {
        let datagrams = &datagrams[..datagrams.len().min(MOST_AT_ONCE)];
        let addresses: Vec<SockAddr> = datagrams
            .iter()
            .map(|(_, to)| SockAddr::from(*to))
            .collect();
        let mut buffers: Vec<libc::iovec> = datagrams
            .iter()
            .map(|(bytes, _)| libc::iovec {
                // The system only reads from it.
                iov_base: bytes.as_ptr().cast_mut().cast(),
                iov_len: bytes.len(),
            })
            .collect();
        let mut messages: Vec<libc::mmsghdr> = addresses
            .iter()
            .zip(&mut buffers)
            .map(|(address, buffer)| {
                // SAFETY: all zero is a valid empty message header.
                let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
                message.msg_hdr.msg_name = address.as_ptr().cast_mut().cast();
                message.msg_hdr.msg_namelen = address.len();
                message.msg_hdr.msg_iov = buffer;
                message.msg_hdr.msg_iovlen = 1;
                message
            })
            .collect();
        // SAFETY: the headers point to addresses and buffers that outlive the call, each valid for its length.
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                messages.len() as _,
                (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod many {
    use super::{Batch, MOST_AT_ONCE, Received};
    use std::io;
    use std::net::{SocketAddr, UdpSocket};

    impl Batch {
        pub(crate) fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
            self.received.clear();
            for index in 0..self.capacity().min(MOST_AT_ONCE) {
                let buffer = &mut self.buffer[index * self.size..][..self.size];
                match socket.recv_from(buffer) {
                    Ok((length, from)) => self.received.push(Received {
                        length,
                        from: Some(from),
                        truncated: false,
                    }),
                    Err(error) if index == 0 => return Err(error),
                    Err(_) => break,
                }
            }
            Ok(self.received.len())
        }
    }

    pub(crate) fn send(socket: &UdpSocket, datagrams: &[(&[u8], SocketAddr)]) -> io::Result<usize> {
        for (index, (bytes, to)) in datagrams.iter().take(MOST_AT_ONCE).enumerate() {
            match socket.send_to(bytes, *to) {
                Ok(_) => {}
                Err(error) if index == 0 => return Err(error),
                Err(_) => return Ok(index),
            }
        }
        Ok(datagrams.len().min(MOST_AT_ONCE))
    }
}

/// Sends as many of the datagrams as the system takes; the error is that of the first.
pub(crate) fn send(socket: &UdpSocket, datagrams: &[(&[u8], SocketAddr)]) -> io::Result<usize> {
    many::send(socket, datagrams)
}
