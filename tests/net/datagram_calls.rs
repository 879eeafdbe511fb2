//! The calls of datagram sockets that do not wait, that poll, that look, and that grow a vector.
#![cfg(feature = "net")]

use crate::util::tcp::run;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::rc::Rc;

use futures::FutureExt;
use phaseloop::io::Interest;
use phaseloop::net::UdpSocket;
use phaseloop::spawn;
use phaseloop::task::yield_now_immediate;

/// Two sockets that are connected to each other.
async fn udp_pair() -> (UdpSocket, UdpSocket) {
    let one = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    one.connect(other.local_addr().unwrap()).await.unwrap();
    other.connect(one.local_addr().unwrap()).await.unwrap();
    (one, other)
}

#[track_caller]
fn would_block<T: std::fmt::Debug>(result: std::io::Result<T>) {
    assert_eq!(result.unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn without_a_datagram_every_try_would_block() {
    run(async {
        let (one, _other) = udp_pair().await;
        let (mut buffer, mut vector) = ([0; 8], Vec::with_capacity(8));
        would_block(one.try_recv(&mut buffer));
        would_block(one.try_recv_from(&mut buffer));
        would_block(one.try_peek(&mut buffer));
        would_block(one.try_peek_from(&mut buffer));
        would_block(one.try_peek_sender());
        would_block(one.try_recv_buf(&mut vector));
        would_block(one.try_recv_buf_from(&mut vector));
        assert!(vector.is_empty() && vector.capacity() == 8);
        assert!(one.peek(&mut buffer).now_or_never().is_none());
        assert!(one.peek_sender().now_or_never().is_none());
        assert!(one.recv_buf(&mut vector).now_or_never().is_none());
        assert!(vector.is_empty());
    });
}

#[test]
fn looking_takes_nothing() {
    run(async {
        let (one, other) = udp_pair().await;
        let from = other.local_addr().unwrap();
        other.send(b"hello").await.unwrap();
        let mut buffer = [0; 3];
        assert_eq!(one.peek(&mut buffer).await.unwrap(), 3, "cut");
        assert_eq!(one.try_peek(&mut buffer).unwrap(), 3);
        assert_eq!(one.peek_from(&mut buffer).await.unwrap(), (3, from));
        assert_eq!(one.try_peek_from(&mut buffer).unwrap(), (3, from));
        assert_eq!(one.peek_sender().await.unwrap(), from);
        assert_eq!(one.try_peek_sender().unwrap(), from);
        assert_eq!(
            poll_fn(|cx| one.poll_peek(cx, &mut buffer)).await.unwrap(),
            3
        );
        let peeked = poll_fn(|cx| one.poll_peek_from(cx, &mut buffer)).await;
        assert_eq!(peeked.unwrap(), (3, from));
        assert_eq!(poll_fn(|cx| one.poll_peek_sender(cx)).await.unwrap(), from);
        assert_eq!(&buffer, b"hel");
        let mut whole = [0; 8];
        assert_eq!(one.try_recv(&mut whole).unwrap(), 5);
        assert_eq!(&whole[..5], b"hello");
    });
}

#[test]
fn an_empty_datagram_has_a_sender() {
    run(async {
        let (one, other) = udp_pair().await;
        other.send(b"").await.unwrap();
        assert_eq!(
            one.peek_sender().await.unwrap(),
            other.local_addr().unwrap()
        );
        assert_eq!(one.try_recv(&mut [0; 4]).unwrap(), 0);
        would_block(one.try_peek_sender());
    });
}

#[test]
fn a_vector_takes_datagrams_into_its_spare_capacity() {
    run(async {
        let (one, other) = udp_pair().await;
        let from = other.local_addr().unwrap();
        let mut vector = Vec::with_capacity(6);
        for datagram in [b"abc", b"def", b"ghi"] {
            other.send(datagram).await.unwrap();
        }
        assert_eq!(one.recv_buf(&mut vector).await.unwrap(), 3);
        assert_eq!(one.recv_buf_from(&mut vector).await.unwrap(), (3, from));
        assert_eq!((&vector[..], vector.capacity()), (&b"abcdef"[..], 6));
        // There is no room, so the vector grows.
        one.readable().await.unwrap();
        assert_eq!(one.try_recv_buf_from(&mut vector).unwrap(), (3, from));
        assert_eq!(vector, b"abcdefghi");
        would_block(one.try_recv_buf(&mut vector));
        assert_eq!(vector, b"abcdefghi");
    });
}

/// No future is kept: the socket keeps the waker of the last call.
#[test]
fn polls_of_datagrams_keep_their_waker() {
    run(async {
        let (one, other) = udp_pair().await;
        let one = Rc::new(one);
        let ready = one.clone();
        let mut tasks = Vec::new();
        tasks.push(spawn(async move {
            poll_fn(|cx| ready.poll_recv_ready(cx)).await.unwrap();
            let mut buffer = [0; 8];
            let length = poll_fn(|cx| ready.poll_recv(cx, &mut buffer))
                .await
                .unwrap();
            assert_eq!(&buffer[..length], b"x");
        }));
        for _ in 0..3 {
            yield_now_immediate().await;
        }
        poll_fn(|cx| other.poll_send_ready(cx)).await.unwrap();
        assert_eq!(poll_fn(|cx| other.poll_send(cx, b"x")).await.unwrap(), 1);
        for task in tasks {
            task.await.unwrap();
        }
        let sent = one.try_io(Interest::WRITABLE, || one.get_ref().send(b"y"));
        assert_eq!(sent.unwrap(), 1);
        assert!(other.ready(Interest::READABLE).await.unwrap().is_readable());
    });
}

#[cfg(target_os = "linux")]
mod unix {
    use super::*;
    use phaseloop::net::{SocketName, UnixDatagram};
    use std::net::Shutdown;
    use std::os::unix::net;

    fn path(test: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("phaseloop-{}-{test}", std::process::id()))
    }

    /// Fills the queue of the peer.
    fn fill(socket: &UnixDatagram) -> usize {
        (0..)
            .find(|_| socket.try_send(b"full").is_err())
            .expect("a queue has an end")
    }

    #[test]
    fn a_try_that_would_block_waits_for_the_next_event() {
        run(async {
            let (one, other) = UnixDatagram::pair().unwrap();
            assert!(fill(&one) > 0);
            would_block(one.try_send(b"more"));
            assert!(one.writable().now_or_never().is_none(), "it is not ready");
            assert!(one.ready(Interest::WRITABLE).now_or_never().is_none());
            let waits = spawn(async move {
                poll_fn(|cx| one.poll_send_ready(cx)).await.unwrap();
                one.try_send(b"more").unwrap();
            });
            for _ in 0..3 {
                yield_now_immediate().await;
            }
            assert!(!waits.is_finished());
            while other.try_recv(&mut [0; 8]).is_ok() {}
            waits.await.unwrap();
            assert_eq!(other.recv(&mut [0; 8]).await.unwrap(), 4);
        });
    }

    #[test]
    fn a_sender_polls_until_there_is_room() {
        run(async {
            let (one, other) = UnixDatagram::pair().unwrap();
            let filled = fill(&one);
            let sender = spawn(async move { poll_fn(|cx| one.poll_send(cx, b"last")).await });
            for _ in 0..3 {
                yield_now_immediate().await;
            }
            assert!(!sender.is_finished());
            let mut buffer = [0; 8];
            for _ in 0..=filled {
                let length = poll_fn(|cx| other.poll_recv(cx, &mut buffer)).await;
                assert_eq!(length.unwrap(), 4);
            }
            assert_eq!(&buffer[..4], b"last");
            sender.await.unwrap().unwrap();
        });
    }

    #[test]
    fn datagrams_to_and_from_names_without_waiting() {
        run(async {
            let (here, there) = (path("try-here"), path("try-there"));
            let one = UnixDatagram::bind(&here).unwrap();
            let other = UnixDatagram::bind(&there).unwrap();
            let mut buffer = [0; 8];
            would_block(other.try_recv_from(&mut buffer));
            assert_eq!(one.try_send_to(b"one", &there).unwrap(), 3);
            let sent = poll_fn(|cx| one.poll_send_to(cx, b"two", &there)).await;
            assert_eq!(sent.unwrap(), 3);
            let from = Some(SocketName::Path(here.clone()));
            let received = other.try_recv_from(&mut buffer).unwrap();
            assert_eq!(received, (3, from.clone()));
            let received = poll_fn(|cx| other.poll_recv_from(cx, &mut buffer)).await;
            assert_eq!(received.unwrap(), (3, from.clone()));
            assert_eq!(one.try_send_to(b"three", &there).unwrap(), 5);
            let mut vector = Vec::with_capacity(16);
            assert_eq!(other.recv_buf_from(&mut vector).await.unwrap(), (5, from));
            assert_eq!(vector, b"three");
            let missing = path("try-missing");
            let error = one.try_send_to(b"x", &missing).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
            assert!(error.to_string().contains("try-missing"), "{error}");
            let error = poll_fn(|cx| one.poll_send_to(cx, b"x", &missing)).await;
            assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
        });
    }

    #[test]
    fn a_full_queue_names_no_one() {
        run(async {
            let there = path("try-full");
            let (one, _other) = (
                UnixDatagram::unbound().unwrap(),
                UnixDatagram::bind(&there).unwrap(),
            );
            let error = loop {
                if let Err(error) = one.try_send_to(b"x", &there) {
                    break error;
                }
            };
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
        });
    }

    #[test]
    fn a_datagram_socket_is_shut_down() {
        run(async {
            let (one, other) = UnixDatagram::pair().unwrap();
            assert_eq!(one.peer_name().unwrap(), None);
            one.shutdown(Shutdown::Write).unwrap();
            assert_eq!(
                one.try_send(b"x").unwrap_err().kind(),
                ErrorKind::BrokenPipe
            );
            assert_eq!(other.send(b"back").await.unwrap(), 4);
            assert_eq!(one.recv(&mut [0; 8]).await.unwrap(), 4);
            one.shutdown(Shutdown::Both).unwrap();
            assert_eq!(
                other.try_send(b"x").unwrap_err().kind(),
                ErrorKind::BrokenPipe
            );
            let alone = UnixDatagram::unbound().unwrap();
            assert!(alone.peer_name().is_err());
        });
    }

    #[test]
    fn a_datagram_socket_returns_to_the_standard_library_with_its_path() {
        run(async {
            let path = path("datagram-std");
            let socket = UnixDatagram::bind(&path).unwrap();
            assert!(socket.take_error().unwrap().is_none());
            let socket: net::UnixDatagram = socket.into_std();
            assert!(path.exists());
            let sender = UnixDatagram::unbound().unwrap();
            sender.send_to(b"hi", &path).await.unwrap();
            assert_eq!(socket.recv(&mut [0; 8]).unwrap(), 2);
            would_block(socket.recv(&mut [0; 8]));
            let again = UnixDatagram::from_std(socket).unwrap();
            drop(again);
            assert!(path.exists(), "it was not bound here");
            std::fs::remove_file(path).unwrap();
        });
    }
}
