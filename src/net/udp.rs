//! UDP: sockets, and batches of datagrams.

mod batch;
mod socket;

pub use batch::{Batch, Datagram, DatagramMut, Datagrams, DatagramsMut};
pub use socket::{UdpOptions, UdpSocket};
