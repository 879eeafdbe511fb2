//! Servers and sockets that emit events: Node's `net`, a thin layer over [`phaseloop::net`].
//!
//! ```
//! use phaseloop_node::{Exit, net, run};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         let server = net::create_server(|socket| socket.end("hello"));
//!         server.listen_this(("127.0.0.1", 0), |server| {
//!             let socket = net::connect(server.address().unwrap());
//!             let server = server.clone();
//!             socket.on_text(move |text| {
//!                 assert_eq!(text, "hello");
//!                 server.close();
//!             });
//!         });
//!     })
//! }
//! ```
//!
//! | event | emitted |
//! |---|---|
//! | [`LISTENING`] | on the next tick; for an address, on the one after its lookup |
//! | [`CONNECTION`] | in the poll phase, one callback for each |
//! | [`CONNECT`], then [`READY`] | in one callback of the poll phase |
//! | `data` | in the callback of the read, in the poll phase |
//! | [`END`](super::stream::END) | on a tick |
//! | the callback of a write | on a tick if the kernel accepts all bytes at once |
//! | [`TIMEOUT`] | in the timers phase |
//! | `error` | on a tick, before `close` |
//! | [`CLOSE`](super::stream::CLOSE) of a socket | in the closing phase, last closed first |
//! | [`CLOSE`](super::stream::CLOSE) of a server | on a tick after its last socket is destroyed |
//!
//! A socket that never had a connection emits `close` on a tick.
//
// N95 to N100.

mod address;
mod block_list;
#[macro_use]
mod connection;
mod listen_on;
mod options;
mod server;
mod slot;
mod socket;

#[cfg(unix)]
mod local;
#[cfg(not(unix))]
#[path = "net/pipes.rs"]
mod local;

pub use self::address::Address;
pub use self::block_list::BlockList;
#[cfg(feature = "tls")]
pub(crate) use self::connection::{Accept, Connection, Listener};
pub use self::listen_on::ListenOn;
#[cfg(unix)]
pub(crate) use self::local::socket_of;
pub use self::options::{ConnectOptions, ListenOptions, LookedUp, Lookup};
pub use self::server::{
    CONNECTION, DROP, Dropped, LISTENING, Server, create_server, create_server_with,
};
#[cfg(feature = "tls")]
pub(crate) use self::socket::open_connection;
pub use self::socket::{
    CONNECT, KeepAliveOptions, READY, Socket, SocketOptions, TIMEOUT, connect, connect_with,
};
pub(crate) use self::socket::{Consumer, ReadBuffer, idle_time};
