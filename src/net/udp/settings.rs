//! The options of UDP sockets that can be changed at any time.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::UdpSocket;
use crate::sys;

/// Broadcast, multicast and time to live.
impl UdpSocket {
    /// Sets whether datagrams may be sent to broadcast addresses.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(SO_BROADCAST)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     socket.set_broadcast(true)?; // `send_to` 255.255.255.255 is permitted now
    ///     assert!(socket.broadcast()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_broadcast(&self, broadcast: bool) -> io::Result<()> {
        self.packets().set_broadcast(broadcast)
    }

    /// Returns whether datagrams may be sent to broadcast addresses.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(SO_BROADCAST)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     socket.set_broadcast(true)?; // `send_to` 255.255.255.255 is permitted now
    ///     assert!(socket.broadcast()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn broadcast(&self) -> io::Result<bool> {
        self.packets().broadcast()
    }

    /// Returns the time to live (TTL) of datagrams.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     socket.set_ttl(42)?;
    ///     assert_eq!(socket.ttl()?, 42);
    ///     Ok(())
    /// }
    /// ```
    pub fn ttl(&self) -> io::Result<u32> {
        match self.local_addr()? {
            SocketAddr::V4(_) => self.packets().ttl_v4(),
            SocketAddr::V6(_) => self.packets().ttl_v6(),
        }
    }

    /// Sets the time to live (TTL) of datagrams, 1 to 255.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for other values; any OS error of
    /// `setsockopt`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     socket.set_ttl(42)?;
    ///     assert_eq!(socket.ttl()?, 42);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        check_range(ttl, 1, "a TTL")?;
        match self.local_addr()? {
            SocketAddr::V4(_) => self.packets().set_ttl_v4(ttl),
            SocketAddr::V6(_) => self.packets().set_ttl_v6(ttl),
        }
    }

    /// Sets the time to live (TTL) of multicast datagrams, 0 to 255.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for other values; any OS error of
    /// `setsockopt`.
    pub fn set_multicast_ttl(&self, ttl: u32) -> io::Result<()> {
        check_range(ttl, 0, "a multicast TTL")?;
        let socket = self.packets().multicast()?;
        match self.local_addr()? {
            SocketAddr::V4(_) => socket.set_multicast_ttl_v4(ttl),
            SocketAddr::V6(_) => socket.set_multicast_hops_v6(ttl),
        }
    }

    /// Sets whether multicast datagrams are looped back to this host.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IP_MULTICAST_LOOP)`.
    pub fn set_multicast_loop(&self, receive_own: bool) -> io::Result<()> {
        let socket = self.packets().multicast()?;
        match self.local_addr()? {
            SocketAddr::V4(_) => socket.set_multicast_loop_v4(receive_own),
            SocketAddr::V6(_) => socket.set_multicast_loop_v6(receive_own),
        }
    }

    /// Returns the time to live (TTL) of multicast datagrams of an IPv4 socket.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(IP_MULTICAST_TTL)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     socket.set_multicast_ttl_v4(4)?;
    ///     assert_eq!(socket.multicast_ttl_v4()?, 4);
    ///     Ok(())
    /// }
    /// ```
    pub fn multicast_ttl_v4(&self) -> io::Result<u32> {
        self.packets().multicast()?.multicast_ttl_v4()
    }

    /// Sets the time to live (TTL) of multicast datagrams of an IPv4 socket, 0 to 255.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for other values; any OS error of
    /// `setsockopt(IP_MULTICAST_TTL)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     socket.set_multicast_ttl_v4(4)?;
    ///     assert_eq!(socket.multicast_ttl_v4()?, 4);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_multicast_ttl_v4(&self, ttl: u32) -> io::Result<()> {
        check_range(ttl, 0, "a multicast TTL")?;
        self.packets().multicast()?.set_multicast_ttl_v4(ttl)
    }

    /// Returns whether multicast datagrams of an IPv4 socket are looped back to this host.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(IP_MULTICAST_LOOP)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     socket.set_multicast_loop_v4(false)?; // groups on this machine receive nothing from it
    ///     assert!(!socket.multicast_loop_v4()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn multicast_loop_v4(&self) -> io::Result<bool> {
        self.packets().multicast()?.multicast_loop_v4()
    }

    /// Sets whether multicast datagrams of an IPv4 socket are looped back to this host.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IP_MULTICAST_LOOP)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     socket.set_multicast_loop_v4(false)?; // groups on this machine receive nothing from it
    ///     assert!(!socket.multicast_loop_v4()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_multicast_loop_v4(&self, receive_own: bool) -> io::Result<()> {
        let socket = self.packets().multicast()?;
        socket.set_multicast_loop_v4(receive_own)
    }

    /// Returns whether multicast datagrams of an IPv6 socket are looped back to this host.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(IPV6_MULTICAST_LOOP)`.
    pub fn multicast_loop_v6(&self) -> io::Result<bool> {
        self.packets().multicast()?.multicast_loop_v6()
    }

    /// Sets whether multicast datagrams of an IPv6 socket are looped back to this host.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IPV6_MULTICAST_LOOP)`.
    pub fn set_multicast_loop_v6(&self, receive_own: bool) -> io::Result<()> {
        let socket = self.packets().multicast()?;
        socket.set_multicast_loop_v6(receive_own)
    }

    /// Sets the interface for multicast datagrams by its address.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IP_MULTICAST_IF)`.
    pub fn set_multicast_interface_v4(&self, interface: &Ipv4Addr) -> io::Result<()> {
        self.packets().multicast()?.set_multicast_if_v4(interface)
    }

    /// Sets the interface for multicast datagrams by its index.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IPV6_MULTICAST_IF)`.
    pub fn set_multicast_interface_v6(&self, interface: u32) -> io::Result<()> {
        self.packets().multicast()?.set_multicast_if_v6(interface)
    }

    /// Joins a multicast group on the interface with this address. [`Ipv4Addr::UNSPECIFIED`] lets
    /// the kernel choose the interface.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IP_ADD_MEMBERSHIP)`.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::net::Ipv4Addr;
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("0.0.0.0:5353").await?;
    ///     let (group, interface) = (Ipv4Addr::new(224, 0, 0, 251), Ipv4Addr::UNSPECIFIED);
    ///     socket.join_multicast_v4(&group, &interface)?;
    ///     let (length, sender) = socket.recv_from(&mut [0; 1500]).await?;
    ///     println!("{length} bytes from {sender}");
    ///     socket.leave_multicast_v4(&group, &interface)?;
    ///     Ok(())
    /// }
    /// ```
    pub fn join_multicast_v4(&self, group: &Ipv4Addr, interface: &Ipv4Addr) -> io::Result<()> {
        self.packets()
            .multicast()?
            .join_multicast_v4(group, interface)
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IP_DROP_MEMBERSHIP)`.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::net::Ipv4Addr;
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("0.0.0.0:5353").await?;
    ///     let (group, interface) = (Ipv4Addr::new(224, 0, 0, 251), Ipv4Addr::UNSPECIFIED);
    ///     socket.join_multicast_v4(&group, &interface)?;
    ///     let (length, sender) = socket.recv_from(&mut [0; 1500]).await?;
    ///     println!("{length} bytes from {sender}");
    ///     socket.leave_multicast_v4(&group, &interface)?;
    ///     Ok(())
    /// }
    /// ```
    pub fn leave_multicast_v4(&self, group: &Ipv4Addr, interface: &Ipv4Addr) -> io::Result<()> {
        self.packets()
            .multicast()?
            .leave_multicast_v4(group, interface)
    }

    /// Joins a multicast group on the interface with this index; 0 lets the kernel choose the
    /// interface.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IPV6_ADD_MEMBERSHIP)`.
    pub fn join_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.packets()
            .multicast()?
            .join_multicast_v6(group, interface)
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IPV6_DROP_MEMBERSHIP)`.
    pub fn leave_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.packets()
            .multicast()?
            .leave_multicast_v6(group, interface)
    }

    /// Joins a multicast group for datagrams of one sender only.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IP_ADD_SOURCE_MEMBERSHIP)`;
    /// [`Unsupported`](io::ErrorKind::Unsupported) on DragonFly BSD, NetBSD and OpenBSD.
    pub fn join_multicast_from_v4(
        &self,
        source: &Ipv4Addr,
        group: &Ipv4Addr,
        interface: &Ipv4Addr,
    ) -> io::Result<()> {
        sys::socket::join_from(&self.packets().multicast()?, source, group, interface)
    }

    /// Leaves a multicast group that was joined for one sender.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IP_DROP_SOURCE_MEMBERSHIP)`;
    /// [`Unsupported`](io::ErrorKind::Unsupported) on DragonFly BSD, NetBSD and OpenBSD.
    pub fn leave_multicast_from_v4(
        &self,
        source: &Ipv4Addr,
        group: &Ipv4Addr,
        interface: &Ipv4Addr,
    ) -> io::Result<()> {
        sys::socket::leave_from(&self.packets().multicast()?, source, group, interface)
    }
}

