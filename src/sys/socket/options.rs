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

/// Returns the type of service, or the traffic class of IPv6, which Windows does not have.
pub(crate) fn tos(socket: &SockRef<'_>, is_v6: bool) -> io::Result<u32> {
    match is_v6 {
        #[cfg(unix)]
        true => socket.tclass_v6(),
        #[cfg(not(unix))]
        true => Err(io::ErrorKind::Unsupported.into()),
        false => socket.tos_v4(),
    }
}

/// Sets the type of service, or the traffic class of IPv6; see [`tos`].
pub(crate) fn set_tos(socket: &SockRef<'_>, tos: u32, is_v6: bool) -> io::Result<()> {
    match is_v6 {
        #[cfg(unix)]
        true => socket.set_tclass_v6(tos),
        #[cfg(not(unix))]
        true => Err(io::ErrorKind::Unsupported.into()),
        false => socket.set_tos_v4(tos),
    }
}
