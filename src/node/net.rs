//! Servers and sockets that emit events. Node's `net`, a thin layer over [`crate::net`].
//!
//! | event | comes |
//! |---|---|
//! | [`LISTENING`] | by a tick (N95) |
//! | [`CONNECTION`] | in the poll phase, one callback each (N95) |
//! | [`CONNECT`], then [`READY`] | in one callback of the poll phase (N95) |
//! | `data` | in the read's callback of the poll phase (N96) |
//! | [`END`](super::stream::END) | by a tick (N96) |
//! | the callback of a write | by a tick if the system took it at once (N96) |
//! | [`TIMEOUT`] | in the timers phase |
//! | `error` | by a tick, before `close` (N100) |
//! | [`CLOSE`](super::stream::CLOSE) of a socket | in the closing phase, in reverse order of closing; by a tick if it never had a connection (N98) |
//! | [`CLOSE`](super::stream::CLOSE) of a server | by a tick, when the last of its sockets is destroyed (N97) |

mod address;
#[macro_use]
mod connection;
mod server;
mod socket;

#[cfg(unix)]
mod local;
#[cfg(not(unix))]
#[path = "net/no_local.rs"]
mod local;

pub use self::address::Address;
#[cfg(unix)]
pub(in crate::node) use self::local::socket_of;
pub use self::server::{CONNECTION, LISTENING, Server, create_server, create_server_with};
pub use self::socket::{CONNECT, READY, Socket, SocketOptions, TIMEOUT, connect, connect_with};
