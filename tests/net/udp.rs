//! UDP sockets, R216–R234: one datagram a send and a receive, with its sender; OS errors are passed
//! on. Batches are in `udp_batch.rs`.
//!
//! Ours differs: a socket exists and is bound from the start (R216). Receiving is a future (R217,
//! R219, R221, R234), which takes what is there at once, so that a task may go on until nothing
//! waits (R218). A send is tried at once and ends with the attempt, nothing is queued (R223–R226,
//! R229). What is sent to an address over a connected socket is up to the kernel (R228). The
//! kernel's error queue is not read (R232).
#![cfg(feature = "net")]

use crate::util::errno::Errno;
use crate::util::trace::{ZERO, finish, ms, paused, turn};
use crate::util::udp::{
    V4, V6, address, assert_errno, assert_no_peer, bind, both_protocols, closed_address, receive,
};
use std::cell::Cell;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

use futures::FutureExt;
use phaseloop::net::{UdpOptions, UdpSocket};
use phaseloop::phase::{Check, Idle};
use phaseloop::time::Timer;
use phaseloop::{Handle, Keeper, LoopHandle, block_on, spawn};
use socket2::SockRef;
use tokio_test::assert_pending;

/// Sends to a closed port until the answer is there: the error of an earlier datagram. Windows
/// reports none.
#[cfg(unix)]
async fn until_refused(socket: &UdpSocket) {
    socket.connect(closed_address()).await.unwrap();
    loop {
        if let Err(error) = socket.send(b"x").await {
            return assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        }
    }
}

// Bound, connected, adopted.

#[test]
fn r216_getsockname_a_socket_is_bound_from_the_start() {
    block_on(async {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let local = address(&socket);
        assert!(local.ip().is_loopback() && local.port() != 0);
        let error = socket.peer_addr().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotConnected);
        let any = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await.unwrap();
        assert!(address(&any).ip().is_unspecified());
    });
}

