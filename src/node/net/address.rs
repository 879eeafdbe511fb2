//! Where a server listens, or a socket connects to.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// An address and a port, a name and a port, or the path of a local socket.
///
/// A bare port stands for all of this machine's addresses to a server, and for this machine to a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Address {
    /// An address.
    Socket(SocketAddr),
    /// A name to be looked up, and a port.
    Host(String, u16),
    /// A port.
    Port(u16),
    /// A local socket; on Unix only.
    Path(PathBuf),
}

impl Address {
    /// Where a server listens, without a lookup. `None` for a name or a path.
    pub(super) fn to_listen(&self) -> Option<SocketAddr> {
        match self {
            Self::Socket(address) => Some(*address),
            Self::Port(port) => Some((Ipv6Addr::UNSPECIFIED, *port).into()),
            Self::Host(host, port) => Some((host.parse::<std::net::IpAddr>().ok()?, *port).into()),
            Self::Path(_) => None,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Socket(address)
    }
}

impl From<u16> for Address {
    fn from(port: u16) -> Self {
        Self::Port(port)
    }
}

impl From<(&str, u16)> for Address {
    fn from((host, port): (&str, u16)) -> Self {
        Self::Host(host.to_owned(), port)
    }
}

impl From<&Path> for Address {
    fn from(path: &Path) -> Self {
        Self::Path(path.to_owned())
    }
}

impl From<PathBuf> for Address {
    fn from(path: PathBuf) -> Self {
        Self::Path(path)
    }
}
