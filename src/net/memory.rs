//! A socket of the network in memory; see [`sim`](crate::sim).
// Marks: `cold`, since the network in memory is for tests, and shares its types with the one of
// the kernel.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr};
use std::ops::Range;
use std::rc::Rc;

use crate::io::{AsSource, Source};
use crate::raw::bound::Bound;
use crate::runtime::loop_handle::LoopHandle;
use crate::sys::datagrams::{Address, Head, Rooms};
use crate::sys::errno::Fault;
use crate::ways_to_wait::shuffled::network::{
    attach_simulated, is_one_network, send_simulated, with_wire, write_simulated,
};
use crate::wire::{Options, SocketId, Wire};

/// A socket in memory. Clones share it, and the last one closes it.
pub(super) struct Memory {
    socket: Bound<Rc<Number>>,
}

struct Number {
    /// The loop that the socket belongs to.
    handle: RefCell<LoopHandle>,
    id: SocketId,
}

impl Number {
    fn handle(&self) -> LoopHandle {
        self.handle.borrow().clone()
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        with_wire(self.handle().core(), |wire| wire.close(self.id));
    }
}

#[cold]
fn on_wire<T>(
    socket: &Number,
    f: impl FnOnce(&mut Wire, SocketId) -> Result<T, Fault>,
) -> io::Result<T> {
    let handle = socket.handle();
    Ok(with_wire(handle.core(), |wire| f(wire, socket.id))?)
}

impl Memory {
    fn new(handle: &LoopHandle, id: SocketId) -> Self {
        let handle = RefCell::new(handle.clone());
        Self {
            socket: Bound::new(Rc::new(Number { handle, id })),
        }
    }

    pub(super) fn tcp(handle: &LoopHandle, is_v6: bool) -> io::Result<Self> {
        let id = with_wire(handle.core(), |wire| wire.tcp_socket(is_v6))?;
        Ok(Self::new(handle, id))
    }

    /// Returns another owner of the socket.
    pub(super) fn share(&self) -> Self {
        Self {
            socket: Bound::new(self.socket.clone()),
        }
    }

    /// Returns the socket for another loop, if that is on the same network.
    pub(super) fn move_to(self, handle: &LoopHandle) -> Option<Self> {
        is_one_network(self.socket.handle().core(), handle.core()).then(|| {
            self.socket.handle.replace(handle.clone());
            self
        })
    }

    fn wire<T>(&self, f: impl FnOnce(&mut Wire, SocketId) -> Result<T, Fault>) -> io::Result<T> {
        on_wire(&self.socket, f)
    }

    /// Lets the source learn of the readiness of the socket.
    pub(super) fn attach<T: AsSource>(&self, source: Source<T>, can_write: bool) -> Source<T> {
        let (handle, id) = (self.socket.handle(), self.socket.id);
        attach_simulated(handle.core(), id, source.key(), can_write);
        source
    }

    /// Makes a source a stream; see [`Source::new_stream`].
    pub(super) fn open<T: AsSource>(
        &self,
        source: Source<T>,
        can_write: bool,
    ) -> io::Result<Source<T>> {
        Ok(self.attach(source.into_stream(can_write), can_write))
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.wire(|wire, id| wire.local_addr(id))
    }

    pub(super) fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.wire(|wire, id| wire.peer_addr(id))
    }

    pub(super) fn take_error(&self) -> io::Result<Option<io::Error>> {
        let fault = self.wire(|wire, id| wire.take_error(id))?;
        Ok(fault.map(io::Error::from))
    }

    pub(super) fn get<T>(&self, option: impl FnOnce(&Options) -> T) -> io::Result<T> {
        self.wire(|wire, id| wire.options(id).map(option))
    }

    pub(super) fn set(&self, option: impl FnOnce(&mut Options)) -> io::Result<()> {
        self.wire(|wire, id| wire.options_mut(id).map(option))
    }

    pub(super) fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        if !(1..=255).contains(&ttl) {
            return Err(Fault::Invalid.into());
        }
        self.set(|options| options.ttl = ttl)
    }

    pub(super) fn set_only_v6(&self, only: bool) -> io::Result<()> {
        if self.local_addr()?.is_ipv4() {
            return Err(Fault::NotThisFamily.into());
        }
        self.set(|options| options.only_v6 = only)
    }
}

/// TCP.
impl Memory {
    pub(super) fn bind(&self, address: SocketAddr) -> io::Result<()> {
        self.wire(|wire, id| wire.bind_tcp(id, address))
    }

    pub(super) fn connect(&self, address: SocketAddr) -> io::Result<()> {
        self.wire(|wire, id| wire.connect_tcp(id, address))
    }

    pub(super) fn listen(&self, backlog: u32) -> io::Result<()> {
        let backlog = usize::try_from(backlog).unwrap_or(usize::MAX);
        self.wire(|wire, id| wire.listen(id, backlog))
    }