#[test]
fn r231_libuv_udp_bind() {
    block_on(async {
        let first = bind();
        let second = UdpSocket::bind(address(&first)).await;
        assert_eq!(second.unwrap_err().kind(), ErrorKind::AddrInUse);
        // Of several addresses the first that can be bound; the error is that of the last.
        let addresses = [address(&first), V4.into()];
        let third = UdpSocket::bind(&addresses[..]).await.unwrap();
        assert_ne!(address(&third), address(&first));
        let none: [SocketAddr; 0] = [];
        let error = UdpSocket::bind(&none[..]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let only = UdpOptions::new().only_v6(true);
        // Wine takes it.
        if cfg!(unix) {
            UdpSocket::bind_with(V4.into(), only).unwrap_err();
        }
        assert_eq!(LoopHandle::current().handles().len(), 2);
    });
}

#[test]
fn r231_libuv_udp_bind_reuseaddr_and_udp_reuseport() {
    block_on(async {
        let shared = [
            UdpOptions::new().reuse_address(true),
            UdpOptions::new().reuse_port(true),
        ];
        // Windows has the first option only.
        for shared in shared.into_iter().take(if cfg!(unix) { 2 } else { 1 }) {
            let first = UdpSocket::bind_with(V4.into(), shared).unwrap();
            let second = UdpSocket::bind_with(address(&first), shared).unwrap();
            assert_eq!(address(&first), address(&second));
            let sender = bind();
            sender.send_to(b"x", address(&first)).await.unwrap();
            // One of them has it.
            let received =
                futures::future::select(Box::pin(receive(&first)), Box::pin(receive(&second)));
            let ((text, from), _) = received.await.factor_first();
            assert_eq!((text.as_str(), from), ("x", address(&sender)));
        }
    });
}

#[test]
fn r228_libuv_udp_connect_and_udp_connect6() {
    block_on(async {
        for [client, server] in both_protocols().await {
            assert_no_peer(client.send(b"nowhere").await);
            client.connect(address(&server)).await.unwrap();
            assert_eq!(client.peer_addr().unwrap(), address(&server));
            assert_eq!(client.send(b"hello").await.unwrap(), 5);
            assert_eq!(
                receive(&server).await,
                ("hello".to_owned(), address(&client))
            );
            // A connected socket receives from its peer only.
            let third = UdpSocket::bind((address(&server).ip(), 0)).await.unwrap();
            third.send_to(b"spam", address(&client)).await.unwrap();
            server.send_to(b"answer", address(&client)).await.unwrap();
            let mut buffer = [0; 16];
            let length = client.recv(&mut buffer).await.unwrap();
            assert_eq!(&buffer[..length], b"answer");
            // To another peer.
            client.connect(address(&third)).await.unwrap();
            client.send(b"moved").await.unwrap();
            assert_eq!(receive(&third).await.0, "moved");
            // An address is taken although there is a peer.
            client.send_to(b"aside", address(&server)).await.unwrap();
            assert_eq!(receive(&server).await.0, "aside");
        }
    });
}

#[test]
fn libuv_udp_create_early_bad_bind() {
    block_on(async {
        let socket = bind();
        let v6 = SocketAddr::from(V6);
        // The families differ.
        socket.connect(v6).await.unwrap_err();
        socket.send_to(b"x", v6).await.unwrap_err();
        socket.try_send_to(b"x", v6).unwrap_err();
    });
}

#[test]
fn libuv_udp_open_and_udp_open_bound_and_udp_open_connect() {
    block_on(async {
        let peer = bind();
        let foreign = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        foreign.connect(address(&peer)).unwrap();
        let local = foreign.local_addr().unwrap();
        let socket = UdpSocket::from_std(foreign).unwrap();
        assert_eq!(address(&socket), local);
        assert_eq!(socket.peer_addr().unwrap(), address(&peer));
        let reader = spawn(async move { receive(&peer).await });
        socket.send(b"x").await.unwrap();
        assert_eq!(reader.await.unwrap(), ("x".to_owned(), local));
        // And back: off the loop, still bound and connected.
        let foreign = socket.into_std();
        assert_eq!(foreign.local_addr().unwrap(), local);
        assert!(foreign.peer_addr().is_ok());
        assert_eq!(LoopHandle::current().handles(), []);
    });
}

// Sending and receiving.

#[test]
fn libuv_udp_send_and_recv() {
    block_on(async {
        for [a, b] in both_protocols().await {
            assert_eq!(a.send_to(b"PING", address(&b)).await.unwrap(), 4);
            let (text, from) = receive(&b).await;
            assert_eq!((text.as_str(), from), ("PING", address(&a)));
            b.send_to(b"PONG", from).await.unwrap();
            assert_eq!(receive(&a).await, ("PONG".to_owned(), address(&b)));
        }
    });
}

#[test]
fn libuv_udp_recv_in_a_row_and_r218_a_reader_takes_all_that_waits() {
    let (mut event_loop, handle, trace) = paused();
    let check = Check::new(&handle);
    check.start(trace.on("check")).unwrap();
    let (receiver, sender) = event_loop.enter(|| (bind(), bind()));
    let to = address(&receiver);
    let count = Rc::new(Cell::new(0));
    let (received, log) = (count.clone(), trace.clone());
    drop(handle.spawn(async move {
        while received.get() < 40 {
            receive(&receiver).await;
            received.set(received.get() + 1);
        }
        log.log("all");
    }));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "check");
    for _ in 0..40 {
        sender.get_ref().send_to(b"x", to).unwrap();
    }
    turn(&mut event_loop);
    assert_eq!(trace.take(), "all check", "one poll phase for all of them");
}

#[test]
fn a_datagram_wakes_its_reader_in_the_poll_phase() {
    let (mut event_loop, handle, trace) = paused();
    let check = Check::new(&handle);
    check.start(trace.on("check")).unwrap();
    let (receiver, sender) = event_loop.enter(|| (bind(), bind()));
    let to = address(&receiver);
    let log = trace.clone();
    drop(handle.spawn(async move {
        log.log(receive(&receiver).await.0);
    }));
    drop(handle.set_immediate(trace.call("immediate")));
    sender.get_ref().send_to(b"datagram", to).unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "datagram check immediate");
}

