//! Sockets: echo over TCP and UDP. The other end is a process that the driver starts once it reads
//! the address.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsRawFd;

use phaseloop::net::Batch;

use crate::catalogue::Buffer;
use crate::meter::{Meter, Reading};
use crate::runtime::phaseloop::Phaseloop;
use crate::runtime::{Runtime, Sockets};

/// What one read asks for: more than a message has, so that a read says by itself that nothing is
/// left.
pub(crate) const BUFFER: usize = 64 * 1024;

/// The length of the buffer for messages of so many bytes.
pub(crate) fn buffer_length(buffer: Buffer, bytes: u64) -> usize {
    match buffer {
        Buffer::Roomy => BUFFER,
        Buffer::Exact => bytes as usize,
    }
}

/// Longer than any datagram of the workloads.
pub(crate) const DATAGRAM: usize = 2048;

/// Datagrams that one call receives or sends at most.
pub(crate) const DATAGRAMS_PER_CALL: usize = 64;

/// Room for all connections of a workload that are not accepted yet: none is dropped and tried
/// again a second later.
const BACKLOG: i32 = 4096;

/// A listener whose address the driver receives.
pub(crate) fn announced_listener() -> TcpListener {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback is there");
    // SAFETY: it takes no pointer; on a socket that listens it only changes the backlog.
    let failed = unsafe { libc::listen(listener.as_raw_fd(), BACKLOG) };
    assert_eq!(failed, 0, "a listener listens");
    announce(listener.local_addr());
    listener
}

pub(crate) fn announced_datagrams() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback is there");
    announce(socket.local_addr());
    socket
}

pub(crate) fn announce(address: io::Result<SocketAddr>) {
    let mut stdout = io::stdout().lock();
    let address = address.expect("it is bound");
    writeln!(stdout, "address {address}").expect("the driver reads standard output");
    stdout.flush().expect("the driver reads standard output");
}

/// What does it cost to read a message and to write it back, on each of so many connections?
pub(crate) fn tcp_echo<R: Sockets>(rt: R, connections: u64, buffer: usize) -> Reading {
    let listener = announced_listener();
    rt.run(async move {
        let listener = rt.listener(listener);
        let mut tasks = Vec::new();
        for _ in 0..connections {
            let stream = rt.accept(&listener).await.expect("clients connect");
            tasks.push(rt.spawn(rt.echo(stream, buffer)));
        }
        let meter = Meter::start();
        for task in tasks {
            task.await;
        }
        meter.stop()
    })
}

/// What does it cost to receive a datagram and to send it back? An empty one is the last.
pub(crate) fn udp_echo<R: Sockets>(rt: R) -> Reading {
    let socket = announced_datagrams();
    rt.run(async move {
        let socket = rt.datagrams(socket);
        let meter = Meter::start();
        let echoed = rt.echo_datagrams(socket).await;
        echoed.expect("the socket stays open");
        meter.stop()
    })
}

/// An echo with many datagrams in one call, which only phaseloop offers.
pub(crate) fn udp_batched() -> Reading {
    let socket = announced_datagrams();
    let rt = Phaseloop::default();
    rt.run(async move {
        let socket = rt.datagrams(socket);
        let mut batch = Batch::new(DATAGRAMS_PER_CALL, DATAGRAM);
        let meter = Meter::start();
        loop {
            socket.recv_batch(&mut batch).await.expect("it is open");
            let is_last = batch.iter().any(|datagram| datagram.bytes().is_empty());
            socket.send_batch(&mut batch).await.expect("it is open");
            if is_last {
                return meter.stop();
            }
        }
    })
}
