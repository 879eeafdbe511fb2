//! What the kernel's own interface costs: a loop over epoll, no tasks, no timers, one buffer for
//! all.

use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::time::Duration;

use super::epoll::Epoll;
use crate::meter::{Meter, Reading};
use crate::workload::sockets::{
    BUFFER, DATAGRAM, DATAGRAMS_PER_CALL, announced_datagrams, announced_listener,
};

/// What `phaseloop_node::http` answers to a GET, as long to the byte.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
    Connection: keep-alive\r\nKeep-Alive: timeout=5\r\nContent-Length: 13\r\n\r\nHello, world!";

pub(crate) fn tcp_echo(connections: u64, buffer: usize) -> io::Result<Reading> {
    serve(connections, buffer, |received| received)
}

/// Answers whatever is read with the same bytes: no parser, no server, the system calls alone.
pub(crate) fn http(connections: u64) -> io::Result<Reading> {
    serve(connections, BUFFER, |_| ANSWER)
}

fn serve(connections: u64, buffer: usize, answer: impl Fn(&[u8]) -> &[u8]) -> io::Result<Reading> {
    let mut epoll = Epoll::new()?;
    for stream in accept_all(&epoll, connections)? {
        // Closed below, by its number.
        let _ = stream.into_raw_fd();
    }
    let mut buffer = vec![0_u8; buffer];
    let mut open = connections;
    let meter = Meter::start();
    while open > 0 {
        for key in epoll.wait(-1)? {
            let stream = key as i32;
            // SAFETY: the pointer is valid for the time of the call.
            let n = unsafe { libc::recv(stream, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
            let answered = match n {
                0 => Ok(false),
                1.. => send_all(stream, answer(&buffer[..n as usize])).map(|()| true),
                _ => Err(io::Error::last_os_error()),
            };
            // A client that closes before it has read all, as `wrk` does, resets the connection.
            let is_open = match answered {
                Err(error) if has_left(&error) => false,
                answered => answered?,
            };
            if !is_open {
                // SAFETY: the descriptor has no other owner, and no event of it comes any more.
                unsafe { libc::close(stream) };
                open -= 1;
            }
        }
    }
    Ok(meter.stop())
}

fn has_left(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
    )
}

/// All connections, watched with their descriptors as keys.
fn accept_all(epoll: &Epoll, connections: u64) -> io::Result<Vec<TcpStream>> {
    let listener = announced_listener();
    let accepted = (0..connections).map(|_| {
        let (stream, _) = listener.accept()?;
        stream.set_nonblocking(true)?;
        epoll.watch(&stream, stream.as_raw_fd() as u64)?;
        Ok(stream)
    });
    accepted.collect()
}

/// Turns on the spot while there is no room; the client reads all the time.
fn send_all(stream: RawFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let start = bytes.as_ptr().cast();
        // SAFETY: the pointer is valid for the time of the call.
        let n = unsafe { libc::send(stream, start, bytes.len(), libc::MSG_NOSIGNAL) };
        if n >= 0 {
            bytes = &bytes[n as usize..];
        } else {
            let error = io::Error::last_os_error();
            if error.kind() != ErrorKind::WouldBlock {
                return Err(error);
            }
        }
    }
    Ok(())
}

pub(crate) fn idle_connection(n: u64) -> io::Result<Reading> {
    let epoll = Epoll::new()?;
    let meter = Meter::start();
    let _streams = accept_all(&epoll, n)?;
    std::thread::sleep(Duration::from_millis(20));
    Ok(meter.stop())
}

pub(crate) fn udp_echo() -> io::Result<Reading> {
    let (mut epoll, socket) = watched_datagrams()?;
    let mut buffer = [0; DATAGRAM];
    let meter = Meter::start();
    loop {
        let _ = epoll.wait(-1)?.count();
        loop {
            match socket.recv_from(&mut buffer) {
                Ok((n, from)) => {
                    socket.send_to(&buffer[..n], from)?;
                    if n == 0 {
                        return Ok(meter.stop());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
    }
}

fn watched_datagrams() -> io::Result<(Epoll, UdpSocket)> {
    let epoll = Epoll::new()?;
    let socket = announced_datagrams();
    socket.set_nonblocking(true)?;
    epoll.watch(&socket, 0)?;
    Ok((epoll, socket))
}

/// With `recvmmsg` and `sendmmsg`.
pub(crate) fn udp_batched() -> io::Result<Reading> {
    let (mut epoll, socket) = watched_datagrams()?;
    let mut buffers = vec![[0_u8; DATAGRAM]; DATAGRAMS_PER_CALL];
    let mut addresses = [const { MaybeUninit::<libc::sockaddr_in>::zeroed() }; DATAGRAMS_PER_CALL];
    let mut slices: Vec<_> = buffers
        .iter_mut()
        .map(|buffer| libc::iovec {
            iov_base: buffer.as_mut_ptr().cast(),
            iov_len: DATAGRAM,
        })
        .collect();
    let slice = slices.as_mut_ptr();
    let mut messages: Vec<libc::mmsghdr> = (0..DATAGRAMS_PER_CALL)
        .map(|i| {
            // SAFETY: a header of zeroes is a valid one.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_name = addresses[i].as_mut_ptr().cast();
            // SAFETY: there are as many slices as headers.
            message.msg_hdr.msg_iov = unsafe { slice.add(i) };
            message.msg_hdr.msg_iovlen = 1;
            message
        })
        .collect();
    let fd = socket.as_raw_fd();
    let meter = Meter::start();
    loop {
        for message in &mut messages {
            message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_in>() as u32;
        }
        let (room, all) = (messages.len() as u32, messages.as_mut_ptr());
        // SAFETY: the headers point to buffers, slices and addresses that outlive the call.
        let received = unsafe { libc::recvmmsg(fd, all, room, 0, std::ptr::null_mut()) };
        if received < 0 {
            let _ = epoll.wait(-1)?.count();
            continue;
        }
        let received = received as usize;
        for (i, message) in messages[..received].iter().enumerate() {
            slices[i].iov_len = message.msg_len as usize;
        }
        // SAFETY: as above; the lengths are those that were received.
        let sent = unsafe { libc::sendmmsg(fd, messages.as_mut_ptr(), received as u32, 0) };
        assert_eq!(sent, received as i32, "the loopback takes them all");
        let last = messages[..received]
            .iter()
            .any(|message| message.msg_len == 0);
        for slice in &mut slices[..received] {
            slice.iov_len = DATAGRAM;
        }
        if last {
            return Ok(meter.stop());
        }
    }
}