/// The buffers of the system.
impl UdpSocket {
    /// Returns the size of the receive buffer in bytes. Linux doubles the size that was set.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(SO_RCVBUF)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     println!("{} bytes wait at most", socket.recv_buffer_size()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn recv_buffer_size(&self) -> io::Result<usize> {
        self.packets().options().recv_buffer_size()
    }

    /// Sets the size of the receive buffer in bytes. The system may limit it.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(SO_RCVBUF)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     socket.set_recv_buffer_size(20_000)?;
    ///     assert!(socket.recv_buffer_size()? >= 20_000);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_recv_buffer_size(&self, bytes: usize) -> io::Result<()> {
        self.packets().options().set_recv_buffer_size(bytes)
    }

    /// Returns the size of the send buffer in bytes. Linux doubles the size that was set.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(SO_SNDBUF)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     socket.set_send_buffer_size(65_536)?;
    ///     assert!(socket.send_buffer_size()? >= 65_536);
    ///     Ok(())
    /// }
    /// ```
    pub fn send_buffer_size(&self) -> io::Result<usize> {
        self.packets().options().send_buffer_size()
    }

    /// Sets the size of the send buffer in bytes. The system may limit it.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(SO_SNDBUF)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     socket.set_send_buffer_size(65_536)?;
    ///     assert!(socket.send_buffer_size()? >= 65_536);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_send_buffer_size(&self, bytes: usize) -> io::Result<()> {
        self.packets().options().set_send_buffer_size(bytes)
    }
}

impl_tos!(UdpSocket, |this| this.packets().options());

fn check_range(value: u32, least: u32, what: &str) -> io::Result<()> {
    if (least..=255).contains(&value) {
        return Ok(());
    }
    let text = format!("{value} is not {what}: {least} to 255");
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}
