//! The network in memory: hosts, links, sockets, and what is in flight.
//!
//! It knows no loop. The loop passes in the time and the answers to its questions, and takes the
//! readiness of its sources out, as it does with a kernel.
//!
//! ```text
//!   wire.rs        sockets by number; readiness
//!     hosts.rs       hosts, their addresses and ports
//!     travel.rs      links, partitions, and packets in flight
//!     tcp.rs         listeners, and how connections begin and end
//!     stream.rs      the bytes of a connection
//!     udp.rs         datagrams
//!     settings.rs    what a test may set
//! ```
//!
//! Between two sockets of one host, and between those of no host, a packet arrives within the call
//! that sends it, as over the loopback interface.

mod hosts;
mod settings;
mod stream;
mod tcp;
mod travel;
mod udp;

use std::collections::{BTreeMap, BinaryHeap};
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) use self::hosts::{HostId, HostTag, host_key};
use self::hosts::{Hosts, Protocol, shown};
pub use self::settings::{Link, Settings};
use self::stream::Stream;
use self::tcp::{Fresh, Listener};
pub(crate) use self::travel::{Fate, Trip};
use self::travel::{Flight, Links};
use self::udp::Datagrams;
use crate::label::{Label, Role};
use crate::sys::describe::joined;
use crate::sys::errno::Fault;
use crate::sys::poller::{Event, Ready};

/// The number of a socket. Numbers are never used twice.
pub(crate) type SocketId = u64;

/// The readiness of a socket with a pending error: an attempt in each direction finds it.
const FAILED: Ready = Ready::READ
    .with(Ready::WRITE)
    .with(Ready::READ_FOR_GOOD)
    .with(Ready::WRITE_FOR_GOOD);

/// The readiness of a stream that has ended in both directions, which ends every wait.
const ALL_ENDED: Ready = FAILED.with(Ready::HANG_UP);

/// The readiness of a stream whose peer has ended its direction.
const READ_ENDED: Ready = Ready::READ.with(Ready::READ_FOR_GOOD).with(Ready::HANG_UP);

pub(crate) struct Wire {
    settings: Settings,
    /// Whether latencies and losses are drawn from the seed of the settings.
    draws: bool,
    /// The state of that draw.
    random: u64,
    /// The time of the loop, as it was passed in last.
    now: u64,
    hosts: Hosts,
    links: Links,
    sockets: BTreeMap<SocketId, Socket>,
    last_socket: SocketId,
    flights: BinaryHeap<Flight>,
    /// The number of packets that were sent, which orders those of one time.
    sent: u64,
    /// The readiness that the loops have not taken, each with its loop.
    events: Vec<(u32, Event)>,
}

/// A socket, and what all sockets have.
struct Socket {
    host: HostId,
    is_v6: bool,
    /// The loop and the key of the source, once the socket is registered.
    source: Option<(u32, usize)>,
    /// The port that it occupies.
    port: Option<(Protocol, u16)>,
    options: Options,
    kind: Kind,
}

enum Kind {
    /// A TCP socket that neither connects nor listens.
    Fresh(Fresh),
    Listener(Listener),
    Stream(Stream),
    Datagrams(Datagrams),
}

/// The options of a socket, which are stored and given back.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) nodelay: bool,
    pub(crate) keepalive: bool,
    pub(crate) linger: Option<Duration>,
    pub(crate) ttl: u32,
    /// The type of service, or the traffic class.
    pub(crate) tos: u32,
    pub(crate) receive_buffer: usize,
    pub(crate) send_buffer: usize,
    pub(crate) reuse_address: bool,
    pub(crate) reuse_port: bool,
    pub(crate) only_v6: bool,
}

impl Options {
    fn new(window: usize) -> Self {
        Self {
            nodelay: false,
            keepalive: false,
            linger: None,
            ttl: 64,
            tos: 0,
            receive_buffer: window,
            send_buffer: window,
            reuse_address: false,
            reuse_port: false,
            only_v6: false,
        }
    }
}

