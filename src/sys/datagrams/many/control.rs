//! Linux: what the kernel passes beside the bytes of a datagram, and the options for it.
// Marks: `cold`, since few sockets ask for it.

use std::io;
use std::mem::{offset_of, size_of, size_of_val};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsRawFd;

use crate::sys::control;
use crate::sys::datagrams::{Head, Setting, Tos};

/// Where the local address is in the data of its message.
const FROM: usize = offset_of!(libc::in_pktinfo, ipi_spec_dst);
const FROM_V6: usize = offset_of!(libc::in6_pktinfo, ipi6_addr);

/// Room for the control messages of a datagram: all that are read or written here, and some that
/// other options of a socket may bring before them. The alignment is that of a header.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(super) struct Control([u8; 160]);

impl Head {
    /// Whether nothing is asked of the kernel but to send the bytes.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        !matches!(self.tos, Tos::Set(_)) && self.local.is_none()
    }
}

impl Control {
    pub(super) const ROOM: usize = size_of::<Self>();
    pub(super) const EMPTY: Self = Self([0; Self::ROOM]);

    /// Writes what a datagram asks of the kernel, and returns the length. A segment of 0 asks for
    /// none.
    pub(super) fn write(&mut self, head: &Head, segment: u16) -> usize {
        let mut used = 0;
        if segment > 0 {
            self.put(
                &mut used,
                (libc::SOL_UDP, libc::UDP_SEGMENT),
                &segment.to_ne_bytes(),
            );
        }
        if let Tos::Set(tos) = head.tos {
            // The kernel takes the one of its protocol: a socket of IPv6 may send IPv4, too.
            let tos = libc::c_int::from(tos).to_ne_bytes();
            self.put(&mut used, (libc::IPPROTO_IP, libc::IP_TOS), &tos);
            self.put(&mut used, (libc::IPPROTO_IPV6, libc::IPV6_TCLASS), &tos);
        }
        match head.local {
            Some(IpAddr::V4(ip)) => {
                let mut from = [0; size_of::<libc::in_pktinfo>()];
                from[FROM..][..4].copy_from_slice(&ip.octets());
                self.put(&mut used, (libc::IPPROTO_IP, libc::IP_PKTINFO), &from);
            }
            Some(IpAddr::V6(ip)) => {
                let mut from = [0; size_of::<libc::in6_pktinfo>()];
                from[FROM_V6..][..16].copy_from_slice(&ip.octets());
                self.put(&mut used, (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO), &from);
            }
            None => {}
        }
        used
    }

    /// The written part of the room.
    pub(super) fn first(&self, used: usize) -> &[u8] {
        &self.0[..used.min(Self::ROOM)]
    }

    /// Adds a message behind the `used` bytes.
    fn put(&mut self, used: &mut usize, name: Name, value: &[u8]) {
        let room = &mut self.0[*used..];
        control::write_header(room, name, value.len());
        room[control::HEADER..][..value.len()].copy_from_slice(value);
        *used += control::space_for(value.len());
    }
}

/// Writes into `head` what the kernel has reported beside a datagram.
#[cold]
pub(super) fn read(control: &[u8], head: &mut Head) {
    control::each(control, |level, kind, data| match (level, kind) {
        (libc::SOL_UDP, libc::UDP_GRO) => {
            let size = number(data).and_then(|size| size.try_into().ok());
            head.segment = size.unwrap_or(0);
        }
        (libc::IPPROTO_IP, libc::IP_TOS) => {
            head.tos = data.first().copied().map_or(Tos::None, Tos::Received);
        }
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
            let class = number(data).and_then(|class| class.try_into().ok());
            head.tos = class.map_or(Tos::None, Tos::Received);
        }
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
            let to: Option<&[u8; 4]> = data.get(FROM..).and_then(<[u8]>::first_chunk);
            head.local = to.map(|ip| Ipv4Addr::from(*ip).into());
        }
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
            let to: Option<&[u8; 16]> = data.get(FROM_V6..).and_then(<[u8]>::first_chunk);
            let ip = to.map(|ip| Ipv6Addr::from(*ip));
            // A group is no address to send from.
            head.local = ip.filter(|ip| !ip.is_multicast()).map(IpAddr::V6);
        }
        _ => {}
    });
}

fn number(data: &[u8]) -> Option<libc::c_int> {
    data.first_chunk()
        .map(|bytes| libc::c_int::from_ne_bytes(*bytes))
}

type Name = (libc::c_int, libc::c_int);

/// The options of a setting, with the values that switch it off and on. A socket of IPv6 sends and
/// receives IPv4, too.
fn options(
    socket: &UdpSocket,
    setting: Setting,
) -> io::Result<(&'static [Name], [libc::c_int; 2])> {
    const JOINED: &[Name] = &[(libc::SOL_UDP, libc::UDP_GRO)];
    const TOS: &[Name] = &[
        (libc::IPPROTO_IP, libc::IP_RECVTOS),
        (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS),
    ];
    const LOCAL_IP: &[Name] = &[
        (libc::IPPROTO_IP, libc::IP_PKTINFO),
        (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
    ];
    const WHOLE: &[Name] = &[
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER),
        (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER),
    ];
    let is_v6 = socket.local_addr()?.is_ipv6();
    let count = 1 + usize::from(is_v6);
    Ok(match setting {
        Setting::Joined => (JOINED, [0, 1]),
        Setting::Tos => (&TOS[..count], [0, 1]),
        Setting::LocalIp => (&LOCAL_IP[count - 1..count], [0, 1]),
        // The sender finds out what fits, not the kernel.
        Setting::Whole => (
            &WHOLE[..count],
            [libc::IP_PMTUDISC_WANT, libc::IP_PMTUDISC_PROBE],
        ),
    })
}

pub(crate) fn set(socket: &UdpSocket, setting: Setting, on: bool) -> io::Result<()> {
    let (options, values) = options(socket, setting)?;
    let value = values[usize::from(on)];
    for &(level, name) in options {
        // SAFETY: the options are integers.
        let result = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                level,
                name,
                (&raw const value).cast(),
                size_of_val(&value) as _,
            )
        };
        if result != 0 {
            return Err(with_unsupported(io::Error::last_os_error()));
        }
    }
    Ok(())
}

pub(crate) fn is_set(socket: &UdpSocket, setting: Setting) -> io::Result<bool> {
    let (options, [_, on]) = options(socket, setting)?;
    for &(level, name) in options {
        let (mut value, mut length) = (0 as libc::c_int, size_of::<libc::c_int>() as _);
        // SAFETY: the kernel writes an integer.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                level,
                name,
                (&raw mut value).cast(),
                &raw mut length,
            )
        };
        if result != 0 {
            return Err(with_unsupported(io::Error::last_os_error()));
        }
        if value != on {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A kernel that is too old does not know the option.
fn with_unsupported(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ENOPROTOOPT) => io::ErrorKind::Unsupported.into(),
        _ => error,
    }
}
