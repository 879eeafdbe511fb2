//! The network in memory as the poll phase sees it: a second kernel.
//!
//! A change of readiness is an event, which joins those of the kernel before the chooser orders
//! them. What is open about the way of a packet is a question to the chooser, or a draw if the loop
//! is not shuffled.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;

use super::{Shuffled, shuffled};
use crate::choices::{Kind, Question, Who};
use crate::event_loop::core::Core;
use crate::sys::poller::Event;
use crate::wire::{Fate, SocketId, Trip, Wire};

/// The text of the error for what the network in memory does not have.
const NO_GROUPS: &str = "the network in memory has no multicast and no broadcast";

/// Returns the network in memory, if the loop has one.
pub(crate) fn network(core: &Core) -> Option<&RefCell<Wire>> {
    let shuffled = shuffled(core)?;
    shuffled.limits.has_network.then_some(&*shuffled.group.wire)
}

/// Calls `f` with the network in memory, which knows the time then.
///
/// # Panics
///
/// If the loop has no network in memory.
pub(crate) fn with_wire<R>(core: &Core, f: impl FnOnce(&mut Wire) -> R) -> R {
    let wire = network(core);
    let mut wire = wire.expect("the loop has a network in memory").borrow_mut();
    wire.set_now(core.executor.clock.read());
    f(&mut wire)
}

/// Returns whether two loops have one network in memory.
pub(crate) fn is_one_network(core: &Core, other: &Core) -> bool {
    match (network(core), network(other)) {
        (Some(one), Some(other)) => std::ptr::eq(one, other),
        _ => false,
    }
}

/// Lets a source of a loop learn of the readiness of a socket.
pub(crate) fn attach_simulated(core: &Core, id: SocketId, key: usize, can_write: bool) {
    let index = shuffled(core).map_or(0, |shuffled| shuffled.index);
    with_wire(core, |wire| wire.attach(id, (index, key), can_write));
}

impl Shuffled {
    /// Delivers the packets that have arrived, and returns the readiness that has changed.
    pub(super) fn take_simulated(&self, core: &Core) -> Vec<Event> {
        let mut wire = self.group.wire.borrow_mut();
        wire.set_now(core.executor.clock.read());
        wire.deliver_arrived();
        wire.take_events(self.index)
    }
}

/// Writes as many bytes of `buffers` to a connection in memory as there is room for.
pub(crate) fn write_simulated<'a>(
    core: &Core,
    id: SocketId,
    buffers: impl Iterator<Item = &'a [u8]> + Clone,
) -> io::Result<usize> {
    let length = buffers.clone().map(<[u8]>::len).sum();
    let (count, trip) = with_wire(core, |wire| wire.prepare_write(id, length))?;
    let fate = decide(core, trip);
    let mut bytes = Vec::with_capacity(count);
    for buffer in buffers {
        let left = count - bytes.len();
        bytes.extend_from_slice(&buffer[..left.min(buffer.len())]);
    }
    with_wire(core, |wire| wire.write(id, bytes, fate.step))?;
    Ok(count)
}

/// Sends a datagram to an address, or to the peer.
pub(crate) fn send_simulated(
    core: &Core,
    id: SocketId,
    bytes: &[u8],
    to: Option<SocketAddr>,
) -> io::Result<usize> {
    if to.is_some_and(Wire::is_group) {
        return Err(no_groups());
    }
    let outgoing = with_wire(core, |wire| wire.prepare_send(id, to, bytes.len()))?;
    let fate = decide(core, outgoing.trip);
    let count = outgoing.may_overtake as u64 + 1;
    let overtakes = ask_network(
        core,
        Kind::Net,
        key_of(core, id),
        count,
        "its place in the queue",
    );
    with_wire(core, |wire| {
        wire.send_datagram(id, &outgoing, bytes, fate, overtakes as usize);
    });
    Ok(bytes.len())
}

fn key_of(core: &Core, id: SocketId) -> Option<usize> {
    with_wire(core, |wire| wire.key(id))
}

/// Decides what is open about a packet.
fn decide(core: &Core, trip: Option<Trip>) -> Fate {
    let Some(trip) = trip else {
        return Fate { step: 0, copies: 1 };
    };
    let copies = decide_copies(core, &trip);
    let step = match with_wire(core, |wire| wire.draw(trip.latencies)) {
        Some(step) => step,
        None => ask_network(core, Kind::Net, trip.key, trip.latencies, "its latency"),
    };
    Fate { step, copies }
}

/// Decides how often a packet arrives.
fn decide_copies(core: &Core, trip: &Trip) -> u8 {
    if trip.loss == 0 && !trip.may_be_doubled {
        return 1;
    }
    let answer = match with_wire(core, |wire| wire.draw(1_000_000)) {
        Some(drawn) if drawn < trip.loss => 1,
        // One in a hundred is a rate at which a program notices it.
        Some(drawn) if trip.may_be_doubled && drawn >= 990_000 => 2,
        Some(_) => 0,
        None => {
            let count = if trip.may_be_doubled { 3 } else { 2 };
            let answer = ask_network(core, Kind::Loss, trip.key, count, "whether it arrives");
            if answer == 1 && !trip.may_be_lost {
                0
            } else {
                answer
            }
        }
    };
    match answer {
        0 => 1,
        1 => 0,
        _ => 2,
    }
}

/// Asks the chooser of a shuffled loop. A loop that draws has no chooser to ask.
fn ask_network(core: &Core, kind: Kind, key: Option<usize>, count: u64, about: &str) -> u64 {
    let Some(shuffled) = shuffled(core) else {
        return 0;
    };
    let who: Option<Who> = key.map(|key| shuffled.source_number(key));
    let answer = shuffled.ask(&Question {
        kind,
        who,
        count: usize::try_from(count).unwrap_or(usize::MAX),
        among: &[],
        about: &about,
    });
    answer as u64
}

/// Returns the error for multicast and broadcast.
pub(crate) fn no_groups() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, NO_GROUPS)
}
