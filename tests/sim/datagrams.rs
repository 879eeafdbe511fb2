//! UDP in memory: as over the kernel's loopback interface, and what only a network shows.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use phaseloop::net::{Batch, UdpSocket};
use phaseloop::shuffle::{Explore, Kind};
use phaseloop::sim::{Link, Network, Settings};
use phaseloop::time::{sleep, timeout};
use phaseloop::{Builder, spawn};

use crate::both::{Log, scripts};

scripts! { 40,
    a_datagram_arrives_whole_with_its_sender,
    a_long_datagram_is_cut,
    an_empty_datagram_is_one,
    datagrams_of_one_sender_stay_in_order,
    a_connected_socket_hears_its_peer_only,
    a_socket_without_a_peer_cannot_send,
    a_closed_port_is_told_to_a_connected_socket,
    a_datagram_to_no_socket_is_lost,
    a_datagram_may_be_too_long,
    a_taken_port_is_in_use,
    addresses_are_returned,
    a_wildcard_socket_answers_from_the_address_that_was_asked,
    the_time_to_live_is_checked,
    ipv6_maps_ipv4,
}

scripts! { 0,
    a_receive_would_block,
    a_peek_leaves_the_datagram,
    a_batch_is_received_and_sent,
    readiness_tells_of_datagrams,
    tries_and_looks_leave_what_is_there,
    options_of_datagrams_are_returned,
}

mod scripts {
    use super::*;

    pub(super) async fn tries_and_looks_leave_what_is_there(log: Log) {
        use phaseloop::io::Interest;
        let one = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        other.connect(one.local_addr().unwrap()).await.unwrap();
        let mut buffer = [0; 3];
        log.result("try_recv", one.try_recv(&mut buffer));
        log.result("try_peek", one.try_peek(&mut buffer));
        log.result("try_peek_sender", one.try_peek_sender().map(|_| ()));
        log.result("try_io", one.try_io(Interest::READABLE, || Ok(())));
        log.result(
            "poll_send",
            std::future::poll_fn(|cx| other.poll_send(cx, b"hello")).await,
        );
        std::future::poll_fn(|cx| one.poll_recv_ready(cx))
            .await
            .unwrap();
        let ready = one.ready(Interest::READABLE | Interest::WRITABLE).await;
        log.result("ready", ready);
        log.result("peek", one.peek(&mut buffer).await);
        let sender = one.peek_sender().await.unwrap();
        log.line(sender == other.local_addr().unwrap());
        let mut vector = Vec::with_capacity(16);
        log.result("recv_buf", one.recv_buf(&mut vector).await);
        log.line(String::from_utf8_lossy(&vector));
        log.result("try_recv_buf", one.try_recv_buf(&mut vector));
        log.result("try_send", other.try_send(b"again"));
        log.result(
            "poll_recv",
            std::future::poll_fn(|cx| one.poll_recv(cx, &mut buffer)).await,
        );
    }

