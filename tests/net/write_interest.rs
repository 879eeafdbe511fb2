//! A socket is registered for writing when a write has to wait, not before. Datagram sockets and
//! Unix streams report that they are writable whenever their peer reads, though they were writable
//! before: each message that leaves would wake the loop for nothing.
//!
//! Other platforms than Linux register both directions at once, or with each wait.
#![cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]

use std::io::{ErrorKind, Read, Write};
use std::net;
use std::os::unix;

use crate::util::sockets::udp_pair;
use crate::util::trace::{paused, turn};
use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixStream};
use phaseloop::{EventLoop, block_on, spawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Returns whether the loop has an event to take.
fn has_event(event_loop: &EventLoop) -> bool {
    let descriptor = event_loop.backend_fd();
    let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut descriptors, Some(&at_once)).unwrap() > 0
}

/// Checks that a message to a peer that reads it is no event. `send` sends one byte, and `receive`
/// is the peer.
#[track_caller]
fn assert_silent(
    what: &str,
    event_loop: &mut EventLoop,
    mut send: impl FnMut(),
    mut receive: impl FnMut(),
) {
    turn(event_loop);
    for _ in 0..3 {
        send();
        receive();
        assert!(!has_event(event_loop), "{what}: an event for nothing");
    }
}

#[test]
fn a_message_that_leaves_is_no_event() {
    let (mut event_loop, ..) = paused();
    let (ours, theirs) = udp_pair();
    let ours = event_loop.enter(|| UdpSocket::from_std(ours).unwrap());
    assert_silent(
        "UDP",
        &mut event_loop,
        || assert_eq!(ours.try_send(b"x").unwrap(), 1),
        || assert_eq!(theirs.recv(&mut [0; 8]).unwrap(), 1),
    );
    drop(ours);

    let (ours, theirs) = unix::net::UnixDatagram::pair().unwrap();
    let ours = event_loop.enter(|| UnixDatagram::from_std(ours).unwrap());
    assert_silent(
        "a Unix datagram",
        &mut event_loop,
        || assert_eq!(ours.get_ref().send(b"x").unwrap(), 1),
        || assert_eq!(theirs.recv(&mut [0; 8]).unwrap(), 1),
    );
    drop(ours);

    let (ours, mut theirs) = unix::net::UnixStream::pair().unwrap();
    let ours = event_loop.enter(|| UnixStream::from_std(ours).unwrap());
    assert_silent(
        "a Unix stream",
        &mut event_loop,
        || assert_eq!(ours.try_write(b"x").unwrap(), 1),
        || theirs.read_exact(&mut [0]).unwrap(),
    );
}

/// A connection that was accepted is writable from the start; that is no event, either.
#[test]
fn a_new_connection_is_no_event() {
    let (mut event_loop, handle, _) = paused();
    let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let listener = event_loop.enter(|| TcpListener::from_std(listener).unwrap());
    let accepted = handle.spawn(async move { listener.accept().await.unwrap().0 });
    turn(&mut event_loop);
    let mut peer = net::TcpStream::connect(address).unwrap();
    while !accepted.is_finished() {
        turn(&mut event_loop);
    }
    let stream = event_loop.block_on(accepted).unwrap();
    turn(&mut event_loop);
    assert!(!has_event(&event_loop));
    peer.write_all(b"x").unwrap();
    assert!(has_event(&event_loop), "data is one");
    drop(stream);
}

/// Fills what lies between a socket and its peer; then a write waits, and goes on when the peer
/// reads.
#[test]
fn a_write_that_has_to_wait_is_woken() {
    block_on(async {
        let (ours, mut theirs) = unix::net::UnixStream::pair().unwrap();
        let mut ours = UnixStream::from_std(ours).unwrap();
        let mut total = 0;
        while let Ok(n) = ours.try_write(&[0; 4096]) {
            total += n;
        }
        let writer = spawn(async move { ours.write_all(&[1; 1 << 20]).await });
        phaseloop::phase::check().await;
        assert!(!writer.is_finished());
        let reader = std::thread::spawn(move || {
            let mut all = vec![0; total + (1 << 20)];
            theirs.read_exact(&mut all).unwrap();
        });
        writer.await.unwrap().unwrap();
        reader.join().unwrap();

        let (ours, theirs) = unix::net::UnixDatagram::pair().unwrap();
        let ours = UnixDatagram::from_std(ours).unwrap();
        let mut queued = 0;
        let error = loop {
            match ours.get_ref().send(&[0; 512]) {
                Ok(_) => queued += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        let writer = spawn(async move { ours.send(&[1; 512]).await });
        phaseloop::phase::check().await;
        assert!(!writer.is_finished());
        for _ in 0..=queued {
            if writer.is_finished() {
                break;
            }
            theirs.recv(&mut [0; 512]).unwrap();
            phaseloop::phase::check().await;
        }
        writer.await.unwrap().unwrap();
    });
}

/// The direction is added to the registration, not put in place of reading.
#[test]
fn a_socket_that_had_to_wait_for_its_write_still_reads() {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let peer = std::thread::spawn(move || {
            let mut peer = net::TcpStream::connect(address).unwrap();
            let mut all = vec![0; 16 << 20];
            peer.read_exact(&mut all).unwrap();
            peer.write_all(b"done").unwrap();
        });
        let (mut stream, _): (TcpStream, _) = listener.accept().await.unwrap();
        stream.write_all(&vec![0; 16 << 20]).await.unwrap();
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"done");
        peer.join().unwrap();
    });
}
