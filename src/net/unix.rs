//! Unix sockets: streams, listeners, datagrams, and their names.

mod datagram;
mod listener;
mod name;
mod stream;

pub use datagram::UnixDatagram;
pub use listener::UnixListener;
pub use name::SocketName;
pub use stream::{PeerCredentials, UnixStream};
