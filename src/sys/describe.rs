//! Names descriptors as users do: by the type that they have made, and by its addresses.
//!
//! The kernel is asked when a report is made, so that a descriptor carries no name.

use crate::label::{Label, Role};

#[cfg(unix)]
pub(crate) use unix::describe;
#[cfg(windows)]
pub(crate) use windows::describe;

/// The name of a descriptor that the kernel does not describe.
fn unknown(role: Role) -> Label {
    Label::new(role.name().unwrap_or("I/O source"), "")
}

/// Joins the addresses of a connected socket.
fn joined(local: &str, role: Role, remote: &str) -> String {
    let parts = [local, role.arrow(), remote];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

#[cfg(unix)]
mod unix {
    use std::ffi::OsStr;
    use std::net::SocketAddr;
    use std::os::fd::{AsRawFd, BorrowedFd};
    use std::os::unix::ffi::OsStrExt;

    use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
    use rustix::net::{
        AddressFamily, SocketAddrAny, SocketAddrUnix, SocketType, getpeername, getsockname, sockopt,
    };

    use super::{Label, Role, joined, unknown};

    /// Names an open descriptor. `peer` is the address that it is being connected to, if so.
    pub(crate) fn describe(
        descriptor: BorrowedFd<'_>,
        role: Role,
        peer: Option<SocketAddr>,
    ) -> Label {
        let Ok(status) = fstat(descriptor) else {
            return unknown(role);
        };
        let name = |name| role.name().unwrap_or(name);
        match FileType::from_raw_mode(status.st_mode) {
            FileType::Socket => socket(descriptor, role, peer),
            FileType::Fifo if role.name().is_some() => Label::new(name("pipe"), ""),
            FileType::Fifo => {
                let end = match fcntl_getfl(descriptor).map(|flags| flags & OFlags::RWMODE) {
                    Ok(OFlags::WRONLY) => "write end",
                    Ok(OFlags::RDONLY) => "read end",
                    _ => "both ends",
                };
                Label::new("pipe", format!("{}, {end}", status.st_ino))
            }
            FileType::CharacterDevice => match rustix::termios::ttyname(descriptor, Vec::new()) {
                Ok(path) => Label::new(name("terminal"), text(path.as_bytes())),
                Err(_) => Label::new(name("device"), path_of(descriptor)),
            },
            FileType::RegularFile => Label::new(name("file"), path_of(descriptor)),
            _ => anonymous(&path_of(descriptor)).unwrap_or_else(|| unknown(role)),
        }
    }

    fn socket(descriptor: BorrowedFd<'_>, role: Role, connects: Option<SocketAddr>) -> Label {
        let (Ok(kind), Ok(local)) = (sockopt::socket_type(descriptor), getsockname(descriptor))
        else {
            return unknown(role);
        };
        let is_unix = local.address_family() == AddressFamily::UNIX;
        let remote = getpeername(descriptor).ok().flatten();
        let is_listener = kind == SocketType::STREAM && listens(descriptor, remote.is_some());
        let what = match (is_unix, kind) {
            (true, _) if is_listener => "UnixListener",
            (true, SocketType::DGRAM) => "UnixDatagram",
            (true, _) => "UnixStream",
            (false, _) if is_listener => "TcpListener",
            (false, SocketType::STREAM) => "TcpStream",
            (false, SocketType::DGRAM) => "UdpSocket",
            (false, _) => "socket",
        };
        let what = role.name().unwrap_or(what);
        let name = address(&local);
        if is_listener {
            return Label::new(what, name);
        }
        let which = match (remote, connects) {
            (Some(remote), _) if is_unix => {
                let remote_name = address(&remote);
                let role = match role {
                    Role::Unknown if !name.is_empty() => Role::Accepted,
                    Role::Unknown if !remote_name.is_empty() => Role::Connected,
                    known => known,
                };
                joined(&name, role, &or_process(remote_name, descriptor))
            }
            (Some(remote), _) => joined(&name, role, &address(&remote)),
            (None, Some(connects)) => format!("{name} → {connects}, connecting"),
            (None, None) => name,
        };
        Label::new(what, which)
    }

    /// Returns the name of a Unix peer, or its process if it has no name.
    fn or_process(name: String, descriptor: BorrowedFd<'_>) -> String {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let (true, Ok(peer)) = (name.is_empty(), sockopt::socket_peercred(descriptor)) {
            let id = peer.pid.as_raw_nonzero().get();
            return if id.unsigned_abs() == std::process::id() {
                "this process".to_owned()
            } else {
                format!("process {id}")
            };
        }
        let _ = descriptor;
        name
    }

    #[cfg(not(target_vendor = "apple"))]
    fn listens(descriptor: BorrowedFd<'_>, _: bool) -> bool {
        sockopt::socket_acceptconn(descriptor) == Ok(true)
    }

    /// The platform does not tell. A stream socket that the loop watches listens, or has a peer.
    #[cfg(target_vendor = "apple")]
    fn listens(_: BorrowedFd<'_>, has_peer: bool) -> bool {
        !has_peer
    }

    fn address(any: &SocketAddrAny) -> String {
        if let Ok(address) = SocketAddr::try_from(any.clone()) {
            return address.to_string();
        }
        let Ok(unix) = SocketAddrUnix::try_from(any.clone()) else {
            return String::new();
        };
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(name) = unix.abstract_name().filter(|name| !name.is_empty()) {
            return format!("@{}", text(name));
        }
        unix.path()
            .map(|path| text(path.to_bytes()))
            .unwrap_or_default()
    }

    fn text(bytes: &[u8]) -> String {
        OsStr::from_bytes(bytes).to_string_lossy().into_owned()
    }

    /// Returns the path of a descriptor, where the kernel tells it.
    fn path_of(descriptor: BorrowedFd<'_>) -> String {
        let link = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
        let path = std::fs::read_link(link).map(|path| path.to_string_lossy().into_owned());
        path.unwrap_or_default()
    }

    /// Names a kernel object without a file, which is linked to `anon_inode:[eventfd]`.
    fn anonymous(path: &str) -> Option<Label> {
        let kind = path.strip_prefix("anon_inode:")?;
        let kind = kind.trim_start_matches('[').trim_end_matches(']');
        const KNOWN: [&str; 7] = [
            "eventfd",
            "eventpoll",
            "inotify",
            "io_uring",
            "pidfd",
            "signalfd",
            "timerfd",
        ];
        let what = KNOWN.into_iter().find(|known| *known == kind)?;
        Some(Label::new(what, ""))
    }
}

