//! UDP in batches, R220, R222, R224, R225, R227: many datagrams are received and sent together,
//! each with its address; what is not sent stays, an error belongs to one datagram.
//!
//! Ours differs from libuv: a batch is a value with room of its own (R222), as large as one likes
//! (R224), and knows what was sent (R227).
#![cfg(feature = "net")]

use crate::util::errno::Errno;
use crate::util::files::Directory;
use crate::util::panics::panic_of;
use crate::util::trace::{paused, turn};
use crate::util::udp::{
    address, assert_errno, assert_no_peer, bind, both_protocols, closed_address, receive,
};
use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
#[cfg(unix)]
use std::os::{fd::OwnedFd, unix::net::UnixDatagram};

use futures::FutureExt;
use phaseloop::net::{Batch, Datagram, UdpSocket};
use phaseloop::phase::Check;
use phaseloop::{block_on, spawn};
use tokio_test::assert_pending;

/// What is in a batch, as text.
fn texts(batch: &Batch) -> Vec<String> {
    let text = |datagram: Datagram<'_>| String::from_utf8_lossy(datagram.bytes()).into_owned();
    batch.iter().map(text).collect()
}

/// A batch of such texts for an address.
fn batch_of(texts: &[&str], to: SocketAddr) -> Batch {
    let mut batch = Batch::new(texts.len(), 1500);
    for text in texts {
        batch.push(text.as_bytes(), to).unwrap();
    }
    batch
}

#[test]
fn r222_r224_libuv_udp_mmsg() {
    block_on(async {
        let (a, b) = (bind(), bind());
        let sent: Vec<String> = (0..70).map(|number| number.to_string()).collect();
        let mut batch = Batch::new(70, 16);
        for text in &sent {
            batch.push(text.as_bytes(), address(&b)).unwrap();
        }
        assert_eq!(texts(&batch), sent);
        a.send_batch(&mut batch).await.unwrap();
        assert!(batch.is_empty());

        let mut batch = Batch::new(64, 16);
        assert_eq!((batch.len(), batch.capacity()), (0, 64));
        let mut received = Vec::new();
        for expected in [64, 6] {
            assert_eq!(b.recv_batch(&mut batch).await.unwrap(), expected);
            assert_eq!((batch.len(), batch.is_empty()), (expected, false));
            assert_eq!(batch.iter().len(), expected);
            for datagram in &batch {
                assert_eq!(datagram.address(), Some(address(&a)));
                assert!(!datagram.is_truncated());
            }
            received.extend(texts(&batch));
        }
        assert_eq!(received, sent, "all of them, in order");
    });
}

#[test]
fn r220_r222_libuv_udp_mmsg_small_buf() {
    let cut_or_not = |batch: &Batch| -> Vec<_> {
        let one = |datagram: Datagram<'_>| (datagram.bytes().to_vec(), datagram.is_truncated());
        batch.iter().map(one).collect()
    };
    block_on(async {
        let (a, b) = (bind(), bind());
        for text in ["long enough", "", "abc"] {
            a.send_to(text.as_bytes(), address(&b)).await.unwrap();
        }
        // Room for two, of three bytes.
        let mut batch = Batch::new(2, 3);
        assert_eq!(b.recv_batch(&mut batch).await.unwrap(), 2);
        assert_eq!(
            cut_or_not(&batch),
            [(b"lon".to_vec(), true), (Vec::new(), false)]
        );
        // The next receive replaces them.
        assert_eq!(b.recv_batch(&mut batch).await.unwrap(), 1);
        assert_eq!(cut_or_not(&batch), [(b"abc".to_vec(), false)]);
        // No room at all still takes one at a time, and none is not a number of datagrams.
        a.send_to(b"x", address(&b)).await.unwrap();
        let mut none = Batch::new(0, 0);
        assert_eq!((none.capacity(), none.datagram_size()), (1, 0));
        assert_eq!(b.recv_batch(&mut none).await.unwrap(), 1);
        assert_eq!(cut_or_not(&none), [(Vec::new(), true)]);
        assert!(none.iter_mut().all(|mut one| one.room_mut().is_empty()));
    });
}

