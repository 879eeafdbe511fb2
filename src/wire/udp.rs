//! Datagrams.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use super::hosts::{HostId, Protocol, canonical, is_group, receives, shown};
use super::travel::{Fate, Packet, Payload, Trip};
use super::{FAILED, Kind, Options, Socket, SocketId, Wire};
use crate::sys::errno::Fault;
use crate::sys::poller::Ready;

/// The most bytes of a datagram over IPv4 and over IPv6.
const LONGEST: [usize; 2] = [65_507, 65_527];

/// How many datagrams of other senders one may be delivered before.
const MOST_OVERTAKEN: usize = 3;

pub(super) struct Datagrams {
    pub(super) local: SocketAddr,
    /// The address that it was bound to. A connect narrows an unspecified one.
    bound: IpAddr,
    pub(super) peer: Option<SocketAddr>,
    /// The datagrams that were not received, with their senders.
    queue: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Their bytes.
    queued: usize,
    pub(super) error: Option<Fault>,
    /// When the last datagram to each host arrives.
    pub(super) last_arrivals: BTreeMap<HostId, u64>,
}

impl Datagrams {
    pub(super) fn readiness(&self) -> Ready {
        match (&self.error, self.queue.is_empty()) {
            (Some(_), _) => FAILED,
            (None, false) => Ready::READ,
            (None, true) => Ready::default(),
        }
    }
}

/// A datagram that is ready to be sent.
pub(crate) struct Outgoing {
    from: SocketAddr,
    to: SocketAddr,
    /// The host that gets it; `None` if there is none.
    target: Option<HostId>,
    /// What is open about its way to another host.
    pub(crate) trip: Option<Trip>,
    /// Of the datagrams of other senders, how many it may be delivered before.
    pub(crate) may_overtake: usize,
}

impl Wire {
    /// Creates a UDP socket of the host of what runs now.
    pub(crate) fn udp_socket(
        &mut self,
        address: SocketAddr,
        set: impl FnOnce(&mut Options),
    ) -> Result<SocketId, Fault> {
        let host = self.current_host()?;
        let mut options = Options::new(self.settings.datagrams);
        set(&mut options);
        let is_v6 = address.is_ipv6();
        let address = canonical(address);
        if !self.hosts.has_address(host, address.ip()) {
            return Err(Fault::AddressNotAvailable);
        }
        let id = self.insert(Socket {
            host,
            is_v6,
            source: None,
            port: None,
            options,
            kind: Kind::Datagrams(Datagrams {
                local: address,
                bound: address.ip(),
                peer: None,
                queue: VecDeque::new(),
                queued: 0,
                error: None,
                last_arrivals: BTreeMap::new(),
            }),
        });
        let bound = self.bind_udp(id, host, address);
        if bound.is_err() {
            self.sockets.remove(&id);
        }
        bound.map(|()| id)
    }

    fn bind_udp(&mut self, id: SocketId, host: HostId, address: SocketAddr) -> Result<(), Fault> {
        self.check_free(id, address, Protocol::Udp)?;
        let port = self.hosts.occupy(id, host, Protocol::Udp, address.port())?;
        self.socket_mut(id)?.port = Some((Protocol::Udp, port));
        self.datagrams_mut(id)?.local.set_port(port);
        Ok(())
    }

    fn datagrams(&self, id: SocketId) -> Result<&Datagrams, Fault> {
        match &self.socket(id)?.kind {
            Kind::Datagrams(datagrams) => Ok(datagrams),
            _ => Err(Fault::Invalid),
        }
    }

    fn datagrams_mut(&mut self, id: SocketId) -> Result<&mut Datagrams, Fault> {
        match &mut self.socket_mut(id)?.kind {
            Kind::Datagrams(datagrams) => Ok(datagrams),
            _ => Err(Fault::Invalid),
        }
    }

    /// Sets the peer of a socket.
    pub(crate) fn connect_udp(&mut self, id: SocketId, to: SocketAddr) -> Result<(), Fault> {
        let (host, is_v6) = (self.socket(id)?.host, self.socket(id)?.is_v6);
        if to.is_ipv6() != is_v6 {
            return Err(Fault::Invalid);
        }
        let to = canonical(to);
        let source = self.hosts.source(host, to.ip())?;
        let datagrams = self.datagrams_mut(id)?;
        if datagrams.local.ip().is_unspecified() {
            datagrams.local.set_ip(source);
        }
        datagrams.peer = Some(match to.ip().is_unspecified() {
            true => SocketAddr::new(source, to.port()),
            false => to,
        });
        Ok(())
    }

