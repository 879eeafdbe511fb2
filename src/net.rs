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
//! #[phaseloop::main]
//! async fn main() -> std::io::Result<()> {
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
//! }
//! ```
// Marks: see the head of `io/bytes.rs`.

mod accept;
mod address;
#[macro_use]
mod datagrams;
#[macro_use]
mod detached;
#[macro_use]
mod duplex;
mod idna;
#[cfg(feature = "test-util")]
mod memory;
mod transport;
#[macro_use]
mod readiness;
#[cfg(feature = "fs")]
mod send_file;
#[macro_use]
mod tos;
mod tcp;
mod udp;
#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
pub mod windows;

pub use address::{ToAddresses, lookup_addr, lookup_host};
pub use detached::Detached;
#[cfg(feature = "fs")]
pub use send_file::SendFile;
pub use tcp::{Incoming, Keepalive, TcpListener, TcpSocket, TcpStream};
pub use transport::{Conn, Packets};
pub use udp::{
    Batch, Datagram, DatagramMut, Datagrams, DatagramsMut, Segments, UdpOptions, UdpSocket,
};
#[cfg(unix)]
pub use unix::{PeerCredentials, SocketName, UnixDatagram, UnixListener, UnixStream};

#[cfg(feature = "cluster")]
pub(crate) use tcp::Last;

/// Polls a receive into memory that is not initialised, if `stream` is a socket of this crate.
///
/// For a type that is known at compile time, the question costs nothing at run time.
#[cfg(feature = "hyper")]
#[inline(always)]
pub(crate) fn poll_receive(
    stream: &mut dyn std::any::Any,
    cx: &mut std::task::Context<'_>,
    buffer: &mut crate::sys::unfilled::Unfilled<'_>,
) -> Option<std::task::Poll<std::io::Result<usize>>> {
    if let Some(stream) = stream.downcast_ref::<TcpStream>() {
        return Some(stream.poll_receive(cx, buffer));
    }
    #[cfg(unix)]
    if let Some(stream) = stream.downcast_ref::<UnixStream>() {
        return Some(stream.poll_receive(cx, buffer));
    }
    None
}