/// No UDP socket has a sender without an address, but a Unix socket without a name is one.
#[cfg(unix)]
#[test]
fn libuv_udp_mmsg_namelen_zero() {
    let wrapped = |socket: UnixDatagram| {
        UdpSocket::from_std(std::net::UdpSocket::from(OwnedFd::from(socket))).unwrap()
    };
    block_on(async {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        let ours = wrapped(ours);
        let mut batch = Batch::new(4, 16);
        theirs.send(b"x").unwrap();
        ours.recv_batch(&mut batch).await.unwrap();
        assert_eq!(batch.iter().next().unwrap().address(), None);
        // It goes to the peer.
        ours.send_batch(&mut batch).await.unwrap();
        assert_eq!(theirs.recv(&mut [0; 8]).unwrap(), 1);

        // A name that is longer than the addresses of UDP is none, either.
        let directory = Directory::new("namelen");
        let (here, there) = (directory.path("here"), directory.path("t".repeat(40)));
        let ours = wrapped(UnixDatagram::bind(&here).unwrap());
        let theirs = UnixDatagram::bind(there).unwrap();
        theirs.send_to(b"x", &here).unwrap();
        ours.recv_batch(&mut batch).await.unwrap();
        assert_eq!(batch.iter().next().unwrap().address(), None);
        let error = ours.send_batch(&mut batch).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotConnected);
    });
}

#[test]
#[should_panic(expected = "no batch is that large")]
fn a_batch_larger_than_memory_is_refused() {
    drop(Batch::new(usize::MAX / 2, 4));
}

// A server.

#[test]
fn a_received_batch_goes_back_as_it_is() {
    block_on(async {
        // One for both, so that the addresses of one protocol follow those of the other.
        let mut batch = Batch::new(32, 64);
        for [server, client] in both_protocols().await {
            let ip = address(&server).ip();
            let mut clients = vec![client];
            for _ in 1..20 {
                clients.push(UdpSocket::bind((ip, 0)).await.unwrap());
            }
            for (number, client) in clients.iter().enumerate() {
                let text = "x".repeat(number);
                client
                    .send_to(text.as_bytes(), address(&server))
                    .await
                    .unwrap();
            }
            // Twice, so that nothing of the first round is left in the second.
            for _ in 0..2 {
                assert_eq!(server.recv_batch(&mut batch).await.unwrap(), 20);
                let senders = clients.iter().map(|client| Some(address(client)));
                assert!(batch.iter().map(|one| one.address()).eq(senders));
                server.send_batch(&mut batch).await.unwrap();
                assert_eq!((batch.len(), batch.iter().len()), (0, 0));
                for (number, client) in clients.iter().enumerate() {
                    let answer = receive(client).await;
                    assert_eq!(answer, ("x".repeat(number), address(&server)));
                    let text = answer.0.as_bytes();
                    client.send_to(text, address(&server)).await.unwrap();
                }
            }
        }
    });
}

#[test]
fn datagrams_are_changed_in_place() {
    block_on(async {
        let (a, b, c) = (bind(), bind(), bind());
        let sent = ["upper", "other", "forward", "room"];
        a.send_batch(&mut batch_of(&sent, address(&b)))
            .await
            .unwrap();
        let mut batch = Batch::new(8, 8);
        b.recv_batch(&mut batch).await.unwrap();
        assert_eq!(batch.iter_mut().len(), 4);
        for mut datagram in &mut batch {
            assert_eq!(datagram.address(), Some(address(&a)));
            match datagram.bytes() {
                b"upper" => datagram.bytes_mut().make_ascii_uppercase(),
                b"other" => {
                    datagram.set_bytes(b"another").unwrap();
                    let error = datagram.set_bytes(b"too long for it").unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::InvalidInput);
                    assert_eq!(datagram.bytes(), b"another", "as it was");
                }
                b"forward" => {
                    datagram.set_address(address(&c));
                    assert_eq!(datagram.address(), Some(address(&c)));
                }
                _ => {
                    assert_eq!(datagram.room_mut().len(), 8);
                    datagram.room_mut()[4..8].copy_from_slice(b"iest");
                    datagram.set_len(8);
                }
            }
        }
        b.send_batch(&mut batch).await.unwrap();
        for expected in ["UPPER", "another", "roomiest"] {
            assert_eq!(receive(&a).await, (expected.to_owned(), address(&b)));
        }
        assert_eq!(receive(&c).await.0, "forward");
    });
}

#[test]
fn what_was_cut_and_is_changed_is_whole() {
    block_on(async {
        let (a, b) = (bind(), bind());
        a.send_to(b"0123456789", address(&b)).await.unwrap();
        a.send_to(b"0123456789", address(&b)).await.unwrap();
        let mut batch = Batch::new(8, 4);
        b.recv_batch(&mut batch).await.unwrap();
        let mut datagrams = batch.iter_mut();
        let (mut one, mut other) = (datagrams.next().unwrap(), datagrams.next().unwrap());
        assert!(one.is_truncated() && other.is_truncated());
        one.set_len(2);
        other.set_bytes(b"new").unwrap();
        assert!(!one.is_truncated() && !other.is_truncated());
        let panic = panic_of(|| one.set_len(5));
        assert_eq!(panic, "5 of 4 bytes");
        assert_eq!(texts(&batch), ["01", "new"]);
    });
}