impl Wire {
    /// Creates a network. With `draws`, latencies and losses come from the seed of the settings,
    /// and not from the answers of the loop.
    pub(crate) fn new(mut settings: Settings, draws: bool) -> Self {
        settings.window = settings.window.max(1);
        Self {
            random: settings.seed,
            links: Links::new(settings.link()),
            settings,
            draws,
            now: 0,
            hosts: Hosts::new(),
            sockets: BTreeMap::new(),
            last_socket: 0,
            flights: BinaryHeap::new(),
            sent: 0,
            events: Vec::new(),
        }
    }

    pub(crate) fn set_now(&mut self, now: u64) {
        self.now = now;
    }

    /// Takes the readiness of a loop's sources that has changed since the last call.
    pub(crate) fn take_events(&mut self, of: u32) -> Vec<Event> {
        let all = std::mem::take(&mut self.events).into_iter();
        let (taken, left): (Vec<_>, _) = all.partition(|(owner, _)| *owner == of);
        self.events = left;
        taken.into_iter().map(|(_, event)| event).collect()
    }

    /// Returns whether the readiness of a loop's sources has changed.
    #[cfg(feature = "cluster")]
    pub(crate) fn has_events(&self, of: u32) -> bool {
        self.events.iter().any(|(owner, _)| *owner == of)
    }

    /// Draws a number below `count`, if this network draws.
    pub(crate) fn draw(&mut self, count: u64) -> Option<u64> {
        if !self.draws {
            return None;
        }
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some((mixed ^ (mixed >> 31)) % count.max(1))
    }

    fn insert(&mut self, socket: Socket) -> SocketId {
        self.last_socket += 1;
        self.sockets.insert(self.last_socket, socket);
        self.last_socket
    }

    fn socket(&self, id: SocketId) -> Result<&Socket, Fault> {
        self.sockets.get(&id).ok_or(Fault::Crashed)
    }

    fn socket_mut(&mut self, id: SocketId) -> Result<&mut Socket, Fault> {
        self.sockets.get_mut(&id).ok_or(Fault::Crashed)
    }

    /// Connects a socket to its source, which learns of the readiness that is there already.
    ///
    /// With `can_write`, the source counts as writable before it is notified.
    pub(crate) fn attach(&mut self, id: SocketId, source: (u32, usize), can_write: bool) {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        socket.source = Some(source);
        let ready = match &socket.kind {
            Kind::Fresh(_) => Ready::default(),
            Kind::Listener(listener) => listener.readiness(),
            Kind::Stream(stream) => stream.readiness(),
            Kind::Datagrams(datagrams) => datagrams.readiness(),
        };
        let is_known = can_write && !ready.intersects(Ready::WRITE_FOR_GOOD);
        let ready = if is_known {
            ready.without(Ready::WRITE)
        } else {
            ready
        };
        self.notify(id, ready);
    }

    /// Reports readiness to the source of a socket.
    fn notify(&mut self, id: SocketId, ready: Ready) {
        let source = self.sockets.get(&id).and_then(|socket| socket.source);
        if let Some((owner, key)) = source.filter(|_| ready != Ready::default()) {
            self.events.push((owner, Event { key, ready }));
        }
    }

    /// Returns the key of the source of a socket.
    pub(crate) fn key(&self, id: SocketId) -> Option<usize> {
        Some(self.sockets.get(&id)?.source?.1)
    }

    pub(crate) fn options(&self, id: SocketId) -> Result<&Options, Fault> {
        Ok(&self.socket(id)?.options)
    }

    pub(crate) fn options_mut(&mut self, id: SocketId) -> Result<&mut Options, Fault> {
        Ok(&mut self.socket_mut(id)?.options)
    }

    /// Takes the pending error of a socket.
    pub(crate) fn take_error(&mut self, id: SocketId) -> Result<Option<Fault>, Fault> {
        Ok(match &mut self.socket_mut(id)?.kind {
            Kind::Stream(stream) => stream.error.take(),
            Kind::Datagrams(datagrams) => datagrams.error.take(),
            Kind::Fresh(_) | Kind::Listener(_) => None,
        })
    }

