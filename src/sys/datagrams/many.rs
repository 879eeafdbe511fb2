//! Linux: `recvmmsg` and `sendmmsg`.
// Marks: `cold`, since few sockets send segments.

use std::fmt;
use std::io;
use std::mem::{replace, zeroed};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::ops::Range;
use std::os::fd::AsRawFd;

use super::{Head, Rooms, stride};

/// An address in the kernel's form. It is copied unchanged, and decoded only on request.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    raw: Raw,
    /// Bytes in use; 0: there is no address.
    used: libc::socklen_t,
}

/// The first field, and with it the family, is always initialised. The others are if family and
/// length say so.
#[repr(C)]
#[derive(Clone, Copy)]
union Raw {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

impl Address {
    pub(crate) const NONE: Self = Self {
        // SAFETY: all zero is an address, of no family.
        raw: unsafe { zeroed() },
        used: 0,
    };

    const ROOM: libc::socklen_t = size_of::<Raw>() as _;

    #[inline]
    pub(crate) fn new(address: SocketAddr) -> Self {
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
                Self {
                    raw: Raw { v4 },
                    used: size_of_val(&v4) as _,
                }
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
                Self {
                    raw: Raw { v6 },
                    used: size_of_val(&v6) as _,
                }
            }
        }
    }

    /// Returns the address; `None` if there is none, or if it is not an IP address.
    #[inline]
    pub(crate) fn get(&self) -> Option<SocketAddr> {
        // SAFETY: this field is initialised whatever the union holds, and all bit patterns are
        // valid for it.
        let v4 = unsafe { &self.raw.v4 };
        match libc::c_int::from(v4.sin_family) {
            libc::AF_INET if self.used as usize >= size_of_val(v4) => {
                let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
                let port = u16::from_be(v4.sin_port);
                Some(SocketAddrV4::new(ip, port).into())
            }
            libc::AF_INET6 if self.used as usize >= size_of::<libc::sockaddr_in6>() => {
                // SAFETY: with this family and length, `new` or the kernel has written the whole
                // field.
                let v6 = unsafe { &self.raw.v6 };
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                let port = u16::from_be(v6.sin6_port);
                let address = SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id);
                Some(address.into())
            }
            _ => None,
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// The message headers for both calls, built once. Those for receiving are always ready; sending
/// sets their lengths.
pub(super) struct Calls {
    incoming: Headers,
    outgoing: Headers,
    /// Whether the kernel has refused to cut segments.
    sends_each: bool,
}

/// Headers that point to the vectors, heads, buffers and controls of their datagrams, none of which
/// ever moves.
struct Headers {
    vectors: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
    controls: Vec<Control>,
}

/// Room for control messages: for the size of segments, and for some that the options of a socket
/// may bring before it. The alignment is that of a header.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 96]);

impl Control {
    const ROOM: usize = size_of::<Self>();
}

// SAFETY: the pointers point to memory that the same `Rooms` own. Only the kernel dereferences
// them, in `receive` and `send`, which borrow the rooms mutably.
unsafe impl Send for Headers {}
// SAFETY: no pointer is dereferenced through a shared reference.
unsafe impl Sync for Headers {}

impl Calls {
    /// Builds headers for buffers of `size` bytes, which must outlive them and must not move.
    #[inline]
    pub(super) fn new(heads: &mut Vec<Head>, bytes: &mut Vec<u8>, size: usize) -> Self {
        assert_eq!(heads.len() * stride(size), bytes.len());
        Self {
            incoming: Headers::new(heads, bytes, size),
            outgoing: Headers::new(heads, bytes, size),
            sends_each: false,
        }
    }
}

impl Headers {
    #[inline]
    fn new(heads: &mut Vec<Head>, bytes: &mut Vec<u8>, size: usize) -> Self {
        let (count, heads, bytes) = (heads.len(), heads.as_mut_ptr(), bytes.as_mut_ptr());
        let mut vectors: Vec<libc::iovec> = (0..count)
            .map(|index| libc::iovec {
                iov_base: bytes.wrapping_add(index * stride(size)).cast(),
                iov_len: size,
            })
            .collect();
        let vector = vectors.as_mut_ptr();
        let mut controls = vec![Control([0; Control::ROOM]); count];
        let control = controls.as_mut_ptr();
        let message = |index| {
            // SAFETY: the caller's list has so many heads. All zero is a valid empty header, which
            // may have fields beside those that are set here.
            let (name, mut message): (_, libc::mmsghdr) =
                unsafe { (&raw mut (*heads.add(index)).address.raw, zeroed()) };
            message.msg_hdr.msg_name = name.cast();
            message.msg_hdr.msg_namelen = Address::ROOM;
            message.msg_hdr.msg_iov = vector.wrapping_add(index);
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.wrapping_add(index).cast();
            message.msg_hdr.msg_controllen = Control::ROOM as _;
            message
        };
        let messages = (0..count).map(message).collect();
        Self {
            vectors,
            messages,
            controls,
        }
    }
}

impl Rooms {
    /// Receives queued datagrams into the buffers, beginning with the first.
    pub(crate) fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        let messages = &mut self.calls.incoming.messages;
        // SAFETY: the headers point to addresses and rooms of the lengths they say, which are ours
        // alone now.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                messages.len() as _,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        for (message, head) in messages[..received].iter_mut().zip(&mut self.heads) {
            head.length = message.msg_len as usize;
            head.truncated = message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            let used = replace(&mut message.msg_hdr.msg_namelen, Address::ROOM);
            // An address of another family can be longer; the kernel has truncated it.
            head.address.used = if used <= Address::ROOM { used } else { 0 };
            head.segment = match message.msg_hdr.msg_controllen {
                0 => 0,
                _ => segment_of(&message.msg_hdr),
            };
            message.msg_hdr.msg_controllen = Control::ROOM as _;
        }
        Ok(received)
    }

    /// Sends as many of these datagrams as the kernel accepts. An error concerns the first.
    #[inline]
    pub(crate) fn send(&mut self, socket: &UdpSocket, range: Range<usize>) -> io::Result<usize> {
        let Calls {
            outgoing,
            sends_each,
            ..
        } = &mut self.calls;
        let first = range.start;
        let Headers {
            vectors,
            messages,
            controls,
        } = outgoing;
        let messages = &mut messages[range.clone()];
        let mut count = 0;
        for (index, message) in range.zip(&mut *messages) {
            let head = &self.heads[index];
            message.msg_hdr.msg_namelen = head.address.used;
            vectors[index].iov_len = head.length.min(self.size);
            message.msg_hdr.msg_controllen = 0;
            if head.segment_size() < head.length {
                if *sends_each {
                    // It has to wait until those before it are sent.
                    break;
                }
                set_segment(&mut message.msg_hdr, &mut controls[index], head.segment);
            }
            count += 1;
        }
        if count == 0 {
            return self.send_segments(socket, first);
        }
        // SAFETY: the headers point to addresses, controls and rooms, of which no more is used than
        // there is.
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                count,
                (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
            )
        };
        let error = match usize::try_from(sent) {
            Ok(sent) => return Ok(sent),
            Err(_) => io::Error::last_os_error(),
        };
        if self.heads[first].segment_size() == self.heads[first].length {
            return Err(error);
        }
        match error.raw_os_error() {
            // A device without checksums, or a kernel before 4.18.
            Some(libc::EIO | libc::ENOPROTOOPT | libc::EOPNOTSUPP) => {
                self.calls.sends_each = true;
                self.send_segments(socket, first)
            }
            // Segments that do not fit into a packet, or too many of them.
            Some(libc::EINVAL | libc::EMSGSIZE) => self.send_segments(socket, first),
            _ => Err(error),
        }
    }

    /// Sends the segments of one buffer one by one.
    #[cold]
    fn send_segments(&mut self, socket: &UdpSocket, index: usize) -> io::Result<usize> {
        self.send_each(index, |bytes, address| match address.get() {
            Some(address) => socket.send_to(bytes, address),
            None => socket.send(bytes),
        })?;
        Ok(1)
    }
}

