//! Linux: `recvmmsg` and `sendmmsg`.
// Marks: `cold`, since few sockets send segments.

mod control;

use std::fmt;
use std::io::{self, IoSlice};
use std::mem::{replace, zeroed};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::ops::Range;
use std::os::fd::AsRawFd;

use socket2::{MsgHdr, SockAddr, SockRef};

use super::{Head, Rooms, Tos, stride};
use control::Control;
pub(crate) use control::{is_set, set};

/// An address in the kernel's form. It is copied unchanged, and decoded only on request.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    /// The longer form. The port of the shorter one is in the same place, and its address is where
    /// this one has the flow.
    raw: libc::sockaddr_in6,
    /// Bytes in use; 0: there is no address.
    used: libc::socklen_t,
}

const _: () = {
    use libc::{sockaddr_in, sockaddr_in6};
    use std::mem::offset_of;
    assert!(offset_of!(sockaddr_in, sin_family) == offset_of!(sockaddr_in6, sin6_family));
    assert!(offset_of!(sockaddr_in, sin_port) == offset_of!(sockaddr_in6, sin6_port));
    assert!(offset_of!(sockaddr_in, sin_addr) == offset_of!(sockaddr_in6, sin6_flowinfo));
};

impl Address {
    pub(crate) const NONE: Self = Self {
        raw: libc::sockaddr_in6 {
            sin6_family: libc::AF_UNSPEC as _,
            sin6_port: 0,
            sin6_flowinfo: 0,
            sin6_addr: libc::in6_addr { s6_addr: [0; 16] },
            sin6_scope_id: 0,
        },
        used: 0,
    };

    const ROOM: libc::socklen_t = size_of::<libc::sockaddr_in6>() as _;
    const ROOM_V4: libc::socklen_t = size_of::<libc::sockaddr_in>() as _;

    #[inline]
    pub(crate) fn new(address: SocketAddr) -> Self {
        let mut new = Self::NONE;
        new.raw.sin6_port = address.port().to_be();
        match address {
            SocketAddr::V4(address) => {
                new.raw.sin6_family = libc::AF_INET as _;
                new.raw.sin6_flowinfo = u32::from_ne_bytes(address.ip().octets());
                new.used = Self::ROOM_V4;
            }
            SocketAddr::V6(address) => {
                new.raw.sin6_family = libc::AF_INET6 as _;
                new.raw.sin6_flowinfo = address.flowinfo();
                new.raw.sin6_addr.s6_addr = address.ip().octets();
                new.raw.sin6_scope_id = address.scope_id();
                new.used = Self::ROOM;
            }
        }
        new
    }

    /// Returns the address; `None` if there is none, or if it is not an IP address.
    #[inline]
    pub(crate) fn get(&self) -> Option<SocketAddr> {
        let raw = &self.raw;
        let port = u16::from_be(raw.sin6_port);
        match libc::c_int::from(raw.sin6_family) {
            libc::AF_INET if self.used >= Self::ROOM_V4 => {
                let ip = Ipv4Addr::from(raw.sin6_flowinfo.to_ne_bytes());
                Some(SocketAddrV4::new(ip, port).into())
            }
            libc::AF_INET6 if self.used >= Self::ROOM => {
                let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
                let (flow, scope) = (raw.sin6_flowinfo, raw.sin6_scope_id);
                Some(SocketAddrV6::new(ip, port, flow, scope).into())
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
        let mut controls = vec![Control::EMPTY; count];
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
        let Headers {
            messages, controls, ..
        } = &mut self.calls.incoming;
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
        let heads = self.heads.iter_mut().zip(controls);
        for (message, (head, control)) in messages[..received].iter_mut().zip(heads) {
            head.length = message.msg_len as usize;
            head.truncated = message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            let used = replace(&mut message.msg_hdr.msg_namelen, Address::ROOM);
            // An address of another family can be longer; the kernel has truncated it.
            head.address.used = if used <= Address::ROOM { used } else { 0 };
            (head.segment, head.tos, head.local) = (0, Tos::None, None);
            if message.msg_hdr.msg_controllen != 0 {
                #[allow(
                    clippy::unnecessary_cast,
                    reason = "the type of a length differs between platforms"
                )]
                let filled = message.msg_hdr.msg_controllen as usize;
                control::read(control.first(filled), head);
            }
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
            let has_segments = head.segment_size() < head.length;
            if has_segments && *sends_each {
                // It has to wait until those before it are sent.
                break;
            }
            message.msg_hdr.msg_controllen = 0;
            if has_segments || !head.is_plain() {
                let segment = if has_segments { head.segment } else { 0 };
                message.msg_hdr.msg_controllen = controls[index].write(head, segment) as _;
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
        self.send_each(index, |bytes, head| {
            let mut control = Control::EMPTY;
            let used = control.write(head, 0);
            let to = head.address.get().map(SockAddr::from);
            let bytes = [IoSlice::new(bytes)];
            let mut message = MsgHdr::new().with_buffers(&bytes);
            if let Some(to) = &to {
                message = message.with_addr(to);
            }
            if used > 0 {
                message = message.with_control(control.first(used));
            }
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            SockRef::from(socket).sendmsg(&message, flags)
        })?;
        Ok(1)
    }
}
