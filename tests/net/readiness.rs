//! Readiness: of either direction, by poll functions that keep a waker, and what is tried with it.
#![cfg(feature = "net")]

use crate::util::tcp::{fill, listener, pair, run};
use std::cell::Cell;
use std::future::poll_fn;
use std::io::{ErrorKind, Read, Write};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::FutureExt;
use futures::future::join;
use phaseloop::io::{AsyncReadExt, AsyncWriteExt, Interest, Ready};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::task::yield_now_immediate;
use phaseloop::time::{sleep, timeout};
use phaseloop::{Handle, spawn};

const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);

/// Lets events arrive.
async fn turns() {
    for _ in 0..3 {
        yield_now_immediate().await;
    }
}

#[test]
fn ready_returns_the_directions_that_are() {
    run(async {
        let (one, mut other) = pair().await;
        assert_eq!(one.ready(BOTH).await.unwrap(), Ready::WRITABLE);
        assert!(one.ready(Interest::READABLE).now_or_never().is_none());
        other.write_all(b"x").await.unwrap();
        assert_eq!(
            one.ready(Interest::READABLE).await.unwrap(),
            Ready::READABLE
        );
        let both = one.ready(BOTH).await.unwrap();
        assert_eq!(both, Ready::READABLE | Ready::WRITABLE);
        // It stays until an attempt would block.
        assert_eq!(one.try_read(&mut [0; 8]).unwrap(), 1);
        assert_eq!(
            one.try_read(&mut [0; 8]).unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
        assert_eq!(one.ready(BOTH).await.unwrap(), Ready::WRITABLE);
    });
}

#[test]
fn try_read_buf_appends_and_makes_room() {
    run(async {
        let (one, mut other) = pair().await;
        let mut buffer = b"start".to_vec();
        let error = one.try_read_buf(&mut buffer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert_eq!(buffer, b"start");
        other.write_all(b"abc").await.unwrap();
        one.readable().await.unwrap();
        buffer.shrink_to_fit();
        assert_eq!(one.try_read_buf(&mut buffer).unwrap(), 3);
        assert_eq!(buffer, b"startabc");
        // No more than the spare capacity.
        let mut small = Vec::with_capacity(2);
        other.write_all(&[b'x'; 100]).await.unwrap();
        one.readable().await.unwrap();
        let capacity = small.capacity();
        assert_eq!(one.try_read_buf(&mut small).unwrap(), capacity);
        while small.len() < 100 {
            one.readable().await.unwrap();
            let _ = one.try_read_buf(&mut small);
        }
        assert_eq!(small, [b'x'; 100]);
        other.close().await.unwrap();
        one.readable().await.unwrap();
        assert_eq!(one.try_read_buf(&mut small).unwrap(), 0, "EOF");
        assert_eq!(small.len(), 100);
    });
}

// The portable poller does not report them.
#[cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]
#[test]
fn ready_returns_the_ends_that_are_closed() {
    run(async {
        let (one, mut other) = pair().await;
        other.close().await.unwrap();
        let ready = one.ready(Interest::READABLE).await.unwrap();
        assert!(ready.is_readable() && ready.is_read_closed(), "{ready:?}");
        let ready = one.ready(Interest::WRITABLE).await.unwrap();
        assert_eq!(ready, Ready::WRITABLE, "the other direction is open");
        drop(other.reset().unwrap());
        turns().await;
        let ready = one.ready(BOTH).await.unwrap();
        assert!(
            ready.is_read_closed() && ready.is_write_closed(),
            "{ready:?}"
        );
    });
}

// The portable poller does not report it.
#[cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]
#[test]
fn ready_waits_for_urgent_data() {
    use socket2::SockRef;
    run(async {
        let (one, other) = pair().await;
        let urgent = Interest::PRIORITY;
        assert!(one.ready(urgent).now_or_never().is_none());
        SockRef::from(&other).send_out_of_band(b"!").unwrap();
        assert!(
            one.ready(urgent | Interest::WRITABLE)
                .await
                .unwrap()
                .is_writable()
        );
        assert_eq!(one.ready(urgent).await.unwrap(), Ready::PRIORITY);
    });
}

/// A wait for both directions ends by either, and leaves nothing behind.
#[test]
fn a_wait_for_both_directions_leaves_no_wait_behind() {
    run(async {
        let (one, mut other) = pair().await;
        fill(&one).await;
        let mut wait = Box::pin(one.ready(BOTH));
        assert!(
            poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx)))
                .await
                .is_pending()
        );
        assert!(one.is_active());
        other.write_all(b"x").await.unwrap();
        assert_eq!(wait.as_mut().await.unwrap(), Ready::READABLE);
        assert!(!one.is_active(), "the wait to write has ended, too");
        drop(wait);
        let mut given_up = Box::pin(one.ready(Interest::WRITABLE));
        assert!(
            poll_fn(|cx| Poll::Ready(given_up.as_mut().poll(cx)))
                .await
                .is_pending()
        );
        drop(given_up);
        assert!(!one.is_active());
    });
}

