//! The other end of the socket workloads: `costs load <address> <kind> <arguments>`, started by the
//! driver.
//!
//! | kind | |
//! |---|---|
//! | `echo <connections> <bytes> <n>` | one message in flight a connection, until `n` are back |
//! | `http <connections> <n>` | as `echo`, with GET requests |
//! | `wrk <connections> <n>` | `wrk` for as long as about `n` requests take |
//! | `datagrams <clients> <bytes> <n>` | as `echo`, with datagrams; the last one is empty |
//! | `rate <connections> <bytes> <per second> <n>` | `n` messages at fixed times, without waiting |
//! | `hold <connections>` | connects and waits until the server ends |
//! | `hold_http <connections>` | as `hold`, after one GET on each connection |
//! | `flood` | connects and disconnects, in bursts, until the server ends |

mod closed;
mod datagrams;
mod flood;
mod open;
mod wrk;

use std::error::Error;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::affinity;
pub(crate) use wrk::{PROBES, is_installed as is_wrk_installed, seconds as wrk_seconds};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Does what the arguments of `load` say.
///
/// # Errors
///
/// Arguments that make no sense, a server that goes away.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    affinity::die_in_time();
    affinity::allow_many_files();
    affinity::pin(affinity::Side::Client);
    let (address, rest) = arguments.split_first().ok_or("which address?")?;
    let address: SocketAddr = address.parse()?;
    match *rest {
        ["echo", connections, bytes, n] => {
            let message = closed::Exchange::echo(bytes.parse()?);
            let streams = connect(address, connections.parse()?)?;
            closed::run(streams, &message, n.parse()?)?;
        }
        ["http", connections, n] => {
            let streams = connect(address, connections.parse()?)?;
            let request = closed::Exchange::learn(GET, &streams[0])?;
            closed::run(streams, &request, n.parse()?)?;
        }
        ["wrk", connections, n] => wrk::run(address, connections, n.parse()?)?,
        ["datagrams", clients, bytes, n] => {
            datagrams::run(address, clients.parse()?, bytes.parse()?, n.parse()?)?;
        }
        ["rate", connections, bytes, per_second, n] => {
            let streams = connect(address, connections.parse()?)?;
            open::run(streams, bytes.parse()?, per_second.parse()?, n.parse()?)?;
        }
        ["hold", connections] => {
            let streams = connect(address, connections.parse()?)?;
            let _ = (&streams[0]).read(&mut [0]);
        }
        ["hold_http", connections] => {
            let streams = connect(address, connections.parse()?)?;
            for stream in &streams {
                closed::Exchange::learn(GET, stream)?;
            }
            let _ = (&streams[0]).read(&mut [0]);
        }
        ["flood"] => flood::run(address),
        _ => return Err("see client.rs for the arguments".into()),
    }
    Ok(())
}

fn connect(address: SocketAddr, connections: usize) -> io::Result<Vec<TcpStream>> {
    let connections = (0..connections).map(|_| {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(stream)
    });
    connections.collect()
}

/// Turns on the spot while there is no room.
fn write_all(mut stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// How much could be read at once; 0 if there is nothing now.
fn read_some(mut stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    match stream.read(buffer) {
        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        result => result,
    }
}
