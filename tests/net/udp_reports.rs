//! What a datagram of a batch carries beside its bytes: the type of service with its mark of
//! congestion, and the address of this machine.
#![cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]

use crate::util::faults::with_faults;
use crate::util::tcp::run;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use phaseloop::net::{Batch, UdpSocket};

const ECT_0: u8 = 0b10;
const ECT_1: u8 = 0b01;
const CE: u8 = 0b11;
/// A class of traffic beside the mark.
const EXPEDITED: u8 = 0xb8;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const SECOND: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

async fn reporting(address: &str) -> Option<UdpSocket> {
    let socket = UdpSocket::bind(address).await.ok()?;
    assert!(!socket.recv_tos().unwrap() && !socket.recv_local_ip().unwrap());
    socket.set_recv_tos(true).unwrap();
    socket.set_recv_local_ip(true).unwrap();
    assert!(socket.recv_tos().unwrap() && socket.recv_local_ip().unwrap());
    Some(socket)
}

/// Receives until so many datagrams have come.
async fn receive(socket: &UdpSocket, count: usize) -> Vec<(Vec<u8>, Option<u8>, Option<IpAddr>)> {
    let (mut all, mut batch) = (Vec::new(), Batch::new(64, 65_535));
    while all.len() < count {
        socket.recv_batch(&mut batch).await.unwrap();
        for datagram in &batch {
            for bytes in datagram.segments() {
                all.push((bytes.to_vec(), datagram.tos(), datagram.local_ip()));
            }
        }
    }
    all
}

/// Sends each of some types of service to a socket at `at`, and expects them.
async fn marks_arrive(sender: &UdpSocket, receiver: &UdpSocket, at: SocketAddr) {
    let mut batch = Batch::new(8, 100);
    for tos in [ECT_0, ECT_1, CE, EXPEDITED | ECT_0, 0] {
        batch.push(&[tos], at).unwrap();
        batch.last_mut().unwrap().set_tos(tos);
    }
    batch.push(b"unmarked", at).unwrap();
    sender.send_batch(&mut batch).await.unwrap();
    let all = receive(receiver, 6).await;
    for (bytes, tos, local) in &all[..5] {
        assert_eq!((*tos, *local), (Some(bytes[0]), Some(at.ip())));
    }
    assert_eq!(all[5].1, Some(0), "the one of the socket");
}

#[test]
fn a_mark_and_the_local_address_arrive_with_the_datagram() {
    run(async {
        let receiver = reporting("127.0.0.1:0").await.unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        marks_arrive(&sender, &receiver, receiver.local_addr().unwrap()).await;
        let Some(receiver) = reporting("[::1]:0").await else {
            return; // no IPv6
        };
        let sender = UdpSocket::bind("[::1]:0").await.unwrap();
        marks_arrive(&sender, &receiver, receiver.local_addr().unwrap()).await;
    });
}

/// A socket of IPv6 that sends to and receives from IPv4.
#[test]
fn both_protocols_of_one_socket_have_marks() {
    run(async {
        let Some(receiver) = reporting("[::]:0").await else {
            return; // no IPv6
        };
        let sender = UdpSocket::bind("[::]:0").await.unwrap();
        let port = receiver.local_addr().unwrap().port();
        let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped();
        for ip in [Ipv6Addr::LOCALHOST, mapped] {
            marks_arrive(&sender, &receiver, (ip, port).into()).await;
            sender.connect((ip, port)).await.unwrap();
            let mut batch = Batch::new(1, 10);
            batch.push_to_peer(b"peer").unwrap();
            let mut last = batch.last_mut().unwrap();
            last.set_tos(CE);
            last.set_local_ip(Some(ip.into()));
            sender.send_batch(&mut batch).await.unwrap();
            let (_, tos, local) = receive(&receiver, 1).await.remove(0);
            assert_eq!((tos, local), (Some(CE), Some(ip.into())));
        }
    });
}

#[test]
fn nothing_is_reported_unless_it_was_asked_for() {
    run(async {
        let receiver = reporting("127.0.0.1:0").await.unwrap();
        let to = receiver.local_addr().unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut batch = Batch::new(1, 100);
        batch.push(b"one", to).unwrap();
        batch.last_mut().unwrap().set_tos(CE);
        sender.send_batch(&mut batch).await.unwrap();
        receiver.recv_batch(&mut batch).await.unwrap();
        assert_eq!(batch.iter().next().unwrap().tos(), Some(CE));
        receiver.set_recv_tos(false).unwrap();
        receiver.set_recv_local_ip(false).unwrap();
        sender.send_to(b"two", to).await.unwrap();
        // Nothing is left of the datagram that was in the same room.
        receiver.recv_batch(&mut batch).await.unwrap();
        let datagram = batch.iter().next().unwrap();
        assert_eq!((datagram.tos(), datagram.local_ip()), (None, None));
    });
}