#[test]
fn r219_an_empty_datagram_has_a_sender() {
    block_on(async {
        let (a, b) = (bind(), bind());
        assert_eq!(a.send_to(b"", address(&b)).await.unwrap(), 0);
        assert_eq!(receive(&b).await, (String::new(), address(&a)));
        // Not the end: there is none.
        a.send_to(b"x", address(&b)).await.unwrap();
        assert_eq!(receive(&b).await.0, "x");
    });
}

#[test]
fn r220_a_datagram_that_is_too_long_is_cut() {
    block_on(async {
        let (a, b) = (bind(), bind());
        a.send_to(b"0123456789", address(&b)).await.unwrap();
        a.send_to(b"next", address(&b)).await.unwrap();
        let mut buffer = [0; 4];
        let (length, _) = b.recv_from(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], b"0123");
        assert_eq!(receive(&b).await.0, "next", "the rest is lost");
    });
}

/// No room at all takes the datagram and returns nothing of it.
#[test]
fn r221_an_empty_buffer_is_no_error() {
    block_on(async {
        let (a, b) = (bind(), bind());
        a.send_to(b"lost", address(&b)).await.unwrap();
        a.send_to(b"next", address(&b)).await.unwrap();
        assert_eq!(b.recv_from(&mut []).await.unwrap(), (0, address(&a)));
        assert_eq!(receive(&b).await.0, "next");
    });
}

#[test]
fn a_peek_leaves_the_datagram() {
    block_on(async {
        let (a, b) = (bind(), bind());
        a.send_to(b"hello", address(&b)).await.unwrap();
        for _ in 0..2 {
            let mut buffer = [0; 16];
            let (length, from) = b.peek_from(&mut buffer).await.unwrap();
            assert_eq!((&buffer[..length], from), (&b"hello"[..], address(&a)));
        }
        assert_eq!(receive(&b).await.0, "hello");
    });
}

#[test]
fn libuv_udp_dgram_too_big() {
    block_on(async {
        let (a, b) = (bind(), bind());
        let huge = vec![0; 65_536];
        assert_errno(a.send_to(&huge, address(&b)).await, Errno::MSGSIZE);
        a.send_to(b"small", address(&b)).await.unwrap();
        assert_eq!(receive(&b).await.0, "small");
    });
}

#[test]
fn r223_libuv_udp_send_immediate() {
    block_on(async {
        let (a, b) = (bind(), bind());
        let to = address(&b);
        // Tried at once: there is room from the start, as soon as the loop knows it.
        a.writable().await.unwrap();
        assert_eq!(a.send_to(b"one", to).now_or_never().unwrap().unwrap(), 3);
        // And again from where a send has ended.
        assert_eq!(a.send_to(b"two", to).now_or_never().unwrap().unwrap(), 3);
        assert_eq!(receive(&b).await.0, "one");
        assert_eq!(receive(&b).await.0, "two");
    });
}

#[test]
fn r226_libuv_udp_try_send() {
    block_on(async {
        let (a, b) = (bind(), bind());
        let to = address(&b);
        assert!(a.try_send(b"x").is_err(), "no peer");
        assert_eq!(a.try_send_to(b"hello", to).unwrap(), 5);
        a.connect(to).await.unwrap();
        assert_eq!(a.try_send(b"peer").unwrap(), 4);
        let error = a.try_send(&vec![0; 65_536]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::MSGSIZE.raw_os_error()));
        b.readable().await.unwrap();
        let mut buffer = [0; 16];
        assert_eq!(
            b.try_recv_from(&mut buffer).unwrap(),
            (5, a.local_addr().unwrap())
        );
        assert_eq!(b.try_recv_from(&mut buffer).unwrap().0, 4);
        let error = b.try_recv_from(&mut buffer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    });
}