    pub(super) async fn options_of_datagrams_are_returned(log: Log) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        log.result("ttl", socket.ttl());
        log.result("set_ttl", socket.set_ttl(9));
        log.result("ttl", socket.ttl());
        log.result("tos", socket.tos());
        log.result("set_tos", socket.set_tos(0x10));
        log.result("tos", socket.tos());
        log.result("broadcast", socket.broadcast());
    }

    async fn pair() -> (UdpSocket, UdpSocket) {
        let one = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let two = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        (one, two)
    }

    pub(super) async fn a_datagram_arrives_whole_with_its_sender(log: Log) {
        let (one, two) = pair().await;
        let sent = one.send_to(b"hello", two.local_addr().unwrap()).await;
        log.result("sent", sent);
        let mut buffer = [0; 16];
        let (length, from) = two.recv_from(&mut buffer).await.unwrap();
        log.line(String::from_utf8_lossy(&buffer[..length]));
        log.line(from == one.local_addr().unwrap());
    }

    pub(super) async fn a_long_datagram_is_cut(log: Log) {
        let (one, two) = pair().await;
        let to = two.local_addr().unwrap();
        one.send_to(b"long and longer", to).await.unwrap();
        one.send_to(b"next", to).await.unwrap();
        let mut buffer = [0; 4];
        for _ in 0..2 {
            let (length, _) = two.recv_from(&mut buffer).await.unwrap();
            log.line(String::from_utf8_lossy(&buffer[..length]));
        }
    }

    pub(super) async fn an_empty_datagram_is_one(log: Log) {
        let (one, two) = pair().await;
        one.send_to(b"", two.local_addr().unwrap()).await.unwrap();
        let (length, _) = two.recv_from(&mut [0; 4]).await.unwrap();
        log.line(length);
    }

    pub(super) async fn datagrams_of_one_sender_stay_in_order(log: Log) {
        let (one, two) = pair().await;
        for n in 0..10_u8 {
            one.send_to(&[n], two.local_addr().unwrap()).await.unwrap();
        }
        let mut got = [0; 10];
        for place in &mut got {
            two.recv_from(std::slice::from_mut(place)).await.unwrap();
        }
        log.line(format!("{got:?}"));
    }

    pub(super) async fn a_connected_socket_hears_its_peer_only(log: Log) {
        let (one, two) = pair().await;
        let three = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let here = one.local_addr().unwrap();
        one.connect(two.local_addr().unwrap()).await.unwrap();
        log.line(one.peer_addr().unwrap() == two.local_addr().unwrap());
        three.send_to(b"foreign", here).await.unwrap();
        two.send_to(b"peer", here).await.unwrap();
        let mut buffer = [0; 16];
        let length = one.recv(&mut buffer).await.unwrap();
        log.line(String::from_utf8_lossy(&buffer[..length]));
        log.result("to the peer", one.send(b"answer").await);
        let length = two.recv(&mut buffer).await.unwrap();
        log.line(String::from_utf8_lossy(&buffer[..length]));
    }

    pub(super) async fn a_socket_without_a_peer_cannot_send(log: Log) {
        let (one, _two) = pair().await;
        log.result("send", one.send(b"x").await);
        log.result("peer", one.peer_addr());
    }

    pub(super) async fn a_closed_port_is_told_to_a_connected_socket(log: Log) {
        let (one, two) = pair().await;
        one.connect(two.local_addr().unwrap()).await.unwrap();
        drop(two);
        log.result("send", one.send(b"x").await);
        log.result("receive", one.recv(&mut [0; 8]).await);
        log.result("send", one.send(b"x").await);
        log.result("again", one.send(b"x").await);
    }

    pub(super) async fn a_datagram_to_no_socket_is_lost(log: Log) {
        let (one, two) = pair().await;
        let gone = two.local_addr().unwrap();
        drop(two);
        for _ in 0..2 {
            log.result("send", one.send_to(b"x", gone).await);
        }
    }

    pub(super) async fn a_datagram_may_be_too_long(log: Log) {
        let (one, two) = pair().await;
        let to = two.local_addr().unwrap();
        log.result("too long", one.send_to(&vec![0; 65_508], to).await);
        log.result("longest", one.send_to(&vec![0; 65_507], to).await);
        log.result(
            "port",
            one.send_to(b"x", (Ipv4Addr::LOCALHOST, 0).into()).await,
        );
    }

    pub(super) async fn a_taken_port_is_in_use(log: Log) {
        let (one, _two) = pair().await;
        let again = UdpSocket::bind(one.local_addr().unwrap()).await;
        log.result("bind", again.map(drop));
        let foreign = UdpSocket::bind("203.0.113.7:0").await;
        log.result("foreign", foreign.map(drop));
    }

    pub(super) async fn addresses_are_returned(log: Log) {
        let one = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        log.line(one.local_addr().unwrap().ip());
        let two = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        one.connect(two.local_addr().unwrap()).await.unwrap();
        log.line(one.local_addr().unwrap().ip());
    }

    pub(super) async fn a_wildcard_socket_answers_from_the_address_that_was_asked(log: Log) {
        let server = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let to = (Ipv4Addr::LOCALHOST, port).into();
        client.send_to(b"x", to).await.unwrap();
        let (_, from) = server.recv_from(&mut [0; 4]).await.unwrap();
        server.send_to(b"y", from).await.unwrap();
        let (_, from) = client.recv_from(&mut [0; 4]).await.unwrap();
        log.line(from == to);
    }

    pub(super) async fn the_time_to_live_is_checked(log: Log) {
        let (one, _two) = pair().await;
        log.result("good", one.set_ttl(9));
        log.result("bad", one.set_ttl(0));
        log.result("no broadcast", one.set_broadcast(false));
    }

    pub(super) async fn ipv6_maps_ipv4(log: Log) {
        let six = UdpSocket::bind("[::]:0").await.unwrap();
        let four = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let to = (Ipv4Addr::LOCALHOST, six.local_addr().unwrap().port());
        four.send_to(b"x", to.into()).await.unwrap();
        let (_, from) = six.recv_from(&mut [0; 4]).await.unwrap();
        log.line(from.ip());
    }

    pub(super) async fn a_receive_would_block(log: Log) {
        let (one, two) = pair().await;
        log.result("nothing", two.try_recv_from(&mut [0; 8]).map(|got| got.0));
        log.result("send", one.try_send_to(b"x", two.local_addr().unwrap()));
        two.readable().await.unwrap();
        log.result("one", two.try_recv_from(&mut [0; 8]).map(|got| got.0));
        log.result("nothing", two.try_recv_from(&mut [0; 8]).map(|got| got.0));
    }

    pub(super) async fn a_peek_leaves_the_datagram(log: Log) {
        let (one, two) = pair().await;
        one.send_to(b"hello", two.local_addr().unwrap())
            .await
            .unwrap();
        let mut buffer = [0; 8];
        for _ in 0..2 {
            log.result("peek", two.peek_from(&mut buffer).await.map(|got| got.0));
        }
        log.result("take", two.try_recv_from(&mut buffer).map(|got| got.0));
        log.result("nothing", two.try_recv_from(&mut buffer).map(|got| got.0));
    }

    pub(super) async fn a_batch_is_received_and_sent(log: Log) {
        let (one, two) = pair().await;
        let to = two.local_addr().unwrap();
        let mut batch = Batch::new(8, 4);
        for text in ["a", "bb", "cccc"] {
            batch.push(text.as_bytes(), to).unwrap();
        }
        log.result("send", one.send_batch(&mut batch).await);
        one.send_to(b"too long", to).await.unwrap();
        two.readable().await.unwrap();
        log.result("receive", two.recv_batch(&mut batch).await);
        for datagram in &batch {
            log.line(format!(
                "{:?} {}",
                datagram.bytes(),
                datagram.is_truncated()
            ));
            log.line(datagram.address() == one.local_addr().ok());
        }
        log.result("nothing", two.try_recv_batch(&mut batch));
        let mut failing = Batch::new(3, 70_000);
        failing.push(b"good", to).unwrap();
        failing.push(&[0; 70_000], to).unwrap();
        log.result("one fails", one.send_batch(&mut failing).await);
        log.line(failing.failed().unwrap().bytes().len());
    }

    pub(super) async fn readiness_tells_of_datagrams(log: Log) {
        let (one, two) = pair().await;
        one.writable().await.unwrap();
        let waiting = spawn(async move {
            two.readable().await.unwrap();
            two
        });
        phaseloop::task::yield_now().await;
        let sleeping = timeout(Duration::from_millis(5), std::future::pending::<()>()).await;
        log.line(sleeping.is_err() && !waiting.is_finished());
        waiting.abort();
        log.line(waiting.await.is_err());
    }
}

