//! UDP: sockets, and batches of datagrams.

mod batch;
mod on_request;
mod options;
mod peek;
mod settings;
mod socket;

pub use batch::{Batch, Datagram, DatagramMut, Datagrams, DatagramsMut, Segments};
pub use options::UdpOptions;
pub use socket::UdpSocket;
