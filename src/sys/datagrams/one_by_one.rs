//! Other platforms: one call for each datagram.

use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;

use socket2::{MaybeUninitSlice, SockRef};

use super::single::past_failed_sends;
use super::{Head, Rooms, Setting};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Address(Option<SocketAddr>);

impl Address {
    pub(crate) const NONE: Self = Self(None);

    pub(crate) fn new(address: SocketAddr) -> Self {
        Self(Some(address))
    }

    pub(crate) fn get(&self) -> Option<SocketAddr> {
        self.0
    }
}

/// These calls need no state.
pub(super) struct Calls;

impl Calls {
    pub(super) fn new(_: &mut Vec<Head>, _: &mut Vec<u8>, _: usize) -> Self {
        Self
    }
}

impl Rooms {
    /// Receives queued datagrams into the buffers, beginning with the first. An error after the
    /// first datagram ends the batch and is dropped: it reports that an earlier send was not
    /// delivered, and the call already has datagrams to return.
    pub(crate) fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        for index in 0..self.count() {
            let (head, room) = self.get_mut(index);
            match receive_one(socket, room, 0) {
                Ok(received) => *head = received,
                Err(error) if index == 0 => return Err(error),
                Err(_) => return Ok(index),
            }
        }
        Ok(self.count())
    }

    /// Sends as many of these datagrams as the kernel accepts. An error concerns the first.
    pub(crate) fn send(&mut self, socket: &UdpSocket, range: Range<usize>) -> io::Result<usize> {
        let count = range.len();
        for (done, index) in range.enumerate() {
            let sent = self.send_each(index, |bytes, head| match head.address.get() {
                Some(address) => socket.send_to(bytes, address),
                None => socket.send(bytes),
            });
            match sent {
                Ok(()) => {}
                Err(error) if done == 0 => return Err(error),
                Err(_) => return Ok(done),
            }
        }
        Ok(count)
    }
}

/// Nothing is asked of the platform.
pub(crate) fn set(_: &UdpSocket, _: Setting, on: bool) -> io::Result<()> {
    match on {
        true => Err(io::ErrorKind::Unsupported.into()),
        false => Ok(()),
    }
}

pub(crate) fn is_set(_: &UdpSocket, _: Setting) -> io::Result<bool> {
    Ok(false)
}

/// Receives one datagram with these flags. What does not fit into `room` is cut.
pub(super) fn receive_one(socket: &UdpSocket, room: &mut [u8], flags: i32) -> io::Result<Head> {
    let size = room.len();
    let room: *mut [u8] = room;
    // SAFETY: the same bytes, which are not made less initialised: a receive only writes what was
    // received.
    let room = unsafe { &mut *(room as *mut [MaybeUninit<u8>]) };
    let mut rooms = [MaybeUninitSlice::new(room)];
    let socket = SockRef::from(socket);
    let mut receive = || socket.recv_from_vectored_with_flags(&mut rooms, flags);
    let (length, flags, from) = if cfg!(windows) {
        past_failed_sends(receive)?
    } else {
        receive()?
    };
    let truncated = flags.is_truncated();
    // Wine reports no length of a datagram that it has cut.
    let length = if truncated { size } else { length };
    Ok(Head {
        truncated,
        ..Head::new(Address(from.as_socket()), length)
    })
}