#[test]
fn some_are_kept_and_some_are_not() {
    let texts_and_ports = |batch: &Batch| -> Vec<(String, u16)> {
        let ports = batch.iter().map(|one| one.address().unwrap().port());
        texts(batch).into_iter().zip(ports).collect()
    };
    let (to, mut kept) = (unused_address(), Vec::new());
    let mut batch = Batch::new(5, 8);
    for text in ["a", "bb", "ccc", "dddd", "eeeee"] {
        let to = SocketAddr::new(to.ip(), text.len() as u16);
        batch.push(text.as_bytes(), to).unwrap();
    }
    batch.retain_mut(|mut datagram| {
        datagram.bytes_mut().make_ascii_uppercase();
        kept.push(datagram.bytes().len());
        datagram.bytes().len() % 2 == 1
    });
    assert_eq!(kept, [1, 2, 3, 4, 5], "all are seen, in order");
    let expected = [("A", 1), ("CCC", 3), ("EEEEE", 5)];
    let expected = expected.map(|(text, port)| (text.to_owned(), port));
    assert_eq!(texts_and_ports(&batch), expected);
    // There is room again.
    batch.push(b"f", to).unwrap();
    batch.push(b"g", to).unwrap();
    batch.push(b"h", to).unwrap_err();
    assert_eq!(texts(&batch), ["A", "CCC", "EEEEE", "f", "g"]);
    // A panic drops what was not seen, and what was not kept.
    panic_of(|| {
        batch.retain_mut(|datagram| match datagram.bytes() {
            b"f" => panic!("here"),
            bytes => bytes != b"CCC",
        });
    });
    assert_eq!(texts(&batch), ["A", "EEEEE"]);
    batch.retain_mut(|_| false);
    assert!(batch.is_empty());
}

#[test]
fn answers_are_collected_in_another_batch() {
    block_on(async {
        for [server, client] in both_protocols().await {
            let mut questions = batch_of(&["one", "two", "three"], address(&server));
            client.send_batch(&mut questions).await.unwrap();
            let mut answers = Batch::new(8, 8);
            let mut questions = Batch::new(8, 8);
            server.recv_batch(&mut questions).await.unwrap();
            for question in &questions {
                let length = question.bytes().len().to_string();
                answers.push_reply(&question, length.as_bytes()).unwrap();
                let answer = answers.iter().last().unwrap();
                assert_eq!(answer.address(), Some(address(&client)));
            }
            server.send_batch(&mut answers).await.unwrap();
            for expected in ["3", "3", "5"] {
                assert_eq!(receive(&client).await.0, expected);
            }
        }
    });
}

// What goes in.

#[test]
fn there_is_so_much_room_and_no_more() {
    let to = unused_address();
    let mut batch = Batch::new(2, 4);
    let error = batch.push(b"12345", to).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let text = error.to_string();
    assert!(text.contains("5 bytes") && text.contains('4'), "{text}");
    assert!(batch.is_empty());
    batch.push(b"1234", to).unwrap();
    batch.push(b"", to).unwrap();
    let error = batch.push(b"x", to).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert!(error.to_string().contains("2 datagrams"), "{error}");
    assert_eq!(texts(&batch), ["1234", ""], "as it was");
    batch.clear();
    batch.push(b"x", to).unwrap();
    assert_eq!(texts(&batch), ["x"]);
}

fn unused_address() -> SocketAddr {
    ([127, 0, 0, 1], 9).into()
}

#[test]
fn addresses_come_out_as_they_went_in() {
    let ip = Ipv6Addr::new(0xfe80, 1, 2, 3, 4, 5, 6, 7);
    let addresses: [SocketAddr; 4] = [
        ([192, 0, 2, 1], 0).into(),
        ([255, 255, 255, 255], u16::MAX).into(),
        (Ipv6Addr::LOCALHOST, 80).into(),
        SocketAddrV6::new(ip, 4711, 0x000a_bcde, 42).into(),
    ];
    let mut batch = Batch::new(8, 8);
    for address in addresses {
        batch.push(b"x", address).unwrap();
    }
    batch.push_to_peer(b"x").unwrap();
    let seen: Vec<_> = batch.iter().map(|datagram| datagram.address()).collect();
    assert_eq!(seen[..4], addresses.map(Some));
    assert_eq!(seen[4], None);
}

