//! Other systems: a call for each datagram.

use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;

use socket2::{MaybeUninitSlice, SockRef};

use super::{Head, Rooms};

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

/// Nothing has to be kept for the calls.
pub(super) struct Calls;

impl Calls {
    pub(super) fn new(_: &mut Vec<Head>, _: &mut Vec<u8>, _: usize) -> Self {
        Self
    }
}

impl Rooms {
    /// Receives what waits, as far as there are rooms, from the first on. An error behind the first datagram only ends it:
    /// it is a hint that an earlier one of ours got nowhere, and there is no way to put it back.
    pub(crate) fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        for index in 0..self.count() {
            let (head, room) = self.get_mut(index);
            match receive_one(socket, room) {
                Ok(received) => *head = received,
                Err(error) if index == 0 => return Err(error),
                Err(_) => return Ok(index),
            }
        }
        Ok(self.count())
    }

    /// Sends as many of these as the system takes; an error is that of the first.
    pub(crate) fn send(&mut self, socket: &UdpSocket, range: Range<usize>) -> io::Result<usize> {
        let count = range.len();
        for (index, (head, room)) in self.iter(range).enumerate() {
            let bytes = &room[..head.length];
            let sent = match head.address.get() {
                Some(address) => socket.send_to(bytes, address),
                None => socket.send(bytes),
            };
            match sent {
                Ok(_) => {}
                Err(error) if index == 0 => return Err(error),
                Err(_) => return Ok(index),
            }
        }
        Ok(count)
    }
}

fn receive_one(socket: &UdpSocket, room: &mut [u8]) -> io::Result<Head> {
    let room: *mut [u8] = room;
    // SAFETY: the same bytes, which are not made less initialised: a receive only writes what was received.
    let room = unsafe { &mut *(room as *mut [MaybeUninit<u8>]) };
    let mut rooms = [MaybeUninitSlice::new(room)];
    let (length, flags, from) = SockRef::from(socket).recv_from_vectored(&mut rooms)?;
    Ok(Head {
        address: Address(from.as_socket()),
        length,
        truncated: flags.is_truncated(),
    })
}
