//! How connections of TCP begin and end.

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::hosts::{HostId, Protocol, canonical, receives, shown, unspecified};
use super::stream::Stream;
use super::travel::{Packet, Payload, Segment};
use super::{ALL_ENDED, Kind, Options, Socket, SocketId, Wire};
use crate::sys::errno::Fault;
use crate::sys::poller::Ready;

/// A socket before it connects or listens.
#[derive(Default)]
pub(super) struct Fresh {
    pub(super) local: Option<SocketAddr>,
}

pub(super) struct Listener {
    pub(super) local: SocketAddr,
    /// The most connections that wait.
    most: usize,
    /// The connections that wait to be accepted, in the order in which they arrived.
    pub(super) waiting: VecDeque<SocketId>,
}

impl Listener {
    pub(super) fn readiness(&self) -> Ready {
        if self.waiting.is_empty() {
            Ready::default()
        } else {
            Ready::READ
        }
    }
}

impl Wire {
    /// Creates a TCP socket of the host of what runs now.
    pub(crate) fn tcp_socket(&mut self, is_v6: bool) -> Result<SocketId, Fault> {
        let host = self.current_host()?;
        let options = Options::new(self.settings.window);
        Ok(self.insert(Socket {
            host,
            is_v6,
            source: None,
            port: None,
            options,
            kind: Kind::Fresh(Fresh::default()),
        }))
    }

    fn fresh(&self, id: SocketId) -> Result<&Fresh, Fault> {
        match &self.socket(id)?.kind {
            Kind::Fresh(fresh) => Ok(fresh),
            _ => Err(Fault::Invalid),
        }
    }

    /// Binds a socket that neither connects nor listens.
    pub(crate) fn bind_tcp(&mut self, id: SocketId, address: SocketAddr) -> Result<(), Fault> {
        let is_bound = self.fresh(id)?.local.is_some();
        let socket = self.socket(id)?;
        if is_bound || address.is_ipv6() != socket.is_v6 {
            return Err(Fault::Invalid);
        }
        let address = canonical(address);
        let host = socket.host;
        if !self.hosts.has_address(host, address.ip()) {
            return Err(Fault::AddressNotAvailable);
        }
        self.check_free(id, address, Protocol::Tcp)?;
        self.take_port(id, address)
    }

    /// Gives a socket without an address this one, with a free port for port 0.
    fn take_port(&mut self, id: SocketId, address: SocketAddr) -> Result<(), Fault> {
        let host = self.socket(id)?.host;
        let port = self.hosts.occupy(id, host, Protocol::Tcp, address.port())?;
        let socket = self.socket_mut(id)?;
        socket.port = Some((Protocol::Tcp, port));
        socket.kind = Kind::Fresh(Fresh {
            local: Some(SocketAddr::new(address.ip(), port)),
        });
        Ok(())
    }

    /// Makes a socket a listener.
    pub(crate) fn listen(&mut self, id: SocketId, backlog: usize) -> Result<(), Fault> {
        if self.fresh(id)?.local.is_none() {
            let any = unspecified(self.socket(id)?.is_v6);
            self.take_port(id, any)?;
        }
        let local = self.fresh(id)?.local.ok_or(Fault::Invalid)?;
        self.check_free(id, local, Protocol::Tcp)?;
        let most = backlog.clamp(1, self.settings.backlog.max(1));
        self.socket_mut(id)?.kind = Kind::Listener(Listener {
            local,
            most,
            waiting: VecDeque::new(),
        });
        Ok(())
    }

    /// Begins to connect a socket. The end of the attempt is an event of its source.
    ///
    /// # Errors
    ///
    /// If no host has the address. If no listener of this host accepts: such an answer of another
    /// host comes later.
    pub(crate) fn connect_tcp(&mut self, id: SocketId, to: SocketAddr) -> Result<(), Fault> {
        let bound = self.fresh(id)?.local;
        let (host, is_v6) = (self.socket(id)?.host, self.socket(id)?.is_v6);
        if to.is_ipv6() != is_v6 {
            return Err(Fault::Invalid);
        }
        let to = canonical(to);
        let target = self.hosts.owner(host, to.ip());
        let target = target.ok_or(Fault::HostUnreachable)?;
        let source = self.hosts.source(host, to.ip())?;
        let peer = match to.ip().is_unspecified() {
            true => SocketAddr::new(source, to.port()),
            false => to,
        };
        if bound.is_none() {
            self.take_port(id, SocketAddr::new(source, 0))?;
        }
        let mut local = self.fresh(id)?.local.ok_or(Fault::Invalid)?;
        if local.ip().is_loopback() && target != host {
            return Err(Fault::Invalid);
        }
        if local.ip().is_unspecified() {
            local.set_ip(source);
        }
        let window = self.settings.window;
        self.socket_mut(id)?.kind = Kind::Stream(Stream::connecting(local, peer, window));
        let packet = Packet::new(host, target, Payload::Syn { client: id });
        self.send(packet, 0);
        let is_refused = |stream: &Stream| stream.error == Some(Fault::Refused);
        match self.stream(id).is_ok_and(is_refused) {
            true => Err(Fault::Refused),
            false => Ok(()),
        }
    }

    /// Answers the request of a client for a connection.
    pub(super) fn answer_connect(&mut self, client: SocketId, from: HostId, here: HostId) {
        let Some(stream) = self.connecting(client) else {
            // The client has given up.
            return;
        };
        let (local, peer) = (stream.peer, stream.local);
        let what = match self.listener_at(here, local) {
            Some(listener) => Payload::Established {
                client,
                server: self.add_waiting(listener, here, (local, peer), client),
            },
            None => Payload::Refused { client },
        };
        self.send(Packet::new(here, from, what), 0);
    }