/// Over an interface that has link-local addresses, if there is one.
#[cfg(unix)]
#[test]
fn scopes_of_ipv6_addresses_are_kept() {
    let interfaces = phaseloop::os::network_interfaces().unwrap();
    let scoped = interfaces
        .iter()
        .find_map(|interface| match interface.address {
            IpAddr::V6(ip) if ip.is_unicast_link_local() => {
                Some(SocketAddrV6::new(ip, 0, 0, interface.scope_id))
            }
            _ => None,
        });
    let Some(scoped) = scoped else {
        eprintln!("skipped: no interface with a link-local address");
        return;
    };
    block_on(async {
        let a = UdpSocket::bind(scoped).await.unwrap();
        let b = UdpSocket::bind(scoped).await.unwrap();
        assert_ne!(scoped.scope_id(), 0);
        let mut batch = batch_of(&["there"], address(&b));
        a.send_batch(&mut batch).await.unwrap();
        b.recv_batch(&mut batch).await.unwrap();
        let from = batch.iter().next().unwrap().address();
        assert_eq!(from, Some(address(&a)), "with its scope");
        // Back to an address that means nothing without the scope.
        b.send_batch(&mut batch).await.unwrap();
        assert_eq!(receive(&a).await, ("there".to_owned(), address(&b)));
    });
}

#[test]
fn a_connected_socket_needs_no_address() {
    block_on(async {
        for [a, b] in both_protocols().await {
            let mut batch = Batch::new(4, 16);
            batch.push_to_peer(b"nowhere").unwrap();
            assert_no_peer(a.send_batch(&mut batch).await);
            a.connect(address(&b)).await.unwrap();
            batch.push_to_peer(b"one").unwrap();
            batch.push_to_peer(b"").unwrap();
            a.send_batch(&mut batch).await.unwrap();
            b.recv_batch(&mut batch).await.unwrap();
            assert_eq!(texts(&batch), ["one", ""]);
            b.connect(address(&a)).await.unwrap();
            b.send_batch(&mut batch).await.unwrap();
            a.recv_batch(&mut batch).await.unwrap();
            assert_eq!(texts(&batch), ["one", ""]);
        }
    });
}

// Errors.

/// An error belongs to one datagram, which is shown; the others go.
#[test]
fn r225_r227_libuv_udp_sendmmsg_error() {
    block_on(async {
        let (a, b) = (bind(), bind());
        let (to, huge) = (address(&b), vec![0; 65_536]);
        let mut batch = Batch::new(8, huge.len());
        for bytes in [b"one", b"two", &huge[..], b"three", &huge[..1000], &huge] {
            batch.push(bytes, to).unwrap();
        }
        assert!(batch.failed().is_none());
        assert_errno(a.send_batch(&mut batch).await, Errno::MSGSIZE);
        let failed = batch.failed().unwrap();
        assert_eq!((failed.bytes(), failed.address()), (&huge[..], Some(to)));
        assert_eq!(batch.len(), 3, "those behind it");
        assert_errno(a.send_batch(&mut batch).await, Errno::MSGSIZE);
        assert_eq!((batch.len(), batch.failed().is_some()), (0, true));
        // Over with the next send, even of nothing.
        a.send_batch(&mut batch).await.unwrap();
        assert!(batch.failed().is_none());
        for expected in ["one", "two", "three"] {
            assert_eq!(receive(&b).await.0, expected);
        }
        assert_eq!(receive(&b).await.0.len(), 1000);
    });
}

#[test]
fn one_attempt_is_one_call() {
    block_on(async {
        let (a, b) = (bind(), bind());
        let huge = vec![0; 65_536];
        let mut batch = Batch::new(8, huge.len());
        assert_eq!(a.try_send_batch(&mut batch).unwrap(), 0);
        for bytes in [b"one", b"two", &huge[..], b"three"] {
            batch.push(bytes, address(&b)).unwrap();
        }
        assert_eq!(a.try_send_batch(&mut batch).unwrap(), 2);
        assert!(batch.failed().is_none());
        assert_errno(a.try_send_batch(&mut batch), Errno::MSGSIZE);
        assert!(batch.failed().is_some());
        assert_eq!(a.try_send_batch(&mut batch).unwrap(), 1);
        b.readable().await.unwrap();
        assert_eq!(b.try_recv_batch(&mut batch).unwrap(), 3);
        assert_eq!(texts(&batch), ["one", "two", "three"]);
        let error = b.try_recv_batch(&mut batch).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert!(batch.is_empty());
    });
}

