//! Sockets on the loop: TCP, UDP, Unix, and name lookup.
//!
//! Types and methods have the names of [`std::net`]. A socket is registered with the loop once.
//! Reads and writes are attempted at once; a task waits for the poll phase only if the call would
//! block. Streams implement the I/O traits of the `futures` crate, also for `&T`, so that one task
//! can read while another writes.
//!
//! A socket keeps the loop alive while a task waits for it, unless it is
//! [unref'd](crate::Handle::unref). Dropping a socket closes it at once and wakes no task. `close`
//! (`close_now` for streams) also closes it at once, and completes in the closing phase.
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
