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
    /// One buffer after the other. A `Vec`, whose memory stays where it is when it is moved, and never grows.
    buffer: Vec<u8>,
    /// The length of each.
    size: usize,
    slots: many::Slots,
    /// How many were received last.
    length: usize,
}

/// What is known of a datagram beside its bytes.
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
        let mut buffer = vec![0; bytes];
        let slots = many::Slots::new(&mut buffer, count.min(MOST_AT_ONCE), size);
        Self {
            buffer,
            size,
            slots,
            length: 0,
        }
    }

    /// How many datagrams were received last.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether none was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// How many datagrams there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buffer.len().checked_div(self.size).unwrap_or(1)
    }

    /// The datagrams that were received last, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Datagram<'_>> {
        (0..self.length).map(|index| {
            let received = self.slots.received(index);
            Datagram {
                bytes: &self.buffer[index * self.size..][..received.length],
                from: received.from,
                truncated: received.truncated,
            }
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
    use std::io;
    use std::mem::{MaybeUninit, zeroed};
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
    use std::os::fd::AsRawFd;

    /// An address as the system has it. Every pattern of bits is one, of some family.
    #[repr(C)]
    #[derive(Clone, Copy)]
    union Address {
        v4: libc::sockaddr_in,
        v6: libc::sockaddr_in6,
    }

    impl Address {
        const ROOM: libc::socklen_t = size_of::<Self>() as _;

        /// The address, and how much of it is used.
        #[inline]
        fn new(address: SocketAddr) -> (Self, libc::socklen_t) {
            match address {
                SocketAddr::V4(address) => {
                    let v4 = libc::sockaddr_in {
                        sin_family: libc::AF_INET as _,
                        sin_port: address.port().to_be(),
                        sin_addr: libc::in_addr {
                            s_addr: u32::from_ne_bytes(address.ip().octets()),
                        },
                        sin_zero: [0; 8],
                    };
                    (Self { v4 }, size_of_val(&v4) as _)
                }
                SocketAddr::V6(address) => {
                    let v6 = libc::sockaddr_in6 {
                        sin6_family: libc::AF_INET6 as _,
                        sin6_port: address.port().to_be(),
                        sin6_flowinfo: address.flowinfo(),
                        sin6_addr: libc::in6_addr {
                            s6_addr: address.ip().octets(),
                        },
                        sin6_scope_id: address.scope_id(),
                    };
                    (Self { v6 }, size_of_val(&v6) as _)
                }
            }
        }

        /// `None`: there is none, or it is of another family.
        #[inline]
        fn get(&self, used: libc::socklen_t) -> Option<SocketAddr> {
            // SAFETY: all of the union was initialised, and its fields are numbers, for which any bits will do.
            let (v4, v6) = unsafe { (&self.v4, &self.v6) };
            match libc::c_int::from(v4.sin_family) {
                libc::AF_INET if used as usize >= size_of_val(v4) => {
                    let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
                    let port = u16::from_be(v4.sin_port);
                    Some(SocketAddrV4::new(ip, port).into())
                }
                libc::AF_INET6 if used as usize >= size_of_val(v6) => {
                    let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                    let port = u16::from_be(v6.sin6_port);
                    let address = SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id);
                    Some(address.into())
                }
                _ => None,
            }
        }
    }

    /// What `recvmmsg` writes to, made once. The headers point into the other lists and into the buffer of the batch, none
    /// of which ever moves or grows.
    pub(super) struct Slots {
        addresses: Vec<Address>,
        _buffers: Vec<libc::iovec>,
        messages: Vec<libc::mmsghdr>,
    }

    // SAFETY: the pointers lead to memory that the batch owns, and are followed by the system alone, in `receive`, which has
    // the batch for itself.
    unsafe impl Send for Slots {}
    // SAFETY: the same; nothing is changed through a shared reference.
    unsafe impl Sync for Slots {}

    impl Slots {
        /// Slots for `count` datagrams of `size` bytes in `buffer`, which holds as much and must live as long.
        pub(super) fn new(buffer: &mut Vec<u8>, count: usize, size: usize) -> Self {
            assert!(count * size <= buffer.len());
            // SAFETY: all zero is a valid address, of no family.
            let mut addresses: Vec<Address> = vec![unsafe { zeroed() }; count];
            let start = buffer.as_mut_ptr();
            let mut buffers: Vec<libc::iovec> = (0..count)
                .map(|index| libc::iovec {
                    iov_base: start.wrapping_add(index * size).cast(),
                    iov_len: size,
                })
                .collect();
            let (names, vectors) = (addresses.as_mut_ptr(), buffers.as_mut_ptr());
            let messages = (0..count)
                .map(|index| {
                    message(
                        names.wrapping_add(index),
                        Address::ROOM,
                        vectors.wrapping_add(index),
                    )
                })
                .collect();
            Self {
                addresses,
                _buffers: buffers,
                messages,
            }
        }

        #[inline]
        pub(super) fn received(&self, index: usize) -> Received {
            let message = &self.messages[index];
            Received {
                length: message.msg_len as usize,
                from: self.addresses[index].get(message.msg_hdr.msg_namelen),
                truncated: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            }
        }
    }

    /// The header of a datagram with one buffer.
    #[inline]
    fn message(
        name: *mut Address,
        name_length: libc::socklen_t,
        buffer: *mut libc::iovec,
    ) -> libc::mmsghdr {
        // SAFETY: all zero is a valid empty message header. It may have fields beside those that are set here.
        let mut message: libc::mmsghdr = unsafe { zeroed() };
        message.msg_hdr.msg_name = name.cast();
        message.msg_hdr.msg_namelen = name_length;
        message.msg_hdr.msg_iov = buffer;
        message.msg_hdr.msg_iovlen = 1;
        message
    }

    impl Batch {
        pub(crate) fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
            let messages = &mut self.slots.messages;
            for used in &mut messages[..self.length] {
                used.msg_hdr.msg_namelen = Address::ROOM;
            }
            self.length = 0;
            // SAFETY: the headers point to addresses and buffers of the lengths they say, which this batch owns and nobody
            // else uses now.
            let received = unsafe {
                libc::recvmmsg(
                    socket.as_raw_fd(),
                    messages.as_mut_ptr(),
                    messages.len() as _,
                    libc::MSG_DONTWAIT as _,
                    std::ptr::null_mut(),
                )
            };
            self.length = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
            Ok(self.length)
        }
    }

    pub(crate) fn send(socket: &UdpSocket, datagrams: &[(&[u8], SocketAddr)]) -> io::Result<usize> {
        let datagrams = &datagrams[..datagrams.len().min(MOST_AT_ONCE)];
        let mut addresses = [const { MaybeUninit::<Address>::uninit() }; MOST_AT_ONCE];
        let mut buffers = [const { MaybeUninit::<libc::iovec>::uninit() }; MOST_AT_ONCE];
        let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; MOST_AT_ONCE];
        let slots = addresses.iter_mut().zip(&mut buffers).zip(&mut messages);
        for ((bytes, to), ((name, buffer), header)) in datagrams.iter().zip(slots) {
            let (address, length) = Address::new(*to);
            let name = name.write(address);
            let buffer = buffer.write(libc::iovec {
                // The system only reads from it.
                iov_base: bytes.as_ptr().cast_mut().cast(),
                iov_len: bytes.len(),
            });
            header.write(message(name, length, buffer));
        }
        // SAFETY: so many headers were written; they point to addresses and buffers that outlive the call, each valid for
        // its length.
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr().cast(),
                datagrams.len() as _,
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

    /// Length and sender of each datagram.
    pub(super) struct Slots(Vec<(usize, SocketAddr)>);

    impl Slots {
        pub(super) fn new(_: &mut Vec<u8>, count: usize, _: usize) -> Self {
            Self(Vec::with_capacity(count))
        }

        pub(super) fn received(&self, index: usize) -> Received {
            let (length, from) = self.0[index];
            Received {
                length,
                from: Some(from),
                truncated: false,
            }
        }
    }

    impl Batch {
        pub(crate) fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
            self.slots.0.clear();
            self.length = 0;
            for index in 0..self.capacity().min(MOST_AT_ONCE) {
                let buffer = &mut self.buffer[index * self.size..][..self.size];
                match socket.recv_from(buffer) {
                    Ok(received) => self.slots.0.push(received),
                    Err(error) if index == 0 => return Err(error),
                    Err(_) => break,
                }
            }
            self.length = self.slots.0.len();
            Ok(self.length)
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