#[cfg(unix)]
#[test]
fn a_refusal_of_the_peer_costs_one_datagram() {
    block_on(async {
        let lost = bind();
        lost.connect(closed_address()).await.unwrap();
        lost.send(b"x").await.unwrap();
        // The answer is there when the send is: over the loopback interface.
        let mut batch = Batch::new(4, 16);
        batch.push_to_peer(b"one").unwrap();
        batch.push_to_peer(b"two").unwrap();
        let error = lost.send_batch(&mut batch).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(batch.failed().unwrap().bytes(), b"one");
        assert_eq!(texts(&batch), ["two"]);
        // The reader is woken, too, and finds nothing.
        lost.send_batch(&mut batch).await.unwrap();
        batch.push_to_peer(b"three").unwrap();
        let error = lost.recv_batch(&mut batch).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert!(batch.is_empty() && batch.failed().is_none());
    });
}

// Waiting.

#[test]
fn an_empty_batch_is_sent_at_once() {
    block_on(async {
        let mut batch = Batch::new(4, 16);
        // Also by a socket that the loop does not know to be writable yet.
        let sent = bind().send_batch(&mut batch).now_or_never();
        sent.unwrap().unwrap();
    });
}

#[test]
fn a_receive_that_is_given_up_loses_nothing() {
    block_on(async {
        let (a, b) = (bind(), bind());
        let mut batch = Batch::new(1, 16);
        assert_pending!(tokio_test::task::spawn(b.recv_batch(&mut batch)).poll());
        a.send_batch(&mut batch_of(&["one", "two"], address(&b)))
            .await
            .unwrap();
        for expected in ["one", "two"] {
            assert_eq!(b.recv_batch(&mut batch).await.unwrap(), 1);
            assert_eq!(texts(&batch), [expected]);
        }
    });
}

#[test]
fn a_batch_wakes_its_reader_in_the_poll_phase() {
    let (mut event_loop, handle, trace) = paused();
    let check = Check::new(&handle);
    check.start(trace.on("check")).unwrap();
    let (receiver, sender) = event_loop.enter(|| (bind(), bind()));
    let to = address(&receiver);
    let log = trace.clone();
    drop(handle.spawn(async move {
        let mut batch = Batch::new(8, 16);
        receiver.recv_batch(&mut batch).await.unwrap();
        log.log(texts(&batch).join("+"));
    }));
    drop(handle.set_immediate(trace.call("immediate")));
    for text in [b"one", b"two"] {
        sender.get_ref().send_to(text, to).unwrap();
    }
    turn(&mut event_loop);
    assert_eq!(trace.take(), "one+two check immediate");
}

#[test]
fn futures_by_hand() {
    block_on(async {
        let (a, b) = (bind(), bind());
        let to = address(&b);
        let reader = spawn(async move {
            let mut batch = Batch::new(8, 16);
            let count = poll_fn(|cx| b.poll_recv_batch(cx, &mut batch)).await;
            (count.unwrap(), texts(&batch))
        });
        phaseloop::task::yield_now().await;
        let mut batch = batch_of(&["one", "two"], to);
        poll_fn(|cx| a.poll_send_batch(cx, &mut batch))
            .await
            .unwrap();
        assert!(batch.is_empty());
        let (count, texts) = reader.await.unwrap();
        assert_eq!(texts, ["one", "two"]);
        assert_eq!(count, 2);
    });
}

// Values.

#[test]
fn a_batch_may_go_to_another_thread() {
    let batch = batch_of(&["one", "two"], unused_address());
    let texts = std::thread::spawn(move || {
        let _shared: &(dyn Send + Sync) = &batch;
        texts(&batch)
    });
    assert_eq!(texts.join().unwrap(), ["one", "two"]);
}

#[test]
fn debug_says_what_there_is() {
    let mut batch = Batch::new(8, 100);
    batch.push(b"text", unused_address()).unwrap();
    let text = format!("{batch:?}");
    for part in ["len: 1", "capacity: 8", "datagram_size: 100"] {
        assert!(text.contains(part), "{text}");
    }
    let one = format!("{:?}", batch.iter().next().unwrap());
    for part in ["127.0.0.1:9", "length: 4", "truncated: false"] {
        assert!(one.contains(part), "{one}");
    }
    assert_eq!(format!("{:?}", batch.iter_mut().next().unwrap()), one);
}