    pub(super) fn accept(&self) -> io::Result<(Self, SocketAddr)> {
        let (id, peer) = self.wire(Wire::accept)?;
        Ok((Self::new(&self.socket.handle(), id), peer))
    }

    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wire(|wire, id| {
            wire.read(id, |mut front, mut back| {
                let count = io::Read::read(&mut front, buffer).unwrap_or(0);
                count + io::Read::read(&mut back, &mut buffer[count..]).unwrap_or(0)
            })
        })
    }

    pub(super) fn read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        // `readv` and `writev` of no bytes look at nothing; `recv` and `send` do.
        if buffers.iter().all(|buffer| buffer.is_empty()) {
            return Ok(0);
        }
        self.wire(|wire, id| {
            wire.read(id, |front, back| {
                let mut bytes = io::Read::chain(front, back);
                let mut all = 0;
                for buffer in buffers {
                    // The end of the first piece cuts a read short.
                    let mut filled = 0;
                    loop {
                        let rest = &mut buffer[filled..];
                        let count = io::Read::read(&mut bytes, rest).unwrap_or(0);
                        if count == 0 {
                            break;
                        }
                        filled += count;
                    }
                    all += filled;
                }
                all
            })
        })
    }

    /// Reads into memory that is not initialised.
    pub(super) fn receive_into(&self, memory: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
        self.wire(|wire, id| {
            wire.read(id, |front, back| {
                let bytes = front.iter().chain(back);
                let pairs = memory.iter_mut().zip(bytes);
                pairs.map(|(place, byte)| place.write(*byte)).count()
            })
        })
    }

    pub(super) fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wire(|wire, id| wire.peek(id, buffer))
    }

    #[cold]
    pub(super) fn write(&self, buffer: &[u8]) -> io::Result<usize> {
        let (handle, id) = (self.socket.handle(), self.socket.id);
        write_simulated(handle.core(), id, [buffer].into_iter())
    }

    #[cold]
    pub(super) fn write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        if buffers.iter().all(|buffer| buffer.is_empty()) {
            return Ok(0);
        }
        let (handle, id) = (self.socket.handle(), self.socket.id);
        let buffers = buffers.iter().map(|buffer| &**buffer);
        write_simulated(handle.core(), id, buffers)
    }

    pub(super) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.wire(|wire, id| wire.shutdown(id, how))
    }
}

/// UDP.
impl Memory {
    pub(super) fn udp(
        handle: &LoopHandle,
        address: SocketAddr,
        set: impl FnOnce(&mut Options),
    ) -> io::Result<Self> {
        let id = with_wire(handle.core(), |wire| wire.udp_socket(address, set))?;
        Ok(Self::new(handle, id))
    }

    pub(super) fn connect_udp(&self, address: SocketAddr) -> io::Result<()> {
        self.wire(|wire, id| wire.connect_udp(id, address))
    }

    pub(super) fn disconnect_udp(&self) -> io::Result<()> {
        self.wire(Wire::disconnect_udp)
    }

    #[cold]
    pub(super) fn send(&self, datagram: &[u8], to: Option<SocketAddr>) -> io::Result<usize> {
        let (handle, id) = (self.socket.handle(), self.socket.id);
        send_simulated(handle.core(), id, datagram, to)
    }

    /// Receives a datagram: the bytes that fit, its whole length, and its sender.
    pub(super) fn receive(
        &self,
        buffer: &mut [u8],
        stays: bool,
    ) -> io::Result<(usize, usize, SocketAddr)> {
        self.wire(|wire, id| wire.receive(id, buffer, stays))
    }

    /// Receives datagrams into the buffers, beginning with the first.
    pub(super) fn receive_many(&self, rooms: &mut Rooms) -> io::Result<usize> {
        for index in 0..rooms.count() {
            let (head, room) = rooms.get_mut(index);
            match self.receive(room, false) {
                Ok((count, length, from)) => {
                    *head = Head {
                        truncated: count < length,
                        ..Head::new(Address::new(from), count)
                    }
                }
                Err(error) if index == 0 => return Err(error),
                Err(_) => return Ok(index),
            }
        }
        Ok(rooms.count())
    }

    /// Sends these datagrams up to the first that fails. An error concerns the first.
    pub(super) fn send_many(&self, rooms: &mut Rooms, range: Range<usize>) -> io::Result<usize> {
        let count = range.len();
        for (done, index) in range.enumerate() {
            match rooms.send_each(index, |bytes, head| self.send(bytes, head.address.get())) {
                Ok(()) => {}
                Err(error) if done == 0 => return Err(error),
                Err(_) => return Ok(done),
            }
        }
        Ok(count)
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("local", &self.local_addr().ok())
            .finish_non_exhaustive()
    }
}
