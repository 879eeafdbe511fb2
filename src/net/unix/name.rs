//! The names of Unix sockets.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net;
use std::path::{Path, PathBuf};

use socket2::SockAddr;

use crate::error::OsError;
use crate::error::os::About;
use crate::sys;
use crate::sys::poller::Maker;

/// The name of a Unix socket: a path, or an abstract name on Linux.
///
/// # Examples
///
/// ```
/// use phaseloop::net::SocketName;
///
/// fn main() {
///     let path = SocketName::from("/run/service.socket");
///     assert_eq!(path, SocketName::Path("/run/service.socket".into()));
///     let name = SocketName::abstract_name("service"); // Linux only
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocketName {
    /// A path in the file system.
    Path(PathBuf),
    /// An abstract name, which disappears with its socket. Linux only.
    Abstract(Vec<u8>),
}

impl SocketName {
    /// Creates an abstract name.
    ///
    /// # Examples
    ///
    /// ```ignore-windows,ignore-apple,ignore-bsd
    /// use phaseloop::net::{SocketName, UnixListener, UnixStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let name = SocketName::abstract_name(format!("doc-{}", std::process::id()));
    ///     let _listener = UnixListener::bind(name.clone())?; // no file, nothing to remove
    ///     UnixStream::connect(name).await?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn abstract_name(name: impl Into<Vec<u8>>) -> Self {
        Self::Abstract(name.into())
    }

    /// Converts the name for the OS. A name that is too long, empty, or a path with a zero byte is
    /// refused, never truncated.
    pub(super) fn address(&self) -> io::Result<SockAddr> {
        match self {
            Self::Path(path) => {
                let bytes = path.as_os_str().as_bytes();
                if bytes.is_empty() || bytes.contains(&0) {
                    let text = "a socket's path is neither empty nor has it a zero byte";
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
                }
                SockAddr::unix(path)
            }
            // The standard library validates the path; `socket2` needs it in its own form.
            Self::Abstract(name) => {
                sys::unix_socket::abstract_address(name)?;
                let mut path = vec![0];
                path.extend_from_slice(name);
                SockAddr::unix(Path::new(OsStr::from_bytes(&path)))
            }
        }
    }

    /// Adds the name and the operation to an error.
    pub(super) fn explain(&self, error: io::Error, operation: &'static str) -> io::Error {
        OsError::wrap(error, operation, self.clone())
    }

    pub(super) fn of(address: &net::SocketAddr) -> Option<Self> {
        let path = address
            .as_pathname()
            .map(|path| Self::Path(path.to_owned()));
        path.or_else(|| {
            sys::unix_socket::abstract_name(address).map(|name| Self::Abstract(name.to_vec()))
        })
    }
}

impl<P: AsRef<Path>> From<P> for SocketName {
    fn from(path: P) -> Self {
        Self::Path(path.as_ref().to_owned())
    }
}

impl From<SocketName> for About {
    fn from(name: SocketName) -> Self {
        match name {
            SocketName::Path(path) => path.into(),
            SocketName::Abstract(name) => Self {
                name: Some(name),
                ..Self::default()
            },
        }
    }
}

pub(super) fn name_of(address: io::Result<net::SocketAddr>) -> io::Result<Option<SocketName>> {
    address.map(|address| SocketName::of(&address))
}

/// A bound path that is removed on drop, by the process that has bound it.
pub(in crate::net) struct RemoveOnDrop(Option<(PathBuf, Maker)>);

impl RemoveOnDrop {
    pub(super) fn of(name: SocketName) -> Self {
        match name {
            // The absolute path, since the process may change its working directory.
            SocketName::Path(path) => {
                let path = std::path::absolute(&path).unwrap_or(path);
                Self(Some((path, Maker::this_process())))
            }
            SocketName::Abstract(_) => Self::NOTHING,
        }
    }

    pub(super) const NOTHING: Self = Self(None);

    /// Leaves the path where it is.
    pub(super) fn keep(&mut self) {
        self.0 = None;
    }
}

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        if let Some((path, _)) = self.0.take().filter(|(_, maker)| !maker.is_parent()) {
            // The path may have been removed already.
            let _ = std::fs::remove_file(path);
        }
    }
}