#[cfg(windows)]
mod windows {
    use std::net::SocketAddr;
    use std::os::windows::io::BorrowedSocket;

    use super::{Label, Role, joined, unknown};

    /// Names an open socket. `peer` is the address that it is being connected to, if so.
    #[cfg(feature = "net")]
    pub(crate) fn describe(
        socket: BorrowedSocket<'_>,
        role: Role,
        peer: Option<SocketAddr>,
    ) -> Label {
        let socket = socket2::SockRef::from(&socket);
        let local = socket.local_addr().ok().and_then(|name| name.as_socket());
        let Some(local) = local.map(|name| name.to_string()) else {
            return unknown(role);
        };
        let remote = socket.peer_addr().ok().and_then(|name| name.as_socket());
        let is_stream = socket
            .r#type()
            .is_ok_and(|kind| kind == socket2::Type::STREAM);
        match (is_stream, remote, peer) {
            (true, Some(remote), _) => {
                Label::new("TcpStream", joined(&local, role, &remote.to_string()))
            }
            (true, None, Some(peer)) => {
                Label::new("TcpStream", format!("{local} → {peer}, connecting"))
            }
            (true, None, None) => Label::new("TcpListener", local),
            (false, _, _) => Label::new("UdpSocket", local),
        }
    }

    /// Names an open socket, of which nothing is known.
    #[cfg(not(feature = "net"))]
    pub(crate) fn describe(_: BorrowedSocket<'_>, role: Role, _: Option<SocketAddr>) -> Label {
        let _ = joined;
        unknown(role)
    }
}
