//! What is set of a socket before it is bound.

use std::io;

use socket2::Socket;

use crate::sys;

/// Options of a [`UdpSocket`](super::UdpSocket) that must be set before it is bound.
///
/// # Examples
///
/// ```
/// use phaseloop::net::{UdpOptions, UdpSocket};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let options = UdpOptions::new().reuse_address(true);
///     let one = UdpSocket::bind_with(([127, 0, 0, 1], 0).into(), options)?;
///     let other = UdpSocket::bind_with(one.local_addr()?, options)?;
///     assert_eq!(one.local_addr()?, other.local_addr()?);
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "options do nothing until a socket is bound with them"]
pub struct UdpOptions {
    reuse_address: bool,
    reuse_port: bool,
    only_v6: Option<bool>,
}

impl UdpOptions {
    /// Creates the default options.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{UdpOptions, UdpSocket};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let options = UdpOptions::new().only_v6(true);
    ///     if let Ok(socket) = UdpSocket::bind_with("[::1]:0".parse().unwrap(), options) {
    ///         println!("{}", socket.local_addr()?);
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the options of a socket of the kernel.
    pub(in crate::net) fn apply(self, socket: &Socket) -> io::Result<()> {
        if self.reuse_address {
            socket.set_reuse_address(true)?;
        }
        if self.reuse_port {
            sys::socket::set_reuse_port(socket, true)?;
        }
        if let Some(only) = self.only_v6 {
            socket.set_only_v6(only)?;
        }
        Ok(())
    }

    /// Sets the options of a socket in memory.
    #[cfg(feature = "test-util")]
    pub(in crate::net) fn store(self, options: &mut crate::wire::Options) {
        options.reuse_address = self.reuse_address;
        options.reuse_port = self.reuse_port;
        options.only_v6 = self.only_v6.unwrap_or(false);
    }

    /// Sets `SO_REUSEADDR`: several sockets may share an address, and the last one bound receives.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{UdpOptions, UdpSocket};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let shared = UdpOptions::new().reuse_address(true);
    ///     let first = UdpSocket::bind_with("127.0.0.1:0".parse().unwrap(), shared)?;
    ///     UdpSocket::bind_with(first.local_addr()?, shared)?; // both are bound to this port
    ///     Ok(())
    /// }
    /// ```
    pub fn reuse_address(mut self, reuse: bool) -> Self {
        self.reuse_address = reuse;
        self
    }

    /// Sets `SO_REUSEPORT`: several sockets may share an address, and the kernel distributes the
    /// datagrams.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use phaseloop::net::{UdpOptions, UdpSocket};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let shared = UdpOptions::new().reuse_port(true);
    ///     let first = UdpSocket::bind_with("127.0.0.1:0".parse().unwrap(), shared)?;
    ///     UdpSocket::bind_with(first.local_addr()?, shared)?; // the kernel spreads the senders
    ///     Ok(())
    /// }
    /// ```
    pub fn reuse_port(mut self, reuse: bool) -> Self {
        self.reuse_port = reuse;
        self
    }

    /// Sets whether an IPv6 socket excludes IPv4. Binding an IPv4 socket fails with this option.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{UdpOptions, UdpSocket};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let options = UdpOptions::new().only_v6(true);
    ///     if let Ok(socket) = UdpSocket::bind_with("[::1]:0".parse().unwrap(), options) {
    ///         println!("{}", socket.local_addr()?);
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn only_v6(mut self, only: bool) -> Self {
        self.only_v6 = Some(only);
        self
    }
}
