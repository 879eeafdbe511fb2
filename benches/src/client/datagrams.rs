//! Closed loop over UDP. The loopback loses nothing as long as the receiver's buffer is not full.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Instant;

use crate::peer::epoll::Epoll;

struct Client {
    socket: UdpSocket,
    to_send: u64,
}

pub(super) fn run(address: SocketAddr, clients: usize, bytes: usize, n: u64) -> io::Result<()> {
    let mut epoll = Epoll::new()?;
    let message = vec![b'x'; bytes];
    let mut buffer = [0; 2048];
    let mut waiting = clients;
    let mut sockets = Vec::new();
    for key in 0..clients {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(address)?;
        socket.set_nonblocking(true)?;
        epoll.watch(&socket, key as u64)?;
        sockets.push(Client {
            socket,
            to_send: n / clients as u64 - 1,
        });
    }
    let start = Instant::now();
    for client in &sockets {
        client.socket.send(&message)?;
    }
    while waiting > 0 {
        for key in epoll.wait(-1)? {
            let client = &mut sockets[key as usize];
            match client.socket.recv(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                result => result?,
            };
            if client.to_send == 0 {
                waiting -= 1;
                continue;
            }
            client.to_send -= 1;
            client.socket.send(&message)?;
        }
    }
    println!("wall {}", start.elapsed().as_nanos());
    sockets[0].socket.send(&[])?;
    Ok(())
}
