//! Links between hosts, and the packets in flight.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use super::hosts::HostId;
use super::{Kind, Link, SocketId, Wire};
use crate::clock::nanoseconds;
use crate::sys::errno::Fault;

pub(super) struct Links {
    default: Link,
    /// By the two hosts, the lower one first.
    list: BTreeMap<(HostId, HostId), LinkState>,
}

#[derive(Default)]
struct LinkState {
    /// `None` for the default one.
    link: Option<Link>,
    is_cut: bool,
    /// What waits for the end of a partition, in the order of sending.
    stalled: VecDeque<Packet>,
    /// The datagrams that were sent and lost.
    sent: u64,
    lost: u64,
    /// When each direction has carried what was sent, if the bandwidth is limited.
    busy_until: [u64; 2],
}

/// A packet between two hosts.
pub(super) struct Packet {
    pub(super) from: HostId,
    pub(super) to: HostId,
    /// It arrives no earlier than this, behind what its sender has sent before.
    pub(super) not_before: u64,
    pub(super) what: Payload,
}

pub(super) enum Payload {
    /// Asks a listener for a connection.
    Syn { client: SocketId },
    /// The listener has a connection for it.
    Established { client: SocketId, server: SocketId },
    /// No listener has.
    Refused { client: SocketId },
    /// Part of a connection.
    Segment {
        sender: SocketId,
        receiver: SocketId,
        what: Segment,
    },
    /// A datagram, with the address that it is sent to.
    Datagram {
        sender: SocketId,
        from: SocketAddr,
        to: SocketAddr,
        bytes: Vec<u8>,
    },
    /// A datagram of this socket has reached no socket.
    Unreachable { sender: SocketId },
}

pub(super) enum Segment {
    Bytes(Vec<u8>),
    Fin,
    Reset,
    /// The receiver has read so many bytes.
    Room(usize),
}

/// A packet that arrives later, or the end of a connect that gets no answer.
pub(super) struct Flight {
    arrives: u64,
    number: u64,
    what: InFlight,
}

enum InFlight {
    Packet(Packet),
    ConnectTimeout(SocketId),
}

impl Ord for Flight {
    /// The earliest one is the greatest, and among those of one time that sent first: the heap
    /// returns the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.arrives, other.number).cmp(&(self.arrives, self.number))
    }
}

impl PartialOrd for Flight {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Flight {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Flight {}

/// What is open about a packet before it is sent to another host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trip {
    /// The source of the sender.
    pub(crate) key: Option<usize>,
    /// The number of latencies to choose from.
    pub(crate) latencies: u64,
    /// Whether it may be lost, if it is a datagram.
    pub(crate) may_be_lost: bool,
    /// Whether it may arrive twice, if it is a datagram.
    pub(crate) may_be_doubled: bool,
    /// The share of datagrams that are lost, in millionths.
    pub(crate) loss: u64,
}

/// What was decided about a packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fate {
    /// The step of its latency.
    pub(crate) step: u64,
    /// How often a datagram arrives: 0, 1 or 2 times.
    pub(crate) copies: u8,
}

impl Links {
    pub(super) fn new(default: Link) -> Self {
        Self {
            default,
            list: BTreeMap::new(),
        }
    }

    fn link(&self, one: HostId, other: HostId) -> &Link {
        let state = self.list.get(&pair(one, other));
        let link = state.and_then(|state| state.link.as_ref());
        link.unwrap_or(&self.default)
    }

    fn state(&mut self, one: HostId, other: HostId) -> &mut LinkState {
        self.list.entry(pair(one, other)).or_default()
    }

    fn is_cut(&self, one: HostId, other: HostId) -> bool {
        let state = self.list.get(&pair(one, other));
        state.is_some_and(|state| state.is_cut)
    }
}

fn pair(one: HostId, other: HostId) -> (HostId, HostId) {
    (one.min(other), one.max(other))
}

impl Wire {
    pub(crate) fn set_link(&mut self, one: HostId, other: HostId, link: Link) {
        self.links.state(one, other).link = Some(link);
    }