    pub(crate) fn local_addr(&self, id: SocketId) -> Result<SocketAddr, Fault> {
        let socket = self.socket(id)?;
        let local = match &socket.kind {
            Kind::Fresh(fresh) => fresh.local,
            Kind::Listener(listener) => Some(listener.local),
            Kind::Stream(stream) => Some(stream.local),
            Kind::Datagrams(datagrams) => Some(datagrams.local),
        };
        Ok(shown(
            local.unwrap_or_else(|| hosts::unspecified(socket.is_v6)),
            socket.is_v6,
        ))
    }

    /// Returns the address of the peer.
    ///
    /// # Errors
    ///
    /// If there is no peer, or no longer one.
    pub(crate) fn peer_addr(&self, id: SocketId) -> Result<SocketAddr, Fault> {
        let socket = self.socket(id)?;
        let peer = match &socket.kind {
            Kind::Stream(stream) if stream.is_open() => Some(stream.peer),
            Kind::Datagrams(datagrams) => datagrams.peer,
            _ => None,
        };
        let peer = peer.ok_or(Fault::NotConnected)?;
        Ok(shown(peer, socket.is_v6))
    }

    /// Closes a socket.
    pub(crate) fn close(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.remove(&id) else {
            return;
        };
        self.hosts.release(id, &socket);
        match socket.kind {
            Kind::Fresh(_) | Kind::Datagrams(_) => {}
            Kind::Listener(listener) => {
                for waiting in listener.waiting {
                    self.reset(waiting);
                }
            }
            Kind::Stream(stream) => {
                let is_reset = socket.options.linger == Some(Duration::ZERO);
                self.end_stream(id, socket.host, &stream, is_reset);
            }
        }
    }

    /// Ends all sockets of a host at once, in the order in which they were made. The peers of its
    /// connections get a reset.
    pub(crate) fn crash(&mut self, host: HostId) {
        self.hosts.begin_generation(host);
        let of_host = |(id, socket): (&SocketId, &Socket)| (socket.host == host).then_some(*id);
        let ids: Vec<SocketId> = self.sockets.iter().filter_map(of_host).collect();
        for id in ids {
            // Waits on the sockets end with an error.
            self.notify(id, ALL_ENDED);
            if let Ok(options) = self.options_mut(id) {
                options.linger = Some(Duration::ZERO);
            }
            self.close(id);
        }
    }

    /// Names the socket of a source for reports.
    pub(crate) fn label(&self, source: (u32, usize), role: Role) -> Option<Label> {
        let mut sockets = self.sockets.iter();
        let (id, socket) = sockets.find(|(_, socket)| socket.source == Some(source))?;
        let local = self.local_addr(*id).ok()?.to_string();
        let peer = self.peer_addr(*id).ok();
        let which = match (&socket.kind, peer) {
            (Kind::Stream(stream), _) if stream.is_connecting() => {
                format!("{local} → {}, connecting", shown(stream.peer, socket.is_v6))
            }
            (_, Some(peer)) => joined(&local, role, &peer.to_string()),
            _ => local,
        };
        let what = match &socket.kind {
            Kind::Fresh(_) => "TcpSocket",
            Kind::Listener(_) => "TcpListener",
            Kind::Stream(_) => "TcpStream",
            Kind::Datagrams(_) => "UdpSocket",
        };
        Some(Label::new(what, which))
    }
}

#[cfg(test)]
mod tests {
    use super::{Settings, Wire};

    #[test]
    fn a_draw_depends_on_the_seed_alone() {
        let draws = |seed| {
            let settings = Settings {
                seed,
                ..Settings::default()
            };
            let mut wire = Wire::new(settings, true);
            (0..8).map(|_| wire.draw(1000).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
        assert_eq!(Wire::new(Settings::default(), false).draw(10), None);
    }
}
