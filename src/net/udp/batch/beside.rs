//! What a datagram carries beside its bytes and its address.

use std::net::IpAddr;

use super::{Batch, Datagram, DatagramMut};
use crate::sys::datagrams::Tos;

/// The newest datagram.
impl Batch {
    /// Returns the datagram that was added last, mutably; `None` if the batch is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::Batch;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut batch = Batch::new(8, 1500);
    ///     assert!(batch.last_mut().is_none());
    ///     batch.push(b"hello", ([127, 0, 0, 1], 7000).into())?;
    ///     batch.last_mut().unwrap().set_tos(0b10); // ECT(0)
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn last_mut(&mut self) -> Option<DatagramMut<'_>> {
        let last = self.end.checked_sub(1).filter(|_| !self.is_empty())?;
        let (head, room) = self.rooms.get_mut(last);
        Some(DatagramMut { head, room })
    }
}

impl Datagram<'_> {
    /// The type of service (IPv4) or traffic class (IPv6): what was [set](DatagramMut::set_tos), or
    /// what was received, if the socket [reports](crate::net::UdpSocket::set_recv_tos) it.
    ///
    /// The lower two bits are the mark of congestion (ECN): `0b10` and `0b01` mark a sender that
    /// understands it (ECT), and a router that is short of room replaces them by `0b11` (CE). The
    /// other six are the class of traffic (DSCP).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::Datagram;
    ///
    /// fn is_congested(datagram: &Datagram<'_>) -> bool {
    ///     datagram.tos().is_some_and(|tos| tos & 0b11 == 0b11)
    /// }
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut batch = phaseloop::net::Batch::new(8, 1500);
    ///     batch.push_to_peer(b"hello")?;
    ///     assert!(!is_congested(&batch.iter().next().unwrap()));
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn tos(&self) -> Option<u8> {
        match self.head.tos {
            Tos::None => None,
            Tos::Received(tos) | Tos::Set(tos) => Some(tos),
        }
    }

    /// The address of this machine that the datagram was sent to, if the socket
    /// [reports](crate::net::UdpSocket::set_recv_local_ip) it, or that it is to be sent from.
    ///
    /// Of a datagram to a group of multicast, it is the one to answer from, if the kernel knows it.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::Batch;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut batch = Batch::new(8, 1500);
    ///     batch.push(b"hello", ([127, 0, 0, 1], 7000).into())?;
    ///     assert_eq!(batch.iter().next().unwrap().local_ip(), None);
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.head.local
    }
}

impl DatagramMut<'_> {
    /// Sets the type of service (IPv4) or traffic class (IPv6) to send this datagram with; see
    /// [`Datagram::tos`]. Without it, that of the [socket](crate::net::UdpSocket::set_tos) is sent.
    ///
    /// What was received is not sent back: a mark of congestion belongs to one way.
    ///
    /// Where it is not supported, which is everywhere but on Linux, the datagram is sent without.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::Batch;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut batch = Batch::new(8, 1500);
    ///     batch.push(b"hello", ([127, 0, 0, 1], 7000).into())?;
    ///     batch.last_mut().unwrap().set_tos(0b10); // ECT(0)
    ///     assert_eq!(batch.iter().next().unwrap().tos(), Some(0b10));
    ///     Ok(())
    /// }
    /// ```
    pub fn set_tos(&mut self, tos: u8) {
        self.head.tos = Tos::Set(tos);
    }

    /// Sets the address of this machine to send this datagram from. `None`: the kernel chooses,
    /// unless the socket is bound to one.
    ///
    /// An address that this machine does not have is an error of the send.
    ///
    /// Where it is not supported, which is everywhere but on Linux, the kernel chooses.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::Batch;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut batch = Batch::new(8, 1500);
    ///     batch.push(b"hello", ([127, 0, 0, 1], 7000).into())?;
    ///     batch.last_mut().unwrap().set_local_ip(Some([127, 0, 0, 1].into()));
    ///     Ok(())
    /// }
    /// ```
    pub fn set_local_ip(&mut self, from: Option<IpAddr>) {
        self.head.local = from;
    }
}
