//! Unix sockets: streams, listeners, datagrams, and their names.

mod datagram;
mod stream;

pub use datagram::UnixDatagram;
pub use stream::{PeerCredentials, SocketName, UnixListener, UnixStream};
