//! What the kernel does with datagrams on request: to join them, to report what came with them, to
//! leave them whole.

use std::io;

use super::UdpSocket;
use crate::sys::datagrams::Setting;

/// Reports with received datagrams, and fragments of sent ones.
impl UdpSocket {
    /// Sets whether the kernel may deliver several datagrams of one sender and one length as one
    /// (`UDP_GRO`).
    ///
    /// Receive them by [`recv_batch`](Self::recv_batch) then, into a [`Batch`](crate::net::Batch)
    /// with buffers of 65,535 bytes: [`Datagram::segments`](crate::net::Datagram::segments)
    /// separates them. Other calls return them joined, and a shorter buffer cuts them. What was
    /// joined before it is switched off stays so, and comes without the lengths.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) on platforms other than Linux, and before Linux
    /// 5.0: there datagrams come one by one. Any OS error of `setsockopt`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     if socket.set_gro(true).is_ok() {
    ///         assert!(socket.gro()?); // Linux: datagrams of a sender may arrive as one
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn set_gro(&self, gro: bool) -> io::Result<()> {
        self.packets().set(Setting::Joined, gro)
    }

    /// Returns whether the kernel may deliver several datagrams as one.
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
    ///     if socket.set_gro(true).is_ok() {
    ///         assert!(socket.gro()?); // Linux: datagrams of a sender may arrive as one
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn gro(&self) -> io::Result<bool> {
        self.packets().is_set(Setting::Joined)
    }

    /// Sets whether [`recv_batch`](Self::recv_batch) reports the type of service of each datagram,
    /// with its mark of congestion (ECN): see [`Datagram::tos`](crate::net::Datagram::tos).
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) on platforms other than Linux; any OS error of
    /// `setsockopt`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{Batch, UdpSocket};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     if socket.set_recv_tos(true).is_err() {
    ///         return Ok(()); // it is reported on Linux only
    ///     }
    ///     let mut batch = Batch::new(8, 1500);
    ///     batch.push(b"to itself", socket.local_addr()?)?;
    ///     batch.last_mut().unwrap().set_tos(0b01); // ECT(1)
    ///     socket.send_batch(&mut batch).await?;
    ///     socket.recv_batch(&mut batch).await?;
    ///     assert_eq!(batch.iter().next().unwrap().tos(), Some(0b01));
    ///     Ok(())
    /// }
    /// ```
    pub fn set_recv_tos(&self, on: bool) -> io::Result<()> {
        self.packets().set(Setting::Tos, on)
    }

    /// Returns whether the type of service is [reported](Self::set_recv_tos).
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
    ///     assert!(!socket.recv_tos()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn recv_tos(&self) -> io::Result<bool> {
        self.packets().is_set(Setting::Tos)
    }

    /// Sets whether [`recv_batch`](Self::recv_batch) reports which address of this machine each
    /// datagram was sent to: see [`Datagram::local_ip`](crate::net::Datagram::local_ip).
    ///
    /// A socket that is bound to all addresses of a machine with several should answer from the
    /// address that was asked; [`Batch::push_reply`](crate::net::Batch::push_reply) does so then.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) on platforms other than Linux; any OS error of
    /// `setsockopt`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{Batch, UdpSocket};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("0.0.0.0:0").await?;
    ///     if socket.set_recv_local_ip(true).is_err() {
    ///         return Ok(()); // it is reported on Linux only
    ///     }
    ///     let to = ([127, 0, 0, 1], socket.local_addr()?.port()).into();
    ///     socket.send_to(b"to itself", to).await?;
    ///     let mut batch = Batch::new(8, 1500);
    ///     socket.recv_batch(&mut batch).await?;
    ///     let datagram = batch.iter().next().unwrap();
    ///     assert_eq!(datagram.local_ip(), Some([127, 0, 0, 1].into()));
    ///     Ok(())
    /// }
    /// ```
    pub fn set_recv_local_ip(&self, on: bool) -> io::Result<()> {
        self.packets().set(Setting::LocalIp, on)
    }

    /// Returns whether local addresses are [reported](Self::set_recv_local_ip).
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
    ///     assert!(!socket.recv_local_ip()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn recv_local_ip(&self) -> io::Result<bool> {
        self.packets().is_set(Setting::LocalIp)
    }

    /// Sets that no datagram is sent in fragments. One that is longer than the network interface
    /// takes is an error then, and one that is too long for a network on its way is lost: so a
    /// sender can find out what fits.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) on platforms other than Linux; any OS error of
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
    ///     if socket.set_dont_fragment(true).is_ok() {
    ///         assert!(socket.dont_fragment()?);
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn set_dont_fragment(&self, on: bool) -> io::Result<()> {
        self.packets().set(Setting::Whole, on)
    }

    /// Returns whether [no datagram is sent in fragments](Self::set_dont_fragment).
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
    ///     assert!(!socket.dont_fragment()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn dont_fragment(&self) -> io::Result<bool> {
        self.packets().is_set(Setting::Whole)
    }
}
