//! Socket options that some platforms lack.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

/// Returns the keep-alive settings. OpenBSD has them for the whole machine only, and ignores these.
pub(crate) fn keepalive(idle: Duration, interval: Duration, retries: u32) -> TcpKeepalive {
    let settings = TcpKeepalive::new().with_time(idle);
    #[cfg(not(target_os = "openbsd"))]
    let settings = settings.with_interval(interval).with_retries(retries);
    #[cfg(target_os = "openbsd")]
    let _ = (interval, retries);
    settings
}

/// Joins a multicast group for datagrams of one sender.
#[cfg(not(any(target_os = "dragonfly", target_os = "netbsd", target_os = "openbsd")))]
pub(crate) fn join_from(
    socket: &SockRef<'_>,
    sender: &Ipv4Addr,
    group: &Ipv4Addr,
    interface: &Ipv4Addr,
) -> io::Result<()> {
    socket.join_ssm_v4(sender, group, interface)
}

/// Leaves a multicast group that was joined for one sender.
#[cfg(not(any(target_os = "dragonfly", target_os = "netbsd", target_os = "openbsd")))]
pub(crate) fn leave_from(
    socket: &SockRef<'_>,
    sender: &Ipv4Addr,
    group: &Ipv4Addr,
    interface: &Ipv4Addr,
) -> io::Result<()> {
    socket.leave_ssm_v4(sender, group, interface)
}

#[cfg(any(target_os = "dragonfly", target_os = "netbsd", target_os = "openbsd"))]
pub(crate) fn join_from(
    _: &SockRef<'_>,
    _: &Ipv4Addr,
    _: &Ipv4Addr,
    _: &Ipv4Addr,
) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(any(target_os = "dragonfly", target_os = "netbsd", target_os = "openbsd"))]
pub(crate) use join_from as leave_from;

/// Returns the type of service, or the traffic class of IPv6.
pub(crate) fn tos(socket: &SockRef<'_>, is_v6: bool) -> io::Result<u32> {
    if is_v6 {
        traffic_class::get(socket)
    } else {
        socket.tos_v4()
    }
}

/// Sets the type of service, or the traffic class of IPv6.
pub(crate) fn set_tos(socket: &SockRef<'_>, tos: u32, is_v6: bool) -> io::Result<()> {
    if is_v6 {
        traffic_class::set(socket, tos)
    } else {
        socket.set_tos_v4(tos)
    }
}

/// The traffic class of IPv6, where the platform has it.
mod traffic_class {
    use super::{SockRef, io};

    #[cfg(any(
        target_os = "android",
        target_os = "dragonfly",
        target_os = "freebsd",
        target_os = "linux",
        target_os = "macos",
        target_os = "netbsd",
        target_os = "openbsd"
    ))]
    mod platform {
        use super::{SockRef, io};

        pub(crate) fn get(socket: &SockRef<'_>) -> io::Result<u32> {
            socket.tclass_v6()
        }

        pub(crate) fn set(socket: &SockRef<'_>, class: u32) -> io::Result<()> {
            socket.set_tclass_v6(class)
        }
    }

    #[cfg(not(any(
        target_os = "android",
        target_os = "dragonfly",
        target_os = "freebsd",
        target_os = "linux",
        target_os = "macos",
        target_os = "netbsd",
        target_os = "openbsd"
    )))]
    mod platform {
        use super::{SockRef, io};

        pub(crate) fn get(_: &SockRef<'_>) -> io::Result<u32> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn set(_: &SockRef<'_>, _: u32) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    pub(super) use platform::{get, set};
}
