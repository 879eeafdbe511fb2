//! TCP: streams, listeners, and sockets that are configured before they connect or listen.

mod connect;
mod keepalive;
mod listener;
mod options;
mod socket;
mod stream;

#[cfg(feature = "cluster")]
pub(crate) use listener::Last;

pub use keepalive::Keepalive;
pub use listener::{Incoming, TcpListener};
pub use socket::TcpSocket;
pub use stream::TcpStream;