    /// Takes the peer of a socket off.
    pub(crate) fn disconnect_udp(&mut self, id: SocketId) -> Result<(), Fault> {
        let datagrams = self.datagrams_mut(id)?;
        datagrams.peer = None;
        datagrams.local.set_ip(datagrams.bound);
        Ok(())
    }

    /// Checks a datagram of `length` bytes, to an address or to the peer.
    pub(crate) fn prepare_send(
        &mut self,
        id: SocketId,
        to: Option<SocketAddr>,
        length: usize,
    ) -> Result<Outgoing, Fault> {
        let (host, is_v6) = (self.socket(id)?.host, self.socket(id)?.is_v6);
        let datagrams = self.datagrams_mut(id)?;
        if let Some(error) = datagrams.error.take() {
            return Err(error);
        }
        let (peer, mut from) = (datagrams.peer, datagrams.local);
        if to.is_some_and(|to| to.is_ipv6() != is_v6 || to.port() == 0) {
            return Err(Fault::Invalid);
        }
        let to = to
            .map(canonical)
            .or(peer)
            .ok_or(Fault::DestinationRequired)?;
        if length > LONGEST[usize::from(to.is_ipv6())] {
            return Err(Fault::MessageSize);
        }
        let source = self.hosts.source(host, to.ip())?;
        if from.ip().is_unspecified() {
            from.set_ip(source);
        }
        let to = match to.ip().is_unspecified() {
            true => SocketAddr::new(source, to.port()),
            false => to,
        };
        let target = self.hosts.owner(host, to.ip());
        if from.ip().is_loopback() && target != Some(host) {
            return Err(Fault::Invalid);
        }
        let trip = target.and_then(|target| self.trip(id, target));
        let receiver = target
            .filter(|target| *target == host)
            .and_then(|target| self.receiver_of(target, from, to));
        let queue = receiver.and_then(|receiver| self.datagrams(receiver).ok());
        let others = queue.map_or(0, |receiver| {
            let latest = receiver.queue.iter().rev();
            latest.take_while(|(sender, _)| *sender != from).count()
        });
        Ok(Outgoing {
            from,
            to,
            target,
            trip,
            may_overtake: others.min(MOST_OVERTAKEN),
        })
    }

    /// Returns whether an address names a group of hosts, which this network does not have.
    pub(crate) fn is_group(address: SocketAddr) -> bool {
        is_group(address.ip().to_canonical())
    }

    /// Sends a datagram.
    pub(crate) fn send_datagram(
        &mut self,
        id: SocketId,
        outgoing: &Outgoing,
        bytes: &[u8],
        fate: Fate,
        overtakes: usize,
    ) {
        let Some(host) = self.sockets.get(&id).map(|socket| socket.host) else {
            return;
        };
        // A datagram to an address that no host has is lost.
        let Some(target) = outgoing.target else {
            return;
        };
        let Outgoing { from, to, .. } = *outgoing;
        if target == host {
            if !self.take_datagram(host, from, to, bytes.to_vec(), overtakes) {
                self.refuse_datagrams(id);
            }
            return;
        }
        self.count_datagram(host, target, fate.copies == 0);
        for copy in 0..fate.copies {
            let what = Payload::Datagram {
                sender: id,
                from,
                to,
                bytes: bytes.to_vec(),
            };
            // The second copy takes a step longer.
            let step = fate.step + u64::from(copy);
            self.send(Packet::new(host, target, what), step);
        }
    }

    /// Returns the socket that receives what is sent to an address of a host.
    fn receiver_of(&self, host: HostId, from: SocketAddr, to: SocketAddr) -> Option<SocketId> {
        let sockets = self.hosts.at(host, Protocol::Udp, to.port());
        let fitting = sockets.iter().filter_map(|id| {
            let socket = self.sockets.get(id)?;
            let Kind::Datagrams(datagrams) = &socket.kind else {
                return None;
            };
            let local = datagrams.local.ip();
            let fits =
                receives(socket, local, to.ip()) && datagrams.peer.is_none_or(|peer| peer == from);
            // A socket with this peer comes first, then one of the very address; among equal ones,
            // the last that was bound.
            fits.then_some((datagrams.peer.is_some(), !local.is_unspecified(), *id))
        });
        fitting.max().map(|(.., id)| id)
    }

