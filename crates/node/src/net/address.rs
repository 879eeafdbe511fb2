//! The addresses that a server listens on and a socket connects to.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// An address and a port, a name and a port, or the path of a local socket.
///
/// A bare port means all addresses of this machine for a server, and `localhost` for a socket.
///
/// # Examples
///
/// ```
/// use phaseloop_node::net::Address;
///
/// fn main() {
///     assert_eq!(Address::from(8080), Address::Port(8080));
///     let host = Address::from(("localhost", 8080));
///     assert_eq!(host, Address::Host("localhost".to_owned(), 8080));
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Address {
    /// An IP address and a port.
    Socket(SocketAddr),
    /// A host name, which is looked up, and a port.
    Host(String, u16),
    /// A port.
    Port(u16),
    /// The path of a local (Unix domain) socket; Unix only.
    Path(PathBuf),
}

impl Address {
    /// Returns the address to listen on if no lookup is needed. `None` for a name or a path.
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