#[test]
fn a_queue_that_is_full_drops_what_comes() {
    let settings = Settings {
        datagrams: 1000,
        ..Settings::default()
    };
    let event_loop = Builder::new().network(settings).build().unwrap();
    event_loop.block_on(async {
        let one = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let two = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let to = two.local_addr().unwrap();
        for n in 0..15_u8 {
            assert_eq!(one.send_to(&[n; 100], to).await.unwrap(), 100);
        }
        let mut buffer = [0; 100];
        two.readable().await.unwrap();
        for n in 0..10 {
            two.try_recv_from(&mut buffer).unwrap();
            assert_eq!(buffer[0], n);
        }
        assert!(two.try_recv_from(&mut buffer).is_err(), "five were dropped");
        one.send_to(b"room again", to).await.unwrap();
        assert_eq!(two.recv(&mut buffer).await.unwrap(), 10);
    });
}

#[test]
fn groups_are_refused_with_a_sentence() {
    let event_loop = Builder::new().network(Settings::default()).build().unwrap();
    event_loop.block_on(async {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let group = Ipv4Addr::new(224, 0, 0, 251);
        let any = Ipv4Addr::UNSPECIFIED;
        let errors = [
            socket.join_multicast_v4(&group, &any).unwrap_err(),
            socket.set_multicast_ttl(1).unwrap_err(),
            socket.set_multicast_loop(true).unwrap_err(),
            socket.set_broadcast(true).unwrap_err(),
            socket
                .send_to(b"x", (group, 5353).into())
                .await
                .unwrap_err(),
            socket
                .send_to(b"x", (Ipv4Addr::BROADCAST, 9).into())
                .await
                .unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
            assert!(
                error.to_string().contains("no multicast and no broadcast"),
                "{error}"
            );
        }
    });
}

/// Two hosts send one datagram each to a third.
async fn two_senders() -> Vec<u8> {
    let socket = UdpSocket::bind("127.0.0.1:9").await.unwrap();
    let senders = [
        UdpSocket::bind("127.0.0.1:0").await.unwrap(),
        UdpSocket::bind("127.0.0.1:0").await.unwrap(),
    ];
    let to = socket.local_addr().unwrap();
    for (n, sender) in senders.iter().enumerate() {
        sender.send_to(&[n as u8], to).await.unwrap();
    }
    let mut got = vec![0; 2];
    for place in &mut got {
        socket.recv_from(std::slice::from_mut(place)).await.unwrap();
    }
    got
}

