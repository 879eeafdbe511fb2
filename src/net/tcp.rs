//! TCP: streams, listeners, and sockets that are configured before they connect or listen.

mod keepalive;
pub(super) mod listener;
mod socket;
#[macro_use]
pub(super) mod stream;

pub use keepalive::Keepalive;
pub use listener::{Incoming, TcpListener};
pub use socket::TcpSocket;
pub use stream::TcpStream;