/// The datagrams are not received and the kernel drops them: sends go on, one in each idle
/// callback.
#[test]
fn libuv_udp_send_hang_loop() {
    let (mut event_loop, handle, _) = paused();
    let socket = event_loop.enter(|| Rc::new(bind()));
    let (idle, sent) = (Idle::new(&handle), Rc::new(Cell::new(0)));
    let (sender, count) = (socket.clone(), sent.clone());
    let closed = event_loop.enter(closed_address);
    let start = move |idle: &Idle| {
        let (sender, count) = (sender.clone(), count.clone());
        if count.get() == 1000 {
            return idle.stop();
        }
        count.set(count.get() + 1);
        drop(spawn(async move {
            sender.send_to(&[0; 1024], closed).await.unwrap();
        }));
    };
    idle.start(start).unwrap();
    finish(&mut event_loop);
    assert_eq!(sent.get(), 1000);
    assert_eq!(handle.tasks().len(), 0, "all sends have ended");
}

#[test]
fn a_reader_that_is_given_up_loses_nothing() {
    block_on(async {
        let (a, b) = (bind(), bind());
        assert_pending!(tokio_test::task::spawn(receive(&b)).poll());
        a.send_to(b"kept", address(&b)).await.unwrap();
        assert_eq!(receive(&b).await.0, "kept");
    });
}

#[test]
fn r230_r234_active_while_somebody_waits() {
    let (mut event_loop, handle, trace) = paused();
    let socket = event_loop.enter(|| Rc::new(bind()));
    assert!(!socket.is_active());
    let (reader, log) = (socket.clone(), trace.clone());
    let task = handle.spawn(async move { log.log(receive(&reader).await.0) });
    turn(&mut event_loop);
    assert!(socket.is_active() && handle.is_alive());
    assert_eq!(handle.keepers(), [(Keeper::Io, 1)]);
    socket.unref();
    assert!(!handle.is_alive());
    socket.ref_();
    task.abort();
    finish(&mut event_loop);
    assert!(!socket.is_active());
    // Closed: off the loop at once, reported in the closing phase.
    let socket = Rc::try_unwrap(socket).unwrap();
    let local = address(&socket);
    let close = socket.close();
    std::net::UdpSocket::bind(local).expect("its port is free");
    close.then(trace.call("closed"));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "closed");
    assert_eq!(handle.handles(), []);
}

// Errors from afar.

