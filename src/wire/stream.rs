//! The bytes of a connection, as the sockets of Linux move them over the loopback interface.

use std::collections::VecDeque;
use std::net::{Shutdown, SocketAddr};

use super::hosts::HostId;
use super::travel::{Packet, Payload, Segment, Trip};
use super::{ALL_ENDED, Kind, READ_ENDED, SocketId, Wire};
use crate::sys::errno::Fault;
use crate::sys::poller::Ready;

/// One end of a connection.
pub(super) struct Stream {
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    /// The socket at the other end; 0 before there is one.
    pub(super) other: SocketId,
    /// The bytes that have arrived and were not read.
    pub(super) inbox: VecDeque<u8>,
    /// The bytes that may be written before the peer has read.
    room: usize,
    /// Whether a write has found no room.
    wants_room: bool,
    /// The bytes that were read, and of which another host was not notified.
    unreported: usize,
    pub(super) is_connected: bool,
    /// The peer has ended its direction.
    has_got_end: bool,
    /// This end has ended its direction.
    pub(super) has_sent_end: bool,
    /// Reads find the end once the inbox is empty.
    is_read_shut: bool,
    /// The connection was reset, or could not be made.
    pub(super) is_over: bool,
    /// What the next call fails with.
    pub(super) error: Option<Fault>,
    /// When the last packet arrives that was sent.
    pub(super) last_arrival: u64,
}

impl Stream {
    pub(super) fn connecting(local: SocketAddr, peer: SocketAddr, window: usize) -> Self {
        Self {
            local,
            peer,
            other: 0,
            inbox: VecDeque::new(),
            room: window,
            wants_room: false,
            unreported: 0,
            is_connected: false,
            has_got_end: false,
            has_sent_end: false,
            is_read_shut: false,
            is_over: false,
            error: None,
            last_arrival: 0,
        }
    }

    pub(super) fn established(
        local: SocketAddr,
        peer: SocketAddr,
        window: usize,
        other: SocketId,
    ) -> Self {
        Self {
            other,
            is_connected: true,
            ..Self::connecting(local, peer, window)
        }
    }

    pub(super) fn is_connecting(&self) -> bool {
        !self.is_connected && !self.is_over
    }

    /// Returns whether there is a connection, in one direction at least.
    pub(super) fn is_open(&self) -> bool {
        self.is_connected && !self.is_over && !self.has_ended()
    }

    /// Returns whether both directions have ended.
    fn has_ended(&self) -> bool {
        self.has_got_end && self.has_sent_end
    }

    /// Whether neither direction is open on this side, by `shutdown`.
    fn is_shut(&self) -> bool {
        self.is_read_shut && self.has_sent_end
    }

    /// Ends the connection with an error.
    fn reset(&mut self) {
        // After its end, the peer is known to be gone: writes find a broken pipe.
        self.error = Some(match self.has_got_end {
            true => Fault::BrokenPipe,
            false => Fault::Reset,
        });
        self.is_over = true;
    }

    pub(super) fn readiness(&self) -> Ready {
        if self.is_over || self.has_ended() {
            return ALL_ENDED;
        }
        let mut ready = Ready::default();
        if !self.inbox.is_empty() {
            ready = ready.with(Ready::READ);
        }
        if self.has_got_end || self.is_read_shut {
            ready = ready.with(READ_ENDED);
        }
        if self.is_connected && self.room > 0 {
            ready = ready.with(Ready::WRITE);
        }
        ready
    }

    /// Returns whether the inbox can be read, or the end is found.
    ///
    /// # Errors
    ///
    /// The pending error, once the inbox is empty; `WouldBlock` if nothing has arrived.
    fn check_read(&mut self) -> Result<(), Fault> {
        if !self.inbox.is_empty() || self.has_got_end {
            return Ok(());
        }
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if self.is_read_shut || self.is_over {
            return Ok(());
        }
        Err(Fault::WouldBlock)
    }

    /// Returns how many bytes can be written now.
    fn check_write(&mut self) -> Result<usize, Fault> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if self.has_sent_end || self.is_over {
            return Err(Fault::BrokenPipe);
        }
        if !self.is_connected {
            return Err(Fault::WouldBlock);
        }
        Ok(self.room)
    }

    /// Copies the start of the inbox.
    fn copy_to(&self, buffer: &mut [u8]) -> usize {
        let count = buffer.len().min(self.inbox.len());
        let (front, back) = self.inbox.as_slices();
        let split = front.len().min(count);
        buffer[..split].copy_from_slice(&front[..split]);
        buffer[split..count].copy_from_slice(&back[..count - split]);
        count
    }
}

impl Wire {
    pub(super) fn stream(&self, id: SocketId) -> Result<&Stream, Fault> {
        match &self.socket(id)?.kind {
            Kind::Stream(stream) => Ok(stream),
            _ => Err(Fault::NotConnected),
        }
    }

    pub(super) fn stream_mut(&mut self, id: SocketId) -> Result<&mut Stream, Fault> {
        match &mut self.socket_mut(id)?.kind {
            Kind::Stream(stream) => Ok(stream),
            _ => Err(Fault::NotConnected),
        }
    }