    /// Cuts the link between two hosts. What is in flight waits for [`heal`](Self::heal); datagrams
    /// are lost.
    pub(crate) fn partition(&mut self, one: HostId, other: HostId) {
        if std::mem::replace(&mut self.links.state(one, other).is_cut, true) {
            return;
        }
        let all = std::mem::take(&mut self.flights).into_sorted_vec();
        // A sorted list has the greatest flight, which is the earliest one, last.
        for flight in all.into_iter().rev() {
            match flight.what {
                InFlight::Packet(packet) if pair(packet.from, packet.to) == pair(one, other) => {
                    self.stall(packet);
                }
                what => self.flights.push(Flight { what, ..flight }),
            }
        }
    }

    /// Ends a partition.
    pub(crate) fn heal(&mut self, one: HostId, other: HostId) {
        let state = self.links.state(one, other);
        state.is_cut = false;
        let stalled = std::mem::take(&mut state.stalled);
        for packet in stalled {
            self.send(packet, 0);
        }
    }

    /// Keeps a packet until the partition ends.
    fn stall(&mut self, packet: Packet) {
        if let Payload::Datagram { .. } | Payload::Unreachable { .. } = packet.what {
            return;
        }
        // A client gives up, whether its request is held back or the answer.
        if let Payload::Syn { client }
        | Payload::Established { client, .. }
        | Payload::Refused { client } = packet.what
        {
            let arrives = self
                .now
                .saturating_add(nanoseconds(self.settings.connect_timeout));
            self.fly(arrives, InFlight::ConnectTimeout(client));
        }
        let state = self.links.state(packet.from, packet.to);
        state.stalled.push_back(packet);
    }

    /// Returns what is open about a packet of a socket to a host; `None` if it arrives at once.
    pub(super) fn trip(&self, sender: SocketId, to: HostId) -> Option<Trip> {
        let socket = self.sockets.get(&sender)?;
        if socket.host == to || self.links.is_cut(socket.host, to) {
            return None;
        }
        let link = self.links.link(socket.host, to);
        let state = self.links.list.get(&pair(socket.host, to));
        let (sent, lost) = state.map_or((0, 0), |state| (state.sent, state.lost));
        let is_datagram = matches!(socket.kind, Kind::Datagrams(_));
        // The share of those that were sent, this one included, rounded up.
        let most = (link.loss.clamp(0.0, 1.0) * (sent + 1) as f64).ceil() as u64;
        let overtaken = u64::from(is_datagram && link.reorder);
        Some(Trip {
            key: socket.source.map(|(_, key)| key),
            latencies: 1 + link.steps().max(overtaken),
            may_be_lost: is_datagram && lost < most,
            may_be_doubled: is_datagram && link.reorder,
            loss: (link.loss.clamp(0.0, 1.0) * 1e6) as u64,
        })
    }

    /// Sends a packet, with the latency of a step if another host gets it.
    pub(super) fn send(&mut self, packet: Packet, step: u64) {
        let (from, to) = (packet.from, packet.to);
        if from == to {
            self.deliver(packet);
            return;
        }
        if self.links.is_cut(from, to) {
            self.stall(packet);
            return;
        }
        let length = packet.len();
        let link = self.links.link(from, to);
        let (latency, transfer) = (link.latency_of(step), link.transfer(length));
        let keeps_order = !(link.reorder && matches!(packet.what, Payload::Datagram { .. }));
        let mut departs = self.now;
        if link.bandwidth.is_some() {
            let direction = usize::from(from > to);
            let busy_until = &mut self.links.state(from, to).busy_until[direction];
            departs = departs.max(*busy_until).saturating_add(transfer);
            *busy_until = departs;
        }
        let mut arrives = departs.saturating_add(latency).max(packet.not_before);
        if let Some(last) = self.last_arrival(&packet).filter(|_| keeps_order) {
            arrives = arrives.max(*last);
            *last = arrives;
        }
        self.fly(arrives, InFlight::Packet(packet));
    }