    /// Puts a datagram that has arrived into the queue of its receiver, before the last `overtakes`
    /// ones. Returns whether there is a receiver.
    pub(super) fn take_datagram(
        &mut self,
        host: HostId,
        from: SocketAddr,
        to: SocketAddr,
        bytes: Vec<u8>,
        overtakes: usize,
    ) -> bool {
        let Some(receiver) = self.receiver_of(host, from, to) else {
            return false;
        };
        let most = self.settings.datagrams;
        if let Ok(datagrams) = self.datagrams_mut(receiver) {
            // An empty datagram takes a place as well.
            let length = bytes.len().max(1);
            if datagrams.queued + length <= most {
                datagrams.queued += length;
                let place = datagrams.queue.len().saturating_sub(overtakes);
                datagrams.queue.insert(place, (from, bytes));
                self.notify(receiver, Ready::READ);
            }
        }
        true
    }

    /// Notifies the sender of a datagram that no socket has received it. Only a socket with a peer
    /// gets the error.
    pub(super) fn refuse_datagrams(&mut self, sender: SocketId) {
        if let Ok(datagrams) = self.datagrams_mut(sender) {
            if datagrams.peer.is_some() {
                datagrams.error = Some(Fault::Refused);
                self.notify(sender, FAILED);
            }
        }
    }

    /// Receives the oldest datagram: the bytes that fit, its whole length, and its sender. With
    /// `stays`, the next receive returns it again.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if there is none.
    pub(crate) fn receive(
        &mut self,
        id: SocketId,
        buffer: &mut [u8],
        stays: bool,
    ) -> Result<(usize, usize, SocketAddr), Fault> {
        let is_v6 = self.socket(id)?.is_v6;
        let datagrams = self.datagrams_mut(id)?;
        if let Some(error) = datagrams.error.take() {
            return Err(error);
        }
        let (from, bytes) = datagrams.queue.front().ok_or(Fault::WouldBlock)?;
        let (from, length) = (*from, bytes.len());
        let count = length.min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        if !stays {
            datagrams.queue.pop_front();
            datagrams.queued -= length.max(1);
        }
        Ok((count, length, shown(from, is_v6)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Fate, Settings, Wire};
    use crate::sys::poller::Ready;

    #[test]
    fn a_disconnect_gives_the_address_of_the_bind_back() {
        let mut wire = Wire::new(Settings::default(), false);
        let any = "0.0.0.0:5".parse().unwrap();
        let id = wire.udp_socket(any, |_| {}).unwrap();
        wire.connect_udp(id, "127.0.0.1:9".parse().unwrap())
            .unwrap();
        assert_eq!(wire.local_addr(id), Ok("127.0.0.1:5".parse().unwrap()));
        wire.disconnect_udp(id).unwrap();
        assert_eq!(wire.local_addr(id), Ok(any));
    }
    // Linux reports `EPOLLERR` alone: a socket without a connection has no end to hang up.
    #[test]
    fn an_error_makes_a_socket_ready_and_hangs_nothing_up() {
        let mut wire = Wire::new(Settings::default(), false);
        let id = wire.udp_socket("127.0.0.1:5".parse().unwrap(), |_| {});
        let id = id.unwrap();
        wire.connect_udp(id, "127.0.0.1:9".parse().unwrap())
            .unwrap();
        wire.attach(id, (0, 7), false);
        assert_eq!(wire.take_events(0), []);
        let outgoing = wire.prepare_send(id, None, 1).unwrap();
        wire.send_datagram(id, &outgoing, b"x", Fate::default(), 0);
        let events = wire.take_events(0);
        assert_eq!(events.len(), 1);
        for end in [Ready::READ_FOR_GOOD, Ready::WRITE_FOR_GOOD] {
            assert!(events[0].ready.intersects(end));
        }
        assert!(!events[0].ready.intersects(Ready::HANG_UP));
    }
}