    /// Lets `fill` take bytes that have arrived, and returns how many it has taken. It gets the
    /// inbox in two pieces, which are empty at the end of the stream.
    pub(crate) fn read(
        &mut self,
        id: SocketId,
        fill: impl FnOnce(&[u8], &[u8]) -> usize,
    ) -> Result<usize, Fault> {
        let host = self.socket(id)?.host;
        let stream = self.stream_mut(id)?;
        stream.check_read()?;
        let (front, back) = stream.inbox.as_slices();
        let count = fill(front, back).min(stream.inbox.len());
        stream.inbox.drain(..count);
        stream.unreported += count;
        let (unreported, peer) = (stream.unreported, stream.peer.ip());
        // Another host is notified rarely: a packet for each read would be most of the traffic.
        let is_near = self.hosts.owner(host, peer) == Some(host);
        if unreported > 0 && (is_near || unreported >= self.settings.window / 4) {
            self.stream_mut(id)?.unreported = 0;
            self.send_segment(id, Segment::Room(unreported), 0);
        }
        Ok(count)
    }

    /// Copies bytes that have arrived, which stay.
    pub(crate) fn peek(&mut self, id: SocketId, buffer: &mut [u8]) -> Result<usize, Fault> {
        let stream = self.stream_mut(id)?;
        stream.check_read()?;
        Ok(stream.copy_to(buffer))
    }

    /// Returns how many of `length` bytes can be written, and what is open about their way; `None`
    /// if they arrive at once.
    ///
    /// # Errors
    ///
    /// Those of the write. `WouldBlock` if the peer has to read first.
    pub(crate) fn prepare_write(
        &mut self,
        id: SocketId,
        length: usize,
    ) -> Result<(usize, Option<Trip>), Fault> {
        let host = self.socket(id)?.host;
        let stream = self.stream_mut(id)?;
        let room = stream.check_write()?;
        if room == 0 && length > 0 {
            stream.wants_room = true;
            return Err(Fault::WouldBlock);
        }
        let to = stream.peer.ip();
        let to = self.hosts.owner(host, to).ok_or(Fault::HostUnreachable)?;
        Ok((room.min(length), self.trip(id, to)))
    }

    /// Writes bytes, no more than there is room for, with the latency of a step.
    pub(crate) fn write(&mut self, id: SocketId, bytes: Vec<u8>, step: u64) -> Result<(), Fault> {
        let stream = self.stream_mut(id)?;
        stream.room = stream.room.saturating_sub(bytes.len());
        if !bytes.is_empty() {
            self.send_segment(id, Segment::Bytes(bytes), step);
        }
        Ok(())
    }

    /// Ends one direction or both.
    ///
    /// # Errors
    ///
    /// `NotConnected` if there is no connection, or no longer one.
    pub(crate) fn shutdown(&mut self, id: SocketId, how: Shutdown) -> Result<(), Fault> {
        let stream = self.stream_mut(id)?;
        if !stream.is_open() {
            return Err(Fault::NotConnected);
        }
        if how != Shutdown::Write {
            stream.is_read_shut = true;
        }
        let ends = how != Shutdown::Read && !stream.has_sent_end;
        if ends {
            stream.has_sent_end = true;
            self.send_segment(id, Segment::Fin, 0);
        }
        let ready = self.stream(id).map(Stream::readiness).unwrap_or_default();
        self.notify(id, ready);
        Ok(())
    }

    /// Sends a part of a connection to the peer.
    fn send_segment(&mut self, id: SocketId, what: Segment, step: u64) {
        let Some(socket) = self.sockets.get(&id) else {
            return;
        };
        let Kind::Stream(stream) = &socket.kind else {
            return;
        };
        let (from, receiver) = (socket.host, stream.other);
        if let Some(to) = self.hosts.owner(from, stream.peer.ip()) {
            let what = Payload::Segment {
                sender: id,
                receiver,
                what,
            };
            self.send(Packet::new(from, to, what), step);
        }
    }

    /// Takes a part of a connection that has arrived.
    pub(super) fn take_segment(
        &mut self,
        sender: SocketId,
        receiver: SocketId,
        (from, here): (HostId, HostId),
        what: Segment,
    ) {
        let are_bytes = matches!(what, Segment::Bytes(_));
        let Ok(stream) = self.stream_mut(receiver) else {
            if are_bytes {
                self.refuse_bytes(sender, receiver, (from, here));
            }
            return;
        };
        if stream.is_over {
            return;
        }
        if are_bytes && stream.is_shut() {
            stream.reset();
            self.notify(receiver, ALL_ENDED);
            return self.refuse_bytes(sender, receiver, (from, here));
        }
        let ready = match what {
            Segment::Bytes(bytes) => {
                stream.inbox.extend(bytes);
                Ready::READ
            }
            Segment::Fin => {
                stream.has_got_end = true;
                stream.readiness()
            }
            Segment::Reset => {
                stream.reset();
                ALL_ENDED
            }
            Segment::Room(count) => {
                stream.room += count;
                match std::mem::take(&mut stream.wants_room) {
                    true => Ready::WRITE,
                    false => Ready::default(),
                }
            }
        };
        self.notify(receiver, ready);
    }

    /// Answers bytes with a reset: their socket was closed, or shut down in both directions.
    fn refuse_bytes(
        &mut self,
        sender: SocketId,
        receiver: SocketId,
        (from, here): (HostId, HostId),
    ) {
        let what = Payload::Segment {
            sender: receiver,
            receiver: sender,
            what: Segment::Reset,
        };
        let mut packet = Packet::new(here, from, what);
        // The reset stays behind what the socket has sent before.
        packet.not_before = self.last_in_flight(receiver);
        self.send(packet, 0);
    }
}