/// The mark of the way here is none of the way back. The address is.
#[test]
fn answers_leave_from_the_address_that_was_asked_and_unmarked() {
    run(async {
        let server = reporting("0.0.0.0:0").await.unwrap();
        let client = reporting("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let mut batch = Batch::new(4, 100);
        for ip in [HERE, SECOND] {
            batch.push(b"question", (ip, port).into()).unwrap();
            batch.last_mut().unwrap().set_tos(CE);
            client.send_batch(&mut batch).await.unwrap();
            server.recv_batch(&mut batch).await.unwrap();
            let question = batch.iter().next().unwrap();
            assert_eq!((question.tos(), question.local_ip()), (Some(CE), Some(ip)));
            let mut answers = Batch::new(2, 100);
            answers.push_reply(&question, b"answer").unwrap();
            for batch in [&mut batch, &mut answers] {
                server.send_batch(batch).await.unwrap();
                let mut received = Batch::new(1, 100);
                client.recv_batch(&mut received).await.unwrap();
                let answer = received.iter().next().unwrap();
                assert_eq!(answer.address(), Some((ip, port).into()));
                assert_eq!(answer.tos(), Some(0));
            }
        }
    });
}

#[test]
fn an_address_of_another_machine_is_an_error_of_one_datagram() {
    run(async {
        let receiver = reporting("127.0.0.1:0").await.unwrap();
        let to = receiver.local_addr().unwrap();
        let sender = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        let mut batch = Batch::new(4, 5000);
        let foreign = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
        batch.push(b"before", to).unwrap();
        batch.push(b"from elsewhere", to).unwrap();
        batch.last_mut().unwrap().set_local_ip(foreign);
        batch.push_segments(&[7; 3500], 1000, to).unwrap();
        batch.last_mut().unwrap().set_local_ip(foreign);
        batch.push(b"after", to).unwrap();
        let mut failed = Vec::new();
        while let Err(error) = sender.send_batch(&mut batch).await {
            assert_ne!(error.kind(), ErrorKind::WouldBlock);
            failed.extend(batch.failed().map(|datagram| datagram.bytes().len()));
        }
        assert_eq!(failed, [14, 3500]);
        let texts = receive(&receiver, 2).await;
        assert_eq!(
            (&texts[0].0[..], &texts[1].0[..]),
            (&b"before"[..], &b"after"[..])
        );
    });
}

/// Marks and addresses of segments, whoever cuts them, beside the lengths of joined ones.
fn marked_segments_arrive() {
    run(async {
        let receiver = reporting("127.0.0.1:0").await.unwrap();
        receiver.set_gro(true).unwrap();
        let to = receiver.local_addr().unwrap();
        let sender = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        let mut batch = Batch::new(4, 5000);
        for (tos, from) in [(ECT_0, HERE), (CE, SECOND)] {
            batch.push_segments(&[tos; 3500], 1000, to).unwrap();
            let mut last = batch.last_mut().unwrap();
            last.set_tos(tos);
            last.set_local_ip(Some(from));
        }
        sender.send_batch(&mut batch).await.unwrap();
        let (mut all, mut batch) = (Vec::new(), Batch::new(8, 65_535));
        while all.len() < 8 {
            receiver.recv_batch(&mut batch).await.unwrap();
            for datagram in &batch {
                let from = datagram.address().unwrap().ip();
                let of = |bytes: &[u8]| (bytes.len(), bytes[0], datagram.tos(), from);
                all.extend(datagram.segments().map(of));
            }
        }
        for (index, one) in all.into_iter().enumerate() {
            let length = if index % 4 == 3 { 500 } else { 1000 };
            let (tos, from) = if index < 4 {
                (ECT_0, HERE)
            } else {
                (CE, SECOND)
            };
            assert_eq!(one, (length, tos, Some(tos), from));
        }
    });
}

#[test]
fn segments_have_one_mark_and_one_address() {
    marked_segments_arrive();
}

#[test]
fn segments_that_are_sent_one_by_one_have_them_too() {
    let test = "segments_that_are_sent_one_by_one_have_them_too";
    with_faults(test, &["sendmmsg:error=EIO"], marked_segments_arrive);
}

#[test]
fn marks_stay_with_their_datagrams() {
    let to: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let mut batch = Batch::new(4, 100);
    assert!(batch.last_mut().is_none());
    for tos in 0..4 {
        batch.push(&[tos], to).unwrap();
        batch.last_mut().unwrap().set_tos(tos);
    }
    batch.retain_mut(|datagram| datagram.bytes()[0] % 2 == 1);
    let marks: Vec<_> = batch.iter().map(|datagram| datagram.tos()).collect();
    assert_eq!(marks, [Some(1), Some(3)]);
    assert_eq!(batch.last_mut().unwrap().bytes(), [3]);
    // The room of a datagram that is gone is taken by a plain one.
    batch.clear();
    assert!(batch.last_mut().is_none());
    batch.push(b"plain", to).unwrap();
    let datagram = batch.iter().next().unwrap();
    assert_eq!((datagram.tos(), datagram.local_ip()), (None, None));
}

/// With its header of 40 bytes, the longest datagram of IPv6 is longer than what the loopback
/// interface takes at once.
#[test]
fn a_datagram_that_may_not_be_cut_into_fragments_is_refused() {
    run(async {
        let Ok(receiver) = UdpSocket::bind("[::1]:0").await else {
            return; // no IPv6
        };
        let sender = UdpSocket::bind("[::1]:0").await.unwrap();
        let (to, long) = (receiver.local_addr().unwrap(), vec![7; 65_527]);
        assert!(!sender.dont_fragment().unwrap());
        sender.send_to(&long, to).await.unwrap();
        sender.set_dont_fragment(true).unwrap();
        assert!(sender.dont_fragment().unwrap());
        assert!(sender.send_to(&long, to).await.is_err());
        sender.send_to(&long[..65_000], to).await.unwrap();
        sender.set_dont_fragment(false).unwrap();
        assert!(!sender.dont_fragment().unwrap());
        sender.send_to(&long, to).await.unwrap();
    });
}