/// Asks the kernel to cut a message.
#[cold]
fn set_segment(message: &mut libc::msghdr, control: &mut Control, segment: u16) {
    const LENGTH: u32 = size_of::<u16>() as u32;
    // SAFETY: the control has room for a header and two bytes, and the alignment of a header. All
    // zero is a valid header.
    unsafe {
        *control = Control([0; Control::ROOM]);
        let header: *mut libc::cmsghdr = (&raw mut *control).cast();
        (*header).cmsg_level = libc::SOL_UDP;
        (*header).cmsg_type = libc::UDP_SEGMENT;
        (*header).cmsg_len = libc::CMSG_LEN(LENGTH) as _;
        libc::CMSG_DATA(header)
            .cast::<u16>()
            .write_unaligned(segment);
        message.msg_controllen = libc::CMSG_SPACE(LENGTH) as _;
    }
}

/// Returns the length of the datagrams that the kernel has joined to a message; 0: there is one.
#[cold]
fn segment_of(message: &libc::msghdr) -> u16 {
    // SAFETY: the kernel has written as many bytes of control messages as the header states. Each
    // of them is read as far as its own header states.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(one) = header.as_ref() {
            let is_size = one.cmsg_level == libc::SOL_UDP && one.cmsg_type == libc::UDP_GRO;
            let needed = libc::CMSG_LEN(size_of::<libc::c_int>() as u32);
            if is_size && one.cmsg_len >= needed as _ {
                let size = libc::CMSG_DATA(header)
                    .cast::<libc::c_int>()
                    .read_unaligned();
                return u16::try_from(size).unwrap_or(0);
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    0
}

/// Sets whether the kernel may join datagrams of one sender to one message.
pub(crate) fn set_gro(socket: &UdpSocket, on: bool) -> io::Result<()> {
    let on = libc::c_int::from(on);
    // SAFETY: the option is an integer.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_GRO,
            (&raw const on).cast(),
            size_of_val(&on) as _,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(with_unsupported(io::Error::last_os_error())),
    }
}

/// Whether the kernel may join datagrams.
pub(crate) fn gro(socket: &UdpSocket) -> io::Result<bool> {
    let (mut on, mut length) = (0 as libc::c_int, size_of::<libc::c_int>() as _);
    // SAFETY: the kernel writes an integer.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_GRO,
            (&raw mut on).cast(),
            &raw mut length,
        )
    };
    match result {
        0 => Ok(on != 0),
        _ => Err(with_unsupported(io::Error::last_os_error())),
    }
}

/// A kernel before 5.0 does not know the option.
fn with_unsupported(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ENOPROTOOPT) => io::ErrorKind::Unsupported.into(),
        _ => error,
    }
}