#[cfg(unix)]
#[test]
fn r232_libuv_udp_send_unreachable_and_udp_recvmsg_unreachable_error() {
    block_on(async {
        for [socket, _] in both_protocols().await {
            let gone = UdpSocket::bind((address(&socket).ip(), 0)).await.unwrap();
            let closed = address(&gone);
            drop(gone);
            // Without a peer the error is not reported.
            for _ in 0..10 {
                socket.send_to(b"x", closed).await.unwrap();
            }
            assert_pending!(tokio_test::task::spawn(receive(&socket)).poll());
            assert!(socket.take_error().unwrap().is_none());
            // With a peer, the next operation returns it: here the read.
            socket.connect(closed).await.unwrap();
            socket.send(b"x").await.unwrap();
            let error = socket.recv(&mut [0; 8]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
            // Once; then the socket works.
            let peer = UdpSocket::bind((address(&socket).ip(), 0)).await.unwrap();
            socket.connect(address(&peer)).await.unwrap();
            peer.send_to(b"hello", address(&socket)).await.unwrap();
            assert_eq!(receive(&socket).await.0, "hello");
        }
    });
}

#[cfg(unix)]
#[test]
fn libuv_udp_send_pollerr_no_recv() {
    let (mut event_loop, handle, _) = paused();
    let socket = event_loop.enter(bind);
    let checked = handle.spawn(async move {
        until_refused(&socket).await;
        // One more datagram, which is not received.
        let _ = socket.send(b"x").await;
        socket
    });
    finish(&mut event_loop);
    let socket = checked.now_or_never().unwrap().unwrap();
    // The loop does not spin because of it.
    let (timer, turns) = (Timer::new(&handle), handle.turns());
    timer.start(ms(10), ZERO, |_| ()).unwrap();
    finish(&mut event_loop);
    assert_eq!(handle.turns() - turns, 1);
    assert!(!socket.is_active());
}

#[cfg(unix)]
#[test]
fn libuv_udp_recv_cb_close_pollerr() {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    drop(handle.spawn(async move {
        let socket = bind();
        until_refused(&socket).await;
        let _ = socket.send(b"x").await;
        let error = socket.recv(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        // Closed where the error came, with another one under way.
        let _ = socket.send(b"x").await;
        socket.close().await;
        log.log("closed");
    }));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "closed");
}

// Options.

#[test]
fn r233_libuv_udp_options_and_udp_options6() {
    block_on(async {
        for [socket, _] in both_protocols().await {
            let is_v4 = address(&socket).is_ipv4();
            socket.set_broadcast(true).unwrap();
            assert!(socket.get_ref().broadcast().unwrap());
            socket.set_broadcast(false).unwrap();
            assert!(!socket.get_ref().broadcast().unwrap());
            for ttl in [1, 37, 255] {
                socket.set_ttl(ttl).unwrap();
                let found = match is_v4 {
                    true => SockRef::from(socket.get_ref()).ttl_v4().unwrap(),
                    false => SockRef::from(socket.get_ref()).unicast_hops_v6().unwrap(),
                };
                assert_eq!(found, ttl);
            }
            for ttl in [0, 256, u32::MAX] {
                let error = socket.set_ttl(ttl).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidInput, "{ttl}");
            }
            for ttl in [0, 37, 255] {
                socket.set_multicast_ttl(ttl).unwrap();
                let found = match is_v4 {
                    true => SockRef::from(socket.get_ref()).multicast_ttl_v4().unwrap(),
                    false => SockRef::from(socket.get_ref()).multicast_hops_v6().unwrap(),
                };
                assert_eq!(found, ttl);
            }
            for ttl in [256, u32::MAX] {
                let error = socket.set_multicast_ttl(ttl).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidInput, "{ttl}");
            }
            for receive_own in [false, true] {
                socket.set_multicast_loop(receive_own).unwrap();
                let found = match is_v4 {
                    true => socket.get_ref().multicast_loop_v4(),
                    false => socket.get_ref().multicast_loop_v6(),
                };
                assert_eq!(found.unwrap(), receive_own);
            }
        }
    });
}

#[test]
fn libuv_udp_dual_stack_and_udp_ipv6_only() {
    block_on(async {
        for only in [false, true] {
            let any = (Ipv6Addr::UNSPECIFIED, 0).into();
            let options = UdpOptions::new().only_v6(only);
            let Ok(socket) = UdpSocket::bind_with(any, options) else {
                return; // A machine without IPv6.
            };
            let sender = bind();
            let to = SocketAddr::from((Ipv4Addr::LOCALHOST, address(&socket).port()));
            if only && cfg!(windows) {
                // What is sent over IPv4 does not arrive, and no error says so.
                sender.send_to(b"x", to).await.unwrap();
                assert_pending!(tokio_test::task::spawn(receive(&socket)).poll());
            } else if only {
                // Its port is free over IPv4: no socket receives, and the sender gets an error.
                sender.connect(to).await.unwrap();
                sender.send(b"x").await.unwrap();
                let error = sender.recv(&mut [0; 8]).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
            } else {
                sender.send_to(b"x", to).await.unwrap();
                let (text, from) = receive(&socket).await;
                let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped();
                let expected = SocketAddr::from((mapped, address(&sender).port()));
                assert_eq!((text.as_str(), from), ("x", expected));
            }
        }
    });
}

/// A group on the loopback interface.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);

