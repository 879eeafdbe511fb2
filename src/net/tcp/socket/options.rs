//! The options of a socket that is not connected yet.

use std::io;
use std::time::Duration;

use super::TcpSocket;
use crate::net::tcp::keepalive::{Keepalive, set_keepalive};

/// Options of the socket.
impl TcpSocket {
    /// Sets `SO_REUSEPORT`: several sockets may listen on one address, and the kernel distributes
    /// the connections.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt`; [`Unsupported`](io::ErrorKind::Unsupported) on platforms
    /// without this option.
    pub fn set_reuse_port(&self, reuse: bool) -> io::Result<()> {
        self.socket.set_reuse_port(reuse)
    }

    /// Sets `SO_REUSEPORT`, by tokio's name of [`set_reuse_port`](Self::set_reuse_port).
    ///
    /// # Errors
    ///
    /// The errors of [`set_reuse_port`](Self::set_reuse_port).
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use phaseloop::net::TcpSocket;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let sockets = [TcpSocket::new_v4()?, TcpSocket::new_v4()?];
    ///     for socket in &sockets {
    ///         socket.set_reuseport(true)?;
    ///     }
    ///     sockets[0].bind("127.0.0.1:0".parse().unwrap())?;
    ///     sockets[1].bind(sockets[0].local_addr()?)?; // both accept connections to this port
    ///     assert!(sockets[1].reuseport()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_reuseport(&self, reuse: bool) -> io::Result<()> {
        self.set_reuse_port(reuse)
    }

    /// Returns whether several sockets may listen on the address (`SO_REUSEPORT`).
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt`; [`Unsupported`](io::ErrorKind::Unsupported) on platforms
    /// without this option.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use phaseloop::net::TcpSocket;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let sockets = [TcpSocket::new_v4()?, TcpSocket::new_v4()?];
    ///     for socket in &sockets {
    ///         socket.set_reuseport(true)?;
    ///     }
    ///     sockets[0].bind("127.0.0.1:0".parse().unwrap())?;
    ///     sockets[1].bind(sockets[0].local_addr()?)?; // both accept connections to this port
    ///     assert!(sockets[1].reuseport()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn reuseport(&self) -> io::Result<bool> {
        self.socket.reuse_port()
    }

    /// Sets `SO_REUSEADDR`, which [`bind`](Self::bind) then leaves as it is.
    ///
    /// On Unix it lets an address be bound while connections of a previous listener are in
    /// `TIME_WAIT`, and is set by default. On Windows it lets a second socket take an address that
    /// is in use, and is not set by default.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(SO_REUSEADDR)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::TcpSocket;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let socket = TcpSocket::new_v4()?;
    ///     socket.set_reuseaddr(true)?; // before `bind`
    ///     assert!(socket.reuseaddr()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_reuseaddr(&self, reuse: bool) -> io::Result<()> {
        self.socket.set_reuse_address(reuse)?;
        self.may_linger.set(false);
        Ok(())
    }

    /// Returns whether `SO_REUSEADDR` is set.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(SO_REUSEADDR)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::TcpSocket;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let socket = TcpSocket::new_v4()?;
    ///     socket.set_reuseaddr(true)?; // before `bind`
    ///     assert!(socket.reuseaddr()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn reuseaddr(&self) -> io::Result<bool> {
        self.socket.reuse_address()
    }

    /// Returns whether an IPv6 socket excludes IPv4 (`IPV6_V6ONLY`).
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt`, such as the one for an IPv4 socket.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::TcpSocket;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let socket = TcpSocket::new_v6()?;
    ///     socket.set_only_v6(true)?; // "[::]:80" takes no IPv4 connections
    ///     assert!(socket.only_v6()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn only_v6(&self) -> io::Result<bool> {
        self.socket.only_v6()
    }

    /// Sets whether an IPv6 socket excludes IPv4 (`IPV6_V6ONLY`).
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) or another OS error of `setsockopt` for an
    /// IPv4 socket.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::TcpSocket;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let socket = TcpSocket::new_v6()?;
    ///     socket.set_only_v6(true)?; // "[::]:80" takes no IPv4 connections
    ///     assert!(socket.only_v6()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_only_v6(&self, only: bool) -> io::Result<()> {
        self.socket.set_only_v6(only)
    }

    /// Sets whether small writes are sent at once (`TCP_NODELAY`) instead of being combined.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(TCP_NODELAY)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::TcpSocket;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let socket = TcpSocket::new_v4()?;
    ///     socket.set_nodelay(true)?;
    ///     assert!(socket.nodelay()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.socket.options().set_nodelay(nodelay)
    }

    /// Returns whether small writes are sent at once (`TCP_NODELAY`).
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(TCP_NODELAY)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::TcpSocket;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let socket = TcpSocket::new_v4()?;
    ///     socket.set_nodelay(true)?;
    ///     assert!(socket.nodelay()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn nodelay(&self) -> io::Result<bool> {
        self.socket.options().nodelay()
    }

    /// Returns whether keep-alive probes are on.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(SO_KEEPALIVE)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::net::{Keepalive, TcpSocket};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let socket = TcpSocket::new_v4()?;
    ///     socket.set_keepalive(Some(Keepalive::after(Duration::from_secs(60))))?;
    ///     assert!(socket.keepalive()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn keepalive(&self) -> io::Result<bool> {
        self.socket.options().keepalive()
    }

    /// Sets what closing does with unsent bytes; see
    /// [`TcpStream::set_linger`](crate::net::TcpStream::set_linger). A listener gives it
    /// to its connections, on most platforms.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(SO_LINGER)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::net::TcpSocket;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let socket = TcpSocket::new_v4()?;
    ///     socket.set_linger(Some(Duration::from_secs(2)))?;
    ///     assert_eq!(socket.linger()?, Some(Duration::from_secs(2)));
    ///     Ok(())
    /// }
    /// ```
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        self.socket.options().set_linger(linger)
    }

    /// Makes closing discard unsent bytes and reset the connection: a
    /// [`linger`](Self::set_linger) of zero.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(SO_LINGER)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::net::TcpSocket;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let socket = TcpSocket::new_v4()?;
    ///     socket.set_zero_linger()?; // closing resets the connection
    ///     assert_eq!(socket.linger()?, Some(Duration::ZERO));
    ///     Ok(())
    /// }
    /// ```
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }

    /// Returns the duration set by [`set_linger`](Self::set_linger).
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(SO_LINGER)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::net::TcpSocket;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let socket = TcpSocket::new_v4()?;
    ///     socket.set_linger(Some(Duration::from_secs(2)))?;
    ///     assert_eq!(socket.linger()?, Some(Duration::from_secs(2)));
    ///     Ok(())
    /// }
    /// ```
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        self.socket.options().linger()
    }

    /// Sets keep-alive probes; see
    /// [`TcpStream::set_keepalive`](crate::net::TcpStream::set_keepalive).
    ///
    /// # Errors
    ///
    /// The errors of [`TcpStream::set_keepalive`](crate::net::TcpStream::set_keepalive).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::net::{Keepalive, TcpSocket};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let socket = TcpSocket::new_v4()?;
    ///     socket.set_keepalive(Some(Keepalive::after(Duration::from_secs(60))))?;
    ///     assert!(socket.keepalive()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_keepalive(&self, keepalive: Option<Keepalive>) -> io::Result<()> {
        set_keepalive(&self.socket.options(), keepalive)
    }

    /// Returns the size of the kernel's receive buffer. Linux reports twice the size that was set.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(SO_RCVBUF)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::TcpSocket;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let socket = TcpSocket::new_v4()?;
    ///     socket.set_recv_buffer_size(65_536)?;
    ///     assert!(socket.recv_buffer_size()? >= 65_536);
    ///     Ok(())
    /// }
    /// ```
    pub fn recv_buffer_size(&self) -> io::Result<usize> {
        self.socket.options().recv_buffer_size()
    }

    /// Returns the size of the kernel's send buffer. Linux reports twice the size that was set.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(SO_SNDBUF)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::TcpSocket;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let socket = TcpSocket::new_v4()?;
    ///     socket.set_send_buffer_size(65_536)?;
    ///     assert!(socket.send_buffer_size()? >= 65_536);
    ///     Ok(())
    /// }
    /// ```
    pub fn send_buffer_size(&self) -> io::Result<usize> {
        self.socket.options().send_buffer_size()
    }

    /// Takes the pending error of the socket (`SO_ERROR`), if there is one.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(SO_ERROR)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::TcpSocket;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     assert!(TcpSocket::new_v4()?.take_error()?.is_none());
    ///     Ok(())
    /// }
    /// ```
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.socket.take_error()
    }

    /// Sets the size of the kernel's receive buffer.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(SO_RCVBUF)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::TcpSocket;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let socket = TcpSocket::new_v4()?;
    ///     socket.set_recv_buffer_size(65_536)?;
    ///     assert!(socket.recv_buffer_size()? >= 65_536);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_recv_buffer_size(&self, bytes: usize) -> io::Result<()> {
        self.socket.options().set_recv_buffer_size(bytes)
    }

    /// Sets the size of the kernel's send buffer.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(SO_SNDBUF)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::TcpSocket;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let socket = TcpSocket::new_v4()?;
    ///     socket.set_send_buffer_size(65_536)?;
    ///     assert!(socket.send_buffer_size()? >= 65_536);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_send_buffer_size(&self, bytes: usize) -> io::Result<()> {
        self.socket.options().set_send_buffer_size(bytes)
    }
}