    /// Counts a datagram that is sent to another host.
    pub(super) fn count_datagram(&mut self, from: HostId, to: HostId, is_lost: bool) {
        let state = self.links.state(from, to);
        state.sent += 1;
        state.lost += u64::from(is_lost);
    }

    /// Returns when the last packet arrives that its sender has sent.
    fn last_arrival(&mut self, packet: &Packet) -> Option<&mut u64> {
        let sender = match packet.what {
            Payload::Syn { client } => client,
            Payload::Segment { sender, .. } | Payload::Datagram { sender, .. } => sender,
            Payload::Established { server, .. } => server,
            Payload::Refused { .. } | Payload::Unreachable { .. } => return None,
        };
        match &mut self.sockets.get_mut(&sender)?.kind {
            Kind::Stream(stream) => Some(&mut stream.last_arrival),
            Kind::Datagrams(datagrams) => {
                Some(datagrams.last_arrivals.entry(packet.to).or_default())
            }
            Kind::Fresh(_) | Kind::Listener(_) => None,
        }
    }

    /// Returns when the last packet in flight of a connection's end arrives that was closed.
    pub(super) fn last_in_flight(&self, closed: SocketId) -> u64 {
        let arrivals = self.flights.iter().filter_map(|flight| match &flight.what {
            InFlight::Packet(Packet {
                what: Payload::Segment { sender, .. },
                ..
            }) if *sender == closed => Some(flight.arrives),
            _ => None,
        });
        arrivals.max().unwrap_or(0)
    }

    fn fly(&mut self, arrives: u64, what: InFlight) {
        self.sent += 1;
        self.flights.push(Flight {
            arrives,
            number: self.sent,
            what,
        });
    }

    /// Returns when the next packet arrives.
    pub(crate) fn next_arrival(&mut self) -> Option<u64> {
        while let Some(flight) = self.flights.peek() {
            match flight.what {
                InFlight::ConnectTimeout(client) if !self.is_connecting(client) => {
                    self.flights.pop();
                }
                _ => return Some(flight.arrives),
            }
        }
        None
    }

    /// Delivers the packets that have arrived by now.
    pub(crate) fn deliver_arrived(&mut self) {
        while self
            .next_arrival()
            .is_some_and(|arrives| arrives <= self.now)
        {
            match self.flights.pop().map(|flight| flight.what) {
                Some(InFlight::Packet(packet)) => self.deliver(packet),
                Some(InFlight::ConnectTimeout(client)) => {
                    self.fail_connect(client, Fault::TimedOut);
                }
                None => return,
            }
        }
    }

    fn deliver(&mut self, packet: Packet) {
        let Packet { from, to, what, .. } = packet;
        match what {
            Payload::Syn { client } => self.answer_connect(client, from, to),
            Payload::Established { client, server } => self.establish(client, server, (from, to)),
            Payload::Refused { client } => self.fail_connect(client, Fault::Refused),
            Payload::Segment {
                sender,
                receiver,
                what,
            } => self.take_segment(sender, receiver, (from, to), what),
            Payload::Datagram {
                sender,
                from: address,
                to: there,
                bytes,
            } => {
                if !self.take_datagram(to, address, there, bytes, 0) {
                    self.send(Packet::new(to, from, Payload::Unreachable { sender }), 0);
                }
            }
            Payload::Unreachable { sender } => self.refuse_datagrams(sender),
        }
    }
}

impl Packet {
    pub(super) fn new(from: HostId, to: HostId, what: Payload) -> Self {
        Self {
            from,
            to,
            not_before: 0,
            what,
        }
    }

    /// Returns the bytes that it occupies a link with.
    fn len(&self) -> usize {
        match &self.what {
            Payload::Segment {
                what: Segment::Bytes(bytes),
                ..
            }
            | Payload::Datagram { bytes, .. } => bytes.len(),
            _ => 0,
        }
    }
}