#[test]
fn r233_libuv_udp_multicast_join() {
    block_on(async {
        let any = (Ipv4Addr::UNSPECIFIED, 0).into();
        let member = UdpSocket::bind_with(any, UdpOptions::new()).unwrap();
        let sender = bind();
        sender
            .set_multicast_interface_v4(&Ipv4Addr::LOCALHOST)
            .unwrap();
        sender.set_multicast_ttl(1).unwrap();
        let group = SocketAddr::from((GROUP, address(&member).port()));
        let plain = SocketAddr::from((Ipv4Addr::LOCALHOST, address(&member).port()));

        member
            .join_multicast_v4(&GROUP, &Ipv4Addr::LOCALHOST)
            .unwrap();
        sender.send_to(b"group", group).await.unwrap();
        assert_eq!(
            receive(&member).await,
            ("group".to_owned(), address(&sender))
        );
        member
            .leave_multicast_v4(&GROUP, &Ipv4Addr::LOCALHOST)
            .unwrap();
        member
            .leave_multicast_v4(&GROUP, &Ipv4Addr::LOCALHOST)
            .expect_err("it has left");
        sender.send_to(b"missed", group).await.unwrap();
        sender.send_to(b"plain", plain).await.unwrap();
        assert_eq!(receive(&member).await.0, "plain");

        // Membership for a single sender, whichever other host sends.
        let here = Ipv4Addr::LOCALHOST;
        let other = Ipv4Addr::new(127, 0, 0, 2);
        member
            .join_multicast_from_v4(&other, &GROUP, &here)
            .unwrap();
        sender.send_to(b"not of this one", group).await.unwrap();
        sender.send_to(b"plain", plain).await.unwrap();
        assert_eq!(receive(&member).await.0, "plain");
        member
            .leave_multicast_from_v4(&other, &GROUP, &here)
            .unwrap();
        member.join_multicast_from_v4(&here, &GROUP, &here).unwrap();
        sender.send_to(b"of this one", group).await.unwrap();
        assert_eq!(receive(&member).await.0, "of this one");
    });
}

#[test]
fn libuv_udp_multicast_join6_and_udp_multicast_interface6() {
    /// The loopback interface is the first on every Linux.
    const LOOPBACK: u32 = 1;
    block_on(async {
        let Ok(member) = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).await else {
            return; // A machine without IPv6.
        };
        let Ok(sender) = UdpSocket::bind(V6).await else {
            return;
        };
        // Of this interface only.
        let group = Ipv6Addr::new(0xff01, 0, 0, 0, 0, 0, 0, 0x1234);
        sender.set_multicast_interface_v6(LOOPBACK).unwrap();
        sender.set_multicast_interface_v6(u32::MAX).unwrap_err();
        member.join_multicast_v6(&group, LOOPBACK).unwrap();
        let to = SocketAddr::from((group, address(&member).port()));
        match sender.send_to(b"group", to).await {
            Ok(_) => assert_eq!(receive(&member).await.0, "group"),
            // A loopback interface without a route for groups, as it usually is.
            Err(error) => assert_eq!(error.kind(), ErrorKind::NetworkUnreachable),
        }
        member.leave_multicast_v6(&group, LOOPBACK).unwrap();
        member.leave_multicast_v6(&group, LOOPBACK).unwrap_err();
    });
}

#[test]
fn libuv_udp_multicast_interface_and_udp_multicast_ttl() {
    block_on(async {
        let socket = bind();
        let here = Ipv4Addr::LOCALHOST;
        socket.set_multicast_interface_v4(&here).unwrap();
        socket
            .set_multicast_interface_v4(&Ipv4Addr::new(192, 0, 2, 254))
            .expect_err("no interface has this address");
        socket.set_multicast_ttl(32).unwrap();
        let to = (GROUP, address(&socket).port()).into();
        assert_eq!(socket.send_to(b"x", to).await.unwrap(), 1);
    });
}

/// Through the socket itself. Linux doubles what is set.
#[test]
fn libuv_socket_buffer_size() {
    block_on(async {
        let socket = bind();
        let socket = SockRef::from(socket.get_ref());
        socket.set_send_buffer_size(10_000).unwrap();
        socket.set_recv_buffer_size(20_000).unwrap();
        let (send, receive) = (
            socket.send_buffer_size().unwrap(),
            socket.recv_buffer_size().unwrap(),
        );
        assert!([10_000, 20_000].contains(&send), "{send}");
        assert!([20_000, 40_000].contains(&receive), "{receive}");
    });
}

#[test]
fn debug_says_where_it_is() {
    let (event_loop, ..) = paused();
    let socket = event_loop.enter(bind);
    let text = format!("{socket:?}");
    assert!(text.contains(&address(&socket).to_string()), "{text}");
}