#[test]
fn several_tasks_wait_for_both_directions_at_once() {
    run(async {
        let (one, mut other) = pair().await;
        fill(&one).await;
        let one = Rc::new(one);
        let waits: Vec<_> = (0..5)
            .map(|_| {
                let one = one.clone();
                spawn(async move { one.ready(BOTH).await.unwrap().is_readable() })
            })
            .collect();
        turns().await;
        other.write_all(b"x").await.unwrap();
        for wait in waits {
            assert!(wait.await.unwrap());
        }
    });
}

#[test]
fn try_io_is_not_called_before_the_socket_is_ready() {
    run(async {
        let (one, mut other) = pair().await;
        let calls = Cell::new(0);
        let mut buffer = [0; 8];
        let mut try_read = || {
            one.try_io(Interest::READABLE, || {
                calls.set(calls.get() + 1);
                one.get_ref().read(&mut buffer)
            })
        };
        assert_eq!(try_read().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(calls.get(), 0);
        other.write_all(b"abc").await.unwrap();
        one.readable().await.unwrap();
        assert_eq!(try_read().unwrap(), 3);
        assert_eq!(try_read().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(calls.get(), 2, "the second call would have blocked");
        assert_eq!(try_read().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(calls.get(), 2, "and so the socket is not ready");
        assert!(one.readable().now_or_never().is_none());
        other.write_all(b"d").await.unwrap();
        one.readable().await.unwrap();
        assert_eq!(try_read().unwrap(), 1);
    });
}

#[test]
fn try_io_returns_the_errors_of_the_operation_and_stays_ready() {
    run(async {
        let (one, _other) = pair().await;
        let failed = one.try_io(Interest::WRITABLE, || {
            Err::<(), _>(ErrorKind::AddrInUse.into())
        });
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::AddrInUse);
        assert_eq!(one.try_io(BOTH, || Ok(7)).unwrap(), 7);
    });
}

#[test]
fn async_io_calls_again_after_what_would_block() {
    run(async {
        let (one, mut other) = pair().await;
        let calls = Cell::new(0);
        let read = async {
            let mut buffer = [0; 8];
            let length = one
                .async_io(Interest::READABLE, || {
                    calls.set(calls.get() + 1);
                    match calls.get() {
                        // A byte that another reader has taken.
                        1 => Err(ErrorKind::WouldBlock.into()),
                        _ => one.get_ref().read(&mut buffer),
                    }
                })
                .await
                .unwrap();
            buffer[..length].to_vec()
        };
        let write = async {
            other.write_all(b"a").await.unwrap();
            sleep(Duration::from_millis(1)).await;
            other.write_all(b"b").await.unwrap();
        };
        let (read, ()) = join(read, write).await;
        // A poller with one-shot interests reports the first byte once more.
        let expected = [&b"ab"[..], b"a", b"b"];
        assert!(
            expected.contains(&&read[..]) && calls.get() == 2,
            "{read:?}"
        );
    });
}

/// No future is kept: the socket keeps the waker.
#[test]
fn poll_ready_keeps_its_waker() {
    run(async {
        let (one, mut other) = pair().await;
        fill(&one).await;
        let one = Rc::new(one);
        let waits = [true, false].map(|reads| {
            let one = one.clone();
            spawn(async move {
                poll_fn(|cx| match reads {
                    true => one.poll_read_ready(cx),
                    false => one.poll_write_ready(cx),
                })
                .await
                .unwrap();
            })
        });
        turns().await;
        assert!(waits.iter().all(|wait| !wait.is_finished()));
        let [read, write] = waits;
        other.write_all(b"x").await.unwrap();
        read.await.unwrap();
        assert!(!write.is_finished());
        let drain = spawn(async move {
            let mut buffer = vec![0; 1 << 16];
            while other.read(&mut buffer).await.unwrap() > 0 {}
        });
        write.await.unwrap();
        drain.abort();
    });
}

/// A source that stays ready does not starve the loop: readiness is an operation, too.
#[test]
fn ready_leaves_others_their_turn() {
    run(async {
        let (one, _other) = pair().await;
        let done = Rc::new(Cell::new(false));
        let mark = done.clone();
        spawn(async move {
            sleep(Duration::from_millis(1)).await;
            mark.set(true);
        })
        .detach();
        while !done.get() {
            one.ready(BOTH).await.unwrap();
        }
    });
}

async fn connect(address: std::net::SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.unwrap()
}

#[test]
fn poll_accept_keeps_its_waker() {
    run(async {
        let (listener, address) = listener().await;
        let accepted = spawn(async move { poll_fn(|cx| listener.poll_accept(cx)).await });
        turns().await;
        let client = connect(address).await;
        let (_server, peer) = accepted.await.unwrap().unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
    });
}

/// As a stream of connections polls that is built of `accept`: each future is dropped at once.
#[test]
fn a_dropped_accept_takes_no_waker_of_poll_accept_with_it() {
    run(async {
        let (listener, address) = listener().await;
        let accepted = spawn(async move {
            poll_fn(|cx| {
                let result = listener.poll_accept(cx);
                let mut given_up = pin!(listener.accept());
                if result.is_pending() {
                    assert!(given_up.as_mut().poll(cx).is_pending());
                }
                result
            })
            .await
        });
        turns().await;
        let _client = connect(address).await;
        accepted.await.unwrap().unwrap();
    });
}

#[test]
fn poll_accept_and_accept_wait_beside_each_other() {
    run(async {
        let (listener, address) = listener().await;
        let listener = Rc::new(listener);
        let mut tasks = Vec::new();
        for number in 0..6 {
            let listener = listener.clone();
            tasks.push(spawn(async move {
                match number {
                    0 => poll_fn(|cx| listener.poll_accept(cx)).await.unwrap(),
                    _ => listener.accept().await.unwrap(),
                }
            }));
        }
        turns().await;
        let clients: Vec<_> = (0..6)
            .map(|_| std::net::TcpStream::connect(address).unwrap())
            .collect();
        for task in tasks {
            timeout(Duration::from_secs(60), task)
                .await
                .unwrap()
                .unwrap();
        }
        drop(clients);
    });
}

/// Several in one turn: the second waits for the next turn, by the waker of the last call.
#[test]
fn poll_accept_takes_one_connection_a_turn() {
    run(async {
        let (listener, address) = listener().await;
        let clients: Vec<_> = (0..5)
            .map(|_| std::net::TcpStream::connect(address).unwrap())
            .collect();
        let handle = phaseloop::LoopHandle::current();
        let mut turns = Vec::new();
        for _ in 0..5 {
            poll_fn(|cx| listener.poll_accept(cx)).await.unwrap();
            turns.push(handle.turns());
        }
        turns.dedup();
        assert_eq!(turns.len(), 5);
        let mut noop = Context::from_waker(Waker::noop());
        assert!(listener.poll_accept(&mut noop).is_pending());
        drop(clients);
    });
}

/// The stream of connections polls one accept after the other.
#[test]
fn incoming_goes_on_after_a_poll_that_waits() {
    use phaseloop::stream::StreamExt;
    run(async {
        let (listener, address) = listener().await;
        let mut incoming = listener.incoming();
        assert!(incoming.next().now_or_never().is_none());
        for _ in 0..3 {
            let client = std::net::TcpStream::connect(address).unwrap();
            let server = incoming.next().await.unwrap().unwrap();
            assert_eq!(server.peer_addr().unwrap(), client.local_addr().unwrap());
        }
    });
}

#[cfg(unix)]
#[test]
fn every_socket_lends_its_descriptor() {
    use phaseloop::net::{TcpSocket, UdpSocket, UnixDatagram, UnixListener, UnixStream};
    use std::os::fd::{AsFd, AsRawFd};

    fn is_one<S: AsFd + AsRawFd>(socket: &S) {
        let number = socket.as_raw_fd();
        assert_eq!(socket.as_fd().as_raw_fd(), number);
        assert!(number > 2);
    }
    run(async {
        let (one, _other) = pair().await;
        assert_eq!(one.as_raw_fd(), one.get_ref().as_raw_fd());
        is_one(&one);
        is_one(&TcpListener::bind("127.0.0.1:0").await.unwrap());
        is_one(&TcpSocket::new_v4().unwrap());
        is_one(&UdpSocket::bind("127.0.0.1:0").await.unwrap());
        is_one(&UnixStream::pair().unwrap().0);
        is_one(&UnixDatagram::unbound().unwrap());
        let path = std::env::temp_dir().join(format!("phaseloop-lends-{}", std::process::id()));
        is_one(&UnixListener::bind(&path).unwrap());
        let (reader, writer) = phaseloop::io::pipe().unwrap();
        is_one(&reader);
        is_one(&writer);
    });
}

#[cfg(unix)]
mod unix {
    use super::*;
    use phaseloop::net::{SocketName, UnixListener, UnixStream};
    use std::path::PathBuf;

    fn path(test: &str) -> PathBuf {
        std::env::temp_dir().join(format!("phaseloop-{}-{test}", std::process::id()))
    }

    #[test]
    fn an_accept_returns_the_name_of_the_peer() {
        run(async {
            let (path, named) = (path("accept-name"), path("accept-named"));
            let listener = UnixListener::bind(&path).unwrap();
            let _client = UnixStream::connect(&path).await.unwrap();
            assert_eq!(listener.accept().await.unwrap().1, None);
            let socket =
                socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
            socket
                .bind(&socket2::SockAddr::unix(&named).unwrap())
                .unwrap();
            socket
                .connect(&socket2::SockAddr::unix(&path).unwrap())
                .unwrap();
            let (stream, peer) = poll_fn(|cx| listener.poll_accept(cx)).await.unwrap();
            assert_eq!(peer, Some(SocketName::Path(named.clone())));
            assert_eq!(stream.peer_name().unwrap(), peer);
            std::fs::remove_file(named).unwrap();
        });
    }

    #[test]
    fn a_unix_poll_accept_keeps_its_waker() {
        run(async {
            let path = path("accept-waker");
            let listener = UnixListener::bind(&path).unwrap();
            let accepted = spawn(async move { poll_fn(|cx| listener.poll_accept(cx)).await });
            turns().await;
            let _client = UnixStream::connect(&path).await.unwrap();
            accepted.await.unwrap().unwrap();
        });
    }

    #[test]
    fn a_path_stays_with_the_socket_of_the_standard_library() {
        run(async {
            let path = path("into-std");
            let listener = UnixListener::bind(&path).unwrap().into_std();
            assert!(path.exists());
            let client = UnixStream::connect(&path).await.unwrap();
            listener.accept().unwrap();
            drop((listener, client));
            assert!(path.exists(), "nothing removes it");
            std::fs::remove_file(path).unwrap();
        });
    }

    #[test]
    fn a_unix_stream_is_ready_and_tried() {
        run(async {
            let (one, mut other) = UnixStream::pair().unwrap();
            assert_eq!(one.ready(BOTH).await.unwrap(), Ready::WRITABLE);
            other.write_all(b"x").await.unwrap();
            poll_fn(|cx| one.poll_read_ready(cx)).await.unwrap();
            let read = one.try_io(Interest::READABLE, || one.get_ref().read(&mut [0; 8]));
            assert_eq!(read.unwrap(), 1);
            poll_fn(|cx| one.poll_write_ready(cx)).await.unwrap();
            let wrote = one
                .async_io(Interest::WRITABLE, || one.get_ref().write(b"y"))
                .await;
            assert_eq!(wrote.unwrap(), 1);
            assert!(one.take_error().unwrap().is_none());
        });
    }
}