/// Returns what a program has returned under so many seeds.
fn outcomes<F, T: Ord + 'static>(explore: Explore, program: impl Fn() -> F) -> BTreeSet<T>
where
    F: Future<Output = T>,
{
    let seen = std::cell::RefCell::new(BTreeSet::new());
    explore.run(|| async {
        let outcome = program().await;
        seen.borrow_mut().insert(outcome);
    });
    seen.into_inner()
}

#[test]
fn senders_have_no_order_between_them() {
    let seen = outcomes(Explore::new().seeds(100), two_senders);
    assert_eq!(seen, BTreeSet::from([vec![0, 1], vec![1, 0]]));
    let usual = Explore::new().seeds(100).without(Kind::Net);
    assert_eq!(outcomes(usual, two_senders), BTreeSet::from([vec![0, 1]]));
}

/// Sends ten datagrams from one host to another, and returns what has arrived.
async fn ten_datagrams(link: Link) -> Vec<u8> {
    let network = Network::current();
    let (a, b) = (
        network.host("a", [10, 0, 0, 1]),
        network.host("b", [10, 0, 0, 2]),
    );
    network.link("a", "b", link);
    let receiver = b.run(|| async {
        let socket = UdpSocket::bind("0.0.0.0:9").await.unwrap();
        let mut got = Vec::new();
        let mut byte = [0];
        while timeout(Duration::from_secs(1), socket.recv(&mut byte))
            .await
            .is_ok()
        {
            got.push(byte[0]);
        }
        got
    });
    a.run(|| async {
        sleep(Duration::from_millis(100)).await;
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        for n in 0..10 {
            socket
                .send_to(&[n], "10.0.0.2:9".parse().unwrap())
                .await
                .unwrap();
        }
    })
    .detach();
    receiver.await.unwrap()
}

#[test]
fn a_link_keeps_datagrams_in_order_and_loses_none() {
    let seen = outcomes(Explore::new().seeds(50), || ten_datagrams(Link::default()));
    let all: Vec<u8> = (0..10).collect();
    assert_eq!(seen, BTreeSet::from([all]));
}

#[test]
fn a_link_may_lose_datagrams_but_no_more_than_it_says() {
    let link = || Link {
        loss: 0.2,
        ..Link::default()
    };
    let seen = outcomes(Explore::new().seeds(100), || ten_datagrams(link()));
    let lengths: BTreeSet<usize> = seen.iter().map(Vec::len).collect();
    assert!(lengths.contains(&10) && lengths.contains(&8), "{lengths:?}");
    assert!(lengths.iter().all(|length| *length >= 8), "{lengths:?}");
    assert!(
        seen.iter().any(|got| got.first() == Some(&1)),
        "also the first"
    );
}

#[test]
fn a_link_may_reorder_and_double_datagrams() {
    let link = || Link {
        reorder: true,
        latency: Duration::ZERO..=Duration::ZERO,
        ..Link::default()
    };
    let seen = outcomes(Explore::new().seeds(100), || ten_datagrams(link()));
    assert!(seen.iter().any(|got| !got.is_sorted()), "overtaken");
    assert!(seen.iter().any(|got| got.len() > 10), "doubled");
    assert!(
        seen.iter().all(|got| (0..10).all(|n| got.contains(&n))),
        "none lost"
    );
}

#[test]
fn the_settings_hold_where_no_link_is_set() {
    let settings = Settings {
        latency: Duration::from_millis(30)..=Duration::from_millis(30),
        loss: 1.0,
        ..Settings::default()
    };
    let event_loop = Builder::new().network(settings).build().unwrap();
    event_loop.block_on(async {
        let network = Network::current();
        let host = network.host("a", [10, 0, 0, 1]);
        let lost = host.run(|| async {
            let socket = UdpSocket::bind("10.0.0.1:9").await.unwrap();
            timeout(Duration::from_secs(9), socket.recv(&mut [0; 4])).await
        });
        let sender = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        sleep(Duration::from_secs(1)).await;
        let to = "10.0.0.1:9".parse().unwrap();
        sender.send_to(b"x", to).await.unwrap();
        assert!(lost.await.unwrap().is_err(), "all are lost");
        let start = phaseloop::time::now();
        assert!(phaseloop::net::TcpStream::connect("a:1").await.is_err());
        let taken = phaseloop::time::now() - start;
        assert_eq!(taken, Duration::from_millis(60));
    });
}

#[test]
fn a_loop_without_seeds_draws_from_the_settings() {
    let run = |seed| {
        let settings = Settings {
            seed,
            ..Settings::default()
        };
        let event_loop = Builder::new().network(settings).build().unwrap();
        let link = Link {
            loss: 0.5,
            reorder: true,
            ..Link::default()
        };
        event_loop.block_on(ten_datagrams(link))
    };
    let runs: BTreeSet<_> = (0..10).map(run).collect();
    assert!(runs.len() > 5, "{runs:?}");
    assert_eq!(run(3), run(3));
}