    /// Returns the listener that takes a connection to an address, if one does.
    fn listener_at(&mut self, host: HostId, to: SocketAddr) -> Option<SocketId> {
        let sockets = self.hosts.at(host, Protocol::Tcp, to.port());
        let listeners = sockets.iter().filter_map(|id| {
            let socket = self.sockets.get(id)?;
            let Kind::Listener(listener) = &socket.kind else {
                return None;
            };
            let local = listener.local.ip();
            receives(socket, local, to.ip()).then_some((*id, local.is_unspecified()))
        });
        let listeners: Vec<_> = listeners.collect();
        // A listener of the very address comes before one of all addresses.
        let is_any = listeners.iter().all(|(_, is_any)| *is_any);
        let mut listeners: Vec<_> = listeners
            .into_iter()
            .filter(|(_, any)| *any == is_any)
            .map(|(id, _)| id)
            .collect();
        if listeners.len() > 1 {
            let next = self.hosts.next_shared(host, listeners.len());
            listeners.swap(0, next);
        }
        let id = *listeners.first()?;
        match &self.sockets.get(&id)?.kind {
            Kind::Listener(listener) if listener.waiting.len() < listener.most => Some(id),
            _ => None,
        }
    }

    /// Adds a connection to those that a listener has not accepted.
    fn add_waiting(
        &mut self,
        listener: SocketId,
        host: HostId,
        (local, peer): (SocketAddr, SocketAddr),
        client: SocketId,
    ) -> SocketId {
        let window = self.settings.window;
        let is_v6 = self.sockets.get(&listener).is_some_and(|it| it.is_v6);
        let mut options = Options::new(window);
        if let Ok(own) = self.options(listener) {
            options.ttl = own.ttl;
            options.nodelay = own.nodelay;
            options.keepalive = own.keepalive;
        }
        let stream = Stream::established(local, peer, window, client);
        let id = self.insert(Socket {
            host,
            is_v6,
            source: None,
            port: None,
            options,
            kind: Kind::Stream(stream),
        });
        if let Ok(Kind::Listener(listener)) = self.socket_mut(listener).map(|it| &mut it.kind) {
            listener.waiting.push_back(id);
        }
        self.notify(listener, Ready::READ);
        id
    }

    /// Ends the attempt of a client to connect: a listener has a connection for it.
    pub(super) fn establish(
        &mut self,
        client: SocketId,
        server: SocketId,
        (from, here): (HostId, HostId),
    ) {
        let Some(stream) = self.connecting(client) else {
            // The client has given up, and resets what arrives.
            let what = Payload::Segment {
                sender: client,
                receiver: server,
                what: Segment::Reset,
            };
            self.send(Packet::new(here, from, what), 0);
            return;
        };
        stream.other = server;
        stream.is_connected = true;
        self.notify(client, Ready::WRITE);
    }

    pub(super) fn fail_connect(&mut self, client: SocketId, fault: Fault) {
        if let Some(stream) = self.connecting(client) {
            stream.error = Some(fault);
            stream.is_over = true;
            self.notify(client, ALL_ENDED);
        }
    }

    /// Returns a stream that waits for the answer to its connect.
    fn connecting(&mut self, id: SocketId) -> Option<&mut Stream> {
        let stream = self.stream_mut(id).ok()?;
        stream.is_connecting().then_some(stream)
    }

    /// Returns whether a socket waits for the answer to its connect.
    pub(super) fn is_connecting(&self, id: SocketId) -> bool {
        self.stream(id).is_ok_and(Stream::is_connecting)
    }

    /// Takes the connection that has waited longest.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if none waits.
    pub(crate) fn accept(&mut self, id: SocketId) -> Result<(SocketId, SocketAddr), Fault> {
        let Kind::Listener(listener) = &mut self.socket_mut(id)?.kind else {
            return Err(Fault::Invalid);
        };
        let accepted = listener.waiting.pop_front().ok_or(Fault::WouldBlock)?;
        let socket = self.socket(accepted)?;
        let peer = self.stream(accepted)?.peer;
        Ok((accepted, shown(peer, socket.is_v6)))
    }

    /// Ends a connection with a reset.
    pub(super) fn reset(&mut self, id: SocketId) {
        if let Some(socket) = self.sockets.remove(&id) {
            self.hosts.release(id, &socket);
            if let Kind::Stream(stream) = socket.kind {
                self.end_stream(id, socket.host, &stream, true);
            }
        }
    }

    /// Notifies the peer of a stream that is closed, and that is no longer among the sockets.
    pub(super) fn end_stream(
        &mut self,
        id: SocketId,
        host: HostId,
        stream: &Stream,
        is_reset: bool,
    ) {
        if !stream.is_open() {
            return;
        }
        // Bytes that were not read reset the connection: the peer learns that they are lost.
        let what = if is_reset || !stream.inbox.is_empty() {
            Segment::Reset
        } else if stream.has_sent_end {
            return;
        } else {
            Segment::Fin
        };
        let Some(to) = self.hosts.owner(host, stream.peer.ip()) else {
            return;
        };
        let what = Payload::Segment {
            sender: id,
            receiver: stream.other,
            what,
        };
        let mut packet = Packet::new(host, to, what);
        packet.not_before = stream.last_arrival;
        self.send(packet, 0);
    }
}
