//! The two ends of a descriptor, as far as the kernel reports them.

use std::net::SocketAddr;

use socket2::{SockAddr, SockRef};

use super::poller::RawSource;

/// Where a descriptor leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ends {
    /// A socket with a peer.
    Connected { here: Address, there: Address },
    /// A socket without a peer: it receives from any, or it is being connected.
    Open { here: Address },
    /// A pipe. Its ends have the same number.
    #[cfg(unix)]
    Pipe { device: u64, number: u64 },
    /// The kernel does not report them.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Address {
    Internet(SocketAddr),
    /// The path or the abstract name of a Unix socket.
    #[cfg(unix)]
    Name(Vec<u8>),
    Unnamed,
}

impl Ends {
    /// Returns whether this is a pipe, both ends of which are equal.
    pub(crate) fn is_pipe(&self) -> bool {
        #[cfg(unix)]
        return matches!(self, Self::Pipe { .. });
        #[cfg(windows)]
        false
    }

    #[cfg(unix)]
    pub(crate) fn of(source: RawSource) -> Self {
        source.with(|source| {
            let of_socket = Self::of_socket(&SockRef::from(source));
            of_socket.unwrap_or_else(|| Self::of_pipe(source))
        })
    }

    #[cfg(windows)]
    pub(crate) fn of(source: RawSource) -> Self {
        let of_socket = source.socket();
        let of_socket = of_socket.and_then(|socket| Self::of_socket(&SockRef::from(&socket)));
        of_socket.unwrap_or(Self::Unknown)
    }

    fn of_socket(socket: &SockRef<'_>) -> Option<Self> {
        match (socket.local_addr(), socket.peer_addr()) {
            (Ok(here), Ok(there)) => Some(Self::Connected {
                here: Address::of(&here),
                there: Address::of(&there),
            }),
            (Ok(here), Err(_)) => Some(Self::Open {
                here: Address::of(&here),
            }),
            _ => None,
        }
    }

    #[cfg(unix)]
    #[allow(
        clippy::unnecessary_cast,
        reason = "the types differ between platforms"
    )]
    fn of_pipe(descriptor: impl std::os::fd::AsFd) -> Self {
        use rustix::fs::{FileType, fstat};
        match fstat(descriptor) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Fifo => Self::Pipe {
                device: stat.st_dev as u64,
                number: stat.st_ino as u64,
            },
            _ => Self::Unknown,
        }
    }

    /// Returns the ends as the peer has them, if they distinguish one connection from others.
    pub(crate) fn mirrored(&self) -> Option<Self> {
        match self {
            Self::Connected { here, there } if (here, there) != (&UNNAMED, &UNNAMED) => {
                Some(Self::Connected {
                    here: there.clone(),
                    there: here.clone(),
                })
            }
            _ => None,
        }
    }
}

const UNNAMED: Address = Address::Unnamed;

impl Address {
    fn of(address: &SockAddr) -> Self {
        if let Some(address) = address.as_socket() {
            // An IPv4 peer of an IPv6 socket knows itself by its IPv4 address.
            return Self::Internet(SocketAddr::new(address.ip().to_canonical(), address.port()));
        }
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;
            let path = address
                .as_pathname()
                .map(|path| path.as_os_str().as_bytes());
            if let Some(name) = path.or(address.as_abstract_namespace()) {
                return Self::Name(name.to_vec());
            }
        }
        Self::Unnamed
    }

    /// Returns whether what is sent to `target` arrives at a socket that is bound to this address.
    pub(crate) fn covers(&self, target: &Self) -> bool {
        match (self, target) {
            (Self::Internet(here), Self::Internet(target)) => {
                let is_any = here.ip().is_unspecified();
                here.port() == target.port() && (is_any || here.ip() == target.ip())
            }
            (Self::Unnamed, _) => false,
            (here, target) => here == target,
        }
    }
}
