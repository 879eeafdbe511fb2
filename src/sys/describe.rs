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
pub(crate) fn joined(local: &str, role: Role, remote: &str) -> String {
    let parts = [local, role.arrow(), remote];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

#[cfg(unix)]
mod unix {
    use std::ffi::OsStr;
    use std::io::IsTerminal;
    use std::net::SocketAddr;
    use std::os::fd::{AsRawFd, BorrowedFd};
    use std::os::unix::ffi::OsStrExt;

    use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
    use socket2::{SockAddr, SockRef, Type};

    use super::{Label, Role, joined, unknown};
    #[cfg(feature = "net")]
    use crate::sys::unix_socket::peer_credentials;

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
            FileType::CharacterDevice if descriptor.is_terminal() => {
                Label::new(name("terminal"), terminal_name(descriptor))
            }
            FileType::CharacterDevice => Label::new(name("device"), path_of(descriptor)),
            FileType::RegularFile => Label::new(name("file"), path_of(descriptor)),
            _ => anonymous(&path_of(descriptor)).unwrap_or_else(|| unknown(role)),
        }
    }

    fn socket(descriptor: BorrowedFd<'_>, role: Role, connects: Option<SocketAddr>) -> Label {
        let view = SockRef::from(&descriptor);
        let (Ok(kind), Ok(local)) = (view.r#type(), view.local_addr()) else {
            return unknown(role);
        };
        let is_unix = local.is_unix();
        let remote = view.peer_addr().ok();
        let is_listener = kind == Type::STREAM && listens(&view, remote.is_some());
        let what = match (is_unix, kind) {
            (true, _) if is_listener => "UnixListener",
            (true, Type::DGRAM) => "UnixDatagram",
            (true, _) => "UnixStream",
            (false, _) if is_listener => "TcpListener",
            (false, Type::STREAM) => "TcpStream",
            (false, Type::DGRAM) => "UdpSocket",
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
        #[cfg(feature = "net")]
        if let (true, Ok((id, ..))) = (name.is_empty(), peer_credentials(descriptor)) {
            return if id == std::process::id() {
                "this process".to_owned()
            } else {
                format!("process {id}")
            };
        }
        let _ = descriptor;
        name
    }

    #[cfg(any(target_os = "android", target_os = "freebsd", target_os = "linux"))]
    fn listens(socket: &SockRef<'_>, _: bool) -> bool {
        socket.is_listener().is_ok_and(|is_listener| is_listener)
    }

    /// The platform does not report it. A watched stream socket listens, or has a peer.
    #[cfg(not(any(target_os = "android", target_os = "freebsd", target_os = "linux")))]
    fn listens(_: &SockRef<'_>, has_peer: bool) -> bool {
        !has_peer
    }

    fn address(any: &SockAddr) -> String {
        if let Some(address) = any.as_socket() {
            return address.to_string();
        }
        if let Some(name) = any.as_abstract_namespace().filter(|name| !name.is_empty()) {
            return format!("@{}", text(name));
        }
        let path = any.as_pathname();
        path.map(|path| path.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    fn text(bytes: &[u8]) -> String {
        OsStr::from_bytes(bytes).to_string_lossy().into_owned()
    }

    fn terminal_name(terminal: BorrowedFd<'_>) -> String {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return path_of(terminal);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        rustix::termios::ttyname(terminal, Vec::new())
            .map(|name| text(name.as_bytes()))
            .unwrap_or_default()
    }

    /// Returns the path of a descriptor, where the kernel reports it.
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
            (false, Some(remote), _) => {
                Label::new("UdpSocket", joined(&local, role, &remote.to_string()))
            }
            (false, None, _) => Label::new("UdpSocket", local),
        }
    }

    /// Names an open socket, of which nothing is known.
    #[cfg(not(feature = "net"))]
    pub(crate) fn describe(_: BorrowedSocket<'_>, role: Role, _: Option<SocketAddr>) -> Label {
        let _ = joined;
        unknown(role)
    }
}
