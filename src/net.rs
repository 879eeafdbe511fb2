//! Sockets on the loop: TCP, UDP, Unix, and name lookup.
//!
//! Types and methods have the names of [`std::net`]'s. Each socket is registered with the loop once; reads and writes are
//! tried at once and wait, in the poll phase, only when the system says that they would block. Streams implement the traits
//! of the `futures` crate, also for `&T`, so that one task can read and another write. A socket keeps the loop alive while
//! somebody waits for it, unless it is [unref'd](crate::Handle::unref). Dropping it closes it at once and wakes nobody;
//! `close` (of streams, `close_now`) does the same and reports in the closing phase.
//!
//! # Examples
//!
//! ```
//! use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
//! use phaseloop::{net::{TcpListener, TcpStream}, spawn};
//!
//! # fn main() -> std::io::Result<()> {
//! phaseloop::block_on(async {
//!     let listener = TcpListener::bind("127.0.0.1:0").await?;
//!     let address = listener.local_addr()?;
//!     let server = spawn(async move {
//!         let (stream, _peer) = listener.accept().await?;
//!         phaseloop::io::copy(&stream, &mut &stream).await
//!     });
//!     let mut client = TcpStream::connect(address).await?;
//!     client.write_all(b"hello").await?;
//!     client.close().await?;
//!     let mut answer = String::new();
//!     client.read_to_string(&mut answer).await?;
//!     assert_eq!(answer, "hello");
//!     assert_eq!(server.await.unwrap()?, 5);
//!     Ok(())
//! })
//! # }
//! ```

mod address;
mod batch;
mod idna;
mod listener;
mod options;
#[macro_use]
mod stream;
mod tcp_socket;
mod udp;
#[cfg(unix)]
mod unix;
#[cfg(unix)]
mod unix_datagram;

pub use address::{ToAddresses, lookup_addr, lookup_host};
pub use batch::{Batch, Datagram, DatagramMut, Datagrams, DatagramsMut};
pub use listener::{Incoming, TcpListener};
pub use options::Keepalive;
pub use stream::TcpStream;
pub use tcp_socket::TcpSocket;
pub use udp::{UdpOptions, UdpSocket};
#[cfg(unix)]
pub use unix::{PeerCredentials, SocketName, UnixListener, UnixStream};
#[cfg(unix)]
pub use unix_datagram::UnixDatagram;
